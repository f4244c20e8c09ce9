/* SPDX-License-Identifier: Apache-2.0
 * A whole control side in one thread for tests: real loop, pool, sockets and tables, fake workers, a runtime directory
 * of its own. turn_until() runs it until a condition holds or its deadline passes. */
#ifndef TN_TEST_BENCH_H
#define TN_TEST_BENCH_H

#include "dataplane/control.h"
#include "tests/unit/dataplane_ctl/fake_worker.h"
#include "shm-ring/handshake.h"

struct bench {
	struct dp_control ctl;
	struct dp_worker_env env;
	struct shr_tele tele;
	struct dp_worker *workers[4];
	unsigned worker_cnt;
	char dir[64];
};

/* sets: NULL-terminated "key=value". Attach socket and lane listener are open. */
void bench_start(struct bench *b, unsigned worker_cnt, const char *const *sets);
void bench_stop(struct bench *b);
/* A few turns, for what needs no waiting. */
void bench_turns(struct bench *b, unsigned cnt);

/* Runs turns until cond; false (and the test fails) after 5 s. */
#define turn_until(b, cond) \
	({ \
		uint64_t until_ns_ = tn_now_ns() + UINT64_C(5000000000); \
		bool holds_; \
		while (!(holds_ = (cond)) && tn_now_ns() < until_ns_) \
			bench_turns((b), 1); \
		holds_; \
	})

/* ---- an application that speaks the attach protocol by hand ---- */
int app_connect(struct bench *b);
/* Connected and past HELLO. */
int app_attach(struct bench *b);
/* Waits (turning) for one message. Its status; TN_TIMEOUT after 5 s, TN_PATH_DOWN on hang-up. */
tn_status app_recv(struct bench *b, int sock, struct shr_msg *m);
/* Sends a request with body and up to one fd and waits for its reply; status of the reply. */
tn_status app_call(struct bench *b, int sock, uint16_t type, const void *body, uint32_t body_bytes, int fd,
                   struct shr_msg *reply);
int memfd_of(uint64_t bytes, bool sealable);
/* Handle of a registered whole memfd; 0 on failure. */
uint64_t app_register(struct bench *b, int sock, int fd, uint64_t bytes, uint32_t rights);
/* Publishes [0, bytes) of one memory. The status; *id_out on OK. */
tn_status app_publish(struct bench *b, int sock, const char *name, uint64_t memory, uint64_t bytes, uint32_t access,
                      uint64_t *id_out);
/* The same for this user, with these rights instead of both. */
tn_status app_publish_as(struct bench *b, int sock, const char *name, uint64_t memory, uint64_t bytes, uint32_t rights);
tn_status app_open(struct bench *b, int sock, const char *ref, struct shr_msg_open_reply *out);

#endif
