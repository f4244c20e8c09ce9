/* SPDX-License-Identifier: Apache-2.0
 * This worker's numbers: its metric cells, its functional state block and its event rings. The stages record through
 * the handle in here; this file alone knows where the bytes live. One writer: the worker. */
#ifndef DP_STATS_STATS_H
#define DP_STATS_STATS_H

#include "common/config.h"
#include "common/metrics.h"
#include "dataplane/request/request.h"
#include "dataplane/stats/tally.h"
#include "shm-ring/events.h"

/* Log events of one kind are let through at this rate, then counted as suppressed in the next one that passes. */
#define DP_EVENTS_PER_S 100u
#define DP_EVENTS_BURST 200u

struct dp_event_limit { uint64_t refill_ns; uint32_t tokens; uint16_t suppressed; };

struct dp_stats {
	struct tn_metrics m;
	struct dp_tally tally;          /* of this turn; flushed at its end */
	struct shr_worker_shm *block;
	struct shr_event_writer log, keep;
	bool events;                    /* rings exist */
	const tn_a32 *recording;        /* run-time switch in the telemetry header; NULL = always on */
	uint64_t slow_ns, stuck_ns, trace_slow_ns; /* 0 = off */
	uint32_t sample_ppm;
	uint32_t config_generation;
	uint64_t trace_seed;            /* from which trace ids are drawn for requests that bring none */
	struct dp_event_limit limit[SHR_EVENT_KIND_CNT];
	void *private_mem;              /* cells and block when there is no telemetry file */
};

/* Binds to this worker's part of the telemetry file (NULL: private memory, no events). TN_NO_MEMORY. */
tn_status dp_stats_init(struct dp_stats *s, const struct shr_tele *tele, uint32_t worker, const struct tn_config *cfg,
			uint64_t trace_seed);
void dp_stats_destroy(struct dp_stats *s); /* accepts a zeroed object */
/* Read the hot thresholds again. */
void dp_stats_tune(struct dp_stats *s, const struct tn_config *cfg);
/* Follow the run-time recording switch; once per publish. */
void dp_stats_follow_switch(struct dp_stats *s);

/* The application's trace id, or one drawn from the request id: the same each time, and free until it is needed. */
void dp_stats_trace_id(const struct dp_stats *s, const struct dp_request *r, uint64_t *hi, uint64_t *lo);

/* How a request or attempt ended, for events and spans. */
struct dp_ending {
	tn_status status;
	uint8_t outcome, phase, reason, transport; /* enums of common/domain.h */
	uint64_t start_ns, end_ns;
};

/* The terminal edge: tent.request.failed or .slow, and the root span when kept. */
void dp_stats_request_end(struct dp_stats *s, const struct dp_request *r, const struct dp_ending *e, uint8_t failovers,
			  bool child_kept);
void dp_stats_request_stuck(struct dp_stats *s, const struct dp_request *r, uint8_t phase, uint8_t transport,
			    uint64_t now_ns);
/* The end of an attempt: tent.transport.attempt_failed, and its span when kept (then true). */
bool dp_stats_attempt_end(struct dp_stats *s, const struct dp_attempt *a, const struct dp_request *first,
			  const struct dp_ending *e);
void dp_stats_failover(struct dp_stats *s, const struct dp_request *first, const struct dp_owner *o, uint8_t from,
		       uint8_t to, uint64_t now_ns);
/* rejected: enum dp_reject by kind. */
void dp_stats_selection_failed(struct dp_stats *s, const struct dp_request *first, const struct dp_owner *o,
			       const uint8_t rejected[static TN_TRANSPORT_CNT], uint64_t now_ns);

#endif
