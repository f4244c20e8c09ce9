/* SPDX-License-Identifier: Apache-2.0
 * The order of life: plan, runtime directory, lease, telemetry file, control rooms, lane listener, workers, link,
 * attach socket, ready; then turns of the control thread; then drain and all of it backwards. The only owner of
 * signals. The main thread is the control thread. */
#include "dataplane/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hook.h"
#include "common/log.h"
#include "common/sdnotify.h"
#include "common/version.h"
#include "dataplane/config.h"
#include "dataplane/control.h"
#include "dataplane/segment/fault.h"
#include "dataplane/worker.h"

#define LEASE "dataplane" /* the control plane looks for this name */
#define LEASE_WAIT_NS UINT64_C(2000000000) /* for a predecessor that is being killed */
#define DRAIN_NS UINT64_C(10000000000)
#define JOIN_NS UINT64_C(2000000000)
#define LEASE_LOOK_NS UINT64_C(1000000000)

struct daemon {
	const struct tn_daemon_args *args;
	struct tn_config *config;          /* until dp_control_init() takes it */
	const char *dir;
	struct dp_plan plan;
	struct shr_lease lease;
	struct shr_tele tele;
	struct dp_worker_env env;
	struct dp_control ctl;
	struct dp_worker *workers[SHR_WORKERS_MAX];
	uint32_t started_cnt;
	struct dp_source signals;
	struct dp_flight stopped, quiet;
	uint64_t watchdog_ns, fed_ns, looked_ns;
	bool all_stopped, all_quiet, stop, reload, lease_lost;
};

static tn_status complain(tn_status s, const char *what)
{
	tn_log_error("start", "%s", what);
	return s;
}

/* ---- start ---- */

static void signals_ready(struct dp_source *s, uint32_t events)
{
	struct daemon *d = tn_container_of(s, struct daemon, signals);
	struct signalfd_siginfo si;

	(void)events;
	while (read(s->fd, &si, sizeof si) == (ssize_t)sizeof si) {
		if (si.ssi_signo != SIGHUP) {
			d->stop = true;
			continue;
		}
		d->reload = true;
	}
}

/* Blocked before any thread is made: no worker ever runs a handler, but the one for memory of applications. */
static tn_status signals_open(struct daemon *d)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	(void)signal(SIGPIPE, SIG_IGN);
	if (dp_fault_install() != TN_OK)
		return complain(TN_SYSTEM, "SIGBUS cannot be handled");
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return complain(TN_SYSTEM, "signals cannot be blocked");
	d->signals = (struct dp_source){ .ready = signals_ready, .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) };
	return d->signals.fd >= 0 ? TN_OK : complain(TN_SYSTEM, "no signalfd");
}

static tn_status lease_take(struct daemon *d)
{
	struct shr_lease_info info = { 0 };
	char text[SHR_LEASE_PATH_MAX + 128];
	tn_status s = shr_lease_take_until(d->dir, LEASE, &d->env.session, tn_now_ns() + LEASE_WAIT_NS, &d->lease);

	if (s == TN_OK)
		return s;
	if (s == TN_BUSY && shr_lease_read(d->dir, LEASE, &info) == TN_OK)
		(void)snprintf(text, sizeof text, "another tent-dataplane (pid %u) serves runtime_dir %s", info.pid, d->dir);
	else
		(void)snprintf(text, sizeof text, "runtime_dir %s: cannot take the lease: %s", d->dir, tn_status_meaning(s));
	return complain(s, text);
}

static tn_status telemetry_open(struct daemon *d)
{
	struct shr_tele_cfg cfg = {
		.worker_cnt = d->plan.worker_cnt, .cell_cnt = TN_METRIC_CELL_CNT, .event_slots = d->plan.event_slots,
		.keep_slots = d->plan.keep_slots, .schema_hash = tn_metric_schema_hash(), .session = d->env.session,
		.start_mono_ns = tn_now_ns(), .start_real_ns = tn_real_ns(), .loaded_transports = d->plan.transports,
		.metrics_compiled = TENT_METRICS, .build = TN_VERSION " " TN_COMMIT " " TN_BUILD_TYPE };
	char text[SHR_LEASE_PATH_MAX + 128];
	TN_HOOK(dp_lease_taken);
	tn_status s = shr_tele_create(d->dir, &cfg, &d->tele);

	if (s != TN_OK) {
		(void)snprintf(text, sizeof text, "runtime_dir %s: cannot make the telemetry file: %s%s", d->dir,
		               tn_status_meaning(s), s == TN_NO_MEMORY ? " (is the tmpfs full?)" : "");
		return complain(s, text);
	}
	TN_HOOK(dp_telemetry_made);
	(void)shr_tele_prune(d->dir, SHR_TELE_KEEP, NULL);
	tn_store_relaxed32(&d->tele.hdr->recording, tn_config_bool(d->config, TN_CFG_METRICS_RECORDING));
	tn_store_relaxed64(&d->tele.hdr->config_generation, tn_config_generation(d->config));
	return TN_OK;
}

