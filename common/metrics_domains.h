/* SPDX-License-Identifier: Apache-2.0
 * The closed label domains that only metrics use (contract sections 3.1, 3.4 to 3.8), in the form of
 * common/domain.h, and the list of every domain that a line of metrics.def may name. Entries are only appended:
 * their numbers are positions in the shared-memory cell array. No code, no state; any thread. */
#ifndef TN_METRICS_DOMAINS_H
#define TN_METRICS_DOMAINS_H

#include "common/domain.h"

/* X(NAME, text) */
#define TN_RING_LIST(X) X(LOG, log) X(TRACE, trace)
#define TN_PROCESS_LIST(X) X(DATAPLANE, dataplane) X(CONTROLPLANE, controlplane)
#define TN_CLEANUP_LIST(X) \
	X(LOCAL_BUFFER, local_buffer) X(REMOTE_BUFFER, remote_buffer) X(PINNED_BUFFER, pinned_buffer) X(BATCH, batch)

#define TN_RDMA_SLICE_LIST(X) \
	X(ENQUEUE, enqueue) X(POST_ATTEMPT, post_attempt) X(POST_ERROR, post_error) X(PATH_ERROR, path_error) \
	X(COMPLETION_SUCCESS, completion_success) X(COMPLETION_ERROR, completion_error) \
	X(LATE_COMPLETION, late_completion) X(SOFTWARE_TIMEOUT, software_timeout) X(CANCELED, canceled) \
	X(ABANDONED, abandoned)
#define TN_RDMA_CAUSE_LIST(X) X(ENDPOINT, endpoint) X(POST, post) X(COMPLETION, completion)
#define TN_RDMA_WC_LIST(X) \
	X(LOC_LEN, loc_len) X(LOC_QP_OP, loc_qp_op) X(LOC_PROT, loc_prot) X(WR_FLUSH, wr_flush) X(MW_BIND, mw_bind) \
	X(BAD_RESP, bad_resp) X(LOC_ACCESS, loc_access) X(REM_INV_REQ, rem_inv_req) X(REM_ACCESS, rem_access) \
	X(REM_OP, rem_op) X(RETRY_EXCEEDED, retry_exceeded) X(RNR_RETRY_EXCEEDED, rnr_retry_exceeded) \
	X(REM_ABORT, rem_abort) X(FATAL, fatal) X(GENERAL, general)
#define TN_RDMA_CQ_LIST(X) X(DATA, data) X(NOTIFICATION, notification)
#define TN_RDMA_DONE_LIST(X) X(SUCCESS, success) X(ERROR, error) X(FLUSHED, flushed) X(LATE, late)
#define TN_RDMA_ENDPOINT_LIST(X) \
	X(CONSTRUCTED, constructed) X(ACTIVE_READY, active_ready) X(PASSIVE_READY, passive_ready) \
	X(HANDSHAKE_FAILED, handshake_failed) X(RETIRED, retired) X(DESTROYED, destroyed) X(DESTROY_ERROR, destroy_error)
#define TN_RDMA_TRANSITION_LIST(X) \
	X(RESET_TO_INIT, reset_to_init) X(INIT_TO_RTR, init_to_rtr) X(RTR_TO_RTS, rtr_to_rts) X(ANY_TO_ERR, any_to_err) \
	X(ANY_TO_RESET, any_to_reset)
#define TN_RDMA_NOTE_LIST(X) \
	X(RECV_POSTED, recv_posted) X(RECV_DELIVERED, recv_delivered) X(SEND_POSTED, send_posted) \
	X(SEND_COMPLETED, send_completed) X(INVALID_PAYLOAD, invalid_payload) X(DROPPED_PAYLOAD, dropped_payload) \
	X(POST_ERROR, post_error) X(COMPLETION_ERROR, completion_error) X(CQ_ERROR, cq_error) X(UNKNOWN_QP, unknown_qp) \
	X(CHANNEL_DISABLED, channel_disabled)

