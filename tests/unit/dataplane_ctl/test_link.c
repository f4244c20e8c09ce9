/* SPDX-License-Identifier: Apache-2.0
 * The link against a scripted control plane: attach, snapshot, changes, opens, refreshes, requests, and its death. */
#include "dataplane/selection/reject.h"
#include "tests/unit/dataplane_ctl/link_rig.h"

static void attach_snapshot_changes(void)
{
	static struct shr_msg m;
	int sock, fd = memfd_of(65536, true);
	struct shr_msg_id id;
	uint64_t mem;
	char name[16];

	start();
	sock = app_attach(&b);
	mem = app_register(&b, sock, fd, 65536, SHR_RIGHT_ALL);
	for (int i = 0; i < 70; i++) { /* more than one chunk */
		(void)snprintf(name, sizeof name, "s%d", i);
		CU_ASSERT_EQUAL(app_publish(&b, sock, name, mem, 4096, SHR_ACCESS_PEERS, &id.id), TN_OK);
	}
	CU_ASSERT_FALSE(dp_link_attached(b.ctl.link));
	control_plane_up();
	hear("attach");
	CU_ASSERT_TRUE(tn_id128_eq(&in.session, &b.env.session));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(in.body, "host")), "here");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "endpoints")), 1);
	reply(TN_OK, ATTACHED);
	hear("snapshot");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "segments")), 64);
	CU_ASSERT_FALSE(json_is_true(json_object_get(in.body, "last")));
	/* Withdrawn during the snapshot: that change follows after it. */
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_WITHDRAW, &id, sizeof id, -1, &m), TN_OK);
	reply(TN_OK, "{}");
	hear("snapshot");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "segments")), 5);
	CU_ASSERT_TRUE(json_is_true(json_object_get(in.body, "last")));
	reply(TN_OK, "{}");
	hear("segment_withdrawn");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(in.body, "name")), "s69");
	reply(TN_OK, "{}");
	CU_ASSERT_EQUAL(app_publish(&b, sock, "late", mem, 4096, SHR_ACCESS_PEERS, NULL), TN_OK);
	hear("segment_published");
	const json_t *seg = json_object_get(in.body, "segment");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(seg, "name")), "late");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(seg, "generation")), b.ctl.segment_generation);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "sequence")), 72);
	reply(TN_OK, "{}");
	CU_ASSERT_EQUAL(app_publish(&b, sock, "odd", mem, 4096, SHR_ACCESS_PEERS, NULL), TN_OK);
	hear("segment_published");
	reply(TN_INVALID, NULL); /* it understood something else: all is told anew */
	attach();
	bool heard = turn_until(&b, hear_once());
	CU_ASSERT_TRUE(heard);
	CU_ASSERT_STRING_EQUAL(in.type, "heartbeat");
	reply(TN_OK, "{\"control_session\":\"" SESSION2 "\"}"); /* it restarted and we did not notice */
	attach();
	heard = turn_until(&b, hear_once());
	CU_ASSERT_TRUE(heard);
	CU_ASSERT_STRING_EQUAL(in.type, "heartbeat");
	reply(TN_STALE, NULL); /* it does not know us */
	attach();
	CU_ASSERT_EQUAL(b.env.self.b[0], 1);
	control_plane_down();
	bench_stop(&b);
	close(sock), close(fd);
}

static void open_at_a_peer(void)
{
	struct shr_msg_open_reply o;
	int sock;

	start();
	sock = app_attach(&b);
	CU_ASSERT_EQUAL(app_open(&b, sock, "b/kv", NULL), TN_CONTROLPLANE_DOWN);
	control_plane_up();
	attach();
	open_later(sock, "b/kv");
	hear("open");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(in.body, "ref")), "b/kv");
	CU_ASSERT_PTR_NULL(json_object_get(in.body, "stale_generation"));
	reply(TN_OK, FOUND(SESSION, "3"));
	CU_ASSERT_EQUAL_FATAL(opened(sock, &o), TN_OK);
	CU_ASSERT_EQUAL(o.length, 8192);
	CU_ASSERT_EQUAL(o.local, 0);
	CU_ASSERT_EQUAL(o.rights, SHR_RIGHT_REMOTE_READ | SHR_RIGHT_REMOTE_WRITE);
	/* The peer came before the remote that names it, on every worker. */
	for (unsigned w = 0; w < 2; w++) {
		unsigned peer_at = UINT32_MAX, remote_at = 0;
		for (unsigned i = 0; i < fake_posted(w)->cnt; i++) {
			if (fake_posted(w)->cmd[i].kind == DP_CMD_PEER_SET)
				peer_at = i;
			if (fake_posted(w)->cmd[i].kind == DP_CMD_REMOTE_SET)
				remote_at = i;
		}
		CU_ASSERT_TRUE(peer_at < remote_at);
	}
	CU_ASSERT_EQUAL(last_remote(0)->buffers[0].registration, UINT64_C(9223372036854775999));
	CU_ASSERT_EQUAL(last_remote(0)->buffers[1].segment_off, 4096);
	const struct dp_peer *p = fake_last(0, DP_CMD_PEER_SET)->ptr;
	CU_ASSERT_EQUAL(p->of[TN_TRANSPORT_TCP].cnt, 1);
	CU_ASSERT_EQUAL(p->frame_bytes, 65536);
	CU_ASSERT_STRING_EQUAL(p->name, "b");
	control_plane_down();
	bench_stop(&b);
	close(sock);
}

