/* SPDX-License-Identifier: Apache-2.0
 * The metric table of metrics.def as data: families, label domains, bucket sets and the schema hash that both daemons
 * compare. Constant data only; any thread. */
#include "common/metrics.h"

#include <string.h>

/* ---- domains */
static const char *const none_values[] = { "" };
#define X(n, s) #s,
static const char *const transport_values[] = { TN_TRANSPORT_LIST(X) };
static const char *const op_values[] = { TN_OP_LIST(X) };
static const char *const memop_values[] = { TN_MEMOP_LIST(X) };
static const char *const outcome_values[] = { TN_OUTCOME_LIST(X) };
static const char *const result_values[] = { TN_RESULT_LIST(X) };
static const char *const phase_values[] = { TN_PHASE_LIST(X) };
static const char *const reason_values[] = { TN_REASON_LIST(X) };
static const char *const owner_kind_values[] = { TN_OWNER_KIND_LIST(X) };
static const char *const worker_kind_values[] = { TN_WORKER_KIND_LIST(X) };
static const char *const format_values[] = { TN_FORMAT_LIST(X) };
static const char *const rpc_method_values[] = { TN_RPC_METHOD_LIST(X) };
static const char *const rpc_outcome_values[] = { TN_RPC_OUTCOME_LIST(X) };
static const char *const ring_values[] = { TN_RING_LIST(X) };
static const char *const process_values[] = { TN_PROCESS_LIST(X) };
static const char *const cleanup_values[] = { TN_CLEANUP_LIST(X) };
static const char *const rdma_slice_values[] = { TN_RDMA_SLICE_LIST(X) };
static const char *const rdma_cause_values[] = { TN_RDMA_CAUSE_LIST(X) };
static const char *const rdma_wc_values[] = { TN_RDMA_WC_LIST(X) };
static const char *const rdma_cq_values[] = { TN_RDMA_CQ_LIST(X) };
static const char *const rdma_done_values[] = { TN_RDMA_DONE_LIST(X) };
static const char *const rdma_endpoint_values[] = { TN_RDMA_ENDPOINT_LIST(X) };
static const char *const rdma_transition_values[] = { TN_RDMA_TRANSITION_LIST(X) };
static const char *const rdma_note_values[] = { TN_RDMA_NOTE_LIST(X) };
static const char *const stream_values[] = { TN_STREAM_LIST(X) };
static const char *const stream_event_values[] = { TN_STREAM_EVENT_LIST(X) };
static const char *const side_values[] = { TN_SIDE_LIST(X) };
static const char *const frame_error_values[] = { TN_FRAME_ERROR_LIST(X) };
static const char *const shm_mapping_values[] = { TN_SHM_MAPPING_LIST(X) };
static const char *const segment_event_values[] = { TN_SEGMENT_EVENT_LIST(X) };
static const char *const selection_values[] = { TN_SELECTION_LIST(X) };
static const char *const admission_values[] = { TN_ADMISSION_LIST(X) };
static const char *const admission_end_values[] = { TN_ADMISSION_END_LIST(X) };
static const char *const credit_pull_values[] = { TN_CREDIT_PULL_LIST(X) };
static const char *const credit_reserve_values[] = { TN_CREDIT_RESERVE_LIST(X) };
static const char *const credit_resource_values[] = { TN_CREDIT_RESOURCE_LIST(X) };
static const char *const credit_peer_values[] = { TN_CREDIT_PEER_LIST(X) };
static const char *const credit_alloc_values[] = { TN_CREDIT_ALLOC_LIST(X) };
static const char *const window_values[] = { TN_WINDOW_LIST(X) };
static const char *const window_move_values[] = { TN_WINDOW_MOVE_LIST(X) };
static const char *const door_values[] = { TN_DOOR_LIST(X) };
static const char *const dp_door_values[] = { TN_DP_DOOR_LIST(X) };
static const char *const refusal_values[] = { TN_REFUSAL_LIST(X) };
static const char *const note_event_values[] = { TN_NOTE_EVENT_LIST(X) };
#undef X

