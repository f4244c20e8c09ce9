/* SPDX-License-Identifier: Apache-2.0
 * The order of life: runtime directory, lease, key, observability (HTTP), sockets, node; then the loop; then all of it
 * backwards. The only owner of signals and of the verdict whether the data plane lives. Main thread. */
#include "controlplane/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "common/clock.h"
#include "common/hook.h"
#include "common/log.h"
#include "common/message.h"
#include "common/sdnotify.h"
#include "common/version.h"
#include "controlplane/gate.h"
#include "controlplane/loop.h"
#include "controlplane/node.h"
#include "controlplane/observe/observe.h"
#include "controlplane/peer/keys.h"
#include "shm-ring/lease.h"
#include "shm-ring/telemetry.h"

#define LEASE_WAIT_NS (2 * TN_NS_PER_S) /* for a predecessor that is being killed */
#define EVENT_MARK "controlplane.events"
#define TICK_MS 50 /* events reach the log, and a dead data plane reaches /ready, within this */
#define LOOK_NS (5 * TN_NS_PER_MS) /* between two looks at the lease, however often the loop turns */

struct daemon {
	const struct tn_daemon_args *args;
	struct tn_config *start_config; /* node, loop and ZAP point into it for their whole life: cold keys never change */
	struct tn_config *config;       /* in effect: the start's, or that of the last reload */
	struct shr_lease lease;
	struct cp_keys keys;
	struct cp_observe *observe;
	struct cp_loop *loop;
	struct cp_node *node;
	struct shr_published port_file;
	int signal_fd;
	bool engine_silent;            /* said so in the log */
	bool engine_alive;
	uint64_t engine_look_ns;       /* when that is looked at again */
	uint64_t engine_generation;    /* of the telemetry file that is mapped */
	bool stop;
};

/* ---- start ---- */

static tn_status complain(const char *what)
{
	tn_log_error("start", "%s", what);
	return TN_CONFIG;
}

static tn_status signals_open(struct daemon *d)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0 || (d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return complain("signalfd failed");
	signal(SIGPIPE, SIG_IGN);
	return TN_OK;
}

static tn_status lease_take(struct daemon *d, const char *dir, const struct tn_id128 *session)
{
	char text[256];
	struct shr_lease_info info = { 0 };
	tn_status s = shr_lease_take_until(dir, "controlplane", session, tn_now_ns() + LEASE_WAIT_NS, &d->lease);
	if (s == TN_OK)
		return s;
	if (s == TN_BUSY && shr_lease_read(dir, "controlplane", &info) == TN_OK)
		snprintf(text, sizeof text, "another tent-controlplane (pid %u) serves runtime_dir %s", info.pid, dir);
	else
		snprintf(text, sizeof text, "runtime_dir %s: cannot take the lease: %s", dir, tn_status_meaning(s));
	complain(text);
	return s;
}

/* Renders go to the log as they are: they are whole JSON lines already. */
static void event_sink(void *ctx, const char *line, size_t len)
{
	(void)ctx;
	(void)tn_log_line(line, len > 0 && line[len - 1] == '\n' ? len - 1 : len);
}

static uint32_t required_transports(const struct tn_config *cfg)
{
	uint32_t bits = 0;
	for (unsigned i = 0; i < tn_config_list_cnt(cfg, TN_CFG_OBS_REQUIRED_TRANSPORTS); i++)
		for (unsigned t = 0; t < TN_TRANSPORT_CNT; t++)
			if (strcmp(tn_config_list_str(cfg, TN_CFG_OBS_REQUIRED_TRANSPORTS, i), tn_transport_name(t)) == 0)
				bits |= 1u << t;
	return bits;
}

