/* SPDX-License-Identifier: Apache-2.0
 * The model of memory.h: byte by byte, exact where tent promises something and open where it does not. One thread. */
#include "tests/sim/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 48u
#define SMALL_BYTES 1024u
#define BIG_BYTES 24576u
#define GUARD 64u               /* at both ends of a slot; never written */
#define SETTLE_NS (3 * TN_NS_PER_S) /* from the end of the trouble until the last byte of a failed request has landed */
#define OPS_MAX 65536u
#define OP_IDS UINT64_C(1)      /* ids of requests are odd, those of notices even */

struct sim_slot sim_slots[SIM_SLOTS];

static struct sim_instance *newest[SIM_APPS];
static struct sim_op *ops[OPS_MAX];
static struct sim_note *notes[OPS_MAX];
static uint64_t quiet_ns;
static uint32_t op_cnt, note_cnt, look_app, look_slot;

void sim_model_init(void)
{
	uint32_t at = 0;
	for (uint32_t i = 0; i < SIM_SLOTS; i++) {
		uint32_t bytes = i < SMALL ? SMALL_BYTES : BIG_BYTES;
		tn_assert(at + bytes <= SIM_SEGMENT_BYTES);
		sim_slots[i] = (struct sim_slot){ .offset = at + GUARD, .bytes = bytes - 2 * GUARD };
		at += bytes;
	}
}

void sim_pattern(uint64_t tag, uint8_t *to, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++) {
		if (i % 8 == 0)
			tag = (tag ^ tag >> 29) * UINT64_C(0xbf58476d1ce4e5b9) + i;
		to[i] = (uint8_t)(tag >> (i % 8) * 8);
	}
}

/* ---- publications ---- */

struct sim_instance *sim_instance_newest(uint32_t app) { return newest[app]; }

static void touch(struct sim_op *op, struct sim_instance *i)
{
	if (i == NULL || op->touched_cnt == SIM_TOUCHED)
		return;
	op->touched[op->touched_cnt++] = i;
	i->busy[op->slot]++;
}

struct sim_instance *sim_instance_new(uint32_t app, uint8_t *memory)
{
	struct sim_instance *i = sim_calloc(1, sizeof *i);
	i->app = app;
	i->older = newest[app];
	i->number = i->older != NULL ? i->older->number + 1 : 1;
	i->memory = memory;
	newest[app] = i;
	for (uint32_t k = 0; k < op_cnt; k++)
		if (ops[k] != NULL && ops[k]->state != SIM_OP_OVER && ops[k]->target == app)
			touch(ops[k], i);
	return i;
}

void sim_instance_gone(struct sim_instance *i)
{
	if (i != NULL)
		i->gone = true;
}

/* Where nothing can be on its way any more, what stands there is what has to stand there. */
static void settle(struct sim_instance *i, uint32_t s)
{
	if (quiet_ns == 0 || sim.now_ns < quiet_ns || !i->tainted[s] || i->busy[s] > 0)
		return;
	memcpy(i->shadow + sim_slots[s].offset, i->memory + sim_slots[s].offset, sim_slots[s].bytes);
	i->tainted[s] = false;
}

void sim_model_calm(void) { quiet_ns = sim.now_ns + SETTLE_NS; }

/* Slots are used again soon: what comes late must find somebody to hurt. */
bool sim_slot_pick(uint32_t target, bool big, uint32_t *slot_out)
{
	struct sim_instance *i = newest[target];
	uint32_t from = big ? SMALL : 0, to = big ? SIM_SLOTS : SMALL, seen = 0, found = 0;
	for (uint32_t s = from; i != NULL && s < to && seen < 4; s++) {
		settle(i, s);
		if (i->busy[s] == 0 && !i->tainted[s] && sim_chance(++seen))
			found = s + 1;
	}
	if (found == 0)
		return false;
	*slot_out = found - 1;
	return true;
}

/* ---- requests ---- */

