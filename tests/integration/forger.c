/* SPDX-License-Identifier: Apache-2.0
 * A hostile application with tables: one wrong value at a time, and what must come of it.
 *   forger DIR memories        descriptors and ranges to register
 *   forger DIR requests REF    every field of a request, against memory of its own and segment REF
 *   forger DIR write REF       a WRITE to a segment that does not allow it, and a READ into memory that is sealed
 *   forger DIR indices         every word of the ring that somebody else owns, and indices out of range
 * Prints a line per row; exit 1 at the first that is not answered as the table says. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/domain.h"
#include "tests/integration/hostile.h"

#define OBJECT 8192

static int memfd_with(unsigned flags, int seals)
{
	int fd = memfd_create("forger", MFD_CLOEXEC | flags);
	if (fd < 0 || ftruncate(fd, OBJECT) != 0 || (seals != 0 && fcntl(fd, F_ADD_SEALS, seals) != 0))
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
	{ "sealed against writing, for READ and WRITE", write_sealed_fd, 0, 4096, 6, TN_PERMISSION },
	{ "sealed against writing, for READ", write_sealed_fd, 0, 4096, 10, TN_OK },
	{ "a program file", file_fd, 0, 4096, 7, TN_UNSUPPORTED },
};

static tn_status register_fd(int fd, uint64_t offset, uint64_t length, uint32_t rights, uint64_t *id_out)
{
	static struct shr_msg m;
	struct shr_msg_mem_register *r = shr_msg_begin(&m, SHR_MSG_MEM_REGISTER, 7, sizeof *r);
	r->offset = offset;
	r->length = length;
	r->rights = rights;
	m.fds[0] = fd;
	m.fd_cnt = 1;
	if (!try_ask(&m))
		return TN_CLIENT_BROKEN; /* dropped */
	const struct shr_msg_id *id = shr_msg_body_ro(&m);
	*id_out = m.hdr.status == TN_OK ? id->id : 0;
	return m.hdr.status;
}

static void bad_memories(const char *dir)
{
	uint64_t id;
	for (size_t i = 0; i < TN_ARRAY_LEN(memories); i++) {
		int fd = memories[i].make();
		tn_status s = fd < 0 ? TN_SYSTEM : register_fd(fd, memories[i].offset, memories[i].length, memories[i].rights, &id);
		printf("%s: %s\n", memories[i].what, tn_status_name(s));
		if (s != memories[i].status)
			die(memories[i].what);
		close(fd);
		if (s == TN_CLIENT_BROKEN)
			attach(dir);
	}
	int fd = good_fd();
	if (register_fd(fd, 0, 8192, 7, &id) != TN_OK || register_fd(fd, 4096, 4096, 7, &id) != TN_EXISTS)
		die("a range was registered twice");
	/* It was taken: it can neither be cut nor get the seal under which the data plane could not write any more. */
	if (ftruncate(fd, 0) == 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0)
		die("registered memory was cut or sealed");
}

/* ---- requests ---- */

#define SPAN 16384u /* of the memory: a page of guard, two pages that are registered, a page of guard */
#define F(field) offsetof(struct shr_sqe_shm, field), sizeof(((struct shr_sqe_shm *)0)->field)
static const struct {
	const char *what;
	size_t at, width;
	uint64_t value;
	tn_status status;
} fields[] = {
	{ "opcode 0", F(opcode), 0, TN_INVALID }, { "opcode 255", F(opcode), 255, TN_INVALID },
	{ "unknown flag", F(flags), 0x8000, TN_INVALID }, { "batch flag without a batch", F(flags), SHR_SQE_BATCH, TN_INVALID },
	{ "batch without its flag", F(batch), 7, TN_INVALID },
	{ "priority 3", F(priority), TN_PRIORITY_CNT, TN_INVALID }, { "priority 255", F(priority), 255, TN_INVALID },
	{ "intent 7", F(intent), SHR_INTENT_CNT, TN_INVALID }, { "intent 255", F(intent), 255, TN_INVALID },
	{ "hint beyond the last", F(hint), TN_TRANSPORT_CNT, TN_INVALID }, { "hint 255", F(hint), 255, TN_INVALID },
	{ "hint of no transport", F(hint), TN_TRANSPORT_RDMA, TN_UNSUPPORTED }, { "policy 65534", F(policy), 65534, TN_INVALID },
	{ "reserved byte", offsetof(struct shr_sqe_shm, reserved), 1, 1, TN_INVALID },
	{ "last reserved byte", offsetof(struct shr_sqe_shm, reserved) + 27, 1, 128, TN_INVALID },
	{ "notice length", F(note_len), 1, TN_INVALID }, { "notice slot", F(note_slot), 1, TN_INVALID },
	{ "no length", F(length), 0, TN_RANGE }, { "one byte too long", F(length), 8193, TN_RANGE },
	{ "length 2^63", F(length), UINT64_C(1) << 63, TN_RANGE }, { "length 2^64 - 1", F(length), UINT64_MAX, TN_RANGE },
	{ "local offset by one", F(local_off), 4097, TN_RANGE }, { "local offset at the end", F(local_off), 8192, TN_RANGE },
	{ "local offset + length = 2^64", F(local_off), UINT64_MAX - 4095, TN_RANGE },
	{ "local offset + length wraps", F(local_off), UINT64_MAX - 8, TN_RANGE },
	{ "local offset of the guard before", F(local_off), (uint64_t)-4096, TN_RANGE },
	{ "remote offset at the end", F(remote_off), UINT64_C(16) << 20, TN_RANGE },
	{ "remote offset by one", F(remote_off), (UINT64_C(16) << 20) - 4095, TN_RANGE },
	{ "remote offset + length = 2^64", F(remote_off), UINT64_MAX - 4095, TN_RANGE },
	{ "remote offset + length wraps", F(remote_off), UINT64_MAX - 8, TN_RANGE },
	{ "no memory", F(memory), 0, TN_INVALID }, { "memory index", F(memory), UINT64_C(1) << 32 | 0xffffffff, TN_STALE },
	{ "memory generation", F(memory), UINT64_C(0xffffffff) << 32, TN_STALE }, { "memory of ones", F(memory), UINT64_MAX, TN_STALE },
	{ "no segment", F(segment), 0, TN_INVALID }, { "segment index", F(segment), UINT64_C(1) << 32 | 0xffffffff, TN_STALE },
	{ "segment generation", F(segment), UINT64_C(0xffffffff) << 32, TN_STALE }, { "segment of ones", F(segment), UINT64_MAX, TN_STALE },
};

