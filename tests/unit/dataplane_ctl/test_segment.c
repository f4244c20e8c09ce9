/* SPDX-License-Identifier: Apache-2.0
 * Publish, withdraw, open and close on one host. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/dataplane_ctl/bench.h"
#include "common/clock.h"
#include "dataplane/segment/local.h"
#include "dataplane/segment/remote.h"
#include "tests/unit/cu.h"

#define BYTES 65536u

static void publish_checks_everything(void)
{
	static struct bench b;
	static struct shr_msg m;
	int a, c, fd = memfd_of(BYTES, true);
	uint64_t mem, ro, id;
	struct shr_msg_id unreg;

	bench_start(&b, 2, NULL);
	a = app_attach(&b);
	c = app_attach(&b);
	mem = app_register(&b, a, fd, BYTES / 2, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "bad name", mem, 4096, SHR_ACCESS_SAME_UID, NULL), TN_INVALID);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, 4096, 0, NULL), TN_INVALID);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, NULL), TN_RANGE);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem + 1, 4096, SHR_ACCESS_SAME_UID, NULL), TN_STALE);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, 4096, SHR_ACCESS_SAME_UID, &id), TN_OK);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, 4096, SHR_ACCESS_SAME_UID, NULL), TN_EXISTS);
	ro = app_register(&b, c, fd, BYTES / 2, SHR_RIGHT_REMOTE_READ);
	CU_ASSERT_EQUAL(app_publish(&b, c, "kv", ro, 4096, SHR_ACCESS_SAME_UID, NULL), TN_EXISTS);
	CU_ASSERT_EQUAL(app_publish(&b, c, "ro", ro, 4096, SHR_ACCESS_SAME_UID, NULL), TN_PERMISSION);
	unreg.id = mem;
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_MEM_UNREGISTER, &unreg, sizeof unreg, -1, &m), TN_BUSY);
	unreg.id = id;
	CU_ASSERT_EQUAL(app_call(&b, c, SHR_MSG_WITHDRAW, &unreg, sizeof unreg, -1, &m), TN_STALE);
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_WITHDRAW, &unreg, sizeof unreg, -1, &m), TN_OK);
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_WITHDRAW, &unreg, sizeof unreg, -1, &m), TN_STALE);
	unreg.id = mem;
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_MEM_UNREGISTER, &unreg, sizeof unreg, -1, &m), TN_OK);
	const struct dp_cmd *add = fake_last(0, DP_CMD_SEG_ADD);
	CU_ASSERT_PTR_NOT_NULL(add);
	bench_stop(&b);
	close(a), close(c), close(fd);
}

static void a_segment_is_found_only_when_all_workers_know_it(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_open_reply o;
	int a, c, fd = memfd_of(BYTES, true);
	uint64_t mem;

	bench_start(&b, 2, NULL);
	a = app_attach(&b);
	c = app_attach(&b);
	mem = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	fake_hold(true);
	struct { struct shr_msg_publish fixed; struct shr_msg_buffer buffer; } req;
	memset(&req, 0, sizeof req);
	strcpy(req.fixed.name, "kv");
	req.fixed.publication.b[0] = 1;
	req.fixed.access = SHR_ACCESS_SAME_UID;
	req.fixed.buffer_cnt = 1;
	req.buffer = (struct shr_msg_buffer){ .memory = mem, .length = BYTES, .rights = SHR_RIGHT_REMOTE_READ };
	memcpy(shr_msg_begin(&m, SHR_MSG_PUBLISH, 3, sizeof req), &req, sizeof req);
	CU_ASSERT_EQUAL(shr_msg_send(a, &m), TN_OK);
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(app_open(&b, c, "kv", &o), TN_NOT_FOUND);
	fake_hold(false);
	CU_ASSERT_EQUAL(app_recv(&b, a, &m), TN_OK);
	CU_ASSERT_EQUAL(app_open(&b, c, "kv", &o), TN_OK);
	CU_ASSERT_EQUAL(o.length, BYTES);
	CU_ASSERT_EQUAL(o.rights, SHR_RIGHT_REMOTE_READ);
	CU_ASSERT_EQUAL(o.local, 1);
	CU_ASSERT_EQUAL(app_open(&b, c, "here/kv", &o), TN_OK); /* our own host name is this host */
	CU_ASSERT_EQUAL(app_open(&b, c, "nobody/kv", &o), TN_PEER_UNKNOWN);
	CU_ASSERT_EQUAL(app_open(&b, c, "a/b/c", &o), TN_INVALID);
	CU_ASSERT_EQUAL(app_open(&b, c, "/kv", &o), TN_INVALID);
	CU_ASSERT_EQUAL(app_open(&b, c, "", &o), TN_INVALID);
	bench_stop(&b);
	close(a), close(c), close(fd);
}

