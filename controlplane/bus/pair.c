/* SPDX-License-Identifier: Apache-2.0
 * `pause`, `resume`, `drain`, `transport`: the data plane of this host does it and says what became of it; its answer goes through. */
#include <stdlib.h>

#include "common/message.h"
#include "controlplane/bus/commands.h"

static void on_answer(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	struct cp_reply_to *to = ctx;
	const char *why = detail != NULL && detail[0] != '\0' ? detail : tn_status_meaning(status);
	cp_node_reply(node, to, status, status != TN_OK ? why : NULL,
		      status == TN_OK ? json_copy((json_t *)(uintptr_t)body) : NULL);
	free(to);
}

static void forward(struct cp_node *node, const struct cp_request *rq, const char *type)
{
	char text[CP_TROUBLE_TEXT];
	struct cp_reply_to *to;
	if (!node->link.attached) {
		cp_node_reply(node, &rq->to, TN_DATAPLANE_DOWN, cp_node_link_trouble(node, text), NULL);
		return;
	}
	to = malloc(sizeof *to);
	if (to == NULL) {
		cp_node_reply(node, &rq->to, TN_NO_MEMORY, tn_status_meaning(TN_NO_MEMORY), NULL);
		return;
	}
	*to = rq->to;
	cp_exchange_call(node->exchange,
			 &(struct cp_call_opts){ .target = CP_TARGET_LINK, .type = type, .attempts = 1,
						 .body = rq->body != NULL ? json_copy((json_t *)(uintptr_t)rq->body) : NULL,
						 .deadline_ns = rq->deadline_ns, .done = on_answer, .ctx = to },
			 node->now_ns);
}

void cp_bus_pause(struct cp_node *node, const struct cp_request *rq) { forward(node, rq, "pause"); }
void cp_bus_resume(struct cp_node *node, const struct cp_request *rq) { forward(node, rq, "resume"); }
void cp_bus_drain(struct cp_node *node, const struct cp_request *rq) { forward(node, rq, "drain"); }
void cp_bus_transport(struct cp_node *node, const struct cp_request *rq) { forward(node, rq, "transport"); }
