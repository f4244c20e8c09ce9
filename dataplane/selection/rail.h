/* SPDX-License-Identifier: Apache-2.0
 * Health of a rail: the way to one target over one transport. Too many failures within a window take it out for a
 * cool-down, a probe and one attempt on trial bring it back; a rail that fails again soon stays out longer each time.
 * Pure: time and randomness are arguments. docs/state-machines.md is generated from here. One worker. */
#ifndef DP_SELECTION_RAIL_H
#define DP_SELECTION_RAIL_H

#include "dataplane/request/state.h"

/* X(STATE, name) and X(from, to, "when"). State 0 is a rail of which nothing bad is known. */
#define DP_RAIL_STATES(X) X(UP, up) X(COOLING, cooling) X(PROBING, probing) X(PROBATION, probation)
#define DP_RAIL_MOVES(X) \
	X(UP, COOLING, "too many attempts failed within the error window") \
	X(COOLING, PROBING, "the cool-down is over and a request asks: the transport looks whether it gets there") \
	X(COOLING, PROBATION, "the same with a transport that gets there already or cannot look; or the peer restarted, moved or came back") \
	X(PROBING, PROBATION, "it gets there; or the peer restarted, moved or came back") \
	X(PROBING, COOLING, "it does not, or gives no answer in time: longer than before") \
	X(PROBATION, UP, "an attempt completed, or the other end answered a part of one; or failures count no more") \
	X(PROBATION, COOLING, "the attempt on trial failed: longer than before")
#define X(n, s) DP_RAIL_##n,
enum dp_rail_state { DP_RAIL_STATES(X) DP_RAIL_STATE_CNT };
#undef X

struct dp_rail_cfg {
	uint32_t errors_max;               /* failures within window_ns that take it out; 0: never */
	uint64_t window_ns;
	uint64_t cool_min_ns, cool_max_ns; /* the first cool-down is in [min, 2 min], each further one twice as long */
	uint64_t settle_ns;                /* failing again this soon after it came up counts as a further one */
};

struct dp_rail {
	uint8_t state;
	uint8_t cool_cnt;   /* cool-downs in a row */
	bool trial;         /* PROBATION: the one attempt is out */
	uint32_t error_cnt; /* UP: within the window */
	uint64_t window_ns; /* UP: when the error window began */
	uint64_t error_ns;  /* the last failure: all that fail at one instant have one reason */
	uint64_t until_ns;  /* COOLING: no probe before; PROBING: the answer is too late then */
	uint64_t up_ns;     /* when it came up last; 0: it was never out */
	uint64_t fresh_ns;  /* failures of attempts that began before are old news */
};

enum dp_rail_verdict {
	DP_RAIL_USE,
	DP_RAIL_TRY,   /* one attempt at a time: dp_rail_try() when it is taken */
	DP_RAIL_PROBE, /* not now, but it is time for a probe: dp_rail_probe() */
	DP_RAIL_LATE,  /* not now, and the probe failed for want of an answer: dp_rail_probed(false) */
	DP_RAIL_NO
};

enum dp_rail_verdict dp_rail_ask(const struct dp_rail *r, uint64_t now_ns);
/* On trial: this attempt is the one. */
void dp_rail_try(struct dp_rail *r);
/* An attempt ended: completed (or moved bytes so far); failed for a reason that is the path's; or neither. */
void dp_rail_worked(struct dp_rail *r, uint64_t now_ns);
void dp_rail_failed(struct dp_rail *r, const struct dp_rail_cfg *c, uint64_t now_ns, uint64_t random);
void dp_rail_undecided(struct dp_rail *r);
/* COOLING, and the cool-down is over: a probe was started, whose answer is waited for until `until_ns`. */
void dp_rail_probe(struct dp_rail *r, uint64_t until_ns);
/* Its answer. Also for a COOLING one that needs no probe (ok). Of other states: nothing. */
void dp_rail_probed(struct dp_rail *r, const struct dp_rail_cfg *c, bool ok, uint64_t now_ns, uint64_t random);
/* The peer restarted, moved or came back: what failed may work now. */
void dp_rail_renewed(struct dp_rail *r, uint64_t now_ns);

const char *dp_rail_state_name(unsigned state); /* "invalid" outside the table */
extern const struct dp_machine dp_rail_machine;

#endif
