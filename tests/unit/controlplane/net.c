/* SPDX-License-Identifier: Apache-2.0
 * The in-memory network of net.h. */
#include "tests/unit/controlplane/net.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

static void push(struct packet **list, struct packet *p)
{
	while (*list != NULL)
		list = &(*list)->next;
	*list = p;
}

static struct packet *pop(struct packet **list)
{
	struct packet *p = *list;
	if (p != NULL)
		*list = p->next;
	return p;
}

struct emit_ctx { struct net *net; int host; };
static struct emit_ctx ctx[2];

static tn_status emit(void *c, const struct cp_output *out)
{
	struct emit_ctx *e = c;
	struct net *n = e->net;
	struct packet *p = calloc(1, sizeof *p + out->len);
	if (out->door == CP_DOOR_CLIENT && n->host[1 - e->host].refuse) {
		free(p);
		return TN_PEER_DOWN;
	}
	p->from = e->host;
	p->door = out->door;
	p->peer = out->peer;
	if (out->route != NULL)
		p->route = *out->route;
	p->len = out->len;
	memcpy(p->bytes, out->bytes, out->len);
	if (out->door == CP_DOOR_LINK)
		push(&n->host[e->host].link_out, p);
	else if (out->door == CP_DOOR_BUS)
		push(&n->host[e->host].bus_out, p);
	else {
		push(&n->wire, p);
		n->wire_cnt++;
	}
	return TN_OK;
}

static void reconnect(void *c, uint32_t peer)
{
	struct emit_ctx *e = c;
	(void)peer;
	e->net->host[e->host].reconnects++;
}

struct tn_config *net_config(const char *text)
{
	static const char *const empty_env[] = { NULL };
	char path[] = "/tmp/tent-net-XXXXXX.json";
	FILE *f = fdopen(mkstemps(path, 5), "w");
	struct tn_config *cfg = NULL;
	struct tn_config_errors *errors = calloc(1, sizeof *errors);
	fputs(text, f);
	fclose(f);
	struct tn_config_opts opts = { .size = sizeof opts, .path = path, .env = empty_env };
	if (tn_config_load(&opts, &cfg, errors) != TN_OK) {
		tn_config_errors_print(errors, stderr);
		abort();
	}
	unlink(path);
	free(errors);
	return cfg;
}

struct tn_config *net_config_peers(unsigned cnt)
{
	char *text;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	fprintf(f, "{\"host\":{\"name\":\"me\"},\"runtime_dir\":\"/tmp/x\",\"state_dir\":\"/tmp/x\",\"peers\":[");
	for (unsigned i = 0; i < cnt; i++)
		fprintf(f, "%s{\"name\":\"p%u\",\"address\":\"tcp://127.0.0.1:%u\",\"public_key\":\"%064u\"}", i > 0 ? "," : "", i,
			9000 + i, 1 + i);
	fprintf(f, "]}");
	fclose(f);
	struct tn_config *cfg = net_config(text);
	free(text);
	return cfg;
}

static struct tn_config *config_of(int host)
{
	char text[512];
	snprintf(text, sizeof text,
		 "{\"host\":{\"name\":\"%c\"},\"runtime_dir\":\"/tmp/x\",\"state_dir\":\"/tmp/x\",\"peers\":[{\"name\":\"%c\","
		 "\"address\":\"tcp://127.0.0.1:%d\",\"public_key\":\"%064d\"}]}",
		 "ab"[host], "ba"[host], 9000 + host, 1 + host);
	return net_config(text);
}

static void node_start(struct net *n, int h, uint8_t control_byte)
{
	struct host *host = &n->host[h];
	struct cp_node_cfg cfg = { .config = host->config, .self = { { (uint8_t)(7 + h) } },
				   .control_session = { { control_byte } }, .seed = 33u + control_byte,
				   .metrics = &host->cells.rec, .emit = emit, .reconnect = reconnect,
				   .emit_ctx = &ctx[h] };
	if (cp_node_new(&cfg, &host->node) != TN_OK)
		abort();
}