static struct shr_sq_prod sq;
static struct shr_cq_cons cq;

static struct shr_cqe_shm carry_out(const struct shr_sqe_shm *e)
{
	struct shr_cqe_shm c;
	uint32_t n = 0;
	if (shr_sq_space(&sq, 1, &n) != TN_OK || n == 0)
		die("no room in the ring");
	shr_sq_put(&sq, e);
	(void)shr_sq_publish(&sq);
	for (uint64_t end = in_s(10); shr_cq_peek(&cq, 1, &n) == TN_OK && n == 0 && tn_now_ns() < end;) {
		ring_bell();
		usleep(200);
	}
	if (n == 0)
		die("no completion");
	shr_cq_copy(&cq, 0, &c);
	shr_cq_release(&cq, 1);
	return c;
}

static uint64_t id_of(uint16_t type, const void *body, size_t bytes)
{
	static struct shr_msg m;
	memcpy(shr_msg_begin(&m, type, 8, (uint32_t)bytes), body, bytes);
	ask(&m);
	if (m.hdr.status != TN_OK)
		die("a good message was refused");
	const struct shr_msg_id *id = shr_msg_body_ro(&m);
	return m.hdr.length > sizeof m.hdr ? id->id : 0;
}

static void expect(const char *what, const struct shr_sqe_shm *e, tn_status wanted, unsigned flags)
{
	struct shr_cqe_shm c = carry_out(e);
	printf("%s: %s\n", what, tn_status_name(c.status));
	if (c.status != wanted || c.flags != flags || c.token != e->token)
		die(what);
}

