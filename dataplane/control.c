/* SPDX-License-Identifier: Apache-2.0
 * Owner of struct dp_control: builds and frees its rooms, runs the turns of the loop, and sends the workers' events to
 * the room that they are about. Control thread. */
#include "dataplane/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hook.h"
#include "common/log.h"
#include "dataplane/ingress/copy.h"
#include "dataplane/segment/local.h"
#include "dataplane/segment/remote.h"
#include "dataplane/transport/registry.h"

#define PER_CLIENT_CAP (1u << 26) /* handles of one kind: bounded by the limits of the clients */

/* ---- events of the workers ---- */

static void on_client_broken(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt)
{
	struct dp_app *c = dp_attach_find(&ctl->attach, (uint32_t)evt->num);

	(void)worker;
	if (c == NULL)
		return;
	tn_log_warn("attach", "client %u (pid %d, %s) broke its ring and is dropped", c->id, (int)c->cred.pid, c->app);
	dp_app_drop(c, TN_CLIENT_BROKEN);
}

static void on_remote_refresh(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt)
{
	(void)worker;
	dp_remote_refresh(ctl, evt->num, evt->num2);
}

static void on_peer_refresh(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt)
{
	(void)worker;
	dp_peers_refresh(ctl, (uint32_t)evt->num);
}

static void on_note(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt)
{
	dp_notes_deliver(ctl, worker, evt->num, evt->num2, evt->ptr);
}

static void on_datagram(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt)
{
	const struct dp_peer_slot *slot = dp_peers_at(&ctl->peers, (uint32_t)evt->num2);

	(void)worker;
	if (slot != NULL)
		dp_link_datagram(ctl->link, slot->name, evt->ptr, evt->len);
	free(evt->ptr);
}

static void on_lane_state(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt)
{
	struct dp_peer_slot *slot = dp_peers_at(&ctl->peers, (uint32_t)evt->num2);

	(void)worker;
	if (slot == NULL || evt->len >= TN_TRANSPORT_CNT || evt->num != 0)
		return;
	struct shr_event_shm e = { .mono_ns = ctl->loop.now_ns, .status = TN_PATH_DOWN, .kind = SHR_EVENT_LANE_DOWN,
	                           .transport = (uint8_t)evt->len, .phase = TN_PHASE_CONNECT, .reason = TN_REASON_UNAVAILABLE,
	                           .arg = slot->index, .config_generation = (uint32_t)tn_config_generation(ctl->config) };
	shr_event_write(&ctl->keep, &e);
}

static void on_event(void *arg, uint32_t worker, const struct dp_evt *evt)
{
	static void (*const handlers[])(struct dp_control *, uint32_t, const struct dp_evt *) = {
		[DP_EVT_CLIENT_BROKEN] = on_client_broken,
		[DP_EVT_REMOTE_REFRESH] = on_remote_refresh,
		[DP_EVT_PEER_REFRESH] = on_peer_refresh,
		[DP_EVT_NOTE] = on_note,
		[DP_EVT_DATAGRAM] = on_datagram,
		[DP_EVT_COPY] = dp_copy_ask,
		[DP_EVT_LANE_STATE] = on_lane_state,
	};

	if (evt->kind < TN_ARRAY_LEN(handlers) && handlers[evt->kind] != NULL)
		handlers[evt->kind](arg, worker, evt);
}

/* ---- life ---- */

static void tune_acked(struct dp_flight *f);
static void tuned_clear(struct dp_tuned *t);

tn_status dp_control_init(struct dp_control *ctl, const struct dp_control_cfg *cfg)
{
	uint64_t seeds[4];
	uint32_t thread = cfg->telemetry->lay.worker_cnt;
	tn_status s;

	*ctl = (struct dp_control){ .cfg = *cfg, .config = cfg->config, .tune_flight = { .done = tune_acked } };
	dp_notes_init(&ctl->notes, tn_real_ns() / TN_NS_PER_US);
	tn_metrics_bind(&ctl->metrics, shr_tele_cells(cfg->telemetry, thread),
	                tn_config_bool(cfg->config, TN_CFG_METRICS_RECORDING));
	shr_event_writer_init(&ctl->events, cfg->telemetry, thread, false);
	shr_event_writer_init(&ctl->keep, cfg->telemetry, thread, true);
	s = tn_rand_os(seeds, sizeof seeds);
	if (s == TN_OK)
		s = dp_loop_init(&ctl->loop);
	if (s != TN_OK)
		return s;
	tn_rand_seed(&ctl->rand, seeds[0]);
	dp_crew_init(&ctl->crew, &ctl->loop, on_event, ctl);
	dp_attach_init(&ctl->attach, ctl, (uint32_t)tn_config_u64(cfg->config, TN_CFG_LIMITS_MAX_CLIENTS));
	dp_peers_init(&ctl->peers, ctl);
	dp_handles_init(&ctl->memories, PER_CLIENT_CAP);
	dp_handles_init(&ctl->segments, PER_CLIENT_CAP);
	dp_handles_init(&ctl->remotes, PER_CLIENT_CAP);
	dp_handles_init(&ctl->qps, PER_CLIENT_CAP);
	dp_names_init(&ctl->segment_names, seeds[1]);
	dp_names_init(&ctl->remote_refs, ~seeds[1]);
	/* Registration ids and generations of another incarnation miss: theirs count from another random place. */
	ctl->registration_next = seeds[2] & ~UINT64_C(0xffffff);
	ctl->segment_generation = seeds[3] & UINT64_C(0xffffffff0000); /* below 2^48: a JSON number holds it */
	s = dp_greet_init(&ctl->greet, ctl);
	return s == TN_OK ? dp_reap_init(&ctl->reap, &ctl->loop) : s;
}

