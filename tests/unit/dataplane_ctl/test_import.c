/* SPDX-License-Identifier: Apache-2.0
 * Imported memory at the attach door: staging buffers, imports over them, the errands of copies, their ends. The other side
 * is an application that speaks by hand, and workers that the test plays. */
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "dataplane/segment/map.h"
#include "dataplane/staging/pool.h"
#include "tests/unit/cu.h"
#include "tests/unit/dataplane_ctl/bench.h"

#define MIB (1u << 20)
#define SMALL "staging/chunk_bytes=64KiB", "staging/chunks=4", NULL

static const char *const small[] = { SMALL };
static struct shr_msg m;

static tn_status import(struct bench *b, int sock, uint64_t staging, uint64_t length, uint64_t *id_out)
{
	struct shr_msg_mem_import i = { .staging = staging, .length = length, .rights = SHR_RIGHT_LOCAL };
	struct shr_msg_id id = { 0 };
	tn_status s = app_call(b, sock, SHR_MSG_MEM_IMPORT, &i, sizeof i, -1, &m);

	if (s == TN_OK)
		memcpy(&id, shr_msg_body_ro(&m), sizeof id);
	*id_out = id.id;
	return s;
}

static tn_status unregister(struct bench *b, int sock, uint64_t id)
{
	struct shr_msg_id body = { .id = id };

	return app_call(b, sock, SHR_MSG_MEM_UNREGISTER, &body, sizeof body, -1, &m);
}

static void copied(int sock, uint64_t tag, tn_status status)
{
	struct shr_msg_copied c = { .tag = tag, .status = status };

	memcpy(shr_msg_begin(&m, SHR_MSG_COPIED, 0, sizeof c), &c, sizeof c);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
}

static void hello_says_what_is_needed(void)
{
	static struct bench b;
	struct shr_msg_hello hello = { .abi_major = SHR_ABI_MAJOR, .abi_minor = SHR_ABI_MINOR, .app = "new" };
	struct shr_msg_hello_reply r;

	bench_start(&b, 2, small);
	for (uint16_t minor = SHR_MINOR_IMPORT - 1; minor <= SHR_MINOR_IMPORT; minor++) {
		int sock = app_connect(&b);
		hello.abi_minor = minor;
		CU_ASSERT_EQUAL_FATAL(app_call(&b, sock, SHR_MSG_HELLO, &hello, sizeof hello, -1, &m), TN_OK);
		memcpy(&r, shr_msg_body_ro(&m), sizeof r);
		CU_ASSERT_EQUAL(r.stage_chunk_bytes, minor < SHR_MINOR_IMPORT ? 0 : 65536); /* an older one wants zeros */
		CU_ASSERT_EQUAL(r.stage_chunks, minor < SHR_MINOR_IMPORT ? 0 : 8);
		close(sock);
	}
	bench_stop(&b);
}