static void stale_handles_are_refreshed_once(void)
{
	struct shr_msg_open_reply o;
	int sock;

	start();
	control_plane_up();
	attach();
	sock = app_attach(&b);
	open_later(sock, "b/kv");
	hear("open");
	reply(TN_OK, FOUND(SESSION, "3"));
	CU_ASSERT_EQUAL_FATAL(opened(sock, &o), TN_OK);
	/* Asked once for all workers; not there at first, then newer, with a new incarnation of the peer. */
	fake_emit(0, &(struct dp_evt){ .kind = DP_EVT_REMOTE_REFRESH, .num = o.id, .num2 = 3 });
	fake_emit(1, &(struct dp_evt){ .kind = DP_EVT_REMOTE_REFRESH, .num = o.id, .num2 = 3 });
	hear("open");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "stale_generation")), 3);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(in.body, "stale_session")), SESSION);
	reply(TN_NOT_FOUND, NULL);
	hear("open");
	reply(TN_OK, FOUND(SESSION2, "1"));
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_REMOTE_SET) == 2));
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_PEER_SET), 2);
	CU_ASSERT_EQUAL(last_remote(1)->handle, o.id);
	CU_ASSERT_EQUAL(last_remote(1)->generation, 1);
	/* A late event about the version before is nothing. */
	fake_emit(0, &(struct dp_evt){ .kind = DP_EVT_REMOTE_REFRESH, .num = o.id, .num2 = 3 });
	/* Lanes refused: one question, answered by a PEER_SET also when nothing is new. */
	fake_emit(0, &(struct dp_evt){ .kind = DP_EVT_PEER_REFRESH, .num = 0 });
	fake_emit(1, &(struct dp_evt){ .kind = DP_EVT_PEER_REFRESH, .num = 0 });
	fake_emit(1, &(struct dp_evt){ .kind = DP_EVT_PEER_REFRESH, .num = 77 });
	hear("peer_refresh");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(in.body, "stale_session")), SESSION2);
	reply(TN_OK, "{\"peer\":" PEER(SESSION2) "}");
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_PEER_SET) == 3));
	/* Lost access ends the handle, until the peer's segment changes again. */
	fake_emit(0, &(struct dp_evt){ .kind = DP_EVT_REMOTE_REFRESH, .num = o.id, .num2 = 1 });
	hear("open");
	reply(TN_PERMISSION, NULL);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_REMOTE_SET) == 3));
	CU_ASSERT_TRUE(last_remote(0)->lost);
	CU_ASSERT_EQUAL(last_remote(0)->lost_status, TN_PERMISSION);
	struct tn_message m = { .id = 700, .type = "segment_changed" };
	m.body = json_loads("{\"peer\":\"b\",\"name\":\"kv\",\"session\":\"" SESSION2 "\",\"generation\":2}", 0, NULL);
	say(&m);
	tn_message_clear(&m);
	hear("open"); /* asked while the answer to segment_changed is made */
	reply(TN_OK, FOUND(SESSION2, "2"));
	hear("segment_changed");
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_REMOTE_SET) == 4));
	CU_ASSERT_FALSE(last_remote(0)->lost);
	CU_ASSERT_EQUAL(last_remote(0)->generation, 2);
	/* The peer is back: asked for when it is another incarnation than the one known, and not otherwise. */
	m = (struct tn_message){ .id = 701, .type = "peer_returned" };
	m.body = json_loads("{\"peer\":\"b\",\"session\":\"" SESSION2 "\"}", 0, NULL);
	say(&m);
	hear("peer_returned");
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_PEER_BACK) == 1)); /* workers try again at once */
	json_object_set_new(m.body, "session", json_string(SESSION));
	m.id = 702;
	say(&m);
	hear("peer_refresh");
	reply(TN_OK, "{\"peer\":" PEER(SESSION) "}");
	hear("peer_returned");
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_PEER_SET) == 4));
	json_object_set_new(m.body, "peer", json_string("nobody"));
	m.id = 703;
	say(&m);
	hear("peer_returned");
	tn_message_clear(&m);
	control_plane_down();
	bench_stop(&b);
	close(sock);
}

