/* SPDX-License-Identifier: Apache-2.0
 * A queue pair on the application's side: the ring it shares with the data plane, and its private shadow of everything
 * outstanding, from which completions are checked and requests are sent again after a restart. One application thread
 * at a time owns it; the keeper only leaves things at the door (the `door` part, context lock).
 *
 * A request takes a slot from acceptance to its last completion. It is POSTED (in a ring) or HELD (not in a ring: no
 * data plane, or its segment is still being opened again). Completions come from the ring or, when they are ours to
 * give, from READY slots. */
#ifndef LT_QUEUE_H
#define LT_QUEUE_H

#include "dataplane/libtent/batch.h"
#include "dataplane/libtent/context.h"
#include "dataplane/libtent/segment.h"
#include "shm-ring/doorbell.h"
#include "shm-ring/region.h"
#include "shm-ring/spsc.h"

#define LT_NO_SLOT UINT32_MAX
#define LT_NO_NOTE UINT32_MAX
#define LT_LOOK_CREDIT 8u /* the most that looking before a sleep can earn; see wait.c */
#define LT_NOTE_SLOTS 16u /* notices that may be outstanding on one queue pair */

struct lt_slot {
	struct shr_sqe_shm sqe;      /* whole, except that handles and policy are filled in when it is posted */
	struct tent_completion done; /* READY */
	tent_memory *memory;         /* READ, WRITE; with generations: the object may be freed meanwhile */
	tent_segment *segment;
	uint32_t memory_generation, segment_generation;
	uint32_t generation;         /* of this slot; with the index it is the token */
	uint32_t next;               /* in the held or ready list */
	uint32_t batch;              /* index in the batch table; LT_BATCH_NONE */
	uint32_t note;               /* payload slot; LT_NO_NOTE */
	uint64_t sq_seq;             /* POSTED: its place in the ring's history */
	uint64_t deadline_ns;        /* absolute; the default already applied */
	uint64_t accept_ns;
	uint8_t state;               /* enum lt_slot_state */
	bool cancel_asked;
	bool taken;                  /* a data plane had copied it out */
	uint16_t policy;             /* the application's number for it */
};

/* First in, first out, linked through lt_slot.next. */
struct lt_slot_list { uint32_t head, tail, cnt; };

struct lt_ring {
	struct shr_region region;
	struct shr_qp_view view;
	struct shr_sq_prod sq;
	struct shr_cq_cons cq;
	uint64_t id;                 /* the data plane's handle */
	uint64_t put_cnt;            /* entries ever put, cancels too */
	int doorbell;                /* our end */
	bool doorbell_up;            /* in the epoll set; false once it hung up */
};

/* What the keeper leaves at the door. */
#define LT_EVENT_LOST    0x1u /* the data plane of the ring you use is dead */
#define LT_EVENT_RING    0x2u /* next_ring is there */
#define LT_EVENT_REFRESH 0x4u /* held requests: an object came back, or a deadline passed */
#define LT_EVENT_DEAD    0x8u /* no ring will come: dead_status */

struct tent_qp {
	/* constant */
	uint32_t magic;
	uint32_t fork_mark;
	tent_context *ctx;
	uint32_t depth;
	int epoll_fd, wake_fd;

	/* owner thread */
	struct lt_ring *ring;        /* NULL: no data plane now */
	bool armed;                  /* cq_armed is set */
	uint32_t look_credit;        /* of looking before a sleep: it has been paying */
	uint32_t look_cnt;           /* waits without credit */
	bool ring_broken;            /* nothing of it is believed any more; the keeper was told */
	tn_status dead_status;       /* not OK: final */
	char dead_text[160];
	struct lt_slot *slots;       /* depth */
	uint32_t *free_slots;        /* stack */
	uint32_t free_cnt;
	uint32_t unfinished;         /* accepted, terminal completion not taken */
	struct lt_slot_list held, ready;
	uint32_t *scratch;           /* depth; for sorting */
	struct lt_batches batches;
	uint64_t note_free;          /* bit per payload slot */
	uint8_t (*notes)[SHR_NOTE_BYTES]; /* private copies of payload, LT_NOTE_SLOTS */
	uint64_t default_deadline_ns, max_request_bytes;

	/* door */
	struct tn_list link;         /* context's qps */
	tn_a32 events;               /* LT_EVENT_*; set under the context lock, read without */
	tn_a64 held_deadline_ns;     /* earliest deadline of a held request, for the keeper; UINT64_MAX = none */
	struct lt_ring *next_ring;
	tn_status door_status;       /* with LT_EVENT_DEAD */
	char door_text[160];
};

/* ---- queue.c: life and door ---- */

/* Frees a queue pair whose data-plane half is gone, and takes it out of its context. Context lock held, or nobody else
 * is there. */
