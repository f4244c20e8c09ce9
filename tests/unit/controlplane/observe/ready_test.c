/* SPDX-License-Identifier: Apache-2.0
 * The readiness rule as a truth table, and the JSON of /ready, /live and /diagnostics. */
#include <jansson.h>
#include <string.h>

#include "controlplane/observe/diagnostics.h"
#include "controlplane/observe/ready.h"
#include "tests/unit/cu.h"

#define BIT(r) (1u << CP_READY_##r)
#define TCP (1u << TN_TRANSPORT_TCP)
#define SHM (1u << TN_TRANSPORT_SHM)
#define S UINT64_C(1000000000)

static struct cp_ready_in healthy(void)
{
	struct cp_ready_in in = { .now_ns = 100 * S, .stall_ns = 10 * S, .attached = true, .schema_ok = true,
		.engine_alive = true, .engine_state = SHR_TELE_RUNNING, .peer_bus_bound = true, .link_up = true,
		.loaded_transports = TCP | SHM, .worker_cnt = 2 };
	for (unsigned w = 0; w < 2; w++)
		in.worker[w] = (struct cp_worker_state){ .alive = true, .transports_up = TCP | SHM, .last_progress_ns = 1 * S };
	return in;
}

#define CASE(want, change) \
	do { \
		struct cp_ready_in in = healthy(); \
		change; \
		CU_ASSERT_EQUAL(cp_ready_evaluate(&in), (want)); \
	} while (0)

static void each_reason_alone(void)
{
	CASE(0, (void)0);
	CASE(BIT(DIAGNOSTICS_UNAVAILABLE), in.schema_ok = false);
	CASE(BIT(ENGINE_UNAVAILABLE), in.engine_alive = false);
	CASE(BIT(ENGINE_UNAVAILABLE), in.engine_state = SHR_TELE_STARTING);
	CASE(BIT(ENGINE_UNAVAILABLE), in.engine_state = SHR_TELE_DRAINING);
	CASE(BIT(ENGINE_UNAVAILABLE), in.engine_state = SHR_TELE_STOPPED);
	CASE(BIT(ENGINE_UNAVAILABLE), in.engine_state = SHR_TELE_PAUSED);
	CASE(BIT(ENGINE_UNAVAILABLE), in.engine_state = 99);
	CASE(BIT(CONTROL_PLANE_UNAVAILABLE), in.peer_bus_bound = false);
	CASE(BIT(CONTROL_PLANE_UNAVAILABLE), in.link_up = false);
	CASE(BIT(NO_TRANSPORT), in.worker[0].transports_up = in.worker[1].transports_up = 0);
	CASE(BIT(NO_TRANSPORT), in.loaded_transports = 0);
	CASE(0, in.worker[0].transports_up = 0); /* another worker serves */
	CASE(BIT(NO_TRANSPORT), (in.required_transports = TCP, in.worker[1].transports_up = SHM));
	CASE(0, in.required_transports = TCP | SHM);
	CASE(BIT(WORKER_UNAVAILABLE), in.worker[1].alive = false);
	CASE(BIT(NO_TRANSPORT) | BIT(WORKER_UNAVAILABLE), in.worker_cnt = 0);
	CASE(BIT(WORKER_STALLED), (in.worker[1].oldest_work_ns = 50 * S, in.worker[1].last_progress_ns = 60 * S));
}

static void a_silent_data_plane_is_named(void)
{
	struct cp_ready_in in = healthy();
	struct tn_text t;
	in.link_up = false;
	in.silent_since_ns = 83 * S;
	tn_text_init(&t, 4096);
	cp_ready_json(&in, cp_ready_evaluate(&in), &t);
	json_t *j = json_loadb(t.p, t.len, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json_object_get(j, "detail"));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "detail")),
			       "the data plane of this host does not answer: silent for 17 s (stopped, or hanging)");
	json_decref(j);
	tn_text_reset(&t);
	in.silent_since_ns = 0; /* down for another reason */
	cp_ready_json(&in, cp_ready_evaluate(&in), &t);
	CU_ASSERT_PTR_NULL(strstr(t.p, "detail"));
	tn_text_reset(&t);
	in = healthy();
	in.engine_state = SHR_TELE_PAUSED; /* somebody wants it so */
	cp_ready_json(&in, cp_ready_evaluate(&in), &t);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.p, "[\"engine_unavailable\"],\"detail\":\"paused: requests wait"));
	tn_text_reset(&t);
	in.engine_alive = false; /* and then it died */
	cp_ready_json(&in, cp_ready_evaluate(&in), &t);
	CU_ASSERT_PTR_NULL(strstr(t.p, "detail"));
	tn_text_free(&t);
}

