/* SPDX-License-Identifier: Apache-2.0
 * `events` and `trace`: the records of the last while, in pages. A record is the JSON line that the log has, with its
 * number, the generation of its data plane and its CLOCK_MONOTONIC; it carries no name and no address, like the line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/message.h"
#include "common/reject.h"
#include "common/text_buf.h"
#include "controlplane/bus/commands.h"
#include "controlplane/observe/recent.h"

#define PAGE_MAX 64u /* records of about 600 bytes */
#define LINE_BYTES 4096u
TN_STATIC_ASSERT(PAGE_MAX <= CP_RECENT_SET_MAX, "a page is collected in one set");

#define BIT(kind) (UINT64_C(1) << (kind))
/* What is about the owner as a whole: it stands under its first request, also where others were merged into it. */
#define OF_OWNER (BIT(SHR_EVENT_ATTEMPT_FAILED) | BIT(SHR_EVENT_FAILOVER) | BIT(SHR_EVENT_SELECTION_FAILED) | BIT(SHR_EVENT_SPAN_ATTEMPT))

static json_t *record_json(const struct cp_recent_item *i, struct tn_text *line)
{
	const struct shr_event_clock clock = { i->ev.mono_ns, i->real_ns };
	tn_text_reset(line);
	if (!shr_event_json(&i->ev, &clock, i->ev.suppressed, line) || line->failed)
		return NULL;
	json_t *j = json_loadb(line->p, line->len, 0, NULL);
	if (j == NULL)
		return NULL; /* a damaged record with numbers that JSON readers do not take */
	if (i->ev.kind == SHR_EVENT_SELECTION_FAILED) { /* not in the line of the log, whose fields are fixed */
		char text[TN_REJECT_TEXT];
		tn_json_put_str(j, "rejected", tn_reject_text(i->ev.arg, text));
	}
	tn_json_put_u64(j, "number", i->number);
	tn_json_put_u64(j, "engine", i->engine);
	tn_json_put_u64(j, "mono_ns", i->ev.mono_ns);
	return j;
}

json_t *cp_bus_event_json(const struct cp_recent_item *i)
{
	struct tn_text line;
	tn_text_init(&line, LINE_BYTES);
	json_t *j = record_json(i, &line);
	tn_text_free(&line);
	return j;
}

static void reply_page(struct cp_node *node, const struct cp_request *rq, const struct cp_recent_set *set, json_t *b)
{
	struct tn_text line;
	json_t *list = json_array();
	tn_text_init(&line, LINE_BYTES);
	for (uint32_t k = 0; k < set->cnt; k++) {
		json_t *j = record_json(set->item[k], &line);
		if (j != NULL)
			json_array_append_new(list, j);
	}
	tn_text_free(&line);
	tn_json_put_hex128(b, "session", &node->control_session);
	tn_json_put_bool(b, "more", set->more);
	json_object_set_new(b, "records", list);
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}

/* Common part of both questions. False: answered. */
static bool begin(struct cp_node *node, const struct cp_request *rq, struct tn_json_in *in, struct cp_recent_set *set)
{
	*set = (struct cp_recent_set){ .max = PAGE_MAX, .kinds = UINT64_MAX };
	if (node->recent == NULL) {
		cp_node_reply(node, &rq->to, TN_UNSUPPORTED, NULL, NULL);
		return false;
	}
	tn_json_in_init(in, rq->body);
	if (tn_json_has(in, "after"))
		tn_json_u64(in, "after", 0, UINT64_MAX, &set->after);
	if (tn_json_has(in, "count"))
		tn_json_u32(in, "count", 1, PAGE_MAX, &set->max);
	return true;
}

void cp_bus_events(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	struct cp_recent_set set;
	const struct cp_recent_item *i;
	if (!begin(node, rq, &in, &set))
		return;
	if (in.status != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	uint64_t last = cp_recent_last(node->recent), next = TN_MIN(set.after, last);
	for (; set.cnt < set.max && (i = cp_recent_after(node->recent, next)) != NULL; next = i->number)
		set.item[set.cnt++] = i;
	set.more = cp_recent_after(node->recent, next) != NULL;
	if (!set.more)
		next = last;
	json_t *b = json_object();
	tn_json_put_u64(b, "next", next);
	/* numbers of this stretch that are in no record: overwritten here, or before they came here */
	tn_json_put_u64(b, "missed", next - TN_MIN(set.after, next) - set.cnt);
	reply_page(node, rq, &set, b);
}

/* "131" or 32 hexadecimal digits. */
static tn_status read_id(struct tn_json_in *in, enum cp_recent_key *key_out, uint64_t *a, uint64_t *b)
{
	const char *text = "";
	char *end;
	if (tn_json_str(in, "id", 32, &text) != TN_OK)
		return in->status;
	size_t len = strlen(text);
	*key_out = len == 32 ? CP_RECENT_TRACE : CP_RECENT_REQUEST;
	*b = 0;
	if (len == 32 && strspn(text, "0123456789abcdef") == 32) {
		char half[17];
		snprintf(half, sizeof half, "%.16s", text);
		*a = strtoull(half, NULL, 16);
		*b = strtoull(text + 16, NULL, 16);
		return TN_OK;
	}
	*a = strtoull(text, &end, 10);
	if (len == 0 || len > 19 || strspn(text, "0123456789") != len)
		return tn_json_refuse(in, "id", "is neither the number of a request nor 32 hexadecimal digits of a trace");
	return TN_OK;
}

void cp_bus_trace(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	struct cp_recent_set set;
	enum cp_recent_key key = CP_RECENT_REQUEST;
	uint64_t a = 0, b = 0;
	if (!begin(node, rq, &in, &set))
		return;
	if (read_id(&in, &key, &a, &b) != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	const struct cp_recent_item *newest = cp_recent_newest(node->recent, key, a, b);
	if (newest != NULL) {
		if (key == CP_RECENT_REQUEST) /* another data plane gave the number to another request */
			set.engine = newest->engine;
		cp_recent_collect(node->recent, key, a, b, &set);
		set.kinds = OF_OWNER;
		if (key == CP_RECENT_REQUEST)
			cp_recent_collect(node->recent, CP_RECENT_TASK, newest->ev.task_id, 0, &set);
	}
	json_t *body = json_object();
	tn_json_put_u64(body, "next", set.cnt > 0 ? set.item[set.cnt - 1]->number : set.after);
	reply_page(node, rq, &set, body);
}