void lt_queue_free(tent_qp *qp);
/* Leaves events at the door and wakes the owner. Context lock held. */
void lt_queue_knock(tent_qp *qp, uint32_t events);
/* The QP_CREATE call for it; arg lives as long as qp. */
void lt_queue_create_call(const tent_qp *qp, uint64_t deadline_ns, struct lt_call *call_out);
/* Maps and checks what a good QP_CREATE reply brought; takes its fds. TN_OK or why the region was refused. */
tn_status lt_ring_open(const tent_qp *qp, struct lt_reply *reply, struct lt_ring **ring_out);
void lt_ring_close(struct lt_ring *ring);
/* The doorbell of the present ring joins or leaves the epoll set. */
tn_status lt_queue_watch_doorbell(tent_qp *qp, bool watch);

/* ---- adopt.c: what the door holds ---- */

void lt_queue_adopt(tent_qp *qp);
/* Posts held requests whose time has come; completes those whose deadline passed or whose objects are gone. */
void lt_queue_push_held(tent_qp *qp);

/* ---- slot.c: the shadow ---- */

void lt_slot_move(struct lt_slot *slot, enum lt_slot_state next);
/* A free slot in state HELD (in no list), or NULL. */
struct lt_slot *lt_slot_take(tent_qp *qp);
void lt_slot_free(tent_qp *qp, struct lt_slot *slot);
/* The slot of a token that the present ring may answer, or NULL. */
struct lt_slot *lt_slot_of_token(tent_qp *qp, uint64_t token);
uint64_t lt_slot_token(const tent_qp *qp, const struct lt_slot *slot);
/* Makes the slot READY with a terminal completion of our own. Leaves its batch. The slot is in no list. */
void lt_slot_finish(tent_qp *qp, struct lt_slot *slot, tent_outcome outcome, tn_status status, uint8_t phase,
		    uint8_t reason);
/* Bookkeeping when a terminal completion was seen, from the ring or of our own. */
void lt_slot_settle(tent_qp *qp, struct lt_slot *slot, bool completed, bool seen);
void lt_list_push(tent_qp *qp, struct lt_slot_list *list, struct lt_slot *slot);
struct lt_slot *lt_list_pop(tent_qp *qp, struct lt_slot_list *list);
/* Can it go into the present ring now? TN_OK; TN_AGAIN: hold it; else why it never can (*phase, *reason set). */
tn_status lt_slot_resolve(tent_qp *qp, struct lt_slot *slot, uint8_t *phase_out, uint8_t *reason_out);
/* Puts a resolved slot into the ring, which has room. Not published yet. */
void lt_slot_post(tent_qp *qp, struct lt_slot *slot);
/* Publishes what was put and rings the doorbell if the worker sleeps. */
void lt_queue_publish(tent_qp *qp);
/* Holds an accepted slot. */
void lt_slot_hold(tent_qp *qp, struct lt_slot *slot);
/* When it was accepted and when it must be over; slot->sqe.deadline_ns as the application gave it. */
void lt_slot_date(const tent_qp *qp, struct lt_slot *slot, uint64_t now_ns);
/* A filled slot goes into the ring, or is held when there is none or its objects are on their way back. The ring has
 * room. Not published yet. */
void lt_slot_dispatch(tent_qp *qp, struct lt_slot *slot);

/* ---- poll.c ---- */

/* Checks a completion against its slot. NULL: the data plane never wrote that. */
struct lt_slot *lt_cqe_check(tent_qp *qp, const struct shr_cqe_shm *cqe);
void lt_cqe_to_completion(const struct shr_cqe_shm *cqe, const struct lt_slot *slot, tent_completion *out);
void lt_queue_break(tent_qp *qp, const char *why);

/* First step of every call on a queue pair: alive, same process, door looked at. */
/* tent_poll() in the name of `call`, for its texts. */
int lt_queue_poll(tent_qp *qp, tent_completion *out, int max, const char *call);
TN_COLD tent_status lt_queue_refuse(const tent_qp *qp, const char *call);
#define LT_QP_MAGIC 0x74717031u
TN_INLINE bool lt_queue_enter(tent_qp *qp)
{
	if (tn_unlikely(qp == NULL || qp->magic != LT_QP_MAGIC || lt_forked(qp->fork_mark)))
		return false;
	/* Only a hint: what the keeper left at the door is read under the context's lock. */
	if (tn_unlikely(tn_load_relaxed32(&qp->events) != 0))
		lt_queue_adopt(qp);
	return true;
}

/* Something to take without the ring? */
TN_INLINE bool lt_queue_has_own(const tent_qp *qp) { return qp->ready.cnt != 0; }

#endif