/* The two framed transports, in the order of enum tn_transport: see tn_stream_kind(). */
#define TN_STREAM_LIST(X) X(HP_TCP, hp_tcp) X(TCP, tcp)
#define TN_STREAM_EVENT_LIST(X) \
	X(QUEUED, queued) X(ATTEMPT, attempt) X(CONNECT_OK, connect_ok) X(CONNECT_ERROR, connect_error) X(RETRY, retry) \
	X(RETRY_EXHAUSTED, retry_exhausted) X(TIMEOUT, timeout) X(PEER_CLOSED, peer_closed) X(COMPLETED, completed) \
	X(FAILED, failed) X(CANCELED, canceled)
#define TN_SIDE_LIST(X) X(CLIENT, client) X(SERVER, server)
#define TN_FRAME_ERROR_LIST(X) \
	X(INVALID_SIZE, invalid_size) X(MAGIC, magic) X(VERSION, version) X(RESERVED, reserved) X(OPCODE, opcode) \
	X(LENGTH, length) X(STATUS, status) X(REQUEST_ID_MISMATCH, request_id_mismatch) \
	X(COMMITTED_LENGTH_MISMATCH, committed_length_mismatch) X(TICKET, ticket) X(ADDRESS, address)

#define TN_SHM_MAPPING_LIST(X) \
	X(MAP, map) X(MAP_ERROR, map_error) X(CACHE_HIT, cache_hit) X(CACHE_MISS, cache_miss) X(UNMAP, unmap) \
	X(BACKING_OPEN_ERROR, backing_open_error) X(SIZE_MISMATCH, size_mismatch)
#define TN_SEGMENT_EVENT_LIST(X) \
	X(SNAPSHOT_PUBLISHED, snapshot_published) X(SNAPSHOT_MUTATED, snapshot_mutated) \
	X(REGISTRY_PUBLISH, registry_publish) X(REGISTRY_DELETE, registry_delete) X(REMOTE_FETCH, remote_fetch) \
	X(CACHE_HIT, cache_hit) X(CACHE_MISS, cache_miss) X(CACHE_RESET, cache_reset) \
	X(CACHE_INVALIDATE, cache_invalidate) X(GENERATION_ADVANCE, generation_advance)
#define TN_SELECTION_LIST(X) \
	X(POLICY_MISS, policy_miss) X(CANDIDATE_EMPTY, candidate_empty) X(CANDIDATE_UNAVAILABLE, candidate_unavailable) \
	X(HINT_REJECTED, hint_rejected) X(HINT_UNAVAILABLE, hint_unavailable) X(SELECTED, selected) X(FALLBACK, fallback) \
	X(EXHAUSTED, exhausted) X(METADATA_REFRESH, metadata_refresh)
#define TN_ADMISSION_LIST(X) \
	X(ADMIT, admit) X(REJECT, reject) X(DISPATCH, dispatch) X(DEFER, defer) X(DEADLINE_DROP, deadline_drop) \
	X(CANCEL, cancel)
#define TN_ADMISSION_END_LIST(X) X(DISPATCH, dispatch) X(DEADLINE_DROP, deadline_drop) X(CANCEL, cancel)

#define TN_CREDIT_PULL_LIST(X) \
	X(GRANTED, granted) X(RETRY, retry) X(SESSION_CHANGED, session_changed) X(UNSUPPORTED, unsupported) \
	X(REJECTED, rejected) X(RPC_ERROR, rpc_error) X(TIMEOUT, timeout)
#define TN_CREDIT_RESERVE_LIST(X) \
	X(RESERVED, reserved) X(INSUFFICIENT, insufficient) X(STALE, stale) X(ROLLED_BACK, rolled_back) X(RELEASED, released)
#define TN_CREDIT_RESOURCE_LIST(X) X(DATA_BYTES, data_bytes) X(REQUEST_SLOTS, request_slots)
#define TN_CREDIT_PEER_LIST(X) \
	X(NEGOTIATING, negotiating) X(LEGACY, legacy) X(ACTIVE, active) X(STALE, stale) X(FAILED, failed)
#define TN_CREDIT_ALLOC_LIST(X) \
	X(CREATED, created) X(REPLAYED, replayed) X(REJECTED, rejected) X(RECLAIMED, reclaimed) X(FENCED, fenced) \
	X(EXPIRED, expired)
#define TN_WINDOW_LIST(X) X(CONFIGURED, configured) X(EFFECTIVE, effective) X(CEILING, ceiling)
#define TN_WINDOW_MOVE_LIST(X) X(UP, up) X(DOWN, down) X(CEILING_DOWN, ceiling_down) X(CEILING_PROBE, ceiling_probe)

