/* SPDX-License-Identifier: Apache-2.0
 * The bus questions `events` and `trace`: pages, what was missed, requests that were merged into another's owner, numbers
 * that two data planes gave, and questions that make no sense. */
#include <string.h>

#include "common/trace.h"
#include "controlplane/observe/recent.h"
#include "tests/unit/controlplane/net.h"
#include "tests/unit/cu.h"

static const struct shr_event_clock wall = { 0, UINT64_C(1700000000000000000) };
static struct cp_recent *recent;

static struct net *begin(void)
{
	struct net *n = net_new();
	CU_ASSERT_EQUAL_FATAL(cp_recent_new(128, &recent), TN_OK);
	n->host[A].node->recent = recent;
	return n;
}

static void end(struct net *n)
{
	net_free(n);
	cp_recent_free(recent);
}

static void add(unsigned kind, uint64_t engine, uint64_t request, uint64_t task, uint64_t trace)
{
	struct shr_event_shm ev = { .kind = (uint8_t)kind, .request_id = request, .task_id = task, .trace_lo = trace,
				    .attempt_id = 5, .status = TN_PATH_DOWN, .suppressed = 2 };
	cp_recent_add(recent, &ev, &wall, engine);
}

static json_t *ask(struct net *n, const char *type, json_t *body, tn_status status)
{
	static uint64_t id = 100;
	net_bus_say(n, A, type, ++id, body);
	struct tn_message m = net_bus_answer(n, A, id, status);
	json_t *b = json_incref(m.body);
	tn_message_clear(&m);
	return b;
}

static json_int_t num(const json_t *b, const char *key) { return json_integer_value(json_object_get(b, key)); }
static size_t cnt(const json_t *b) { return json_array_size(json_object_get(b, "records")); }
static const json_t *record(const json_t *b, size_t i) { return json_array_get(json_object_get(b, "records"), i); }

static void pages(void)
{
	struct net *n = begin();
	json_t *b = ask(n, "events", NULL, TN_OK);
	CU_ASSERT_TRUE(cnt(b) == 0 && num(b, "next") == 0 && num(b, "missed") == 0 && json_is_false(json_object_get(b, "more")));
	json_decref(b);
	for (uint64_t i = 1; i <= 100; i++)
		add(SHR_EVENT_REQUEST_FAILED, 1, i, i, i);
	b = ask(n, "events", NULL, TN_OK);
	CU_ASSERT_TRUE(cnt(b) == 64 && num(b, "next") == 64 && num(b, "missed") == 0 && json_is_true(json_object_get(b, "more")));
	const json_t *first = record(b, 0);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(first, "event")), "tent.request.failed");
	CU_ASSERT_TRUE(num(first, "number") == 1 && num(first, "engine") == 1 && num(first, "suppressed") == 2);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(first, "ts")), "2023-11-14T22:13:20.000000Z");
	json_decref(b);
	cp_recent_lost(recent, 7);
	add(SHR_EVENT_REQUEST_FAILED, 1, 9, 9, 9);
	cp_recent_lost(recent, 3); /* behind the last one: told all the same */
	b = ask(n, "events", json_pack("{s:i,s:i}", "after", 99, "count", 10), TN_OK);
	CU_ASSERT_TRUE(cnt(b) == 2 && num(b, "next") == 111 && num(b, "missed") == 10 && json_is_false(json_object_get(b, "more")));
	json_decref(b);
	for (uint64_t i = 1; i <= 100; i++) /* 128 are kept: the oldest go */
		add(SHR_EVENT_REQUEST_FAILED, 1, i, i, i);
	b = ask(n, "events", json_pack("{s:i,s:i}", "after", 0, "count", 1), TN_OK);
	CU_ASSERT_TRUE(num(record(b, 0), "number") == 74 && num(b, "missed") == 73 && num(b, "next") == 74);
	json_decref(b);
	b = ask(n, "events", json_pack("{s:i}", "after", 5000), TN_OK); /* numbers of another control plane */
	CU_ASSERT_TRUE(cnt(b) == 0 && num(b, "next") == 211 && num(b, "missed") == 0);
	json_decref(b);
	end(n);
}

static json_t *trace(struct net *n, const char *id, tn_status status) { return ask(n, "trace", json_pack("{s:s}", "id", id), status); }

