/* SPDX-License-Identifier: Apache-2.0
 * Admission queues: windows, fairness between targets, priority with ageing, holding, and equation 4 at every step. */
#include "dataplane/admission/queue.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/rand.h"
#include "tests/unit/cu.h"

#define STALL_NS (200 * TN_NS_PER_MS)

static tn_a64 cells[TN_METRIC_CELL_CNT];
static struct tn_metrics metrics;
static struct dp_tally tally;
static struct dp_admission adm;

static void setup(uint32_t owners, uint64_t bytes, uint32_t peer_owners, uint64_t peer_bytes)
{
	memset(cells, 0, sizeof cells);
	tn_metrics_bind(&metrics, cells, true);
	dp_tally_init(&tally, &metrics);
	struct dp_admission_cfg cfg = { .targets = 9, .quantum_bytes = 1000, .window_owners = owners, .window_bytes = bytes,
					.peer_window_owners = peer_owners, .peer_window_bytes = peer_bytes, .stall_ns = STALL_NS };
	CU_ASSERT_EQUAL_FATAL(dp_admission_init(&adm, &cfg, &metrics, &tally), TN_OK);
}

static uint64_t event(enum tn_admission e)
{
	return tn_load_relaxed64(&cells[TN_C2(ADMISSION_EVENTS_TOTAL, TN_OWNER_KIND_USER, e).cell]);
}

static void equation(void)
{
	dp_tally_flush(&tally);
#if TENT_METRICS
	uint64_t queued = tn_load_relaxed64(&cells[TN_G1(ADMISSION_QUEUED_OWNERS, TN_OWNER_KIND_USER).cell]);
	uint64_t others = tn_load_relaxed64(&cells[TN_G1(ADMISSION_QUEUED_OWNERS, TN_OWNER_KIND_STAGING_INTERNAL).cell]);
	CU_ASSERT_EQUAL(event(TN_ADMISSION_ADMIT),
			event(TN_ADMISSION_DISPATCH) + event(TN_ADMISSION_DEADLINE_DROP) + event(TN_ADMISSION_CANCEL) + queued);
	CU_ASSERT_EQUAL(queued + others, adm.queued);
#endif
}

static uint64_t made;

static struct dp_owner *push(uint32_t peer, unsigned priority, uint64_t bytes, uint64_t now)
{
	struct dp_owner *o = calloc(1, sizeof *o);
	tn_list_init(&o->link);
	o->peer_index = peer;
	o->priority = (uint8_t)priority;
	o->bytes = bytes;
	o->owner_id = ++made;
	o->deadline_ns = UINT64_MAX - made; /* the opposite of their order: it matters only where it is asked for */
	dp_admission_push(&adm, o, now, false);
	equation();
	return o;
}

/* Dispatches the next owner; returns its target (UINT32_MAX - 1 = none went). */
static uint32_t go(uint64_t now, struct dp_owner **out)
{
	struct dp_owner *o = *out = dp_admission_next(&adm, now);
	if (!o)
		return UINT32_MAX - 1;
	dp_admission_dispatch(&adm, o, now);
	equation();
	return o->peer_index;
}

static void test_fifo_and_window(void)
{
	setup(2, 1000, 10, 10000);
	struct dp_owner *a = push(0, 1, 600, 1), *b = push(0, 1, 300, 2), *c = push(0, 1, 200, 3), *got;
	CU_ASSERT_EQUAL(go(10, &got), 0);
	CU_ASSERT_PTR_EQUAL(got, a);
	go(10, &got);
	CU_ASSERT_PTR_EQUAL(got, b);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 10));
	dp_admission_release(&adm, a);
	go(10, &got);
	CU_ASSERT_PTR_EQUAL(got, c);
	equation();
	CU_ASSERT_EQUAL(event(TN_ADMISSION_DISPATCH), TENT_METRICS ? 3 : 0);
	dp_admission_release(&adm, b);
	dp_admission_release(&adm, c);
	CU_ASSERT_EQUAL(adm.window.bytes, 0);
	free(a), free(b), free(c);
	dp_admission_destroy(&adm);
}

static void test_oversized(void)
{
	setup(10, 1000, 10, 1000);
	struct dp_owner *small = push(1, 1, 10, 1), *big = push(2, 1, 100000, 1), *got;
	go(2, &got);
	CU_ASSERT_PTR_EQUAL(got, small);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 2));
	dp_admission_release(&adm, small);
	go(2, &got);
	CU_ASSERT_PTR_EQUAL(got, big);
	dp_admission_release(&adm, big);
	free(small), free(big);
	dp_admission_destroy(&adm);
}

