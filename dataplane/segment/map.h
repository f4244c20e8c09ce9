/* SPDX-License-Identifier: Apache-2.0
 * Client memory: takes a client's descriptor, makes it safe (sealed against shrinking by us), maps it, hands it to the
 * workers, and unmaps it when they have let go. The calls that may take long run in the slow pool. Control thread. */
#ifndef DP_SEGMENT_MAP_H
#define DP_SEGMENT_MAP_H

#include <sys/types.h>

#include "dataplane/ingress/client.h"
#include "dataplane/reap.h"
#include "dataplane/segment/table.h"

/* What to map, and what came of it. dp_map_run() is a pure step over one descriptor: it touches nothing else. */
struct dp_map_req {
	int fd;                 /* in; stays the caller's */
	uint64_t offset, bytes; /* in; offset a multiple of SHR_PAGE, bytes > 0, no overflow */
	bool write;             /* in: for writing, too; else the mapping is read-only, and so may the object be */
	uint8_t *base;          /* out, on TN_OK: first byte; left out of core dumps */
	uint64_t map_bytes;     /* out: what to unmap */
	uint64_t filled_bytes;  /* out: how far its pages are in our page table; map_bytes: all that exist */
	dev_t dev;              /* out: which object it is */
	ino_t ino;
	bool sealed;            /* out: the object itself was acceptable, also when the mapping failed later */
	uint32_t detail;        /* out: errno or the offending number */
};
/* TN_UNSUPPORTED: not a memfd. TN_PERMISSION: it can shrink and takes no seal against that, it cannot be read, or not be
 * written although that is wanted. TN_RANGE: it is
 * shorter than offset + bytes. TN_INVALID: offset is not a multiple of its (huge) page. NO_MEMORY, LIMIT, SYSTEM. */
TN_MUST_USE tn_status dp_map_run(struct dp_map_req *req);
void dp_map_undo(const struct dp_map_req *req);

/* A registered memory and its client. The worker sees `m` only. */
struct dp_local_memory {
	struct dp_memory m;
	struct tn_list link;    /* the client's */
	struct dp_app *client;
	struct dp_control *ctl;
	struct dp_job job, fill;
	bool filling;           /* `fill` is with the pool: it must not be unmapped yet */
	uint32_t fill_turns;
	struct dp_flight flight;
	struct dp_map_req req;
	tn_status result;       /* of the mapping, then of the workers: not TN_OK = the registration failed */
	uint8_t state;          /* enum dp_mem_state */
	uint32_t refs;          /* segments whose buffers lie in it, memories imported over it */
	uint16_t asked;         /* the message that made it, and its correlation or that of the one that ends it */
	uint32_t correlation;
	struct dp_local_memory *staging; /* imported: over these staging buffers; else NULL */
};

void dp_map_on_register(struct dp_app *c, struct shr_msg *m);
void dp_map_on_import(struct dp_app *c, struct shr_msg *m);
void dp_map_on_unregister(struct dp_app *c, struct shr_msg *m);
/* The client's memory with this handle if it is usable, else NULL. */
struct dp_local_memory *dp_map_find(struct dp_app *c, tn_handle h);
/* For a closing client after CLIENT_DEL: unmap every memory that no segment and no acknowledgement holds any more. */
void dp_map_release_idle(struct dp_app *c);
/* At the end of the process: unmap here. */
void dp_map_destroy_all(struct dp_app *c);

#endif
