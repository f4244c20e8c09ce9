/* SPDX-License-Identifier: Apache-2.0
 * How the way to one peer looks to one worker, for people: what a transport with connections tells the control thread.
 * A copy of words that the worker keeps for this purpose; no address is in it, the control thread knows those. */
#ifndef DP_TRANSPORT_PATH_INFO_H
#define DP_TRANSPORT_PATH_INFO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "dataplane/segment/table.h"

struct dp_path_info {
	bool known;                  /* the worker was told of the peer's endpoints, session and ticket */
	uint32_t lanes, opening;     /* data lanes that are ready; all lanes on their way */
	bool control;                /* the control lane is ready */
	bool hold;                   /* no connection before a newer session or ticket is there */
	uint8_t seen[16];            /* why PEER_ADDRESS: where our lanes come from as the peer sees it, IPv4 as mapped */
	tn_status why;               /* of the last refusal or broken round; OK = none yet */
	uint32_t fail_cnt;           /* connections that failed in a row */
	uint64_t next_try_ns;        /* no new connection before */
	uint64_t since_ns;           /* when lanes came up, or when the last one went; 0 = never any */
	struct {
		uint64_t tried_ns;   /* when its last outcome was known; 0 = not tried */
		tn_status status;    /* of that outcome */
		int os_error;        /* errno behind it; 0 = none */
	} endpoints[DP_ENDPOINTS_MAX];
};

#endif