void dp_control_fini(struct dp_control *ctl)
{
	if (ctl->cfg.env == NULL)
		return;
	dp_link_free(ctl->link);
	ctl->link = NULL;
	dp_reap_fini(&ctl->reap);
	dp_crew_fini(&ctl->crew);
	dp_notes_fini(&ctl->notes);
	dp_attach_fini(&ctl->attach);
	dp_greet_fini(&ctl->greet);
	dp_peers_fini(&ctl->peers);
	dp_handles_fini(&ctl->memories);
	dp_handles_fini(&ctl->segments);
	dp_handles_fini(&ctl->remotes);
	dp_handles_fini(&ctl->qps);
	tuned_clear(&ctl->tuned);
	tn_config_free(ctl->config_old);
	tn_config_free(ctl->config);
	dp_loop_fini(&ctl->loop);
	ctl->cfg.env = NULL;
}

void dp_control_turn(struct dp_control *ctl, uint64_t longest_ns)
{
	dp_loop_turn(&ctl->loop, ctl->link_more ? 0 : longest_ns);
	dp_crew_flush(&ctl->crew);
	dp_notes_flush(ctl);
	ctl->link_more = ctl->link != NULL && dp_link_poll(ctl->link);
	tn_store_relaxed64(&ctl->cfg.telemetry->hdr->heartbeat_ns, ctl->loop.now_ns);
}

/* ---- as operators see it ---- */

static void enter(struct dp_control *ctl, enum dp_pair_state state)
{
	static const uint8_t shown[DP_PAIR_STATE_CNT] = {
		[DP_PAIR_STARTING] = SHR_TELE_STARTING, [DP_PAIR_RUNNING] = SHR_TELE_RUNNING,
		[DP_PAIR_PAUSED] = SHR_TELE_PAUSED, [DP_PAIR_DRAINING] = SHR_TELE_DRAINING,
	};

	dp_control_move(DP_CONTROL_PAIR, &ctl->pair, state);
	tn_store_relaxed32(&ctl->cfg.telemetry->hdr->state, shown[state]);
	dp_control_event(ctl, SHR_EVENT_STATE, TN_OK, shown[state]);
}

static void set_mode(struct dp_control *ctl, enum dp_mode mode, struct dp_flight *done)
{
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_MODE, .fd = -1, .num = mode }, done);
}

void dp_control_run(struct dp_control *ctl) { enter(ctl, DP_PAIR_RUNNING); }

tn_status dp_control_pause(struct dp_control *ctl, bool on, bool *changed_out)
{
	if (ctl->pair != DP_PAIR_RUNNING && ctl->pair != DP_PAIR_PAUSED)
		return dp_control_drains(ctl) ? TN_CLOSED : TN_AGAIN;
	*changed_out = (ctl->pair == DP_PAIR_PAUSED) != on;
	if (!*changed_out)
		return TN_OK;
	tn_log_info("pair", on ? "paused: requests wait" : "resumed");
	enter(ctl, on ? DP_PAIR_PAUSED : DP_PAIR_RUNNING);
	set_mode(ctl, on ? DP_MODE_PAUSE : DP_MODE_RUN, &ctl->mode_flight);
	return TN_OK;
}

static bool is_required(const struct dp_control *ctl, enum tn_transport kind)
{
	for (unsigned i = 0; i < tn_config_list_cnt(ctl->config, TN_CFG_OBS_REQUIRED_TRANSPORTS); i++)
		if (strcmp(tn_config_list_str(ctl->config, TN_CFG_OBS_REQUIRED_TRANSPORTS, i), tn_transport_name(kind)) == 0)
			return true;
	return false;
}

tn_status dp_control_transport(struct dp_control *ctl, enum tn_transport kind, bool on, bool force, bool *changed_out)
{
	uint32_t bit = UINT32_C(1) << kind;

	if ((dp_registry_mask(ctl->config) & bit) == 0)
		return TN_UNSUPPORTED;
	if (!on && !force && is_required(ctl, kind))
		return TN_BUSY;
	*changed_out = ((ctl->transports_off & bit) == 0) != on;
	if (!*changed_out)
		return TN_OK;
	tn_log_info("transport", "%s is switched %s", tn_transport_name(kind), on ? "on" : "off");
	ctl->transports_off ^= bit;
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_TRANSPORT, .fd = -1, .num = kind, .num2 = on,
	                                               .len = (uint32_t)tn_config_u64(ctl->config, TN_CFG_TRANSPORTS_DISABLE_GRACE_MS) },
	                  &ctl->transport_flights[kind]);
	return TN_OK;
}

