/* SPDX-License-Identifier: Apache-2.0
 * Calls are shared out: peers that hang keep theirs, and nobody else's. Virtual time; peers answer when the test says so. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

#define PEERS 4u
#define SEGMENTS 3000u
#define SESSION "a1000000000000000000000000000000"

struct rig {
	struct cp_node *node;
	struct tn_config *config;
	struct cp_cells cells;
	uint64_t now_ns, next_id;
	unsigned asked[PEERS], refused; /* get_segment to each peer; answers "limit" to our data plane */
	/* segment_updated that wait for an answer, by the peer told; and the generation it was told last, by segment */
	uint64_t waiting[SEGMENTS];
	unsigned waiting_cnt, told_cnt;
	uint64_t last[SEGMENTS];
};

static tn_status emit(void *ctx, const struct cp_output *out)
{
	struct rig *r = ctx;
	struct tn_message m;
	char err[TN_ERR_TEXT];
	unsigned seg;
	CU_ASSERT_EQUAL_FATAL(tn_message_decode(out->bytes, out->len, &m, err), TN_OK);
	if (out->door == CP_DOOR_CLIENT && strcmp(m.type, "get_segment") == 0)
		r->asked[out->peer]++;
	if (out->door == CP_DOOR_LINK)
		r->refused += m.reply && m.status == TN_LIMIT;
	if (out->door == CP_DOOR_CLIENT && strcmp(m.type, "segment_updated") == 0 &&
	    sscanf(json_string_value(json_object_get(m.body, "name")), "s-%u", &seg) == 1) {
		r->waiting[r->waiting_cnt++] = m.id;
		r->told_cnt++;
		r->last[seg] = (uint64_t)json_integer_value(json_object_get(m.body, "generation"));
	}
	tn_message_clear(&m);
	return TN_OK;
}

static void hear(struct rig *r, enum cp_door door, uint32_t peer, const char *type, bool reply, uint64_t id, json_t *body)
{
	char text[4096];
	struct tn_message m = { .id = id, .reply = reply, .remaining_ms = 4000, .body = body, .session = { { 0xa1 } } };
	struct cp_input in = { .door = door, .peer = peer, .bytes = text, .route = { .len = 1, .bytes = { 'L' } } };
	snprintf(m.type, sizeof m.type, "%s", type);
	CU_ASSERT_EQUAL_FATAL(tn_message_encode(&m, text, sizeof text, &in.len), TN_OK);
	cp_node_input(r->node, &in, r->now_ns);
	json_decref(body);
}

static void link_says(struct rig *r, const char *type, json_t *body)
{
	hear(r, CP_DOOR_LINK, CP_NO_PEER, type, false, ++r->next_id, body);
}

static struct rig *rig_new(void)
{
	struct rig *r = calloc(1, sizeof *r);
	r->config = net_config_peers(PEERS);
	r->now_ns = 1000 * TN_NS_PER_S;
	cp_cells_init(&r->cells, true);
	struct cp_node_cfg cfg = { .config = r->config, .self = { { 7 } }, .control_session = { { 9 } }, .seed = 42,
				   .metrics = &r->cells.rec, .emit = emit, .emit_ctx = r };
	CU_ASSERT_EQUAL_FATAL(cp_node_new(&cfg, &r->node), TN_OK);
	link_says(r, "attach", json_pack("{s:i,s:i,s:s,s:[],s:i,s:i}", "pid", 7, "generation", 1, "telemetry", "x", "endpoints",
					 "frame_bytes", 65536, "sequence", 0));
	link_says(r, "snapshot", json_pack("{s:i,s:[],s:b}", "sequence", 1, "segments", "last", 1));
	return r;
}

static void pass(struct rig *r, uint64_t ns)
{
	for (uint64_t end = r->now_ns + ns; r->now_ns < end;) {
		r->now_ns += 10 * TN_NS_PER_MS;
		cp_node_tick(r->node, r->now_ns);
	}
}

static void rig_free(struct rig *r)
{
	pass(r, 8 * TN_NS_PER_S); /* what a call's end frees */
	CU_ASSERT_EQUAL(cp_exchange_outstanding(r->node->exchange), 0);
	cp_node_free(r->node);
	tn_config_free(r->config);
	free(r);
}

static void open_many(struct rig *r, unsigned peer, unsigned cnt)
{
	char ref[64];
	for (unsigned i = 0; i < cnt; i++) {
		snprintf(ref, sizeof ref, "p%u/s-%u", peer, i);
		link_says(r, "open", json_pack("{s:s}", "ref", ref));
	}
}

static void count_end(struct cp_node *node, void *ctx, tn_status status, const char *detail, const json_t *body)
{
	(void)node, (void)detail, (void)body;
	*(unsigned *)ctx += status == TN_LIMIT;
}

