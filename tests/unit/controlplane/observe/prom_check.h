/* SPDX-License-Identifier: Apache-2.0
 * A checker of exposition text, independent of the code that writes it: every line parses, HELP and TYPE stand once and
 * before their samples, no series twice, histograms are cumulative with ascending bounds and +Inf equal to the count.
 * For tests; prom_check_main.c makes it a filter for scripts. */
#ifndef TEST_PROM_CHECK_H
#define TEST_PROM_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* True when text is well formed; else err says which line and why. openmetrics: the 1.0 rules (counter families without
 * _total, float bounds, exemplars on buckets, "# EOF" last) instead of text 0.0.4. samples_out may be NULL. */
bool prom_check(const char *text, size_t len, bool openmetrics, size_t *samples_out, char *err, size_t err_size);

#endif