static void import_and_its_end(void)
{
	static struct bench b;
	int sock, fd = memfd_of(8 * 65536, true), other = memfd_of(MIB, true);
	uint64_t mem, more, none;

	bench_start(&b, 2, small);
	sock = app_attach(&b);
	CU_ASSERT_EQUAL(import(&b, sock, 0, 4096, &none), TN_STALE); /* no buffers */
	uint64_t plain = app_register(&b, sock, other, MIB, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(import(&b, sock, plain, 4096, &none), TN_STALE); /* these are none */
	uint64_t staging = app_register(&b, sock, fd, 8 * 65536, SHR_RIGHT_STAGING);
	CU_ASSERT_NOT_EQUAL_FATAL(staging, 0);
	const struct dp_memory *buffers = fake_last(0, DP_CMD_MEM_ADD)->ptr;
	CU_ASSERT(buffers->areas != NULL && buffers->areas[0].cnt == 4 && buffers->areas[1].first == 4);
	CU_ASSERT_EQUAL(buffers->areas[1].chunk_bytes, 65536);
	int second = memfd_of(MIB, true);
	CU_ASSERT_EQUAL(app_register(&b, sock, second, MIB, SHR_RIGHT_STAGING), 0); /* one is enough */
	CU_ASSERT_EQUAL_FATAL(import(&b, sock, staging, UINT64_MAX, &mem), TN_OK);
	CU_ASSERT_EQUAL_FATAL(import(&b, sock, staging, 1, &more), TN_OK);
	const struct dp_memory *imported = fake_last(1, DP_CMD_MEM_ADD)->ptr;
	CU_ASSERT(imported->base == NULL && imported->bytes == 1 && imported->staging == staging && imported->handle == more);
	CU_ASSERT_EQUAL(unregister(&b, sock, staging), TN_BUSY);
	CU_ASSERT_EQUAL(unregister(&b, sock, more), TN_OK);
	CU_ASSERT_EQUAL(unregister(&b, sock, mem), TN_OK);
	CU_ASSERT_EQUAL(unregister(&b, sock, mem), TN_STALE);
	CU_ASSERT_EQUAL(unregister(&b, sock, staging), TN_OK);
	CU_ASSERT_EQUAL(import(&b, sock, staging, 1, &none), TN_STALE);
	staging = app_register(&b, sock, second, MIB, SHR_RIGHT_STAGING); /* others take their place */
	CU_ASSERT_EQUAL(import(&b, sock, staging, 1, &mem), TN_OK);
	/* A worker that has no room for one: the others forget it. */
	fake_refuse(1, DP_CMD_MEM_ADD, TN_LIMIT);
	CU_ASSERT_EQUAL(import(&b, sock, staging, 1, &none), TN_LIMIT);
	CU_ASSERT_EQUAL(fake_last(0, DP_CMD_MEM_DEL) != NULL, true);
	fake_refuse(1, DP_CMD_MEM_ADD, TN_OK);
	close(sock); /* the rest goes with it */
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	CU_ASSERT_EQUAL(b.ctl.memories.used, 0);
	CU_ASSERT_EQUAL(b.ctl.memory_bytes, 0);
	bench_stop(&b);
	close(fd), close(other), close(second);
}

static void too_small_for_all_workers(void)
{
	static struct bench b;
	struct shr_msg_mem_register r = { .length = 4096, .rights = SHR_RIGHT_STAGING };
	int sock, fd = memfd_of(4096, true);

	bench_start(&b, 2, small);
	sock = app_attach(&b);
	CU_ASSERT_EQUAL(app_call(&b, sock, SHR_MSG_MEM_REGISTER, &r, sizeof r, fd, &m), TN_RANGE);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.memories.used == 0));
	bench_stop(&b);
	close(sock), close(fd);
}

static void copies_are_errands(void)
{
	static struct bench b;
	int sock, fd = memfd_of(8 * 65536, true);
	uint64_t mem;

	bench_start(&b, 2, small);
	sock = app_attach(&b);
	uint64_t staging = app_register(&b, sock, fd, 8 * 65536, SHR_RIGHT_STAGING);
	CU_ASSERT_EQUAL_FATAL(import(&b, sock, staging, MIB, &mem), TN_OK);
	uint64_t tag = UINT64_C(1) << 56 | UINT64_C(6) << 32 | 77;
	struct dp_evt evt = { .kind = DP_EVT_COPY, .id = tag, .num = mem, .num2 = 1234, .len = 999, .status = 1 };
	struct shr_msg_copy c;
	fake_emit(1, &evt);
	CU_ASSERT_EQUAL_FATAL(app_recv(&b, sock, &m), TN_OK);
	CU_ASSERT_EQUAL_FATAL(m.hdr.type, SHR_MSG_COPY);
	memcpy(&c, shr_msg_body_ro(&m), sizeof c);
	CU_ASSERT(c.memory == mem && c.offset == 1234 && c.length == 999 && c.tag == tag && c.to_memory == 1);
	CU_ASSERT_EQUAL(c.staging_offset, 6 * 65536);
	copied(sock, tag, TN_FAULT);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_COPIED) == 1));
	const struct dp_cmd *cmd = fake_last(1, DP_CMD_COPIED);
	CU_ASSERT(cmd->num == tag && cmd->num2 == staging && cmd->status == TN_FAULT && fake_count(0, DP_CMD_COPIED) == 0);
	/* Of what is gone nobody is asked. */
	evt.num = mem + 1;
	fake_emit(1, &evt);
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(shr_msg_recv(sock, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
	/* A worker that does not exist: a lie. */
	copied(sock, UINT64_C(2) << 56, TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.broken_cnt == 1));
	bench_stop(&b);
	close(sock), close(fd);
}

static void copied_without_buffers_is_a_lie(void)
{
	static struct bench b;
	int sock;

	bench_start(&b, 1, small);
	sock = app_attach(&b);
	copied(sock, 0, TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.broken_cnt == 1));
	bench_stop(&b);
	close(sock);
}

TN_TEST_MAIN("imported memory", { "HELLO says what is needed", hello_says_what_is_needed }, { "import, and its end", import_and_its_end },
	{ "too small for all workers", too_small_for_all_workers }, { "copies are errands", copies_are_errands },
	{ "COPIED without buffers is a lie", copied_without_buffers_is_a_lie })
