/* SPDX-License-Identifier: Apache-2.0
 * Envelope of control messages: text to struct and back. Foreign text is bounded in size and depth before the JSON
 * parser, which recurses, sees it. Slow threads; field readers are in json_in.c. */
#include "common/message.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

/* Object hashes start from random bits, so that a peer cannot prepare colliding keys. */
static void seed(void) { json_object_seed(0); }

/* Memory was short for a tree of this thread since it encoded last. */
static _Thread_local bool json_short;

static void *json_alloc(size_t bytes)
{
	void *p = malloc(bytes);
	json_short |= p == NULL;
	return p;
}

static void json_free(void *p)
{
	if (p != NULL)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

void tn_message_watch_memory(void) { json_set_alloc_funcs(json_alloc, json_free); }

static tn_status fail(char *err, tn_status st, const char *text)
{
	snprintf(err, TN_ERR_TEXT, "%s", text);
	return st;
}

/* Nesting of the raw text, strings skipped; need not be valid JSON. */
static bool depth_within(const char *p, size_t len, unsigned max)
{
	unsigned depth = 0;
	bool in_string = false;
	for (size_t i = 0; i < len; i++) {
		char c = p[i];
		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			if (++depth > max)
				return false;
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return true;
}

static bool type_valid(const char *type)
{
	size_t len = strspn(type, "abcdefghijklmnopqrstuvwxyz0123456789_.-");
	return len > 0 && len < TN_MESSAGE_TYPE && type[len] == '\0';
}

/* Drops a UTF-8 character that a cut left incomplete at the end: it could not be sent on. */
static void utf8_mend(char *s)
{
	size_t len = strlen(s), start = len;
	while (start > 0 && (s[start - 1] & 0xc0) == 0x80)
		start--;
	if (start == 0)
		return;
	unsigned char lead = (unsigned char)s[start - 1];
	size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
	if (len - (start - 1) < need)
		s[start - 1] = '\0';
}

static void read_status(struct tn_json_in *in, struct tn_message *m)
{
	const char *name = "", *detail = "";
	(void)tn_json_str(in, "status", 64, &name);
	if (tn_json_has(in, "detail"))
		(void)tn_json_str(in, "detail", TN_MESSAGE_MAX, &detail);
	if (in->status != TN_OK)
		return;
	if (tn_status_from_name(name, &m->status)) {
		snprintf(m->detail, sizeof m->detail, "%.*s", TN_MESSAGE_DETAIL - 1, detail);
	} else {
		m->status = TN_UNSUPPORTED;
		snprintf(m->detail, sizeof m->detail, "status \"%s\" of a newer version: %.128s", name, detail);
	}
	utf8_mend(m->detail);
}

/* Everything after the version; in->status tells. */
static void read_fields(struct tn_json_in *in, struct tn_message *m)
{
	const json_t *body = NULL;
	if (tn_json_str_copy(in, "type", m->type, sizeof m->type) == TN_OK && !type_valid(m->type))
		(void)tn_json_refuse(in, "type", "is not a method name");
	if (tn_json_has(in, "session"))
		(void)tn_json_hex128(in, "session", &m->session);
	if (tn_json_has(in, "remaining_ms"))
		(void)tn_json_u64(in, "remaining_ms", 0, TN_MESSAGE_REMAINING_MAX_MS, &m->remaining_ms);
	if (m->reply)
		read_status(in, m);
	if (tn_json_has(in, "body"))
		(void)tn_json_object(in, "body", &body);
	if (in->status == TN_OK && body != NULL)
		m->body = json_incref(json_object_get(in->obj, "body"));
}

static tn_status decode_root(const json_t *root, struct tn_message *m, char *err)
{
	struct tn_json_in in;
	tn_json_in_init(&in, root);
	/* First what an error reply needs; a wrong version must not hide the id. */
	(void)tn_json_u32(&in, "v", 0, UINT32_MAX, &m->version);
	(void)tn_json_u64(&in, "id", 0, UINT64_MAX, &m->id);
	if (tn_json_has(&in, "reply"))
		(void)tn_json_bool(&in, "reply", &m->reply);
	if (in.status == TN_OK && m->version != TN_MESSAGE_VERSION) {
		snprintf(err, TN_ERR_TEXT, "message version %u is not known here; this side speaks %u", m->version,
		         TN_MESSAGE_VERSION);
		return TN_UNSUPPORTED;
	}
	if (in.status == TN_OK)
		read_fields(&in, m);
	if (in.status != TN_OK)
		memcpy(err, in.err, TN_ERR_TEXT);
	return in.status;
}

tn_status tn_message_decode(const void *buf, size_t len, struct tn_message *out, char err[static TN_ERR_TEXT])
{
	(void)pthread_once(&seed_once, seed);
	memset(out, 0, sizeof *out);
	if (len > TN_MESSAGE_MAX)
		return fail(err, TN_TOO_BIG, "message is longer than 64 KiB");
	if (!depth_within(buf, len, TN_MESSAGE_DEPTH))
		return fail(err, TN_TOO_BIG, "message is nested deeper than 16 levels");
	json_error_t je;
	json_t *root = json_loadb(buf, len, JSON_REJECT_DUPLICATES, &je);
	if (root == NULL) {
		if (json_error_code(&je) == json_error_out_of_memory)
			return fail(err, TN_NO_MEMORY, "message: out of memory");
		char *near = strstr(je.text, " near ");   /* what follows quotes the message, which may hold secrets */
		if (near != NULL)
			*near = '\0';
		snprintf(err, TN_ERR_TEXT, "message is not valid JSON: %.120s (byte %d)", je.text, je.position);
		return TN_INVALID;
	}
	struct tn_message m = { 0 };
	tn_status st = json_is_object(root) ? decode_root(root, &m, err) :
	                                      fail(err, TN_INVALID, "message is not a JSON object");
	json_decref(root);
	if (st == TN_OK)
		*out = m;
	else
		*out = (struct tn_message){ .version = m.version, .id = m.id, .reply = m.reply };
	return st;
}

tn_status tn_message_encode(const struct tn_message *m, char *buf, size_t cap, size_t *len_out)
{
	(void)pthread_once(&seed_once, seed);
	if (!type_valid(m->type) || (m->body != NULL && !json_is_object(m->body)))
		return TN_INVALID;
	json_t *root = json_object();
	if (root == NULL)
		return TN_NO_MEMORY;
	bool good = tn_json_put_u64(root, "v", TN_MESSAGE_VERSION) == TN_OK &&
	            tn_json_put_str(root, "type", m->type) == TN_OK && tn_json_put_u64(root, "id", m->id) == TN_OK;
	if (!tn_id128_is_zero(&m->session))
		good = good && tn_json_put_hex128(root, "session", &m->session) == TN_OK;
	if (m->reply) {
		good = good && tn_json_put_bool(root, "reply", true) == TN_OK &&
		       tn_json_put_str(root, "status", tn_status_name(m->status)) == TN_OK;
		if (m->detail[0] != '\0')
			good = good && tn_json_put_str(root, "detail", m->detail) == TN_OK;
	} else if (m->remaining_ms != 0) {
		good = good && tn_json_put_u64(root, "remaining_ms", TN_MIN(m->remaining_ms, TN_MESSAGE_REMAINING_MAX_MS)) == TN_OK;
	}
	if (m->body != NULL)
		good = good && json_object_set(root, "body", m->body) == 0;
	size_t max = TN_MIN(cap, (size_t)TN_MESSAGE_MAX);
	size_t len = good ? json_dumpb(root, buf, max, JSON_COMPACT) : 0;
	json_decref(root);
	good = !json_short;
	json_short = false;
	if (len == 0 || !good)
		return TN_NO_MEMORY;
	if (len > max)
		return TN_TOO_BIG;
	*len_out = len;
	return TN_OK;
}

void tn_message_clear(struct tn_message *m)
{
	json_decref(m->body);
	memset(m, 0, sizeof *m);
}
