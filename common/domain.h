/* SPDX-License-Identifier: Apache-2.0
 * The closed label domains of the observability contract, once, as data. Enums, names and metric labels all come
 * from these lists; the numbers are also the wire and shared-memory values, so entries are only ever appended. */
#ifndef TN_DOMAIN_H
#define TN_DOMAIN_H

#include "common/compiler.h"

#define TN_TRANSPORT_LIST(X) X(UNSPEC, unspec) X(RDMA, rdma) X(HP_TCP, hp_tcp) X(TCP, tcp) X(SHM, shm)
#define TN_OP_LIST(X) X(READ, read) X(WRITE, write)
#define TN_MEMOP_LIST(X) X(REGISTER, register) X(UNREGISTER, unregister)
#define TN_OUTCOME_LIST(X) X(COMPLETED, completed) X(FAILED, failed) X(TIMEOUT, timeout) X(CANCELED, canceled)
#define TN_RESULT_LIST(X) X(SUCCESS, success) X(FAILURE, failure)
#define TN_PHASE_LIST(X) \
	X(METADATA, metadata) X(ADMISSION, admission) X(SELECTION, selection) X(CONNECT, connect) X(REGISTER, register) \
	X(SUBMIT, submit) X(QUEUE, queue) X(POST, post) X(POLL, poll) X(COMPLETION, completion) X(RETRY, retry) \
	X(FAILOVER, failover) X(NOTIFY, notify) X(CLEANUP, cleanup) X(SHUTDOWN, shutdown)
#define TN_REASON_LIST(X) \
	X(TIMEOUT, timeout) X(UNAVAILABLE, unavailable) X(QUEUE_FULL, queue_full) X(RESOURCE_EXHAUSTED, resource_exhausted) \
	X(PROTOCOL, protocol) X(STALE_GENERATION, stale_generation) X(WC_ERROR, wc_error) X(CQ_ERROR, cq_error) \
	X(MR_ERROR, mr_error) X(PEER_CLOSED, peer_closed) X(CANCELED, canceled) X(INTERNAL, internal)
#define TN_OWNER_KIND_LIST(X) X(USER, user) X(STAGING_INTERNAL, staging_internal)
#define TN_PRIORITY_LIST(X) X(HIGH, high) X(MEDIUM, medium) X(LOW, low)
#define TN_INTENT_LIST(X) \
	X(UNSPECIFIED, unspecified) X(FOREGROUND_GET, foreground_get) X(BACKGROUND_PREFETCH, background_prefetch) \
	X(MIGRATION, migration) X(CHECKPOINT, checkpoint) X(WEIGHT_LOADING, weight_loading) X(STAGING, staging)
#define TN_WORKER_KIND_LIST(X) X(PROGRESS, progress) X(RDMA, rdma) X(HP_TCP, hp_tcp) X(TCP, tcp) X(SHM, shm) X(STAGING, staging)
#define TN_FORMAT_LIST(X) X(TEXT, text) X(OPENMETRICS, openmetrics) X(JSON, json)
#define TN_RPC_METHOD_LIST(X) \
	X(HELLO, hello) X(GET_SEGMENT, get_segment) X(PUBLISH_SEGMENT, publish_segment) X(WITHDRAW_SEGMENT, withdraw_segment) \
	X(SEGMENT_UPDATED, segment_updated) X(BOOTSTRAP_RDMA, bootstrap_rdma) X(ISSUE_TICKET, issue_ticket) \
	X(PULL_RECEIVER_CREDIT, pull_receiver_credit) X(NOTIFY, notify) X(PROBE, probe) X(DELEGATE, delegate) X(OTHER, other)
#define TN_RPC_OUTCOME_LIST(X) \
	X(SUCCESS, success) X(CONNECT_ERROR, connect_error) X(TRANSPORT_ERROR, transport_error) X(TIMEOUT, timeout) X(CANCELED, canceled)

#define X(n, s) TN_TRANSPORT_##n,
enum tn_transport { TN_TRANSPORT_LIST(X) TN_TRANSPORT_CNT };
#undef X
#define X(n, s) TN_OP_##n,
enum tn_op { TN_OP_LIST(X) TN_OP_CNT };
#undef X
#define X(n, s) TN_MEMOP_##n,
enum tn_memop { TN_MEMOP_LIST(X) TN_MEMOP_CNT };
#undef X
#define X(n, s) TN_OUTCOME_##n,
enum tn_outcome { TN_OUTCOME_LIST(X) TN_OUTCOME_CNT };
#undef X
#define X(n, s) TN_RESULT_##n,
enum tn_result { TN_RESULT_LIST(X) TN_RESULT_CNT };
#undef X
#define X(n, s) TN_PHASE_##n,
enum tn_phase { TN_PHASE_LIST(X) TN_PHASE_CNT };
#undef X
#define X(n, s) TN_REASON_##n,
enum tn_reason { TN_REASON_LIST(X) TN_REASON_CNT };
#undef X
#define X(n, s) TN_OWNER_KIND_##n,
enum tn_owner_kind { TN_OWNER_KIND_LIST(X) TN_OWNER_KIND_CNT };
#undef X
#define X(n, s) TN_PRIORITY_##n,
enum tn_priority { TN_PRIORITY_LIST(X) TN_PRIORITY_CNT };
#undef X
#define X(n, s) TN_INTENT_##n,
enum tn_intent { TN_INTENT_LIST(X) TN_INTENT_CNT };
#undef X
#define X(n, s) TN_WORKER_KIND_##n,
enum tn_worker_kind { TN_WORKER_KIND_LIST(X) TN_WORKER_KIND_CNT };
#undef X
#define X(n, s) TN_FORMAT_##n,
enum tn_format { TN_FORMAT_LIST(X) TN_FORMAT_CNT };
#undef X
#define X(n, s) TN_RPC_METHOD_##n,
enum tn_rpc_method { TN_RPC_METHOD_LIST(X) TN_RPC_METHOD_CNT };
#undef X
#define X(n, s) TN_RPC_OUTCOME_##n,
enum tn_rpc_outcome { TN_RPC_OUTCOME_LIST(X) TN_RPC_OUTCOME_CNT };
#undef X

/* Lower-case label text of a value; "invalid" when out of range (never NULL). */
const char *tn_transport_name(unsigned v);
const char *tn_op_name(unsigned v);
const char *tn_memop_name(unsigned v);
const char *tn_outcome_name(unsigned v);
const char *tn_result_name(unsigned v);
const char *tn_phase_name(unsigned v);
const char *tn_reason_name(unsigned v);
const char *tn_owner_kind_name(unsigned v);
const char *tn_priority_name(unsigned v);
const char *tn_intent_name(unsigned v);
const char *tn_worker_kind_name(unsigned v);
const char *tn_format_name(unsigned v);
const char *tn_rpc_method_name(unsigned v);
const char *tn_rpc_outcome_name(unsigned v);

#endif
