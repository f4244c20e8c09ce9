/* SPDX-License-Identifier: Apache-2.0
 * Prints size and field offsets of every public struct and the value of every public constant, for comparison with
 * libtent.layout. A field may be added behind the others; nothing printed today may change. */
#include <stddef.h>
#include <stdio.h>
#include <tent/tent.h>

#define STRUCT(s) printf("%s %zu\n", #s, sizeof(s))
#define FIELD(s, f) printf("%s.%s %zu\n", #s, #f, offsetof(s, f))
#define VALUE(v) printf("%s %lld\n", #v, (long long)(v))

static void options(void)
{
	STRUCT(tent_status);
	STRUCT(tent_state);
	STRUCT(tent_options);
	FIELD(tent_options, size);
	FIELD(tent_options, runtime_dir);
	FIELD(tent_options, app_name);
	FIELD(tent_options, timeout_ns);
	FIELD(tent_options, recover_timeout_ns);
	STRUCT(tent_info);
	FIELD(tent_info, size);
	FIELD(tent_info, state);
	FIELD(tent_info, session);
	FIELD(tent_info, reattach_count);
	FIELD(tent_info, default_deadline_ns);
	FIELD(tent_info, max_deadline_ns);
	FIELD(tent_info, max_request_bytes);
	STRUCT(tent_buffer);
	FIELD(tent_buffer, memory);
	FIELD(tent_buffer, offset);
	FIELD(tent_buffer, bytes);
	FIELD(tent_buffer, rights);
	FIELD(tent_buffer, reserved);
	STRUCT(tent_access);
	FIELD(tent_access, size);
	FIELD(tent_access, who);
	FIELD(tent_access, peers);
	FIELD(tent_access, peer_count);
	STRUCT(tent_qp_options);
	FIELD(tent_qp_options, size);
	FIELD(tent_qp_options, depth);
	FIELD(tent_qp_options, reserved);
}

static void traffic(void)
{
	STRUCT(tent_request);
	FIELD(tent_request, opcode);
	FIELD(tent_request, priority);
	FIELD(tent_request, intent);
	FIELD(tent_request, hint);
	FIELD(tent_request, flags);
	FIELD(tent_request, memory);
	FIELD(tent_request, memory_offset);
	FIELD(tent_request, segment);
	FIELD(tent_request, segment_offset);
	FIELD(tent_request, bytes);
	FIELD(tent_request, user_data);
	FIELD(tent_request, deadline_ns);
	FIELD(tent_request, batch);
	FIELD(tent_request, policy);
	FIELD(tent_request, reserved0);
	FIELD(tent_request, trace_id);
	FIELD(tent_request, reserved);
	STRUCT(tent_opcode);
	STRUCT(tent_priority);
	STRUCT(tent_intent);
	STRUCT(tent_transport);
	STRUCT(tent_outcome);
	STRUCT(tent_completion_kind);
	STRUCT(tent_note_kind);
	STRUCT(tent_completion);
	FIELD(tent_completion, user_data);
	FIELD(tent_completion, bytes);
	FIELD(tent_completion, request_id);
	FIELD(tent_completion, latency_ns);
	FIELD(tent_completion, status);
	FIELD(tent_completion, kind);
	FIELD(tent_completion, outcome);
	FIELD(tent_completion, transport);
	FIELD(tent_completion, opcode);
	FIELD(tent_completion, memory_busy);
	FIELD(tent_completion, attempts);
	FIELD(tent_completion, phase);
	FIELD(tent_completion, reason);
	FIELD(tent_completion, reserved);
	STRUCT(tent_note);
	FIELD(tent_note, size);
	FIELD(tent_note, seq);
	FIELD(tent_note, bytes);
	FIELD(tent_note, kind);
	FIELD(tent_note, status);
	FIELD(tent_note, from);
	FIELD(tent_note, segment);
	FIELD(tent_note, payload);
}

