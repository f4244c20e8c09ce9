/* SPDX-License-Identifier: Apache-2.0
 * One worker's own tables of memories, segments (with their registrations), remotes and peers: pointers to the control
 * thread's immutable objects, looked up by handle, and how much of this worker's work uses each. An object that is
 * being removed is not found any more, but its use count lives on until it is quiesced. One worker; a lookup touches
 * nothing shared. */
#ifndef DP_SEGMENT_VIEW_H
#define DP_SEGMENT_VIEW_H

#include "common/config.h"
#include "common/map_u64.h"
#include "dataplane/segment/table.h"

/* `gone`: removal asked for; the lookup says NULL. `users`: requests (memory, remote), local copies (segment). */
struct dp_memory_slot { const struct dp_memory *obj; uint32_t users; bool gone; };
struct dp_segment_slot { const struct dp_segment *obj; uint32_t users; bool gone; };
/* asked_ns: when a refresh was asked for; 0 = not since the last change. republished_ns: when the handle came to mean
 * another publication, that is other memory; 0 = never. */
struct dp_remote_slot { const struct dp_remote *obj; uint32_t users; bool gone; uint64_t asked_ns, republished_ns; };
struct dp_view_peer { const struct dp_peer *obj; uint64_t asked_ns; };

struct dp_view {
	struct dp_memory_slot *memories;
	struct dp_segment_slot *segments;
	struct dp_remote_slot *remotes;
	struct dp_view_peer *peers; /* peer_cap + 1 rows, as DP_PEER_SELF says */
	uint32_t memory_cap, segment_cap, remote_cap, peer_cap;
	uint32_t memory_top, remote_top, peer_top; /* one above the highest slot ever used; of peers, row */
	struct tn_map_u64 registrations; /* registration -> index of the segment slot << 8 | buffer index */
};

/* Tables sized by the limits of the config; pages are touched when used. TN_NO_MEMORY. */
tn_status dp_view_init(struct dp_view *v, const struct tn_config *cfg, uint64_t map_seed);
void dp_view_destroy(struct dp_view *v); /* accepts a zeroed object */

/* TN_LIMIT when the index is beyond the table, TN_EXISTS when the slot holds another living object. */
tn_status dp_view_memory_add(struct dp_view *v, const struct dp_memory *m);
tn_status dp_view_segment_add(struct dp_view *v, const struct dp_segment *s);
/* Adds or replaces; *old_out = what was there (NULL when nothing). */
tn_status dp_view_remote_set(struct dp_view *v, const struct dp_remote *r, uint64_t now_ns,
			     const struct dp_remote **old_out);
tn_status dp_view_peer_set(struct dp_view *v, const struct dp_peer *p);

/* Stop finding it. False when the handle is not (or no longer) in the table. */
bool dp_view_memory_hide(struct dp_view *v, tn_handle h);
bool dp_view_segment_hide(struct dp_view *v, tn_handle h); /* also its registrations */
bool dp_view_remote_hide(struct dp_view *v, tn_handle h);
/* Forget it; only when hidden and no longer used. */
void dp_view_memory_forget(struct dp_view *v, tn_handle h);
void dp_view_segment_forget(struct dp_view *v, tn_handle h);
void dp_view_remote_forget(struct dp_view *v, tn_handle h);

/* The slot of a handle of this generation, hidden or not; NULL when stale. */
struct dp_memory_slot *dp_view_memory_slot(const struct dp_view *v, tn_handle h);
struct dp_segment_slot *dp_view_segment_slot(const struct dp_view *v, tn_handle h);
struct dp_remote_slot *dp_view_remote_slot(const struct dp_view *v, tn_handle h);

/* The object, or NULL when stale or hidden. */
TN_INLINE const struct dp_memory *dp_view_memory(const struct dp_view *v, tn_handle h)
{
	const struct dp_memory_slot *s = dp_view_memory_slot(v, h);
	return s && !s->gone ? s->obj : NULL;
}
TN_INLINE const struct dp_segment *dp_view_segment(const struct dp_view *v, tn_handle h)
{
	const struct dp_segment_slot *s = dp_view_segment_slot(v, h);
	return s && !s->gone ? s->obj : NULL;
}
TN_INLINE const struct dp_remote *dp_view_remote(const struct dp_view *v, tn_handle h)
{
	const struct dp_remote_slot *s = dp_view_remote_slot(v, h);
	return s && !s->gone ? s->obj : NULL;
}
/* NULL: beyond the table. */
TN_INLINE struct dp_view_peer *dp_view_peer_slot(const struct dp_view *v, uint32_t index)
{
	return index + 1u <= v->peer_cap ? &v->peers[index + 1u] : NULL;
}
TN_INLINE const struct dp_peer *dp_view_peer(const struct dp_view *v, uint32_t index)
{
	const struct dp_view_peer *s = dp_view_peer_slot(v, index);
	return s ? s->obj : NULL;
}
const struct dp_buffer *dp_view_registration(const struct dp_view *v, uint64_t registration,
					     const struct dp_segment **segment_out);

/* Index of the buffer that holds segment offset `off`; UINT32_MAX when none does. Buffers lie in ascending order. */
uint32_t dp_remote_buffer_at(const struct dp_remote *r, uint64_t off);
uint32_t dp_segment_buffer_at(const struct dp_segment *s, uint64_t off);

#endif
