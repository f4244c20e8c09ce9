/* SPDX-License-Identifier: Apache-2.0
 * The metric table as data and as a recording API. Cells are one dense array of u64 per writer (a worker's block of
 * the telemetry region, or the control plane's own array): base of the family + mixed-radix label index, all computed
 * at compile time from common/metrics.def. One writer per cell, relaxed stores; nothing here locks or allocates.
 *
 *   tn_counter_add(m, TN_C1(LOGICAL_REQUESTS_STARTED_TOTAL, op), 1);
 *   tn_gauge_add(m, TN_G1(LOGICAL_REQUESTS_INFLIGHT, op), +1);
 *   tn_hist_observe(m, TN_H2(TRANSPORT_ATTEMPT_LATENCY_US, transport, op), duration_ns);
 *
 * The digit is the number of labels; a wrong type or digit does not compile. Families in *_us take nanoseconds. A
 * function that counts several things copies its handle first (`const struct tn_metrics m = *handle;`): the compiler
 * cannot know that a cell is not the handle, and reloads its pointers after every add. */
#ifndef TN_METRICS_H
#define TN_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/assert.h"
#include "common/atomic.h"
#include "common/compiler.h"
#include "common/metrics_domains.h"

#ifndef TENT_METRICS
#define TENT_METRICS 1
#endif

/* Upper bounds of the buckets, in the unit of the cell (latency: ns); +Inf follows by itself. tn_bucket() compares once
 * per bound that may share an octave [2^k, 2^(k+1)): one, except DEADLINE with three. */
#define TN_BUCKETS_LATENCY \
	1000u, 2000u, 5000u, 10000u, 20000u, 50000u, 100000u, 200000u, 500000u, 1000000u, 2000000u, 5000000u, 10000000u, \
	20000000u, 50000000u, 100000000u, 200000000u, 500000000u, 1000000000u, 5000000000u
#define TN_BUCKETS_SIZE \
	1024u, 4096u, 16384u, 65536u, 262144u, 1048576u, 4194304u, 16777216u, 67108864u, 268435456u, 1073741824u
#define TN_BUCKETS_DEADLINE 100u, 250u, 500u, 750u, 900u, 1000u, 1250u, 1500u, 2000u, 5000u
#define TN_BUCKETS_SEGMENTS 1u, 2u, 5u, 10u, 20u, 50u, 100u, 200u, 500u, 1000u, 2000u, 5000u, 10000u
enum {
	TN_BUCKETS_LATENCY_CNT = 20,
	TN_BUCKETS_SIZE_CNT = 11,
	TN_BUCKETS_DEADLINE_CNT = 10,
	TN_BUCKETS_SEGMENTS_CNT = 13,
	TN_BUCKETS_MAX = 20,
};

enum tn_metric_type {
	TN_MTYPE_COUNTER, TN_MTYPE_GAUGE, TN_MTYPE_LATENCY, TN_MTYPE_SIZE, TN_MTYPE_DEADLINE, TN_MTYPE_SEGMENTS,
};
#define TN_MTYPE_IS_HIST(type) ((type) >= TN_MTYPE_LATENCY)
enum tn_metric_unit { TN_UNIT_COUNT, TN_UNIT_BYTES, TN_UNIT_PERMILLE, TN_UNIT_NS_US, TN_UNIT_NS_S, TN_UNIT_MONO_S };
enum tn_metric_owner { TN_OWNER_DP, TN_OWNER_CP };
enum tn_metric_agg { TN_AGG_SUM, TN_AGG_MIN, TN_AGG_MAX };
enum { TN_REC_SWITCHED = 0, TN_REC_ALWAYS = 1 };
enum { TN_METRIC_SECTION_PIPELINE = 1, TN_METRIC_SECTION_PROCESS = 9, TN_METRIC_LABELS_MAX = 3 };

/* Cells of one series: a histogram has its buckets, +Inf and the sum; the count is the sum of the buckets, so that a
 * reader can never see the two disagree. */