/* A peer whose window is full does not stop others; they share what is left. */
static void test_slow_peer(void)
{
	setup(1000, 1 << 30, 2, 1 << 20);
	struct dp_owner *slow[3];
	for (int i = 0; i < 3; i++)
		slow[i] = push(1, 1, 100, 1);
	for (int i = 0; i < 5; i++)
		push(2, 1, 100, 1);
	uint32_t from1 = 0, from2 = 0, t;
	struct dp_owner *out[8];
	uint32_t n = 0;
	while ((t = go(2, &out[n])) != UINT32_MAX - 1) {
		n++;
		from1 += t == 1;
		from2 += t == 2;
		if (t == 2)
			dp_admission_release(&adm, out[n - 1]);
	}
	CU_ASSERT_EQUAL(from1, 2);
	CU_ASSERT_EQUAL(from2, 5);
	CU_ASSERT_EQUAL(adm.queued, 1);
	dp_admission_release(&adm, slow[0]);
	CU_ASSERT_EQUAL(go(3, &out[n++]), 1);
	for (uint32_t i = 0; i < n; i++)
		free(out[i]);
	dp_admission_destroy(&adm);
}

static void test_fair_shares(void)
{
	setup(1u << 30, UINT64_MAX, 1u << 30, UINT64_MAX);
	uint64_t sent[3] = { 0 };
	for (int i = 0; i < 3000; i++) {
		push(0, 1, 100, 1);
		push(1, 1, 900, 1);
		push(2, 1, 5000, 1);
	}
	for (int i = 0; i < 2000; i++) {
		struct dp_owner *o;
		uint32_t t = go(2, &o);
		sent[t] += o->bytes;
		dp_admission_release(&adm, o);
		free(o);
	}
	CU_ASSERT(sent[0] + 20000 > sent[1] && sent[1] + 20000 > sent[2] && sent[2] + 20000 > sent[0]);
	struct dp_owner *o;
	while (go(2, &o) != UINT32_MAX - 1) {
		dp_admission_release(&adm, o);
		free(o);
	}
	dp_admission_destroy(&adm);
}

static void test_priority_and_age(void)
{
	setup(1u << 20, UINT64_MAX, 1u << 20, UINT64_MAX);
	uint64_t now = 1000;
	struct dp_owner *low = push(0, TN_PRIORITY_LOW, 10, now), *got;
	for (int i = 0; i < 100; i++)
		push(1, TN_PRIORITY_HIGH, 10, now);
	for (int i = 0; i < 50; i++) {
		CU_ASSERT_EQUAL(go(now, &got), 1);
		free(got);
	}
	now += DP_ADMISSION_AGE_NS; /* the low one has waited long enough: one goes through */
	CU_ASSERT_EQUAL(go(now, &got), 0);
	CU_ASSERT_PTR_EQUAL(got, low);
	free(got);
	push(0, TN_PRIORITY_LOW, 10, now);
	for (int i = 0; i < 50; i++) {
		CU_ASSERT_EQUAL(go(now + 1, &got), 1);
		free(got);
	}
	CU_ASSERT_EQUAL(go(now + 1, &got), 0);
	free(got);
	dp_admission_destroy(&adm);
}

static void test_defer_drop_front(void)
{
	setup(10, 1 << 20, 10, 1 << 20);
	struct dp_owner *a = push(1, 1, 10, 1), *b = push(1, 1, 10, 1), *c = push(2, 1, 10, 1), *got;
	got = dp_admission_next(&adm, 2);
	CU_ASSERT_PTR_EQUAL(got, a);
	dp_admission_defer(&adm, a);
	equation();
	CU_ASSERT_EQUAL(go(2, &got), 2); /* the other target goes on */
	CU_ASSERT_PTR_EQUAL(got, c);
	CU_ASSERT_PTR_EQUAL(dp_admission_next(&adm, 2), a); /* that was taken: there may be room again */
	dp_admission_defer(&adm, a);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 2));
	dp_admission_drop(&adm, a, 3, TN_ADMISSION_END_DEADLINE_DROP); /* while held */
	equation();
	dp_admission_resume(&adm, 4);
	got = dp_admission_next(&adm, 4);
	CU_ASSERT_PTR_EQUAL(got, b);
	dp_admission_push(&adm, a, 4, true); /* comes back to the front */
	CU_ASSERT_PTR_EQUAL(dp_admission_next(&adm, 4), a);
	dp_admission_drop(&adm, b, 5, TN_ADMISSION_END_CANCEL);
	dp_admission_drop(&adm, a, 5, TN_ADMISSION_END_CANCEL);
	equation();
	CU_ASSERT_EQUAL(adm.queued, 0);
	CU_ASSERT_EQUAL(event(TN_ADMISSION_DEFER), TENT_METRICS ? 2 : 0);
	free(a), free(b), free(c);
	dp_admission_destroy(&adm);
}

