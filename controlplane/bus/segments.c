/* SPDX-License-Identifier: Apache-2.0
 * `segment_list`, `segment_show`, `segment_withdraw`: local segments, from the control plane's snapshot. */
#include <stdio.h>

#include "common/message.h"
#include "controlplane/bus/commands.h"
#include "controlplane/link/changed.h"
#include "controlplane/segment/local.h"

#define LIST_MAX 64u /* a segment of 64 buffers is about 6 KiB; an answer that is too large says so */

static json_t *without_registrations(const json_t *seg)
{
	json_t *copy = json_deep_copy(seg), *buffer;
	size_t i;
	json_array_foreach(json_object_get(copy, "buffers"), i, buffer)
		json_object_del(buffer, "registration"); /* what admits to memory is for data planes only */
	return copy;
}

void cp_bus_segment_list(struct cp_node *node, const struct cp_request *rq)
{
	struct tn_json_in in;
	uint32_t first, count;
	size_t i;
	json_t *seg;
	tn_json_in_init(&in, rq->body);
	if (tn_json_page(&in, LIST_MAX, &first, &count) != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return;
	}
	json_t *page = cp_local_list(node->local, first, count), *out = json_array(), *b = json_object();
	json_array_foreach(page, i, seg)
		json_array_append_new(out, without_registrations(seg));
	json_decref(page);
	json_object_set_new(b, "segments", out);
	tn_json_put_u64(b, "total", cp_local_cnt(node->local));
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}

static bool read_name(struct cp_node *node, const struct cp_request *rq, char name[static TN_NAME_MAX])
{
	struct tn_json_in in;
	char text[128];
	tn_json_in_init(&in, rq->body);
	if (tn_json_name(&in, "name", name) != TN_OK) {
		cp_node_reply(node, &rq->to, in.status, in.err, NULL);
		return false;
	}
	if (cp_local_get(node->local, name) == NULL) {
		snprintf(text, sizeof text, "no segment %s is published on this host", name);
		cp_node_reply(node, &rq->to, TN_NOT_FOUND, text, NULL);
		return false;
	}
	return true;
}

void cp_bus_segment_show(struct cp_node *node, const struct cp_request *rq)
{
	char name[TN_NAME_MAX];
	if (!read_name(node, rq, name))
		return;
	json_t *b = json_object();
	json_object_set_new(b, "segment", without_registrations(cp_local_get(node->local, name)));
	cp_node_reply(node, &rq->to, TN_OK, NULL, b);
}

void cp_bus_segment_withdraw(struct cp_node *node, const struct cp_request *rq)
{
	char name[TN_NAME_MAX];
	if (!read_name(node, rq, name))
		return;
	json_t *b = json_object();
	tn_json_put_str(b, "name", name);
	cp_link_forward(node, rq, "segment_withdraw", b);
}
