/* SPDX-License-Identifier: Apache-2.0
 * Writing one log line into a fixed buffer: JSON strings and plain text with everything escaped that could forge a line
 * or break a terminal. A text that does not fit is cut between characters, never inside an escape. Any thread. */
#ifndef TN_LOG_TEXT_H
#define TN_LOG_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"

/* Zero len to begin; buf[0 .. len) is the text, without NUL. */
struct tn_log_text { char *buf; size_t len, cap; };

/* As much of s as fits, unchanged: constants of ours. */
void tn_log_text_raw(struct tn_log_text *t, const char *s);
void tn_log_textf(struct tn_log_text *t, const char *fmt, ...) TN_PRINTF(2, 3);
/* The inside of a JSON string; bytes that are not UTF-8 become U+FFFD. keep_free bytes stay unused for what follows. */
void tn_log_text_json(struct tn_log_text *t, const char *s, size_t keep_free);
/* Text for a terminal or file: control characters as \xNN, bytes that are not UTF-8 as '?'. */
void tn_log_text_plain(struct tn_log_text *t, const char *s, size_t keep_free);
/* "2026-01-31T12:00:00.123Z" */
void tn_log_text_time(struct tn_log_text *t, uint64_t real_ns);

#endif
