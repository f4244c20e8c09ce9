/* SPDX-License-Identifier: Apache-2.0
 * A hostile application: speaks the attach protocol correctly just far enough to own a ring, then breaks one rule.
 *   scribbler DIR MODE [SEED]
 * Modes: tail (SQ index far ahead), head (CQ index far ahead), region (random bytes over all of it, again and again),
 * sqe (well-formed ring, random descriptors), steal (valid descriptors naming other clients' handles), hello (random
 * attach messages), fds (a register message with the wrong descriptors), silent (attach and never say a word).
 * Prints "dropped" when the data plane closed the attachment, "kept" when it did not; exit 0 either way, 1 when the
 * scenario could not be played. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/rand.h"
#include "tests/integration/hostile.h"

static struct tn_rand rnd;

static struct shr_sqe_shm random_sqe(void)
{
	struct shr_sqe_shm e;
	uint8_t *b = (uint8_t *)&e;
	for (size_t i = 0; i < sizeof e; i++)
		b[i] = (uint8_t)tn_rand_u64(&rnd);
	if (tn_rand_below(&rnd, 2) == 0) { /* near misses reach deeper than noise */
		memset(e.reserved, 0, sizeof e.reserved);
		e.opcode = (uint8_t)(1 + tn_rand_below(&rnd, 4));
		e.priority = (uint8_t)tn_rand_below(&rnd, 3);
		e.intent = 0;
		e.hint = (uint8_t)tn_rand_below(&rnd, 5);
		e.flags = (uint16_t)tn_rand_below(&rnd, 8);
		e.policy = 0;
		e.note_slot = (uint32_t)tn_rand_below(&rnd, 4);
		e.note_len = (uint32_t)tn_rand_below(&rnd, 5000);
		e.batch = (uint32_t)tn_rand_below(&rnd, 3);
		e.length = tn_rand_below(&rnd, 3) == 0 ? UINT64_MAX - tn_rand_below(&rnd, 4096) : 4096;
		e.remote_off = tn_rand_below(&rnd, 3) == 0 ? UINT64_MAX - 4096 : 0;
		e.local_off = tn_rand_below(&rnd, 3) == 0 ? UINT64_MAX - 4095 : 0;
	}
	return e;
}

/* Handles are {index, generation}: walk through small ones, which other clients may own. */
static struct shr_sqe_shm steal_sqe(void)
{
	uint64_t gen = 2 * tn_rand_below(&rnd, 8) + 1;
	return (struct shr_sqe_shm){ .opcode = (uint8_t)(1 + tn_rand_below(&rnd, 2)), .length = 4096,
				     .segment = gen << 32 | tn_rand_below(&rnd, 16), .memory = gen << 32 | tn_rand_below(&rnd, 16),
				     .token = tn_rand_u64(&rnd) };
}

static void submit_many(struct shr_sqe_shm (*make)(void), int rounds)
{
	struct shr_sq_prod sq;
	struct shr_cq_cons cq;
	uint64_t completed = 0;
	shr_sq_prod_init(&sq, &view);
	shr_cq_cons_init(&cq, &view);
	for (int i = 0; i < rounds; i++) {
		uint32_t space = 0, avail = 0;
		if (shr_sq_space(&sq, 16, &space) == TN_OK)
			for (uint32_t k = 0; k < TN_MIN(space, 16u); k++) {
				struct shr_sqe_shm e = make();
				shr_sq_put(&sq, &e);
			}
		(void)shr_sq_publish(&sq);
		ring_bell();
		usleep(1000);
		if (shr_cq_peek(&cq, 64, &avail) == TN_OK && avail > 0) {
			for (uint32_t k = 0; k < avail; k++) {
				struct shr_cqe_shm c;
				shr_cq_copy(&cq, k, &c);
				completed += c.status == TN_OK;
			}
			shr_cq_release(&cq, avail);
		}
	}
	printf("completed %" PRIu64 "\n", completed);
}

/* Never consumes, and claims an impossible number of consumed completions each time. */
static void garbage_head(void)
{
	struct shr_sq_prod sq;
	shr_sq_prod_init(&sq, &view);
	for (int i = 0; i < 100; i++) {
		uint32_t space = 0;
		tn_store_release32(&view.qp->cq_head.value, 0x7fffffff);
		if (shr_sq_space(&sq, 16, &space) != TN_OK)
			return;
		for (uint32_t k = 0; k < TN_MIN(space, 16u); k++) {
			struct shr_sqe_shm e = random_sqe();
			shr_sq_put(&sq, &e);
		}
		(void)shr_sq_publish(&sq);
		ring_bell();
		usleep(1000);
	}
}

