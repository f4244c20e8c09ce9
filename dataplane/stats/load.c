/* SPDX-License-Identifier: Apache-2.0
 * Loads of targets: memory, failures, and the reader's side. */
#include "dataplane/stats/load.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t bytes_of(uint32_t cnt) { return (size_t)cnt * sizeof(struct dp_load); }

tn_status dp_loads_init(struct dp_loads *l, uint32_t peer_cap)
{
	void *p = mmap(NULL, bytes_of(peer_cap + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return TN_NO_MEMORY;
	*l = (struct dp_loads){ .of = p, .cnt = peer_cap + 1 };
	return TN_OK;
}

void dp_loads_destroy(struct dp_loads *l)
{
	if (l->of)
		munmap(l->of, bytes_of(l->cnt));
	*l = (struct dp_loads){ .of = NULL };
}

/* status (32) | transport | phase | reason: one word, so that a reader never mixes two failures. */
static uint64_t pack(tn_status status, uint8_t transport, uint8_t phase, uint8_t reason)
{
	return (uint64_t)(uint32_t)status << 32 | (uint64_t)transport << 16 | (uint64_t)phase << 8 | reason;
}

void dp_load_ended(struct dp_load *d, uint64_t bytes, bool canceled, tn_status status, uint8_t transport, uint8_t phase,
		   uint8_t reason, uint64_t now_ns)
{
	tn_count64(&d->out_cnt, 1);
	tn_count64(&d->lost_bytes, bytes);
	if (canceled)
		return;
	tn_count64(&d->failed_cnt, 1);
	tn_store_relaxed64(&d->failure, pack(status, transport, phase, reason));
	tn_store_relaxed64(&d->failure_ns, now_ns);
}

void dp_load_add(const struct dp_loads *l, uint32_t peer_index, struct dp_load_sum *sum)
{
	if (peer_index + 1u >= l->cnt)
		return;
	const struct dp_load *d = dp_load_of(l, peer_index);
	/* Ended before entered: a request between the two reads makes one more in flight, never less than none. */
	sum->out_cnt += tn_load_relaxed64(&d->out_cnt);
	for (unsigned op = 0; op < TN_OP_CNT; op++)
		sum->moved[op] += tn_load_relaxed64(&d->moved[op]);
	sum->lost_bytes += tn_load_relaxed64(&d->lost_bytes);
	sum->failed_cnt += tn_load_relaxed64(&d->failed_cnt);
	for (unsigned b = 0; b <= TN_BUCKETS_LATENCY_CNT; b++)
		sum->latency[b] += tn_load_relaxed32(&d->latency[b]);
	sum->in_cnt += tn_load_relaxed64(&d->in_cnt);
	sum->in_bytes += tn_load_relaxed64(&d->in_bytes);
	uint64_t failure_ns = tn_load_relaxed64(&d->failure_ns), failure = tn_load_relaxed64(&d->failure);
	if (failure_ns <= sum->failure_ns)
		return;
	sum->failure_ns = failure_ns;
	sum->failure_status = (tn_status)(int32_t)(failure >> 32);
	sum->failure_transport = (uint8_t)(failure >> 16);
	sum->failure_phase = (uint8_t)(failure >> 8);
	sum->failure_reason = (uint8_t)failure;
}
