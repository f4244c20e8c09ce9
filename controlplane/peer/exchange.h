/* SPDX-License-Identifier: Apache-2.0
 * Calls that wait for an answer: correlation, deadline, resend, and the exact accounting of attempts. Serves both doors
 * on which the control plane asks (its data plane and its peers). Sans-I/O: time is an argument, bytes leave through
 * cp_node_emit(). Control-plane thread. */
#ifndef CP_PEER_EXCHANGE_H
#define CP_PEER_EXCHANGE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/domain.h"
#include "common/list.h"
#include "common/status.h"

struct cp_node;
struct cp_exchange;

/* Whom a call asks: the data plane of this host, or peer `index` of the config. */
#define CP_TARGET_LINK UINT32_MAX

/* How a call ended. `body` is borrowed and only there when status is TN_OK; `detail` is text for people, never NULL. */
typedef void (*cp_call_done)(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body);

struct cp_call_opts {
	uint32_t target;
	const char *type;        /* message type; static */
	enum tn_rpc_method method; /* metric label; calls on the link are not counted */
	json_t *body;            /* stolen, also on failure; may be NULL */
	uint64_t deadline_ns;
	uint32_t attempts;       /* >= 1; resent with the same id after deadline/attempts without an answer */
	cp_call_done done;       /* called exactly once unless cancelled, also from inside cp_exchange_call() */
	void *ctx;
};

struct cp_exchange *cp_exchange_new(struct cp_node *node, uint32_t calls_max);
void cp_exchange_free(struct cp_exchange *x); /* drops what is outstanding without calling done */

/* The call's id, or 0: it is over already. */
uint64_t cp_exchange_call(struct cp_exchange *x, const struct cp_call_opts *opts, uint64_t now_ns);
/* Nobody waits for that answer any more; `done` does not come. Harmless for 0 and for a call that is over. */
void cp_exchange_cancel(struct cp_exchange *x, uint64_t id);
/* An answer arrived from `target`; unknown ids (late answers) are ignored. */
void cp_exchange_reply(struct cp_exchange *x, uint32_t target, uint64_t id, tn_status status, const char *detail,
		       const json_t *body, uint64_t now_ns);
/* The target is gone (link detached, peer removed): end its calls with `status`. */
void cp_exchange_drop(struct cp_exchange *x, uint32_t target, tn_status status, const char *detail);
/* The connection to the target was made anew, and what stood in the old one is lost: ask all of it again now. */
void cp_exchange_resend(struct cp_exchange *x, uint32_t target, uint64_t now_ns);
void cp_exchange_tick(struct cp_exchange *x, uint64_t now_ns);
uint64_t cp_exchange_next_ns(const struct cp_exchange *x);
uint32_t cp_exchange_outstanding(const struct cp_exchange *x);

#endif
