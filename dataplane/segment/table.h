/* SPDX-License-Identifier: Apache-2.0
 * The objects that requests point at: client memory, local segments, remote descriptors, peers. The control thread
 * makes them, hands a reference to every worker (apply.h) and frees them after every worker acknowledged removal.
 * They are immutable while any worker can see them: a change is a new object with the same handle. Each worker keeps
 * its own tables of pointers, so a lookup touches nothing shared. */
#ifndef DP_SEGMENT_TABLE_H
#define DP_SEGMENT_TABLE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "common/domain.h"
#include "common/ids.h"
#include "shm-ring/abi.h"

struct dp_stage_area;

#define DP_ENDPOINTS_MAX 8u
#define DP_CLIENTS_MAX 4096u /* a client's id modulo this is its index, which no two living clients share */
#define DP_PEERS_MAX 1024u /* names of peers that one process ever hears of; tables by peer index have a row more */
/* This host among the peers: the index of what lives here, and of the lanes to ourselves. Tables by peer index keep it in
 * row 0 and peer i in row i + 1. */
#define DP_PEER_SELF UINT32_MAX

struct dp_memory {
	tn_handle handle;
	uint32_t client_id;
	uint32_t rights; /* SHR_RIGHT_* */
	uint8_t *base;   /* mapped for writing only with one of SHR_RIGHT_WRITING; sealed against shrinking. NULL: imported, only
	                  * the application can reach it */
	uint64_t bytes;
	tn_handle staging;           /* imported: the client's staging buffers, which outlive it; else 0 */
	struct dp_stage_area *areas; /* staging buffers: one per worker, each that worker's alone; else NULL */
};

/* One buffer of a segment as its owner's data plane sees it. */
struct dp_buffer {
	uint64_t registration; /* on the wire; random namespace of this incarnation + sequence; never 0 */
	uint8_t *base;
	uint64_t bytes;
	uint64_t segment_off;  /* where it starts within the segment */
	uint32_t rights;       /* REMOTE_READ | REMOTE_WRITE */
	tn_handle memory;
};

/* A segment published by a client of this data plane. */
struct dp_segment {
	tn_handle handle;
	uint32_t client_id;
	uint32_t owner_uid;
	uint64_t generation;   /* counter of this incarnation; (session, generation) names the version */
	struct tn_id128 publication; /* the same memory of the same publisher, over restarts of the data plane */
	uint64_t bytes;
	uint32_t access;       /* enum shr_access bits */
	uint32_t peer_cnt;     /* 0 with PEERS = every allow-listed peer */
	char name[TN_NAME_MAX];
	char (*peers)[TN_NAME_MAX];
	uint32_t buffer_cnt;
	struct dp_buffer buffers[];
};

/* Where lanes of one transport kind reach a peer, tried in order. */
struct dp_endpoints { uint32_t cnt; struct sockaddr_storage at[DP_ENDPOINTS_MAX]; };

/* Another data plane, or this one (DP_PEER_SELF). `index` is stable for the life of this process. */
struct dp_peer {
	uint32_t index;
	struct tn_peer_id id;
	struct tn_id128 session;  /* zero: not known yet */
	struct tn_id128 ticket;   /* admits our lanes at `session`; secret */
	uint32_t frame_bytes;     /* largest frame the peer accepts */
	struct dp_endpoints of[TN_TRANSPORT_CNT]; /* by kind */
	char name[TN_NAME_MAX];
};

TN_INLINE bool dp_endpoints_eq(const struct dp_endpoints *a, const struct dp_endpoints *b)
{
	return a->cnt == b->cnt && memcmp(a->at, b->at, a->cnt * sizeof a->at[0]) == 0;
}

TN_INLINE bool dp_peer_same_endpoints(const struct dp_peer *a, const struct dp_peer *b)
{
	for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++)
		if (!dp_endpoints_eq(&a->of[kind], &b->of[kind]))
			return false;
	return true;
}

struct dp_remote_buffer { uint64_t registration, bytes, segment_off; uint32_t rights, reserved; };

/* An opened segment. local: it lives in this data plane and `segment` is its handle in the worker's segment table;
 * otherwise peer_index and the peer's session and generation say which version the registrations belong to. The registrations
 * of a local one are our own, for lanes to ourselves. */
struct dp_remote {
	tn_handle handle;
	uint32_t client_id;
	bool local;
	bool lost;              /* withdrawn or unreachable for good: requests fail with lost_status */
	tn_status lost_status;
	tn_handle segment;
	uint32_t peer_index;
	struct tn_id128 session;
	uint64_t generation;
	struct tn_id128 publication;
	uint64_t bytes;
	char ref[SHR_SEGMENT_REF_MAX + 6]; /* for the control thread's refresh; never logged by workers */
	uint32_t buffer_cnt;
	struct dp_remote_buffer buffers[];
};

#endif