static void access_lists_hold_on_this_host(void)
{
	static struct bench b;
	struct shr_msg_open_reply o;
	int a, fd = memfd_of(BYTES, true);
	uint64_t mem;

	bench_start(&b, 1, NULL);
	a = app_attach(&b);
	mem = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "peers-only", mem, BYTES, SHR_ACCESS_PEERS, NULL), TN_OK);
	CU_ASSERT_EQUAL(app_open(&b, a, "peers-only", &o), TN_PERMISSION);
	CU_ASSERT_EQUAL(app_publish(&b, a, "mine", mem, BYTES, SHR_ACCESS_SAME_UID, NULL), TN_OK);
	struct dp_local_segment *seg = dp_local_find(&b.ctl, "mine");
	CU_ASSERT_TRUE(dp_local_admits_uid(seg->s, getuid()));
	CU_ASSERT_FALSE(dp_local_admits_uid(seg->s, getuid() + 1));
	CU_ASSERT_FALSE(dp_local_admits_peer(seg->s, "b"));
	CU_ASSERT_TRUE(dp_local_admits_peer(dp_local_find(&b.ctl, "peers-only")->s, "b"));
	bench_stop(&b);
	close(a), close(fd);
}

/* Opened, withdrawn, published again by another client: the handle lives on with the new version. */
static void a_republished_name_reaches_old_handles(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_open_reply o;
	int a, c, fd = memfd_of(BYTES, true);
	uint64_t mem, first;
	const struct dp_cmd *set;

	bench_start(&b, 2, NULL);
	uint64_t base = b.ctl.segment_generation; /* drawn, so that those of another incarnation differ */
	a = app_attach(&b);
	c = app_attach(&b);
	mem = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &first), TN_OK);
	CU_ASSERT_EQUAL_FATAL(app_open(&b, c, "kv", &o), TN_OK);
	close(a);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 1));
	/* A worker finds out; nobody has it now, so the search goes on. */
	fake_emit(0, &(struct dp_evt){ .kind = DP_EVT_REMOTE_REFRESH, .num = o.id, .num2 = base + 1 });
	fake_emit(1, &(struct dp_evt){ .kind = DP_EVT_REMOTE_REFRESH, .num = o.id, .num2 = base + 1 });
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(fake_count(0, DP_CMD_REMOTE_SET), 1);
	a = app_attach(&b);
	mem = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, BYTES / 2, SHR_ACCESS_SAME_UID, NULL), TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(1, DP_CMD_REMOTE_SET) == 2));
	set = fake_last(1, DP_CMD_REMOTE_SET);
	const struct dp_remote *r = set->ptr;
	CU_ASSERT_EQUAL(r->handle, o.id);
	CU_ASSERT_EQUAL(r->generation, base + 2);
	CU_ASSERT_EQUAL(r->bytes, BYTES / 2);
	CU_ASSERT_TRUE(r->local);
	struct shr_msg_id id = { .id = o.id };
	CU_ASSERT_EQUAL(app_call(&b, c, SHR_MSG_CLOSE, &id, sizeof id, -1, &m), TN_OK);
	CU_ASSERT_EQUAL(app_call(&b, c, SHR_MSG_CLOSE, &id, sizeof id, -1, &m), TN_STALE);
	CU_ASSERT_EQUAL(b.ctl.remotes.used, 0);
	bench_stop(&b);
	close(a), close(c), close(fd);
}

