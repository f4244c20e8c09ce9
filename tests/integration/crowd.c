/* SPDX-License-Identifier: Apache-2.0
 * Many applications in one process, for the scale tests: N attachments with Q queue pairs each, driven by one command per
 * line on stdin, each answered by one JSON line with how many went well and how long one took. Public API only.
 *   crowd RUNTIME_DIR
 *   attach N Q             N more contexts with Q queue pairs and a 64 KiB memory each
 *   publish PREFIX FROM N  segments PREFIX<i> of 4 KiB, by the contexts in turn
 *   withdraw N             the N published last
 *   find PREFIX N OF       open and close N of PREFIX0 .. PREFIX<OF-1>, spread evenly
 *   hold N                 open and keep pI/pI-kv for I in 0..N-1, by the contexts in turn
 *   keep PREFIX N          open and keep PREFIX0 .. PREFIX<N-1>, by the contexts in turn
 *   die N NAME             N children do all of the above once and are gone by SIGKILL with a READ under way
 *   read ROUNDS            every queue pair READs every kept segment of its context, ROUNDS times; contents are checked
 *   cycle N NAME           N times: attach, queue pair, memory, publish, open NAME, READ it, leave
 *   states                 how many contexts are attached, and how often they attached again in all
 *   leave N                close the N contexts that came last
 * The content of a segment follows from its name, so that every reader knows every byte. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tent/tent.h>

#include "tests/integration/app.h"
#include "tests/integration/content.h"

#define CONTEXTS_MAX 1024u
#define QPS_MAX 16u
#define HELD_MAX 32768u
#define PUBLISHED_MAX 65536u
#define MEMORY_BYTES 65536u
#define POOL_SEGMENTS 1024u /* of one memory that is published */

struct member {
	tent_context *ctx;
	tent_qp *qps[QPS_MAX];
	uint32_t qp_cnt;
	tent_memory *mem, *pool; /* pool: where what it publishes lies */
	uint32_t pool_used;
};

struct held { tent_segment *seg; uint32_t member; char name[64]; };

static const char *runtime_dir;
static struct member members[CONTEXTS_MAX];
static uint32_t member_cnt;
static struct held held[HELD_MAX];
static uint32_t held_cnt;
static tent_published *published[PUBLISHED_MAX];
static uint32_t published_cnt;

/* ---- how long it took ---- */

struct tally { uint64_t *ns; size_t cnt, cap; uint64_t failed, start_ns; };

static void tally_begin(struct tally *t) { *t = (struct tally){ .start_ns = now_ns() }; }

static bool tally_add(struct tally *t, uint64_t began_ns, tent_status s)
{
	if (t->cnt == t->cap) {
		t->cap = t->cap != 0 ? 2 * t->cap : 1024;
		t->ns = realloc(t->ns, t->cap * sizeof *t->ns);
		if (t->ns == NULL)
			abort();
	}
	if (s == TENT_OK)
		t->ns[t->cnt++] = now_ns() - began_ns;
	else if (t->failed++ < 3)
		fprintf(stderr, "crowd: %s: %s\n", tent_status_name(s), tent_last_error());
	return s == TENT_OK;
}

