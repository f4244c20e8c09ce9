/* SPDX-License-Identifier: Apache-2.0
 * Words against a table of learned names, and forms: see redact.h. Whatever is in doubt goes. */
#include "controlplane/tentctl/bundle/redact.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/compiler.h"

#define WORD_MAX 256u
#define HEX_LEAST 16u /* digits of an id or a key; counters in hex are shorter */
#define KEY_CHARS 40u /* a CURVE key as text */
#define DEPTH_MAX 64u

struct tctl_redactor {
	enum tctl_redact_mode mode;
	json_t *names; /* word: token */
	json_t *cnt;   /* label: how many tokens */
	bool failed;
};

/* Members whose strings are names, and what stands for them. Numbers in an address are no names. */
static const struct { const char *key, *label; bool address; } learned[] = {
	{ "name", "name", false }, { "host", "host", false }, { "peer", "peer", false }, { "peers", "peer", false },
	{ "segment", "segment", false }, { "from", "peer", false }, { "ref", "segment", false },
	{ "address", "address", true }, { "addresses", "address", true }, { "bind", "address", true },
	{ "bind_address", "address", true }, { "http_bind", "address", true }, { "command", "program", true },
};

/* Words of tent's own that a name may equal without becoming one: a token in their place would only confuse. */
static const char *const own_words[] = { "tcp", "shm", "rdma", "hp_tcp", "segment", "peer", "localhost" };

/* Ids that are random, name nobody and tie a bundle to a log; digests of what cannot be guessed. */
static const char *const open_ids[] = { "trace_id", "span_id", "parent_span_id", "commit" };
static const char *const person_numbers[] = { "uid", "gid", "pid", "ppid", "port" };

static bool is_one_of(const char *const *list, size_t cnt, const char *word)
{
	for (size_t i = 0; i < cnt; i++)
		if (strcmp(list[i], word) == 0)
			return true;
	return false;
}

#define ONE_OF(list, word) is_one_of(list, TN_ARRAY_LEN(list), word)

/* ---- new, free ---- */

struct tctl_redactor *tctl_redactor_new(enum tctl_redact_mode mode)
{
	struct tctl_redactor *r = calloc(1, sizeof *r);
	if (r == NULL)
		return NULL;
	*r = (struct tctl_redactor){ .mode = mode, .names = json_object(), .cnt = json_object() };
	if (r->names != NULL && r->cnt != NULL)
		return r;
	tctl_redactor_free(r);
	return NULL;
}

void tctl_redactor_free(struct tctl_redactor *r)
{
	if (r == NULL)
		return;
	json_decref(r->names);
	json_decref(r->cnt);
	free(r);
}

/* ---- words ---- */

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || (unsigned char)c >= 0x80;
}

/* Length of the word at p; a full stop or a hyphen behind it is no part of it. */
static size_t word_len(const char *p)
{
	size_t n = 0;
	while (is_word_char(p[n]))
		n++;
	while (n > 1 && (p[n - 1] == '.' || p[n - 1] == '-'))
		n--;
	return n;
}

static bool all_digits(const char *p, size_t n)
{
	return strspn(p, "0123456789") >= n;
}

/* ---- learn ---- */

static void learn_word(struct tctl_redactor *r, const char *word, const char *label)
{
	char token[64];
	if (word[0] == '\0' || ONE_OF(own_words, word) || json_object_get(r->names, word) != NULL)
		return;
	json_int_t n = json_integer_value(json_object_get(r->cnt, label)) + 1;
	snprintf(token, sizeof token, "%s-%lld", label, (long long)n);
	if (json_object_size(r->names) == TCTL_REDACT_NAMES_MAX || json_object_set_new(r->cnt, label, json_integer(n)) != 0 ||
	    json_object_set_new(r->names, word, json_string(token)) != 0)
		r->failed = true;
}

static void learn_words(struct tctl_redactor *r, const char *text, const char *label, bool address)
{
	char word[WORD_MAX];
	while (*text != '\0') {
		size_t n = word_len(text);
		if (n > 0 && n < sizeof word && !(address && all_digits(text, n))) {
			memcpy(word, text, n);
			word[n] = '\0';
			learn_word(r, word, label);
		}
		text += n > 0 ? n : 1;
	}
}