/* A thousand owners that leave at random, queued, dispatched or at once: nothing of them is left in any count. */
static void test_random_drops(void)
{
	enum { OWNERS = 1000 };
	struct dp_owner *queued[OWNERS], *running[OWNERS], *got;
	uint32_t queued_cnt = 0, running_cnt = 0, pushed = 0, dropped = 0;
	struct tn_rand rand;
	tn_rand_seed(&rand, 7);
	setup(40, 1 << 20, 8, 1 << 18);
	for (uint64_t now = 1; pushed < OWNERS || queued_cnt + running_cnt > 0; now++) {
		uint64_t what = tn_rand_below(&rand, 4), at = tn_rand_u64(&rand);
		if (what == 0 && pushed < OWNERS) {
			uint32_t peer = (uint32_t)tn_rand_below(&rand, 8);
			queued[queued_cnt++] = push(peer, (unsigned)tn_rand_below(&rand, TN_PRIORITY_CNT), 1 + at % 60000, now);
			pushed++;
		} else if (what == 1 && queued_cnt > 0) {
			uint32_t i = (uint32_t)(at % queued_cnt);
			dp_admission_drop(&adm, queued[i], now, at % 3 ? TN_ADMISSION_END_CANCEL : TN_ADMISSION_END_DEADLINE_DROP);
			free(queued[i]);
			queued[i] = queued[--queued_cnt];
			dropped++;
		} else if (what == 2 && running_cnt > 0) {
			uint32_t i = (uint32_t)(at % running_cnt);
			dp_admission_release(&adm, running[i]);
			free(running[i]);
			running[i] = running[--running_cnt];
		} else if (what == 3 && go(now, &got) != UINT32_MAX - 1) {
			for (uint32_t i = 0; i < queued_cnt; i++)
				if (queued[i] == got)
					queued[i] = queued[--queued_cnt];
			running[running_cnt++] = got;
		}
		equation();
		CU_ASSERT_EQUAL(adm.queued, queued_cnt);
		CU_ASSERT_EQUAL(dp_admission_out_owners(&adm), running_cnt);
	}
	CU_ASSERT_TRUE(dropped > OWNERS / 10);
	CU_ASSERT_EQUAL(adm.window.bytes, 0);
	CU_ASSERT_EQUAL(event(TN_ADMISSION_CANCEL) + event(TN_ADMISSION_DEADLINE_DROP), TENT_METRICS ? dropped : 0);
	dp_admission_destroy(&adm);
}

/* Of the targets that wait for room one asks per turn, and the next one as soon as that was taken. */
static void test_room(void)
{
	setup(100, 1 << 20, 100, 1 << 20);
	struct dp_owner *o[8], *got;
	for (uint32_t i = 0; i < 8; i++)
		o[i] = push(i, 1, 10, 1);
	while ((got = dp_admission_next(&adm, 2)))
		dp_admission_defer(&adm, got);
	CU_ASSERT_EQUAL(event(TN_ADMISSION_DEFER), TENT_METRICS ? 8 : 0);
	for (uint32_t turn = 0; turn < 3; turn++) { /* still no room */
		dp_admission_resume(&adm, 4);
		got = dp_admission_next(&adm, 3);
		CU_ASSERT_PTR_EQUAL_FATAL(got, o[turn]);
		dp_admission_defer(&adm, got);
		CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 3));
	}
	dp_admission_drop(&adm, o[3], 4, TN_ADMISSION_END_CANCEL); /* who has nothing left does not hold up the next */
	dp_admission_resume(&adm, 4);
	uint32_t order = 0;
	for (uint32_t t; (t = go(5, &got)) != UINT32_MAX - 1;)
		order = order * 10 + t;
	CU_ASSERT_EQUAL(order, 4567012);
	for (uint32_t i = 0; i < 8; i++) {
		if (i != 3)
			dp_admission_release(&adm, o[i]);
		free(o[i]);
	}
	CU_ASSERT_EQUAL(adm.window.owners, 0);
	dp_admission_destroy(&adm);
}

/* ---- peers that do not answer ---- */

#define DEAD 4u
#define LIVE 4u
#define BLOCK (UINT64_C(256) << 10)
#define TICK_NS (5 * TN_NS_PER_MS)
#define TICKS 2000u

struct out { struct dp_owner *of[2048]; uint32_t cnt; };

static void windows_are_sums(const struct out *out, uint32_t out_cnt)
{
	uint32_t owners = 0;
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < out_cnt; i++) {
		owners += out[i].cnt;
		for (uint32_t k = 0; k < out[i].cnt; k++)
			bytes += out[i].of[k]->bytes;
	}
	CU_ASSERT_EQUAL_FATAL(dp_admission_out_owners(&adm), owners);
	CU_ASSERT_EQUAL_FATAL(dp_admission_out_bytes(&adm), bytes);
	CU_ASSERT_FATAL(adm.window.owners <= owners && adm.window.bytes <= bytes); /* none is below 0 */
	CU_ASSERT_FATAL(adm.express.owners <= owners && adm.express.bytes <= bytes);
}