struct sim_op *sim_op_new(struct sim_proc *owner, uint32_t app, uint32_t target, uint32_t slot, uint32_t offset, uint32_t bytes,
			  tent_opcode opcode, uint8_t *local)
{
	if (op_cnt == OPS_MAX)
		return NULL;
	struct sim_op *op = sim_calloc(1, sizeof *op);
	*op = (struct sim_op){ .id = (uint64_t)op_cnt << 1 | OP_IDS, .owner = owner, .app = app, .target = target, .slot = slot,
			       .offset = offset, .bytes = bytes, .opcode = opcode, .state = SIM_OP_POSTED, .local = local,
			       .tag = tn_rand_u64(&sim.rand), .submit_ns = sim.now_ns };
	ops[op_cnt++] = op;
	sim_pattern(op->tag, local, bytes);
	/* The handle may still lead to the one before. */
	touch(op, newest[target]);
	touch(op, newest[target] != NULL ? newest[target]->older : NULL);
	return op;
}

struct sim_op *sim_op_get(uint64_t id)
{
	return (id & 1) != 0 && id >> 1 < op_cnt ? ops[id >> 1] : NULL;
}

static void let_go(struct sim_op *op, bool taint)
{
	for (unsigned k = 0; k < op->touched_cnt; k++) {
		op->touched[k]->busy[op->slot]--;
		op->touched[k]->tainted[op->slot] |= taint;
	}
}

void sim_op_refused(struct sim_op *op)
{
	let_go(op, false);
	op->state = SIM_OP_OVER;
}

static bool is_in_place(const struct sim_op *op, const struct sim_instance *i)
{
	uint8_t want[BIG_BYTES];
	sim_pattern(op->tag, want, op->bytes);
	return memcmp(i->memory + op->offset, want, op->bytes) == 0;
}

static void write_done(struct sim_op *op)
{
	unsigned places = 0;
	for (unsigned k = 0; k < op->touched_cnt; k++) {
		struct sim_instance *i = op->touched[k];
		if (is_in_place(op, i)) {
			places++;
			memcpy(i->shadow + op->offset, i->memory + op->offset, op->bytes);
		} else if (op->touched_cnt > 1) {
			i->tainted[op->slot] = true;
		}
	}
	sim_check(places > 0, "bytes", "WRITE %" PRIu64 " of app %u to app %u, slot %u, %u bytes at %u completed and its bytes are not there",
		  op->id, op->app, op->target, op->slot, op->bytes, op->offset);
}

static void read_done(struct sim_op *op)
{
	for (unsigned k = 0; k < op->touched_cnt; k++) {
		const struct sim_instance *i = op->touched[k];
		if (i->tainted[op->slot] || memcmp(op->local, i->shadow + op->offset, op->bytes) == 0)
			return;
	}
	sim_fail("bytes", "READ %" PRIu64 " of app %u from app %u, slot %u, %u bytes at %u brought what nobody wrote", op->id, op->app,
		 op->target, op->slot, op->bytes, op->offset);
}

/* Each byte is the one before or the new one. */
static void check_mixture(const struct sim_op *op, const uint8_t *at, const uint8_t *before)
{
	uint8_t want[BIG_BYTES];
	sim_pattern(op->tag, want, op->bytes);
	for (uint32_t i = 0; i < op->bytes; i++)
		sim_check(at[i] == before[i] || at[i] == want[i], "bytes", "op %" PRIu64 " failed and left a byte of nobody at %u", op->id, i);
}

static void failed(struct sim_op *op)
{
	for (unsigned k = 0; k < op->touched_cnt; k++) {
		struct sim_instance *i = op->touched[k];
		if (op->opcode == TENT_WRITE && !i->tainted[op->slot] && !i->gone)
			check_mixture(op, i->memory + op->offset, i->shadow + op->offset);
	}
}