static void bad_answers_are_refused(void)
{
	static const char *const bad[] = {
		"{}", "{\"peer\":{},\"segment\":{}}", "{\"peer\":" PEER(SESSION) "}",
		"{\"peer\":" PEER(NO_SESSION) ",\"segment\":" SEG("1") "}",
		"{\"peer\":" PEER(SESSION) ",\"segment\":{\"generation\":1,\"publication\":\"" PUBLICATION
		"\",\"bytes\":9,\"buffers\":[{\"registration\":1,\"bytes\":8,\"rights\":2}]}}",
		"{\"peer\":" PEER(SESSION) ",\"segment\":{\"generation\":1,\"publication\":\"" PUBLICATION
		"\",\"bytes\":9,\"buffers\":[]}}",
	};
	struct shr_msg_open_reply o;
	int sock;

	start();
	control_plane_up();
	attach();
	sock = app_attach(&b);
	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++) {
		open_later(sock, "b/kv");
		hear("open");
		reply(TN_OK, bad[i]);
		CU_ASSERT_EQUAL(opened(sock, &o), TN_INTERNAL);
	}
	open_later(sock, "b/kv");
	hear("open");
	reply(TN_PEER_DOWN, NULL);
	CU_ASSERT_EQUAL(opened(sock, &o), TN_PEER_DOWN);
	open_later(sock, "b/kv");
	hear("open");
	reply(TN_STALE, NULL); /* "attach first": not what the application asked about */
	CU_ASSERT_EQUAL(opened(sock, &o), TN_CONTROLPLANE_DOWN);
	attach();
	CU_ASSERT_EQUAL(b.ctl.remotes.used, 0);
	(void)zmq_send(router, route, route_len, ZMQ_SNDMORE);
	(void)zmq_send(router, "not json", 8, 0);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.link->refused_cnt == 1));
	control_plane_down();
	bench_stop(&b);
	close(sock);
}

static void death_of_the_control_plane(void)
{
	struct shr_msg_open_reply o;
	int sock;

	start();
	control_plane_up();
	attach();
	sock = app_attach(&b);
	open_later(sock, "b/kv");
	hear("open");
	uint64_t begin_ns = tn_now_ns();
	control_plane_down();
	CU_ASSERT_EQUAL(opened(sock, &o), TN_CONTROLPLANE_DOWN); /* at once, not at its deadline */
	CU_ASSERT_TRUE(tn_now_ns() - begin_ns < TN_NS_PER_S);
	CU_ASSERT_EQUAL(b.ctl.link->state, DP_LINK_DOWN);
	control_plane_up();
	attach();
	open_later(sock, "b/kv");
	hear("open");
	close(sock); /* the asker dies before the answer */
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	reply(TN_OK, FOUND(SESSION, "1"));
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(b.ctl.remotes.used, 0);
	control_plane_down();
	bench_stop(&b);
}