static void let_go(struct out *out)
{
	while (out->cnt > 0) {
		struct dp_owner *o = out->of[--out->cnt];
		dp_admission_release(&adm, o);
		free(o);
	}
}

/* What a peer that answers everything within a tick gets done beside `dead` peers that answer nothing, in bytes. */
static uint64_t goodput(uint32_t dead, struct out *out, uint64_t *now)
{
	uint64_t done = 0;
	setup(1024, UINT64_C(256) << 20, 256, UINT64_C(64) << 20);
	for (uint32_t i = 0; i < dead * 300; i++)
		push(i % dead, 1, BLOCK, *now);
	for (uint32_t tick = 0, queued = 0; tick < TICKS; tick++, *now += TICK_NS) {
		for (; queued < 16; queued++)
			push(LIVE, 1, BLOCK, *now);
		dp_admission_resume(&adm, *now);
		struct dp_owner *o;
		while (go(*now, &o) != UINT32_MAX - 1) {
			out[o->peer_index].of[out[o->peer_index].cnt++] = o;
			queued -= o->peer_index == LIVE;
		}
		windows_are_sums(out, LIVE + 1);
		for (uint32_t i = 0; i < out[LIVE].cnt; i++)
			done += out[LIVE].of[i]->bytes;
		dp_admission_moved(&adm, LIVE, *now);
		let_go(&out[LIVE]);
	}
	return done;
}

static void drain(uint64_t now)
{
	struct dp_owner *o;
	while ((o = dp_admission_next(&adm, now))) {
		dp_admission_drop(&adm, o, now, TN_ADMISSION_END_CANCEL);
		free(o);
	}
}

static void test_dead_peers(void)
{
	static struct out out[LIVE + 1];
	uint64_t now = TN_NS_PER_S, alone = goodput(0, out, &now);
	drain(now);
	dp_admission_destroy(&adm);
	uint64_t beside = goodput(DEAD, out, &now);
	CU_ASSERT(alone > 0 && beside >= alone / 100 * 95);
	for (uint32_t i = 0; i < DEAD; i++)
		CU_ASSERT_EQUAL(out[i].cnt, 256); /* their own windows bound them */
	CU_ASSERT_EQUAL(adm.stalled.owners, DEAD * 256);
	dp_admission_moved(&adm, 0, now); /* one answers after all */
	CU_ASSERT_EQUAL(adm.stalled.owners, (DEAD - 1) * 256);
	CU_ASSERT_EQUAL(adm.window.owners, 256);
	windows_are_sums(out, LIVE + 1);
	for (uint32_t i = 0; i <= LIVE; i++)
		let_go(&out[i]);
	drain(now);
	CU_ASSERT_EQUAL(adm.queued, 0);
	CU_ASSERT_EQUAL(dp_admission_out_owners(&adm), 0);
	CU_ASSERT_EQUAL(dp_admission_out_bytes(&adm), 0);
	dp_admission_destroy(&adm);
}

/* Whoever stays silent is found in time, not before, and only while somebody waits. */
static void test_stall_time(void)
{
	setup(10, 1 << 20, 10, 1 << 20);
	uint64_t t0 = TN_NS_PER_S;
	struct dp_owner *here = push(UINT32_MAX, 1, 10, t0), *there = push(3, 1, 20, t0), *got;
	go(t0, &got);
	go(t0, &got);
	CU_ASSERT_EQUAL(dp_admission_next_ns(&adm), UINT64_MAX);
	struct dp_owner *waits = push(3, 1, 1 << 20, t0);
	CU_ASSERT_EQUAL(dp_admission_next_ns(&adm), t0 + STALL_NS);
	dp_admission_resume(&adm, t0 + STALL_NS - 1);
	CU_ASSERT_EQUAL(adm.stalled.owners, 0);
	dp_admission_moved(&adm, 3, t0 + STALL_NS - 1);
	dp_admission_resume(&adm, t0 + STALL_NS);
	CU_ASSERT_EQUAL(adm.stalled.owners, 0);
	struct dp_admission_cfg cfg = adm.cfg;
	cfg.stall_ns = STALL_NS / 2;
	dp_admission_tune(&adm, &cfg);
	dp_admission_resume(&adm, t0 + STALL_NS * 3 / 2);
	CU_ASSERT_EQUAL(adm.stalled.bytes, 20);
	CU_ASSERT_EQUAL(adm.window.bytes, 10); /* this host never stalls */
	CU_ASSERT_EQUAL(dp_admission_next_ns(&adm), UINT64_MAX);
	dp_admission_release(&adm, there); /* nothing is out there: the next one counts again */
	CU_ASSERT_EQUAL(adm.stalled.owners, 0);
	dp_admission_release(&adm, here);
	go(t0 + 2 * STALL_NS, &got);
	CU_ASSERT_PTR_EQUAL(got, waits);
	CU_ASSERT_EQUAL(adm.window.bytes, 1 << 20);
	dp_admission_release(&adm, waits);
	free(here), free(there), free(waits);
	dp_admission_destroy(&adm);
}

