/* SPDX-License-Identifier: Apache-2.0
 * One connection of tcp_loop, either end: messages are a head of fixed size and perhaps a payload that lies in a pool.
 * Level-triggered epoll, gathered sends, payload received in place. One owner thread; it sleeps in tb_stream_step(). */
#ifndef TB_STREAM_H
#define TB_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "perf/tentbench/args.h"

#define TB_HEAD_MAX 64
#define TB_QUEUE TB_DEPTH_MAX /* power of two: messages waiting to be sent */

/* What the owner does with messages that come in. */
struct tb_stream_ops {
	uint32_t head_bytes;
	uint64_t (*payload_bytes)(const void *head);
	void *(*payload)(void *ctx, const void *head);
	void (*done)(void *ctx, const void *head); /* head and payload are here; may send */
};

struct tb_stream {
	int fd, epoll;
	bool wants_write;
	const struct tb_stream_ops *ops;
	void *ctx;
	/* coming in */
	uint8_t head[TB_HEAD_MAX];
	uint64_t in_off;
	/* going out: a ring; out_off bytes of the first message are sent */
	struct { uint8_t head[TB_HEAD_MAX]; const void *payload; uint64_t payload_bytes; } out[TB_QUEUE];
	uint32_t out_first, out_cnt, out_head_bytes;
	uint64_t out_off;
};

/* Takes the fd over (made non-blocking); out_head_bytes: of the messages that this end sends. Ends the process when the
 * system refuses. */
void tb_stream_init(struct tb_stream *s, int fd, uint32_t out_head_bytes, const struct tb_stream_ops *ops, void *ctx);
/* Queue a message; the payload must stay as it is until it is answered. At most TB_QUEUE may wait. */
void tb_stream_send(struct tb_stream *s, const void *head, const void *payload, uint64_t payload_bytes);
/* Send and receive what is possible, sleeping first when nothing is. false: the connection is over. */
bool tb_stream_step(struct tb_stream *s);

#endif