static void tickets_and_questions_of_the_control_plane(void)
{
	start();
	control_plane_up();
	attach();
	CU_ASSERT_EQUAL(ask("install_ticket", "{\"ticket\":\"" TICKET "\",\"peer\":\"b\",\"peer_id\":\"" PEER_ID
	                                      "\",\"session\":\"" SESSION "\",\"addresses\":[\"127.0.0.1\",\"::1\","
	                                      "\"::ffff:192.0.2.7\"]}"), TN_OK);
	CU_ASSERT_EQUAL(b.ctl.greet.tickets.used_end, 1);
	CU_ASSERT_EQUAL(b.ctl.greet.tickets.entries[0].addr_cnt, 3);
	CU_ASSERT_EQUAL(b.ctl.greet.tickets.entries[0].addrs[2].addr.ss.ss_family, AF_INET); /* as accept(2) shows its lanes */
	CU_ASSERT_EQUAL(ask("install_ticket", "{\"ticket\":\"" TICKET "\",\"peer\":\"b\",\"peer_id\":\"" PEER_ID
	                                      "\",\"session\":\"" SESSION "\",\"addresses\":[]}"), TN_INVALID);
	CU_ASSERT_EQUAL(ask("install_ticket", "{\"ticket\":\"xx\"}"), TN_INVALID);
	CU_ASSERT_EQUAL(ask("install_ticket", "{\"ticket\":\"" TICKET "\",\"peer\":\"b\",\"peer_id\":\"" HEX32("0c")
	                                      "\",\"session\":\"" SESSION "\",\"addresses\":[\"127.0.0.1\"]}"), TN_PEER_STALE);
	CU_ASSERT_EQUAL(ask("datagram", "{\"peer\":\"b\",\"payload\":\"00ff\"}"), TN_AGAIN); /* no session known yet */
	CU_ASSERT_EQUAL(ask("datagram", "{\"peer\":\"b\",\"payload\":\"0g\"}"), TN_INVALID);
	CU_ASSERT_EQUAL(ask("datagram", "{\"peer\":\"b\",\"payload\":\"00ff\",\"to\":{\"name\":\"b\"}}"), TN_INVALID);
	CU_ASSERT_EQUAL(ask("datagram", "{\"peer\":\"b\",\"payload\":\"00ff\",\"to\":" PEER(SESSION) "}"), TN_OK);
	CU_ASSERT_EQUAL(fake_last(0, DP_CMD_DATAGRAM)->len, 2);
	free(fake_last(0, DP_CMD_DATAGRAM)->ptr); /* as its worker would */
	CU_ASSERT_EQUAL(ask("datagram", "{\"peer\":\"b\",\"payload\":\"00ff\"}"), TN_OK); /* it is known now */
	free(fake_last(0, DP_CMD_DATAGRAM)->ptr);
	CU_ASSERT_EQUAL(ask("tune", "{\"workers/count\":3}"), TN_CONFIG); /* not hot */
	CU_ASSERT_EQUAL(ask("reload", "{}"), TN_UNSUPPORTED); /* no arguments to load again from */
	CU_ASSERT_EQUAL(ask("frobnicate", "{}"), TN_UNSUPPORTED);
	CU_ASSERT_EQUAL(ask("drain", "{\"grace_ms\":3600001}"), TN_INVALID);
	CU_ASSERT_FALSE(b.ctl.stop_asked);
	CU_ASSERT_EQUAL(ask("drain", "{\"grace_ms\":700}"), TN_OK);
	CU_ASSERT_TRUE(b.ctl.stop_asked && b.ctl.drain_ns == 700000000u);
	control_plane_down();
	bench_stop(&b);
}

static void tuning_is_all_or_nothing(void)
{
	static struct tn_daemon_args args = { .program = "test", .config_path = "/dev/null" };
	const struct dp_cmd *tune;

	start();
	control_plane_up();
	attach();
	CU_ASSERT_EQUAL(ask("tune", "{\"log/level\":\"error\"}"), TN_UNSUPPORTED); /* no arguments to load again from */
	char empty[] = "/tmp/dpctl-conf-XXXXXX";
	int fd = mkstemp(empty);
	CU_ASSERT_EQUAL(write(fd, "{}", 2), 2);
	args.config_path = empty;
	b.ctl.cfg.args = &args;
	fake_hold(true);
	CU_ASSERT_EQUAL(ask("tune", "{\"log/level\":\"error\",\"metrics/recording\":false}"), TN_OK);
	tune = fake_last(1, DP_CMD_TUNE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(tune);
	CU_ASSERT_PTR_EQUAL(tune->ptr, b.ctl.config);
	CU_ASSERT_FALSE(tn_config_bool(tune->ptr, TN_CFG_METRICS_RECORDING));
	CU_ASSERT_EQUAL(tn_load_relaxed32(&b.tele.hdr->recording), 0);
	CU_ASSERT_EQUAL(ask("tune", "{\"metrics/recording\":true}"), TN_AGAIN); /* workers still use the one before */
	CU_ASSERT_EQUAL(ask("reload", "{}"), TN_AGAIN);
	fake_hold(false);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.config_old == NULL));
	CU_ASSERT_EQUAL(ask("tune", "{\"metrics/recording\":true,\"retry/max_attempts\":1000000}"), TN_CONFIG);
	CU_ASSERT_EQUAL(ask("tune", "{\"retry/max_attempts\":[]}"), TN_INVALID);
	CU_ASSERT_FALSE(tn_config_bool(b.ctl.config, TN_CFG_METRICS_RECORDING));
	CU_ASSERT_EQUAL(dp_control_reload(&b.ctl, NULL), TN_OK); /* what was tuned is kept, what was refused is not */
	CU_ASSERT_FALSE(tn_config_bool(b.ctl.config, TN_CFG_METRICS_RECORDING));
	CU_ASSERT_STRING_EQUAL(tn_config_str(b.ctl.config, TN_CFG_LOG_LEVEL), "error");
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.config_old == NULL));
	unlink(empty);
	close(fd);
	control_plane_down();
	bench_stop(&b);
}

