/* SPDX-License-Identifier: Apache-2.0
 * Segments from both sides: published here (the recipe is kept, to publish again after a restart) and opened from
 * somewhere. Context lock, except what submitting threads read: see struct lt_object. */
#ifndef LT_SEGMENT_H
#define LT_SEGMENT_H

#include "dataplane/libtent/memory.h"

struct tent_published {
	struct lt_object obj;
	char name[TN_NAME_MAX];
	struct tn_id128 publication; /* tells the readers that recovery brings back the same memory */
	struct kept_note *lost_note; /* in the inbox, not taken yet; or NULL */
	uint32_t access, peer_cnt, buffer_cnt;
	char peers[SHR_SEGMENT_PEERS_MAX][TN_NAME_MAX];
	tent_buffer buffers[SHR_SEGMENT_BUFFERS_MAX]; /* bytes and rights filled in */
};

struct tent_segment {
	struct lt_object obj;
	char ref[SHR_SEGMENT_REF_MAX + 6];
	tn_a64 bytes;   /* of the segment now; may change when it is opened again */
	tn_a32 rights;  /* SHR_RIGHT_REMOTE_* that we were given */
	struct tn_id128 publication; /* context lock */
	tn_a64 republished_ns;       /* when we learned that it is another publication now; 0 = never */
};

/* The PUBLISH call and the OPEN call; they live as long as the object. TN_OK, or the status of a memory that is gone:
 * then there is nothing to call. */
tn_status lt_published_call(const tent_published *pub, uint64_t deadline_ns, struct lt_call *call_out);
void lt_segment_open_call(const tent_segment *seg, uint64_t deadline_ns, struct lt_call *call_out);
/* The publication is over without a word of ours: `why`. Its context gets a notice of that. Context lock held. */
void lt_published_lose(tent_published *pub, tn_status why);
/* Keeper: the data plane says that one is over. Context lock held. */
void lt_published_lost(tent_context *ctx, const struct shr_msg *m);
/* Keeps what a good OPEN reply says besides the id; returns the id. */
uint64_t lt_segment_take_reply(tent_segment *seg, const struct lt_reply *reply);

#endif
