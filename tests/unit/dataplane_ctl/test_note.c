/* SPDX-License-Identifier: Apache-2.0
 * Notices: delivered once, credited, refused with the right verdict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/dataplane_ctl/bench.h"
#include "common/clock.h"
#include "dataplane/segment/local.h"
#include "tests/unit/cu.h"

static struct dp_note_in *note_of(uint64_t seq, const char *from, const char *text)
{
	struct dp_note_in *n = calloc(1, sizeof *n + strlen(text));

	n->seq = seq;
	n->uid = getuid();
	(void)snprintf(n->from, sizeof n->from, "%s", from);
	n->len = (uint32_t)strlen(text);
	memcpy(n->payload, text, n->len);
	return n;
}

static tn_status deliver(struct bench *b, uint64_t token, tn_handle segment, struct dp_note_in *note)
{
	unsigned before = fake_count(1, DP_CMD_NOTE_VERDICT);

	fake_emit(1, &(struct dp_evt){ .kind = DP_EVT_NOTE, .num = token, .num2 = segment, .ptr = note });
	CU_ASSERT_TRUE(turn_until(b, fake_count(1, DP_CMD_NOTE_VERDICT) == before + 1));
	const struct dp_cmd *v = fake_last(1, DP_CMD_NOTE_VERDICT);
	CU_ASSERT_EQUAL(v->num, token);
	return v->status;
}

static void delivery_and_its_verdicts(void)
{
	static struct bench b;
	static struct shr_msg m;
	const char *const sets[] = { "limits/note_inbox=2", NULL };
	int sock, fd = memfd_of(65536, true);
	uint64_t mem, id, seq1, seq2;
	struct shr_msg_note_ack ack = { .count = 2 };

	bench_start(&b, 2, sets);
	sock = app_attach(&b);
	mem = app_register(&b, sock, fd, 65536, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL_FATAL(app_publish(&b, sock, "kv", mem, 65536, SHR_ACCESS_SAME_UID, &id), TN_OK);
	CU_ASSERT_EQUAL(deliver(&b, 1, id, note_of(64, "", "first")), TN_OK);
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	CU_ASSERT_EQUAL(m.hdr.type, SHR_MSG_NOTE);
	const struct shr_msg_note *n = shr_msg_body_ro(&m);
	CU_ASSERT_STRING_EQUAL(n->segment, "kv");
	CU_ASSERT_STRING_EQUAL(n->from, "");
	CU_ASSERT_EQUAL(n->payload_len, 5);
	CU_ASSERT_EQUAL(memcmp(n + 1, "first", 5), 0);
	seq1 = n->seq;
	CU_ASSERT_EQUAL(deliver(&b, 3, id, note_of(64, "", "")), TN_OK);
	CU_ASSERT_EQUAL(deliver(&b, 4, id, note_of(128, "", "third")), TN_LIMIT); /* two unacknowledged: full */
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	seq2 = ((const struct shr_msg_note *)shr_msg_body_ro(&m))->seq;
	CU_ASSERT_TRUE(seq2 > seq1);
	CU_ASSERT_EQUAL(shr_msg_recv(sock, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
	memcpy(shr_msg_begin(&m, SHR_MSG_NOTE_ACK, 0, sizeof ack), &ack, sizeof ack);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
	bench_turns(&b, 3);
	CU_ASSERT_EQUAL(deliver(&b, 5, id, note_of(128, "", "third")), TN_OK); /* there is room again */
	CU_ASSERT_EQUAL(deliver(&b, 6, id, note_of(64, "stranger", "x")), TN_PERMISSION);
	CU_ASSERT_EQUAL(deliver(&b, 7, id + 1, note_of(128, "", "x")), TN_STALE);
	close(sock);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	CU_ASSERT_EQUAL(deliver(&b, 8, id, note_of(192, "", "x")), TN_STALE);
	static const uint64_t counted[TN_NOTE_EVENT_CNT] = {
		[TN_NOTE_EVENT_DELIVERED] = 3, [TN_NOTE_EVENT_DROPPED_FULL] = 1, [TN_NOTE_EVENT_DROPPED_ORPHAN] = 2,
		[TN_NOTE_EVENT_DENIED] = 1,
	};
	for (unsigned e = 0; TENT_METRICS && e < TN_NOTE_EVENT_CNT; e++)
		CU_ASSERT_EQUAL(tn_load_relaxed64(&b.ctl.metrics.cells[TN_C1(NOTES_TOTAL, e).cell]), counted[e]);
	bench_stop(&b);
	close(fd);
}

static void too_many_acks_break_the_client(void)
{
	static struct bench b;
	static struct shr_msg m;
	struct shr_msg_note_ack ack = { .count = 1 };
	int sock;

	bench_start(&b, 1, NULL);
	sock = app_attach(&b);
	memcpy(shr_msg_begin(&m, SHR_MSG_NOTE_ACK, 0, sizeof ack), &ack, sizeof ack);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
	CU_ASSERT_TRUE(turn_until(&b, b.ctl.attach.clients.used == 0));
	CU_ASSERT_EQUAL(b.ctl.attach.broken_cnt, 1);
	bench_stop(&b);
	close(sock);
}

TN_TEST_MAIN("note", { "delivery and its verdicts", delivery_and_its_verdicts },
             { "too many acknowledgements break the client", too_many_acks_break_the_client })
