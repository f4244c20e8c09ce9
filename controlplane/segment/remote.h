/* SPDX-License-Identifier: Apache-2.0
 * Cached descriptors of peers' segments: single flight per segment, negative answers with growing back-off, bounded
 * number, dropped when the owner says so, restarts, or a reader found them stale. Control-plane thread. */
#ifndef CP_SEGMENT_REMOTE_H
#define CP_SEGMENT_REMOTE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/ids.h"
#include "common/status.h"

struct cp_node;
struct cp_remote_cache;

struct cp_remote_view {
	tn_status status;          /* OK: descriptor is there; PENDING: being fetched; else the negative answer */
	const json_t *segment;     /* SEG, borrowed */
	struct tn_id128 session;   /* of the owner's data plane */
	uint64_t generation;
	const char *detail;
	uint64_t retry_ns;         /* negative: not asked again before */
};

struct cp_remote_cache *cp_remote_new(uint32_t entries_max);
void cp_remote_free(struct cp_remote_cache *c);

/* Look at (peer, name); starts a fetch when it is unknown, older than (stale_session, stale_generation), or a negative
 * answer whose back-off passed. stale_generation 0 = take what is cached. */
void cp_remote_get(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer, const char *name,
		   const struct tn_id128 *stale_session, uint64_t stale_generation, struct cp_remote_view *view_out);
/* Look without asking anybody; false: nothing is known of it. */
bool cp_remote_peek(struct cp_remote_cache *c, uint32_t peer, const char *name, struct cp_remote_view *view_out);
/* The owner says it changed: drop the cached one. generation: of the one that is there now, 0: none. */
void cp_remote_invalidate(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer, const char *name,
			  uint64_t generation);
/* The peer's data plane restarted: all of its descriptors with another session are stale. */
void cp_remote_invalidate_session(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer,
				  const struct tn_id128 *session);
/* The peer is back: its refusals are no longer remembered, and descriptors of another session are stale. */
void cp_remote_forgive(struct cp_node *node, struct cp_remote_cache *c, uint32_t peer, const struct tn_id128 *session);
size_t cp_remote_cnt(const struct cp_remote_cache *c);

#endif
