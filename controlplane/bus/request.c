/* SPDX-License-Identifier: Apache-2.0
 * `request`: one request by its number. While it lives, its data plane says how it stands (link method of the same name);
 * when it has ended, its end is told if it is still remembered (observe/recent.h). */
#include <stdlib.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/bus/commands.h"
#include "controlplane/observe/recent.h"

struct asked { struct cp_reply_to to; uint64_t request_id; };

#define BIT(kind) (UINT64_C(1) << (kind))
#define ENDS (BIT(SHR_EVENT_REQUEST_FAILED) | BIT(SHR_EVENT_REQUEST_SLOW) | BIT(SHR_EVENT_SPAN_TRANSFER))

/* The latest record of its end; NULL: none is kept. */
static json_t *end_of(const struct cp_node *node, uint64_t request_id)
{
	const struct cp_recent_item *newest =
		node->recent != NULL ? cp_recent_newest(node->recent, CP_RECENT_REQUEST, request_id, 0) : NULL;
	struct cp_recent_set set = { .max = CP_RECENT_SET_MAX, .kinds = ENDS };
	if (newest == NULL)
		return NULL;
	set.engine = newest->engine;
	cp_recent_collect(node->recent, CP_RECENT_REQUEST, request_id, 0, &set);
	return set.cnt > 0 ? cp_bus_event_json(set.item[set.cnt - 1]) : NULL;
}

static void on_data_plane(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct asked *a = ctx;
	json_t *b = NULL;
	if (status == TN_OK) {
		b = json_copy((json_t *)(uintptr_t)body);
		tn_json_put_bool(b, "live", true);
	} else {
		json_t *end = end_of(node, a->request_id);
		if (end != NULL) {
			b = json_object();
			tn_json_put_u64(b, "request_id", a->request_id);
			tn_json_put_bool(b, "live", false);
			json_object_set_new(b, "end", end);
			status = TN_OK;
		}
	}
	cp_node_reply(node, &a->to, status,
		      status == TN_NOT_FOUND ? "no such live request, and nothing is kept of its end: only requests that failed, "
					       "were slow or were sampled leave something behind" : detail, b);
	free(a);
}

void cp_bus_request(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	uint64_t id = 0;
	tn_json_in_init(&in, rq->body);
	tn_json_u64(&in, "request_id", 1, UINT64_MAX, &id);
	struct asked *a = in.status == TN_OK ? calloc(1, sizeof *a) : NULL;
	if (a == NULL) {
		cp_node_reply(node, &rq->to, in.status != TN_OK ? in.status : TN_NO_MEMORY, in.err, NULL);
		return;
	}
	*a = (struct asked){ rq->to, id };
	if (!node->link.attached) {
		char text[CP_TROUBLE_TEXT];
		on_data_plane(node, a, TN_DATAPLANE_DOWN, cp_node_link_trouble(node, text), NULL);
		return;
	}
	json_t *query = json_object();
	tn_json_put_u64(query, "request_id", id);
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK,
						 .type = "request",
						 .body = query,
						 .attempts = 1,
						 .deadline_ns = TN_MIN(rq->deadline_ns, node->now_ns + 2 * TN_NS_PER_S),
						 .done = on_data_plane,
						 .ctx = a },
			 node->now_ns);
}
