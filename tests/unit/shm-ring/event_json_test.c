/* SPDX-License-Identifier: Apache-2.0
 * Event lines: field order to the letter, values outside their domains. */
#include <jansson.h>
#include <string.h>

#include "common/domain.h"
#include "common/trace.h"
#include "shm-ring/event_json.h"
#include "tests/unit/cu.h"

#define S UINT64_C(1000000000)

static const struct shr_event_clock clock_pair = { 100 * S, 1700000000 * S };

static struct shr_event_shm event(uint8_t kind)
{
	return (struct shr_event_shm){ .kind = kind,
				       .mono_ns = 101 * S + 250000,
				       .request_id = 11,
				       .batch_id = 12,
				       .task_id = 13,
				       .attempt_id = 14,
				       .trace_hi = 0xa,
				       .trace_lo = 0xb,
				       .span_id = 0x1c,
				       .parent_span_id = 0x1d,
				       .duration_ns = 1500500,
				       .status = TN_PATH_DOWN,
				       .transport = TN_TRANSPORT_TCP,
				       .from = TN_TRANSPORT_RDMA,
				       .to = TN_TRANSPORT_TCP,
				       .operation = TN_OP_WRITE,
				       .phase = TN_PHASE_CONNECT,
				       .reason = TN_REASON_PEER_CLOSED,
				       .retention = TN_RETENTION_ERROR,
				       .failover_cnt = 1,
				       .config_generation = 5,
				       .arg = 9 };
}

static void line_is(const struct shr_event_shm *ev, uint64_t suppressed, const char *want)
{
	struct tn_text t;
	tn_text_init(&t, 4096);
	CU_ASSERT_TRUE_FATAL(shr_event_json(ev, &clock_pair, suppressed, &t));
	if (strcmp(t.p, want) != 0)
		printf("\n got %s", t.p);
	CU_ASSERT_STRING_EQUAL(t.p, want);
	tn_text_free(&t);
}

#define TRACE "\"trace_id\":\"000000000000000a000000000000000b\""
#define TS "\"ts\":\"2023-11-14T22:13:21.000250Z\""

static void lines_to_the_letter(void)
{
	struct shr_event_shm ev = event(SHR_EVENT_REQUEST_FAILED);
	line_is(&ev, 0,
		"{\"event\":\"tent.request.failed\"," TS
		",\"level\":\"warn\",\"request_id\":11,\"batch_id\":12,\"task_id\":13,"
		"\"attempt_id\":14," TRACE ",\"transport\":\"tcp\",\"operation\":\"write\",\"phase\":\"connect\","
		"\"reason\":\"peer_closed\",\"status\":\"path_down\",\"duration_us\":1500.5,\"failover_count\":1,"
		"\"config_generation\":5}\n");
	ev = event(SHR_EVENT_FAILOVER);
	line_is(&ev, 3,
		"{\"event\":\"tent.transport.failover\"," TS
		",\"level\":\"info\",\"request_id\":11,\"batch_id\":12,\"task_id\":13,"
		"\"attempt_id\":14," TRACE
		",\"from\":\"rdma\",\"to\":\"tcp\",\"operation\":\"write\",\"phase\":\"connect\","
		"\"reason\":\"peer_closed\",\"status\":\"path_down\",\"failover_count\":1,\"config_generation\":5,"
		"\"suppressed\":3}\n");
	ev = event(SHR_EVENT_SPAN_ATTEMPT);
	line_is(&ev, 0,
		"{\"event\":\"tent.transport_attempt\"," TS
		",\"level\":\"info\",\"request_id\":11,\"batch_id\":12,\"task_id\":13,"
		"\"attempt_id\":14," TRACE ",\"span_id\":\"000000000000001c\",\"parent_span_id\":\"000000000000001d\","
		"\"start\":\"2023-11-14T22:13:20.998749Z\",\"transport\":\"tcp\",\"operation\":\"write\","
		"\"phase\":\"connect\",\"reason\":\"peer_closed\",\"status\":\"path_down\","
		"\"duration_us\":1500.5,\"failover_count\":1,\"config_generation\":5,\"retention\":\"error\"}\n");
	ev = event(SHR_EVENT_SPAN_TRANSFER);
	ev.retention = TN_RETENTION_LINKED_CHILD;
	ev.status = TN_OK; /* no phase, no reason */
	line_is(&ev, 0,
		"{\"event\":\"tent.logical_transfer\"," TS
		",\"level\":\"info\",\"request_id\":11,\"batch_id\":12,\"task_id\":13," TRACE
		",\"span_id\":\"000000000000001c\",\"start\":\"2023-11-14T22:13:20.998749Z\",\"transport\":\"tcp\","
		"\"operation\":\"write\",\"status\":\"ok\",\"duration_us\":1500.5,\"failover_count\":1,"
		"\"config_generation\":5,\"retention\":\"linked_child\"}\n");
	ev = event(SHR_EVENT_REQUEST_STUCK);
	ev.attempt_id = 0; /* it waits for its first */
	line_is(&ev, 0,
		"{\"event\":\"tent.request.stuck\"," TS
		",\"level\":\"warn\",\"request_id\":11,\"batch_id\":12,\"task_id\":13," TRACE
		",\"transport\":\"tcp\",\"operation\":\"write\",\"phase\":\"connect\",\"duration_us\":1500.5,"
		"\"failover_count\":1,\"config_generation\":5}\n");
}

