/* SPDX-License-Identifier: Apache-2.0
 * The rate limit of event lines, and exemplars. */
#include "common/status.h"
#include "controlplane/observe/exemplar.h"
#include "controlplane/observe/log_limit.h"
#include "tests/unit/cu.h"

#define S UINT64_C(1000000000)

static struct shr_event_shm event(uint8_t kind)
{
	return (struct shr_event_shm){ .kind = kind, .mono_ns = 101 * S + 250000, .request_id = 11, .batch_id = 12, .task_id = 13,
		.attempt_id = 14, .trace_hi = 0xa, .trace_lo = 0xb, .span_id = 0x1c, .parent_span_id = 0x1d,
		.duration_ns = 1500500, .status = TN_PATH_DOWN, .transport = TN_TRANSPORT_TCP, .from = TN_TRANSPORT_RDMA,
		.to = TN_TRANSPORT_TCP, .operation = TN_OP_WRITE, .phase = TN_PHASE_CONNECT, .reason = TN_REASON_PEER_CLOSED,
		.retention = TN_RETENTION_ERROR, .failover_cnt = 1, .config_generation = 5, .arg = 9 };
}

static void the_limit_counts_what_it_holds_back(void)
{
	static struct cp_log_limit l;
	struct shr_event_shm ev = event(SHR_EVENT_REQUEST_FAILED), other = event(SHR_EVENT_FAILOVER), span = event(SHR_EVENT_SPAN_ATTEMPT);
	uint64_t suppressed = 0, now = 50 * S;
	unsigned passed = 0;
	for (unsigned i = 0; i < 1000; i++)
		passed += cp_log_limit_pass(&l, &ev, now, &suppressed);
	CU_ASSERT_EQUAL(passed, CP_LOG_BURST);
	CU_ASSERT_TRUE(cp_log_limit_pass(&l, &other, now, &suppressed));
	CU_ASSERT_TRUE(cp_log_limit_pass(&l, &span, now, &suppressed));
	ev.suppressed = 7; /* what the data plane itself held back is added */
	now += S / CP_LOG_RATE;
	CU_ASSERT_TRUE_FATAL(cp_log_limit_pass(&l, &ev, now, &suppressed));
	CU_ASSERT_EQUAL(suppressed, 1000 - CP_LOG_BURST + 7);
	ev.suppressed = 0;
	now += 60 * S;
	passed = 0;
	for (unsigned i = 0; i < 1000; i++)
		passed += cp_log_limit_pass(&l, &ev, now, &suppressed);
	CU_ASSERT_EQUAL(passed, CP_LOG_BURST);
}

static void exemplars_keep_the_latest_retained(void)
{
	static struct cp_exemplars x;
	const struct cp_exemplar *slot = &x.slot[TN_TRANSPORT_TCP][TN_OP_WRITE];
	struct shr_event_shm ev = event(SHR_EVENT_SPAN_ATTEMPT);
	cp_exemplar_offer(&x, &ev);
	CU_ASSERT_EQUAL(slot->trace_lo, 0xb);
	ev.mono_ns--;
	ev.trace_lo = 0xc;
	cp_exemplar_offer(&x, &ev); /* older: another ring was read later */
	CU_ASSERT_EQUAL(slot->trace_lo, 0xb);
	ev.mono_ns += 2;
	ev.retention = TN_RETENTION_NONE;
	cp_exemplar_offer(&x, &ev);
	CU_ASSERT_EQUAL(slot->trace_lo, 0xb);
	ev.retention = TN_RETENTION_SLOW;
	cp_exemplar_offer(&x, &ev);
	CU_ASSERT_EQUAL(slot->trace_lo, 0xc);
	ev.transport = 200;
	cp_exemplar_offer(&x, &ev); /* outside: ignored, not written */
	ev = event(SHR_EVENT_SPAN_TRANSFER);
	cp_exemplar_offer(&x, &ev);
	CU_ASSERT_EQUAL(slot->trace_lo, 0xc);
}

TN_TEST_MAIN("observe/log_limit", { "the limit counts what it holds back", the_limit_counts_what_it_holds_back },
	{ "exemplars keep the latest retained", exemplars_keep_the_latest_retained })
