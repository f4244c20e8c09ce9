/* SPDX-License-Identifier: Apache-2.0
 * The heap of deadlines and the estimate of a target's rate. Pure. */
#include "dataplane/admission/deadline.h"

#include "common/bits.h"

#define NS_PER_S 1e9
#define NS_LONG 1e18 /* longer than anybody waits */
/* Of a new sample in the estimate: one in ... */
#define RATE_WEIGHT 8

/* ---- earliest deadline first ---- */

static bool before(const struct dp_owner *a, const struct dp_owner *b)
{
	return a->deadline_ns != b->deadline_ns ? a->deadline_ns < b->deadline_ns : a->owner_id < b->owner_id;
}

/* Two roots become one: the later one is the first child of the earlier one. */
static struct dp_owner *meld(struct dp_owner *a, struct dp_owner *b)
{
	if (!a || !b)
		return a ? a : b;
	if (before(b, a)) {
		struct dp_owner *t = a;
		a = b;
		b = t;
	}
	b->edf.next = a->edf.child;
	b->edf.prev = a;
	if (a->edf.child)
		a->edf.child->edf.prev = b;
	a->edf.child = b;
	a->edf.next = a->edf.prev = NULL;
	return a;
}

/* One root from a list of siblings: pairs from the left, then these from the right. */
static struct dp_owner *meld_all(struct dp_owner *first)
{
	struct dp_owner *pairs = NULL, *root = NULL;
	while (first) {
		struct dp_owner *a = first, *b = a->edf.next;
		first = b ? b->edf.next : NULL;
		a = meld(a, b);
		a->edf.next = pairs;
		pairs = a;
	}
	while (pairs) {
		struct dp_owner *a = pairs;
		pairs = a->edf.next;
		root = meld(root, a);
	}
	return root;
}

void dp_edf_push(struct dp_edf *h, struct dp_owner *o)
{
	o->edf = (struct dp_edf_node){ 0 };
	h->root = meld(h->root, o);
}

void dp_edf_remove(struct dp_edf *h, struct dp_owner *o)
{
	struct dp_owner *below = meld_all(o->edf.child), *prev = o->edf.prev;
	if (o == h->root) {
		h->root = below;
	} else {
		if (prev->edf.child == o)
			prev->edf.child = o->edf.next;
		else
			prev->edf.next = o->edf.next;
		if (o->edf.next)
			o->edf.next->edf.prev = prev;
		h->root = meld(h->root, below);
	}
	if (h->root)
		h->root->edf.next = h->root->edf.prev = NULL;
	o->edf = (struct dp_edf_node){ 0 };
}

/* ---- feasibility ---- */

void dp_rate_feed(struct dp_rate *r, uint64_t bytes, uint64_t took_ns, uint64_t now_ns)
{
	uint64_t sample = (uint64_t)((double)bytes * NS_PER_S / (double)took_ns);
	if (r->bytes_per_s == 0)
		r->bytes_per_s = sample;
	else if (sample > r->bytes_per_s)
		r->bytes_per_s += (sample - r->bytes_per_s) / RATE_WEIGHT;
	else
		r->bytes_per_s -= (r->bytes_per_s - sample) / RATE_WEIGHT;
	r->at_ns = now_ns;
}

void dp_rate_served(struct dp_rate *r, uint64_t bytes, uint64_t began_ns, uint64_t now_ns)
{
	if (bytes < DP_RATE_OWNER_BYTES)
		return;
	r->busy_ns += now_ns - TN_MIN(now_ns, TN_MAX(began_ns, r->end_ns));
	r->bytes += bytes;
	r->end_ns = now_ns;
	if (r->bytes < DP_RATE_SAMPLE_BYTES || r->busy_ns == 0)
		return;
	dp_rate_feed(r, r->bytes, r->busy_ns, now_ns);
	r->bytes = r->busy_ns = 0;
}

uint32_t dp_rate_permille(const struct dp_rate *r, uint64_t bytes, uint64_t left_ns, uint64_t now_ns)
{
	if (r->bytes_per_s == 0 || now_ns - r->at_ns > DP_RATE_FRESH_NS)
		return 0;
	double need_ns = (double)bytes * NS_PER_S / (double)r->bytes_per_s;
	return need_ns < NS_LONG ? tn_permille((uint64_t)need_ns, left_ns) : UINT16_MAX;
}
