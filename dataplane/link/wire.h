/* SPDX-License-Identifier: Apache-2.0
 * What the files of link/ share: the connection's state and its raw verbs. Not for other rooms. Control thread. */
#ifndef DP_LINK_WIRE_H
#define DP_LINK_WIRE_H

#include "common/message.h"
#include "dataplane/control.h"

struct dp_link {
	struct dp_control *ctl;
	void *zmq, *dealer, *monitor;
	struct dp_source dealer_fd, monitor_fd;
	uint8_t state;                     /* enum dp_link_state */
	struct dp_handles calls;           /* struct dp_call by correlation */
	struct tn_list waiting;            /* the same, to end them all */
	struct dp_timer timer;             /* attach again; next heartbeat */
	uint64_t backoff_ns;
	struct dp_call attach, heartbeat, chunk;
	struct tn_id128 control_session;
	/* Changes of the local tables, numbered; those not yet sent wait in `changes`, those not yet
	 * answered in `changes_sent`. */
	uint64_t sequence;
	struct tn_list changes, changes_sent;
	uint32_t change_cnt;
	struct dp_call peers;              /* the next page of the control plane's list */
	uint32_t peers_got, peers_total;
	/* Snapshot under way: handles of what there was when it began. */
	tn_handle *snapshot;
	uint32_t snapshot_cnt, snapshot_at;
	uint64_t snapshot_sequence;
	struct tn_list asked;              /* what workers are looking up (request.c) */
	uint32_t asked_cnt;
	uint64_t received_cnt, refused_cnt;
	char text[TN_MESSAGE_MAX];         /* one message on its way out; wiped when it is sent */
};

/* Sends a question; `body` is stolen. Statuses as dp_link_open(). */
tn_status dp_link_ask(struct dp_link *l, struct dp_call *call, const char *type, json_t *body, uint64_t deadline_ns);
/* Sends one message. TN_AGAIN: not now (the library's queue is full, or nobody is connected). */
tn_status dp_link_send(struct dp_link *l, const struct tn_message *m);
/* Ends every waiting call with this status. */
void dp_link_fail_calls(struct dp_link *l, tn_status status, const char *detail);
/* The control plane lost track of us, or we of it: attach anew. */
void dp_link_restart(struct dp_link *l, const char *why);

/* attach.c: what happens at these edges. */
void dp_link_connected(struct dp_link *l);
void dp_link_disconnected(struct dp_link *l);
void dp_link_flush_changes(struct dp_link *l);
void dp_link_attach_init(struct dp_link *l);
void dp_link_attach_fini(struct dp_link *l);

/* methods.c: a request of the control plane; answers it. */
void dp_link_request(struct dp_link *l, const struct tn_message *m);

/* The answer to a request of this type and correlation. `body` is stolen; NULL unless status is OK. */
void dp_link_answer(struct dp_link *l, const char *type, uint64_t id, tn_status status, json_t *body, const char *detail);

/* request.c: "request". PENDING: its worker is asked, the answer to `id` follows by itself. NOT_FOUND, LIMIT, NO_MEMORY. */
tn_status dp_link_inspect(struct dp_link *l, uint64_t id, uint64_t request_id);
void dp_link_inspect_fini(struct dp_link *l); /* the workers have ended */

/* explain.c: "explain". Fills *answer_out (new reference). */
tn_status dp_link_explain(struct dp_control *ctl, struct tn_json_in *in, json_t **answer_out);

/* load.c: "peer_load". Fills *answer_out (new reference). */
tn_status dp_link_peer_load(const struct dp_control *ctl, struct tn_json_in *in, json_t **answer_out);

/* codec.c */
json_t *dp_link_segment_json(const struct dp_segment *s);
/* PEER and SEG of docs/protocol.md section 3. INVALID with a text in err. */
tn_status dp_link_peer_read(const json_t *j, struct dp_peer *out, char err[static TN_ERR_TEXT]);
tn_status dp_link_remote_read(const json_t *j, const struct tn_id128 *session, struct dp_remote **out,
                              char err[static TN_ERR_TEXT]);
/* Bytes of text that dp_link_segment_json() comes to, at most. */
size_t dp_link_segment_text_max(const struct dp_segment *s);

#endif