static unsigned call_many(struct rig *r, uint32_t peer, unsigned cnt)
{
	static unsigned refused; /* outlives the calls */
	refused = 0;
	for (unsigned i = 0; i < cnt; i++)
		cp_exchange_call(r->node->exchange,
				 &(struct cp_call_opts){ .target = peer, .type = "probe", .method = TN_RPC_METHOD_PROBE, .attempts = 1,
							 .done = count_end, .deadline_ns = r->now_ns + TN_NS_PER_S, .ctx = &refused },
				 r->now_ns);
	return cnt - refused;
}

static void hung_peers_leave_room(void)
{
	struct rig *r = rig_new();
	unsigned first = call_many(r, 0, 40000), second = call_many(r, 1, 40000);
	CU_ASSERT_TRUE(first >= 8000 && second >= 4000);
	open_many(r, 2, 1000);
	CU_ASSERT_EQUAL(r->asked[2], 1000);
	open_many(r, 3, 1000);
	CU_ASSERT_EQUAL(r->asked[3], 1000);
	CU_ASSERT_EQUAL(r->refused, 0);
	rig_free(r);
}

static json_t *segment(unsigned i, uint64_t generation)
{
	char name[32];
	snprintf(name, sizeof name, "s-%u", i);
	return json_pack("{s:s,s:I,s:s,s:i,s:i,s:[],s:i,s:i,s:[{s:s,s:i,s:i}]}", "name", name, "generation", (json_int_t)generation,
			 "publication", "00112233445566778899aabbccddeeff", "bytes", 4096, "access", 4, "peers", "uid", 0, "client",
			 1, "buffers", "registration", "11", "bytes", 4096, "rights", 6);
}

static void publish_all(struct rig *r, uint64_t generation)
{
	for (unsigned i = 0; i < SEGMENTS; i++)
		link_says(r, "segment_published", json_pack("{s:i,s:o}", "sequence", 2, "segment", segment(i, generation)));
}

/* p0 used every segment, hangs, and all of them change several times. */
static void mass_updates_are_coalesced(void)
{
	struct rig *r = rig_new();
	char name[32];
	publish_all(r, 5);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "s-%u", i);
		hear(r, CP_DOOR_SERVER, 0, "get_segment", false, 100 + i, json_pack("{s:s}", "name", name));
	}
	publish_all(r, 6);
	publish_all(r, 7);
	publish_all(r, 8);
	CU_ASSERT_EQUAL(r->told_cnt, 32);
	CU_ASSERT_TRUE(cp_exchange_outstanding(r->node->exchange) <= 40);
	open_many(r, 1, 1000);
	CU_ASSERT_EQUAL(r->asked[1], 1000);
	pass(r, 3 * TN_NS_PER_S); /* nobody answered the first ones: the next ones are tried */
	CU_ASSERT_TRUE(r->told_cnt > 32 && r->told_cnt <= 96);
	while (r->waiting_cnt > 0) /* it hears again */
		hear(r, CP_DOOR_CLIENT, 0, "segment_updated", true, r->waiting[--r->waiting_cnt], NULL);
	CU_ASSERT_EQUAL(r->told_cnt, 1032); /* the first 32 were told of 6, and all of 8 */
	for (unsigned i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(r->last[i], 8);
	CU_ASSERT_EQUAL(r->node->peers[0].updates.out, 0);
	rig_free(r);
}

/* A socket that takes nothing ends each call in its own beginning: no depth without end, and nothing is left. */
static tn_status refuse(void *ctx, const struct cp_output *out)
{
	return out->door == CP_DOOR_CLIENT ? TN_PEER_DOWN : emit(ctx, out);
}

static void refused_at_once(void)
{
	struct rig *r = rig_new();
	char name[32];
	publish_all(r, 5);
	for (unsigned i = 0; i < SEGMENTS; i++) {
		snprintf(name, sizeof name, "s-%u", i);
		hear(r, CP_DOOR_SERVER, 0, "get_segment", false, 100 + i, json_pack("{s:s}", "name", name));
	}
	r->node->emit = refuse;
	publish_all(r, 6);
	CU_ASSERT_EQUAL(r->node->peers[0].updates.out, 0);
	CU_ASSERT_EQUAL(json_object_size(r->node->peers[0].updates.waiting), 0);
	CU_ASSERT_EQUAL(r->node->peers[0].calls, 0);
	rig_free(r);
}

TN_TEST_MAIN("controlplane/exchange",
	{ "peers that hang leave room for others", hung_peers_leave_room },
	{ "mass updates are coalesced", mass_updates_are_coalesced },
	{ "updates that are refused at once", refused_at_once })
