/* SPDX-License-Identifier: Apache-2.0
 * The knobs and counters that a test shares with the data-plane stand-in (standin.c) through a file mapping. Knobs are
 * written by the test, counters by the stand-in; they outlive a killed stand-in. A kick over the stand-in's standard
 * input makes it look at once. */
#ifndef STANDIN_H
#define STANDIN_H

#include "common/atomic.h"

#define STANDIN_NOTE_INBOX 4u
#define STANDIN_DEFAULT_DEADLINE_NS UINT64_C(5000000000)
#define STANDIN_MAX_BYTES (UINT64_C(1) << 30)
#define STANDIN_POLICY_ID 300u /* of "slow"; "fast" has the next one */

struct standin_ctl {
	/* knobs */
	tn_a32 may_take;        /* submissions it may still take; UINT32_MAX = any number */
	tn_a32 may_finish;      /* requests it may still finish; UINT32_MAX = any number */
	tn_a32 busy;            /* 1: terminal completions say MEMORY_BUSY, their releases wait; 0: releases go */
	tn_a32 fail_next;       /* finish so many requests as FAILED */
	tn_a32 corrupt;         /* enum standin_corrupt, done once at the next completion */
	tn_a32 wild_index;      /* overwrite an index of every ring once: 1 cq_tail, 2 sq_head, 3 sq_tail */
	tn_a32 drop_clients;    /* close every attach socket and stay alive */
	tn_a32 refuse_register, refuse_publish, refuse_open, refuse_qp; /* a tn_status as u32: answer with it */
	tn_a32 hold_publish;    /* a PUBLISH takes the name, but is answered when this is 0 again */
	tn_a32 refuse_open_cnt; /* refuse_open only so often; 0 = always */
	tn_a32 republished;     /* opens find another publication of the name than the one that is there */
	tn_a32 not_now;         /* answer so many making requests with AGAIN first */
	tn_a32 silent;          /* reads no control request */
	tn_a32 ends_held;       /* 2: of the next two requests to end something, the first is answered when the second came */
	tn_a32 lose_segments;   /* withdraw all that is published, as an operator does; once */
	tn_a32 lose_at_once;    /* so many of the next publications are lost behind their answer */
	tn_a32 nonsense;        /* send one message that is none */
	tn_a32 nonsense_to_bye; /* the same as answer to a BYE; 2: and not a word after it, nor a hang-up */
	tn_a32 drain;           /* announce the shutdown, answer nothing more */
	tn_a32 policy_shift;    /* added to the numbers of its policies; 1000: it has none */
	/* counters */
	tn_a32 starts, clients; /* processes started; attachments now */
	tn_a32 taken, finished, replays, cancels, notices, acks;
	tn_a32 memories, segments, opens, qps; /* alive now */
	tn_a32 registers_seen, publishes_seen;
	tn_a32 last_policy;     /* of the last submission taken */
	tn_a32 last_deadline_set; /* 1: the last submission taken carried a deadline of its own */
};

enum standin_corrupt {
	STANDIN_SOUND, STANDIN_BAD_TOKEN, STANDIN_BAD_KIND, STANDIN_BAD_OUTCOME, STANDIN_BAD_BYTES,
	STANDIN_EARLY_RELEASE
};

#endif