/* The strings of a member and, of a list, of its items. */
static void learn_member(struct tctl_redactor *r, const json_t *v, size_t row)
{
	size_t i;
	const json_t *item;
	if (json_is_array(v)) {
		json_array_foreach(v, i, item)
			if (json_is_string(item))
				learn_member(r, item, row);
	} else if (json_is_string(v)) { /* PEER/SEGMENT are two names */
		learn_words(r, json_string_value(v), learned[row].label, learned[row].address);
	}
}

static void learn_in(struct tctl_redactor *r, const json_t *doc, unsigned depth)
{
	size_t i;
	const char *key;
	json_t *v;
	if (depth == DEPTH_MAX) {
		r->failed = true;
		return;
	}
	if (json_is_array(doc))
		json_array_foreach(doc, i, v)
			learn_in(r, v, depth + 1);
	if (!json_is_object(doc))
		return;
	json_object_foreach((json_t *)(uintptr_t)doc, key, v) {
		for (size_t row = 0; row < TN_ARRAY_LEN(learned); row++)
			if (strcmp(learned[row].key, key) == 0)
				learn_member(r, v, row);
		learn_in(r, v, depth + 1);
	}
}

bool tctl_redactor_learn(struct tctl_redactor *r, const json_t *doc)
{
	learn_in(r, doc, 0);
	return !r->failed;
}

/* ---- rewrite ---- */

/* An address at p, with what belongs to it (prefix, port, zone, brackets): its length, 0 when there is none. */
static size_t address_len(const char *p)
{
	char text[64];
	struct in6_addr a;
	bool bracket = *p == '[';
	const char *q = p + bracket;
	size_t n = strspn(q, "0123456789abcdefABCDEF:.");
	if (n == 0 || n >= sizeof text)
		return 0;
	/* "10.0.0.1:80" is an address and a port; the port of an IPv6 address stands behind a bracket */
	size_t v4 = strspn(q, "0123456789.");
	while (v4 > 0 && q[v4 - 1] == '.')
		v4--;
	memcpy(text, q, v4);
	text[v4] = '\0';
	size_t len = 0;
	if (inet_pton(AF_INET, text, &a) == 1) {
		len = v4;
	} else {
		while (n > 1 && q[n - 1] == '.')
			n--;
		memcpy(text, q, n);
		text[n] = '\0';
		if (strchr(text, ':') == NULL || inet_pton(AF_INET6, text, &a) != 1)
			return 0;
		len = n;
	}
	q += len;
	if (*q == '%')
		q += 1 + word_len(q + 1);
	if (bracket)
		q += *q == ']';
	if ((*q == ':' || *q == '/') && isdigit((unsigned char)q[1]))
		q += 1 + strspn(q + 1, "0123456789");
	return is_word_char(*q) && *q != '.' && *q != '-' ? 0 : (size_t)(q - p);
}

/* An absolute path at p that begins a word. */
static size_t path_len(const char *p)
{
	size_t n = 0;
	if (*p != '/' || !(is_word_char(p[1]) || p[1] == '/'))
		return 0;
	while (p[n] != '\0' && strchr(" \t\n\"'<>|,;()", p[n]) == NULL)
		n++;
	while (n > 1 && (p[n - 1] == ':' || p[n - 1] == '.'))
		n--;
	return n;
}

