/* SPDX-License-Identifier: Apache-2.0
 * The growing, bounded text buffer of the exposition, the JSON writer and the log lines. */
#include "common/text_buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CAP = 256 };

void tn_text_init(struct tn_text *t, size_t max)
{
	*t = (struct tn_text){ .max = max };
}

void tn_text_free(struct tn_text *t)
{
	free(t->p);
	tn_text_init(t, t->max);
}

void tn_text_reset(struct tn_text *t)
{
	t->len = 0;
	t->failed = false;
	if (t->p)
		t->p[0] = '\0';
}

char *tn_text_take(struct tn_text *t, size_t *len_out)
{
	tn_text_add(t, "", 0); /* an empty text is still a string */
	if (t->failed)
		return NULL;
	char *p = t->p;
	*len_out = t->len;
	tn_text_init(t, t->max);
	return p;
}

/* Room for n more bytes and the NUL; false (sticky) when the bound or the memory ends. */
static bool reserve(struct tn_text *t, size_t n)
{
	if (t->failed || n > t->max - t->len) {
		t->failed = true;
		return false;
	}
	size_t need = t->len + n + 1;
	if (need <= t->cap)
		return true;
	size_t cap = t->cap ? t->cap : FIRST_CAP;
	while (cap < need)
		cap *= 2;
	char *p = realloc(t->p, cap);
	if (!p) {
		t->failed = true;
		return false;
	}
	t->p = p;
	t->cap = cap;
	return true;
}

void tn_text_add(struct tn_text *t, const char *bytes, size_t n)
{
	if (!reserve(t, n))
		return;
	memcpy(t->p + t->len, bytes, n);
	t->len += n;
	t->p[t->len] = '\0';
}

void tn_text_str(struct tn_text *t, const char *s)
{
	tn_text_add(t, s, strlen(s));
}

void tn_text_char(struct tn_text *t, char c)
{
	tn_text_add(t, &c, 1);
}

void tn_text_u64(struct tn_text *t, uint64_t v)
{
	char b[20];
	unsigned i = sizeof b;
	do
		b[--i] = (char)('0' + v % 10);
	while (v /= 10);
	tn_text_add(t, b + i, sizeof b - i);
}

void tn_text_i64(struct tn_text *t, int64_t v)
{
	if (v < 0)
		tn_text_char(t, '-');
	tn_text_u64(t, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void tn_text_fixed(struct tn_text *t, uint64_t v, unsigned decimals)
{
	uint64_t scale = 1;
	for (unsigned i = 0; i < decimals; i++)
		scale *= 10;
	tn_text_u64(t, v / scale);
	v %= scale;
	if (v == 0)
		return;
	char b[10] = ".";
	unsigned n = decimals;
	for (; v % 10 == 0; n--)
		v /= 10;
	for (unsigned i = n; i > 0; i--, v /= 10)
		b[i] = (char)('0' + v % 10);
	tn_text_add(t, b, n + 1);
}

void tn_text_printf(struct tn_text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	va_list again;
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		t->failed = true;
	else if (reserve(t, (size_t)n)) {
		(void)vsnprintf(t->p + t->len, (size_t)n + 1, fmt, again);
		t->len += (size_t)n;
	}
	va_end(again);
}