static int ascending(const void *a, const void *b)
{
	uint64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

static double at_us(const struct tally *t, double part)
{
	return t->cnt > 0 ? (double)t->ns[(size_t)((double)(t->cnt - 1) * part)] / 1e3 : 0;
}

static void tally_print(struct tally *t)
{
	uint64_t took = now_ns() - t->start_ns;
	if (t->cnt > 1)
		qsort(t->ns, t->cnt, sizeof *t->ns, ascending);
	printf("{\"ok\":%zu,\"failed\":%" PRIu64 ",\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f,\"seconds\":%.3f}\n", t->cnt,
	       t->failed, at_us(t, 0.5), at_us(t, 0.99), at_us(t, 1), (double)took / 1e9);
	fflush(stdout);
	free(t->ns);
}

/* ---- members ---- */

static tent_status member_open(struct member *m, uint32_t qp_cnt)
{
	tent_options opt = TENT_OPTIONS_INIT;
	tent_qp_options qo = TENT_QP_OPTIONS_INIT;
	*m = (struct member){ 0 };
	opt.runtime_dir = runtime_dir;
	opt.app_name = "crowd";
	opt.timeout_ns = 20 * NS_PER_S;
	qo.depth = 32;
	tent_status s = tent_open(&opt, &m->ctx);
	while (s == TENT_OK && m->qp_cnt < qp_cnt)
		if ((s = tent_qp_create(m->ctx, &qo, &m->qps[m->qp_cnt])) == TENT_OK)
			m->qp_cnt++;
	if (s == TENT_OK)
		s = tent_memory_alloc(m->ctx, MEMORY_BYTES, TENT_RIGHT_LOCAL | TENT_RIGHT_REMOTE_READ, 0, &m->mem);
	if (s != TENT_OK) {
		tent_close(m->ctx);
		m->ctx = NULL;
	}
	return s;
}

static tent_status publish_one(struct member *m, const char *name, tent_published **out)
{
	tent_status s = TENT_OK;
	if (m->pool == NULL || m->pool_used == POOL_SEGMENTS) {
		m->pool_used = 0;
		s = tent_memory_alloc(m->ctx, (size_t)POOL_SEGMENTS * CONTENT_BYTES, TENT_RIGHT_REMOTE_READ, 0, &m->pool);
	}
	if (s != TENT_OK)
		return s;
	tent_buffer buffer = { .memory = m->pool, .offset = (uint64_t)m->pool_used * CONTENT_BYTES, .bytes = CONTENT_BYTES };
	content_fill((uint8_t *)tent_memory_addr(m->pool) + buffer.offset, name);
	m->pool_used++;
	return tent_segment_publish(m->ctx, name, &buffer, 1, NULL, out);
}

/* READ all of `seg` into a slot of the member's memory, and look at every byte. */
static tent_status read_checked(struct member *m, tent_qp *qp, tent_segment *seg, const char *name, uint32_t slot)
{
	uint8_t *to = (uint8_t *)tent_memory_addr(m->mem) + (size_t)slot * CONTENT_BYTES;
	tent_request rq = { .opcode = TENT_READ, .memory = m->mem, .memory_offset = (uint64_t)slot * CONTENT_BYTES,
			    .segment = seg, .bytes = CONTENT_BYTES, .deadline_ns = now_ns() + 20 * NS_PER_S };
	tent_completion c;
	size_t accepted;
	memset(to, 0xee, CONTENT_BYTES);
	tent_status s = tent_submit(qp, &rq, 1, &accepted);
	int n = 0;
	while (s == TENT_OK && (n = tent_wait(qp, &c, 1, NS_PER_S)) == 0)
		;
	if (s != TENT_OK || n < 0)
		return s != TENT_OK ? s : (tent_status)n;
	if (c.outcome != TENT_OUTCOME_COMPLETED)
		return c.status;
	if (!content_is(to, name)) {
		fprintf(stderr, "crowd: WRONG BYTES in %s\n", name);
		exit(3);
	}
	return TENT_OK;
}

/* What a segment is called where it lives. */
static const char *own_name(const char *ref)
{
	const char *slash = strchr(ref, '/');
	return slash != NULL ? slash + 1 : ref;
}

/* ---- commands ---- */

static void do_attach(uint32_t cnt, uint32_t qp_cnt)
{
	struct tally t;
	tally_begin(&t);
	for (uint32_t i = 0; i < cnt && member_cnt < CONTEXTS_MAX && qp_cnt <= QPS_MAX; i++) {
		uint64_t began = now_ns();
		if (tally_add(&t, began, member_open(&members[member_cnt], qp_cnt)))
			member_cnt++;
	}
	tally_print(&t);
}

static void do_publish(const char *prefix, uint32_t from, uint32_t cnt)
{
	struct tally t;
	char name[64];
	tally_begin(&t);
	for (uint32_t i = from; i < from + cnt && published_cnt < PUBLISHED_MAX && member_cnt > 0; i++) {
		uint64_t began = now_ns();
		snprintf(name, sizeof name, "%.48s%u", prefix, i);
		if (tally_add(&t, began, publish_one(&members[i % member_cnt], name, &published[published_cnt])))
			published_cnt++;
	}
	tally_print(&t);
}

static void do_withdraw(uint32_t cnt)
{
	struct tally t;
	tally_begin(&t);
	for (; cnt > 0 && published_cnt > 0; cnt--) {
		uint64_t began = now_ns();
		tally_add(&t, began, tent_segment_withdraw(published[--published_cnt]));
	}
	tally_print(&t);
}

static void do_find(const char *prefix, uint32_t cnt, uint32_t of)
{
	struct tally t;
	char ref[64];
	tally_begin(&t);
	for (uint32_t i = 0; i < cnt && member_cnt > 0; i++) {
		tent_segment *seg;
		uint64_t began = now_ns();
		snprintf(ref, sizeof ref, "%.48s%u", prefix, (uint32_t)((uint64_t)i * of / cnt));
		if (tally_add(&t, began, tent_segment_open(members[i % member_cnt].ctx, ref, &seg)))
			(void)tent_segment_close(seg);
	}
	tally_print(&t);
}

/* NULL: one of each stand-in. */
static void do_keep(const char *prefix, uint32_t cnt)
{
	struct tally t;
	tally_begin(&t);
	for (uint32_t i = 0; i < cnt && held_cnt < HELD_MAX && member_cnt > 0; i++) {
		struct held *h = &held[held_cnt];
		char ref[128];
		h->member = i % member_cnt;
		if (prefix != NULL)
			snprintf(ref, sizeof ref, "%.48s%u", prefix, i);
		else
			snprintf(ref, sizeof ref, "p%u/p%u-kv", i, i);
		snprintf(h->name, sizeof h->name, "%.63s", own_name(ref));
		uint64_t began = now_ns();
		if (tally_add(&t, began, tent_segment_open(members[h->member].ctx, ref, &h->seg)))
			held_cnt++;
	}
	tally_print(&t);
}

static void do_read(uint32_t rounds)
{
	struct tally t;
	tally_begin(&t);
	for (uint32_t r = 0; r < rounds; r++)
		for (uint32_t i = 0; i < held_cnt; i++) {
			struct member *m = &members[held[i].member];
			for (uint32_t q = 0; q < m->qp_cnt; q++) {
				uint64_t began = now_ns();
				(void)tally_add(&t, began, read_checked(m, m->qps[q], held[i].seg, held[i].name, q));
			}
		}
	tally_print(&t);
}

static tent_status cycle_once(uint32_t i, const char *name)
{
	struct member m;
	tent_published *pub;
	tent_segment *seg;
	char own[64];
	tent_status s = member_open(&m, 1);
	if (s != TENT_OK)
		return s;
	tent_buffer buffer = { .memory = m.mem, .bytes = CONTENT_BYTES };
	snprintf(own, sizeof own, "cycle-%u", i);
	if ((s = tent_segment_publish(m.ctx, own, &buffer, 1, NULL, &pub)) == TENT_OK &&
	    (s = tent_segment_open(m.ctx, name, &seg)) == TENT_OK)
		s = read_checked(&m, m.qps[0], seg, own_name(name), 1);
	tent_close(m.ctx);
	return s;
}

static void do_cycle(uint32_t cnt, const char *name)
{
	struct tally t;
	tally_begin(&t);
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t began = now_ns();
		(void)tally_add(&t, began, cycle_once(i, name));
	}
	tally_print(&t);
}