static void bad_requests(const char *ref)
{
	int fd = memfd_create("forger", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint8_t *all = fd >= 0 && ftruncate(fd, SPAN) == 0 ? mmap(NULL, SPAN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	struct shr_msg_open open_ref = { .remaining_ns = 5 * TN_NS_PER_S };
	struct shr_msg_id gone;
	if (all == MAP_FAILED || register_fd(fd, 4096, 8192, 7, &gone.id) != TN_OK)
		die("memory");
	memset(all, 0xd7, SPAN);
	snprintf(open_ref.ref, sizeof open_ref.ref, "%s", ref);
	shr_sq_prod_init(&sq, &view);
	shr_cq_cons_init(&cq, &view);
	struct shr_sqe_shm good = { .memory = gone.id, .length = 4096,
				    .segment = id_of(SHR_MSG_OPEN, &open_ref, sizeof open_ref) };
	for (unsigned op = SHR_OP_READ; op <= SHR_OP_WRITE; op++)
		for (size_t i = 0; i < TN_ARRAY_LEN(fields); i++) {
			struct shr_sqe_shm e = good;
			e.opcode = (uint8_t)op;
			e.token = op << 16 | i;
			memcpy((uint8_t *)&e + fields[i].at, &fields[i].value, fields[i].width); /* little-endian, as the ring is */
			expect(fields[i].what, &e, fields[i].status, SHR_CQE_REFUSED);
		}
	for (size_t i = 0; i < SPAN; i++)
		if (all[i] != 0xd7)
			die("memory changed by a refused request");
	good.opcode = SHR_OP_READ;
	good.local_off = 4096;
	expect("a good one", &good, TN_OK, 0);
	for (size_t i = 0; i < SPAN; i++)
		if ((i < 8192 || i >= 12288) && all[i] != 0xd7)
			die("a byte outside of the range changed");
	id_of(SHR_MSG_MEM_UNREGISTER, &gone, sizeof gone);
	expect("memory that was given back", &good, TN_STALE, SHR_CQE_REFUSED);
	gone.id = good.segment;
	id_of(SHR_MSG_CLOSE, &gone, sizeof gone);
	expect("a segment that was closed", &good, TN_STALE, SHR_CQE_REFUSED);
}

/* Nothing but rights is wrong: libtent would have said so, the data plane has to. */
static void no_right_to_write(const char *ref)
{
	struct shr_msg_open open_ref = { .remaining_ns = 5 * TN_NS_PER_S };
	uint64_t mine, sealed;
	if (register_fd(good_fd(), 0, OBJECT, 7, &mine) != TN_OK || register_fd(write_sealed_fd(), 0, OBJECT, 10, &sealed) != TN_OK)
		die("memory");
	snprintf(open_ref.ref, sizeof open_ref.ref, "%s", ref);
	shr_sq_prod_init(&sq, &view);
	shr_cq_cons_init(&cq, &view);
	struct shr_sqe_shm e = { .opcode = SHR_OP_READ, .memory = mine, .length = OBJECT, .token = 1,
				 .segment = id_of(SHR_MSG_OPEN, &open_ref, sizeof open_ref) };
	expect("READ", &e, TN_OK, 0);
	e.opcode = SHR_OP_WRITE;
	expect("WRITE to what may only be read", &e, TN_PERMISSION, SHR_CQE_REFUSED);
	e.opcode = SHR_OP_READ;
	e.memory = sealed;
	expect("READ into what is sealed", &e, TN_PERMISSION, SHR_CQE_REFUSED);
}

/* ---- indices ---- */

#define I(field) offsetof(struct shr_qp_shm, field)
static const struct {
	const char *what;
	size_t at;
	uint32_t value;
	bool dropped;
} words[] = {
	{ "submissions beyond the ring", I(sq_tail.value), 65, true },
	{ "submissions far ahead", I(sq_tail.value), 0x7fffffff, true },
	{ "submissions taken back", I(sq_tail.value), UINT32_MAX, true },
	{ "taken submissions (not ours)", I(sq_head.value), 0x55555555, false },
	{ "posted completions (not ours)", I(cq_tail.value), 0x55555555, false },
	{ "the worker's doorbell word (not ours)", I(sq_armed.value), 0x55555555, false },
	{ "our doorbell word", I(cq_armed.value), 0x55555555, false },
	{ "magic", I(hdr.magic), 0, false },
	{ "region size", I(hdr.region_bytes), UINT32_MAX, false },
	{ "ring size", I(hdr.sq_entries), 1u << 31, false },
	{ "completion ring size", I(hdr.cq_entries), 0, false },
	{ "entry sizes", I(hdr.sqe_bytes), UINT32_MAX, false },
	{ "ring offset", I(hdr.sq_off), UINT32_MAX, false },
	{ "completion ring offset", I(hdr.cq_off), 0x80000000, false },
	{ "notice offset", I(hdr.note_off), UINT32_MAX, false },
	{ "notice slots", I(hdr.note_slots), UINT32_MAX, false },
};

static void bad_indices(const char *dir)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(words); i++) {
		attach(dir);
		make_ring();
		shr_sq_prod_init(&sq, &view);
		tn_store_release32((tn_a32 *)(void *)(region + words[i].at), words[i].value);
		if (!words[i].dropped) { /* a request, so that the word is looked at if anybody does */
			struct shr_sqe_shm e = { .opcode = SHR_OP_READ, .token = 1, .length = 1, .memory = 1, .segment = 1 };
			memcpy(region + view.lay.sq_off, &e, sizeof e);
			tn_store_release32(&view.qp->sq_tail.value, 1);
		}
		bool dropped = dropped_within(words[i].dropped ? 5 * TN_NS_PER_S : TN_NS_PER_S / 5);
		uint32_t taken = tn_load_acquire32(&view.qp->sq_head.value);
		printf("%s: %s\n", words[i].what, dropped ? "dropped" : "kept");
		if (dropped != words[i].dropped || (!dropped && taken != 1))
			die(words[i].what);
	}
}

int main(int argc, char **argv)
{
	if (argc < 3)
		die("usage: forger DIR memories | requests REF | write REF | indices");
	attach(argv[1]);
	if (strcmp(argv[2], "memories") == 0) {
		bad_memories(argv[1]);
	} else if (strcmp(argv[2], "requests") == 0 && argc > 3) {
		make_ring();
		bad_requests(argv[3]);
	} else if (strcmp(argv[2], "write") == 0 && argc > 3) {
		make_ring();
		no_right_to_write(argv[3]);
	} else if (strcmp(argv[2], "indices") == 0) {
		bad_indices(argv[1]);
	} else {
		die("unknown mode");
	}
	return 0;
}