struct net *net_new(void)
{
	struct net *n = calloc(1, sizeof *n);
	n->now_ns = 1000 * TN_NS_PER_S;
	for (int h = A; h <= B; h++) {
		struct host *host = &n->host[h];
		ctx[h] = (struct emit_ctx){ n, h };
		host->config = config_of(h);
		cp_cells_init(&host->cells, true);
		node_start(n, h, (uint8_t)(9 + h));
	}
	return n;
}

void net_free(struct net *n)
{
	struct packet *p;
	for (int h = A; h <= B; h++)
		cp_node_free(n->host[h].node); /* may still answer somebody */
	for (int h = A; h <= B; h++) {
		tn_config_free(n->host[h].config);
		while ((p = pop(&n->host[h].link_out)) != NULL)
			free(p);
		while ((p = pop(&n->host[h].bus_out)) != NULL)
			free(p);
	}
	while ((p = pop(&n->wire)) != NULL)
		free(p);
	free(n);
}

void net_settle(struct net *n)
{
	for (struct packet *p; (p = pop(&n->wire)) != NULL; free(p)) {
		int to = 1 - p->from;
		struct cp_input in = { .door = p->door == CP_DOOR_CLIENT ? CP_DOOR_SERVER : CP_DOOR_CLIENT, .peer = 0,
				       .route = { .len = 1, .bytes = { 'r' } }, .address = "127.0.0.1", .bytes = p->bytes,
				       .len = p->len };
		cp_node_input(n->host[to].node, &in, n->now_ns);
	}
}

void net_pass(struct net *n, uint64_t ns)
{
	uint64_t end = n->now_ns + ns;
	while (n->now_ns < end) {
		n->now_ns += TN_MIN(10 * TN_NS_PER_MS, end - n->now_ns);
		cp_node_tick(n->host[A].node, n->now_ns);
		cp_node_tick(n->host[B].node, n->now_ns);
		net_settle(n);
	}
}

static uint8_t session_byte[2];

static void say(struct net *n, int host, enum cp_door door, const struct tn_message *m)
{
	char text[TN_MESSAGE_MAX];
	size_t len;
	struct cp_input in = { .door = door, .peer = CP_NO_PEER, .bytes = text,
			       .route = { .len = 2, .bytes = { door == CP_DOOR_LINK ? 'L' : 'B', session_byte[host] } } };
	CU_ASSERT_EQUAL_FATAL(tn_message_encode(m, text, sizeof text, &len), TN_OK);
	in.len = len;
	cp_node_input(n->host[host].node, &in, n->now_ns);
	json_decref(m->body);
}

void net_link_say(struct net *n, int host, const char *type, uint64_t id, bool reply, tn_status status, json_t *body)
{
	struct tn_message m = { .id = id, .reply = reply, .status = status, .remaining_ms = 4000, .body = body,
				.session = { { session_byte[host] } } };
	snprintf(m.type, sizeof m.type, "%s", type);
	say(n, host, CP_DOOR_LINK, &m);
}

void net_bus_say(struct net *n, int host, const char *type, uint64_t id, json_t *body)
{
	struct tn_message m = { .id = id, .remaining_ms = 4000, .body = body };
	snprintf(m.type, sizeof m.type, "%s", type);
	say(n, host, CP_DOOR_BUS, &m);
}

static bool take(struct packet **list, struct tn_message *out)
{
	char err[TN_ERR_TEXT];
	struct packet *p = pop(list);
	if (p == NULL)
		return false;
	CU_ASSERT_EQUAL_FATAL(tn_message_decode(p->bytes, p->len, out, err), TN_OK);
	free(p);
	return true;
}

bool net_link_take(struct net *n, int host, struct tn_message *out)
{
	while (take(&n->host[host].link_out, out)) {
		if (strcmp(out->type, "peer_returned") != 0)
			return true;
		n->host[host].returned++;
		tn_message_clear(out);
	}
	return false;
}

bool net_bus_take(struct net *n, int host, struct tn_message *out) { return take(&n->host[host].bus_out, out); }

