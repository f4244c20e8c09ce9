/* SPDX-License-Identifier: Apache-2.0
 * Two data planes in one thread for tests of the stream transports: a minimal worker behind every dp_worker_*
 * function of transport.h, with tables of a few objects, a judge for HELLOs in the place of the control thread, and a
 * clock that the test may move. Works over memory links (mem_net.h) and over kernel sockets. */
#ifndef TN_TEST_RIG_H
#define TN_TEST_RIG_H

#include "common/config.h"
#include "common/metrics.h"
#include "dataplane/apply.h"
#include "dataplane/transport/stream/stream.h"

#define RIG_SEGMENTS 4
#define RIG_GUARD 64u        /* bytes of pattern around every buffer */
#define RIG_NOTES 64

struct rig_note {
	uint64_t token, seq;
	tn_handle segment;
	uint32_t len;
	uint8_t payload[DP_FRAME_NOTE_MAX];
	char from[TN_NAME_MAX];
	tn_status refused;
};

struct dp_worker { /* the test's worker */
	const char *name;
	struct dp_transport *t;
	struct tn_id128 session;
	struct tn_peer_id self;
	struct tn_config *config;
	struct tn_rand rand;
	struct tn_metrics metrics;
	tn_a64 *cells;
	int epoll_fd;
	uint32_t index;
	const struct dp_segment *segments[RIG_SEGMENTS];
	struct dp_peer peer; /* the other one; index 0 unless a test says otherwise */
	/* what the transport did */
	uint32_t polls, clock_reads, answers, remote_refreshes, peer_refreshes, lane_ups, lane_downs, probes_ok, probes_failed;
	struct rig_note notes[RIG_NOTES];
	uint32_t note_cnt, datagram_cnt, datagram_bytes;
	tn_status note_in_status, datagram_in_status, verdict; /* what to say */
	bool verdict_later;
	struct rig_note_done { struct dp_request *r; tn_status status; uint8_t phase, reason; } note_done[RIG_NOTES];
	uint32_t note_done_cnt;
};

/* An attempt and its end. */
struct rig_attempt { struct dp_attempt a; bool done; struct dp_result r; uint32_t done_cnt; };

/* A buffer between guards. */
struct rig_memory { uint8_t *all, *base; size_t bytes; };

struct rig {
	struct dp_worker a, b;       /* a connects, b serves */
	bool kernel;
	int listen_fd;
	struct { int fd; } waiting[64];
	uint32_t waiting_cnt;
	struct tn_id128 ticket;      /* that b admits */
	uint16_t refuse;             /* enum dp_hello_status to answer; 0 = judge */
	bool manual;                 /* the test accepts (memory links) by itself */
	uint32_t hellos, refused;
	struct tn_peer_id sender;    /* of the last HELLO */
	bool itself;                 /* b takes a for itself */
	tn_a32 conn_cnt;
	char peer_name[TN_NAME_MAX]; /* a's name at b */
	uint64_t skew_ns;            /* moves the clock */
	bool virtual_time;
	uint64_t virtual_ns;
};
extern struct rig rig;

/* cfg NULL: defaults for tests (small windows). kernel: dp_tcp_ops and sockets on 127.0.0.1 (or ::1). */
struct dp_stream_cfg rig_cfg(void);
void rig_start(const struct dp_stream_cfg *cfg);
void rig_start_kernel(bool ipv6, const char *const *sets, size_t set_cnt);
/* b dies and comes back: other session, other port; a is not told. Sockets only. */
void rig_restart_b(void);
void rig_stop(void);
struct dp_stream *rig_stream(struct dp_worker *w);
/* One loop of both; rig_until: until *flag, or false after limit_ms of real time. */
uint32_t rig_step(void);
/* Over sockets: one loop of one worker (b also accepts), so that each may run in a thread of its own. */
uint32_t rig_step_worker(struct dp_worker *w);
bool rig_until(const bool *flag, unsigned limit_ms);
void rig_steps(unsigned n);
bool rig_until_count(const uint32_t *cnt, uint32_t want, unsigned limit_ms);
/* Tell a what b is now (new session, same ticket rules). */
void rig_peer_set(void);

struct rig_memory rig_memory(size_t bytes, uint8_t fill);
bool rig_guards_intact(const struct rig_memory *m);
void rig_memory_free(struct rig_memory *m);
/* The page cannot be had by anybody from now on (and raises SIGBUS); it can again. */
void rig_page_lose(uint8_t *page);
void rig_page_find(uint8_t *page);
void rig_pattern(uint8_t *p, size_t bytes, uint64_t seed);
bool rig_pattern_is(const uint8_t *p, size_t bytes, uint64_t seed);

/* Publish m (cut into `buffers` equal buffers) at b; the remote that names it at a. */
struct dp_segment *rig_publish(struct dp_worker *w, uint32_t slot, const struct rig_memory *m, uint32_t buffers,
			       uint32_t rights, uint32_t access);
struct dp_remote *rig_remote(const struct dp_segment *seg);
void rig_withdraw(struct dp_worker *w, uint32_t slot);

void rig_attempt(struct rig_attempt *ra, uint8_t op, const struct dp_remote *remote, uint64_t off, uint8_t *local,
		 uint64_t bytes);
tn_status rig_submit(struct rig_attempt *ra);
/* Submit and run until done; the result's status. */
tn_status rig_move(uint8_t op, const struct dp_remote *remote, uint64_t off, uint8_t *local, uint64_t bytes);

/* With recording compiled out (TENT_METRICS=OFF) there is nothing to compare. */
#define RIG_NUMBER(actual, expected) CU_ASSERT(!TENT_METRICS || (actual) == (uint64_t)(expected))
uint64_t rig_counter(const struct dp_worker *w, uint32_t cell);
uint64_t rig_protocol_errors(const struct dp_worker *w, unsigned side, enum dp_frame_error e);

#endif
