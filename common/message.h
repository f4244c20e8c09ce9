/* SPDX-License-Identifier: Apache-2.0
 * The envelope of every control message (data plane, control plane, tentctl, peers) as one bounded JSON object, and
 * strict reading of its fields. This header is the door to jansson for code that builds or reads bodies.
 *   {"v":1,"type":"get_segment","id":7,"session":"<32 hex>","remaining_ms":900,"body":{...}}
 *   {"v":1,"type":"get_segment","id":7,"session":"...","reply":true,"status":"ok","detail":"...","body":{...}}
 * Unknown fields are ignored, an unknown major version is refused, wrong types are refused by name. Slow threads; never
 * blocks; no shared state. */
#ifndef TN_MESSAGE_H
#define TN_MESSAGE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/ids.h"
#include "common/status.h"

#define TN_MESSAGE_VERSION 1            /* major; minor additions are new optional fields */
#define TN_MESSAGE_MAX     65536        /* bytes of text, both directions */
#define TN_MESSAGE_DEPTH   16           /* nested objects and arrays */
#define TN_MESSAGE_TYPE    32           /* [a-z0-9_.-], with the NUL */
#define TN_MESSAGE_DETAIL  256          /* text for people, with the NUL; cut when longer */
#define TN_MESSAGE_REMAINING_MAX_MS UINT64_C(86400000)

/* Zero-initialise before filling in one to send. */
struct tn_message {
	uint32_t version;               /* decode: as received; encode: ignored, TN_MESSAGE_VERSION is sent */
	bool reply;
	char type[TN_MESSAGE_TYPE];     /* method name; the same in request and reply */
	uint64_t id;                    /* correlation: chosen by the requester, repeated in the reply */
	struct tn_id128 session;        /* sender's incarnation; all zero = none (tentctl) */
	uint64_t remaining_ms;          /* request: time left to answer; 0 = not said, the receiver takes its default */
	tn_status status;               /* reply only; a name of a newer version becomes TN_UNSUPPORTED */
	char detail[TN_MESSAGE_DETAIL]; /* reply only */
	json_t *body;                   /* object or NULL; owned (one reference) by this struct after decode */
};

/* Reads len bytes. On TN_OK out holds everything and owns body: tn_message_clear it.
 * TN_TOO_BIG: longer or deeper than the bounds. TN_UNSUPPORTED: major version (err names it and ours). TN_INVALID: not
 * JSON, a duplicate key, or a field of a wrong type (err names it). On failure nothing is owned; out is zero except id,
 * reply and version where they could be read, so that a receiver can answer with the error. */
tn_status tn_message_decode(const void *buf, size_t len, struct tn_message *out, char err[static TN_ERR_TEXT]);

/* From now on trees of this process are wiped when they are freed (tickets pass through them), and a message for which
 * memory was short while its body was built is not encoded: what lacks a part is as well-formed as what is whole. Once, at
 * start, before other threads. */
void tn_message_watch_memory(void);

/* Writes the text (no NUL) into buf; m keeps its body. TN_TOO_BIG: larger than cap or TN_MESSAGE_MAX. TN_INVALID: type
 * is not a name or body not an object. TN_NO_MEMORY. buf is undefined on failure. */
tn_status tn_message_encode(const struct tn_message *m, char *buf, size_t cap, size_t *len_out);

/* Drops the body and zeroes the struct; harmless on a zeroed one. */
void tn_message_clear(struct tn_message *m);

/* ---- strict reading of a body. The first failure sticks: its text names the field, every later call does nothing and
 * returns the same status, so that a reader takes all its fields and looks at in.status once. Outputs of a failed or
 * absent optional field are untouched: set the default before. Strings stay owned by the JSON value. ---- */
struct tn_json_in {
	const json_t *obj;
	tn_status status;
	char err[TN_ERR_TEXT];
};

/* obj may be NULL (no body): then every required field is missing. */
void tn_json_in_init(struct tn_json_in *in, const json_t *obj);

/* Unsigned integer within min..max; above 2^63-1 it is written as a decimal string, which is accepted for any value. */
tn_status tn_json_u64(struct tn_json_in *in, const char *key, uint64_t min, uint64_t max, uint64_t *out);
tn_status tn_json_u32(struct tn_json_in *in, const char *key, uint32_t min, uint32_t max, uint32_t *out);
/* Which part of a long list is asked for: "first" (0 if absent) and "count" (max if absent, at most max, at least 1). */
tn_status tn_json_page(struct tn_json_in *in, uint32_t max, uint32_t *first_out, uint32_t *count_out);
tn_status tn_json_bool(struct tn_json_in *in, const char *key, bool *out);
/* UTF-8 text of at most max_len bytes, without NUL inside. */
tn_status tn_json_str(struct tn_json_in *in, const char *key, size_t max_len, const char **out);
/* The same copied into a caller's buffer of cap bytes with its NUL. */
tn_status tn_json_str_copy(struct tn_json_in *in, const char *key, char *out, size_t cap);
/* A peer or segment name (tn_name_valid), copied. */
tn_status tn_json_name(struct tn_json_in *in, const char *key, char out[static TN_NAME_MAX]);
tn_status tn_json_hex128(struct tn_json_in *in, const char *key, struct tn_id128 *out);
tn_status tn_json_peer_id(struct tn_json_in *in, const char *key, struct tn_peer_id *out);
/* One text out of a closed list; out is its index. */
tn_status tn_json_choice(struct tn_json_in *in, const char *key, const char *const *choices, size_t cnt, unsigned *out);
/* Object; array of at most max_cnt elements. Borrowed. */
tn_status tn_json_object(struct tn_json_in *in, const char *key, const json_t **out);
tn_status tn_json_array(struct tn_json_in *in, const char *key, size_t max_cnt, const json_t **out);
/* Is the field there and not null? Makes any of the above optional:
 * if (tn_json_has(&in, "k")) tn_json_u64(&in, "k", ...). */
bool tn_json_has(const struct tn_json_in *in, const char *key);
/* A caller's own check failed: records the text "field \"key\" <what>" unless something failed before; TN_INVALID. */
tn_status tn_json_refuse(struct tn_json_in *in, const char *key, const char *fmt, ...) TN_PRINTF(3, 4);

/* ---- writing. obj is an object; TN_NO_MEMORY when jansson could not, or the text is not UTF-8. ---- */
tn_status tn_json_put_u64(json_t *obj, const char *key, uint64_t v);
tn_status tn_json_put_bool(json_t *obj, const char *key, bool v);
tn_status tn_json_put_str(json_t *obj, const char *key, const char *v);
tn_status tn_json_put_hex128(json_t *obj, const char *key, const struct tn_id128 *id);
tn_status tn_json_put_peer_id(json_t *obj, const char *key, const struct tn_peer_id *id);

#endif
