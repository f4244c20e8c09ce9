/* SPDX-License-Identifier: Apache-2.0
 * The queue pair's door: every header number is believed only if it is the one we would have computed; descriptor
 * shapes by opcode. */
#include "shm-ring/ring_check.h"

#include "common/domain.h"
#include "tests/unit/shm-ring/fixture.h"

static void joiner_sees_what_creator_wrote(void)
{
	struct fx_qp q;
	fx_qp_make(&q, 64, 3);
	CU_ASSERT_EQUAL(memcmp(&q.creator.lay, &q.joiner.lay, sizeof q.creator.lay), 0);
	CU_ASSERT(q.creator.qp == q.joiner.qp && q.creator.sq == q.joiner.sq && q.creator.cq == q.joiner.cq);
	CU_ASSERT(q.creator.notes == q.joiner.notes && q.joiner.abi_minor == SHR_ABI_MINOR);
	CU_ASSERT_EQUAL(q.joiner.qp_id, 7);
	CU_ASSERT_PTR_EQUAL(shr_qp_note(&q.joiner, 2), (uint8_t *)q.mem + q.lay.note_off + 2 * SHR_NOTE_BYTES);
	CU_ASSERT(shr_qp_view_matches(&q.joiner));
	((struct shr_qp_shm *)q.mem)->hdr.cq_off ^= 64;
	CU_ASSERT_FALSE(shr_qp_view_matches(&q.joiner));
	fx_qp_free(&q);
}

static void unformatted_is_not_yet(void)
{
	struct fx_qp q;
	struct shr_qp_view v = { .qp_id = 1234 };
	fx_qp_make(&q, 8, 0);
	((struct shr_qp_shm *)q.mem)->hdr.magic = 0;
	CU_ASSERT_EQUAL(shr_qp_check(q.mem, q.lay.region_bytes, &v), TN_AGAIN);
	CU_ASSERT_EQUAL(v.qp_id, 1234);
	fx_qp_free(&q);
}

/* Flips each bit of each header byte: all but qp_id, the minor version and bytes behind it must be noticed. */
static void every_header_bit_counts(void)
{
	struct fx_qp q;
	struct shr_qp_view v;
	fx_qp_make(&q, 8, 1);
	uint8_t *h = q.mem;
	for (size_t bit = 0; bit < 8 * sizeof(struct shr_qp_hdr_shm); bit++) {
		size_t byte = bit / 8;
		h[byte] ^= (uint8_t)(1u << bit % 8);
		tn_status s = shr_qp_check(q.mem, q.lay.region_bytes, &v);
		h[byte] ^= (uint8_t)(1u << bit % 8);
		bool id = byte >= offsetof(struct shr_qp_hdr_shm, qp_id) && byte < offsetof(struct shr_qp_hdr_shm, reserved);
		bool minor = byte == 6 || byte == 7;
		if (id || minor)
			CU_ASSERT_EQUAL(s, TN_OK);
		if (byte == 4 || byte == 5)
			CU_ASSERT_EQUAL(s, TN_ABI_MISMATCH);
		if (!id && !minor && s == TN_OK)
			printf("header bit %zu was not noticed\n", bit);
		if (!id && !minor)
			CU_ASSERT_NOT_EQUAL(s, TN_OK);
	}
	CU_ASSERT_EQUAL(shr_qp_check(q.mem, q.lay.region_bytes, &v), TN_OK);
	CU_ASSERT_EQUAL(shr_qp_check(q.mem, q.lay.region_bytes - SHR_PAGE, &v), TN_CLIENT_BROKEN);
	CU_ASSERT_EQUAL(shr_qp_check(q.mem, 64, &v), TN_CLIENT_BROKEN);
	fx_qp_free(&q);
}

static void newer_minor_is_met_at_ours(void)
{
	struct fx_qp q;
	struct shr_qp_view v;
	fx_qp_make(&q, 8, 0);
	struct shr_qp_shm *qp = q.mem;
	qp->hdr.abi_minor = SHR_ABI_MINOR + 3;
	qp->hdr.reserved[4] = 9; /* something the newer version appended */
	CU_ASSERT_EQUAL_FATAL(shr_qp_check(q.mem, q.lay.region_bytes, &v), TN_OK);
	CU_ASSERT_EQUAL(v.abi_minor, SHR_ABI_MINOR);
	fx_qp_free(&q);
}

