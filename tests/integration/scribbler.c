/* SPDX-License-Identifier: Apache-2.0
 * A hostile application: speaks the attach protocol correctly just far enough to own a ring, then breaks one rule.
 *   scribbler DIR MODE [SEED]
 * Modes: tail (SQ index far ahead), head (CQ index far ahead), region (random bytes over all of it, again and again),
 * sqe (well-formed ring, random descriptors), steal (valid descriptors naming other clients' handles), hello (random
 * attach messages), fds (a register message with the wrong descriptors), memories (memfds of every bad kind, and ranges that
 * leave them: each must get its own status), silent (attach and never say a word).
 * Prints "dropped" when the data plane closed the attachment, "kept" when it did not; exit 0 either way, 1 when the
 * scenario could not be played. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/rand.h"
#include "shm-ring/doorbell.h"
#include "shm-ring/handshake.h"
#include "shm-ring/ring_check.h"
#include "shm-ring/spsc.h"

static int sock;
static struct tn_rand rnd;
static uint8_t *region;
static size_t region_bytes;
static int doorbell = -1;
static struct shr_qp_view view;

static void die(const char *what)
{
	fprintf(stderr, "scribbler: %s\n", what);
	exit(1);
}

static uint64_t in_s(uint64_t s) { return tn_now_ns() + s * TN_NS_PER_S; }

static void ask(struct shr_msg *m)
{
	if (shr_msg_send_until(sock, m, in_s(5)) != TN_OK || shr_msg_recv_until(sock, SHR_FROM_DATAPLANE, m, in_s(5)) != TN_OK)
		die("no answer");
}

static void attach(const char *dir)
{
	static struct shr_msg m;
	char path[200];
	snprintf(path, sizeof path, "%s/attach.sock", dir);
	if (shr_attach_connect(path, in_s(5), &sock) != TN_OK)
		die("cannot connect");
	struct shr_msg_hello *h = shr_msg_begin(&m, SHR_MSG_HELLO, 1, sizeof *h);
	h->abi_major = SHR_ABI_MAJOR;
	h->abi_minor = SHR_ABI_MINOR;
	snprintf(h->app, sizeof h->app, "scribbler");
	ask(&m);
	if (m.hdr.status != TN_OK)
		die("hello refused");
}

static void make_ring(void)
{
	static struct shr_msg m;
	struct shr_msg_qp_create *q = shr_msg_begin(&m, SHR_MSG_QP_CREATE, 2, sizeof *q);
	q->sq_entries = 64;
	q->note_slots = 4;
	ask(&m);
	if (m.hdr.status != TN_OK || m.fd_cnt != 2)
		die("no ring");
	const struct shr_msg_qp_create_reply *r = shr_msg_body_ro(&m);
	region_bytes = r->region_bytes;
	region = mmap(NULL, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fds[0], 0);
	if (region == MAP_FAILED || shr_qp_check(region, region_bytes, &view) != TN_OK)
		die("bad ring");
	doorbell = m.fds[1];
}

static void ring_bell(void)
{
	if (doorbell >= 0)
		shr_doorbell_ring(doorbell);
}

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

static int memfd_with(unsigned flags, int seals)
{
	int fd = memfd_create("scribbler", MFD_CLOEXEC | flags);
	if (fd < 0 || ftruncate(fd, 8192) != 0 || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0))
		die("memfd");
	return fd;
}

static int good_fd(void) { return memfd_with(MFD_ALLOW_SEALING, 0); }
static int unsealable_fd(void) { return memfd_with(0, 0); }
static int sealed_off_fd(void) { return memfd_with(MFD_ALLOW_SEALING, F_SEAL_SEAL); }
static int write_sealed_fd(void) { return memfd_with(MFD_ALLOW_SEALING, F_SEAL_WRITE); }
static int file_fd(void) { return open("/proc/self/exe", O_RDONLY | O_CLOEXEC); }
static int read_only_fd(void)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", good_fd());
	return open(path, O_RDONLY | O_CLOEXEC);
}

static const struct {
	const char *what;
	int (*make)(void);
	uint64_t offset, length;
	uint32_t rights;
	tn_status status;
} memories[] = { /* CLIENT_BROKEN: malformed, so the attachment is dropped */
	{ "one byte too long", good_fd, 0, 8193, 7, TN_RANGE },
	{ "behind the end", good_fd, 8192, 1, 7, TN_RANGE },
	{ "far behind the end", good_fd, UINT64_C(1) << 40, 4096, 7, TN_RANGE },
	{ "end beyond 63 bits", good_fd, 4096, INT64_MAX, 7, TN_RANGE },
	{ "end wraps", good_fd, UINT64_MAX - 4095, 8192, 7, TN_CLIENT_BROKEN },
	{ "length beyond 63 bits", good_fd, 0, UINT64_MAX, 7, TN_RANGE },
	{ "no length", good_fd, 0, 0, 7, TN_CLIENT_BROKEN },
	{ "between pages", good_fd, 1, 4096, 7, TN_INVALID },
	{ "no rights", good_fd, 0, 4096, 0, TN_INVALID },
	{ "rights that do not exist", good_fd, 0, 4096, 0x80000007, TN_CLIENT_BROKEN },
	{ "never to be sealed", unsealable_fd, 0, 4096, 7, TN_PERMISSION },
	{ "sealed off", sealed_off_fd, 0, 4096, 7, TN_PERMISSION },
	{ "sealed against writing", write_sealed_fd, 0, 4096, 7, TN_PERMISSION },
	{ "open for reading only", read_only_fd, 0, 4096, 7, TN_PERMISSION },
	{ "a program file", file_fd, 0, 4096, 7, TN_UNSUPPORTED },
};