static void of_a_request(void)
{
	struct net *n = begin();
	add(SHR_EVENT_REQUEST_FAILED, 1, 21, 77, 0xab);    /* of an older data plane */
	add(SHR_EVENT_SPAN_ATTEMPT, 2, 20, 77, 0xaa);      /* the owner's attempt stands under its first request */
	add(SHR_EVENT_ATTEMPT_FAILED, 2, 20, 77, 0xaa);
	add(SHR_EVENT_REQUEST_FAILED, 2, 20, 77, 0xaa);    /* that request's own end is none of ours */
	add(SHR_EVENT_REQUEST_FAILED, 2, 21, 77, 0xab);
	add(SHR_EVENT_SPAN_ATTEMPT, 2, 22, 78, 0xac);
	json_t *b = trace(n, "21", TN_OK);
	CU_ASSERT_EQUAL_FATAL(cnt(b), 3);
	CU_ASSERT_TRUE(num(record(b, 0), "number") == 2 && num(record(b, 1), "number") == 3 && num(record(b, 2), "number") == 5);
	CU_ASSERT_EQUAL(num(b, "next"), 5);
	json_decref(b);
	b = trace(n, "000000000000000000000000000000ab", TN_OK); /* a trace is one across data planes */
	CU_ASSERT_EQUAL(cnt(b), 2);
	json_decref(b);
	b = trace(n, "99", TN_OK);
	CU_ASSERT_TRUE(cnt(b) == 0 && json_is_false(json_object_get(b, "more")));
	json_decref(b);
	for (unsigned i = 0; i < 70; i++)
		add(SHR_EVENT_ATTEMPT_FAILED, 2, 30, 80, 0xad);
	b = ask(n, "trace", json_pack("{s:s,s:i}", "id", "30", "count", 40), TN_OK);
	CU_ASSERT_TRUE(cnt(b) == 40 && json_is_true(json_object_get(b, "more")) && num(b, "next") == 46);
	json_decref(b);
	b = ask(n, "trace", json_pack("{s:s,s:i}", "id", "30", "after", 46), TN_OK);
	CU_ASSERT_TRUE(cnt(b) == 30 && json_is_false(json_object_get(b, "more")));
	json_decref(b);
	end(n);
}

static void questions_without_sense(void)
{
	static const char *const ids[] = { "", "-1", "12x", "99999999999999999999", "000000000000000000000000000000AB",
					   "0000000000000000000000000000000g" };
	struct net *n = begin();
	for (unsigned i = 0; i < TN_ARRAY_LEN(ids); i++)
		json_decref(trace(n, ids[i], TN_INVALID));
	json_decref(ask(n, "trace", NULL, TN_INVALID));
	json_decref(ask(n, "events", json_pack("{s:i}", "count", 65), TN_INVALID));
	json_decref(ask(n, "events", json_pack("{s:s}", "after", "soon"), TN_INVALID));
	n->host[A].node->recent = NULL;
	json_decref(ask(n, "events", NULL, TN_UNSUPPORTED));
	end(n);
}

/* While it lives its data plane knows; then what is remembered of its end, of the latest data plane that gave the number. */
static void one_request(void)
{
	static uint64_t id = 500;
	struct net *n = begin();
	struct tn_message m;
	add(SHR_EVENT_REQUEST_FAILED, 1, 21, 77, 0xab);
	add(SHR_EVENT_ATTEMPT_FAILED, 2, 22, 78, 0xac);
	add(SHR_EVENT_REQUEST_SLOW, 2, 22, 78, 0xac);
	json_t *b = ask(n, "request", json_pack("{s:i}", "request_id", 22), TN_OK); /* no data plane here */
	CU_ASSERT_TRUE(json_is_false(json_object_get(b, "live")));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_object_get(b, "end"), "event")), "tent.request.slow");
	json_decref(b);
	json_decref(ask(n, "request", json_pack("{s:i}", "request_id", 23), TN_DATAPLANE_DOWN));
	net_attach(n, A, 0xa1, 1);
	net_bus_say(n, A, "request", ++id, json_pack("{s:i}", "request_id", 23));
	CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
	CU_ASSERT_STRING_EQUAL(m.type, "request");
	CU_ASSERT_EQUAL(num(m.body, "request_id"), 23);
	net_link_say(n, A, "request", m.id, true, TN_OK, json_pack("{s:i,s:s}", "request_id", 23, "state", "running"));
	tn_message_clear(&m);
	m = net_bus_answer(n, A, id, TN_OK);
	CU_ASSERT_TRUE(json_is_true(json_object_get(m.body, "live")));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(m.body, "state")), "running");
	tn_message_clear(&m);
	for (unsigned k = 21; k <= 23; k++) {
		net_bus_say(n, A, "request", ++id, json_pack("{s:i}", "request_id", k));
		CU_ASSERT_TRUE_FATAL(net_link_take(n, A, &m));
		net_link_say(n, A, "request", m.id, true, TN_NOT_FOUND, NULL);
		tn_message_clear(&m);
		m = net_bus_answer(n, A, id, k == 23 ? TN_NOT_FOUND : TN_OK);
		if (k == 23)
			CU_ASSERT_PTR_NOT_NULL(strstr(m.detail, "no such live request"));
		tn_message_clear(&m);
	}
	json_decref(ask(n, "request", NULL, TN_INVALID));
	end(n);
}

TN_TEST_MAIN("controlplane/events", { "one request", one_request }, { "pages", pages }, { "of a request", of_a_request },
	{ "questions without sense", questions_without_sense })
