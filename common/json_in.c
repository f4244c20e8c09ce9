/* SPDX-License-Identifier: Apache-2.0
 * Strict field readers and writers of JSON bodies (declared in message.h). Each refusal names the field and what was
 * expected, never the value: values may be secret. Slow threads. */
#include "common/message.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/bits.h"

void tn_json_in_init(struct tn_json_in *in, const json_t *obj)
{
	*in = (struct tn_json_in){ .obj = obj, .status = TN_OK };
}

tn_status tn_json_refuse(struct tn_json_in *in, const char *key, const char *fmt, ...)
{
	if (in->status != TN_OK)
		return in->status;
	int n = snprintf(in->err, sizeof in->err, "field \"%.48s\" ", key);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(in->err + n, sizeof in->err - (size_t)n, fmt, ap);
	va_end(ap);
	return in->status = TN_INVALID;
}

bool tn_json_has(const struct tn_json_in *in, const char *key)
{
	const json_t *v = json_object_get(in->obj, key);
	return v != NULL && !json_is_null(v);
}

/* The value, or NULL after a refusal (also one long before). */
static const json_t *field(struct tn_json_in *in, const char *key)
{
	if (in->status != TN_OK)
		return NULL;
	const json_t *v = json_object_get(in->obj, key);
	if (v == NULL || json_is_null(v)) {
		(void)tn_json_refuse(in, key, "is missing");
		return NULL;
	}
	return v;
}

static bool decimal(const char *s, size_t len, uint64_t *out)
{
	uint64_t v = 0;
	if (len == 0 || len > 20 || (s[0] == '0' && len > 1))
		return false;
	for (size_t i = 0; i < len; i++)
		if (s[i] < '0' || s[i] > '9' || !tn_mul_checked(v, 10, &v) || !tn_add_checked(v, (uint64_t)(s[i] - '0'), &v))
			return false;
	*out = v;
	return true;
}

tn_status tn_json_u64(struct tn_json_in *in, const char *key, uint64_t min, uint64_t max, uint64_t *out)
{
	const json_t *f = field(in, key);
	uint64_t v;
	if (f == NULL)
		return in->status;
	if (json_is_integer(f) && json_integer_value(f) >= 0)
		v = (uint64_t)json_integer_value(f);
	else if (!json_is_string(f) || !decimal(json_string_value(f), json_string_length(f), &v))
		return tn_json_refuse(in, key, "must be an unsigned integer");
	if (v < min || v > max)
		return tn_json_refuse(in, key, "must be within %" PRIu64 "..%" PRIu64, min, max);
	*out = v;
	return TN_OK;
}

tn_status tn_json_u32(struct tn_json_in *in, const char *key, uint32_t min, uint32_t max, uint32_t *out)
{
	uint64_t v;
	tn_status st = tn_json_u64(in, key, min, max, &v);
	if (st == TN_OK)
		*out = (uint32_t)v;
	return st;
}

tn_status tn_json_page(struct tn_json_in *in, uint32_t max, uint32_t *first_out, uint32_t *count_out)
{
	*first_out = 0;
	*count_out = max;
	if (tn_json_has(in, "first"))
		(void)tn_json_u32(in, "first", 0, UINT32_MAX, first_out);
	if (tn_json_has(in, "count"))
		(void)tn_json_u32(in, "count", 1, max, count_out);
	return in->status;
}

tn_status tn_json_bool(struct tn_json_in *in, const char *key, bool *out)
{
	const json_t *f = field(in, key);
	if (f == NULL)
		return in->status;
	if (!json_is_boolean(f))
		return tn_json_refuse(in, key, "must be true or false");
	*out = json_is_true(f);
	return TN_OK;
}

tn_status tn_json_str(struct tn_json_in *in, const char *key, size_t max_len, const char **out)
{
	const json_t *f = field(in, key);
	if (f == NULL)
		return in->status;
	if (!json_is_string(f))
		return tn_json_refuse(in, key, "must be a string");
	if (json_string_length(f) > max_len || strlen(json_string_value(f)) != json_string_length(f))
		return tn_json_refuse(in, key, "must be a string of at most %zu bytes", max_len);
	*out = json_string_value(f);
	return TN_OK;
}