/* No attempt has it any more. The source is ours again: who still reads it sends rubbish. */
static void released(struct sim_op *op)
{
	let_go(op, !op->good && op->opcode == TENT_WRITE);
	memset(op->local, 0xdb, op->bytes);
}

static void terminal(struct sim_op *op, const tent_completion *c)
{
	char text[256];
	sim_check(op->state == SIM_OP_POSTED, "one terminal", "op %" PRIu64 " was completed twice", op->id);
	sim_check((c->outcome == TENT_OUTCOME_COMPLETED) == (c->status == TENT_OK), "outcome", "op %" PRIu64 ": outcome %u, status %d",
		  op->id, c->outcome, c->status);
	sim_check(c->status != TENT_INTERNAL && c->status != TENT_FAULT, "outcome", "op %" PRIu64 ": %s", op->id,
		  tent_completion_text(c, text, sizeof text));
	op->good = c->status == TENT_OK;
	op->state = c->memory_busy ? SIM_OP_BUSY : SIM_OP_OVER;
	sim_trace("op %" PRIu64 " app %u: %s", op->id, op->app, tent_completion_text(c, text, sizeof text));
	if (op->good && op->opcode == TENT_WRITE)
		write_done(op);
	else if (op->good)
		read_done(op);
	else
		failed(op);
	sim_check(!op->good || !c->memory_busy, "outcome", "op %" PRIu64 " completed and its memory is busy", op->id);
	if (!c->memory_busy)
		released(op);
}

void sim_op_completed(const tent_completion *c, struct sim_proc *who)
{
	struct sim_op *op = sim_op_get(c->user_data);
	sim_check(op != NULL && op->owner == who, "completion", "a completion for %" PRIu64 ", which nobody asked for", c->user_data);
	if (c->kind == TENT_COMPLETION_REQUEST) {
		terminal(op, c);
		return;
	}
	sim_check(op->state == SIM_OP_BUSY, "release", "op %" PRIu64 ": a release that nobody waits for", op->id);
	op->state = SIM_OP_OVER;
	failed(op);
	released(op);
	sim_trace("op %" PRIu64 " released", op->id);
}

static void abandon(struct sim_op *op)
{
	if (op->state == SIM_OP_OVER)
		return;
	let_go(op, op->opcode == TENT_WRITE);
	op->state = SIM_OP_OVER;
	op->unheard = true;
}

void sim_queue_gone(const void *queue)
{
	for (uint32_t k = 0; k < op_cnt; k++)
		if (ops[k]->queue == queue)
			abandon(ops[k]);
	for (uint32_t k = 0; k < note_cnt; k++)
		if (notes[k]->queue == queue)
			notes[k]->over = true;
}

void sim_model_died(const struct sim_proc *p, uint32_t app)
{
	for (uint32_t k = 0; k < op_cnt; k++)
		if (ops[k]->owner == p)
			abandon(ops[k]);
	for (struct sim_instance *i = newest[app]; i != NULL; i = i->older)
		i->gone = true;
}

/* ---- notices ---- */

struct sim_note *sim_note_new(uint32_t app, uint32_t target)
{
	if (note_cnt == OPS_MAX)
		return NULL;
	struct sim_note *n = sim_calloc(1, sizeof *n);
	*n = (struct sim_note){ .id = (uint64_t)(note_cnt + 1) << 1, .app = app, .target = target };
	notes[note_cnt++] = n;
	return n;
}

static struct sim_note *note_get(uint64_t id) { return (id & 1) == 0 && id > 0 && id >> 1 <= note_cnt ? notes[(id >> 1) - 1] : NULL; }

void sim_note_completed(const tent_completion *c)
{
	struct sim_note *n = note_get(c->user_data);
	sim_check(n != NULL && !n->over, "one terminal", "notice %" PRIu64 " was completed twice, or nobody sent it", c->user_data);
	n->over = true;
	n->good = c->status == TENT_OK;
	n->canceled = c->status != TENT_OK && c->status != TENT_AMBIGUOUS;
	sim_trace("notice %" PRIu64 ": status %d", n->id, c->status);
	sim_check(!n->canceled || n->received == 0, "notice", "notice %" PRIu64 " was not sent, it says, and had arrived", n->id);
}