static tn_status observe_start(struct daemon *d)
{
	char mark[512];
	snprintf(mark, sizeof mark, "%s/" EVENT_MARK, tn_config_str(d->config, TN_CFG_RUNTIME_DIR));
	struct cp_observe_cfg cfg = {
		.build = { TN_VERSION, TN_COMMIT, TN_BUILD_TYPE },
		.openmetrics = tn_config_bool(d->config, TN_CFG_METRICS_OPENMETRICS_ENABLED),
		.recording = tn_config_bool(d->config, TN_CFG_METRICS_RECORDING),
		.stall_ns = tn_config_ns(d->config, TN_CFG_OBS_READY_STALL_MS),
		.required_transports = required_transports(d->config),
		.sink = event_sink,
		.mark_path = mark,
	};
	return cp_observe_create(&cfg, &d->observe);
}

/* The real port goes to <runtime_dir>/http.port, so that a port of 0 can be found. */
static void write_port(struct daemon *d, const char *host, uint16_t port)
{
	char path[SHR_LEASE_PATH_MAX], text[96];
	bool v6 = strchr(host, ':') != NULL;
	if ((size_t)snprintf(path, sizeof path, "%s/http.port", tn_config_str(d->config, TN_CFG_RUNTIME_DIR)) >= sizeof path)
		return;
	FILE *f = fopen(path, "we");
	snprintf(text, sizeof text, "%s%s%s:%u\n", v6 ? "[" : "", host, v6 ? "]" : "", port);
	if (f == NULL || fputs(text, f) < 0)
		tn_log_warn("http", "cannot write %s: %s", path, strerror(errno));
	if (f != NULL && (fclose(f) != 0 || shr_publish_note(path, &d->port_file) != TN_OK))
		tn_log_warn("http", "%s was not written whole", path);
	tn_log_info("http", "metrics at http://%.*s/metrics", (int)strcspn(text, "\n"), text);
}

static tn_status http_start(struct daemon *d)
{
	char err[TN_ERR_TEXT];
	uint16_t port;
	const char *host = tn_config_str(d->config, TN_CFG_METRICS_HTTP_HOST);
	if (!tn_config_bool(d->config, TN_CFG_METRICS_HTTP_ENABLED))
		return TN_OK;
	tn_status s = cp_observe_http_start(d->observe, host, (uint16_t)tn_config_u64(d->config, TN_CFG_METRICS_HTTP_PORT), &port,
					    err);
	if (s != TN_OK)
		return complain(err);
	cp_gate_open(TN_DOOR_HTTP, cp_observe_http_fd(d->observe));
	write_port(d, host, port);
	TN_HOOK(cp_http_open);
	return TN_OK;
}

/* Also from inside the node: nothing of it stands in d->config. */
static json_t *reload(void *ctx)
{
	struct daemon *d = ctx;
	struct tn_config *fresh;
	json_t *report = NULL;
	tn_sdnotify("RELOADING=1");
	if (tn_daemon_reload(d->args, d->config, &fresh, &report) == TN_OK) {
		if (d->config != d->start_config)
			tn_config_free(d->config);
		d->config = fresh;
		cp_observe_reconfigure(d->observe, tn_config_bool(fresh, TN_CFG_METRICS_RECORDING),
				       tn_config_ns(fresh, TN_CFG_OBS_READY_STALL_MS));
	}
	tn_sdnotify("READY=1");
	return report;
}

static tn_status node_start(struct daemon *d, const struct tn_id128 *session)
{
	uint64_t seed;
	struct cp_node_cfg cfg = { .config = d->config, .self = d->keys.id, .control_session = *session,
				   .metrics = cp_observe_metrics(d->observe), .recent = cp_observe_recent(d->observe), .emit = cp_loop_emit,
				   .reconnect = cp_loop_reconnect, .emit_ctx = d->loop, .reload = reload, .reload_ctx = d };
	if (tn_rand_os(&seed, sizeof seed) != TN_OK)
		return complain("no randomness");
	cfg.seed = seed;
	tn_status s = cp_node_new(&cfg, &d->node);
	if (s == TN_OK)
		cp_loop_attach(d->loop, d->node);
	return s;
}