/* Larger windows let go at once who waited for them, smaller ones nobody until what is out fits. */
static void test_tune(void)
{
	setup(10, 1 << 20, 1, 1 << 20);
	struct dp_owner *o[4], *got;
	for (uint32_t i = 0; i < 4; i++)
		o[i] = push(1, 1, 10, 1);
	CU_ASSERT_EQUAL(go(1, &got), 1);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 1));
	struct dp_admission_cfg cfg = adm.cfg;
	cfg.peer_window_owners = 3;
	cfg.window_owners = 2;
	dp_admission_tune(&adm, &cfg);
	CU_ASSERT_EQUAL(go(1, &got), 1);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 1)); /* the worker's */
	cfg.window_owners = 20;
	dp_admission_tune(&adm, &cfg);
	CU_ASSERT_EQUAL(go(1, &got), 1);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 1)); /* the peer's */
	cfg.peer_window_owners = 1;
	dp_admission_tune(&adm, &cfg);
	for (uint32_t i = 0; i < 3; i++) {
		CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 1));
		dp_admission_release(&adm, o[i]);
	}
	CU_ASSERT_EQUAL(go(1, &got), 1);
	dp_admission_release(&adm, o[3]);
#if TENT_METRICS
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_G1(DISPATCH_WINDOW_OWNERS, TN_WINDOW_EFFECTIVE).cell]), 20);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_C1(DISPATCH_WINDOW_CHANGES_TOTAL, TN_WINDOW_MOVE_UP).cell]), 1);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_C1(DISPATCH_WINDOW_CHANGES_TOTAL, TN_WINDOW_MOVE_DOWN).cell]), 1);
#endif
	for (uint32_t i = 0; i < 4; i++)
		free(o[i]);
	dp_admission_destroy(&adm);
}

static void test_window_sums(void)
{
	static struct out out[8];
	struct tn_rand r;
	uint64_t now = TN_NS_PER_S;
	tn_rand_seed(&r, 4);
	setup(40, 100000, 12, 40000);
	for (uint32_t step = 0; step < 20000; step++, now += tn_rand_range(&r, 0, STALL_NS / 20)) {
		uint32_t peer = (uint32_t)tn_rand_range(&r, 0, 7);
		struct dp_owner *o;
		switch (tn_rand_range(&r, 0, 4)) {
		case 0:
			if (adm.queued < 200)
				push(peer, (unsigned)tn_rand_range(&r, 0, TN_PRIORITY_CNT - 1), tn_rand_range(&r, 1, 9000), now);
			break;
		case 1:
			dp_admission_moved(&adm, peer, now);
			break;
		case 2:
			if (out[peer].cnt > 0) {
				o = out[peer].of[--out[peer].cnt];
				dp_admission_release(&adm, o);
				free(o);
			}
			break;
		default:
			dp_admission_resume(&adm, now);
			if (go(now, &o) != UINT32_MAX - 1)
				out[o->peer_index].of[out[o->peer_index].cnt++] = o;
		}
		windows_are_sums(out, 8);
	}
	for (uint32_t i = 0; i < 8; i++)
		let_go(&out[i]);
	drain(now);
	CU_ASSERT_EQUAL(adm.queued, 0);
	dp_admission_destroy(&adm);
}

/* The earliest deadline goes first, also when that is asked for, or not any more, while they wait. */
static void test_earliest_first(void)
{
	static const uint64_t deadline[] = { 50, 10, 40, 20, 30, 10 };
	static const unsigned by_deadline[] = { 1, 5, 3, 4, 2, 0 };
	struct dp_owner *o[6], *got;
	setup(100, 1 << 20, 100, 1 << 20);
	for (unsigned round = 0; round < 3; round++) { /* asked for before, meanwhile, and taken back meanwhile */
		struct dp_admission_cfg cfg = adm.cfg;
		cfg.edf = round != 1;
		dp_admission_tune(&adm, &cfg);
		for (unsigned i = 0; i < 6; i++) {
			o[i] = calloc(1, sizeof *o[i]);
			tn_list_init(&o[i]->link);
			o[i]->peer_index = 1;
			o[i]->bytes = 10 + i;
			o[i]->owner_id = 100 + i;
			o[i]->deadline_ns = deadline[i];
			dp_admission_push(&adm, o[i], 1, false);
		}
		cfg.edf = round != 2;
		dp_admission_tune(&adm, &cfg);
		for (unsigned i = 0; i < 6; i++) {
			unsigned next = cfg.edf ? by_deadline[i] : i;
			CU_ASSERT_EQUAL(go(2, &got), 1);
			CU_ASSERT_PTR_EQUAL_FATAL(got, o[next]);
			dp_admission_release(&adm, got);
			free(got);
		}
		CU_ASSERT_PTR_NULL(dp_admission_next(&adm, 3));
	}
	dp_admission_destroy(&adm);
}