struct tn_message net_bus_answer(struct net *n, int host, uint64_t id, tn_status status)
{
	struct tn_message m;
	CU_ASSERT_TRUE_FATAL(net_bus_take(n, host, &m));
	CU_ASSERT_TRUE(m.reply && m.id == id);
	CU_ASSERT_EQUAL(m.status, status);
	return m;
}

static void expect_ok(struct net *n, int host, const char *type)
{
	struct tn_message m;
	CU_ASSERT_TRUE_FATAL(net_link_take(n, host, &m));
	CU_ASSERT_STRING_EQUAL(m.type, type);
	CU_ASSERT_TRUE(m.reply);
	CU_ASSERT_EQUAL(m.status, TN_OK);
	tn_message_clear(&m);
}

void net_attach(struct net *n, int host, uint8_t byte, uint64_t generation)
{
	session_byte[host] = byte;
	json_t *b = json_pack("{s:i,s:I,s:s,s:[{s:s,s:s}],s:i,s:i}", "pid", 77, "generation", (json_int_t)generation, "telemetry",
			      "dataplane-1.tele", "endpoints", "transport", "tcp", "address", "127.0.0.1:4000", "frame_bytes",
			      1 << 20, "sequence", 0);
	net_link_say(n, host, "attach", 1, false, TN_OK, b);
	expect_ok(n, host, "attach");
	net_link_say(n, host, "snapshot", 2, false, TN_OK,
		     json_pack("{s:i,s:[],s:b}", "sequence", 1, "segments", "last", 1));
	expect_ok(n, host, "snapshot");
}

void net_publish(struct net *n, int host, const char *name, uint64_t generation, unsigned access)
{
	json_t *seg = json_pack("{s:s,s:I,s:s,s:i,s:i,s:[],s:i,s:i,s:[{s:s,s:i,s:i}]}", "name", name, "generation",
				(json_int_t)generation, "publication", "00112233445566778899aabbccddeeff", "bytes", 1 << 20, "access", (int)access, "peers", "uid", 0, "client", 1,
				"buffers", "registration", "11", "bytes", 1 << 20, "rights", 6);
	net_link_say(n, host, "segment_published", 3, false, TN_OK, json_pack("{s:i,s:o}", "sequence", 2, "segment", seg));
	expect_ok(n, host, "segment_published");
}

void net_install(struct net *n, int host)
{
	struct tn_message m;
	CU_ASSERT_TRUE_FATAL(net_link_take(n, host, &m));
	CU_ASSERT_STRING_EQUAL_FATAL(m.type, "install_ticket");
	CU_ASSERT_FALSE(m.reply);
	net_link_say(n, host, "install_ticket", m.id, true, TN_OK, NULL);
	tn_message_clear(&m);
	net_settle(n);
}

void net_restart(struct net *n, int host, uint8_t control_byte)
{
	struct packet *p;
	cp_node_free(n->host[host].node);
	while ((p = pop(&n->host[host].link_out)) != NULL)
		free(p);
	while ((p = pop(&n->wire)) != NULL)
		free(p);
	node_start(n, host, control_byte);
}

static void relay_one(struct net *n, int host, const struct tn_message *m)
{
	if (m->reply)
		return;
	if (strcmp(m->type, "datagram") == 0) {
		int to = 1 - host;
		snprintf(n->last[to], sizeof n->last[to], "%s", json_string_value(json_object_get(m->body, "payload")));
		n->carried++;
		net_link_say(n, to, "datagram", 0, false, TN_OK,
			     json_pack("{s:s,s:s}", "peer", to == A ? "b" : "a", "payload", n->last[to]));
	}
	net_link_say(n, host, m->type, m->id, true, TN_OK, NULL);
}

void net_relay(struct net *n)
{
	struct tn_message m;
	for (int idle = 0; idle < 2;) {
		idle = 0;
		for (int h = A; h <= B; h++) {
			net_settle(n);
			if (!net_link_take(n, h, &m)) {
				idle++;
				continue;
			}
			relay_one(n, h, &m);
			tn_message_clear(&m);
		}
	}
}
