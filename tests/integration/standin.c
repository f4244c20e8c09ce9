/* SPDX-License-Identifier: Apache-2.0
 * Many peers in one process, for the scale tests: each has a CURVE key, a control door that answers what the daemon under
 * test asks, and may ask back; their data lanes are in standin_lanes.c. Real protocol, real sockets, real keys; no engine.
 *   standin COUNT     prints [{"name","address","public_key"}...], then obeys one command per line on stdin:
 *   lanes ADDRESS PUBLIC_KEY N LANES   N of the peers ask for a ticket there and open LANES data lanes each
 *   read NAME         they look up segment NAME there and READ it over every lane; contents are checked
 *   drop              all those lanes and questions end, half of the lanes with a reset
 *   restart           every peer gets a new incarnation
 *   counts            lanes open into us, requests answered, lanes of ours
 * Peer I is called pI and publishes one segment, pI-kv. One thread. */
#include "tests/integration/standin.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

#include "common/message.h"
#include "common/rand.h"

#define ASK_MS 10000

struct peer *peers;
uint32_t peer_cnt;
static void *zmq;
static uint16_t data_port;
static const char *there = "";

void die(const char *what)
{
	perror(what);
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

static void set_int(void *s, int option, int value)
{
	if (zmq_setsockopt(s, option, &value, sizeof value) != 0)
		die("zmq_setsockopt");
}

/* ---- what we are asked ---- */

static json_t *endpoints(void)
{
	char text[32];
	json_t *e = json_object(), *list = json_array();
	snprintf(text, sizeof text, "127.0.0.1:%u", data_port);
	(void)tn_json_put_str(e, "transport", "tcp");
	(void)tn_json_put_str(e, "address", text);
	json_array_append_new(list, e);
	return list;
}

static json_t *segment_json(const struct peer *p)
{
	json_t *b = json_object(), *list = json_array(), *s = json_object();
	(void)tn_json_put_u64(b, "registration", 7);
	(void)tn_json_put_u64(b, "bytes", CONTENT_BYTES);
	(void)tn_json_put_u64(b, "rights", 2 | 4);
	json_array_append_new(list, b);
	(void)tn_json_put_str(s, "name", p->segment);
	(void)tn_json_put_u64(s, "generation", 1);
	(void)tn_json_put_hex128(s, "publication", &(struct tn_id128){ { 1 } });
	(void)tn_json_put_u64(s, "bytes", CONTENT_BYTES);
	json_object_set_new(s, "buffers", list);
	return s;
}

static tn_status answer(const struct peer *p, const struct tn_message *rq, json_t *body)
{
	const char *name = json_string_value(json_object_get(rq->body, "name"));
	(void)tn_json_put_hex128(body, "session", &p->session);
	if (strcmp(rq->type, "get_segment") == 0) {
		if (name == NULL || strcmp(name, p->segment) != 0)
			return TN_NOT_FOUND;
		json_object_set_new(body, "segment", segment_json(p));
	} else if (strcmp(rq->type, "issue_ticket") == 0) {
		(void)tn_json_put_hex128(body, "ticket", &p->ticket);
		(void)tn_json_put_str(body, "datagram_key", "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
		json_object_set_new(body, "endpoints", endpoints());
		(void)tn_json_put_u64(body, "frame_bytes", 1 << 20);
	} else if (strcmp(rq->type, "segment_updated") != 0 && strcmp(rq->type, "hello") != 0) {
		return TN_UNSUPPORTED;
	}
	return TN_OK;
}

static void serve_control(struct peer *p)
{
	static char text[TN_MESSAGE_MAX];
	uint8_t route[256];
	for (;;) {
		char err[TN_ERR_TEXT];
		struct tn_message rq;
		size_t len;
		int route_len = zmq_recv(p->router, route, sizeof route, ZMQ_DONTWAIT);
		int n = route_len < 0 ? -1 : zmq_recv(p->router, text, sizeof text, 0);
		if (n < 0)
			return;
		if (tn_message_decode(text, (size_t)n, &rq, err) != TN_OK || rq.reply)
			continue;
		struct tn_message rsp = { .reply = true, .id = rq.id, .session = p->session, .body = json_object() };
		memcpy(rsp.type, rq.type, sizeof rsp.type);
		rsp.status = answer(p, &rq, rsp.body);
		if (tn_message_encode(&rsp, text, sizeof text, &len) == TN_OK) {
			(void)zmq_send(p->router, route, (size_t)route_len, ZMQ_SNDMORE);
			(void)zmq_send(p->router, text, len, ZMQ_DONTWAIT);
		}
		tn_message_clear(&rq);
		tn_message_clear(&rsp);
	}
}

/* ---- what we ask ---- */

static void ask(struct peer *p, const char *type, json_t *body)
{
	static char text[TN_MESSAGE_MAX];
	struct tn_message m = { .id = 1, .session = p->session, .remaining_ms = ASK_MS, .body = body };
	size_t len;
	snprintf(m.type, sizeof m.type, "%s", type);
	if (tn_message_encode(&m, text, sizeof text, &len) != TN_OK || zmq_send(p->dealer, text, len, 0) < 0)
		die("ask");
	tn_message_clear(&m);
}

/* False, with a word on stderr: no answer, or not what was hoped for. The body is the caller's. */
static bool hear(struct peer *p, struct tn_message *out)
{
	static char text[TN_MESSAGE_MAX];
	char err[TN_ERR_TEXT] = "no answer";
	int n = zmq_recv(p->dealer, text, sizeof text, 0); /* RCVTIMEO */
	if (n >= 0 && tn_message_decode(text, (size_t)n, out, err) == TN_OK && out->status == TN_OK)
		return true;
	fprintf(stderr, "standin: %s: %s %s\n", p->name, err, n >= 0 ? out->detail : "");
	if (n >= 0)
		tn_message_clear(out);
	return false;
}

static void dealer_open(struct peer *p, const char *key)
{
	p->dealer = zmq_socket(zmq, ZMQ_DEALER);
	if (p->dealer == NULL)
		die("zmq_socket");
	set_int(p->dealer, ZMQ_LINGER, 0);
	set_int(p->dealer, ZMQ_RCVTIMEO, ASK_MS);
	if (zmq_setsockopt(p->dealer, ZMQ_CURVE_SERVERKEY, key, 41) != 0 ||
	    zmq_setsockopt(p->dealer, ZMQ_CURVE_PUBLICKEY, p->public_text, 41) != 0 ||
	    zmq_setsockopt(p->dealer, ZMQ_CURVE_SECRETKEY, p->secret_text, 41) != 0 || zmq_connect(p->dealer, there) != 0)
		die("connect");
}

static bool take_ticket(struct peer *p)
{
	struct tn_message m;
	struct tn_json_in in;
	const json_t *list = NULL;
	char host[64] = "";
	unsigned port = 0;
	if (!hear(p, &m))
		return false;
	tn_json_in_init(&in, m.body);
	(void)tn_json_hex128(&in, "session", &p->their_session);
	(void)tn_json_hex128(&in, "ticket", &p->their_ticket);
	(void)tn_json_array(&in, "endpoints", 16, &list);
	const char *address = json_string_value(json_object_get(json_array_get(list, 0), "address"));
	bool good = in.status == TN_OK && address != NULL && sscanf(address, "%63[0-9.]:%u", host, &port) == 2;
	p->their_door = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	good = good && inet_pton(AF_INET, host, &p->their_door.sin_addr) == 1;
	tn_message_clear(&m);
	return good;
}

static void do_lanes(const char *key, uint32_t cnt, uint32_t lanes)
{
	uint32_t ok = 0, failed = 0, tickets = 0;
	uint64_t began = now_ns(), slowest = 0;
	cnt = TN_MIN(cnt, peer_cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		json_t *body = json_object();
		if (peers[i].dealer == NULL)
			dealer_open(&peers[i], key);
		(void)tn_json_put_hex128(body, "session", &peers[i].session);
		json_object_set_new(body, "addresses", json_array());
		ask(&peers[i], "issue_ticket", body);
	}
	for (uint32_t i = 0; i < cnt; i++) {
		peers[i].epoch++;
		bool good = take_ticket(&peers[i]);
		tickets += good;
		for (uint32_t k = 0; k < lanes; k++) {
			uint64_t at = now_ns();
			bool opened = good && lane_open(&peers[i], (uint16_t)k);
			slowest = TN_MAX(slowest, now_ns() - at);
			ok += opened;
			failed += !opened;
		}
	}
	printf("{\"ok\":%u,\"failed\":%u,\"tickets\":%u,\"max_us\":%.1f,\"seconds\":%.3f}\n", ok, failed, tickets,
	       (double)slowest / 1e3, (double)(now_ns() - began) / 1e9);
}

static bool take_registration(struct peer *p)
{
	struct tn_message m;
	struct tn_json_in in;
	if (!hear(p, &m))
		return false;
	tn_json_in_init(&in, json_array_get(json_object_get(json_object_get(m.body, "segment"), "buffers"), 0));
	tn_status s = tn_json_u64(&in, "registration", 1, UINT64_MAX, &p->registration);
	tn_message_clear(&m);
	return s == TN_OK;
}

static void do_read(const char *name)
{
	uint64_t began = now_ns();
	for (uint32_t i = 0; i < peer_cnt; i++) {
		if (peers[i].dealer == NULL)
			continue;
		json_t *body = json_object();
		(void)tn_json_put_str(body, "name", name);
		ask(&peers[i], "get_segment", body);
	}
	for (uint32_t i = 0; i < peer_cnt; i++)
		if (peers[i].dealer != NULL && !take_registration(&peers[i]))
			peers[i].registration = 0;
	uint32_t good = lanes_read(name);
	printf("{\"ok\":%u,\"failed\":%u,\"seconds\":%.3f}\n", good, lanes_held() - good, (double)(now_ns() - began) / 1e9);
}

static void do_drop(void)
{
	lanes_close();
	for (uint32_t i = 0; i < peer_cnt; i++)
		if (peers[i].dealer != NULL) {
			zmq_close(peers[i].dealer);
			peers[i].dealer = NULL;
		}
	printf("{\"ok\":0,\"failed\":0}\n");
}

static void do_restart(void)
{
	for (uint32_t i = 0; i < peer_cnt; i++) {
		peers[i].epoch = 0;
		if (tn_rand_id128(&peers[i].session) != TN_OK)
			die("random");
	}
	printf("{\"ok\":%u,\"failed\":0}\n", peer_cnt);
}

static void obey(char *line)
{
	static char address[128];
	char text[64], verb[16] = "";
	uint32_t cnt, lanes;
	if (sscanf(line, "%15s", verb) != 1)
		return;
	if (sscanf(line, "lanes %127s %63s %u %u", address, text, &cnt, &lanes) == 4) {
		there = address;
		do_lanes(text, cnt, lanes);
	} else if (sscanf(line, "read %63s", text) == 1) {
		do_read(text);
	} else if (strcmp(verb, "drop") == 0) {
		do_drop();
	} else if (strcmp(verb, "restart") == 0) {
		do_restart();
	} else if (strcmp(verb, "counts") == 0) {
		printf("{\"ok\":0,\"failed\":0,\"served_lanes\":%u,\"served_requests\":%" PRIu64 ",\"lanes\":%u}\n", served_lanes,
		       served_requests, lanes_held());
	} else {
		exit(2);
	}
	fflush(stdout);
}

/* ---- life ---- */

static void peer_start(struct peer *p, uint32_t index)
{
	char address[128];
	size_t len = sizeof address;
	snprintf(p->name, sizeof p->name, "p%u", index);
	snprintf(p->segment, sizeof p->segment, "p%u-kv", index);
	content_fill(p->content, p->segment);
	if (zmq_curve_keypair(p->public_text, p->secret_text) != 0 || zmq_z85_decode(p->id.b, p->public_text) == NULL ||
	    tn_rand_id128(&p->session) != TN_OK || tn_rand_id128(&p->ticket) != TN_OK)
		die("keys");
	p->router = zmq_socket(zmq, ZMQ_ROUTER);
	if (p->router == NULL)
		die("zmq_socket");
	set_int(p->router, ZMQ_LINGER, 0);
	set_int(p->router, ZMQ_CURVE_SERVER, 1);
	if (zmq_setsockopt(p->router, ZMQ_CURVE_SECRETKEY, p->secret_text, 41) != 0 ||
	    zmq_bind(p->router, "tcp://127.0.0.1:*") != 0 ||
	    zmq_getsockopt(p->router, ZMQ_LAST_ENDPOINT, address, &len) != 0)
		die("bind");
	json_t *o = json_pack("{s:s,s:s,s:s}", "name", p->name, "address", address, "public_key", p->public_text);
	char *text = json_dumps(o, JSON_COMPACT);
	printf("%s%s", index == 0 ? "[" : ",", text);
	free(text);
	json_decref(o);
}

int main(int argc, char **argv)
{
	peer_cnt = argc == 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	if (peer_cnt == 0 || peer_cnt > 400) {
		fprintf(stderr, "usage: standin COUNT (1..400; see the head of standin.c)\n");
		return 2;
	}
	int epoll = lanes_listen(&data_port);
	zmq = zmq_ctx_new();
	peers = calloc(peer_cnt, sizeof *peers);
	zmq_pollitem_t *items = calloc(peer_cnt + 2, sizeof *items);
	if (zmq == NULL || peers == NULL || items == NULL)
		die("memory");
	for (uint32_t i = 0; i < peer_cnt; i++) {
		peer_start(&peers[i], i);
		items[i + 2] = (zmq_pollitem_t){ .socket = peers[i].router, .events = ZMQ_POLLIN };
	}
	printf("]\n");
	fflush(stdout);
	setvbuf(stdin, NULL, _IONBF, 0); /* what poll() sees is all there is */
	items[0] = (zmq_pollitem_t){ .fd = STDIN_FILENO, .events = ZMQ_POLLIN };
	items[1] = (zmq_pollitem_t){ .fd = epoll, .events = ZMQ_POLLIN };
	for (;;) {
		char line[512];
		if (zmq_poll(items, (int)peer_cnt + 2, -1) < 0)
			continue;
		for (uint32_t i = 0; i < peer_cnt; i++)
			if ((items[i + 2].revents & ZMQ_POLLIN) != 0)
				serve_control(&peers[i]);
		if (items[1].revents != 0)
			serve_lanes();
		if (items[0].revents != 0) {
			if (fgets(line, sizeof line, stdin) == NULL)
				return 0; /* the test is over */
			obey(line);
		}
	}
}
