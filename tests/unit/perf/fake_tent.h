/* SPDX-License-Identifier: Apache-2.0
 * A libtent of one process for the loop's tests: it copies at once and misbehaves on command. One thread only. */
#ifndef FAKE_TENT_H
#define FAKE_TENT_H

#include <tent/tent.h>

enum fake_lie {
	FAKE_HONEST = 0,
	FAKE_FAILS,        /* completes TIMEOUT without copying */
	FAKE_CANCELS,      /* completes CANCELED without copying */
	FAKE_FLIPS,        /* one byte arrives wrong */
	FAKE_SKIPS,        /* completes, but moved nothing */
	FAKE_DOUBLES,      /* one completion comes twice */
	FAKE_STRAY,        /* a completion nobody asked for */
	FAKE_SHORT,        /* claims fewer bytes */
	FAKE_REFUSES,      /* tent_submit() fails */
	FAKE_BREAKS,       /* tent_wait() fails */
};

struct fake {
	enum fake_lie lie;
	uint64_t lie_at;      /* the operation (counted from 1) that goes wrong */
	uint64_t submitted, completed, waits, overlaps;
	uint32_t deepest;
	uint32_t hint_seen, accept_max; /* accept_max 0: all */
	uint8_t *remote;
	uint64_t remote_bytes;
};

extern struct fake fake;

tent_context *fake_context(void);
tent_memory *fake_memory(void *base, size_t bytes);
tent_segment *fake_segment(void);

#endif
