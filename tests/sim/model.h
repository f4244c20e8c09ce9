/* SPDX-License-Identifier: Apache-2.0
 * What must be true of memory, completions and notices, told by what the applications asked for: a copy of every
 * published memory as it has to look, and a record of every request and notice. The rules stand at the functions. */
#ifndef SIM_MODEL_H
#define SIM_MODEL_H

#include <tent/tent.h>

#include "tests/sim/kernel.h"

#define SIM_APPS 4u
#define SIM_SLOTS 52u
#define SIM_SEGMENT_BYTES (UINT64_C(144) << 10)
#define SIM_TOUCHED 12u
#define SIM_BATCH_OPS 8u

/* A range of a segment that is used by one request at a time (or by several over disjoint parts of it). */
struct sim_slot { uint32_t offset, bytes; };
extern struct sim_slot sim_slots[SIM_SLOTS];

/* One publication: what an application published once, until it or its process ended. */
struct sim_instance {
	struct sim_instance *older;   /* of the same application */
	uint32_t app, number;
	uint8_t *memory;              /* where its bytes are */
	bool gone;                    /* its process or publication ended: nobody checks it any more */
	uint8_t shadow[SIM_SEGMENT_BYTES];
	uint16_t busy[SIM_SLOTS];     /* requests under way */
	bool tainted[SIM_SLOTS];      /* a request failed there: its bytes may be anything that it could have written */
};

enum sim_op_state { SIM_OP_POSTED = 1, SIM_OP_BUSY, SIM_OP_OVER };

struct sim_op {
	uint64_t id;                  /* user_data */
	struct sim_proc *owner;
	const void *queue;            /* that it was given to */
	uint32_t app, target, slot, offset, bytes; /* offset from the start of the segment */
	tent_opcode opcode;
	enum sim_op_state state;
	bool good, unheard;           /* it completed; nobody waited for the end of it */
	uint64_t tag, submit_ns, deadline_ns;
	uint8_t *local;               /* its bytes in the memory of its own process */
	struct sim_instance *touched[SIM_TOUCHED]; /* publications that it may have reached */
	unsigned touched_cnt;
};

struct sim_note {
	uint64_t id;
	const void *queue;
	uint32_t app, target;
	struct sim_proc *receiver;    /* the process that published when it was sent; NULL: not known */
	unsigned received;
	bool over, good, canceled;    /* over: the sender had its verdict; canceled: it says that it never arrives */
	struct sim_op *ops[SIM_BATCH_OPS];
	unsigned op_cnt;
};

void sim_model_init(void);
void sim_pattern(uint64_t tag, uint8_t *to, size_t bytes);

/* A publication begins; its bytes are zero. Requests under way may reach it from now on. */
struct sim_instance *sim_instance_new(uint32_t app, uint8_t *memory);
void sim_instance_gone(struct sim_instance *i);
struct sim_instance *sim_instance_newest(uint32_t app);

/* A free slot of the newest publication of `target`, big or small; false: none. */
bool sim_slot_pick(uint32_t target, bool big, uint32_t *slot_out);
/* A request is about to be handed over: the slot is busy from now on. `local` holds its bytes (WRITE) or gets them. */
struct sim_op *sim_op_new(struct sim_proc *owner, uint32_t app, uint32_t target, uint32_t slot, uint32_t offset, uint32_t bytes,
			  tent_opcode opcode, uint8_t *local);
/* It was not accepted after all. */
void sim_op_refused(struct sim_op *op);
/* A completion came: exactly one terminal one for each request, then one release if it said so; if it says that all is
 * well the bytes are in place; if not, nothing but a part of them may be. */
void sim_op_completed(const tent_completion *c, struct sim_proc *who);
struct sim_op *sim_op_get(uint64_t id);
/* A queue pair was destroyed: what was under way ended unheard, and touches nothing any more. */
void sim_queue_gone(const void *queue);
/* A process died: nobody waits for what it asked for. */
void sim_model_died(const struct sim_proc *p, uint32_t app);

struct sim_note *sim_note_new(uint32_t app, uint32_t target);
void sim_note_completed(const tent_completion *c);
/* Once at most, never after it was canceled, and with all data of its batch in place. */
void sim_note_received(uint64_t id, uint32_t app);

/* Every byte that no request may touch is as it was left. One slot of one publication, in turn; all of them. */
void sim_model_look(void);
void sim_model_look_at_all(void);
/* After everything drained: notices that were acknowledged have arrived. */
void sim_model_end(void);

/* Things stopped going wrong. */
void sim_model_calm(void);
/* What is under way, into the trace. */
void sim_model_print(void);

#endif