static tn_status keys_ensure(struct daemon *d)
{
	char err[512];
	bool made;
	const char *path = tn_config_str(d->config, TN_CFG_CONTROL_KEY_FILE);
	tn_status s = cp_keys_ensure(path, &d->keys, &made, err, sizeof err);
	if (s != TN_OK)
		complain(err);
	else if (made)
		tn_log_info("start", "made a key of this host in %s; its public half for the peers of other hosts: %s", path,
			    d->keys.public_text);
	return s;
}

static tn_status start(struct daemon *d)
{
	char err[512] = "";
	struct tn_id128 session;
	const char *dir = tn_config_str(d->config, TN_CFG_RUNTIME_DIR);
	tn_status s = sodium_init() < 0 || tn_rand_id128(&session) != TN_OK ? complain("no randomness") : TN_OK;
	if (s == TN_OK && (s = cp_gate_init(tn_config_peer_cnt(d->config), err, sizeof err)) != TN_OK)
		complain(err);
	if (s == TN_OK)
		s = signals_open(d);
	if (s == TN_OK && (s = tn_daemon_runtime_dir(dir, err, sizeof err)) != TN_OK)
		complain(err);
	if (s == TN_OK)
		s = lease_take(d, dir, &session);
	TN_HOOK(cp_lease_taken);
	if (s == TN_OK)
		s = keys_ensure(d);
	if (s == TN_OK)
		s = observe_start(d);
	if (s == TN_OK)
		s = http_start(d);
	if (s == TN_OK && (s = cp_loop_new(d->config, &d->keys, &d->loop, err, sizeof err)) != TN_OK)
		complain(err);
	if (s == TN_OK)
		s = node_start(d, &session);
	return s;
}

/* ---- the data plane's life, seen from here ---- */

/* The kernel holds the lease for as long as the process lives, in whatever pid namespace; the pid that it tells may be
 * anybody's here. A successor's lease says that the one we know is dead. Where nothing can be learned (the lock file was
 * removed, no descriptor is left), the heartbeat of the link decides. */
static bool engine_lives(const struct daemon *d)
{
	const struct cp_link *l = &d->node->link;
	struct shr_lease_info info;
	if (shr_lease_read(tn_config_str(d->config, TN_CFG_RUNTIME_DIR), "dataplane", &info) != TN_OK)
		return l->attached;
	if (!info.held)
		return false;
	return info.pid == 0 || tn_id128_is_zero(&l->session) || tn_id128_eq(&info.session, &l->session);
}

/* Nearly every turn, for the end of the link's connection wakes the loop at once; and in any case when it matters: somebody
 * whom we believe dead has attached. */
static bool engine_alive(struct daemon *d)
{
	uint64_t now = tn_now_ns();
	if (now >= d->engine_look_ns || (!d->engine_alive && d->node->link.attached)) {
		d->engine_alive = engine_lives(d);
		d->engine_look_ns = now + LOOK_NS;
	}
	return d->engine_alive;
}

/* Map the newest telemetry file: the one the data plane named, or, before any attach, the newest that is there, so that
 * a control plane that starts beside a dead data plane still shows its last words. */
static void engine_map(struct daemon *d)
{
	char path[512];
	const char *dir = tn_config_str(d->config, TN_CFG_RUNTIME_DIR);
	uint64_t generation = d->node->link.generation;
	uint32_t cnt = 0;
	if (generation == 0 && (shr_tele_scan(dir, &generation, 1, &cnt) != TN_OK || cnt == 0))
		return;
	if (generation == d->engine_generation)
		return;
	char name[SHR_TELE_NAME_MAX];
	shr_tele_name(generation, name);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	tn_status s = cp_observe_attach(d->observe, path);
	if (s == TN_OK || s == TN_ABI_MISMATCH)
		d->engine_generation = generation;
	if (s != TN_OK && s != TN_AGAIN)
		tn_log_warn("link", "cannot read the data plane's counters in %s: %s", path, tn_status_meaning(s));
}