static const char *state_told(void)
{
	CU_ASSERT_EQUAL(ask("status", "{}"), TN_OK);
	const char *s = json_string_value(json_object_get(in.body, "state"));
	return s != NULL ? s : "";
}

static bool changed(void) { return json_is_true(json_object_get(in.body, "changed")); }

/* Pause, resume, drain, from a data plane that starts to one that drains; the telemetry file shows each. */
static void pair_states(void)
{
	struct dp_flight quiet = { 0 }, stopped = { 0 };

	start();
	control_plane_up();
	attach();
	CU_ASSERT_STRING_EQUAL(state_told(), "starting");
	CU_ASSERT_EQUAL(ask("pause", "{}"), TN_AGAIN);
	dp_control_run(&b.ctl);
	CU_ASSERT_EQUAL(ask("pause", "{}"), TN_OK);
	CU_ASSERT_TRUE(changed());
	CU_ASSERT_STRING_EQUAL(state_told(), "paused");
	CU_ASSERT_EQUAL(tn_load_relaxed32(&b.tele.hdr->state), SHR_TELE_PAUSED);
	CU_ASSERT_TRUE(fake_count(0, DP_CMD_MODE) == 1 && fake_last(1, DP_CMD_MODE)->num == DP_MODE_PAUSE);
	CU_ASSERT_EQUAL(ask("pause", "{}"), TN_OK);
	CU_ASSERT_TRUE(!changed() && fake_count(0, DP_CMD_MODE) == 1);
	CU_ASSERT_EQUAL(ask("resume", "{}"), TN_OK);
	CU_ASSERT_TRUE(changed() && fake_last(0, DP_CMD_MODE)->num == DP_MODE_RUN);
	CU_ASSERT_STRING_EQUAL(state_told(), "running");
	CU_ASSERT_EQUAL(ask("resume", "{}"), TN_OK);
	CU_ASSERT_FALSE(changed());
	CU_ASSERT_EQUAL(ask("pause", "{}"), TN_OK);
	CU_ASSERT_EQUAL(ask("drain", "{}"), TN_OK);
	CU_ASSERT_TRUE(changed() && b.ctl.stop_asked && b.ctl.drain_ns != 0);
	dp_control_drain_begin(&b.ctl, &quiet); /* as the daemon does then */
	CU_ASSERT_STRING_EQUAL(state_told(), "draining");
	CU_ASSERT_EQUAL(fake_last(0, DP_CMD_MODE)->num, DP_MODE_DRAIN);
	CU_ASSERT_EQUAL(ask("resume", "{}"), TN_CLOSED);
	CU_ASSERT_EQUAL(ask("drain", "{\"grace_ms\":1}"), TN_OK);
	CU_ASSERT_FALSE(changed());
	CU_ASSERT_TRUE(turn_until(&b, quiet.waiting == 0));
	dp_control_drain(&b.ctl, &stopped);
	CU_ASSERT_TRUE(turn_until(&b, stopped.waiting == 0));
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_STOP), 1);
	control_plane_down();
	bench_stop(&b);
}

