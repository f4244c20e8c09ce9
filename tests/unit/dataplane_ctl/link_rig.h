/* SPDX-License-Identifier: Apache-2.0
 * A scripted control plane at the other end of the link. Test code only; one test program includes it once. */
#ifndef TEST_LINK_RIG_H
#define TEST_LINK_RIG_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/message.h"
#include "dataplane/link/wire.h"
#include "dataplane/transport/path_info.h"
#include "tests/unit/cu.h"
#include "tests/unit/dataplane_ctl/bench.h"

#ifdef __SANITIZE_THREAD__
/* libzmq is not instrumented: its own hand-over between threads looks like races. */
__attribute__((visibility("default"))) const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) { return "race:libzmq.so\ncalled_from_lib:libzmq.so\n"; }
#endif

static struct bench b;
static void *zmq, *router;
static uint8_t route[256];
static size_t route_len;
static struct tn_message in; /* last message that the data plane sent */
static char text[TN_MESSAGE_MAX];

#define HEX8(d) d d d d d d d d
#define HEX32(d) HEX8(d) HEX8(d) HEX8(d) HEX8(d)
#define SELF HEX32("01")
#define PEER_ID HEX32("0b")
#define SESSION "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define SESSION2 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define NO_SESSION "00000000000000000000000000000000"
#define TICKET "cccccccccccccccccccccccccccccccc"

static inline void control_plane_up(void)
{
	char endpoint[128];
	int zero = 0;

	zmq = zmq_ctx_new();
	router = zmq_socket(zmq, ZMQ_ROUTER);
	(void)zmq_setsockopt(router, ZMQ_LINGER, &zero, sizeof zero);
	(void)snprintf(endpoint, sizeof endpoint, "ipc://%s/link.ipc", b.dir);
	CU_ASSERT_EQUAL_FATAL(zmq_bind(router, endpoint), 0);
}

static inline void control_plane_down(void)
{
	tn_message_clear(&in);
	zmq_close(router);
	zmq_ctx_term(zmq);
}

static inline bool hear_once(void)
{
	char err[TN_ERR_TEXT];
	int n = zmq_recv(router, route, sizeof route, ZMQ_DONTWAIT);

	if (n < 0)
		return false;
	route_len = (size_t)n;
	n = zmq_recv(router, text, sizeof text, 0);
	tn_message_clear(&in);
	CU_ASSERT_EQUAL_FATAL(tn_message_decode(text, (size_t)n, &in, err), TN_OK);
	return true;
}

/* The next message must be of this type; heartbeats in between are answered. */
static inline void hear(const char *type);

static inline void say(const struct tn_message *m)
{
	size_t len;

	CU_ASSERT_EQUAL_FATAL(tn_message_encode(m, text, sizeof text, &len), TN_OK);
	(void)zmq_send(router, route, route_len, ZMQ_SNDMORE);
	(void)zmq_send(router, text, len, 0);
}

static inline void reply(tn_status status, const char *body)
{
	struct tn_message m = { .reply = true, .id = in.id, .status = status };

	memcpy(m.type, in.type, sizeof m.type);
	m.body = body != NULL ? json_loads(body, 0, NULL) : NULL;
	say(&m);
	tn_message_clear(&m);
}

static inline void hear(const char *type)
{
	for (;;) {
		bool heard = turn_until(&b, hear_once());
		CU_ASSERT_TRUE_FATAL(heard);
		if (strcmp(in.type, type) == 0)
			return;
		if (strcmp(in.type, "heartbeat") != 0)
			fprintf(stderr, "heard %s, not %s\n", in.type, type);
		CU_ASSERT_STRING_EQUAL_FATAL(in.type, "heartbeat");
		reply(TN_OK, "{\"control_session\":\"" SESSION "\"}");
	}
}

/* A request of the control plane; the answer is in `in`. */
static inline tn_status ask(const char *type, const char *body)
{
	static uint64_t id;
	struct tn_message m = { .id = ++id, .remaining_ms = 1000 };

	(void)snprintf(m.type, sizeof m.type, "%s", type);
	m.body = json_loads(body, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(m.body);
	say(&m);
	tn_message_clear(&m);
	hear(type);
	CU_ASSERT_TRUE(in.reply);
	CU_ASSERT_EQUAL(in.id, id);
	return in.status;
}

#define ATTACHED \
	"{\"self\":\"" SELF "\",\"control_session\":\"" SESSION "\",\"peers_total\":1," \
	"\"peers\":[{\"index\":0,\"name\":\"b\",\"id\":\"" PEER_ID "\"}]}"
#define PEER(session) \
	"{\"name\":\"b\",\"index\":0,\"id\":\"" PEER_ID "\",\"session\":\"" session "\",\"ticket\":\"" TICKET \
	"\",\"frame_bytes\":65536,\"endpoints\":[{\"transport\":\"rdma\",\"address\":\"x\"}," \
	"{\"transport\":\"tcp\",\"address\":\"127.0.0.1:7001\"}]}"
#define PUBLICATION "00112233445566778899aabbccddeeff"
#define SEG(generation) \
	"{\"name\":\"kv\",\"generation\":" generation ",\"publication\":\"" PUBLICATION \
	"\",\"bytes\":8192,\"access\":4,\"peers\":[],\"buffers\":[" \
	"{\"registration\":\"9223372036854775999\",\"bytes\":4096,\"rights\":6}," \
	"{\"registration\":5,\"bytes\":4096,\"rights\":2}]}"
#define FOUND(session, generation) "{\"peer\":" PEER(session) ",\"segment\":" SEG(generation) "}"

static const char *const with_peer[] = {
	"peers=[{\"name\":\"b\",\"address\":\"tcp://127.0.0.1:9999\",\"public_key\":\"" PEER_ID "\"}]",
	"control/heartbeat_ms=300", NULL };

static inline void start(void)
{
	bench_start(&b, 2, with_peer);
	CU_ASSERT_EQUAL_FATAL(dp_link_new(&b.ctl, b.dir, &b.ctl.link), TN_OK);
}

static inline void attach(void)
{
	hear("attach");
	reply(TN_OK, ATTACHED);
	hear("snapshot");
	while (!json_is_true(json_object_get(in.body, "last"))) {
		reply(TN_OK, "{}");
		hear("snapshot");
	}
	reply(TN_OK, "{}");
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.link->state == DP_LINK_LIVE));
}

static inline void open_later(int sock, const char *ref)
{
	static struct shr_msg m;
	struct shr_msg_open req = { .remaining_ns = UINT64_C(2000000000) };

	(void)snprintf(req.ref, sizeof req.ref, "%s", ref);
	memcpy(shr_msg_begin(&m, SHR_MSG_OPEN, 77, sizeof req), &req, sizeof req);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
}

/* The answer to open_later(). */
static inline tn_status opened(int sock, struct shr_msg_open_reply *out)
{
	static struct shr_msg m;
	tn_status s = app_recv(&b, sock, &m);

	memset(out, 0, sizeof *out);
	CU_ASSERT_EQUAL_FATAL(s, TN_OK);
	CU_ASSERT_EQUAL(m.hdr.type, SHR_MSG_OPEN | SHR_MSG_REPLY);
	if (m.hdr.status == TN_OK)
		memcpy(out, shr_msg_body_ro(&m), sizeof *out);
	return m.hdr.status;
}

static inline const struct dp_remote *last_remote(unsigned worker)
{
	return fake_last(worker, DP_CMD_REMOTE_SET)->ptr;
}

#endif