/* In the child of a fork: never returns, never tidies up. */
_Noreturn static void die_attached(const char *name)
{
	struct member m;
	tent_published *pub;
	tent_segment *seg;
	char own[64];
	size_t accepted;
	if (member_open(&m, 2) != TENT_OK)
		_exit(1);
	tent_buffer buffer = { .memory = m.mem, .bytes = CONTENT_BYTES };
	snprintf(own, sizeof own, "dead-%d", (int)getpid());
	if (tent_segment_publish(m.ctx, own, &buffer, 1, NULL, &pub) != TENT_OK ||
	    tent_segment_open(m.ctx, name, &seg) != TENT_OK)
		_exit(1);
	tent_request rq = { .opcode = TENT_READ, .memory = m.mem, .segment = seg, .bytes = CONTENT_BYTES };
	for (int i = 0; i < 8; i++)
		(void)tent_submit(m.qps[i % 2], &rq, 1, &accepted);
	kill(getpid(), SIGKILL);
	_exit(1);
}

static void do_die(uint32_t cnt, const char *name)
{
	struct tally t;
	tally_begin(&t);
	for (uint32_t i = 0; i < cnt; i++) {
		uint64_t began = now_ns();
		int status = 0;
		pid_t pid = fork();
		if (pid == 0)
			die_attached(name);
		bool killed = pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
		(void)tally_add(&t, began, killed ? TENT_OK : TENT_SYSTEM);
	}
	tally_print(&t);
}