enum {
	TN_MWIDTH_COUNTER = 1, TN_MWIDTH_GAUGE = 1,
	TN_MWIDTH_LATENCY = TN_BUCKETS_LATENCY_CNT + 2, TN_MWIDTH_SIZE = TN_BUCKETS_SIZE_CNT + 2,
	TN_MWIDTH_DEADLINE = TN_BUCKETS_DEADLINE_CNT + 2, TN_MWIDTH_SEGMENTS = TN_BUCKETS_SEGMENTS_CNT + 2,
};

/* Domain numbers; NONE is the absent label, with one value. */
enum tn_metric_domain {
	TN_DOMAIN_NONE,
#define X(D) TN_DOMAIN_##D,
	TN_METRICS_SHARED_DOMAIN_LIST(X) TN_METRICS_OWN_DOMAIN_LIST(X)
#undef X
	TN_DOMAIN_CNT
};
enum { TN_NONE_CNT = 1 };

#define TN_L0 , NONE, , NONE, , NONE
#define TN_L1(k0, D0) k0, D0, , NONE, , NONE
#define TN_L2(k0, D0, k1, D1) k0, D0, k1, D1, , NONE
#define TN_L3(k0, D0, k1, D1, k2, D2) k0, D0, k1, D1, k2, D2

/* Families: TN_M_<ID>. */
enum tn_metric {
#define M(sec, ID, ...) TN_M_##ID,
#include "common/metrics.def"
#undef M
	TN_M_CNT
};