static void the_operators_view(void)
{
	int sock, fd = memfd_of(65536, true);
	uint64_t mem;

	start();
	control_plane_up();
	attach();
	sock = app_attach(&b);
	mem = app_register(&b, sock, fd, 65536, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, sock, "kv", mem, 4096, SHR_ACCESS_PEERS, NULL), TN_OK);
	hear("segment_published");
	reply(TN_OK, "{}");
	CU_ASSERT_EQUAL(ask("status", "{}"), TN_OK);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "clients")), 1);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "memory_bytes")), 65536);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "workers")), 2);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(in.body, "peers"), "up")) +
			json_integer_value(json_object_get(json_object_get(in.body, "peers"), "idle")), 1);
	CU_ASSERT_EQUAL(ask("peer_states", "{\"peers\":[\"nobody\",7,\"b\"]}"), TN_OK);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "peers")), 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_array_get(json_object_get(in.body, "peers"), 0), "name")), "b");
	CU_ASSERT_EQUAL(ask("peer_states", "{}"), TN_INVALID);
	CU_ASSERT_EQUAL(ask("peer_load", "{}"), TN_OK);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "total")), 1);
	const json_t *load = json_array_get(json_object_get(in.body, "peers"), 0), *failure = json_object_get(load, "last_failure");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(load, "started")), 4); /* two workers, two each */
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(load, "written_bytes")), 200);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(load, "inflight")), 0);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(load, "inflight_bytes")), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(load, "latency")), TN_BUCKETS_LATENCY_CNT + 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(failure, "reason")), "peer_closed");
	load = json_object_get(in.body, "local");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(load, "inflight")), 2);
	CU_ASSERT_EQUAL(ask("peer_load", "{\"first\":1}"), TN_OK);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "peers")), 0);
	CU_ASSERT_PTR_NULL(json_object_get(in.body, "local"));
	CU_ASSERT_EQUAL(ask("peer_load", "{\"count\":1000}"), TN_INVALID);
	CU_ASSERT_EQUAL(ask("segment_list", "{\"first\":0,\"count\":10}"), TN_OK);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(in.body, "total")), 1);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "segments")), 1);
	CU_ASSERT_EQUAL(ask("segment_list", "{\"first\":1}"), TN_OK);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(in.body, "segments")), 0);
	CU_ASSERT_EQUAL(ask("segment_list", "{\"count\":1000}"), TN_INVALID);
	struct tn_message m = { .id = 900, .type = "segment_withdraw", .body = json_loads("{\"name\":\"kv\"}", 0, NULL) };
	say(&m);
	tn_message_clear(&m);
	hear("segment_withdrawn"); /* the change goes out while the answer is made */
	reply(TN_OK, "{}");
	hear("segment_withdraw");
	CU_ASSERT_EQUAL(in.status, TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.segments.used == 0));
	CU_ASSERT_EQUAL(ask("segment_withdraw", "{\"name\":\"kv\"}"), TN_NOT_FOUND);
	control_plane_down();
	bench_stop(&b);
	close(sock), close(fd);
}

/* The row of a transport in the last answer. */
static bool judged(const char *kind, const char *verdict, const char *why)
{
	const json_t *t;
	size_t i;

	json_array_foreach(json_object_get(in.body, "transports"), i, t)
		if (strcmp(json_string_value(json_object_get(t, "transport")), kind) == 0)
			return strcmp(json_string_value(json_object_get(t, "verdict")), verdict) == 0 &&
			       strcmp(json_string_value(json_object_get(t, "why")), why) == 0;
	return false;
}

static void explain(const char *body, const char *verdict, const char *why)
{
	CU_ASSERT_EQUAL(ask("explain", body), TN_OK);
	CU_ASSERT_TRUE(judged("tcp", verdict, why));
}

