/* SPDX-License-Identifier: Apache-2.0
 * The first steps of a hostile application: attached, and owner of a ring, by the rules and without libtent. What it does
 * then is scribbler.c (noise) and forger.c (tables). One attachment per process; a step that fails ends it. */
#ifndef TESTS_INTEGRATION_HOSTILE_H
#define TESTS_INTEGRATION_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "shm-ring/doorbell.h"
#include "shm-ring/handshake.h"
#include "shm-ring/ring_check.h"
#include "shm-ring/spsc.h"

extern int sock;
extern uint8_t *region;
extern size_t region_bytes;
extern struct shr_qp_view view;

_Noreturn void die(const char *what);
static inline uint64_t in_s(uint64_t s) { return tn_now_ns() + s * TN_NS_PER_S; }
/* Sends m and waits for its answer in m; false when there is none, because the attachment was dropped. */
bool try_ask(struct shr_msg *m);
void ask(struct shr_msg *m);
/* Drops the attachment and ring that there are. */
void attach(const char *dir);
void make_ring(void);
void ring_bell(void);
/* Did the data plane hang up within that time? The bell is rung meanwhile. */
bool dropped_within(uint64_t ns);

#endif