static void refuse_all(struct dp_control *ctl)
{
	enter(ctl, DP_PAIR_DRAINING);
	dp_attach_announce_shutdown(&ctl->attach);
	TN_HOOK(dp_drain);
}

void dp_control_drain_begin(struct dp_control *ctl, struct dp_flight *quiet)
{
	refuse_all(ctl);
	set_mode(ctl, DP_MODE_DRAIN, quiet);
}

void dp_control_drain(struct dp_control *ctl, struct dp_flight *stopped)
{
	if (!dp_control_drains(ctl))
		refuse_all(ctl);
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_STOP, .fd = -1 }, stopped);
}

/* ---- hot values ---- */

static void tune_acked(struct dp_flight *f)
{
	struct dp_control *ctl = tn_container_of(f, struct dp_control, tune_flight);

	tn_config_free(ctl->config_old);
	ctl->config_old = NULL;
}

static tn_status reload_with(struct dp_control *ctl, const struct dp_tuned *tuned, struct json_t **report)
{
	struct tn_daemon_args args;
	struct tn_config *fresh;
	bool recording;
	tn_status s;

	if (ctl->cfg.args == NULL)
		return TN_UNSUPPORTED;
	if (ctl->config_old != NULL)
		return TN_AGAIN;
	args = *ctl->cfg.args;
	if (args.set_cnt + tuned->cnt > TN_DAEMON_SETS_MAX)
		return TN_LIMIT;
	for (unsigned i = 0; i < tuned->cnt; i++)
		args.sets[args.set_cnt++] = tuned->sets[i];
	s = tn_daemon_reload(&args, ctl->config, &fresh, report);
	if (s != TN_OK)
		return s;
	ctl->config_old = ctl->config;
	ctl->config = fresh;
	recording = tn_config_bool(fresh, TN_CFG_METRICS_RECORDING);
	tn_metrics_switch(&ctl->metrics, recording);
	tn_store_relaxed32(&ctl->cfg.telemetry->hdr->recording, recording);
	tn_store_relaxed64(&ctl->cfg.telemetry->hdr->config_generation, tn_config_generation(fresh));
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_TUNE, .fd = -1, .ptr = fresh,
	                                               .num = tn_config_generation(fresh) }, &ctl->tune_flight);
	return TN_OK;
}

tn_status dp_control_reload(struct dp_control *ctl, struct json_t **report)
{
	return reload_with(ctl, &ctl->tuned, report);
}

static void tuned_clear(struct dp_tuned *t)
{
	for (unsigned i = 0; i < t->cnt; i++)
		free(t->sets[i]);
	t->cnt = 0;
}

/* Adds one, or replaces that of the same key. */
static tn_status tuned_put(struct dp_tuned *t, const char *set)
{
	size_t key_len = strcspn(set, "=") + 1;
	unsigned i = 0;
	char *text;

	while (i < t->cnt && strncmp(t->sets[i], set, key_len) != 0)
		i++;
	if (i == TN_DAEMON_SETS_MAX)
		return TN_LIMIT;
	text = strdup(set);
	if (text == NULL)
		return TN_NO_MEMORY;
	if (i < t->cnt)
		free(t->sets[i]);
	else
		t->cnt++;
	t->sets[i] = text;
	return TN_OK;
}

static bool is_hot(const char *set)
{
	size_t len = strcspn(set, "=");

	for (unsigned key = 0; key < TN_CFG_KEY_CNT; key++) {
		const char *path = tn_config_key_path(key);
		if (strlen(path) == len && memcmp(path, set, len) == 0)
			return set[len] == '=' && tn_config_key_is_hot(key);
	}
	return false;
}

tn_status dp_control_tune(struct dp_control *ctl, const char *const *sets, unsigned cnt)
{
	struct dp_tuned next = { .cnt = 0 }, old = ctl->tuned;
	tn_status s = TN_OK;

	for (unsigned i = 0; i < old.cnt && s == TN_OK; i++)
		s = tuned_put(&next, old.sets[i]);
	for (unsigned i = 0; i < cnt && s == TN_OK; i++)
		s = is_hot(sets[i]) ? tuned_put(&next, sets[i]) : TN_CONFIG;
	if (s == TN_OK)
		s = reload_with(ctl, &next, NULL);
	if (s == TN_OK)
		ctl->tuned = next;
	tuned_clear(s == TN_OK ? &old : &next);
	return s;
}

/* ---- flight recorder ---- */

void dp_control_event(struct dp_control *ctl, enum shr_event_kind kind, tn_status status, uint64_t arg)
{
	struct shr_event_shm e = { .mono_ns = ctl->loop.now_ns, .status = status, .kind = (uint8_t)kind, .arg = arg,
	                           .config_generation = (uint32_t)tn_config_generation(ctl->config) };

	shr_event_write(status == TN_OK ? &ctl->events : &ctl->keep, &e);
}
