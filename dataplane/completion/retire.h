/* SPDX-License-Identifier: Apache-2.0
 * Completion: the only terminal edge of a request. Exactly one call of dp_retire() per accepted request does all
 * terminal accounting and posts the completion; a request whose memory is still busy then gets one dp_release().
 * Worker thread. */
#ifndef DP_COMPLETION_RETIRE_H
#define DP_COMPLETION_RETIRE_H

#include "dataplane/ingress/qp.h"
#include "dataplane/request/heap.h"
#include "dataplane/request/pool.h"
#include "dataplane/segment/view.h"
#include "dataplane/stats/stats.h"

struct dp_completion {
	struct dp_pools *pools;
	struct dp_heap *deadlines;
	struct dp_view *view;
	struct dp_stats *stats;
	struct tn_list dirty;       /* queue pairs with completions that are unpublished or unrung (dp_qp.dirty_link) */
	struct tn_list notes;       /* NOTIFY requests that may be sent now (dp_request.owner_link) */
};

/* How a request ended. */
struct dp_terminal {
	tn_status status;
	uint8_t outcome, phase, reason, transport; /* enums of common/domain.h; transport UNSPEC = none was tried */
	uint8_t attempts, failovers;
	bool busy;                  /* an attempt may still touch the memory: MEMORY_BUSY, a release follows */
	bool child_kept;            /* a span of one of its attempts was kept */
	uint64_t dispatch_ns, attempt_ns; /* when it left the queue, when its last attempt started; 0 = never */
};

void dp_completion_init(struct dp_completion *c, struct dp_pools *pools, struct dp_heap *deadlines,
			struct dp_view *view, struct dp_stats *stats);

/* Terminal edge of a READ or WRITE. Not busy: the request object is gone afterwards; busy: it is a ZOMBIE until
 * dp_release(). The caller has taken it off its owner's accounts but not off its list. */
void dp_retire(struct dp_completion *c, struct dp_request *r, const struct dp_terminal *t, uint64_t now_ns);
/* A ZOMBIE's memory is quiet: the release completion; the object is gone afterwards. */
void dp_release(struct dp_completion *c, struct dp_request *r);
/* Terminal edge of a NOTIFY. `sent`: a transport still refers to the object, which then stays as a ZOMBIE without
 * queue pair until dp_retire_note_gone(). */
void dp_retire_note(struct dp_completion *c, struct dp_request *r, const struct dp_terminal *t, bool sent,
		    uint64_t now_ns);
void dp_retire_note_gone(struct dp_completion *c, struct dp_request *r);
/* Refusal completion of a request that never started (state FREE); the object is gone afterwards. */
void dp_refuse(struct dp_completion *c, struct dp_request *r, tn_status status, enum tn_reason reason);

/* A READ or WRITE enters: started accounting, links, use counts, deadline, batch membership (`b` may be NULL). */
void dp_accept(struct dp_completion *c, struct dp_request *r, struct dp_batch *b);
/* A NOTIFY enters: queue-pair list, use count, deadline. */
void dp_accept_note(struct dp_completion *c, struct dp_request *r);

/* Publish what was posted since the last call and wake applications that sleep: one fence for all queue pairs. */
uint32_t dp_cq_flush(struct dp_completion *c, uint64_t now_ns);
/* When the next sleeping application must be rung at the latest; UINT64_MAX: nobody waits. */
uint64_t dp_cq_ring_ns(const struct dp_completion *c);

#endif
