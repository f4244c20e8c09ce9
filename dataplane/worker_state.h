/* SPDX-License-Identifier: Apache-2.0
 * What one worker owns: the parts of its stages, side by side. Only the files that know the order of the stages include
 * this: worker.c (life and loop), worker_offer.c (what transports may ask), flow.c and owner.c (the way of an owner
 * through the stages), notice.c (the way of a notification) and apply.c (commands). Stages never see it. */
#ifndef DP_WORKER_STATE_H
#define DP_WORKER_STATE_H

#include <pthread.h>

#include "common/rand.h"
#include "dataplane/admission/queue.h"
#include "dataplane/completion/retire.h"
#include "dataplane/ingress/hot.h"
#include "dataplane/ingress/sq_drain.h"
#include "dataplane/poller.h"
#include "dataplane/selection/selector.h"
#include "dataplane/staging/pool.h"
#include "dataplane/stats/load.h"
#include "dataplane/transport/transport.h"
#include "dataplane/worker.h"
#include "shm-ring/mailbox.h"

#define DP_MAILBOX_ENTRIES 1024u
#define DP_QUIESCE_MAX 1024u

/* A command whose effect is not complete yet. */
struct dp_quiesce {
	struct tn_list link;
	struct dp_cmd cmd;
	uint32_t refs;             /* REMOTE_SET: attempts and notices that still use the replaced object (cmd.ptr); INSPECT: how
	                            * far the pool was searched */
	uint64_t until_ns;         /* TRANSPORT: what runs is left alone */
	bool done;                 /* complete; only the acknowledgement is due */
};

struct dp_tuning { /* hot values */
	uint32_t attempts_max;
	uint64_t backoff_base_ns, backoff_max_ns;
};

/* Staged owners and their pieces; see stage.c. */
struct dp_stage {
	bool in_use;               /* memory was imported: there is something to look at */
	bool changed;              /* the gauges are to be set */
	struct tn_list areas;      /* in which something may start */
	struct tn_list unasked;    /* pieces for which the application is to be asked for a copy */
	struct tn_list ready;      /* pieces that wait to be owners */
	struct tn_list moving;     /* pieces that are owners */
	struct tn_list ending;     /* tasks that are over: their end is due, or their release */
	struct tn_list leaving;    /* tasks that ended with pieces not over, longest first */
	struct tn_list quarantine; /* the same after staging/cleanup_ms */
	uint32_t moving_cnt, task_cnt /* STAGED */, leaving_cnt, quarantine_cnt;
	uint64_t bytes;            /* of all pieces */
	uint64_t cleanup_ns, progress_ns;
};

struct dp_worker {
	const struct dp_worker_env *env;
	const struct tn_config *config;
	uint32_t index;
	uint64_t now_ns;
	bool real_time;            /* read the clock again inside a step; false when time is the caller's */
	bool stopping, stopped;
	uint8_t mode;              /* enum dp_mode */
	uint64_t serve_until_ns;   /* stopping: operations of peers are waited for until then */

	/* the stages, in the order of the flow */
	struct tn_list qps;        /* struct dp_qp.link; all of them */
	struct dp_hot hot;         /* those that are looked at */
	struct dp_ingress_cfg ingress;
	bool merge;
	uint64_t merge_max_bytes;
	struct dp_view view;
	struct dp_pools pools;
	struct dp_heap deadlines;  /* requests */
	struct dp_heap retries;    /* owners that wait */
	struct tn_list waiting;    /* the same owners, for wake-up by REMOTE_SET and PEER_SET */
	struct dp_stage stage;
	struct dp_admission admission;
	struct dp_selector selector;
	struct dp_transport *transports[TN_TRANSPORT_CNT];
	uint32_t transport_cnt;
	struct dp_completion completion;
	struct tn_list orphans;    /* notices that outlived their queue pair's interest (dp_request.qp_link) */
	struct dp_stats stats;
	struct dp_loads loads;
	struct dp_tuning tuning;
	struct tn_rand rand;
	uint64_t note_clock;       /* of the last notice sent; see notice.c */
	uint32_t remote_attempts;  /* in flight on transports with sockets */

