/* SPDX-License-Identifier: Apache-2.0
 * Optimal string alignment distance (Damerau, Levenshtein) in three rows. */
#include "common/nearest.h"

#include <stdio.h>
#include <string.h>

#include "common/compiler.h"

#define EDIT_MAX TN_EDIT_TEXT_MAX

unsigned tn_edit_distance(const char *a, const char *b)
{
	size_t na = strnlen(a, EDIT_MAX), nb = strnlen(b, EDIT_MAX);
	unsigned char rows[3][EDIT_MAX + 1];
	unsigned char *before = rows[0], *prev = rows[1], *cur = rows[2];

	for (size_t j = 0; j <= nb; j++)
		prev[j] = (unsigned char)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned char *oldest = before;

		cur[0] = (unsigned char)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = prev[j - 1] + (a[i - 1] != b[j - 1]);

			best = TN_MIN(best, TN_MIN(prev[j], cur[j - 1]) + 1u);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = TN_MIN(best, before[j - 2] + 1u);
			cur[j] = (unsigned char)best;
		}
		before = prev;
		prev = cur;
		cur = oldest;
	}
	return prev[nb];
}

unsigned tn_edit_limit(size_t len)
{
	return len <= 3 ? 1 : len <= 6 ? 2 : len <= 12 ? 3 : 4;
}

void tn_keep_nearest(const char *word, const char *candidate, unsigned *best, char *out, size_t out_bytes)
{
	unsigned distance = tn_edit_distance(word, candidate);

	if (distance >= *best)
		return;
	*best = distance;
	snprintf(out, out_bytes, "%s", candidate);
}
