/* SPDX-License-Identifier: Apache-2.0
 * Label texts are those of the observability contract, in the order of the wire values. */
#include "common/domain.h"

#include "tests/unit/cu.h"

static void texts(void)
{
	CU_ASSERT_STRING_EQUAL(tn_transport_name(TN_TRANSPORT_HP_TCP), "hp_tcp");
	CU_ASSERT_STRING_EQUAL(tn_op_name(TN_OP_WRITE), "write");
	CU_ASSERT_STRING_EQUAL(tn_memop_name(TN_MEMOP_UNREGISTER), "unregister");
	CU_ASSERT_STRING_EQUAL(tn_outcome_name(TN_OUTCOME_CANCELED), "canceled");
	CU_ASSERT_STRING_EQUAL(tn_result_name(TN_RESULT_FAILURE), "failure");
	CU_ASSERT_STRING_EQUAL(tn_phase_name(TN_PHASE_SHUTDOWN), "shutdown");
	CU_ASSERT_STRING_EQUAL(tn_reason_name(TN_REASON_STALE_GENERATION), "stale_generation");
	CU_ASSERT_STRING_EQUAL(tn_owner_kind_name(TN_OWNER_KIND_STAGING_INTERNAL), "staging_internal");
	CU_ASSERT_STRING_EQUAL(tn_priority_name(TN_PRIORITY_LOW), "low");
	CU_ASSERT_STRING_EQUAL(tn_worker_kind_name(TN_WORKER_KIND_PROGRESS), "progress");
	CU_ASSERT_STRING_EQUAL(tn_format_name(TN_FORMAT_OPENMETRICS), "openmetrics");
	CU_ASSERT_STRING_EQUAL(tn_rpc_method_name(TN_RPC_METHOD_OTHER), "other");
	CU_ASSERT_STRING_EQUAL(tn_rpc_outcome_name(TN_RPC_OUTCOME_CONNECT_ERROR), "connect_error");
}

static void out_of_range_is_invalid(void)
{
	CU_ASSERT_STRING_EQUAL(tn_transport_name(TN_TRANSPORT_CNT), "invalid");
	CU_ASSERT_STRING_EQUAL(tn_phase_name(TN_PHASE_CNT), "invalid");
	CU_ASSERT_STRING_EQUAL(tn_reason_name((unsigned)-1), "invalid");
}

/* The numbers travel; a reordered list would break peers and readers of old files. */
static void numbers_stay(void)
{
	CU_ASSERT_EQUAL(TN_TRANSPORT_UNSPEC, 0);
	CU_ASSERT_EQUAL(TN_TRANSPORT_SHM, 4);
	CU_ASSERT_EQUAL(TN_PHASE_SHUTDOWN, 14);
	CU_ASSERT_EQUAL(TN_REASON_INTERNAL, 11);
	CU_ASSERT_EQUAL(TN_RPC_METHOD_OTHER, 11);
}

TN_TEST_MAIN("common/domain", { "texts", texts }, { "out of range is invalid", out_of_range_is_invalid },
	{ "numbers stay", numbers_stay })