static struct shr_sqe_shm good_write(void)
{
	return (struct shr_sqe_shm){ .opcode = SHR_OP_WRITE, .segment = 1, .memory = 2, .length = 4096,
				     .priority = TN_PRIORITY_MEDIUM, .hint = TN_TRANSPORT_TCP, .intent = 6 };
}

static void data_shapes(void)
{
	struct shr_sqe_shm e = good_write();
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&e, 0), TN_OK);
	e.opcode = SHR_OP_READ;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&e, 0), TN_OK);
#define REFUSED(field, value, status) \
	do { \
		struct shr_sqe_shm b = good_write(); \
		b.field = (value); \
		CU_ASSERT_EQUAL(shr_sqe_check_shape(&b, 4), status); \
	} while (0)
	REFUSED(opcode, 0, TN_INVALID);
	REFUSED(opcode, 5, TN_INVALID);
	REFUSED(opcode, 255, TN_INVALID);
	REFUSED(flags, 0x8000, TN_INVALID);
	REFUSED(flags, SHR_SQE_BATCH, TN_INVALID); /* without a batch number */
	REFUSED(batch, 3, TN_INVALID);             /* without the flag */
	REFUSED(priority, TN_PRIORITY_CNT, TN_INVALID);
	REFUSED(intent, SHR_INTENT_CNT, TN_INVALID);
	REFUSED(hint, TN_TRANSPORT_CNT, TN_INVALID);
	REFUSED(segment, 0, TN_INVALID);
	REFUSED(memory, 0, TN_INVALID);
	REFUSED(note_len, 1, TN_INVALID);
	REFUSED(note_slot, 1, TN_INVALID);
	REFUSED(reserved[0], 1, TN_INVALID);
	REFUSED(reserved[3], 1, TN_INVALID);
	REFUSED(reserved2[0], 1, TN_INVALID);
	REFUSED(reserved2[15], 1, TN_INVALID);
	REFUSED(length, 0, TN_RANGE);
	REFUSED(local_off, UINT64_MAX, TN_RANGE);
	REFUSED(local_off, UINT64_MAX - 4095, TN_RANGE);
	REFUSED(remote_off, UINT64_MAX - 4094, TN_RANGE);
	REFUSED(length, UINT64_MAX, TN_OK); /* from offset 0 it does not wrap: the tables will say that it is too long */
	e = good_write();
	e.flags = SHR_SQE_BATCH | SHR_SQE_AT_MOST_ONCE | SHR_SQE_REPLAY;
	e.batch = 1;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&e, 0), TN_OK);
}

static void notify_and_cancel_shapes(void)
{
	struct shr_sqe_shm n = { .opcode = SHR_OP_NOTIFY, .segment = 1, .note_len = SHR_NOTE_BYTES, .note_slot = 3, .batch = 9 };
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&n, 4), TN_OK);
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&n, 3), TN_INVALID);
	n.note_len++;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&n, 4), TN_TOO_BIG);
	n.note_len = 0;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&n, 4), TN_INVALID); /* empty, yet names a slot */
	n.note_slot = 0;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&n, 0), TN_OK);
	n.length = 1;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&n, 0), TN_INVALID);

	struct shr_sqe_shm c = { .opcode = SHR_OP_CANCEL, .token = 77 };
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&c, 0), TN_OK);
	c.segment = 1;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&c, 0), TN_INVALID);
	c.segment = 0;
	c.flags = SHR_SQE_REPLAY;
	CU_ASSERT_EQUAL(shr_sqe_check_shape(&c, 0), TN_INVALID);
}

TN_TEST_MAIN("shm-ring/ring_check",
	{ "a joiner sees what the creator wrote [M1]", joiner_sees_what_creator_wrote },
	{ "a header without magic is not there yet [M1]", unformatted_is_not_yet },
	{ "every header bit counts", every_header_bit_counts },
	{ "a newer minor version is met at ours", newer_minor_is_met_at_ours },
	{ "shapes of READ and WRITE", data_shapes },
	{ "shapes of NOTIFY and CANCEL", notify_and_cancel_shapes })