static void explained(void)
{
	struct shr_msg_open_reply o;
	const json_t *path, *address;
	int sock;

	start();
	control_plane_up();
	attach();
	sock = app_attach(&b);
	tn_store_relaxed32(&shr_tele_worker(&b.tele, 1)->transports_up, 1u << TN_TRANSPORT_TCP | 1u << TN_TRANSPORT_SHM);
	fake_path = (struct dp_path_info){ .known = false };
	explain("{\"peer\":\"b\"}", "use", "first_open");
	CU_ASSERT_TRUE(judged("rdma", "no", "not_built") && judged("shm", "no", "wrong_target"));
	explain("{\"segment\":\"kv\"}", "no", "no_endpoint"); /* we do not know ourselves yet */
	CU_ASSERT_EQUAL_FATAL(dp_peers_meet_self(&b.ctl), TN_OK);
	explain("{\"segment\":\"kv\"}", "standby", "on_demand");
	CU_ASSERT_TRUE(judged("rdma", "no", "not_built"));
	CU_ASSERT_TRUE(judged("shm", "use", "ready"));
	CU_ASSERT_EQUAL(ask("explain", "{\"peer\":\"b\",\"priority\":\"urgent\"}"), TN_INVALID);
	open_later(sock, "b/kv");
	hear("open");
	reply(TN_OK, FOUND(SESSION, "3"));
	CU_ASSERT_EQUAL_FATAL(opened(sock, &o), TN_OK);
	explain("{\"peer\":\"b\",\"segment\":\"kv\"}", "use", "on_demand");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(in.body, "opened"), "handles")), 1);
	fake_path = (struct dp_path_info){ .known = true, .lanes = 2, .control = true };
	explain("{\"peer\":\"b\"}", "use", "ready");
	fake_path = (struct dp_path_info){ .known = true, .why = TN_PATH_DOWN, .fail_cnt = 3, .next_try_ns = UINT64_MAX / 2 };
	fake_path.endpoints[0].tried_ns = 1;
	fake_path.endpoints[0].status = TN_PATH_DOWN;
	fake_path.endpoints[0].os_error = ECONNREFUSED;
	explain("{\"peer\":\"b\"}", "use", "lanes_down");
	path = json_array_get(json_object_get(in.body, "paths"), 1);
	address = json_array_get(json_object_get(path, "addresses"), 0);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(path, "worker")), 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(address, "address")), "127.0.0.1:7001");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(address, "meaning")), "Connection refused");
	fake_path = (struct dp_path_info){ .known = true, .why = TN_PEER_DENIED, .hold = true };
	explain("{\"peer\":\"b\"}", "use", "waits_for_peer");
	fake_path = (struct dp_path_info){ .known = true, .why = TN_PEER_ADDRESS, .fail_cnt = 1,
	                                   .seen = { [10] = 0xff, 0xff, 203, 0, 113, 9 } };
	explain("{\"peer\":\"b\"}", "use", "address_refused");
	char *detail = json_dumps(json_object_get(in.body, "transports"), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(detail, "203.0.113.9"));
	CU_ASSERT_PTR_NOT_NULL(strstr(detail, "data_addresses"));
	CU_ASSERT_PTR_NULL(strstr(detail, "key"));
	free(detail);
	fake_path = (struct dp_path_info){ .known = true, .lanes = 2, .control = true };
	fake_rail = DP_RAIL_COOLING;
	explain("{\"peer\":\"b\"}", "wait", "cooling");
	path = json_array_get(json_object_get(in.body, "paths"), 1);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(path, "rail")), "cooling");
	CU_ASSERT_TRUE(json_integer_value(json_object_get(path, "rail_ms")) > 0);
	fake_rail = DP_RAIL_PROBATION;
	explain("{\"peer\":\"b\"}", "use", "ready");
	fake_rail = DP_RAIL_UP;
	tn_store_relaxed32(&shr_tele_worker(&b.tele, 1)->transports_up, 0);
	explain("{\"peer\":\"b\"}", "no", "down");
	char *told = json_dumps(in.body, 0);
	CU_ASSERT_PTR_NULL(strstr(told, TICKET)); /* no secret is told */
	free(told);
	control_plane_down();
	bench_stop(&b);
	close(sock);
}

static void a_transport_is_switched_off(void)
{
	start();
	control_plane_up();
	attach();
	CU_ASSERT_EQUAL(ask("transport", "{\"transport\":\"tcp\",\"enable\":false}"), TN_OK);
	CU_ASSERT_TRUE(json_is_true(json_object_get(in.body, "changed")));
	const struct dp_cmd *c = fake_last(1, DP_CMD_TRANSPORT);
	CU_ASSERT(c != NULL && c->num == TN_TRANSPORT_TCP && c->num2 == 0 && c->len == 1000);
	CU_ASSERT_EQUAL(ask("transport", "{\"transport\":\"tcp\",\"enable\":false}"), TN_OK);
	CU_ASSERT_FALSE(json_is_true(json_object_get(in.body, "changed")));
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_TRANSPORT), 1);
	tn_store_relaxed32(&shr_tele_worker(&b.tele, 1)->transports_up, 1u << TN_TRANSPORT_SHM);
	explain("{\"peer\":\"b\"}", "wait", "off");
	CU_ASSERT_EQUAL(ask("transport", "{\"transport\":\"tcp\",\"enable\":true}"), TN_OK);
	CU_ASSERT_EQUAL(fake_last(1, DP_CMD_TRANSPORT)->num2, 1);
	CU_ASSERT_EQUAL(ask("transport", "{\"transport\":\"rdma\",\"enable\":false}"), TN_UNSUPPORTED);
	CU_ASSERT_EQUAL(ask("transport", "{\"transport\":\"udp\",\"enable\":false}"), TN_INVALID);
	CU_ASSERT_EQUAL(ask("transport", "{\"transport\":\"tcp\"}"), TN_INVALID);
	control_plane_down();
	bench_stop(&b);
}

static const char *word(const char *key) { return json_string_value(json_object_get(in.body, key)); }
static json_int_t number(const char *key) { return json_integer_value(json_object_get(in.body, key)); }