static void statuses(void)
{
	VALUE(TENT_OK);
	VALUE(TENT_AGAIN);
	VALUE(TENT_PENDING);
	VALUE(TENT_INVALID);
	VALUE(TENT_RANGE);
	VALUE(TENT_PERMISSION);
	VALUE(TENT_STALE);
	VALUE(TENT_NOT_FOUND);
	VALUE(TENT_EXISTS);
	VALUE(TENT_TOO_BIG);
	VALUE(TENT_TIMEOUT);
	VALUE(TENT_CANCELED);
	VALUE(TENT_UNSUPPORTED);
	VALUE(TENT_AMBIGUOUS);
	VALUE(TENT_LIMIT);
	VALUE(TENT_NO_MEMORY);
	VALUE(TENT_BUSY);
	VALUE(TENT_FAULT);
	VALUE(TENT_PATH_DOWN);
	VALUE(TENT_PATH_PROTOCOL);
	VALUE(TENT_PATH_TIMEOUT);
	VALUE(TENT_PEER_UNKNOWN);
	VALUE(TENT_PEER_DOWN);
	VALUE(TENT_PEER_STALE);
	VALUE(TENT_PEER_DENIED);
	VALUE(TENT_PEER_ADDRESS);
	VALUE(TENT_CLIENT_BROKEN);
	VALUE(TENT_CLIENT_GONE);
	VALUE(TENT_FORKED);
	VALUE(TENT_CLOSED);
	VALUE(TENT_DATAPLANE_DOWN);
	VALUE(TENT_CONTROLPLANE_DOWN);
	VALUE(TENT_ABI_MISMATCH);
	VALUE(TENT_SYSTEM);
	VALUE(TENT_CONFIG);
	VALUE(TENT_INTERNAL);
}

static void constants(void)
{
	VALUE(TENT_API_VERSION);
	VALUE(TENT_STATE_ATTACHED);
	VALUE(TENT_STATE_RECOVERING);
	VALUE(TENT_STATE_DEAD);
	VALUE(TENT_RIGHT_LOCAL);
	VALUE(TENT_RIGHT_REMOTE_READ);
	VALUE(TENT_RIGHT_REMOTE_WRITE);
	VALUE(TENT_RIGHT_LOCAL_READ);
	VALUE(TENT_MEMORY_HUGETLB);
	VALUE(TENT_ACCESS_SAME_UID);
	VALUE(TENT_ACCESS_LOCAL_ALL);
	VALUE(TENT_ACCESS_PEERS);
	VALUE(TENT_READ);
	VALUE(TENT_WRITE);
	VALUE(TENT_PRIORITY_HIGH);
	VALUE(TENT_PRIORITY_MEDIUM);
	VALUE(TENT_PRIORITY_LOW);
	VALUE(TENT_INTENT_UNSPECIFIED);
	VALUE(TENT_INTENT_FOREGROUND_GET);
	VALUE(TENT_INTENT_BACKGROUND_PREFETCH);
	VALUE(TENT_INTENT_MIGRATION);
	VALUE(TENT_INTENT_CHECKPOINT);
	VALUE(TENT_INTENT_WEIGHT_LOADING);
	VALUE(TENT_INTENT_STAGING);
	VALUE(TENT_TRANSPORT_ANY);
	VALUE(TENT_TRANSPORT_RDMA);
	VALUE(TENT_TRANSPORT_HP_TCP);
	VALUE(TENT_TRANSPORT_TCP);
	VALUE(TENT_TRANSPORT_SHM);
	VALUE(TENT_OUTCOME_COMPLETED);
	VALUE(TENT_OUTCOME_FAILED);
	VALUE(TENT_OUTCOME_TIMEOUT);
	VALUE(TENT_OUTCOME_CANCELED);
	VALUE(TENT_REQUEST_AT_MOST_ONCE);
	VALUE(TENT_COMPLETION_REQUEST);
	VALUE(TENT_COMPLETION_NOTIFY);
	VALUE(TENT_COMPLETION_RELEASE);
	VALUE(TENT_NOTE_DATA);
	VALUE(TENT_NOTE_SEGMENT_LOST);
	VALUE(TENT_NOTE_MAX);
}

int main(void)
{
	options();
	traffic();
	statuses();
	constants();
	return 0;
}