static bool op_is_in_place(const struct sim_op *op)
{
	if (op->state != SIM_OP_POSTED)
		return op->good || op->unheard;
	for (unsigned k = 0; k < op->touched_cnt; k++)
		if (is_in_place(op, op->touched[k]))
			return true;
	return false;
}

void sim_note_received(uint64_t id, uint32_t app)
{
	struct sim_note *n = note_get(id);
	sim_check(n != NULL && n->target == app, "notice", "app %u got notice %" PRIu64 ", which nobody sent to it", app, id);
	sim_check(n->received++ == 0, "notice", "notice %" PRIu64 " came twice", id);
	sim_check(!n->canceled, "notice", "notice %" PRIu64 " was not sent, it says, and came", id);
	for (unsigned k = 0; k < n->op_cnt; k++)
		sim_check(n->ops[k]->opcode != TENT_WRITE || op_is_in_place(n->ops[k]), "notice", "notice %" PRIu64 " came before the bytes of op %" PRIu64,
			  id, n->ops[k]->id);
}

void sim_model_print(void)
{
	for (uint32_t k = 0; k < op_cnt; k++)
		if (ops[k]->state != SIM_OP_OVER)
			sim_trace("op %" PRIu64 " of %s to app %u, submitted at %.6f: %s", ops[k]->id, ops[k]->owner->name, ops[k]->target,
				  (double)ops[k]->submit_ns / 1e9 - 1000.0, ops[k]->state == SIM_OP_BUSY ? "not released" : "not completed");
	for (uint32_t k = 0; k < note_cnt; k++)
		if (!notes[k]->over)
			sim_trace("notice %" PRIu64 " of app %u to app %u: not completed", notes[k]->id, notes[k]->app, notes[k]->target);
}

/* ---- memory that nobody may touch ---- */

static void look(const struct sim_instance *i, uint32_t s)
{
	uint32_t from = sim_slots[s].offset - GUARD, bytes = sim_slots[s].bytes + 2 * GUARD;
	if (i->busy[s] > 0 || i->tainted[s] || i->gone || memcmp(i->memory + from, i->shadow + from, bytes) == 0)
		return;
	uint32_t at = 0;
	while (i->memory[from + at] == i->shadow[from + at])
		at++;
	sim_fail("memory", "app %u, publication %u, slot %u: byte %u is %#x, %#x was left there", i->app, i->number, s, from + at,
		 i->memory[from + at], i->shadow[from + at]);
}

void sim_model_look(void)
{
	look_slot++;
	if (look_slot % 8 == 0)
		look_app = (look_app + 1) % SIM_APPS;
	/* Low numbers are used most. */
	if (newest[look_app] != NULL)
		look(newest[look_app], look_slot % 3 != 0 ? look_slot % 8 : look_slot % SIM_SLOTS);
}

void sim_model_look_at_all(void)
{
	for (uint32_t a = 0; a < SIM_APPS; a++)
		for (uint32_t s = 0; s < SIM_SLOTS && newest[a] != NULL; s++)
			look(newest[a], s);
}

void sim_model_end(void)
{
	for (uint32_t k = 0; k < op_cnt; k++)
		sim_check(ops[k]->state == SIM_OP_OVER, "drain", "op %" PRIu64 " of app %u never ended", ops[k]->id, ops[k]->app);
	for (uint32_t k = 0; k < note_cnt; k++) {
		const struct sim_note *n = notes[k];
		sim_check(!n->good || n->received == 1 || n->receiver == NULL || n->receiver->state == SIM_DEAD, "notice",
			  "notice %" PRIu64 " was acknowledged and never came", n->id);
	}
}