/* Held, dropped and put back at the front while the order is that of deadlines. */
static void test_earliest_first_drops(void)
{
	setup(10, 1 << 20, 10, 1 << 20);
	struct dp_admission_cfg cfg = adm.cfg;
	cfg.edf = true;
	dp_admission_tune(&adm, &cfg);
	struct dp_owner *late = push(1, 1, 10, 1), *mid = push(1, 1, 10, 1), *first = push(1, 1, 10, 1), *got;
	CU_ASSERT_PTR_EQUAL(dp_admission_next(&adm, 2), first);
	dp_admission_defer(&adm, first);
	dp_admission_drop(&adm, first, 3, TN_ADMISSION_END_DEADLINE_DROP);
	dp_admission_resume(&adm, 4);
	CU_ASSERT_EQUAL(go(4, &got), 1);
	CU_ASSERT_PTR_EQUAL(got, mid);
	dp_admission_release(&adm, mid);
	dp_admission_push(&adm, mid, 5, true);
	dp_admission_push(&adm, first, 5, false);
	CU_ASSERT_PTR_EQUAL(dp_admission_next(&adm, 5), first);
	dp_admission_drop(&adm, late, 5, TN_ADMISSION_END_CANCEL); /* from the middle */
	for (unsigned i = 0; i < 2; i++) {
		go(6, &got);
		CU_ASSERT_PTR_EQUAL(got, i == 0 ? first : mid);
		dp_admission_release(&adm, got);
	}
	equation();
	CU_ASSERT_EQUAL(adm.queued, 0);
	free(late), free(mid), free(first);
	dp_admission_destroy(&adm);
}

/* Owners that tent makes for itself are counted apart, by the same rules. */
static void test_owner_kinds(void)
{
	setup(10, 1 << 20, 10, 1 << 20);
	struct dp_owner *user = push(1, 1, 10, 1), *got;
	struct dp_owner inner[3] = { 0 };
	for (unsigned i = 0; i < 3; i++) {
		inner[i] = (struct dp_owner){ .peer_index = 2, .priority = 1, .bytes = 7, .kind = TN_OWNER_KIND_STAGING_INTERNAL };
		tn_list_init(&inner[i].link);
		dp_admission_push(&adm, &inner[i], 1, false);
	}
	dp_admission_drop(&adm, &inner[2], 2, TN_ADMISSION_END_DEADLINE_DROP);
	dp_admission_defer(&adm, &inner[0]);
	dp_admission_resume(&adm, 3);
	CU_ASSERT_EQUAL(go(3, &got) + go(3, &got), 3); /* one of each */
	dp_admission_reject(&adm, TN_OWNER_KIND_STAGING_INTERNAL);
	dp_tally_flush(&tally);
#if TENT_METRICS
	static const uint64_t want[] = { [TN_ADMISSION_ADMIT] = 3, [TN_ADMISSION_REJECT] = 1, [TN_ADMISSION_DISPATCH] = 1,
					 [TN_ADMISSION_DEFER] = 1, [TN_ADMISSION_DEADLINE_DROP] = 1, [TN_ADMISSION_CANCEL] = 0 };
	unsigned kind = TN_OWNER_KIND_STAGING_INTERNAL;
	for (unsigned e = 0; e < TN_ADMISSION_CNT; e++)
		CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_C2(ADMISSION_EVENTS_TOTAL, kind, e).cell]), want[e]);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_G1(ADMISSION_QUEUED_OWNERS, kind).cell]), 1);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_G1(ADMISSION_OUTSTANDING_BYTES, kind).cell]), 7);
	CU_ASSERT_EQUAL(event(TN_ADMISSION_ADMIT), 1);
	CU_ASSERT_EQUAL(event(TN_ADMISSION_DISPATCH), 1);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_G1(ADMISSION_OUTSTANDING_OWNERS, TN_OWNER_KIND_USER).cell]), 1);