/* A republished name that the opener may not open: the handle is lost with the reason. */
static void losing_access_loses_the_handle(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_open_reply o;
	struct shr_msg_id id;
	int a, c, fd = memfd_of(BYTES, true);
	uint64_t mem;

	bench_start(&b, 1, NULL);
	a = app_attach(&b);
	c = app_attach(&b);
	mem = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &id.id), TN_OK);
	CU_ASSERT_EQUAL_FATAL(app_open(&b, c, "kv", &o), TN_OK);
	CU_ASSERT_EQUAL(app_call(&b, a, SHR_MSG_WITHDRAW, &id, sizeof id, -1, &m), TN_OK);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, BYTES, SHR_ACCESS_PEERS, NULL), TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, fake_count(0, DP_CMD_REMOTE_SET) == 2));
	const struct dp_remote *r = fake_last(0, DP_CMD_REMOTE_SET)->ptr;
	CU_ASSERT_TRUE(r->lost);
	CU_ASSERT_EQUAL(r->lost_status, TN_PERMISSION);
	bench_stop(&b);
	close(a), close(c), close(fd);
}

/* The operator takes a segment away: its publisher is told, and its WITHDRAW waits for what still runs. */
static void the_publisher_learns_of_the_operators_withdrawal(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_segment_lost lost;
	struct shr_msg_id id;
	int a, fd = memfd_of(BYTES, true);

	bench_start(&b, 1, NULL);
	a = app_attach(&b);
	uint64_t mem = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &id.id), TN_OK);
	CU_ASSERT_EQUAL(dp_local_withdraw_name(&b.ctl, "other"), TN_NOT_FOUND);
	fake_hold(true);
	CU_ASSERT_EQUAL(dp_local_withdraw_name(&b.ctl, "kv"), TN_OK);
	CU_ASSERT_EQUAL(dp_local_withdraw_name(&b.ctl, "kv"), TN_NOT_FOUND);
	CU_ASSERT_EQUAL_FATAL(app_recv(&b, a, &m), TN_OK);
	CU_ASSERT_EQUAL(m.hdr.type, SHR_MSG_SEGMENT_LOST);
	memcpy(&lost, shr_msg_body_ro(&m), sizeof lost);
	CU_ASSERT_EQUAL(lost.id, id.id);
	CU_ASSERT_EQUAL(lost.status, TN_CANCELED);
	memcpy(shr_msg_begin(&m, SHR_MSG_WITHDRAW, 8, sizeof id), &id, sizeof id);
	CU_ASSERT_EQUAL(shr_msg_send(a, &m), TN_OK);
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(shr_msg_recv(a, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
	fake_hold(false);
	CU_ASSERT_EQUAL(app_recv(&b, a, &m), TN_OK);
	CU_ASSERT_EQUAL(m.hdr.type, SHR_MSG_WITHDRAW | SHR_MSG_REPLY);
	CU_ASSERT_EQUAL(m.hdr.correlation, 8);
	bench_stop(&b);
	close(a), close(fd);
}

/* A library from before the message gets what it knows, and nothing else. */
static void an_older_library_is_not_told(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_hello hello = { .abi_major = SHR_ABI_MAJOR, .abi_minor = SHR_MINOR_SEGMENT_LOST - 1, .app = "old" };
	struct shr_msg_hello_reply r;
	struct shr_msg_id id;
	int a, fd = memfd_of(BYTES, true);

	bench_start(&b, 1, NULL);
	a = app_connect(&b);
	CU_ASSERT_EQUAL_FATAL(app_call(&b, a, SHR_MSG_HELLO, &hello, sizeof hello, -1, &m), TN_OK);
	memcpy(&r, shr_msg_body_ro(&m), sizeof r);
	CU_ASSERT_EQUAL(r.abi_minor, hello.abi_minor);
	uint64_t mem = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", mem, BYTES, SHR_ACCESS_SAME_UID, &id.id), TN_OK);
	CU_ASSERT_EQUAL(dp_local_withdraw_name(&b.ctl, "kv"), TN_OK);
	bench_turns(&b, 5);
	CU_ASSERT_EQUAL(shr_msg_recv(a, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
	bench_stop(&b);
	close(a), close(fd);
}

/* Whoever gave up waiting for an end and asks again waits for the same end; "stale" would say that it is over. */
static void an_end_is_asked_for_again(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_qp_create create = { .sq_entries = 16, .note_slots = 16 };
	struct shr_msg_qp_create_reply qp;
	struct shr_msg_open_reply o;
	int a, fd = memfd_of(BYTES, true);

	bench_start(&b, 1, NULL);
	a = app_attach(&b);
	struct { uint16_t type; struct shr_msg_id id; } ends[4] = { { SHR_MSG_QP_DESTROY, { 0 } }, { SHR_MSG_CLOSE, { 0 } },
		{ SHR_MSG_WITHDRAW, { 0 } }, { SHR_MSG_MEM_UNREGISTER, { 0 } } };
	ends[3].id.id = app_register(&b, a, fd, BYTES, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL(app_publish(&b, a, "kv", ends[3].id.id, BYTES, SHR_ACCESS_SAME_UID, &ends[2].id.id), TN_OK);
	CU_ASSERT_EQUAL_FATAL(app_open(&b, a, "kv", &o), TN_OK);
	ends[1].id.id = o.id;
	CU_ASSERT_EQUAL_FATAL(app_call(&b, a, SHR_MSG_QP_CREATE, &create, sizeof create, -1, &m), TN_OK);
	memcpy(&qp, shr_msg_body_ro(&m), sizeof qp);
	shr_msg_close_fds(&m);
	ends[0].id.id = qp.id;
	for (size_t i = 0; i < TN_ARRAY_LEN(ends); i++) {
		fake_hold(true);
		for (uint32_t correlation = 20; correlation <= 21; correlation++) {
			memcpy(shr_msg_begin(&m, ends[i].type, correlation, sizeof ends[i].id), &ends[i].id, sizeof ends[i].id);
			CU_ASSERT_EQUAL(shr_msg_send(a, &m), TN_OK);
		}
		CU_ASSERT_EQUAL(app_recv(&b, a, &m), TN_OK);
		CU_ASSERT_EQUAL(m.hdr.status, TN_BUSY);
		CU_ASSERT_EQUAL(m.hdr.correlation, 20);
		bench_turns(&b, 5);
		CU_ASSERT_EQUAL(shr_msg_recv(a, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
		fake_hold(false);
		CU_ASSERT_EQUAL(app_recv(&b, a, &m), TN_OK);
		CU_ASSERT_EQUAL(m.hdr.status, TN_OK);
		CU_ASSERT_EQUAL(m.hdr.correlation, 21);
	}
	bench_stop(&b);
	close(a), close(fd);
}

TN_TEST_MAIN("segment", { "publish checks everything", publish_checks_everything },
             { "a segment is found only when all workers know it", a_segment_is_found_only_when_all_workers_know_it },
             { "access lists hold on this host", access_lists_hold_on_this_host },
             { "a republished name reaches old handles", a_republished_name_reaches_old_handles },
             { "losing access loses the handle", losing_access_loses_the_handle },
             { "the publisher learns of the operator's withdrawal", the_publisher_learns_of_the_operators_withdrawal },
             { "an older library is not told", an_older_library_is_not_told },
             { "an end is asked for again", an_end_is_asked_for_again })