static void one_request(void)
{
	start();
	control_plane_up();
	attach();
	fake_inspect = (struct dp_inspect){
		.request_id = 65, .opcode = SHR_OP_WRITE, .state = DP_REQUEST_QUEUED, .phase = TN_PHASE_RETRY, .bytes = 4096,
		.age_ns = 7000, .left_ns = 9000, .trace_hi = 1, .trace_lo = 0xab, .owner_id = 3, .owner_bytes = 8192,
		.owner_requests = 2, .owner_state = DP_OWNER_WAITING, .wait = DP_WAIT_RAIL, .wait_ns = 5000000, .attempts = 2,
		.failovers = 1, .transport = TN_TRANSPORT_TCP, .last_status = TN_PATH_DOWN, .last_phase = TN_PHASE_CONNECT,
		.last_reason = TN_REASON_UNAVAILABLE, .peer_index = 0,
		.rejected = { [TN_TRANSPORT_TCP] = DP_REJECT_COOLING, [TN_TRANSPORT_RDMA] = DP_REJECT_NOT_BUILT },
	};
	CU_ASSERT_EQUAL(ask("request", "{\"request_id\":65}"), TN_OK);
	CU_ASSERT_EQUAL(fake_last(1, DP_CMD_INSPECT)->num, 65); /* its number says which worker */
	CU_ASSERT_PTR_NULL(fake_last(0, DP_CMD_INSPECT));
	CU_ASSERT_STRING_EQUAL(word("state"), "queued");
	CU_ASSERT_STRING_EQUAL(word("phase"), "retry");
	CU_ASSERT_STRING_EQUAL(word("operation"), "write");
	CU_ASSERT_STRING_EQUAL(word("waits_for"), "rail");
	CU_ASSERT_STRING_EQUAL(word("trace_id"), "000000000000000100000000000000ab");
	CU_ASSERT(number("wait_ms") == 5 && number("age_us") == 7 && number("deadline_us") == 9 && number("attempts") == 2);
	CU_ASSERT(number("failovers") == 1 && number("task_requests") == 2 && number("task_bytes") == 8192);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_object_get(in.body, "last_failure"), "status")), "path_down");
	CU_ASSERT_TRUE(judged("tcp", "wait", "cooling") && judged("rdma", "no", "not_built") && judged("shm", "standby", "none"));
	CU_ASSERT_PTR_NULL(json_object_get(in.body, "attempt_id"));
	fake_inspect.wait = DP_WAIT_NONE;
	fake_inspect.attempt_id = 12;
	fake_inspect.attempt_state = DP_ATTEMPT_ACTIVE;
	fake_inspect.moved_bytes = 100;
	CU_ASSERT_EQUAL(ask("request", "{\"request_id\":65}"), TN_OK);
	CU_ASSERT(number("moved_bytes") == 100 && number("attempt_id") == 12 && json_object_get(in.body, "waits_for") == NULL);
	CU_ASSERT_TRUE(judged("tcp", "use", "active"));
	fake_inspect = (struct dp_inspect){ .request_id = 64, .opcode = SHR_OP_NOTIFY, .peer_index = UINT32_MAX };
	CU_ASSERT_EQUAL(ask("request", "{\"request_id\":64}"), TN_OK);
	CU_ASSERT_STRING_EQUAL(word("operation"), "notify");
	fake_refuse(1, DP_CMD_INSPECT, TN_NOT_FOUND);
	CU_ASSERT_EQUAL(ask("request", "{\"request_id\":65}"), TN_NOT_FOUND);
	CU_ASSERT_EQUAL(ask("request", "{\"request_id\":127}"), TN_NOT_FOUND); /* there is no such worker */
	CU_ASSERT_EQUAL(ask("request", "{}"), TN_INVALID);
	fake_hold(true); /* a worker that never looks: nothing is lost at the end */
	struct tn_message m = { .id = 1000, .type = "request", .body = json_pack("{s:i}", "request_id", 64) };
	say(&m);
	tn_message_clear(&m);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.link->asked_cnt == 1));
	control_plane_down();
	bench_stop(&b);
	fake_hold(false);
}

TN_TEST_MAIN("link", { "a transport is switched off", a_transport_is_switched_off }, { "one request", one_request }, { "attach, snapshot, changes", attach_snapshot_changes }, { "open at a peer", open_at_a_peer },
             { "stale handles are refreshed once", stale_handles_are_refreshed_once },
             { "bad answers are refused", bad_answers_are_refused },
             { "death of the control plane", death_of_the_control_plane },
             { "tickets and questions of the control plane", tickets_and_questions_of_the_control_plane },
             { "pause, resume, drain", pair_states },
             { "tuning is all or nothing", tuning_is_all_or_nothing }, { "the operator's view", the_operators_view },
             { "why a transport is used or not", explained })
