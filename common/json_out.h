/* SPDX-License-Identifier: Apache-2.0
 * Writes one JSON document into a tn_text, in the order of the calls, without a tree: log lines, readiness and
 * diagnostics. Commas are placed by the writer; nesting is bounded. Owner thread only. */
#ifndef TN_JSON_OUT_H
#define TN_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text_buf.h"

enum { TN_JOUT_DEPTH_MAX = 31 };

struct tn_jout {
	struct tn_text *out; /* not owned; failure sticks there, also too deep nesting */
	uint32_t comma;      /* bit d: level d already has a member */
	unsigned depth;
};

/* Starts with the document's own object: { ... closed by tn_jout_end(). */
void tn_jout_begin(struct tn_jout *j, struct tn_text *out);
void tn_jout_end(struct tn_jout *j);

/* Members. key NULL inside an array. Strings are escaped; bytes that are not UTF-8 become U+FFFD, NULL becomes null. */
void tn_jout_object(struct tn_jout *j, const char *key);
void tn_jout_array(struct tn_jout *j, const char *key);
void tn_jout_close_object(struct tn_jout *j);
void tn_jout_close_array(struct tn_jout *j);
void tn_jout_str(struct tn_jout *j, const char *key, const char *value);
void tn_jout_u64(struct tn_jout *j, const char *key, uint64_t value);
void tn_jout_i64(struct tn_jout *j, const char *key, int64_t value);
void tn_jout_fixed(struct tn_jout *j, const char *key, uint64_t value, unsigned decimals); /* see tn_text_fixed() */
void tn_jout_bool(struct tn_jout *j, const char *key, bool value);
void tn_jout_null(struct tn_jout *j, const char *key);

#endif