static void engine_look(struct daemon *d)
{
	const struct cp_link *l = &d->node->link;
	char text[CP_TROUBLE_TEXT];
	engine_map(d);
	struct cp_observe_facts facts = { .engine_alive = engine_alive(d), .peer_bus_bound = true,
					  .link_up = l->attached && l->snapshot_done };
	if (!facts.engine_alive && (l->attached || l->silent))
		cp_node_link_lost(d->node, tn_now_ns());
	if (l->silent)
		facts.silent_since_ns = l->heard_ns;
	if (l->silent && !d->engine_silent)
		tn_log_warn("link", "%s", cp_node_link_trouble(d->node, text));
	d->engine_silent = l->silent;
	cp_observe_facts(d->observe, &facts);
}

/* ---- loop ---- */

static void on_signals(struct daemon *d)
{
	struct signalfd_siginfo si;
	while (read(d->signal_fd, &si, sizeof si) == (ssize_t)sizeof si) {
		if (si.ssi_signo == SIGHUP)
			json_decref(reload(d));
		else
			d->stop = true;
	}
}

static int wait_ms(const struct daemon *d, bool more, uint64_t now)
{
	uint64_t next = cp_node_next_ns(d->node);
	uint64_t left = next > now ? next - now : 0;
	if (more)
		return 0;
	return next == UINT64_MAX ? TICK_MS : TN_MIN(TICK_MS, tn_ns_to_poll_ms(left));
}

static void run(struct daemon *d)
{
	uint64_t watchdog_ns = tn_sdnotify_watchdog_ns(), fed_ns = 0;
	bool more = false;
	tn_sdnotifyf("READY=1\nSTATUS=serving %s", tn_config_str(d->config, TN_CFG_HOST_NAME));
	tn_log_info("start", "ready: host %s, peers at %s", tn_config_str(d->config, TN_CFG_HOST_NAME),
		    tn_config_str(d->config, TN_CFG_CONTROL_BIND));
	while (!d->stop) {
		cp_loop_wait(d->loop, d->signal_fd, wait_ms(d, more, tn_now_ns()));
		on_signals(d);
		cp_loop_drain(d->loop);
		uint64_t now = tn_now_ns();
		cp_node_tick(d->node, now);
		engine_look(d);
		more = cp_observe_poll(d->observe);
		cp_gate_report(cp_observe_metrics(d->observe), now);
		if (watchdog_ns != 0 && now - fed_ns >= watchdog_ns) {
			tn_sdnotify("WATCHDOG=1");
			fed_ns = now;
		}
	}
}

static void finish(struct daemon *d)
{
	if (d->observe != NULL)
		(void)cp_observe_poll(d->observe);
	cp_node_free(d->node);
	cp_loop_free(d->loop);
	(void)shr_publish_remove(&d->port_file);
	cp_observe_destroy(d->observe);
	cp_gate_fini();
	cp_keys_wipe(&d->keys);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	shr_lease_release(&d->lease);
	if (d->config != d->start_config)
		tn_config_free(d->start_config);
	tn_config_free(d->config);
}

int cp_daemon_run(const struct tn_daemon_args *args, struct tn_config *config)
{
	struct daemon *d = calloc(1, sizeof *d);
	if (d == NULL)
		return 1;
	*d = (struct daemon){ .args = args, .start_config = config, .config = config, .lease = SHR_LEASE_NONE, .signal_fd = -1 };
	(void)umask(0077); /* sockets and files of the runtime directory are ours alone */
	tn_message_watch_memory();
	(void)prctl(PR_SET_DUMPABLE, 0); /* key and tickets are in this process: no core dump, no ptrace by the same uid */
	tn_status s = start(d);
	if (s == TN_OK) {
		run(d);
		tn_sdnotify("STOPPING=1");
		tn_log_info("stop", "stopped");
	}
	finish(d);
	free(d);
	tn_log_close();
	return s == TN_OK ? 0 : 1;
}
