/* SPDX-License-Identifier: Apache-2.0
 * Deficit round robin: shares by bytes, whatever the sizes; large heads get through; an idle flow saves nothing up; round
 * by round the calendar lets go what a plain walk over all flows would. */
#include "dataplane/admission/drr.h"

#include <stdlib.h>

#include "common/rand.h"
#include "tests/unit/cu.h"

#define QUANTUM 1000u

static void test_one_flow(void)
{
	struct dp_drr d;
	struct dp_drr_flow f;
	dp_drr_init(&d, QUANTUM);
	dp_drr_flow_init(&f);
	CU_ASSERT_PTR_NULL(dp_drr_pick(&d));
	dp_drr_run(&d, &f, 123456);
	dp_drr_run(&d, &f, 123456);
	for (int i = 0; i < 10; i++) {
		CU_ASSERT_PTR_EQUAL(dp_drr_pick(&d), &f);
		dp_drr_charge(&f);
		CU_ASSERT(f.deficit < QUANTUM);
	}
	dp_drr_stop(&d, &f, false);
	CU_ASSERT_PTR_NULL(dp_drr_pick(&d));
	CU_ASSERT_EQUAL(f.deficit, 0);
}

/* Three flows with heads of 100, 1000 and 7777 bytes must move the same number of bytes. */
static void test_equal_bytes(void)
{
	static const uint64_t cost[] = { 100, 1000, 7777 };
	struct dp_drr d;
	struct dp_drr_flow f[3];
	uint64_t sent[3] = { 0 };
	dp_drr_init(&d, QUANTUM);
	for (int i = 0; i < 3; i++) {
		dp_drr_flow_init(&f[i]);
		dp_drr_run(&d, &f[i], cost[i]);
	}
	for (int i = 0; i < 100000; i++) {
		struct dp_drr_flow *p = dp_drr_pick(&d);
		sent[p - f] += p->cost;
		dp_drr_charge(p);
		/* At any moment no flow is more than a head and a few quanta ahead of another. */
		for (int a = 0; a < 3; a++)
			for (int b = 0; b < 3; b++)
				CU_ASSERT_FATAL(sent[a] <= sent[b] + 2 * 7777 + 4 * QUANTUM);
	}
}

static void test_stopped_flow(void)
{
	struct dp_drr d;
	struct dp_drr_flow a, b;
	dp_drr_init(&d, QUANTUM);
	dp_drr_flow_init(&a);
	dp_drr_flow_init(&b);
	dp_drr_run(&d, &a, 600);
	dp_drr_run(&d, &b, 600);
	CU_ASSERT_PTR_NOT_NULL(dp_drr_pick(&d));
	dp_drr_stop(&d, &b, true); /* held: keeps what it had, gets no more */
	uint64_t saved = b.deficit;
	CU_ASSERT_EQUAL(saved, QUANTUM);
	for (int i = 0; i < 50; i++)
		dp_drr_charge(dp_drr_pick(&d));
	CU_ASSERT_EQUAL(b.deficit, saved);
	dp_drr_stop(&d, &b, false); /* empty: loses it */
	CU_ASSERT_EQUAL(b.deficit, 0);
	dp_drr_run(&d, &b, 600);
	bool seen = false;
	for (int i = 0; i < 5; i++) {
		struct dp_drr_flow *p = dp_drr_pick(&d);
		seen |= p == &b;
		dp_drr_charge(p);
	}
	CU_ASSERT_TRUE(seen);
}

static void test_zero_quantum(void)
{
	struct dp_drr d;
	struct dp_drr_flow f;
	dp_drr_init(&d, 0);
	dp_drr_flow_init(&f);
	dp_drr_run(&d, &f, UINT64_C(1) << 20);
	CU_ASSERT_PTR_EQUAL(dp_drr_pick(&d), &f);
}

/* ---- the same by a walk over all flows ---- */

struct walk_flow { uint64_t cost, deficit; bool inside; };
struct walk { struct walk_flow *ring[64]; uint32_t cnt; uint64_t rounds; };

static void walk_out(struct walk *w, struct walk_flow *f)
{
	for (uint32_t i = 0, n = 0; i < w->cnt; i++)
		if (w->ring[i] != f)
			w->ring[n++] = w->ring[i];
	w->cnt -= f->inside;
	f->inside = false;
}

static void walk_in(struct walk *w, struct walk_flow *f)
{
	if (!f->inside)
		w->ring[w->cnt++] = f;
	f->inside = true;
}

