/* SPDX-License-Identifier: Apache-2.0
 * What the control-plane daemon sees of observability: one object that owns the counters, the mapping of the data
 * plane's telemetry region, the event reader and the HTTP server.
 *
 * Use: create -> (attach when a region appears; facts when they change; poll every <= 250 ms) -> destroy.
 * Counting: logic gets cp_observe_metrics() and calls cp_count_*() of cells.h, or tn_counter_add() for CP families.
 * Threads: everything here is called on the loop thread, except that the HTTP thread renders by itself. */
#ifndef CP_OBSERVE_OBSERVE_H
#define CP_OBSERVE_OBSERVE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "common/text_buf.h"
#include "controlplane/observe/cells.h"
#include "controlplane/observe/event_pump.h"
#include "controlplane/observe/http.h"
#include "controlplane/observe/prom_text.h"
#include "controlplane/observe/ready.h"

struct cp_observe;

struct cp_observe_cfg {
	struct cp_build build;        /* texts must outlive the object */
	bool openmetrics;             /* serve /metrics/openmetrics */
	bool recording;               /* of the control plane's own SWITCHED families */
	uint64_t stall_ns;            /* T of the readiness rule */
	uint32_t required_transports; /* bits (1 << enum tn_transport) */
	cp_line_sink sink;            /* where event lines go; NULL = nowhere (they are still counted and drained) */
	void *sink_ctx;
	const char *mark_path;        /* file that remembers how far events are in the log; NULL: nothing survives a restart */
};

/* TN_OK, TN_NO_MEMORY, TN_SYSTEM. */
TN_MUST_USE tn_status cp_observe_create(const struct cp_observe_cfg *cfg, struct cp_observe **out);
/* Stops the HTTP server, unmaps, frees. NULL is accepted. */
void cp_observe_destroy(struct cp_observe *o);

/* Hot keys of a reloaded config. */
void cp_observe_reconfigure(struct cp_observe *o, bool recording, uint64_t stall_ns);

/* The control plane's own cells, for logic to count with. Valid until destroy. */
const struct tn_metrics *cp_observe_metrics(struct cp_observe *o);

/* ---- the data plane */

/* Maps the telemetry file at path and reads from it from now on; what was attached before is dropped only when this
 * works, or when the file is of another ABI (then nothing is attached, which /ready says). A file of another metric
 * schema is attached: it serves section 1, /ready and /diagnostics. Statuses of shr_tele_open_ro(); TN_AGAIN: retry.
 * Do not detach when the data plane dies: its last numbers and events stay readable until a successor appears. */
tn_status cp_observe_attach(struct cp_observe *o, const char *path);

/* Facts that only the daemon knows; each call replaces the old ones. */
struct cp_observe_facts {
	bool engine_alive;   /* the data-plane process lives (its lease) */
	bool peer_bus_bound; /* peers can reach this control plane */
	bool link_up;        /* the bus to the data plane works */
	uint64_t silent_since_ns; /* it does not, and a data plane that is not dead says nothing since; 0: no */
};
void cp_observe_facts(struct cp_observe *o, const struct cp_observe_facts *facts);

/* The events of the last while, as far as cp_observe_poll() has come. Valid until destroy; loop thread. */
const struct cp_recent *cp_observe_recent(const struct cp_observe *o);

/* Drains the event rings, renders lines to the sink. Bounded work; true = more is waiting, call again soon. */
bool cp_observe_poll(struct cp_observe *o);

/* ---- HTTP */

/* Starts the server; see cp_http_start(). Counts a failure, sets tent_metrics_http_server_up. Already running: TN_BUSY. */
TN_MUST_USE tn_status cp_observe_http_start(struct cp_observe *o, const char *host, uint16_t port, uint16_t *port_out,
					    char err[static TN_ERR_TEXT]);
/* cp_http_fd() of the running server. */
int cp_observe_http_fd(const struct cp_observe *o);
void cp_observe_http_stop(struct cp_observe *o);

/* ---- asking (also for the local bus: tentctl status, metrics, verify) */

/* Renders what the HTTP path would answer; returns the HTTP status. Any thread. */
unsigned cp_observe_render(struct cp_observe *o, enum cp_http_path path, struct tn_text *out, const char **content_type_out);

/* All numbers now, for checks; *out is a heap object of the caller (~50 KB). Any thread. */
void cp_observe_snapshot(struct cp_observe *o, struct cp_snapshot *out);

/* The readiness facts now; returns the reasons that hold as bits (1 << enum cp_ready_reason). Any thread. */
uint32_t cp_observe_ready(struct cp_observe *o, struct cp_ready_in *out);

#endif
