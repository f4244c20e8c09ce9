/* SPDX-License-Identifier: Apache-2.0
 * What a person may know of one live request: filled by its worker for DP_CMD_INSPECT, read by the control thread when the
 * command is acknowledged. Numbers and enums only; no address, offset or name. */
#ifndef DP_INSPECT_H
#define DP_INSPECT_H

#include "dataplane/request/request.h"

struct dp_inspect {
	/* the request */
	uint64_t request_id, batch_id, trace_hi, trace_lo;
	uint64_t bytes, age_ns, left_ns;        /* since it was submitted; to its deadline */
	uint8_t opcode /* enum shr_op */, state /* enum dp_request_state */, phase /* enum tn_phase */;
	uint8_t priority;
	/* its owner; a NOTIFY has none, and owner_id is 0 */
	uint64_t owner_id, owner_bytes;
	uint32_t owner_requests;                /* not yet terminal */
	uint32_t peer_index;                    /* DP_PEER_SELF: this host */
	uint8_t owner_state, wait;              /* enums dp_owner_state, dp_wait */
	uint64_t wait_ns;                       /* until the wait ends by itself; UINT64_MAX: it is woken */
	uint8_t attempts, failovers;
	uint8_t transport;                      /* enum tn_transport: of the attempt, else of the last one */
	uint8_t rejected[TN_TRANSPORT_CNT];     /* enum dp_reject of each kind */
	/* the attempt that runs; attempt_id is 0 when there is none */
	uint64_t attempt_id, attempt_ns, moved_bytes;
	uint8_t attempt_state;                  /* enum dp_attempt_state */
	/* why the last attempt failed; TN_OK: none did */
	tn_status last_status;
	uint8_t last_phase, last_reason;
};

struct dp_worker;

/* Worker thread. */
void dp_inspect_fill(const struct dp_worker *w, const struct dp_request *r, struct dp_inspect *out);

#endif