#define D(DOM, var) [TN_DOMAIN_##DOM] = { #var, TN_##DOM##_CNT, var##_values }
const struct tn_metric_domain_info tn_metric_domains[TN_DOMAIN_CNT] = {
	D(NONE, none), D(TRANSPORT, transport), D(OP, op), D(MEMOP, memop), D(OUTCOME, outcome), D(RESULT, result),
	D(PHASE, phase), D(REASON, reason), D(OWNER_KIND, owner_kind), D(WORKER_KIND, worker_kind), D(FORMAT, format),
	D(RPC_METHOD, rpc_method), D(RPC_OUTCOME, rpc_outcome), D(RING, ring), D(PROCESS, process), D(CLEANUP, cleanup),
	D(RDMA_SLICE, rdma_slice), D(RDMA_CAUSE, rdma_cause), D(RDMA_WC, rdma_wc), D(RDMA_CQ, rdma_cq),
	D(RDMA_DONE, rdma_done), D(RDMA_ENDPOINT, rdma_endpoint), D(RDMA_TRANSITION, rdma_transition),
	D(RDMA_NOTE, rdma_note), D(STREAM, stream), D(STREAM_EVENT, stream_event), D(SIDE, side),
	D(FRAME_ERROR, frame_error), D(SHM_MAPPING, shm_mapping), D(SEGMENT_EVENT, segment_event),
	D(SELECTION, selection), D(ADMISSION, admission), D(ADMISSION_END, admission_end), D(CREDIT_PULL, credit_pull),
	D(CREDIT_RESERVE, credit_reserve), D(CREDIT_RESOURCE, credit_resource), D(CREDIT_PEER, credit_peer),
	D(CREDIT_ALLOC, credit_alloc), D(WINDOW, window), D(WINDOW_MOVE, window_move),
	D(DOOR, door), D(DP_DOOR, dp_door), D(REFUSAL, refusal), D(NOTE_EVENT, note_event),
};
#undef D

/* ---- families */
#define KEY_(k) #k
#define LABELS_(...) LABELS_I(__VA_ARGS__)
#define LABELS_I(k0, D0, k1, D1, k2, D2) \
	{ { KEY_(k0), TN_DOMAIN_##D0 }, { KEY_(k1), TN_DOMAIN_##D1 }, { KEY_(k2), TN_DOMAIN_##D2 } }
const struct tn_metric_family tn_metric_families[TN_M_CNT] = {
#define M(sec, ID, fam, ftype, funit, fowner, fagg, frec, L, text) \
	[TN_M_##ID] = { .name = #fam, .help = text, .section = sec, .type = TN_MTYPE_##ftype, .unit = TN_UNIT_##funit, \
		.owner = TN_OWNER_##fowner, .agg = TN_AGG_##fagg, .rec = TN_REC_##frec, .label_cnt = TN_MLABELS_##ID, \
		.width = TN_MW_##ID, .base = TN_MB_##ID, .series_cnt = TN_MN0_##ID * TN_MN1_##ID * TN_MN2_##ID, \
		.label = LABELS_(L) },
#include "common/metrics.def"
#undef M
};

const char *tn_metric_label_text(const struct tn_metric_family *f, unsigned series, unsigned l)
{
	for (unsigned i = f->label_cnt; i-- > l + 1;)
		series /= tn_metric_domains[f->label[i].domain].cnt;
	const struct tn_metric_domain_info *d = &tn_metric_domains[f->label[l].domain];
	return d->values[series % d->cnt];
}

const char *tn_metric_type_text(unsigned type)
{
	return type == TN_MTYPE_COUNTER ? "counter" : type == TN_MTYPE_GAUGE ? "gauge" : "histogram";
}

/* ---- buckets; first[k] counts the bounds below 2^k, spelled out because C has no loops in initializers. */
#define PAD UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX
const struct tn_buckets tn_bucket_sets[] = {
	[TN_MTYPE_LATENCY - TN_MTYPE_LATENCY] = {
		.bound = { TN_BUCKETS_LATENCY, PAD }, .cnt = TN_BUCKETS_LATENCY_CNT,
		.first = { [10] = 1, [11] = 2, [12] = 2, [13] = 3, [14] = 4, [15] = 5, [16] = 6, [17] = 7, [18] = 8, [19] = 9,
			[20] = 10, [21] = 11, [22] = 11, [23] = 12, [24] = 13, [25] = 14, [26] = 15, [27] = 16, [28] = 17,
			[29] = 18, [30] = 19, [31] = 19, [32] = 19, [33 ... 63] = 20 },
	},
	[TN_MTYPE_SIZE - TN_MTYPE_LATENCY] = {
		.bound = { TN_BUCKETS_SIZE, PAD, [15 ... TN_BUCKETS_MAX + 3] = UINT64_MAX }, .cnt = TN_BUCKETS_SIZE_CNT,
		.first = { [11 ... 12] = 1, [13 ... 14] = 2, [15 ... 16] = 3, [17 ... 18] = 4, [19 ... 20] = 5, [21 ... 22] = 6,
			[23 ... 24] = 7, [25 ... 26] = 8, [27 ... 28] = 9, [29 ... 30] = 10, [31 ... 63] = 11 },
	},
	[TN_MTYPE_DEADLINE - TN_MTYPE_LATENCY] = {
		.bound = { TN_BUCKETS_DEADLINE, PAD, [14 ... TN_BUCKETS_MAX + 3] = UINT64_MAX }, .cnt = TN_BUCKETS_DEADLINE_CNT,
		.first = { [7] = 1, [8] = 2, [9] = 3, [10] = 6, [11] = 9, [12] = 9, [13 ... 63] = 10 },
	},
	[TN_MTYPE_SEGMENTS - TN_MTYPE_LATENCY] = {
		.bound = { TN_BUCKETS_SEGMENTS, PAD, [17 ... TN_BUCKETS_MAX + 3] = UINT64_MAX }, .cnt = TN_BUCKETS_SEGMENTS_CNT,
		.first = { [1] = 1, [2] = 2, [3] = 3, [4] = 4, [5] = 5, [6] = 6, [7] = 7, [8] = 8, [9] = 9, [10] = 10, [11] = 11,
			[12] = 11, [13] = 12, [14 ... 63] = 13 },
	},
};

/* ---- recording: untouched pages of the scratch blocks cost nothing */
static tn_a64 scratch_blocks[TN_METRIC_WRITERS][TN_METRIC_CELL_CNT];
static tn_a32 scratch_next;

void tn_metrics_bind(struct tn_metrics *m, tn_a64 *cells, bool recording)
{
	m->cells = cells;
	m->scratch = scratch_blocks[tn_fetch_add32(&scratch_next, 1) % TN_METRIC_WRITERS];
	tn_metrics_switch(m, recording);
}

/* ---- reading. MIN skips zero: a writer that never set the gauge has no opinion. */
static void fold_family(uint64_t *dst, const tn_a64 *src, uint32_t cnt, unsigned agg)
{
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t v = tn_load_relaxed64(&src[i]);
		if (agg == TN_AGG_SUM)
			dst[i] += v;
		else if (agg == TN_AGG_MAX)
			dst[i] = TN_MAX(dst[i], v);
		else if (v && (dst[i] == 0 || v < dst[i]))
			dst[i] = v;
	}
}

void tn_metric_fold(uint64_t *cells, const tn_a64 *block, enum tn_metric_owner owner)
{
	for (uint32_t m = 0; m < TN_M_CNT; m++) {
		const struct tn_metric_family *f = &tn_metric_families[m];
		if (f->owner == owner)
			fold_family(&cells[f->base], &block[f->base], f->series_cnt * f->width, f->agg);
	}
}

/* ---- schema hash: FNV-1a over a canonical byte stream, strings with their NUL, numbers little-endian */
static uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
	const unsigned char *b = p;
	for (size_t i = 0; i < n; i++)
		h = (h ^ b[i]) * 0x100000001b3u;
	return h;
}