static void do_states(void)
{
	uint32_t attached = 0, again = 0;
	for (uint32_t i = 0; i < member_cnt; i++) {
		tent_info info = TENT_INFO_INIT;
		if (tent_query(members[i].ctx, &info) != TENT_OK)
			continue;
		attached += info.state == TENT_STATE_ATTACHED;
		again += info.reattach_count;
	}
	printf("{\"ok\":%u,\"failed\":%u,\"reattached\":%u}\n", attached, member_cnt - attached, again);
	fflush(stdout);
}

/* What a context that leaves had published or open goes with it; those commands begin anew then. */
static void do_leave(uint32_t cnt)
{
	struct tally t;
	tally_begin(&t);
	held_cnt = published_cnt = 0;
	for (; cnt > 0 && member_cnt > 0; cnt--) {
		uint64_t began = now_ns();
		tent_close(members[--member_cnt].ctx);
		(void)tally_add(&t, began, TENT_OK);
	}
	tally_print(&t);
}

static void obey(char *line)
{
	char verb[16] = "", text[64] = "";
	uint32_t a = 0, b = 0;
	if (sscanf(line, "%15s", verb) != 1)
		return;
	if (sscanf(line, "attach %u %u", &a, &b) == 2)
		do_attach(a, b);
	else if (sscanf(line, "publish %63s %u %u", text, &a, &b) == 3)
		do_publish(text, a, b);
	else if (sscanf(line, "withdraw %u", &a) == 1)
		do_withdraw(a);
	else if (sscanf(line, "find %63s %u %u", text, &a, &b) == 3)
		do_find(text, a, b);
	else if (sscanf(line, "hold %u", &a) == 1)
		do_keep(NULL, a);
	else if (sscanf(line, "keep %63s %u", text, &a) == 2)
		do_keep(text, a);
	else if (sscanf(line, "die %u %63s", &a, text) == 2)
		do_die(a, text);
	else if (sscanf(line, "read %u", &a) == 1)
		do_read(a);
	else if (sscanf(line, "cycle %u %63s", &a, text) == 2)
		do_cycle(a, text);
	else if (strcmp(verb, "states") == 0)
		do_states();
	else if (sscanf(line, "leave %u", &a) == 1)
		do_leave(a);
	else
		exit(2);
}

int main(int argc, char **argv)
{
	char line[256];
	if (argc != 2) {
		fprintf(stderr, "usage: crowd RUNTIME_DIR (see the head of crowd.c)\n");
		return 2;
	}
	runtime_dir = argv[1];
	while (fgets(line, sizeof line, stdin) != NULL)
		obey(line);
	while (member_cnt > 0)
		tent_close(members[--member_cnt].ctx);
	return 0;
}