static void every_kind_is_valid_json(void)
{
	static const char *const order[] = { "event",       "ts",
					     "level",       "request_id",
					     "batch_id",    "task_id",
					     "attempt_id",  "trace_id",
					     "span_id",     "parent_span_id",
					     "start",       "transport",
					     "from",        "to",
					     "operation",   "phase",
					     "reason",      "status",
					     "duration_us", "failover_count",
					     "arg",         "config_generation",
					     "retention",   "suppressed" };
	for (unsigned kind = 0; kind < 256; kind++) {
		struct shr_event_shm ev = event((uint8_t)kind);
		struct tn_text t;
		tn_text_init(&t, 4096);
		bool known = shr_event_json(&ev, &clock_pair, 1, &t);
		CU_ASSERT_EQUAL(known, kind != SHR_EVENT_NONE && kind < SHR_EVENT_KIND_CNT);
		if (!known) {
			CU_ASSERT_EQUAL(t.len, 0);
			continue;
		}
		json_t *doc = json_loadb(t.p, t.len, JSON_REJECT_DUPLICATES, NULL), *value;
		CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
		const char *key;
		unsigned at = 0;
		json_object_foreach(doc, key, value) {
			while (at < TN_ARRAY_LEN(order) && strcmp(order[at], key) != 0)
				at++;
			CU_ASSERT_TRUE(at < TN_ARRAY_LEN(order));
		}
		json_decref(doc);
		tn_text_free(&t);
	}
}

static void foreign_values_read_invalid(void)
{
	struct shr_event_shm ev;
	memset(&ev, 0xff, sizeof ev);
	for (unsigned kind = 1; kind < SHR_EVENT_KIND_CNT; kind++) {
		struct tn_text t;
		tn_text_init(&t, 4096);
		ev.kind = (uint8_t)kind;
		CU_ASSERT_TRUE(shr_event_json(&ev, &clock_pair, 0, &t));
		json_t *doc =
		    json_loadb(t.p, t.len, JSON_DECODE_INT_AS_REAL, NULL); /* jansson's integers end at 2^63 */
		CU_ASSERT_PTR_NOT_NULL(doc);
		json_decref(doc);
		tn_text_free(&t);
	}
}

TN_TEST_MAIN("shm-ring/event_json", { "lines to the letter", lines_to_the_letter },
	{ "every kind is valid JSON in the fixed order", every_kind_is_valid_json },
	{ "foreign values read invalid", foreign_values_read_invalid })
