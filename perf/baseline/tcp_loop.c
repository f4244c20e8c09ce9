/* SPDX-License-Identifier: Apache-2.0
 * The yardstick of tcp: two processes, one loopback connection, a pool each; the client keeps `depth` requests
 * outstanding. Frames as large as tent's (48 bytes of request, 32 of response), payload sent from and received into the
 * pools, epoll, no framing rules, no admission, no failure handling: what plain sockets cost. The client counts. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"
#include "perf/baseline/pool.h"
#include "perf/baseline/stream.h"
#include "perf/tentbench/report.h"
#include "perf/tentbench/walk.h"

#define CONGESTION "cubic" /* tent's default; the machine's may be another */

struct request { uint64_t id, op, offset, bytes, reserved[2]; };
struct response { uint64_t id, op, bytes, reserved; };
TN_STATIC_ASSERT(sizeof(struct request) == 48 && sizeof(struct response) == 32, "as large as tent's frames");

static TN_NORETURN void die(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static void pin(const struct tb_args *a, unsigned who)
{
	cpu_set_t set;

	if (a->cpu_cnt == 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)a->cpus[who % a->cpu_cnt], &set);
	if (sched_setaffinity(0, sizeof set, &set) != 0)
		die("tcp_loop: cannot pin");
}

/* ---- server ---- */

struct server { struct tb_stream s; uint8_t *pool; };

static void *server_payload(void *ctx, const void *head)
{
	const struct server *v = ctx;
	const struct request *q = head;

	return q->op == TB_OP_WRITE ? v->pool + q->offset : NULL;
}

static uint64_t server_payload_bytes(const void *head)
{
	const struct request *q = head;

	return q->op == TB_OP_WRITE ? q->bytes : 0;
}

static void server_done(void *ctx, const void *head)
{
	struct server *v = ctx;
	const struct request *q = head;
	struct response r = { .id = q->id, .op = q->op, .bytes = q->bytes };

	tb_stream_send(&v->s, &r, v->pool + q->offset, q->op == TB_OP_READ ? q->bytes : 0);
}

static TN_NORETURN void serve(int listener, const struct tb_args *a)
{
	static const struct tb_stream_ops ops = { .head_bytes = sizeof(struct request), .payload_bytes = server_payload_bytes,
						  .payload = server_payload, .done = server_done };
	static struct server v;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin(a, 1);
	v.pool = tb_pool_map(tb_args_pool_max(a), a->hugetlb, a->seed + 1);
	int fd = v.pool == NULL ? -1 : accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		exit(EXIT_FAILURE);
	tb_stream_init(&v.s, fd, sizeof(struct response), &ops, &v);
	while (tb_stream_step(&v.s))
		;
	exit(EXIT_SUCCESS);
}

/* ---- client ---- */

struct slot { uint64_t start_ns, local; };

struct client {
	struct tb_stream s;
	const struct tb_args *a;
	const struct tb_procs *procs;
	struct tb_result *r;
	uint8_t *pool;
	struct slot slots[TB_DEPTH_MAX];
	struct tb_walk local, remote;
	struct tb_window window;
	uint64_t ops, begin_ops, lap; /* lap: operations of the first lap that are still to be started */
	uint64_t lapped[3];           /* pool bytes that each kind of operation went over, by its number */
	uint32_t outstanding;
	bool measuring, closed;
};

static void start_operation(struct client *c, uint64_t id)
{
	const struct tb_spec *s = &c->r->spec;
	struct slot *slot = &c->slots[id];
	struct request q = { .id = id, .op = s->op, .offset = tb_walk_next(&c->remote) * s->bytes, .bytes = s->bytes };

	slot->local = tb_walk_next(&c->local) * s->bytes;
	slot->start_ns = tn_now_ns();
	c->outstanding++;
	tb_stream_send(&c->s, &q, c->pool + slot->local, s->op == TB_OP_WRITE ? s->bytes : 0);
}

static void *client_payload(void *ctx, const void *head)
{
	const struct client *c = ctx;
	const struct response *r = head;

	return c->pool + c->slots[r->id].local;
}

static uint64_t client_payload_bytes(const void *head)
{
	const struct response *r = head;

	return r->op == TB_OP_READ ? r->bytes : 0;
}

