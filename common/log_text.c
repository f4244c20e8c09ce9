/* SPDX-License-Identifier: Apache-2.0
 * Escaping of foreign text in log lines. No state; any thread. */
#include "common/log_text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "common/utf8.h"

void tn_log_text_raw(struct tn_log_text *t, const char *s)
{
	size_t len = TN_MIN(strlen(s), t->cap - t->len);
	memcpy(t->buf + t->len, s, len);
	t->len += len;
}

void tn_log_textf(struct tn_log_text *t, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	tn_log_text_raw(t, text);
}

/* Appends a piece only whole; false when it does not fit. */
static bool piece(struct tn_log_text *t, const char *s, size_t len, size_t keep_free)
{
	if (t->len + len + keep_free > t->cap)
		return false;
	memcpy(t->buf + t->len, s, len);
	t->len += len;
	return true;
}

void tn_log_text_json(struct tn_log_text *t, const char *s, size_t keep_free)
{
	for (bool fits = true; *s != '\0' && fits;) {
		char escape[8];
		size_t len = tn_utf8_len(s);
		if (len == 0) {
			fits = piece(t, "\\ufffd", 6, keep_free);
			s++;
		} else if (len == 1 && ((unsigned char)*s < 0x20 || *s == '"' || *s == '\\' || *s == 0x7f)) {
			bool two = *s == '"' || *s == '\\' || *s == '\n';
			int n = two ? snprintf(escape, sizeof escape, "\\%c", *s == '\n' ? 'n' : *s) :
			              snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*s);
			fits = piece(t, escape, (size_t)n, keep_free);
			s++;
		} else {
			fits = piece(t, s, len, keep_free);
			s += len;
		}
	}
}

void tn_log_text_plain(struct tn_log_text *t, const char *s, size_t keep_free)
{
	for (bool fits = true; *s != '\0' && fits;) {
		char escape[8];
		const unsigned char *u = (const unsigned char *)s;
		size_t len = tn_utf8_len(s);
		if (len == 0) {
			fits = piece(t, "?", 1, keep_free);
			s++;
		} else if (u[0] < 0x20 || u[0] == 0x7f) {
			int n = snprintf(escape, sizeof escape, "\\x%02x", u[0]);
			fits = piece(t, escape, (size_t)n, keep_free);
			s++;
		} else if (len == 2 && u[0] == 0xc2 && u[1] < 0xa0) {   /* C1 controls steer terminals as well */
			fits = piece(t, "?", 1, keep_free);
			s += len;
		} else {
			fits = piece(t, s, len, keep_free);
			s += len;
		}
	}
}

void tn_log_text_time(struct tn_log_text *t, uint64_t real_ns)
{
	time_t s = (time_t)(real_ns / TN_NS_PER_S);
	struct tm tm;
	char text[32] = "";
	if (gmtime_r(&s, &tm) != NULL)
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	tn_log_textf(t, "%s.%03uZ", text, (unsigned)(real_ns / TN_NS_PER_MS % 1000));
}