static tn_status workers_start(struct daemon *d)
{
	d->env.worker_cnt = d->plan.worker_cnt;
	for (uint32_t i = 0; i < d->plan.worker_cnt; i++) {
		tn_status s = dp_worker_new(&d->env, i, &d->workers[i]);
		if (s == TN_OK)
			s = dp_crew_add(&d->ctl.crew, d->workers[i]);
		if (s == TN_OK && (s = dp_worker_start(d->workers[i], d->plan.cpus[i])) != TN_OK)
			dp_crew_drop(&d->ctl.crew); /* the others are stopped; this one would never say so */
		if (s != TN_OK) {
			tn_log_error("start", "worker %u cannot start: %s", i, tn_status_meaning(s));
			return s;
		}
		d->started_cnt++;
	}
	return TN_OK;
}

/* Before the workers, so that a busy port is told before anything runs; nobody is accepted before the first turn. */
static tn_status lanes_listen(struct daemon *d)
{
	char err[TN_ERR_TEXT * 2];
	tn_status s = TN_OK;

	if ((d->plan.transports & 1u << TN_TRANSPORT_TCP) != 0)
		s = dp_greet_listen(&d->ctl.greet, err, sizeof err);
	return s == TN_OK ? s : complain(s, err);
}

static tn_status doors_open(struct daemon *d)
{
	char err[TN_ERR_TEXT];
	tn_status s = dp_link_new(&d->ctl, d->dir, &d->ctl.link);

	if (s != TN_OK)
		return complain(s, "the link to the control plane cannot be set up");
	s = dp_attach_listen(&d->ctl.attach, d->dir);
	if (s != TN_OK) {
		(void)snprintf(err, sizeof err, "runtime_dir %.100s: cannot make " DP_ATTACH_SOCKET ": %s", d->dir,
		               tn_status_meaning(s));
		return complain(s, err);
	}
	return TN_OK;
}

static tn_status start(struct daemon *d)
{
	char err[512] = "";
	tn_status s = dp_plan_make(d->config, &d->plan, err, sizeof err);

	if (s != TN_OK || (s = tn_daemon_runtime_dir(d->dir, err, sizeof err)) != TN_OK)
		return complain(s, err);
	if (tn_rand_id128(&d->env.session) != TN_OK)
		return complain(TN_SYSTEM, "no randomness");
	if ((s = signals_open(d)) != TN_OK || (s = lease_take(d)) != TN_OK || (s = telemetry_open(d)) != TN_OK)
		return s;
	d->env.config = d->config;
	d->env.telemetry = &d->tele;
	s = dp_control_init(&d->ctl, &(struct dp_control_cfg){ .config = d->config, .args = d->args, .env = &d->env,
	                                                       .telemetry = &d->tele });
	d->config = NULL;
	if (s != TN_OK)
		return complain(s, "the control thread cannot be set up");
	if ((s = dp_loop_add(&d->ctl.loop, &d->signals, EPOLLIN)) != TN_OK)
		return complain(s, "signals cannot be watched");
	if ((s = lanes_listen(d)) != TN_OK || (s = workers_start(d)) != TN_OK)
		return s;
	if ((s = dp_peers_meet_self(&d->ctl)) != TN_OK)
		return complain(s, "lanes to this host itself cannot be set up");
	s = doors_open(d);
	TN_HOOK(dp_doors_open);
	return s;
}

/* ---- run ---- */

/* Waits a turn while workers still use the configuration before the running one. */
static void reload(struct daemon *d)
{
	(void)tn_sdnotify("RELOADING=1");
	d->reload = dp_control_reload(&d->ctl, NULL) == TN_AGAIN;
	(void)tn_sdnotify("READY=1");
}

static void look_at_lease(struct daemon *d)
{
	if (d->lease_lost || shr_lease_intact(&d->lease))
		return;
	d->lease_lost = true;
	tn_log_error("lease", "somebody removed the lock file in %s: a second data plane could start there", d->dir);
}

/* One turn of the control thread while it serves, and what is done now and then. */
static void turn(struct daemon *d)
{
	dp_control_turn(&d->ctl, DP_TURN_NS);
	uint64_t now_ns = d->ctl.loop.now_ns;
	if (d->watchdog_ns != 0 && now_ns - d->fed_ns >= d->watchdog_ns) {
		(void)tn_sdnotify("WATCHDOG=1");
		d->fed_ns = now_ns;
	}
	if (now_ns - d->looked_ns >= LEASE_LOOK_NS) {
		look_at_lease(d);
		d->looked_ns = now_ns;
	}
}

static void run(struct daemon *d)
{
	d->watchdog_ns = tn_sdnotify_watchdog_ns();
	dp_control_run(&d->ctl);
	(void)tn_sdnotifyf("READY=1\nSTATUS=%u workers, generation %llu", d->plan.worker_cnt,
	                   (unsigned long long)d->tele.generation);
	tn_log_info("start", "ready: %u workers, runtime_dir %s, generation %llu", d->plan.worker_cnt, d->dir,
	            (unsigned long long)d->tele.generation);
	while (!d->stop && !d->ctl.stop_asked) {
		turn(d);
		if (d->reload)
			reload(d);
	}
}