#endif
	dp_admission_release(&adm, user);
	dp_admission_release(&adm, &inner[0]);
	go(4, &got);
	CU_ASSERT_PTR_EQUAL(got, &inner[1]);
	dp_admission_release(&adm, got);
	dp_tally_flush(&tally);
#if TENT_METRICS
	CU_ASSERT_EQUAL(tn_load_relaxed64(&cells[TN_G1(ADMISSION_OUTSTANDING_BYTES, kind).cell]), 0);
#endif
	free(user);
	dp_admission_destroy(&adm);
}

/* What fills the windows is of the lowest class: the highest one goes in its own part, at the same peer and at another one,
 * and takes nothing from who waits for the rest. */
static void test_express(void)
{
	setup(100, 1000, 100, 1000);
	uint64_t now = TN_NS_PER_S;
	struct dp_owner *low[2], *high[4], *got;
	low[0] = push(1, TN_PRIORITY_LOW, 1000, now);
	CU_ASSERT_EQUAL(go(now, &got), 1); /* both windows are full */
	low[1] = push(1, TN_PRIORITY_LOW, 1000, now);
	struct dp_owner *medium = push(2, TN_PRIORITY_MEDIUM, 50, now);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, now));
	high[0] = push(1, TN_PRIORITY_HIGH, 60, now);
	high[1] = push(2, TN_PRIORITY_HIGH, 60, now);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_TRUE(go(now, &got) <= 2 && got && got->priority == TN_PRIORITY_HIGH);
		now += DP_ADMISSION_AGE_NS; /* the others age meanwhile: they do not fit all the same */
	}
	high[2] = push(1, TN_PRIORITY_HIGH, 60, now); /* an eighth is 125 */
	high[3] = push(3, TN_PRIORITY_HIGH, 60, now);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, now));
	CU_ASSERT(adm.window.bytes == 1000 && adm.express.bytes == 120);
	for (unsigned i = 0; i < 2; i++) { /* one by one */
		dp_admission_release(&adm, high[i]);
		CU_ASSERT_TRUE(go(now, &got) != UINT32_MAX - 1 && (got == high[2] || got == high[3]));
		CU_ASSERT_PTR_NULL(dp_admission_next(&adm, now));
	}
	/* Urgent ones are out all the time, and the others go as soon as there is room for them without those. */
	dp_admission_release(&adm, low[0]);
	CU_ASSERT(go(now, &got) != UINT32_MAX - 1 && adm.express.bytes == 120);
	dp_admission_release(&adm, got);
	CU_ASSERT(go(now, &got) != UINT32_MAX - 1 && adm.express.bytes == 120);
	dp_admission_release(&adm, got);
	CU_ASSERT(adm.queued == 0 && adm.window.owners == 0);
	dp_admission_release(&adm, high[2]);
	dp_admission_release(&adm, high[3]);
	CU_ASSERT_EQUAL(dp_admission_out_owners(&adm), 0);
	dp_admission_destroy(&adm);
	free(low[0]), free(low[1]), free(medium);
	for (unsigned i = 0; i < 4; i++)
		free(high[i]);
}

/* What is out in the highest class's part leaves the worker's account with the rest when the peer falls silent. */
static void test_express_stalls(void)
{
	setup(100, 1000, 100, 1000);
	uint64_t now = TN_NS_PER_S;
	struct dp_owner *a = push(1, TN_PRIORITY_HIGH, 100, now), *b = push(1, TN_PRIORITY_LOW, 300, now), *got;
	struct dp_owner *c = push(2, TN_PRIORITY_HIGH, 100, now);
	CU_ASSERT_EQUAL(go(now, &got), 1);
	CU_ASSERT_EQUAL(adm.express.bytes, 100);
	CU_ASSERT_EQUAL(go(now, &got), 2); /* 125 are not enough for both: as anybody */
	CU_ASSERT_EQUAL(go(now, &got), 1);
	CU_ASSERT(adm.express.bytes == 100 && adm.window.bytes == 400);
	dp_admission_moved(&adm, 2, now + STALL_NS);
	dp_admission_resume(&adm, now + STALL_NS);
	CU_ASSERT(adm.express.bytes == 0 && adm.window.bytes == 100 && adm.stalled.bytes == 400);
	dp_admission_release(&adm, a);
	CU_ASSERT(adm.express.bytes == 0 && adm.stalled.bytes == 300);
	dp_admission_moved(&adm, 1, now + STALL_NS);
	CU_ASSERT(adm.stalled.bytes == 0 && adm.window.bytes == 400);
	dp_admission_release(&adm, b);
	dp_admission_release(&adm, c);
	CU_ASSERT_EQUAL(dp_admission_out_bytes(&adm), 0);
	free(a), free(b), free(c);
	dp_admission_destroy(&adm);
}

