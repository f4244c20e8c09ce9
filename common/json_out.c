/* SPDX-License-Identifier: Apache-2.0
 * The streaming JSON writer. The only owner of JSON escaping on the way out of our own printers. */
#include "common/json_out.h"

#include "common/utf8.h"

static void put_string(struct tn_text *t, const char *s);

static void member(struct tn_jout *j, const char *key)
{
	if (j->comma >> j->depth & 1)
		tn_text_char(j->out, ',');
	j->comma |= 1u << j->depth;
	if (key) {
		put_string(j->out, key);
		tn_text_char(j->out, ':');
	}
}

static void open_level(struct tn_jout *j, char c)
{
	tn_text_char(j->out, c);
	if (j->depth == TN_JOUT_DEPTH_MAX) {
		j->out->failed = true;
		return;
	}
	j->depth++;
	j->comma &= ~(1u << j->depth);
}

static void close_level(struct tn_jout *j, char c)
{
	tn_text_char(j->out, c);
	if (j->depth > 0)
		j->depth--;
}

void tn_jout_begin(struct tn_jout *j, struct tn_text *out)
{
	*j = (struct tn_jout){ .out = out };
	open_level(j, '{');
}

void tn_jout_end(struct tn_jout *j)
{
	close_level(j, '}');
}

void tn_jout_object(struct tn_jout *j, const char *key)
{
	member(j, key);
	open_level(j, '{');
}

void tn_jout_array(struct tn_jout *j, const char *key)
{
	member(j, key);
	open_level(j, '[');
}

void tn_jout_close_object(struct tn_jout *j)
{
	close_level(j, '}');
}

void tn_jout_close_array(struct tn_jout *j)
{
	close_level(j, ']');
}

static void put_string(struct tn_text *t, const char *s)
{
	tn_text_char(t, '"');
	for (const char *p = s; *p;) {
		size_t n = tn_utf8_len(p);
		if (n == 0)
			tn_text_str(t, "\\ufffd");
		else if (*p == '"' || *p == '\\')
			tn_text_printf(t, "\\%c", *p);
		else if (n == 1 && ((unsigned char)*p < 0x20 || *p == 0x7f))
			tn_text_printf(t, "\\u%04x", (unsigned)(unsigned char)*p);
		else
			tn_text_add(t, p, n);
		p += n ? n : 1;
	}
	tn_text_char(t, '"');
}

void tn_jout_str(struct tn_jout *j, const char *key, const char *value)
{
	if (!value) {
		tn_jout_null(j, key);
		return;
	}
	member(j, key);
	put_string(j->out, value);
}

void tn_jout_u64(struct tn_jout *j, const char *key, uint64_t value)
{
	member(j, key);
	tn_text_u64(j->out, value);
}

void tn_jout_i64(struct tn_jout *j, const char *key, int64_t value)
{
	member(j, key);
	tn_text_i64(j->out, value);
}

void tn_jout_fixed(struct tn_jout *j, const char *key, uint64_t value, unsigned decimals)
{
	member(j, key);
	tn_text_fixed(j->out, value, decimals);
}

void tn_jout_bool(struct tn_jout *j, const char *key, bool value)
{
	member(j, key);
	tn_text_str(j->out, value ? "true" : "false");
}

void tn_jout_null(struct tn_jout *j, const char *key)
{
	member(j, key);
	tn_text_str(j->out, "null");
}