/* What became of a notice at the host of its receiver. */
#define TN_NOTE_EVENT_LIST(X) \
	X(DELIVERED, delivered) X(DROPPED_FULL, dropped_full) X(DROPPED_ORPHAN, dropped_orphan) X(DENIED, denied) \
	X(DUPLICATE, duplicate)

/* Listening sockets of the control plane and of the data plane, and why a connection to one was closed unheard. */
#define TN_DOOR_LIST(X) X(CONTROL, control) X(LINK, link) X(BUS, bus) X(HTTP, http)
#define TN_DP_DOOR_LIST(X) X(ATTACH, attach) X(LANE, lane)
#define TN_REFUSAL_LIST(X) \
	X(CROWDED, crowded) X(DESCRIPTORS, descriptors) X(STRANGER, stranger) X(SILENT, silent)

/* Domains of this file: X(NAME, list); the enum of each is TN_<NAME>_<VALUE> ... TN_<NAME>_CNT. */
#define TN_METRICS_OWN_DOMAIN_LIST(X) \
	X(RING) X(PROCESS) X(CLEANUP) X(RDMA_SLICE) X(RDMA_CAUSE) X(RDMA_WC) X(RDMA_CQ) X(RDMA_DONE) X(RDMA_ENDPOINT) \
	X(RDMA_TRANSITION) X(RDMA_NOTE) X(STREAM) X(STREAM_EVENT) X(SIDE) X(FRAME_ERROR) X(SHM_MAPPING) X(SEGMENT_EVENT) \
	X(SELECTION) X(ADMISSION) X(ADMISSION_END) X(CREDIT_PULL) X(CREDIT_RESERVE) X(CREDIT_RESOURCE) X(CREDIT_PEER) \
	X(CREDIT_ALLOC) X(WINDOW) X(WINDOW_MOVE) X(DOOR) X(DP_DOOR) X(REFUSAL) X(NOTE_EVENT)
#define TN_METRICS_SHARED_DOMAIN_LIST(X) \
	X(TRANSPORT) X(OP) X(MEMOP) X(OUTCOME) X(RESULT) X(PHASE) X(REASON) X(OWNER_KIND) X(WORKER_KIND) X(FORMAT) \
	X(RPC_METHOD) X(RPC_OUTCOME)

