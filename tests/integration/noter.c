/* SPDX-License-Identifier: Apache-2.0
 * The application of the notification tests: batches of WRITEs with a notice behind them, over and over. The receiver looks
 * at the data the moment the notice is there, so data that comes after its notice is seen. Uses the public API only.
 *   noter recv NAME [-r DIR] [-f MEMFD]   publishes SLOTS slots and a word per slot; prints "got SENDER SEQ" per notice
 *   noter send REF [-r DIR] [-q BATCHES_PER_S] [-s SEED] [-m DEADLINE_MS]
 *                                         prints "ok NS", "sent SENDER SEQ" (completed), "lost SENDER SEQ" (canceled: must
 *                                         never arrive) and "maybe SENDER SEQ" (failed: may have arrived)
 * A slot is used again when the receiver wrote its answer into the slot's word, or when its batch was given up.
 * Exit 0 only when every notice had its data and no completion was missing or doubled. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tent/tent.h>

#include "tests/integration/app.h"

#define SLOTS 16u
#define PIECES 3u
#define PIECE 32768u
#define WORDS_BYTES 4096u /* of SLOTS words, in front of the slots */
#define SLOT_BYTES ((size_t)PIECES * PIECE)
#define SEGMENT_BYTES (WORDS_BYTES + SLOTS * SLOT_BYTES)
#define GIVE_UP_NS (20 * NS_PER_S) /* a completed notice that the receiver never answered: it was restarted meanwhile */
#define TAG_NOTICE 1000u
#define TAG_LOOK 2000u

struct notice { uint64_t sender, seq, slot; };

static void die(const char *what)
{
	fprintf(stderr, "noter: %s: %s\n", what, tent_last_error());
	exit(1);
}

static tent_context *attach(const char *dir)
{
	tent_options opt = TENT_OPTIONS_INIT;
	tent_context *ctx;
	opt.runtime_dir = dir;
	opt.timeout_ns = 10 * NS_PER_S;
	opt.recover_timeout_ns = 60 * NS_PER_S;
	tent_status s;
	for (uint64_t end = now_ns() + 10 * NS_PER_S; (s = tent_open(&opt, &ctx)) == TENT_DATAPLANE_DOWN && now_ns() < end;)
		usleep(5000); /* it is being restarted */
	if (s != TENT_OK)
		die("tent_open");
	return ctx;
}

static uint64_t word_of(uint64_t sender, uint64_t seq, uint64_t at)
{
	uint64_t x = (sender ^ seq * UINT64_C(0x9e3779b97f4a7c15)) + at * UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 29;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 32;
}

/* What the receiver writes when it took a notice: differs between senders, the words outlive them. */
static uint64_t answer_of(uint64_t sender, uint64_t seq) { return word_of(sender, seq, 1u << 30); }

/* ---- receiver ---- */

struct receiver {
	tent_context *ctx;
	tent_memory *mem;
	uint8_t *base;
	uint64_t notices, early, malformed;
};

