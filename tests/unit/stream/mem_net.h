/* SPDX-License-Identifier: Apache-2.0
 * A byte-stream provider without a network: links in memory whose every read and write can be cut short, stalled, reset
 * or told that a page is bad. Deterministic; single thread; the peer side of fuzzing and of the lane tests. */
#ifndef TN_TEST_MEM_NET_H
#define TN_TEST_MEM_NET_H

#include "dataplane/transport/stream/bytes.h"

#define MEM_LINKS 128
#define MEM_PIPE_BYTES (256u * 1024u)
#define MEM_CHUNK_BYTES 4096u /* of a call that meets a bad page, the whole chunks in front of it move */

struct mem_pipe { uint8_t data[MEM_PIPE_BYTES]; uint32_t rd, wr; bool fin, rst; };

struct mem_link { /* end 0 connected, end 1 accepted; end e writes pipe[e] and reads pipe[1 - e] */
	struct mem_pipe pipe[2];
	struct dp_bytes *end[2];
	uint32_t events[2];      /* to be told at the next mem_poll() */
	bool used, accepted, wants_out[2];
	uint16_t port;
};

struct mem_net {
	struct mem_link link[MEM_LINKS];
	size_t read_max, write_max;      /* bytes per call; 0 = no limit */
	size_t pipe_max;                 /* bytes in a pipe before writes block; 0 = all */
	uint32_t refuse;                 /* the next connects are refused */
	bool stall[2];                   /* end e neither reads nor writes */
	const uint8_t *bad;              /* one address that cannot be touched; NULL = none */
	uint32_t connects, calls;
};

extern const struct dp_bytes_ops mem_bytes;
extern struct mem_net mem;

void mem_reset(void);
/* Deliver events; returns how many. */
uint32_t mem_poll(void);
/* Raw access to one end, for tests that play a peer: bytes moved. */
size_t mem_push(int link, int end, const void *bytes, size_t len);
size_t mem_pull(int link, int end, void *bytes, size_t len);
size_t mem_waiting(int link, int end);    /* bytes that end could read */
void mem_hang_up(int link, int end, bool rst);
bool mem_is_open(int link, int end);      /* a lane still holds that end */
/* A link whose end 1 will be adopted: returns its number for lane_adopt's fd. */
int mem_open(void);
int mem_next_unaccepted(void);            /* -1 = none */

#endif