/* ---- stop ---- */

static void workers_quiet(struct dp_flight *f)
{
	tn_container_of(f, struct daemon, quiet)->all_quiet = true;
}

/* An operator asked: what was accepted may end, for so long. A signal ends that. */
static void finish_work(struct daemon *d)
{
	uint64_t deadline_ns = tn_now_ns() + d->ctl.drain_ns;

	(void)tn_sdnotifyf("STOPPING=1\nEXTEND_TIMEOUT_USEC=%llu\nSTATUS=draining",
	                   (unsigned long long)((d->ctl.drain_ns + DRAIN_NS + JOIN_NS) / TN_NS_PER_US));
	tn_log_info("stop", "draining: what was accepted has %llu ms to end",
	            (unsigned long long)(d->ctl.drain_ns / TN_NS_PER_MS));
	d->quiet.done = workers_quiet;
	dp_control_drain_begin(&d->ctl, &d->quiet);
	d->all_quiet = d->quiet.waiting == 0;
	while (!d->all_quiet && !d->stop && tn_now_ns() < deadline_ns)
		turn(d);
	tn_log_info("stop", d->all_quiet ? "everything ended" : "not everything ended: the rest is canceled");
}

static void workers_stopped(struct dp_flight *f)
{
	tn_container_of(f, struct daemon, stopped)->all_stopped = true;
}

/* True when every worker has left its loop. */
static bool drain(struct daemon *d)
{
	uint64_t deadline_ns = tn_now_ns() + DRAIN_NS;

	(void)tn_sdnotify("STOPPING=1\nSTATUS=draining");
	tn_log_info("stop", "draining");
	d->stopped.done = workers_stopped;
	dp_control_drain(&d->ctl, &d->stopped);
	d->all_stopped = d->stopped.waiting == 0;
	while (!d->all_stopped && tn_now_ns() < deadline_ns)
		dp_control_turn(&d->ctl, DP_TURN_NS);
	return d->all_stopped;
}

static void finish(struct daemon *d)
{
	for (uint32_t i = 0; i < d->started_cnt; i++)
		dp_worker_join(d->workers[i], tn_now_ns() + JOIN_NS);
	/* Jobs of the slow pool that end in dp_control_fini() have nobody left to tell. */
	if (d->ctl.cfg.env != NULL)
		dp_crew_fini(&d->ctl.crew);
	/* Lanes that are open at the end subtract from counters of the control thread's peers, and attempts end in its
	 * tables. */
	for (uint32_t i = 0; i < TN_ARRAY_LEN(d->workers); i++)
		if (d->workers[i] != NULL)
			dp_worker_free(d->workers[i]);
	dp_control_fini(&d->ctl);
	if (d->tele.hdr != NULL)
		tn_store_relaxed32(&d->tele.hdr->state, SHR_TELE_STOPPED);
	shr_tele_close(&d->tele);
	if (d->signals.fd >= 0)
		close(d->signals.fd);
	shr_lease_release(&d->lease);
	tn_config_free(d->config);
}

static void raise_fd_limit(void)
{
	struct rlimit fds;

	if (getrlimit(RLIMIT_NOFILE, &fds) == 0) {
		fds.rlim_cur = fds.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &fds);
	}
}

int dp_daemon_run(const struct tn_daemon_args *args, struct tn_config *config)
{
	struct daemon *d = calloc(1, sizeof *d);
	bool whole = true;
	char *dir = strdup(tn_config_str(config, TN_CFG_RUNTIME_DIR));
	tn_status s;

	if (d == NULL || dir == NULL) {
		free(d);
		free(dir);
		tn_config_free(config);
		return 1;
	}
	d->args = args;
	d->config = config;
	d->dir = dir;
	d->lease = SHR_LEASE_NONE;
	d->signals.fd = -1;
	(void)umask(0077); /* what appears in the runtime directory is ours alone */
	raise_fd_limit();
	s = start(d);
	if (s == TN_OK)
		run(d);
	if (s == TN_OK && d->ctl.stop_asked && !d->stop)
		finish_work(d);
	if (d->started_cnt > 0)
		whole = drain(d);
	if (!whole) {
		/* A worker that does not stop may still touch client memory: nothing is unmapped, only names are removed. */
		tn_log_error("stop", "workers did not stop within %u s; leaving without them", (unsigned)(DRAIN_NS / TN_NS_PER_S));
		dp_attach_close(&d->ctl.attach);
		tn_log_close();
		_exit(1);
	}
	finish(d);
	free(d);
	free(dir);
	if (s == TN_OK)
		tn_log_info("stop", "stopped");
	tn_log_close();
	return s == TN_OK ? 0 : 1;
}