static void client_done(void *ctx, const void *head)
{
	struct client *c = ctx;
	const struct response *resp = head;
	uint64_t now_ns = tn_now_ns();

	c->outstanding--;
	if (c->lap > 0) {
		c->lap--;
		start_operation(c, resp->id);
		if (c->lap == 0)
			tb_window_init(&c->window, c->a, c->r->spec.depth, now_ns);
		return;
	}
	c->ops++;
	if (c->closed)
		return;
	if (c->measuring)
		tn_loghist_add(&c->r->latency_ns, now_ns - c->slots[resp->id].start_ns);
	switch (tb_window_tick(&c->window, now_ns, c->ops)) {
	case TB_EDGE_OPEN:
		c->measuring = true;
		c->begin_ops = c->ops;
		tb_procs_sample(c->procs, &c->r->begin);
		break;
	case TB_EDGE_CLOSE:
		c->closed = true;
		tb_procs_sample(c->procs, &c->r->end);
		c->r->ops = c->ops - c->begin_ops;
		c->r->bytes = c->r->ops * c->r->spec.bytes;
		return;
	default:
		break;
	}
	start_operation(c, resp->id);
}

static void measure(struct client *c, struct tb_result *r)
{
	uint32_t blocks = (uint32_t)(r->spec.pool_bytes / r->spec.bytes);

	c->r = r;
	c->ops = c->begin_ops = 0;
	c->measuring = c->closed = false;
	if (!tb_walk_init(&c->local, blocks, c->a->seed) || !tb_walk_init(&c->remote, blocks, c->a->seed + 1))
		die("tcp_loop: blocks");
	/* Like tentbench: every block is moved once before anything is measured. The kernel fills page tables of its own. */
	c->lap = r->spec.pool_bytes > c->lapped[r->spec.op] ? blocks : 0;
	c->lapped[r->spec.op] = TN_MAX(c->lapped[r->spec.op], r->spec.pool_bytes);
	tb_window_init(&c->window, c->a, r->spec.depth, tn_now_ns());
	for (uint64_t id = 0; id < r->spec.depth; id++)
		start_operation(c, id);
	while (c->outstanding > 0)
		if (!tb_stream_step(&c->s)) {
			fprintf(stderr, "tcp_loop: the server went away\n");
			exit(EXIT_FAILURE);
		}
	r->transports = 1u << 3; /* TENT_TRANSPORT_TCP */
	tb_walk_free(&c->local);
	tb_walk_free(&c->remote);
}

static int make_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
	    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, CONGESTION, strlen(CONGESTION)) != 0)
		die("tcp_loop: socket");
	return fd; /* what accept() gives inherits both options */
}

static void run_sweep(struct client *c, struct tb_report *report)
{
	static struct tb_result result;
	const struct tb_args *a = c->a;

	for (unsigned o = 0; o < a->op_cnt; o++)
		for (unsigned d = 0; d < a->depth_cnt; d++)
			for (unsigned s = 0; s < a->size_cnt; s++) {
				result = (struct tb_result){ .spec = { .op = a->ops[o], .bytes = a->sizes[s], .depth = a->depths[d],
					.pool_bytes = tb_args_pool_bytes(a, a->sizes[s], a->depths[d]) } };
				measure(c, &result);
				tb_report_cell(report, &result);
			}
}

int main(int argc, char **argv)
{
	static const struct tb_stream_ops ops = { .head_bytes = sizeof(struct response), .payload_bytes = client_payload_bytes,
						  .payload = client_payload, .done = client_done };
	static struct client c;
	static struct tb_procs procs;
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	struct tb_report report;
	struct tb_args a;
	char err[200];
	int rc = tb_args_parse(&a, TB_TCP, argc, argv);

	if (rc >= 0)
		return rc;
	int listener = make_socket();
	if (bind(listener, (const struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1) != 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) != 0)
		die("tcp_loop: listen");
	pid_t child = fork();
	if (child == 0)
		serve(listener, &a);
	(void)close(listener);
	pin(&a, 0);
	int fd = make_socket();
	c.pool = tb_pool_map(tb_args_pool_max(&a), a.hugetlb, a.seed);
	if (child < 0 || c.pool == NULL || connect(fd, (const struct sockaddr *)&at, sizeof at) != 0)
		die("tcp_loop: connect");
	if (!tb_procs_add(&procs, getpid(), err, sizeof err) || !tb_procs_add(&procs, child, err, sizeof err)) {
		fprintf(stderr, "tcp_loop: %s\n", err);
		return EXIT_FAILURE;
	}
	tb_stream_init(&c.s, fd, sizeof(struct request), &ops, &c);
	c.a = &a;
	c.procs = &procs;
	tb_report_begin(&report, &a, &procs, NULL, argc, argv);
	run_sweep(&c, &report);
	(void)close(fd);
	(void)waitpid(child, NULL, 0);
	return tb_report_end(&report);
}
