/* SPDX-License-Identifier: Apache-2.0
 * The states of libtent's objects and the moves between them, as data: the checks in object.c, slot.c and context.c and
 * the drawings in docs/state-machines.md both come from these lists. A move outside them is our bug. */
#ifndef LT_STATES_H
#define LT_STATES_H

#include <stdbool.h>
#include <stdint.h>

/* X(STATE, name) */
#define LT_CONTEXT_STATES(X) X(NEW, free) X(ATTACHED, attached) X(RECOVERING, recovering) X(DEAD, dead)
/* X(FROM, TO, "when") */
#define LT_CONTEXT_MOVES(X) \
	X(NEW, ATTACHED, "tent_open() said HELLO") \
	X(ATTACHED, RECOVERING, "the data plane hung up") \
	X(RECOVERING, ATTACHED, "a successor has the memories and gave queue pairs") \
	X(RECOVERING, DEAD, "none came in time, it is the same one and does not want us, or another ABI") \
	X(ATTACHED, DEAD, "a ring or the attach protocol is broken, and the data plane hung up on us")

/* Memory, published segment, opened segment. */
#define LT_OBJECT_STATES(X) \
	X(GONE, free) X(LIVE, live) X(RESTORING, restoring) X(FAILED, failed) X(LOST, lost) X(CLOSING, closing)
#define LT_OBJECT_MOVES(X) \
	X(GONE, LIVE, "the data plane gave it an id") \
	X(LIVE, RESTORING, "that data plane is dead; requests that need it are held") \
	X(RESTORING, LIVE, "the successor gave it an id") \
	X(RESTORING, FAILED, "the successor refuses it, for good or for the recovery time; requests fail so") \
	X(LIVE, LOST, "a publication that an operator withdrew; it is not published again") \
	X(RESTORING, LOST, "a publication that the successor refuses; it is not published again") \
	X(FAILED, RESTORING, "another data plane died: another try") \
	X(LIVE, CLOSING, "the application gives it back") \
	X(RESTORING, CLOSING, "the application gives it back") \
	X(FAILED, CLOSING, "the application gives it back") \
	X(LOST, CLOSING, "the application gives it back") \
	X(CLOSING, LIVE, "refused: a published segment uses the memory") \
	X(CLOSING, GONE, "given back")

/* A request or notice in the shadow of a queue pair. */
#define LT_SLOT_STATES(X) \
	X(FREE, free) X(HELD, held) X(POSTED, posted) X(BUSY, busy) X(READY, ready)
#define LT_SLOT_MOVES(X) \
	X(FREE, HELD, "accepted") \
	X(HELD, POSTED, "put into the submission ring") \
	X(HELD, READY, "deadline or cancel while held, an object that did not come back, or no data plane will come") \
	X(POSTED, FREE, "its completion was taken") \
	X(POSTED, BUSY, "its completion was taken, and says that the memory is still touched") \
	X(POSTED, HELD, "the data plane is dead and the replay law lets it be sent again") \
	X(POSTED, READY, "the data plane is dead: completed there, canceled, or ambiguous") \
	X(BUSY, FREE, "its release was taken") \
	X(BUSY, READY, "the data plane is dead and touches nothing: released") \
	X(READY, FREE, "the completion of our own was taken")

#define X(name, text) LT_CONTEXT_##name,
enum lt_context_state { LT_CONTEXT_STATES(X) LT_CONTEXT_STATE_CNT }; /* numbers of tent_state; NEW is before it */
#undef X
#define X(name, text) LT_OBJECT_##name,
enum lt_object_state { LT_OBJECT_STATES(X) LT_OBJECT_STATE_CNT };
#undef X
#define X(name, text) LT_SLOT_##name,
enum lt_slot_state { LT_SLOT_STATES(X) LT_SLOT_STATE_CNT };
#undef X

/* A table of moves as one word: bit from * 8 + to. At most eight states. */
#define LT_MOVE_BIT(from, to) UINT64_C(1) << ((from) * 8 + (to))
static inline bool lt_move_is_allowed(uint64_t moves, uint32_t from, uint32_t to)
{
	return (moves >> (from * 8 + to) & 1) != 0;
}

/* Builds with TENT_HOOKS: told each allowed move before it is made, by the thread that makes it: for contexts and objects
 * under the context's lock, for slots the owner of the queue pair. For coverage in tests. Set it before tent_open(); NULL
 * = nobody. */
#if TENT_HOOKS
enum lt_machine { LT_MACHINE_CONTEXT, LT_MACHINE_OBJECT, LT_MACHINE_SLOT };
extern void (*lt_move_seen)(enum lt_machine machine, unsigned from, unsigned to);
#define LT_MOVE_SEEN(machine, from, to) (lt_move_seen != NULL ? lt_move_seen(LT_MACHINE_##machine, from, to) : (void)0)
#else
#define LT_MOVE_SEEN(machine, from, to) ((void)0)
#endif

#endif
