/* SPDX-License-Identifier: Apache-2.0
 * The main() of every CUnit binary: TN_TEST_MAIN("suite", { "what it shows", function }, ...). The exit status is 0 only
 * if every case ran and passed. Whole-process deadlines come from ctest; a waiting test sets its own besides. */
#ifndef TN_TEST_CU_H
#define TN_TEST_CU_H

#include <CUnit/Basic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/compiler.h"

struct tn_test_case { const char *name; void (*fn)(void); };

static inline int tn_test_run(const char *suite, const struct tn_test_case *cases, size_t cnt)
{
	if (CU_initialize_registry() != CUE_SUCCESS)
		return EXIT_FAILURE;
	CU_pSuite s = CU_add_suite(suite, NULL, NULL);
	for (size_t i = 0; s != NULL && i < cnt; i++)
		if (CU_add_test(s, cases[i].name, cases[i].fn) == NULL)
			s = NULL;
	if (s == NULL) {
		CU_cleanup_registry();
		return EXIT_FAILURE;
	}
	CU_basic_set_mode(CU_BRM_NORMAL);
	CU_basic_run_tests();
	bool good = CU_get_number_of_failures() == 0 && CU_get_number_of_tests_run() == cnt;
	CU_cleanup_registry();
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define TN_TEST_MAIN(suite, ...) \
	int main(void) \
	{ \
		static const struct tn_test_case cases[] = { __VA_ARGS__ }; \
		return tn_test_run(suite, cases, TN_ARRAY_LEN(cases)); \
	}

#endif