static void stalled_needs_both_old_work_and_no_progress(void)
{
	CASE(0, (in.worker[0].oldest_work_ns = 5 * S, in.worker[0].last_progress_ns = 99 * S));  /* long transfer, moving */
	CASE(0, (in.worker[0].oldest_work_ns = 0, in.worker[0].last_progress_ns = 5 * S));       /* idle */
	CASE(0, (in.worker[0].oldest_work_ns = 95 * S, in.worker[0].last_progress_ns = 5 * S));  /* work just came */
	CASE(0, (in.worker[0].oldest_work_ns = 90 * S, in.worker[0].last_progress_ns = 80 * S)); /* exactly T */
	CASE(BIT(WORKER_STALLED), (in.worker[0].oldest_work_ns = 90 * S - 1, in.worker[0].last_progress_ns = 80 * S));
	CASE(BIT(WORKER_STALLED), (in.worker[0].oldest_work_ns = 1, in.worker[0].last_progress_ns = 0)); /* never moved */
	CASE(0, (in.worker[0].oldest_work_ns = 101 * S, in.worker[0].last_progress_ns = 5 * S)); /* stamp after our now */
}

static void reasons_add_up(void)
{
	struct cp_ready_in nothing = { .now_ns = 100 * S, .stall_ns = 10 * S };
	CU_ASSERT_EQUAL(cp_ready_evaluate(&nothing),
			BIT(DIAGNOSTICS_UNAVAILABLE) | BIT(ENGINE_UNAVAILABLE) | BIT(CONTROL_PLANE_UNAVAILABLE));
	/* the process lives, its region is of another ABI: only diagnostics are missing */
	CASE(BIT(DIAGNOSTICS_UNAVAILABLE), in.attached = false);
	/* of a dead engine nothing more is said */
	CASE(BIT(ENGINE_UNAVAILABLE), (in.engine_alive = false, in.worker[0].alive = false, in.worker[1].transports_up = 0));
	CASE(BIT(WORKER_UNAVAILABLE) | BIT(WORKER_STALLED) | BIT(CONTROL_PLANE_UNAVAILABLE),
	     (in.worker[0].alive = false, in.worker[1].oldest_work_ns = 1, in.link_up = false));
}

static json_t *parsed(struct tn_text *t)
{
	CU_ASSERT_FALSE_FATAL(t->failed);
	json_t *doc = json_loadb(t->p, t->len, JSON_REJECT_DUPLICATES, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(doc, "schema_version")), 1);
	tn_text_free(t);
	return doc;
}

static void ready_json(void)
{
	struct tn_text t;
	struct cp_ready_in in = healthy();
	tn_text_init(&t, 4096);
	cp_ready_json(&in, 0, &t);
	CU_ASSERT_STRING_EQUAL(t.p, "{\"schema_version\":1,\"ready\":true,\"reasons\":[],\"checks\":{\"engine\":true,"
				    "\"control_plane\":true,\"transports\":2,\"progress_worker\":\"running\"}}\n");
	json_decref(parsed(&t));

	in = (struct cp_ready_in){ .now_ns = 1 };
	cp_ready_json(&in, cp_ready_evaluate(&in), &t);
	json_t *doc = parsed(&t), *reasons = json_object_get(doc, "reasons");
	CU_ASSERT_TRUE(json_is_false(json_object_get(doc, "ready")));
	CU_ASSERT_EQUAL(json_array_size(reasons), 3);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(reasons, 0)), "engine_diagnostics_unavailable");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(reasons, 1)), "engine_unavailable");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(reasons, 2)), "control_plane_unavailable");
	json_decref(doc);

	cp_live_json(61 * S + 5, &t);
	CU_ASSERT_STRING_EQUAL(t.p, "{\"schema_version\":1,\"status\":\"live\",\"uptime_s\":61}\n");
	json_decref(parsed(&t));
}

static void diagnostics_json(void)
{
	struct tn_text t;
	struct cp_build build = { "1", "c", "Debug" };
	struct cp_ready_in in = healthy();
	in.worker[0].queued = 3;
	in.worker[1].queued = 4;
	in.worker[1].outstanding_bytes = 1000;
	in.worker[1].oldest_work_ns = 99 * S;
	in.worker[0].batches = 2;
	struct cp_diagnostics_in d = { .ready = &in, .build = &build, .engine_build = "1 \xff c", .engine_uptime_ns = 3 * S };
	tn_text_init(&t, 65536);
	cp_diagnostics_json(&d, &t);
	json_t *doc = parsed(&t), *queue = json_object_get(doc, "runtime_queue");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(queue, "queued_owners")), 7);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(queue, "outstanding_bytes")), 1000);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(doc, "oldest_inflight_age_ms")), 1000);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(doc, "alive_batches")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(doc, "workers")), 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(doc, "transports")), 2);
	json_decref(doc);

	in = (struct cp_ready_in){ .now_ns = 1 };
	d.engine_build = "";
	cp_diagnostics_json(&d, &t);
	doc = parsed(&t);
	CU_ASSERT_TRUE(json_is_null(json_object_get(doc, "oldest_inflight_age_ms")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(doc, "workers")), 0);
	json_decref(doc);
}

TN_TEST_MAIN("observe/ready", { "a silent data plane is named", a_silent_data_plane_is_named },
	{ "each reason alone", each_reason_alone },
	{ "stalled needs both old work and no progress", stalled_needs_both_old_work_and_no_progress },
	{ "reasons add up", reasons_add_up }, { "/ready and /live", ready_json }, { "/diagnostics", diagnostics_json })