/* Numbers of one family: radices TN_MN0..2_<ID>, width, type, recording; then bases, each after the last cell. */
#define TN_MNUM_(ID, ...) TN_MNUM_I(ID, __VA_ARGS__)
#define TN_MNUM_I(ID, k0, D0, k1, D1, k2, D2) \
	TN_MN0_##ID = (int)TN_##D0##_CNT, TN_MN1_##ID = (int)TN_##D1##_CNT, TN_MN2_##ID = (int)TN_##D2##_CNT, \
	TN_MLABELS_##ID = (TN_DOMAIN_##D0 != TN_DOMAIN_NONE) + (TN_DOMAIN_##D1 != TN_DOMAIN_NONE) + \
		(TN_DOMAIN_##D2 != TN_DOMAIN_NONE),
enum {
#define M(sec, ID, name, type, unit, owner, agg, rec, L, help) \
	TN_MNUM_(ID, L) TN_MW_##ID = (int)TN_MWIDTH_##type, TN_MT_##ID = (int)TN_MTYPE_##type, TN_MR_##ID = (int)TN_REC_##rec,
#include "common/metrics.def"
#undef M
};
enum {
#define M(sec, ID, ...) TN_MB_##ID, TN_MLAST_##ID = TN_MB_##ID + TN_MN0_##ID * TN_MN1_##ID * TN_MN2_##ID * TN_MW_##ID - 1,
#include "common/metrics.def"
#undef M
	TN_METRIC_CELL_CNT /* cells of one writer's block */
};

/* ---------------------------------------------------------------- recording */

/* One writer's handle, private memory. While recording is switched off, SWITCHED families go to a scratch block that
 * nobody reads: off costs what on costs, and the hot path has neither a branch nor a mask. */
struct tn_metrics {
	tn_a64 *cells;    /* TN_METRIC_CELL_CNT cells, not owned; zeroed by whoever made them */
	tn_a64 *switched; /* where SWITCHED families go: cells, or scratch */
	tn_a64 *scratch;  /* private to this writer as long as there are at most TN_METRIC_WRITERS of them */
};
enum { TN_METRIC_WRITERS = 80 };

/* Binds m to its cells. Once per writer, before it records. */
void tn_metrics_bind(struct tn_metrics *m, tn_a64 *cells, bool recording);
/* The run-time switch; owner thread of m. */
TN_INLINE void tn_metrics_switch(struct tn_metrics *m, bool recording) { m->switched = recording ? m->cells : m->scratch; }

/* A place in the cell array; made by the macros below only. */
struct tn_counter_at { uint32_t cell; bool always; };
struct tn_gauge_at { uint32_t cell; };
struct tn_hist_at { uint32_t cell; bool always; uint8_t type; };

/* Label values are our own enums: a value outside is our bug (checked while assertions are on). */
TN_INLINE uint32_t tn_label_(unsigned v, unsigned cnt)
{
	tn_assert_debug(v < cnt);
	(void)cnt;
	return v;
}
#define TN_CHECK_(cond, msg) (0u * (uint32_t)sizeof(struct { _Static_assert(cond, msg); char c; }))
#define TN_CELL_(ID, n, a, b, c) \
	(TN_CHECK_((int)TN_MLABELS_##ID == (n), #ID " has another number of labels") + (uint32_t)TN_MB_##ID + (uint32_t)TN_MW_##ID * \
		((tn_label_((unsigned)(a), TN_MN0_##ID) * TN_MN1_##ID + tn_label_((unsigned)(b), TN_MN1_##ID)) * TN_MN2_##ID + \
		 tn_label_((unsigned)(c), TN_MN2_##ID)))
#define TN_COUNTER_(ID, n, a, b, c) \
	((struct tn_counter_at){ TN_CELL_(ID, n, a, b, c) + \
		TN_CHECK_((int)TN_MT_##ID == (int)TN_MTYPE_COUNTER, #ID " is not a counter"), TN_MR_##ID })
#define TN_GAUGE_(ID, n, a, b, c) \
	((struct tn_gauge_at){ TN_CELL_(ID, n, a, b, c) + \
		TN_CHECK_((int)TN_MT_##ID == (int)TN_MTYPE_GAUGE, #ID " is not a gauge") })
#define TN_HIST_(ID, n, a, b, c) \
	((struct tn_hist_at){ TN_CELL_(ID, n, a, b, c) + \
		TN_CHECK_(TN_MTYPE_IS_HIST((int)TN_MT_##ID), #ID " is not a histogram"), TN_MR_##ID, TN_MT_##ID })

#define TN_C0(ID) TN_COUNTER_(ID, 0, 0, 0, 0)
#define TN_C1(ID, a) TN_COUNTER_(ID, 1, a, 0, 0)
#define TN_C2(ID, a, b) TN_COUNTER_(ID, 2, a, b, 0)
#define TN_C3(ID, a, b, c) TN_COUNTER_(ID, 3, a, b, c)
#define TN_G0(ID) TN_GAUGE_(ID, 0, 0, 0, 0)
#define TN_G1(ID, a) TN_GAUGE_(ID, 1, a, 0, 0)
#define TN_G2(ID, a, b) TN_GAUGE_(ID, 2, a, b, 0)
#define TN_H0(ID) TN_HIST_(ID, 0, 0, 0, 0)
#define TN_H1(ID, a) TN_HIST_(ID, 1, a, 0, 0)
#define TN_H2(ID, a, b) TN_HIST_(ID, 2, a, b, 0)
#define TN_H3(ID, a, b, c) TN_HIST_(ID, 3, a, b, c)

/* Buckets as data: bounds padded with UINT64_MAX, first[k] = index of the first bound >= 2^k. */
struct tn_buckets {
	uint64_t bound[TN_BUCKETS_MAX + 4];
	uint8_t first[64];
	uint8_t cnt;
};
extern const struct tn_buckets tn_bucket_sets[]; /* indexed by type - TN_MTYPE_LATENCY */

/* Bucket of v: 0..cnt, where cnt is +Inf; a bucket holds v <= its bound. `type` is a histogram type, constant at the
 * call: the comparisons are unrolled and turn into set-if-above additions, no branches. */
TN_INLINE uint32_t tn_bucket(unsigned type, uint64_t v)
{
	const struct tn_buckets *set = &tn_bucket_sets[type - TN_MTYPE_LATENCY];
	uint64_t i = set->first[63u ^ (unsigned)__builtin_clzll(v | 1)]; /* = bsr: both xors cancel */
	i += v > set->bound[i];
	if (type == TN_MTYPE_DEADLINE) { /* up to three bounds in one octave */
		i += v > set->bound[i];
		i += v > set->bound[i];
	}
	return (uint32_t)i;
}
TN_INLINE uint32_t tn_bucket_cnt(unsigned type)
{
	return type == TN_MTYPE_LATENCY ? TN_BUCKETS_LATENCY_CNT : type == TN_MTYPE_SIZE ? TN_BUCKETS_SIZE_CNT :
	       type == TN_MTYPE_DEADLINE ? TN_BUCKETS_DEADLINE_CNT : TN_BUCKETS_SEGMENTS_CNT;
}

#if TENT_METRICS
/* Adds to a counter. Owner thread of m only. */
TN_INLINE void tn_counter_add(const struct tn_metrics *m, struct tn_counter_at at, uint64_t n)
{
	tn_count64(&(at.always ? m->cells : m->switched)[at.cell], n);
}
/* Moves or sets a gauge; gauges never stop. The sum over workers is taken modulo 2^64 and read as signed. */
TN_INLINE void tn_gauge_add(const struct tn_metrics *m, struct tn_gauge_at at, int64_t n)
{
	tn_count64(&m->cells[at.cell], (uint64_t)n);
}
TN_INLINE void tn_gauge_set(const struct tn_metrics *m, struct tn_gauge_at at, uint64_t v)
{
	tn_store_relaxed64(&m->cells[at.cell], v);
}
/* n observations of the same value, in the unit of the cell (nanoseconds for *_us). */
TN_INLINE void tn_hist_observe_n(const struct tn_metrics *m, struct tn_hist_at at, uint64_t v, uint64_t n)
{
	tn_a64 *cell = &(at.always ? m->cells : m->switched)[at.cell];
	tn_count64(&cell[tn_bucket(at.type, v)], n);
	tn_count64(&cell[tn_bucket_cnt(at.type) + 1], v * n);
}
/* One observation. */
TN_INLINE void tn_hist_observe(const struct tn_metrics *m, struct tn_hist_at at, uint64_t v) { tn_hist_observe_n(m, at, v, 1); }
#else
TN_INLINE void tn_counter_add(const struct tn_metrics *m, struct tn_counter_at at, uint64_t n) { (void)m; (void)at; (void)n; }
TN_INLINE void tn_gauge_add(const struct tn_metrics *m, struct tn_gauge_at at, int64_t n) { (void)m; (void)at; (void)n; }
TN_INLINE void tn_gauge_set(const struct tn_metrics *m, struct tn_gauge_at at, uint64_t v) { (void)m; (void)at; (void)v; }
TN_INLINE void tn_hist_observe_n(const struct tn_metrics *m, struct tn_hist_at at, uint64_t v, uint64_t n)
{
	(void)m, (void)at, (void)v, (void)n;
}
TN_INLINE void tn_hist_observe(const struct tn_metrics *m, struct tn_hist_at at, uint64_t v) { (void)m; (void)at; (void)v; }
#endif

/* ---------------------------------------------------------------- the table as data (readers, docs, tests) */

struct tn_metric_label { const char *key; uint8_t domain; /* enum tn_metric_domain */ };

struct tn_metric_family {
	const char *name, *help;
	uint8_t section, type, unit, owner, agg, rec; /* enums above; section as in metrics.def */
	uint8_t label_cnt;
	uint8_t width;        /* cells per series */
	uint32_t base;        /* first cell */
	uint32_t series_cnt;  /* product of the label domains */
	struct tn_metric_label label[TN_METRIC_LABELS_MAX];
};
extern const struct tn_metric_family tn_metric_families[TN_M_CNT];

struct tn_metric_domain_info { const char *name; unsigned cnt; const char *const *values; };
extern const struct tn_metric_domain_info tn_metric_domains[TN_DOMAIN_CNT];

/* Text of label `l` (< label_cnt) of series `series` (< series_cnt) of family f; static, never NULL. */
const char *tn_metric_label_text(const struct tn_metric_family *f, unsigned series, unsigned l);

/* Type as the exposition names it: "counter", "gauge", "histogram". */
const char *tn_metric_type_text(unsigned type);

/* Reader: folds one writer's block into cells (both TN_METRIC_CELL_CNT; cells starts at zero), families of `owner` only,
 * each by its aggregation. */
void tn_metric_fold(uint64_t *cells, const tn_a64 *block, enum tn_metric_owner owner);

/* Hash of everything that gives a cell its meaning: names, types, units, owners, labels, domains, buckets, order.
 * Help texts do not count. Equal hashes mean equal layouts. Any thread; a few microseconds. */
uint64_t tn_metric_schema_hash(void);

#endif
