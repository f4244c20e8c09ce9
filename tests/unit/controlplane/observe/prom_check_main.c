/* SPDX-License-Identifier: Apache-2.0
 * prom_check [--openmetrics] < exposition: exit 0 and the number of samples when it is well formed, else 1 and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/controlplane/observe/prom_check.h"

int main(int argc, char **argv)
{
	static char text[8 << 20];
	char err[256] = "";
	size_t samples = 0, len = fread(text, 1, sizeof text, stdin);
	bool openmetrics = argc > 1 && strcmp(argv[1], "--openmetrics") == 0;
	if (!prom_check(text, len, openmetrics, &samples, err, sizeof err)) {
		fprintf(stderr, "prom_check: %s\n", err);
		return EXIT_FAILURE;
	}
	printf("%zu samples\n", samples);
	return EXIT_SUCCESS;
}