tn_status tn_json_str_copy(struct tn_json_in *in, const char *key, char *out, size_t cap)
{
	const char *s;
	tn_status st = tn_json_str(in, key, cap - 1, &s);
	if (st == TN_OK)
		memcpy(out, s, strlen(s) + 1);
	return st;
}

tn_status tn_json_name(struct tn_json_in *in, const char *key, char out[static TN_NAME_MAX])
{
	const char *s;
	tn_status st = tn_json_str(in, key, TN_NAME_MAX - 1, &s);
	if (st != TN_OK)
		return st;
	if (!tn_name_valid(s))
		return tn_json_refuse(in, key, "must be a name: 1 to 63 of A-Z a-z 0-9 . _ -, not starting with . or -");
	memcpy(out, s, strlen(s) + 1);
	return TN_OK;
}

tn_status tn_json_hex128(struct tn_json_in *in, const char *key, struct tn_id128 *out)
{
	const json_t *f = field(in, key);
	if (f == NULL)
		return in->status;
	if (!json_is_string(f) || tn_id128_from_hex(json_string_value(f), out) != TN_OK)
		return tn_json_refuse(in, key, "must be 32 lower-case hexadecimal digits");
	return TN_OK;
}

tn_status tn_json_peer_id(struct tn_json_in *in, const char *key, struct tn_peer_id *out)
{
	const json_t *f = field(in, key);
	if (f == NULL)
		return in->status;
	if (!json_is_string(f) || tn_peer_id_from_hex(json_string_value(f), out) != TN_OK)
		return tn_json_refuse(in, key, "must be 64 lower-case hexadecimal digits");
	return TN_OK;
}

tn_status tn_json_choice(struct tn_json_in *in, const char *key, const char *const *choices, size_t cnt, unsigned *out)
{
	const json_t *f = field(in, key);
	if (f == NULL)
		return in->status;
	const char *s = json_is_string(f) ? json_string_value(f) : "";
	for (size_t i = 0; i < cnt; i++) {
		if (strcmp(choices[i], s) == 0) {
			*out = (unsigned)i;
			return TN_OK;
		}
	}
	char list[128] = "";
	for (size_t i = 0, len = 0; i < cnt && len < sizeof list; i++)
		len += (size_t)snprintf(list + len, sizeof list - len, " %s", choices[i]);
	return tn_json_refuse(in, key, "must be one of:%s", list);
}

tn_status tn_json_object(struct tn_json_in *in, const char *key, const json_t **out)
{
	const json_t *f = field(in, key);
	if (f == NULL)
		return in->status;
	if (!json_is_object(f))
		return tn_json_refuse(in, key, "must be an object");
	*out = f;
	return TN_OK;
}

tn_status tn_json_array(struct tn_json_in *in, const char *key, size_t max_cnt, const json_t **out)
{
	const json_t *f = field(in, key);
	if (f == NULL)
		return in->status;
	if (!json_is_array(f))
		return tn_json_refuse(in, key, "must be an array");
	if (json_array_size(f) > max_cnt)
		return tn_json_refuse(in, key, "must have at most %zu elements", max_cnt);
	*out = f;
	return TN_OK;
}

static tn_status put(json_t *obj, const char *key, json_t *value)
{
	return json_object_set_new(obj, key, value) == 0 ? TN_OK : TN_NO_MEMORY;   /* NULL value: fails too */
}

tn_status tn_json_put_u64(json_t *obj, const char *key, uint64_t v)
{
	char text[24];
	if (v <= INT64_MAX)
		return put(obj, key, json_integer((json_int_t)v));
	snprintf(text, sizeof text, "%" PRIu64, v);
	return put(obj, key, json_string(text));
}

tn_status tn_json_put_bool(json_t *obj, const char *key, bool v) { return put(obj, key, json_boolean(v)); }
tn_status tn_json_put_str(json_t *obj, const char *key, const char *v) { return put(obj, key, json_string(v)); }

tn_status tn_json_put_hex128(json_t *obj, const char *key, const struct tn_id128 *id)
{
	char text[TN_ID128_HEX];
	tn_id128_to_hex(id, text);
	return put(obj, key, json_string(text));
}

tn_status tn_json_put_peer_id(json_t *obj, const char *key, const struct tn_peer_id *id)
{
	char text[TN_PEER_ID_HEX];
	tn_peer_id_to_hex(id, text);
	return put(obj, key, json_string(text));
}
