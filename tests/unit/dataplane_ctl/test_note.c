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

static struct dp_note_in *sent_by(uint8_t session, uint32_t peer_index, uint64_t seq)
{
	struct dp_note_in *n = note_of(seq, "host-b", "x");

	memset(n->session.b, session, sizeof n->session.b);
	n->peer_index = peer_index;
	return n;
}

/* What a peer sends again because it lost the answer is answered again, as it was, and delivered once. */
static void a_verdict_is_remembered(void)
{
	static struct bench b;
	static struct shr_msg m;
	const char *const sets[] = { "limits/note_inbox=2", NULL };
	int sock, fd = memfd_of(65536, true);
	uint64_t mem, id;
	struct shr_msg_note_ack ack = { .count = 2 };

	bench_start(&b, 2, sets);
	sock = app_attach(&b);
	mem = app_register(&b, sock, fd, 65536, SHR_RIGHT_ALL);
	CU_ASSERT_EQUAL_FATAL(app_publish(&b, sock, "kv", mem, 65536, SHR_ACCESS_PEERS, &id), TN_OK);
	CU_ASSERT_EQUAL(deliver(&b, 1, id, sent_by(1, 0, 65)), TN_OK);
	CU_ASSERT_EQUAL(deliver(&b, 2, id, sent_by(1, 0, 64)), TN_OK); /* of another worker */
	CU_ASSERT_EQUAL(deliver(&b, 3, id, sent_by(1, 0, 64)), TN_OK);
	CU_ASSERT_EQUAL(deliver(&b, 4, id, sent_by(1, 0, 128)), TN_LIMIT);
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	CU_ASSERT_EQUAL(app_recv(&b, sock, &m), TN_OK);
	CU_ASSERT_EQUAL(shr_msg_recv(sock, SHR_FROM_DATAPLANE, &m), TN_AGAIN);
	memcpy(shr_msg_begin(&m, SHR_MSG_NOTE_ACK, 0, sizeof ack), &ack, sizeof ack);
	CU_ASSERT_EQUAL(shr_msg_send(sock, &m), TN_OK);
	bench_turns(&b, 3);
	CU_ASSERT_EQUAL(deliver(&b, 5, id, sent_by(1, 0, 128)), TN_LIMIT); /* there is room now, but it was said */
	struct dp_note_in *late = sent_by(1, 0, 64);
	late->refused = TN_STALE; /* its registration is gone since: it was delivered all the same */
	CU_ASSERT_EQUAL(deliver(&b, 6, 0, late), TN_OK);
	CU_ASSERT_EQUAL(deliver(&b, 7, id, sent_by(1, 1, 64)), TN_OK); /* another peer */
	CU_ASSERT_EQUAL(deliver(&b, 8, id, sent_by(2, 0, 64)), TN_OK); /* another incarnation of it */
	CU_ASSERT_EQUAL(tn_load_relaxed64(&b.ctl.metrics.cells[TN_C1(NOTES_TOTAL, TN_NOTE_EVENT_DUPLICATE).cell]), TENT_METRICS ? 3 : 0);
	for (uint64_t i = 2; i < 2 + DP_NOTE_SEEN; i++) /* as many as are remembered: the inbox is full, and that is said */
		CU_ASSERT_EQUAL(deliver(&b, 8 + i, id, sent_by(2, 0, i << 6)), TN_LIMIT);
	CU_ASSERT_EQUAL(deliver(&b, 1000, id, sent_by(2, 0, 64)), TN_LIMIT); /* too old to be known */
	bench_stop(&b);
	close(sock);
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
             { "a verdict is remembered", a_verdict_is_remembered },
             { "too many acknowledgements break the client", too_many_acks_break_the_client })