static uint64_t hash_num(uint64_t h, uint64_t v)
{
	unsigned char b[8];
	for (unsigned i = 0; i < 8; i++)
		b[i] = (unsigned char)(v >> (8 * i));
	return hash_bytes(h, b, sizeof b);
}

static uint64_t hash_text(uint64_t h, const char *s)
{
	return hash_bytes(h, s, strlen(s) + 1);
}

uint64_t tn_metric_schema_hash(void)
{
	uint64_t h = 0xcbf29ce484222325u;
	for (unsigned d = 0; d < TN_DOMAIN_CNT; d++) {
		h = hash_num(h, tn_metric_domains[d].cnt);
		for (unsigned v = 0; v < tn_metric_domains[d].cnt; v++)
			h = hash_text(h, tn_metric_domains[d].values[v]);
	}
	for (unsigned s = 0; s < TN_ARRAY_LEN(tn_bucket_sets); s++) {
		h = hash_num(h, tn_bucket_sets[s].cnt);
		for (unsigned b = 0; b < tn_bucket_sets[s].cnt; b++)
			h = hash_num(h, tn_bucket_sets[s].bound[b]);
	}
	for (unsigned m = 0; m < TN_M_CNT; m++) {
		const struct tn_metric_family *f = &tn_metric_families[m];
		h = hash_text(h, f->name);
		const uint8_t traits[] = { f->type, f->unit, f->owner, f->agg, f->rec };
		h = hash_bytes(h, traits, sizeof traits);
		h = hash_num(h, f->base);
		for (unsigned l = 0; l < f->label_cnt; l++) {
			h = hash_text(h, f->label[l].key);
			h = hash_num(h, f->label[l].domain);
		}
	}
	return h;
}
