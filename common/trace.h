/* SPDX-License-Identifier: Apache-2.0
 * Head sampling and span retention: one pure rule for data plane, simulator and tests. A trace id decides by itself,
 * so every process that sees it decides alike. Any thread. */
#ifndef TN_TRACE_H
#define TN_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"

#define TN_TRACE_PPM_MAX 1000000u

/* Why a completed span is kept; NONE = it is not. Values travel in shr_event_shm.retention. */
#define TN_RETENTION_LIST(X) \
	X(NONE, none) X(HEAD_SAMPLED, head_sampled) X(SLOW, slow) X(ERROR, error) X(TIMEOUT, timeout) \
	X(LINKED_CHILD, linked_child)
enum tn_retention {
#define X(n, s) TN_RETENTION_##n,
	TN_RETENTION_LIST(X)
#undef X
	TN_RETENTION_CNT
};

/* True for ppm in a million of all trace ids (hi, lo), always the same ones; a larger ppm keeps what a smaller kept.
 * 0 keeps none, TN_TRACE_PPM_MAX and above all. The mix is needed because ids that applications pass may be counters. */
TN_INLINE bool tn_trace_sampled(uint64_t trace_hi, uint64_t trace_lo, uint32_t ppm)
{
	uint64_t h = trace_hi * UINT64_C(0x9e3779b97f4a7c15) ^ trace_lo;
	h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
	h = (h ^ h >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
	h ^= h >> 33;
	return (h >> 32) * TN_TRACE_PPM_MAX >> 32 < ppm;
}

/* Retention of one completed span. outcome_timeout, outcome_bad: the span ended timeout, or failed or canceled.
 * slow_ns 0 = the slow rule is off. The strongest reason wins: timeout, error, slow, head_sampled. A root whose child
 * was kept and that has no reason of its own is kept as TN_RETENTION_LINKED_CHILD by the caller. */
TN_INLINE enum tn_retention tn_trace_retention(bool outcome_timeout, bool outcome_bad, uint64_t duration_ns,
					       uint64_t slow_ns, bool sampled)
{
	if (outcome_timeout)
		return TN_RETENTION_TIMEOUT;
	if (outcome_bad)
		return TN_RETENTION_ERROR;
	if (slow_ns && duration_ns >= slow_ns)
		return TN_RETENTION_SLOW;
	return sampled ? TN_RETENTION_HEAD_SAMPLED : TN_RETENTION_NONE;
}

#endif
