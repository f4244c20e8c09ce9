/* SPDX-License-Identifier: Apache-2.0
 * How people write durations and sizes, read once at the edge and written for reports: "10ms", "1.5s", "64KiB", "1G".
 * Inside tent durations are ns and sizes are bytes. No state; any thread. */
#ifndef TN_UNITS_H
#define TN_UNITS_H

#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"

#define TN_UNITS_TEXT 32   /* room for any formatted value, with the NUL */

/* Number (decimal, optional fraction) and unit ns, us, ms, s, m, h or d; a bare "0" needs no unit.
 * TN_INVALID: not of that form; TN_RANGE: more than 2^64-1 ns. A fraction finer than 1 ns is cut. */
tn_status tn_duration_parse(const char *text, uint64_t *ns_out);

/* Number (decimal, optional fraction) and unit: none or B = bytes; K M G T, KB, KiB ... = powers of 1024.
 * TN_INVALID: not of that form; TN_RANGE: more than 2^64-1 bytes. */
tn_status tn_bytes_parse(const char *text, uint64_t *bytes_out);

/* Short and readable: "0s" "850ns" "1.50ms" "12.3s" "4m05s" "3h20m" "2d03h". Rounded; not meant to be parsed back.
 * Returns out. */
char *tn_duration_format(uint64_t ns, char out[static TN_UNITS_TEXT]);

/* Short and readable with 1024-based units: "0B" "512B" "1.50KiB" "12.3GiB". Returns out. */
char *tn_bytes_format(uint64_t bytes, char out[static TN_UNITS_TEXT]);

/* Exact: the largest unit that divides the value ("10ms", "1500us", "64KiB"); parses back to the same value. */
char *tn_duration_format_exact(uint64_t ns, char out[static TN_UNITS_TEXT]);
char *tn_bytes_format_exact(uint64_t bytes, char out[static TN_UNITS_TEXT]);

/* What "1 peer" ends with, and "2 peers". */
TN_INLINE const char *tn_plural(uint64_t n) { return n == 1 ? "" : "s"; }

#endif
