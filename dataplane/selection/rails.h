/* SPDX-License-Identifier: Apache-2.0
 * The rails of one worker (rail.h), by target and transport: whom they let through, what attempts and probes tell of
 * them, and what people may see of them. Nobody looks while all are up. One worker; dp_rails_look() any thread. */
#ifndef DP_SELECTION_RAILS_H
#define DP_SELECTION_RAILS_H

#include "common/atomic.h"
#include "common/config.h"
#include "common/rand.h"
#include "dataplane/selection/rail.h"
#include "dataplane/selection/reject.h"
#include "dataplane/transport/transport.h"

/* One rail, and its state and until_ns as the control thread may read them. */
struct dp_rail_slot { struct dp_rail rail; tn_a64 shown_until_ns; tn_a32 shown; };

struct dp_rails {
	struct dp_rail_slot (*by_target)[TN_TRANSPORT_CNT]; /* peer index + 1; row 0 is this host */
	uint32_t row_cnt;
	uint32_t sick_cnt; /* rails that are not up */
	struct dp_rail_cfg cfg;
	uint64_t probe_ns; /* how long a probe may take */
	struct tn_rand *rand;
};

/* `peers`: how many peer indices there are. `rand` is borrowed. NO_MEMORY. */
tn_status dp_rails_init(struct dp_rails *rs, uint32_t peers, struct tn_rand *rand);
void dp_rails_destroy(struct dp_rails *rs); /* accepts a zeroed object */
/* Where failures count no more, all come up: who waits for one should ask again. */
void dp_rails_tune(struct dp_rails *rs, const struct tn_config *cfg, uint64_t now_ns);

/* Would it let an attempt through now? Changes nothing. */
bool dp_rails_open(const struct dp_rails *rs, unsigned kind, uint32_t peer_index, uint64_t now_ns);
/* NONE: take it. COOLING, PROBATION: not now, and *again_ns is lowered to when to ask again (UINT64_MAX: when something
 * changes). Starts a probe when it is time for one. */
enum dp_reject dp_rails_ask(struct dp_rails *rs, struct dp_transport *t, uint32_t peer_index, uint64_t now_ns,
			    uint64_t *again_ns);
/* What follows returns true when somebody who waits for the rail should ask again. */
/* An attempt of `start_ns` ended, moved bytes (TN_OK), or was not accepted (TN_AGAIN). */
bool dp_rails_ended(struct dp_rails *rs, unsigned kind, uint32_t peer_index, tn_status status, uint64_t start_ns,
		    uint64_t now_ns);
bool dp_rails_probed(struct dp_rails *rs, unsigned kind, uint32_t peer_index, bool ok, uint64_t now_ns);
/* The peer restarted, moved or came back. */
bool dp_rails_renewed(struct dp_rails *rs, uint32_t peer_index, uint64_t now_ns);

/* For people: the state, and *until_ns_out = what it waits for. */
enum dp_rail_state dp_rails_look(const struct dp_rails *rs, unsigned kind, uint32_t peer_index, uint64_t *until_ns_out);

#endif