static void scribble_region(void)
{
	for (int i = 0; i < 200; i++) {
		for (size_t k = 0; k < region_bytes; k += 1 + tn_rand_below(&rnd, 64))
			region[k] = (uint8_t)tn_rand_u64(&rnd);
		ring_bell();
		usleep(2000);
	}
}

static void random_messages(void)
{
	uint8_t buf[512];
	for (int i = 0; i < 200; i++) {
		size_t n = 1 + tn_rand_below(&rnd, sizeof buf - 1);
		for (size_t k = 0; k < n; k++)
			buf[k] = (uint8_t)tn_rand_u64(&rnd);
		if (tn_rand_below(&rnd, 2) == 0 && n >= sizeof(struct shr_msg_hdr)) {
			struct shr_msg_hdr h = { .magic = SHR_MSG_MAGIC, .type = (uint16_t)(1 + tn_rand_below(&rnd, 12)),
						 .length = (uint32_t)n, .correlation = 9 };
			memcpy(buf, &h, sizeof h);
		}
		if (send(sock, buf, n, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno != EAGAIN)
			return;
		usleep(500);
	}
}

static void wrong_fds(void)
{
	static struct shr_msg m;
	static const char *const paths[] = { "/dev/null", "/proc/self/exe", "/" };
	for (size_t i = 0; i < TN_ARRAY_LEN(paths); i++) {
		struct shr_msg_mem_register *r = shr_msg_begin(&m, SHR_MSG_MEM_REGISTER, 5, sizeof *r);
		r->length = 4096;
		r->rights = 7;
		m.fds[0] = open(paths[i], O_RDONLY);
		m.fd_cnt = 1;
		int fd = m.fds[0];
		ask(&m);
		close(fd);
		if (m.hdr.status == TN_OK)
			die("a file that is no memfd was taken");
	}
	int small = memfd_create("small", MFD_ALLOW_SEALING);
	if (small < 0 || ftruncate(small, 4096) != 0)
		die("memfd");
	static const struct { uint64_t off, len; } bad[] = { { 0, 8192 }, { 4096, 1 }, { 1, 4096 }, { UINT64_MAX - 4095, 8192 }, { 0, 0 } };
	for (size_t i = 0; i < TN_ARRAY_LEN(bad); i++) {
		struct shr_msg_mem_register *r = shr_msg_begin(&m, SHR_MSG_MEM_REGISTER, 6, sizeof *r);
		r->offset = bad[i].off;
		r->length = bad[i].len;
		r->rights = 7;
		m.fds[0] = small;
		m.fd_cnt = 1;
		if (shr_msg_send_until(sock, &m, in_s(5)) != TN_OK ||
		    shr_msg_recv_until(sock, SHR_FROM_DATAPLANE, &m, in_s(5)) != TN_OK)
			return; /* dropped: also an answer */
		if (m.hdr.status == TN_OK)
			die("a range outside the file was taken");
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: scribbler DIR MODE [SEED]");
	const char *mode = argv[2];
	tn_rand_seed(&rnd, argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
	attach(argv[1]);
	if (strcmp(mode, "hello") != 0 && strcmp(mode, "fds") != 0 && strcmp(mode, "silent") != 0)
		make_ring();
	if (strcmp(mode, "tail") == 0) {
		tn_store_release32(&view.qp->sq_tail.value, 0x7fffffff);
		ring_bell();
	} else if (strcmp(mode, "head") == 0) {
		garbage_head();
	} else if (strcmp(mode, "region") == 0) {
		scribble_region();
	} else if (strcmp(mode, "sqe") == 0) {
		submit_many(random_sqe, 500);
	} else if (strcmp(mode, "steal") == 0) {
		submit_many(steal_sqe, 200);
	} else if (strcmp(mode, "hello") == 0) {
		random_messages();
	} else if (strcmp(mode, "fds") == 0) {
		wrong_fds();
	} else if (strcmp(mode, "silent") != 0) {
		die("unknown mode");
	}
	bool dropped = dropped_within(2 * TN_NS_PER_S);
	printf("%s\n", dropped ? "dropped" : "kept");
	return 0;
}
