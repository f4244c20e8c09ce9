/* SPDX-License-Identifier: Apache-2.0
 * The engine of put and get: an open segment, a few buffers of registered memory, and chunks that are read or written
 * until they are done. A chunk that fails for a reason that may pass (path, peer or daemon restarting; a WRITE that may
 * have landed: the same bytes may land twice) is sent again, until nothing moved for the stall time. One thread. */
#ifndef TCTL_PUMP_H
#define TCTL_PUMP_H

#include <tent/tent.h>

#include "common/clock.h"
#include "common/hist.h"
#include "controlplane/tentctl/tentctl.h"

enum { TCTL_PUMP_BUFFERS = 8, TCTL_PUMP_CHUNK = 4 << 20, TCTL_PUMP_TRANSPORTS = 5 };
#define TCTL_STALL_DEFAULT_NS (60 * TN_NS_PER_S)

/* The options of put and get. */
struct tctl_pump_cfg {
	const char *transport;   /* --transport; NULL: any */
	uint64_t stall_ns;       /* --stall */
	tent_transport hint;     /* of it, see tctl_pump_cfg_check() */
};

enum tctl_slot_state { TCTL_SLOT_IDLE, TCTL_SLOT_SENT, TCTL_SLOT_RETRY, TCTL_SLOT_DONE };

struct tctl_slot {
	enum tctl_slot_state state;
	tent_opcode op;
	bool held;               /* hardware may still touch the buffer: not to be used before its RELEASE */
	bool counted;            /* is payload (not the trailer): goes into the statistics */
	uint64_t user_data;      /* of the outstanding request */
	uint64_t segment_off, bytes, memory_off;
	uint64_t retry_ns;       /* when to send it again */
	uint32_t batch;
	unsigned tries;
};

struct tctl_pump_stats {
	uint64_t bytes[TCTL_PUMP_TRANSPORTS]; /* completed payload by enum tent_transport */
	uint64_t done_bytes, chunks, resent, attempts;
	struct tn_loghist latency_ns;
};

struct tctl_pump {
	struct tctl *t;
	struct tctl_pump_cfg cfg;
	char ref[TCTL_REF_MAX];
	tent_context *ctx;
	tent_qp *qp;
	tent_segment *seg;
	tent_memory *mem;
	uint8_t *addr;                /* of mem */
	uint64_t segment_bytes, chunk_bytes;
	unsigned buffer_cnt;
	struct tctl_slot slots[TCTL_PUMP_BUFFERS + 1]; /* the last one: trailer */
	uint64_t next_user_data;
	uint64_t moved_ns;            /* when something completed last */
	uint64_t probe_ns;            /* when to look again whether the segment is still there */
	bool reopen;                  /* the segment handle is stale */
	bool batch_broken;            /* a chunk left its batch: its notice would not wait for it */
	bool complained;
	bool failed;                  /* the reason was printed */
	char last_error[256];         /* of the last failure that may pass */
	tn_status last_status;
	/* the notice */
	uint64_t note_user_data;      /* 0: none outstanding */
	bool note_done, note_failed;
	tn_status note_status;        /* of a failed one */
	char note_error[256];
	struct tctl_pump_stats stats;
};

/* Checks --transport; TCTL_OK or TCTL_USAGE. */
int tctl_pump_cfg_check(struct tctl *t, struct tctl_pump_cfg *cfg);
/* Splits and checks "[PEER/]SEGMENT"; TCTL_OK or TCTL_USAGE. */
int tctl_ref_check(struct tctl *t, const char *ref);

/* Attach and open. Retries what may pass until --timeout. TCTL_OK or TCTL_FAILED (printed); close in both cases. */
int tctl_pump_open(struct tctl_pump *p, struct tctl *t, const struct tctl_pump_cfg *cfg, const char *ref);
/* Buffers for moving `bytes`. */
int tctl_pump_buffers(struct tctl_pump *p, uint64_t bytes);
void tctl_pump_close(struct tctl_pump *p);

/* All below: false when the pump failed or was interrupted; the reason was printed. */

/* Buffer i % buffer_cnt of chunk i, once what it last carried is over. */
bool tctl_pump_wait(struct tctl_pump *p, uint64_t chunk);
uint8_t *tctl_pump_buffer(const struct tctl_pump *p, uint64_t chunk);
/* Send chunk i (its buffer must be idle or done). */
bool tctl_pump_start(struct tctl_pump *p, tent_opcode op, uint64_t chunk, uint64_t segment_off, uint64_t bytes,
		     uint32_t batch);
/* Until all chunks are done. */
bool tctl_pump_drain(struct tctl_pump *p);
/* READ up to 4096 bytes at `segment_off` and wait for them; they stand at the returned place until the next call. */
const uint8_t *tctl_pump_peek(struct tctl_pump *p, uint64_t segment_off, uint64_t bytes);
/* Submit a notice without waiting. batch != 0: it leaves behind the chunks of that batch. */
bool tctl_pump_notify(struct tctl_pump *p, uint32_t batch, const void *payload, size_t bytes);
/* True: the receiver's inbox took it. False without p->failed: it was not sent or not taken, p->note_error says why. */
bool tctl_pump_notify_end(struct tctl_pump *p);

/* Take completions, send what is due again; sleep up to `sleep_ns` when there is nothing to do. */
bool tctl_pump_step(struct tctl_pump *p, uint64_t sleep_ns);
/* Print the failure (unless one was printed) and mark the pump. Returns false. */
bool tctl_pump_fail(struct tctl_pump *p, tn_status status, const char *fmt, ...) TN_PRINTF(3, 4);

#endif
