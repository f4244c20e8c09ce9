/* SPDX-License-Identifier: Apache-2.0
 * Why a transport is not used for a target: the one list of reasons, with the words that `explain`, `request show` and
 * `trace` say, and how an event record carries one reason for each transport. Pure; any thread. */
#ifndef TN_REJECT_H
#define TN_REJECT_H

#include <stdint.h>

#include "common/domain.h"

/* X(REASON, name, meaning). From NO_ENDPOINT on they may pass by themselves. */
#define TN_REJECT_LIST(X) \
	X(NONE, none, "") \
	X(NOT_BUILT, not_built, "not in this build") \
	X(DISABLED, disabled, "switched off") \
	X(TARGET, wrong_target, "not for such a target") \
	X(POLICY, policy, "the policy does not name it") \
	X(HINT, hint, "the request asks for another one") \
	X(DOWN, down, "it does not work on this host; see the data plane's log") \
	X(OFF, off, "an operator switched it off (tentctl transport enable)") \
	X(BUDGET, failovers, "the request changed its transport as often as it may") \
	X(NO_ENDPOINT, no_endpoint, "the peer advertises no address for it") \
	X(COOLING, cooling, "it failed too often, and is tried again later") \
	X(PROBATION, probation, "it failed too often, and another request tries it now") \
	X(FAILED, failed, "the request failed on it")

const char *tn_reject_name(unsigned reason);    /* "invalid" beyond the list */
const char *tn_reject_meaning(unsigned reason); /* "" beyond the list */

/* Reasons by transport in one word, a byte for each; kinds that are not rejected are 0. */
uint64_t tn_reject_pack(const uint8_t by_kind[static TN_TRANSPORT_CNT]);
#define TN_REJECT_TEXT 160u
/* "rdma not_built, tcp no_endpoint": the kinds that are rejected. Any word is taken. Returns out. */
char *tn_reject_text(uint64_t packed, char out[static TN_REJECT_TEXT]);

#endif