/* Targets 1 and 2 have full windows, 1 and 3 have the highest class's part of the worker's: an urgent owner of 2 waits. */
static void fill_express(struct dp_owner *out[4], uint64_t now)
{
	struct dp_owner *got;
	setup(100, 1000, 100, 500);
	out[0] = push(1, TN_PRIORITY_LOW, 500, now);
	out[1] = push(2, TN_PRIORITY_LOW, 500, now);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_NOT_EQUAL(go(now, &got), UINT32_MAX - 1);
	out[2] = push(1, TN_PRIORITY_HIGH, 60, now);
	out[3] = push(3, TN_PRIORITY_HIGH, 60, now);
	for (unsigned i = 0; i < 2; i++)
		CU_ASSERT_NOT_EQUAL(go(now, &got), UINT32_MAX - 1);
	CU_ASSERT_EQUAL(adm.express.bytes, 120); /* of 125 */
}

static void release_all(struct dp_owner *const owner[], unsigned cnt)
{
	for (unsigned i = 0; i < cnt; i++) {
		dp_admission_release(&adm, owner[i]);
		free(owner[i]);
	}
	CU_ASSERT_EQUAL(dp_admission_out_owners(&adm), 0);
	dp_admission_destroy(&adm);
}

/* What a peer gives back when it falls silent goes to who waits for it. */
static void test_express_of_the_silent(void)
{
	uint64_t now = TN_NS_PER_S;
	struct dp_owner *o[5], *got;
	fill_express(o, now);
	o[4] = push(2, TN_PRIORITY_HIGH, 60, now);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, now));
	dp_admission_moved(&adm, 1, now + STALL_NS);
	dp_admission_moved(&adm, 2, now + STALL_NS);
	dp_admission_resume(&adm, now + STALL_NS);
	CU_ASSERT_TRUE(go(now + STALL_NS, &got) == 2 && got == o[4]);
	release_all(o, 5);
}

/* Who waited and has nothing urgent any more does not take the turn of who has. */
static void test_express_no_longer_wanted(void)
{
	uint64_t now = TN_NS_PER_S;
	struct dp_owner *o[7], *got, *gone, *bulk;
	setup(100, 1500, 100, 500);
	for (unsigned i = 0; i < 3; i++)
		o[i] = push(2 * i + 1, TN_PRIORITY_LOW, 500, now); /* 1, 3 and 5 are full, and the worker */
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_NOT_EQUAL(go(now, &got), UINT32_MAX - 1);
	for (unsigned i = 0; i < 3; i++)
		o[3 + i] = push(2 * i + 2, TN_PRIORITY_HIGH, 60, now); /* and the highest class's part: 180 of 187 */
	for (unsigned i = 0; i < 3; i++)
		CU_ASSERT_NOT_EQUAL(go(now, &got), UINT32_MAX - 1);
	gone = push(1, TN_PRIORITY_HIGH, 60, now);
	bulk = push(1, TN_PRIORITY_LOW, 60, now);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, now));
	o[6] = push(3, TN_PRIORITY_HIGH, 60, now);
	CU_ASSERT_PTR_NULL(dp_admission_next(&adm, now));
	dp_admission_drop(&adm, gone, now, TN_ADMISSION_END_CANCEL);
	dp_admission_release(&adm, o[3]);
	free(o[3]);
	CU_ASSERT_TRUE(go(now, &got) == 3 && got == o[6]);
	dp_admission_drop(&adm, bulk, now, TN_ADMISSION_END_CANCEL);
	free(gone), free(bulk);
	o[3] = o[6];
	release_all(o, 6);
}

TN_TEST_MAIN("queue",
	{ "random drops leave nothing behind", test_random_drops },
	{ "first in first out within a window", test_fifo_and_window },
	{ "an oversized owner waits until it can go alone", test_oversized },
	{ "a full peer window stops only that peer", test_slow_peer },
	{ "targets share by bytes", test_fair_shares },
	{ "strict priority with ageing", test_priority_and_age },
	{ "defer, drop while held, return to the front", test_defer_drop_front },
	{ "targets that wait for room ask one by one", test_room },
	{ "four dead peers with full windows leave a fifth 95 %", test_dead_peers },
	{ "silence is measured from the last answer", test_stall_time },
	{ "windows change while they are used", test_tune },
	{ "windows are sums over owners, whatever happens", test_window_sums },
	{ "the earliest deadline first, where asked for", test_earliest_first },
	{ "the earliest deadline first beside drops", test_earliest_first_drops },
	{ "each kind of owner is counted apart", test_owner_kinds },
	{ "the highest class does not wait for bulk", test_express },
	{ "the part of the highest class at a silent peer", test_express_stalls },
	{ "what a silent peer gives back is used", test_express_of_the_silent },
	{ "a turn is for who has something urgent", test_express_no_longer_wanted },
)
