/* SPDX-License-Identifier: Apache-2.0
 * A text buffer that grows up to a bound. Writers do not check each step: the first failure (bound reached, out of
 * memory) sticks in `failed`, later writes do nothing, and whoever hands the text out looks once. Owner thread only. */
#ifndef TN_TEXT_BUF_H
#define TN_TEXT_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"

struct tn_text {
	char *p;         /* owned; NUL-terminated once anything was written; may be NULL */
	size_t len, cap; /* bytes without the NUL; bytes allocated */
	size_t max;      /* bound of len */
	bool failed;
};

/* An empty text of at most max bytes; allocates nothing yet. */
void tn_text_init(struct tn_text *t, size_t max);
/* Frees the memory; t is empty and usable again with the same bound. Accepts a zeroed struct. */
void tn_text_free(struct tn_text *t);
/* Forgets content and failure, keeps the memory. */
void tn_text_reset(struct tn_text *t);
/* Hands the memory (from malloc, NUL-terminated, len_out bytes) to the caller, who frees it; t is empty afterwards.
 * NULL when the text failed. */
char *tn_text_take(struct tn_text *t, size_t *len_out);

void tn_text_add(struct tn_text *t, const char *bytes, size_t n);
void tn_text_str(struct tn_text *t, const char *s);
void tn_text_char(struct tn_text *t, char c);
void tn_text_u64(struct tn_text *t, uint64_t v);
void tn_text_i64(struct tn_text *t, int64_t v);
/* v / 10^decimals, exactly, without trailing zeros: (1500, 3) gives "1.5". decimals <= 9. */
void tn_text_fixed(struct tn_text *t, uint64_t v, unsigned decimals);
void tn_text_printf(struct tn_text *t, const char *fmt, ...) TN_PRINTF(2, 3);

#endif