#define X(n, s) TN_RING_##n,
enum tn_ring { TN_RING_LIST(X) TN_RING_CNT };
#undef X
#define X(n, s) TN_PROCESS_##n,
enum tn_process { TN_PROCESS_LIST(X) TN_PROCESS_CNT };
#undef X
#define X(n, s) TN_CLEANUP_##n,
enum tn_cleanup { TN_CLEANUP_LIST(X) TN_CLEANUP_CNT };
#undef X
#define X(n, s) TN_RDMA_SLICE_##n,
enum tn_rdma_slice { TN_RDMA_SLICE_LIST(X) TN_RDMA_SLICE_CNT };
#undef X
#define X(n, s) TN_RDMA_CAUSE_##n,
enum tn_rdma_cause { TN_RDMA_CAUSE_LIST(X) TN_RDMA_CAUSE_CNT };
#undef X
#define X(n, s) TN_RDMA_WC_##n,
enum tn_rdma_wc { TN_RDMA_WC_LIST(X) TN_RDMA_WC_CNT };
#undef X
#define X(n, s) TN_RDMA_CQ_##n,
enum tn_rdma_cq { TN_RDMA_CQ_LIST(X) TN_RDMA_CQ_CNT };
#undef X
#define X(n, s) TN_RDMA_DONE_##n,
enum tn_rdma_done { TN_RDMA_DONE_LIST(X) TN_RDMA_DONE_CNT };
#undef X
#define X(n, s) TN_RDMA_ENDPOINT_##n,
enum tn_rdma_endpoint { TN_RDMA_ENDPOINT_LIST(X) TN_RDMA_ENDPOINT_CNT };
#undef X
#define X(n, s) TN_RDMA_TRANSITION_##n,
enum tn_rdma_transition { TN_RDMA_TRANSITION_LIST(X) TN_RDMA_TRANSITION_CNT };
#undef X
#define X(n, s) TN_RDMA_NOTE_##n,
enum tn_rdma_note { TN_RDMA_NOTE_LIST(X) TN_RDMA_NOTE_CNT };
#undef X
#define X(n, s) TN_STREAM_##n,
enum tn_stream { TN_STREAM_LIST(X) TN_STREAM_CNT };
#undef X
#define X(n, s) TN_STREAM_EVENT_##n,
enum tn_stream_event { TN_STREAM_EVENT_LIST(X) TN_STREAM_EVENT_CNT };
#undef X
#define X(n, s) TN_SIDE_##n,
enum tn_side { TN_SIDE_LIST(X) TN_SIDE_CNT };
#undef X
#define X(n, s) TN_FRAME_ERROR_##n,
enum tn_frame_error { TN_FRAME_ERROR_LIST(X) TN_FRAME_ERROR_CNT };
#undef X
#define X(n, s) TN_SHM_MAPPING_##n,
enum tn_shm_mapping { TN_SHM_MAPPING_LIST(X) TN_SHM_MAPPING_CNT };
#undef X
#define X(n, s) TN_SEGMENT_EVENT_##n,
enum tn_segment_event { TN_SEGMENT_EVENT_LIST(X) TN_SEGMENT_EVENT_CNT };
#undef X
#define X(n, s) TN_SELECTION_##n,
enum tn_selection { TN_SELECTION_LIST(X) TN_SELECTION_CNT };
#undef X
#define X(n, s) TN_ADMISSION_##n,
enum tn_admission { TN_ADMISSION_LIST(X) TN_ADMISSION_CNT };
#undef X
#define X(n, s) TN_ADMISSION_END_##n,
enum tn_admission_end { TN_ADMISSION_END_LIST(X) TN_ADMISSION_END_CNT };
#undef X
#define X(n, s) TN_CREDIT_PULL_##n,
enum tn_credit_pull { TN_CREDIT_PULL_LIST(X) TN_CREDIT_PULL_CNT };
#undef X
#define X(n, s) TN_CREDIT_RESERVE_##n,
enum tn_credit_reserve { TN_CREDIT_RESERVE_LIST(X) TN_CREDIT_RESERVE_CNT };
#undef X
#define X(n, s) TN_CREDIT_RESOURCE_##n,
enum tn_credit_resource { TN_CREDIT_RESOURCE_LIST(X) TN_CREDIT_RESOURCE_CNT };
#undef X
#define X(n, s) TN_CREDIT_PEER_##n,
enum tn_credit_peer { TN_CREDIT_PEER_LIST(X) TN_CREDIT_PEER_CNT };
#undef X
#define X(n, s) TN_CREDIT_ALLOC_##n,
enum tn_credit_alloc { TN_CREDIT_ALLOC_LIST(X) TN_CREDIT_ALLOC_CNT };
#undef X
#define X(n, s) TN_WINDOW_##n,
enum tn_window { TN_WINDOW_LIST(X) TN_WINDOW_CNT };
#undef X
#define X(n, s) TN_DOOR_##n,
enum tn_door { TN_DOOR_LIST(X) TN_DOOR_CNT };
#undef X
#define X(n, s) TN_DP_DOOR_##n,
enum tn_dp_door { TN_DP_DOOR_LIST(X) TN_DP_DOOR_CNT };
#undef X
#define X(n, s) TN_REFUSAL_##n,
enum tn_refusal { TN_REFUSAL_LIST(X) TN_REFUSAL_CNT };
#undef X
#define X(n, s) TN_WINDOW_MOVE_##n,
enum tn_window_move { TN_WINDOW_MOVE_LIST(X) TN_WINDOW_MOVE_CNT };
#undef X
#define X(n, s) TN_NOTE_EVENT_##n,
enum tn_note_event { TN_NOTE_EVENT_LIST(X) TN_NOTE_EVENT_CNT };
#undef X

/* Position of a framed transport in the STREAM domain; t is TN_TRANSPORT_HP_TCP or TN_TRANSPORT_TCP. */
TN_STATIC_ASSERT(TN_TRANSPORT_HP_TCP + 1 == TN_TRANSPORT_TCP, "stream kinds follow each other");
TN_INLINE unsigned tn_stream_kind(unsigned t) { return t - TN_TRANSPORT_HP_TCP; }

#endif