/* A key as text has characters that no word has. */
static bool is_key(const char *p, size_t n)
{
	static const char z85[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
	return n == KEY_CHARS && strspn(p, z85) >= n;
}

static size_t unbroken_len(const char *p)
{
	return strcspn(p, " \t\n\"',;");
}

/* What a word becomes; NULL: it stays. */
static const char *token_of(const struct tctl_redactor *r, const char *p, size_t n)
{
	char word[WORD_MAX];
	if (n >= sizeof word)
		return "<long>";
	memcpy(word, p, n);
	word[n] = '\0';
	const char *token = json_string_value(json_object_get(r->names, word));
	if (token == NULL && n >= HEX_LEAST && strspn(word, "0123456789abcdefABCDEF") == n && !all_digits(word, n))
		token = "<hex>";
	return token;
}

/* What stands at p and must not, with its length; NULL: nothing. `begins`: no word runs into p. */
static const char *hidden_at(const struct tctl_redactor *r, const char *p, bool begins, size_t *len_out)
{
	size_t n;
	if (!begins)
		return NULL;
	if (is_key(p, unbroken_len(p))) {
		*len_out = KEY_CHARS;
		return "<key>";
	}
	if ((n = address_len(p)) > 0) {
		*len_out = n;
		return "<ip>";
	}
	if ((n = path_len(p)) > 0) {
		*len_out = n;
		return "<path>";
	}
	*len_out = word_len(p);
	return *len_out > 0 ? token_of(r, p, *len_out) : NULL;
}

static void rewrite(const struct tctl_redactor *r, const char *text, FILE *to)
{
	const char *p = text;
	while (*p != '\0') {
		size_t n = 0;
		bool begins = p == text || !is_word_char(p[-1]);
		/* a slash between two words separates them ("b/kv", "tcp://b"), it does not begin a path */
		if (*p == '/' && p > text && (is_word_char(p[-1]) || p[-1] == ':' || p[-1] == '/'))
			begins = false;
		const char *token = hidden_at(r, p, begins, &n);
		if (token != NULL) {
			fputs(token, to);
		} else {
			n = n > 0 ? n : 1;
			fwrite(p, 1, n, to);
		}
		p += n;
	}
}

char *tctl_redactor_text(const struct tctl_redactor *r, const char *text)
{
	char *out = NULL;
	size_t bytes;
	FILE *to = open_memstream(&out, &bytes);
	if (to == NULL)
		return NULL;
	rewrite(r, text, to);
	if (fclose(to) == 0)
		return out;
	free(out);
	return NULL;
}

static json_t *string_json(const struct tctl_redactor *r, const char *key, const char *value)
{
	bool strict = r->mode == TCTL_REDACT_STRICT;
	if (!strict && key != NULL && ONE_OF(open_ids, key))
		return json_string(value);
	if (strict && strchr(value, ' ') != NULL)
		return json_string("<text>");
	char *text = tctl_redactor_text(r, value);
	json_t *j = text != NULL ? json_string(text) : NULL;
	free(text);
	return j;
}

static json_t *copy(const struct tctl_redactor *r, const char *key, const json_t *v);

static json_t *object_json(const struct tctl_redactor *r, const json_t *doc)
{
	json_t *out = json_object(), *v;
	const char *key;
	bool good = out != NULL;
	json_object_foreach((json_t *)(uintptr_t)doc, key, v) {
		char *name = tctl_redactor_text(r, key);
		json_t *item = name != NULL ? copy(r, key, v) : NULL;
		good = item != NULL && json_object_set_new(out, name, item) == 0 && good;
		free(name);
	}
	if (good)
		return out;
	json_decref(out);
	return NULL;
}

static json_t *array_json(const struct tctl_redactor *r, const char *key, const json_t *doc)
{
	json_t *out = json_array(), *v;
	size_t i;
	bool good = out != NULL;
	json_array_foreach(doc, i, v) {
		json_t *item = copy(r, key, v);
		good = item != NULL && json_array_append_new(out, item) == 0 && good;
	}
	if (good)
		return out;
	json_decref(out);
	return NULL;
}

/* Depth is bounded: what learn() went through. */
static json_t *copy(const struct tctl_redactor *r, const char *key, const json_t *v)
{
	if (json_is_object(v))
		return object_json(r, v);
	if (json_is_array(v))
		return array_json(r, key, v);
	if (json_is_string(v))
		return string_json(r, key, json_string_value(v));
	if (json_is_number(v) && r->mode == TCTL_REDACT_STRICT && key != NULL && ONE_OF(person_numbers, key))
		return json_null();
	return json_incref((json_t *)(uintptr_t)v);
}

json_t *tctl_redactor_json(const struct tctl_redactor *r, const json_t *doc)
{
	return copy(r, NULL, doc);
}