	/* mailboxes */
	struct shr_mailbox cmds, evts;
	tn_a32 armed;              /* 1: the worker sleeps, ring `wake` after posting [D3] */
	struct dp_pollable wake;   /* eventfd; only this process holds it */
	int evt_fd;                /* eventfd for the control thread */
	bool evt_ring;             /* events were pushed in this step */
	struct dp_quiesce *quiesces;
	struct tn_list quiescing, quiesce_free;

	/* polling */
	struct dp_poller poller;
	bool busy_mode;
	bool idle_turn;            /* the last step found nothing */
	uint64_t spin_ns, last_work_ns, last_publish_ns, last_stuck_ns, loop_ns;
	uint64_t busy_ns, idle_ns;

	pthread_t thread;
	bool started;
	tn_a32 abort;              /* control thread: leave the loop now */
	tn_a32 exited;             /* the thread's last word */
	uint32_t cpu;
};

/* ---- worker.c ---- */
/* One turn of the loop at time now_ns; how much was done (0 = nothing to do). Also called by tests and the simulator,
 * without a thread. */
uint32_t dp_worker_step(struct dp_worker *w, uint64_t now_ns);
/* When the next step must run although nothing arrives; UINT64_MAX = never; <= now when there is work. */
uint64_t dp_worker_next_ns(const struct dp_worker *w);
/* Going to sleep and waking up, cut where the kernel is asked (poller.h), so that the simulator sleeps in its own way.
 * True: doorbell and mailbox are armed and nothing waits: sleep until something arrives, or until *until_ns_out, then
 * call _end(). False: something came meanwhile, nothing is armed: step again. */
bool dp_worker_sleep_begin(struct dp_worker *w, uint64_t *until_ns_out);
/* `served`: how many descriptors were ready. Disarms. */
void dp_worker_sleep_end(struct dp_worker *w, uint64_t now_ns, uint32_t served);
/* Take the hot values of this config from now on. */
void dp_worker_tune(struct dp_worker *w, const struct tn_config *cfg);
/* To the control thread; TN_AGAIN when its mailbox is full. */
tn_status dp_worker_tell(struct dp_worker *w, const struct dp_evt *evt);

/* ---- flow.c: into the queue, out of it, and ending early ---- */
uint32_t dp_flow_ingest(struct dp_worker *w, struct dp_qp *qp);
uint32_t dp_flow_timers(struct dp_worker *w);
uint32_t dp_flow_dispatch(struct dp_worker *w);
/* End one request early (CANCELED or TIMEOUT): dequeue, or cancel its attempt, or leave its merged owner. */
void dp_flow_end_request(struct dp_worker *w, struct dp_request *r, enum tn_outcome outcome);
/* End an owner without requests (of a piece) early. */
void dp_flow_stop_owner(struct dp_worker *w, struct dp_owner *o, enum tn_outcome outcome);
/* Cancel what is outstanding of a queue pair: all of it (handle 0), or what uses a memory or remote. */
void dp_flow_cancel_qp(struct dp_worker *w, struct dp_qp *qp, tn_handle memory, tn_handle remote);
/* Ask the requests that are pending too long to be reported. */
void dp_flow_report_stuck(struct dp_worker *w);
/* Where a live request is now. */
enum tn_phase dp_flow_phase(const struct dp_request *r);

/* ---- owner.c: attempts of an owner, what follows a failed one, its end ---- */
/* Try to hand a dispatchable owner to a transport. OK: accepted. AGAIN: no room, nothing happened. Else failed, with
 * *res_out filled and the attempt accounted. */
tn_status dp_owner_try(struct dp_worker *w, struct dp_owner *o, struct dp_result *res_out);
/* What follows a failure of a DISPATCHED owner without attempt: fail over, wait, or end. */
void dp_owner_failed(struct dp_worker *w, struct dp_owner *o, const struct dp_result *res);
/* Its last step; the state tells what must be given back. The caller has unlinked it from queue or wait. */
void dp_owner_end(struct dp_worker *w, struct dp_owner *o, enum tn_outcome outcome, tn_status status, uint8_t phase,
		  uint8_t reason);