static void open_memory(struct receiver *r, int memfd)
{
	uint32_t rights = TENT_RIGHT_REMOTE_READ | TENT_RIGHT_REMOTE_WRITE;
	if (memfd < 0) {
		if (tent_memory_alloc(r->ctx, SEGMENT_BYTES, rights, 0, &r->mem) != TENT_OK)
			die("tent_memory_alloc");
		r->base = tent_memory_addr(r->mem);
		return;
	}
	void *base = mmap(NULL, SEGMENT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (base == MAP_FAILED)
		die("mmap");
	r->base = base;
	if (tent_memory_register(r->ctx, memfd, 0, SEGMENT_BYTES, rights, &r->mem) != TENT_OK)
		die("tent_memory_register");
}

static void take_notice(struct receiver *r, const tent_note *note)
{
	struct notice n;
	if (note->bytes != sizeof n) {
		r->malformed++;
		return;
	}
	memcpy(&n, note->payload, sizeof n);
	if (n.slot >= SLOTS) {
		r->malformed++;
		return;
	}
	const uint64_t *at = (const uint64_t *)(const void *)(r->base + WORDS_BYTES + n.slot * SLOT_BYTES);
	bool good = true;
	for (uint64_t i = 0; i < SLOT_BYTES / 8 && good; i++)
		good = at[i] == word_of(n.sender, n.seq, i);
	if (!good) {
		r->early++;
		fprintf(stderr, "noter: NOTICE WITHOUT ITS DATA: sender %016" PRIx64 " seq %" PRIu64 "\n", n.sender, n.seq);
	}
	r->notices++;
	printf("got %016" PRIx64 " %" PRIu64 "\n", n.sender, n.seq);
	fflush(stdout);
	((volatile uint64_t *)(void *)r->base)[n.slot] = answer_of(n.sender, n.seq);
}

static int receive(tent_context *ctx, const char *name, int memfd)
{
	static tent_note note = TENT_NOTE_INIT;
	struct receiver r = { .ctx = ctx };
	tent_published *pub;
	open_memory(&r, memfd);
	tent_buffer buffer = { .memory = r.mem, .bytes = SEGMENT_BYTES };
	if (tent_segment_publish(ctx, name, &buffer, 1, NULL, &pub) != TENT_OK)
		die("tent_segment_publish");
	printf("READY\n");
	fflush(stdout);
	while (!stop) {
		tent_status s = tent_note_recv(ctx, &note, NS_PER_S / 10);
		if (s == TENT_OK)
			take_notice(&r, &note);
		else if (s != TENT_AGAIN)
			die("tent_note_recv");
	}
	printf("{\"notices\":%" PRIu64 ",\"early\":%" PRIu64 ",\"malformed\":%" PRIu64 "}\n", r.notices, r.early, r.malformed);
	tent_close(ctx);
	return r.early == 0 && r.malformed == 0 ? 0 : 1;
}

/* ---- sender ---- */

enum { FREE, SENDING, WAITING };
struct slot {
	uint64_t seq, since_ns;
	uint32_t state;
	uint32_t open;      /* bit per piece, and PIECES for the notice: terminal completion to come */
	uint32_t busy;      /* bit per piece: release to come */
	bool answered;      /* the receiver wrote our number */
};

struct sender {
	tent_context *ctx;
	tent_qp *qp;
	tent_segment *seg;
	tent_memory *mem;
	uint8_t *base;
	struct slot slots[SLOTS];
	uint64_t id, seq, pace_ns, next_ns, deadline_ns, printed_ns;
	bool looking;       /* the READ of the words is under way */
	bool look_busy;
	uint64_t sent, lost, maybe, silent, stray;
	uint64_t next_look_ns;
};

static void submit(struct sender *s, const tent_request *rq)
{
	size_t accepted;
	tent_status st;
	while ((st = tent_submit(s->qp, rq, 1, &accepted)) == TENT_AGAIN && !stop)
		;
	if (st < 0)
		die("tent_submit");
}

static void send_batch(struct sender *s, uint32_t i)
{
	struct slot *slot = &s->slots[i];
	uint64_t deadline = now_ns() + s->deadline_ns;
	*slot = (struct slot){ .seq = ++s->seq, .state = SENDING, .since_ns = now_ns(), .open = (1u << (PIECES + 1)) - 1 };
	uint64_t *at = (uint64_t *)(void *)(s->base + WORDS_BYTES + i * SLOT_BYTES);
	for (uint64_t k = 0; k < SLOT_BYTES / 8; k++)
		at[k] = word_of(s->id, slot->seq, k);
	for (uint32_t p = 0; p < PIECES; p++) {
		uint64_t off = WORDS_BYTES + i * SLOT_BYTES + p * PIECE;
		tent_request rq = { .opcode = TENT_WRITE, .memory = s->mem, .segment = s->seg, .memory_offset = off,
				    .segment_offset = off, .bytes = PIECE, .user_data = i * PIECES + p, .batch = 1 + i,
				    .deadline_ns = deadline, .flags = slot->seq % 2 ? TENT_REQUEST_AT_MOST_ONCE : 0 };
		submit(s, &rq);
	}
	struct notice n = { s->id, slot->seq, i };
	tent_status st;
	while ((st = tent_notify(s->qp, s->seg, 1 + i, &n, sizeof n, TAG_NOTICE + i, deadline)) == TENT_AGAIN && !stop)
		usleep(1000);
	if (st < 0)
		die("tent_notify");
}

/* Reads the words in which the receiver answers. */
static void look(struct sender *s)
{
	if (s->looking || s->look_busy || now_ns() < s->next_look_ns)
		return;
	tent_request rq = { .opcode = TENT_READ, .memory = s->mem, .segment = s->seg, .bytes = SLOTS * 8, .user_data = TAG_LOOK,
			    .deadline_ns = now_ns() + s->deadline_ns };
	submit(s, &rq);
	s->looking = true;
	s->next_look_ns = now_ns() + NS_PER_S / 200;
}

static void note_ok(struct sender *s)
{
	uint64_t now = now_ns();
	if (now - s->printed_ns < NS_PER_S / 100)
		return;
	printf("ok %" PRIu64 "\n", now);
	s->printed_ns = now;
}

static void notice_over(struct sender *s, struct slot *slot, const tent_completion *c)
{
	if (c->outcome == TENT_OUTCOME_COMPLETED) {
		s->sent++;
		note_ok(s);
		printf("sent %016" PRIx64 " %" PRIu64 "\n", s->id, slot->seq);
	} else if (c->outcome == TENT_OUTCOME_CANCELED) {
		s->lost++;
		printf("lost %016" PRIx64 " %" PRIu64 "\n", s->id, slot->seq);
	} else {
		s->maybe++;
		printf("maybe %016" PRIx64 " %" PRIu64 "\n", s->id, slot->seq);
	}
	fflush(stdout);
	slot->state = c->outcome == TENT_OUTCOME_COMPLETED ? WAITING : SENDING;
	slot->since_ns = now_ns();
}

static void complete(struct sender *s, const tent_completion *c)
{
	if (c->user_data == TAG_LOOK) {
		if (c->kind == TENT_COMPLETION_RELEASE) {
			s->look_busy = false;
			return;
		}
		s->looking = false;
		s->look_busy = c->memory_busy;
		for (uint32_t i = 0; i < SLOTS && c->outcome == TENT_OUTCOME_COMPLETED; i++)
			s->slots[i].answered |= ((uint64_t *)(void *)s->base)[i] == answer_of(s->id, s->slots[i].seq);
		return;
	}
	bool notice = c->user_data >= TAG_NOTICE;
	uint32_t i = (uint32_t)(notice ? c->user_data - TAG_NOTICE : c->user_data / PIECES);
	uint32_t bit = 1u << (notice ? PIECES : (uint32_t)(c->user_data % PIECES));
	struct slot *slot = &s->slots[i % SLOTS];
	if (i >= SLOTS || (c->kind == TENT_COMPLETION_RELEASE ? !(slot->busy & bit) : !(slot->open & bit))) {
		s->stray++;
		return;
	}
	if (c->kind == TENT_COMPLETION_RELEASE) {
		slot->busy &= ~bit;
		return;
	}
	slot->open &= ~bit;
	slot->busy |= c->memory_busy ? bit : 0;
	if (notice)
		notice_over(s, slot, c);
	else if (c->outcome == TENT_OUTCOME_COMPLETED)
		note_ok(s);
}

static bool is_free(struct sender *s, struct slot *slot)
{
	if (slot->state == FREE)
		return true;
	if (slot->open != 0 || slot->busy != 0)
		return false;
	bool silent = slot->state == WAITING && !slot->answered;
	if (silent && now_ns() - slot->since_ns < GIVE_UP_NS)
		return false;
	if (slot->state == SENDING && now_ns() - slot->since_ns < NS_PER_S / 2)
		return false; /* one that failed may still arrive: leave its data alone for a moment */
	s->silent += silent;
	return true;
}

static void run_sender(struct sender *s)
{
	tent_completion c[64];
	uint32_t at = 0, open = 1;
	for (uint64_t until = UINT64_MAX; (!stop || open != 0) && now_ns() < until;) {
		if (stop && until == UINT64_MAX)
			until = now_ns() + s->deadline_ns + 60 * NS_PER_S;
		for (uint32_t k = 0; !stop && k < SLOTS && now_ns() >= s->next_ns; k++, at = (at + 1) % SLOTS)
			if (is_free(s, &s->slots[at])) {
				s->next_ns = now_ns() + s->pace_ns;
				send_batch(s, at);
			}
		if (!stop)
			look(s);
		int n = tent_wait(s->qp, c, 64, NS_PER_S / 200);
		if (n < 0)
			die("tent_wait");
		for (int k = 0; k < n; k++)
			complete(s, &c[k]);
		open = s->looking + s->look_busy;
		for (uint32_t k = 0; k < SLOTS; k++)
			open += s->slots[k].open != 0 || s->slots[k].busy != 0;
	}
	uint64_t missing = open;
	printf("{\"sent\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"maybe\":%" PRIu64 ",\"silent\":%" PRIu64 ",\"stray\":%" PRIu64
	       ",\"missing\":%" PRIu64 "}\n", s->sent, s->lost, s->maybe, s->silent, s->stray, missing);
	fflush(stdout);
	if (s->stray != 0 || missing != 0 || s->sent == 0)
		exit(1);
}

static int send_all(struct sender *s, const char *ref)
{
	tent_qp_options qo = TENT_QP_OPTIONS_INIT;
	qo.depth = 128;
	tent_status st;
	for (uint64_t end = now_ns() + 20 * NS_PER_S; (st = tent_segment_open(s->ctx, ref, &s->seg)) != TENT_OK;)
		if (now_ns() > end || st == TENT_INVALID)
			die("tent_segment_open");
	if (tent_memory_alloc(s->ctx, SEGMENT_BYTES, TENT_RIGHT_LOCAL, 0, &s->mem) != TENT_OK ||
	    tent_qp_create(s->ctx, &qo, &s->qp) != TENT_OK)
		die("set-up");
	s->base = tent_memory_addr(s->mem);
	printf("RUNNING\n");
	fflush(stdout);
	run_sender(s);
	tent_qp_destroy(s->qp);
	tent_close(s->ctx);
	return 0;
}

int main(int argc, char **argv)
{
	const char *dir = NULL;
	int o, memfd = -1;
	struct sender s = { .pace_ns = NS_PER_S / 100, .deadline_ns = 20 * NS_PER_S };
	uint64_t seed = 1;
	if (argc < 3) {
		fprintf(stderr, "usage: noter recv NAME | send REF (see the head of noter.c)\n");
		return 2;
	}
	while ((o = getopt(argc - 1, argv + 1, "r:q:s:m:f:")) != -1) {
		switch (o) {
		case 'r': dir = optarg; break;
		case 'q': s.pace_ns = NS_PER_S / strtoull(optarg, NULL, 0); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'm': s.deadline_ns = strtoull(optarg, NULL, 0) * 1000000; break;
		case 'f': memfd = atoi(optarg); break;
		default: return 2;
		}
	}
	const char *name = argv[1 + optind];
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	if (name == NULL)
		return 2;
	if (strcmp(argv[1], "recv") == 0)
		return receive(attach(dir), name, memfd);
	s.id = word_of(seed, now_ns(), (uint64_t)getpid());
	s.ctx = attach(dir);
	return send_all(&s, name);
}
