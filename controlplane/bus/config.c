/* SPDX-License-Identifier: Apache-2.0
 * `config_reload`: both daemons of this host read their configuration again, the control plane first. What changed, what
 * waits for a restart and what was refused is told of each; one that refuses does not keep the other from changing. */
#include <stdlib.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/bus/commands.h"

struct reload {
	struct cp_reply_to to;
	json_t *own; /* this process's report; owned */
};

static void finish(struct cp_node *node, struct reload *r, tn_status status, const char *detail, const json_t *dp)
{
	json_t *b = json_object();
	json_object_set_new(b, "control_plane", r->own);
	json_object_set_new(b, "data_plane", status == TN_OK ? json_copy((json_t *)(uintptr_t)dp) : json_null());
	if (status != TN_OK)
		tn_json_put_str(b, "data_plane_error", detail);
	cp_node_reply(node, &r->to, TN_OK, NULL, b);
	free(r);
}

static void on_data_plane(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	finish(node, ctx, status, detail != NULL && detail[0] != '\0' ? detail : tn_status_meaning(status), body);
}

void cp_bus_config_reload(struct cp_node *node, const struct cp_request *rq)
{
	char text[CP_TROUBLE_TEXT];
	struct reload *r = node->reload != NULL ? malloc(sizeof *r) : NULL;
	if (r == NULL) {
		tn_status s = node->reload != NULL ? TN_NO_MEMORY : TN_UNSUPPORTED;
		cp_node_reply(node, &rq->to, s, tn_status_meaning(s), NULL);
		return;
	}
	*r = (struct reload){ .to = rq->to, .own = node->reload(node->reload_ctx) };
	if (!node->link.attached) {
		finish(node, r, TN_DATAPLANE_DOWN, cp_node_link_trouble(node, text), NULL);
		return;
	}
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK, .type = "reload", .attempts = 1,
						 .deadline_ns = rq->deadline_ns, .done = on_data_plane, .ctx = r },
			 node->now_ns);
}
