/* SPDX-License-Identifier: Apache-2.0
 * Label texts of the closed domains, generated from the lists in domain.h. Static data, no state; any thread. */
#include "common/domain.h"

#define X(n, s) #s,
static const char *const transport_names[] = { TN_TRANSPORT_LIST(X) };
static const char *const op_names[] = { TN_OP_LIST(X) };
static const char *const memop_names[] = { TN_MEMOP_LIST(X) };
static const char *const outcome_names[] = { TN_OUTCOME_LIST(X) };
static const char *const result_names[] = { TN_RESULT_LIST(X) };
static const char *const phase_names[] = { TN_PHASE_LIST(X) };
static const char *const reason_names[] = { TN_REASON_LIST(X) };
static const char *const owner_kind_names[] = { TN_OWNER_KIND_LIST(X) };
static const char *const priority_names[] = { TN_PRIORITY_LIST(X) };
static const char *const intent_names[] = { TN_INTENT_LIST(X) };
static const char *const worker_kind_names[] = { TN_WORKER_KIND_LIST(X) };
static const char *const format_names[] = { TN_FORMAT_LIST(X) };
static const char *const rpc_method_names[] = { TN_RPC_METHOD_LIST(X) };
static const char *const rpc_outcome_names[] = { TN_RPC_OUTCOME_LIST(X) };
#undef X

#define PICK(table, v) ((v) < TN_ARRAY_LEN(table) ? (table)[v] : "invalid")

const char *tn_transport_name(unsigned v) { return PICK(transport_names, v); }
const char *tn_op_name(unsigned v) { return PICK(op_names, v); }
const char *tn_memop_name(unsigned v) { return PICK(memop_names, v); }
const char *tn_outcome_name(unsigned v) { return PICK(outcome_names, v); }
const char *tn_result_name(unsigned v) { return PICK(result_names, v); }
const char *tn_phase_name(unsigned v) { return PICK(phase_names, v); }
const char *tn_reason_name(unsigned v) { return PICK(reason_names, v); }
const char *tn_owner_kind_name(unsigned v) { return PICK(owner_kind_names, v); }
const char *tn_priority_name(unsigned v) { return PICK(priority_names, v); }
const char *tn_intent_name(unsigned v) { return PICK(intent_names, v); }
const char *tn_worker_kind_name(unsigned v) { return PICK(worker_kind_names, v); }
const char *tn_format_name(unsigned v) { return PICK(format_names, v); }
const char *tn_rpc_method_name(unsigned v) { return PICK(rpc_method_names, v); }
const char *tn_rpc_outcome_name(unsigned v) { return PICK(rpc_outcome_names, v); }