/* Nobody can send: everybody gets a quantum, as often as it takes. */
static struct walk_flow *walk_pick(struct walk *w)
{
	for (;;) {
		for (uint32_t i = 0; i < w->cnt; i++)
			if (w->ring[i]->deficit >= w->ring[i]->cost)
				return w->ring[i];
		if (w->cnt == 0)
			return NULL;
		for (uint32_t i = 0; i < w->cnt; i++)
			w->ring[i]->deficit += QUANTUM;
		w->rounds++;
	}
}

/* What the n-th head of a flow costs: mostly a few quanta, sometimes more than the calendar sees ahead. */
static uint64_t head_cost(uint32_t flow, uint64_t n)
{
	struct tn_rand r;
	tn_rand_seed(&r, flow * UINT64_C(1000003) + n);
	uint64_t most = tn_rand_range(&r, 1, 100) == 1 ? QUANTUM * DP_DRR_BUCKETS * 3 : QUANTUM * 4;
	return tn_rand_range(&r, 1, most);
}

struct pair { struct dp_drr d; struct walk w; struct dp_drr_flow f[64]; struct walk_flow g[64]; uint64_t sent[64], walk_sent[64]; };

/* Both send all that this round allows. False: nobody can send. */
static bool one_round(struct pair *p)
{
	struct dp_drr_flow *f = dp_drr_pick(&p->d);
	struct walk_flow *g = walk_pick(&p->w);
	CU_ASSERT_EQUAL_FATAL(f == NULL, g == NULL);
	if (!f)
		return false;
	CU_ASSERT_EQUAL_FATAL(p->d.round, p->w.rounds);
	for (uint64_t now = p->d.round; p->d.round == now; f = dp_drr_pick(&p->d)) {
		uint32_t i = (uint32_t)(f - p->f);
		dp_drr_charge(f);
		dp_drr_run(&p->d, f, head_cost(i, ++p->sent[i]));
	}
	for (uint64_t now = p->w.rounds; p->w.rounds == now; g = walk_pick(&p->w)) {
		uint32_t i = (uint32_t)(g - p->g);
		g->deficit -= g->cost;
		g->cost = head_cost(i, ++p->walk_sent[i]);
	}
	return true;
}

static void compare(const struct pair *p)
{
	CU_ASSERT_EQUAL_FATAL(p->d.runnable, p->w.cnt);
	for (uint32_t i = 0; i < 64; i++) {
		uint64_t later = tn_list_linked(&p->f[i].link) ? (p->d.round - p->f[i].since) * QUANTUM : 0;
		CU_ASSERT_EQUAL_FATAL(p->sent[i], p->walk_sent[i]);
		CU_ASSERT_EQUAL_FATAL(p->f[i].deficit + later, p->g[i].deficit);
	}
}

/* Flows come, are held, get empty and get a cheaper or dearer head. */
static void shake(struct pair *p, struct tn_rand *r)
{
	uint32_t i = (uint32_t)tn_rand_range(r, 0, 63);
	uint64_t cost = head_cost(i, tn_rand_range(r, 0, 1000000));
	switch (tn_rand_range(r, 0, 4)) {
	case 0:
	case 1:
		dp_drr_run(&p->d, &p->f[i], cost);
		p->g[i].cost = cost;
		walk_in(&p->w, &p->g[i]);
		break;
	case 2:
		dp_drr_stop(&p->d, &p->f[i], true);
		walk_out(&p->w, &p->g[i]);
		break;
	case 3:
		dp_drr_stop(&p->d, &p->f[i], false);
		walk_out(&p->w, &p->g[i]);
		p->g[i].deficit = 0;
		break;
	default:
		break;
	}
}

static void test_random_histories(void)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct pair *p = calloc(1, sizeof *p);
		struct tn_rand r;
		tn_rand_seed(&r, seed);
		dp_drr_init(&p->d, QUANTUM);
		for (uint32_t i = 0; i < 64; i++)
			dp_drr_flow_init(&p->f[i]);
		for (uint32_t step = 0; step < 500; step++) {
			for (uint64_t n = tn_rand_range(&r, 0, 6); n > 0; n--)
				shake(p, &r);
			compare(p);
			(void)one_round(p);
			compare(p);
		}
		free(p);
	}
}

TN_TEST_MAIN("drr",
	{ "a single flow always goes", test_one_flow },
	{ "bytes are shared equally, sizes do not matter", test_equal_bytes },
	{ "held flows keep their deficit, empty ones lose it", test_stopped_flow },
	{ "a quantum of 0 still makes progress", test_zero_quantum },
	{ "random histories, round by round as a walk over all flows", test_random_histories },
)
