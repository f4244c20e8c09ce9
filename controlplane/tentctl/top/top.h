/* SPDX-License-Identifier: Apache-2.0
 * `tentctl top`: samples of the telemetry region (mapped read-only, no daemon needed) and of what the control plane
 * adds (peers, clients); from two of them one view, a JSON document; the view drawn on a canvas. One thread. */
#ifndef TCTL_TOP_H
#define TCTL_TOP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "controlplane/tentctl/region.h"
#include "controlplane/tentctl/top/canvas.h"

struct tctl;

enum { TCTL_TOP_PEERS_MAX = 1024, TCTL_TOP_HISTORY = 120 };

/* What was done for one target since the data plane's start. */
struct tctl_top_load {
	char name[TN_NAME_MAX];      /* "" = this host */
	uint64_t started, ended, failed, inflight, inflight_bytes, moved[TN_OP_CNT];
	uint64_t latency[TN_BUCKETS_LATENCY_CNT + 1];
	uint32_t lanes, lanes_in;
	char failure[96];            /* the last one in words; "" = none */
	uint64_t failure_ms_ago;
};

struct tctl_top_worker {
	bool alive;
	uint32_t cpu, inflight, queued, lanes;
	uint64_t busy_ns, idle_ns, outstanding_bytes, oldest_work_ns;
};

struct tctl_top_sample {
	uint64_t at_ns, at_real_ns;
	/* from the region */
	uint64_t generation;         /* 0 = no data plane ever ran there */
	enum tctl_life life;
	uint64_t start_mono_ns, last_sign_ns;
	uint32_t pid, loaded, up, worker_cnt;
	bool numbers, recording;
	struct tctl_top_worker workers[SHR_WORKERS_MAX];
	uint64_t cells[TN_METRIC_CELL_CNT];
	/* from the control plane */
	bool control;                /* it answered */
	char control_error[256];
	char host[TN_NAME_MAX];
	uint64_t clients, qps, segments, opened, memory_bytes;
	bool loads;                  /* it also knew the loads */
	struct tctl_top_load local;
	struct tctl_top_load *peers; /* owned, sorted by name */
	unsigned peer_cnt;
};

/* Region and control plane as they are now. Never fails: what is not there is left empty. Waits for the control plane
 * at most wait_ns per question; 0: does not ask. */
void tctl_top_take(struct tctl *t, const char *dir, uint64_t wait_ns, struct tctl_top_sample *out);
void tctl_top_drop(struct tctl_top_sample *s);
/* Reads an answer of "peer_load" into a sample (tests, and take). */
void tctl_top_read_loads(const json_t *answer, struct tctl_top_sample *out);

/* Rates between two samples (of one generation; otherwise those of `now` are 0). New reference. Pure. */
json_t *tctl_top_view(const struct tctl_top_sample *before, const struct tctl_top_sample *now);

/* Throughput of the last views, oldest first. */
struct tctl_top_history { double read[TCTL_TOP_HISTORY], write[TCTL_TOP_HISTORY]; unsigned cnt; };
void tctl_top_remember(struct tctl_top_history *h, const json_t *view);

/* Draws a view; history and hint (keys, last line) may be NULL. */
void tctl_top_draw(struct tctl_canvas *c, const json_t *view, const struct tctl_top_history *history, const char *hint);

#endif