static tn_status register_fd(int fd, uint64_t offset, uint64_t length, uint32_t rights)
{
	static struct shr_msg m;
	struct shr_msg_mem_register *r = shr_msg_begin(&m, SHR_MSG_MEM_REGISTER, 7, sizeof *r);
	r->offset = offset;
	r->length = length;
	r->rights = rights;
	m.fds[0] = fd;
	m.fd_cnt = 1;
	if (shr_msg_send_until(sock, &m, in_s(5)) != TN_OK || shr_msg_recv_until(sock, SHR_FROM_DATAPLANE, &m, in_s(5)) != TN_OK)
		return TN_CLIENT_BROKEN; /* dropped */
	return m.hdr.status;
}

static void bad_memories(const char *dir)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(memories); i++) {
		int fd = memories[i].make();
		tn_status s = fd < 0 ? TN_SYSTEM : register_fd(fd, memories[i].offset, memories[i].length, memories[i].rights);
		printf("%s: %s\n", memories[i].what, tn_status_name(s));
		if (s != memories[i].status)
			die(memories[i].what);
		close(fd);
		if (s == TN_CLIENT_BROKEN) {
			close(sock);
			attach(dir);
		}
	}
	int fd = good_fd();
	if (register_fd(fd, 0, 8192, 7) != TN_OK || register_fd(fd, 4096, 4096, 7) != TN_EXISTS)
		die("a range was registered twice");
	/* It was taken: it can neither be cut nor get the seal under which the data plane could not write any more. */
	if (ftruncate(fd, 0) == 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0)
		die("registered memory was cut or sealed");
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: scribbler DIR MODE [SEED]");
	const char *mode = argv[2];
	tn_rand_seed(&rnd, argc > 3 ? strtoull(argv[3], NULL, 0) : 1);
	attach(argv[1]);
	if (strcmp(mode, "hello") != 0 && strcmp(mode, "fds") != 0 && strcmp(mode, "memories") != 0 &&
	    strcmp(mode, "silent") != 0)
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
	} else if (strcmp(mode, "memories") == 0) {
		bad_memories(argv[1]);
	} else if (strcmp(mode, "silent") != 0) {
		die("unknown mode");
	}
	struct pollfd p = { .fd = sock, .events = POLLRDHUP };
	uint64_t end = in_s(2);
	bool dropped = false;
	while (!dropped && tn_now_ns() < end) {
		ring_bell();
		dropped = poll(&p, 1, 50) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
	}
	printf("%s\n", dropped ? "dropped" : "kept");
	return 0;
}
