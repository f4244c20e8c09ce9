/* SPDX-License-Identifier: Apache-2.0
 * What is a character of UTF-8, and text of strangers as one harmless line. No state; any thread. */
#ifndef TN_UTF8_H
#define TN_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the valid character at s (1..4), or 0 (RFC 3629: no surrogates, no overlong forms). s ends with a NUL. */
size_t tn_utf8_len(const char *s);
/* All of it is. */
bool tn_utf8_valid(const char *text);

/* The text as one line of valid UTF-8 for any terminal, log or JSON: controls and bytes that are no UTF-8 become '?'. What
 * does not fit is cut between characters. `out` may be `text`. */
void tn_utf8_line(char *out, size_t out_bytes, const char *text);

#endif
