/* SPDX-License-Identifier: Apache-2.0
 * The classifier: one table from status to what helps, then the replay law, then the bounds. Pure. */
#include "dataplane/completion/classify.h"

/* What kind of failure a status is. */
enum class {
	CLASS_TERMINAL,  /* asking again would give the same answer */
	CLASS_PATH,      /* this path or transport; another may serve */
	CLASS_LOAD,      /* short of something for a moment */
	CLASS_REMOTE,    /* the registration is of an older generation */
	CLASS_PEER,      /* the peer's session or our ticket is of an older time */
};

static enum class classify_status(tn_status s)
{
	switch (s) {
	case TN_PATH_DOWN: case TN_PATH_TIMEOUT: case TN_PATH_PROTOCOL: case TN_PEER_DOWN:
		return CLASS_PATH;
	case TN_AGAIN: case TN_BUSY: case TN_LIMIT: case TN_NO_MEMORY: case TN_SYSTEM: case TN_INTERNAL:
		return CLASS_LOAD;
	case TN_STALE:
		return CLASS_REMOTE;
	case TN_PEER_STALE: case TN_PEER_DENIED: case TN_PEER_ADDRESS:
		return CLASS_PEER;
	default:
		return CLASS_TERMINAL;
	}
}

bool dp_replay_allowed(uint8_t op, bool at_most_once, bool may_have_left, const struct dp_result *r)
{
	if (op == TN_OP_READ)
		return true;
	if (at_most_once)
		return r->nothing_left && !may_have_left;
	return r->nothing_left || r->fenced;
}

bool dp_failure_is_of_path(tn_status status) { return classify_status(status) == CLASS_PATH; }

static enum dp_action wanted_action(enum class c, const struct dp_failure *f)
{
	bool more = f->more_candidates && f->failovers < f->failovers_max;
	if (f->cooling)
		return DP_ACTION_WAIT;
	switch (c) {
	case CLASS_PATH:
		if (more)
			return DP_ACTION_FAILOVER;
		/* The other end broke the rules of framing: it will do so again on the same transport. */
		return f->result->status == TN_PATH_PROTOCOL ? DP_ACTION_END : DP_ACTION_RETRY;
	case CLASS_LOAD:
		/* Twice on this transport, then another one if there is one. */
		return f->attempts >= 2 && more ? DP_ACTION_FAILOVER : DP_ACTION_RETRY;
	case CLASS_REMOTE:
		return f->stale_cnt == 0 ? DP_ACTION_REFRESH_REMOTE : DP_ACTION_END;
	case CLASS_PEER:
		return DP_ACTION_REFRESH_PEER;
	default:
		return DP_ACTION_END;
	}
}

struct dp_decision dp_classify(const struct dp_failure *f)
{
	const struct dp_result *r = f->result;
	struct dp_decision d = { .action = DP_ACTION_END, .status = r->status, .phase = r->phase, .reason = r->reason };
	enum dp_action want = wanted_action(classify_status(r->status), f);
	if (want == DP_ACTION_END)
		return d;
	if (!dp_replay_allowed(f->op, f->at_most_once, f->may_have_left, r)) {
		d.status = TN_AMBIGUOUS;
		return d;
	}
	d.exhausted = f->attempts >= f->attempts_max && want != DP_ACTION_WAIT;
	if (d.exhausted)
		return d;
	d.action = want;
	return d;
}

uint64_t dp_backoff_ns(uint32_t attempts, uint64_t base_ns, uint64_t max_ns, uint64_t random)
{
	uint64_t wait = base_ns;
	for (uint32_t i = 1; i < attempts && wait < max_ns; i++)
		wait *= 2;
	if (wait > max_ns)
		wait = max_ns;
	return wait - (wait ? random % (wait / 2 + 1) : 0);
}