/* Its requests as the last step treats them: retired, and released if nothing is busy. */
void dp_owner_end_requests(struct dp_worker *w, struct dp_owner *o, const struct dp_terminal *t);
/* Terminal edge of one of its READs or WRITEs. */
void dp_owner_retire(struct dp_worker *w, const struct dp_owner *o, struct dp_request *r, const struct dp_terminal *t);
/* WAITING is over: admitted again. */
void dp_owner_wake(struct dp_worker *w, struct dp_owner *o);
void dp_owner_unwait(struct dp_worker *w, struct dp_owner *o);
/* A newer descriptor or peer arrived: owners that waited for it are admitted again. */
void dp_owner_remote_changed(struct dp_worker *w, const struct dp_remote *old, const struct dp_remote *now);
void dp_owner_peer_changed(struct dp_worker *w, uint32_t peer_index);
/* An attempt of `start_ns` ended, moved bytes (TN_OK) or was not accepted: who waits for its rail may ask again. */
void dp_owner_tell_rail(struct dp_worker *w, unsigned kind, uint32_t peer_index, tn_status status, uint64_t start_ns);
/* The same of a rail to this target (DP_PEER_SELF: this host). */
void dp_owner_rail_changed(struct dp_worker *w, uint32_t peer_index);
/* Take it from the transport of its ACTIVE attempt: what follows the attempt's end, at once or later, is decided as after a
 * lost path. */
void dp_owner_move_away(struct dp_worker *w, struct dp_owner *o);
/* The rules of selection changed: what is queued or waits chooses its candidates anew, who waits for a rail at once. */
void dp_owner_select_anew(struct dp_worker *w);

/* ---- stage.c: owners whose memory only the application can reach ---- */
void dp_stage_init(struct dp_stage *s);
/* Instead of the admission queue, which its pieces enter one by one. */
void dp_stage_begin(struct dp_worker *w, struct dp_owner *o, tn_handle staging);
/* Once per turn, where staging is in use: what may start starts, what is over ends. */
uint32_t dp_stage_step(struct dp_worker *w);
uint64_t dp_stage_next_ns(const struct dp_worker *w);
/* End a STAGED owner early; one that is over ends as it is. */
void dp_stage_end(struct dp_worker *w, struct dp_owner *o, enum tn_outcome outcome, tn_status status, uint8_t phase,
		  uint8_t reason);
/* The owner of a piece ended so; nothing touches its buffer any more, and the owner is freed next. */
void dp_stage_moved(struct dp_worker *w, struct dp_stage_piece *p, const struct dp_terminal *t);
/* The application's answer to a copy. False: it was not asked for this one. */
bool dp_stage_copied(struct dp_worker *w, tn_handle staging, uint64_t tag, tn_status status);
/* It is gone: its answers will not come. Its queue pairs are closing. */
void dp_stage_forget(struct dp_worker *w, uint32_t client_id);
/* These staging buffers (or other memory) go; nothing of them is in use. */
void dp_stage_forget_area(struct dp_worker *w, tn_handle memory);
/* STOP: all that is left waits for applications in vain. */
bool dp_stage_only_quarantine(const struct dp_worker *w);

/* ---- notice.c ---- */
void dp_notice_submit(struct dp_worker *w, struct dp_request *r);
uint32_t dp_notice_send_ready(struct dp_worker *w);
void dp_notice_end(struct dp_worker *w, struct dp_request *r, enum tn_outcome outcome);
/* A NOTIFY of this batch was refused: the number may be used again. */
void dp_notice_close_batch(struct dp_worker *w, struct dp_qp *qp, uint32_t number);
void dp_notice_verdict(struct dp_worker *w, uint64_t token, tn_status verdict);

/* ---- apply.c ---- */
uint32_t dp_apply_commands(struct dp_worker *w);
uint32_t dp_apply_quiesce(struct dp_worker *w);
/* An attempt or notice that used this version of a remote is over. */
void dp_apply_remote_unused(struct dp_worker *w, const struct dp_remote *version);

#endif
