/* SPDX-License-Identifier: Apache-2.0
 * The worker, the judge of HELLOs and the loop of stream tests; see rig.h. */
#include "tests/unit/stream/rig.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/assert.h"
#include "common/clock.h"
#include "tests/unit/stream/mem_net.h"
#include "tests/unit/small_tables.h"

struct rig rig;

static const struct dp_transport_ops mem_ops = { .kind = TN_TRANSPORT_TCP, DP_STREAM_OPS };

/* ---- the worker's side of transport.h ---- */

void dp_attempt_done(struct dp_worker *w, struct dp_attempt *a, const struct dp_result *result)
{
	(void)w;
	struct rig_attempt *ra = tn_container_of(a, struct rig_attempt, a);
	ra->r = *result;
	ra->done = true;
	ra->done_cnt++;
}

void dp_note_done(struct dp_worker *w, struct dp_request *r, tn_status status, uint8_t phase, uint8_t reason)
{
	tn_assert(w->note_done_cnt < RIG_NOTES);
	w->note_done[w->note_done_cnt].r = r;
	w->note_done[w->note_done_cnt].status = status;
	w->note_done[w->note_done_cnt].phase = phase;
	w->note_done[w->note_done_cnt++].reason = reason;
}

const struct dp_segment *dp_worker_segment(const struct dp_worker *w, tn_handle h)
{
	for (unsigned i = 0; i < RIG_SEGMENTS; i++)
		if (w->segments[i] != NULL && w->segments[i]->handle == h)
			return w->segments[i];
	return NULL;
}

const struct dp_peer *dp_worker_peer(const struct dp_worker *w, uint32_t index) { return index == w->peer.index ? &w->peer : NULL; }

const struct dp_buffer *dp_worker_registration(const struct dp_worker *w, uint64_t registration,
					       const struct dp_segment **segment_out)
{
	for (unsigned i = 0; i < RIG_SEGMENTS; i++)
		for (uint32_t j = 0; w->segments[i] != NULL && j < w->segments[i]->buffer_cnt; j++)
			if (w->segments[i]->buffers[j].registration == registration) {
				*segment_out = w->segments[i];
				return &w->segments[i]->buffers[j];
			}
	return NULL;
}

void dp_worker_remote_refresh(struct dp_worker *w, tn_handle remote, uint64_t stale_generation)
{
	(void)remote;
	(void)stale_generation;
	w->remote_refreshes++;
}

void dp_worker_peer_refresh(struct dp_worker *w, uint32_t peer_index)
{
	(void)peer_index;
	w->peer_refreshes++;
}

void dp_worker_answered(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index)
{
	(void)kind;
	(void)peer_index;
	w->answers++;
}

tn_status dp_worker_note_in(struct dp_worker *w, uint64_t token, tn_handle segment, struct dp_note_in *note)
{
	if (w->note_in_status == TN_AGAIN)
		return TN_AGAIN;
	tn_assert(w->note_cnt < RIG_NOTES);
	struct rig_note *n = &w->notes[w->note_cnt++];
	*n = (struct rig_note){ .token = token, .seq = note->seq, .segment = segment, .len = note->len };
	memcpy(n->payload, note->payload, note->len);
	memcpy(n->from, note->from, sizeof n->from);
	n->refused = note->refused;
	if (!w->verdict_later)
		w->t->ops->note_verdict(w->t, token, n->refused != TN_OK ? n->refused : w->verdict);
	free(note);
	return TN_OK;
}

tn_status dp_worker_datagram_in(struct dp_worker *w, uint32_t peer_index, const void *bytes, uint32_t len)
{
	(void)peer_index;
	(void)bytes;
	w->datagram_cnt++;
	w->datagram_bytes += len;
	return w->datagram_in_status;
}

void dp_worker_probed(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, bool ok)
{
	(void)kind;
	(void)peer_index;
	w->probes_ok += ok;
	w->probes_failed += !ok;
}

void dp_worker_lane_state(struct dp_worker *w, enum tn_transport kind, uint32_t peer_index, bool up)
{
	(void)kind;
	(void)peer_index;
	w->lane_ups += up;
	w->lane_downs += !up;
}

tn_status dp_worker_poll_add(struct dp_worker *w, struct dp_pollable *p, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = p };
	w->polls++;
	return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, p->fd, &e) == 0 ? TN_OK : TN_SYSTEM;
}

void dp_worker_poll_mod(struct dp_worker *w, struct dp_pollable *p, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = p };
	w->polls++;
	epoll_ctl(w->epoll_fd, EPOLL_CTL_MOD, p->fd, &e);
}

void dp_worker_poll_del(struct dp_worker *w, struct dp_pollable *p)
{
	epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, p->fd, NULL);
}

uint64_t dp_worker_now(const struct dp_worker *w)
{
	(void)w;
	return (rig.virtual_time ? rig.virtual_ns : tn_now_ns()) + rig.skew_ns;
}
void dp_worker_refresh_now(struct dp_worker *w) { w->clock_reads++; }
uint32_t dp_worker_index(const struct dp_worker *w) { return w->index; }
const struct tn_config *dp_worker_config(const struct dp_worker *w) { return w->config; }
const struct tn_id128 *dp_worker_session(const struct dp_worker *w) { return &w->session; }
const struct tn_peer_id *dp_worker_self(const struct dp_worker *w) { return &w->self; }
struct tn_metrics *dp_worker_metrics(struct dp_worker *w) { return &w->metrics; }
struct tn_rand *dp_worker_rand(struct dp_worker *w) { return &w->rand; }

/* ---- life ---- */

struct dp_stream_cfg rig_cfg(void)
{
	return (struct dp_stream_cfg){
		.lanes_per_peer = 2, .frame_bytes = 16384, .peer_cnt = 1, .server_lanes = 16, .xfers = 64,
		.lane_window_bytes = 65536, .connect_timeout_ns = TN_NS_PER_S, .progress_timeout_ns = 2 * TN_NS_PER_S,
		.idle_timeout_ns = 60 * TN_NS_PER_S,
	};
}

static void worker_init(struct dp_worker *w, const char *name, uint8_t id)
{
	memset(w, 0, sizeof *w);
	w->name = name;
	memset(w->session.b, id, sizeof w->session.b);
	memset(w->self.b, id ^ 0x55, sizeof w->self.b);
	tn_rand_seed(&w->rand, id);
	w->cells = calloc(TN_METRIC_CELL_CNT, sizeof *w->cells);
	tn_metrics_bind(&w->metrics, w->cells, true);
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	w->index = 3;
}

void rig_peer_set(void)
{
	rig.a.peer.session = rig.b.session;
	rig.a.peer.ticket = rig.ticket;
	rig.a.t->ops->peer_set(rig.a.t, &rig.a.peer);
}

static void start_common(void)
{
	memset(&rig, 0, sizeof rig);
	mem_reset();
	worker_init(&rig.a, "a", 0xaa);
	worker_init(&rig.b, "b", 0xbb);
	memset(rig.ticket.b, 0x77, sizeof rig.ticket.b);
	strcpy(rig.peer_name, "host-a");
	rig.listen_fd = -1;
	rig.a.peer = (struct dp_peer){
		.id = rig.b.self, .frame_bytes = DP_FRAME_BYTES_MAX, .of[TN_TRANSPORT_TCP].cnt = 1, .name = "host-b"
	};
}

void rig_start(const struct dp_stream_cfg *cfg)
{
	struct dp_stream_cfg c = cfg != NULL ? *cfg : rig_cfg();
	start_common();
	((struct sockaddr_in *)&rig.a.peer.of[TN_TRANSPORT_TCP].at[0])->sin_port = 1;
	tn_assert(dp_stream_new(&rig.a, &mem_ops, &mem_bytes, &c, &rig.a.t) == TN_OK);
	tn_assert(dp_stream_new(&rig.b, &mem_ops, &mem_bytes, &c, &rig.b.t) == TN_OK);
	rig_peer_set();
}

static struct tn_config *load_config(const char *const *sets, size_t set_cnt)
{
	static struct tn_config_errors errors;
	static const char *const no_env[] = { NULL };
	/* an address so that the config has one peer */
	const char *all[SETS_MAX] = { SMALL_TABLES,
	                        "peers=[{\"name\":\"other\",\"address\":\"tcp://127.0.0.1:1\",\"public_key\":"
	                        "\"00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"}]" };
	struct tn_config_opts opts = { .size = sizeof opts, .sets = all, .set_cnt = sets_append(all, sets, set_cnt), .env = no_env,
	                               .default_path = "/nonexistent/tent.json" };
	struct tn_config *c = NULL;
	if (tn_config_load(&opts, &c, &errors) != TN_OK) {
		tn_config_errors_print(&errors, stderr);
		abort();
	}
	return c;
}

static void listen_b(bool ipv6)
{
	struct sockaddr_storage addr = { .ss_family = ipv6 ? AF_INET6 : AF_INET };
	socklen_t len = ipv6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	if (ipv6)
		((struct sockaddr_in6 *)&addr)->sin6_addr = in6addr_loopback;
	else
		((struct sockaddr_in *)&addr)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rig.listen_fd = socket(addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	tn_assert(bind(rig.listen_fd, (struct sockaddr *)&addr, len) == 0 && listen(rig.listen_fd, 64) == 0);
	tn_assert(getsockname(rig.listen_fd, (struct sockaddr *)&addr, &len) == 0);
	rig.a.peer.of[TN_TRANSPORT_TCP].at[0] = addr;
	tn_assert(dp_tcp_ops.create(&rig.b, &rig.b.t) == TN_OK);
}

void rig_start_kernel(bool ipv6, const char *const *sets, size_t set_cnt)
{
	start_common();
	rig.kernel = true;
	rig.a.config = load_config(sets, set_cnt);
	rig.b.config = load_config(sets, set_cnt);
	listen_b(ipv6);
	tn_assert(dp_tcp_ops.create(&rig.a, &rig.a.t) == TN_OK);
	rig_peer_set();
}

void rig_restart_b(void)
{
	bool ipv6 = rig.a.peer.of[TN_TRANSPORT_TCP].at[0].ss_family == AF_INET6;
	int old = rig.listen_fd;
	rig.b.t->ops->destroy(rig.b.t);
	rig.b.session.b[0]++;
	listen_b(ipv6); /* before the old port is free again */
	close(old);
}

static void worker_fini(struct dp_worker *w)
{
	w->t->ops->destroy(w->t);
	for (uint32_t i = 0; i < RIG_SEGMENTS; i++)
		free((void *)(uintptr_t)w->segments[i]);
	tn_config_free(w->config);
	free(w->cells);
	close(w->epoll_fd);
}

void rig_stop(void)
{
	worker_fini(&rig.a);
	worker_fini(&rig.b);
	for (uint32_t i = 0; i < rig.waiting_cnt; i++)
		close(rig.waiting[i].fd);
	if (rig.listen_fd >= 0)
		close(rig.listen_fd);
}

struct dp_stream *rig_stream(struct dp_worker *w) { return tn_container_of(w->t, struct dp_stream, base); }

/* ---- the judge ---- */

static uint16_t judge(const struct dp_hello *h)
{
	if (rig.refuse != 0)
		return rig.refuse;
	if (dp_hello_version_choose(h) == 0)
		return DP_HELLO_NO_VERSION;
	if (!tn_id128_eq(&h->receiver_session, &rig.b.session))
		return DP_HELLO_SESSION;
	return tn_id128_eq_secret(&h->ticket, &rig.ticket) ? DP_HELLO_ACCEPTED : DP_HELLO_NO_TICKET;
}

/* 0: handed over; else the answer to write before closing. */
static bool welcome(int fd, const uint8_t *bytes, uint8_t answer[static DP_HELLO_ANSWER_BYTES])
{
	struct dp_hello *h = calloc(1, sizeof *h);
	rig.hellos++;
	tn_assert(dp_hello_decode(bytes, DP_HELLO_BYTES, h) == DP_FRAME_OK);
	rig.sender = h->sender;
	uint16_t status = judge(h);
	if (status == DP_HELLO_ACCEPTED) {
		h->peer_index = rig.itself ? DP_PEER_SELF : 0;
		strcpy(h->peer_name, rig.peer_name);
		h->conn_cnt = &rig.conn_cnt;
		tn_fetch_add32(&rig.conn_cnt, 1);
		rig.b.t->ops->lane_adopt(rig.b.t, fd, h);
		return true;
	}
	rig.refused++;
	free(h);
	struct dp_hello_answer no = { .status = status };
	if (status == DP_HELLO_ADDRESS)
		memcpy(no.seen, (const uint8_t[16]){ [10] = 0xff, 0xff, 203, 0, 113, 9 }, sizeof no.seen);
	dp_hello_answer_encode(&no, answer);
	return false;
}

static uint32_t accept_mem(void)
{
	uint8_t bytes[DP_HELLO_BYTES], answer[DP_HELLO_ANSWER_BYTES];
	uint32_t work = 0;
	for (int i = 0; i < MEM_LINKS; i++) {
		struct mem_link *k = &mem.link[i];
		if (!k->used || k->accepted)
			continue;
		if (mem_waiting(i, 1) < DP_HELLO_BYTES) {
			if (k->end[0] == NULL) { /* gone before it said anything */
				k->accepted = true;
				mem_hang_up(i, 1, true);
			}
			continue;
		}
		mem_pull(i, 1, bytes, sizeof bytes);
		k->accepted = true;
		work++;
		if (!welcome(i, bytes, answer)) {
			mem_push(i, 1, answer, sizeof answer);
			mem_hang_up(i, 1, false);
		}
	}
	return work;
}

static uint32_t accept_kernel(void)
{
	uint8_t bytes[DP_HELLO_BYTES], answer[DP_HELLO_ANSWER_BYTES];
	uint32_t work = 0;
	int fd;
	while (rig.waiting_cnt < TN_ARRAY_LEN(rig.waiting) &&
	       (fd = accept4(rig.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0)
		rig.waiting[rig.waiting_cnt++].fd = fd;
	for (uint32_t i = 0; i < rig.waiting_cnt; i++) {
		fd = rig.waiting[i].fd;
		ssize_t n = recv(fd, bytes, sizeof bytes, MSG_PEEK);
		if (n < 0 && errno == EAGAIN)
			continue;
		if (n > 0 && n < (ssize_t)sizeof bytes)
			continue;
		rig.waiting[i--] = rig.waiting[--rig.waiting_cnt];
		work++;
		if (n <= 0) {
			close(fd);
			continue;
		}
		tn_assert(recv(fd, bytes, sizeof bytes, 0) == (ssize_t)sizeof bytes);
		if (!welcome(fd, bytes, answer)) {
			(void)!write(fd, answer, sizeof answer);
			close(fd);
		}
	}
	return work;
}

/* ---- the loop ---- */

static uint32_t worker_step(struct dp_worker *w)
{
	struct epoll_event ev[64];
	int n = rig.kernel ? epoll_wait(w->epoll_fd, ev, 64, 0) : 0;
	for (int i = 0; i < n; i++) {
		struct dp_pollable *p = ev[i].data.ptr;
		p->ready(p, ev[i].events);
	}
	return (n > 0 ? (uint32_t)n : 0) + w->t->ops->progress(w->t, dp_worker_now(w), 64);
}

uint32_t rig_step_worker(struct dp_worker *w)
{
	return (w == &rig.b ? accept_kernel() : 0) + worker_step(w);
}

uint32_t rig_step(void)
{
	uint32_t work = 0;
	if (!rig.kernel)
		work += mem_poll() + (rig.manual ? 0 : accept_mem());
	else
		work += accept_kernel();
	return work + worker_step(&rig.a) + worker_step(&rig.b);
}

void rig_steps(unsigned n)
{
	while (n-- > 0)
		rig_step();
}

bool rig_until(const bool *flag, unsigned limit_ms)
{
	uint64_t end = tn_now_ns() + limit_ms * TN_NS_PER_MS;
	while (!*flag && tn_now_ns() < end)
		rig_step();
	return *flag;
}

bool rig_until_count(const uint32_t *cnt, uint32_t want, unsigned limit_ms)
{
	uint64_t end = tn_now_ns() + limit_ms * TN_NS_PER_MS;
	while (*cnt < want && tn_now_ns() < end)
		rig_step();
	return *cnt >= want;
}

/* ---- objects ---- */

struct rig_memory rig_memory(size_t bytes, uint8_t fill)
{
	struct rig_memory m = { .bytes = bytes, .all = malloc(bytes + 2 * RIG_GUARD) };
	m.base = m.all + RIG_GUARD;
	memset(m.all, 0xfe, RIG_GUARD);
	memset(m.base, fill, bytes);
	memset(m.base + bytes, 0xfe, RIG_GUARD);
	return m;
}

bool rig_guards_intact(const struct rig_memory *m)
{
	for (size_t i = 0; i < RIG_GUARD; i++)
		if (m->all[i] != 0xfe || m->base[m->bytes + i] != 0xfe)
			return false;
	return true;
}

void rig_memory_free(struct rig_memory *m) { free(m->all); }

void rig_page_lose(uint8_t *page)
{
	int fd = memfd_create("lost", MFD_CLOEXEC);
	if (fd < 0 || mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		abort();
	close(fd);
}

void rig_page_find(uint8_t *page)
{
	if (mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort();
}

static uint8_t pattern_at(size_t i, uint64_t seed)
{
	uint64_t x = (i / 8 + 1) * 0x9e3779b97f4a7c15u + seed * 0xbf58476d1ce4e5b9u;
	x ^= x >> 29;
	x *= 0x94d049bb133111ebu;
	return (uint8_t)((x ^ x >> 32) >> (i % 8 * 8));
}

void rig_pattern(uint8_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = pattern_at(i, seed);
}

bool rig_pattern_is(const uint8_t *p, size_t bytes, uint64_t seed)
{
	for (size_t i = 0; i < bytes; i++)
		if (p[i] != pattern_at(i, seed))
			return false;
	return true;
}

struct dp_segment *rig_publish(struct dp_worker *w, uint32_t slot, const struct rig_memory *m, uint32_t buffers,
			       uint32_t rights, uint32_t access)
{
	static uint32_t generation;
	struct dp_segment *seg = calloc(1, sizeof *seg + buffers * sizeof seg->buffers[0]);
	seg->handle = tn_handle_make(slot, ++generation);
	seg->generation = generation;
	seg->bytes = m->bytes;
	seg->access = access;
	seg->buffer_cnt = buffers;
	for (uint32_t i = 0; i < buffers; i++) {
		size_t each = m->bytes / buffers, off = each * i;
		seg->buffers[i] = (struct dp_buffer){ .registration = 0x1000u * generation + i + 1,
						      .base = m->base + off,
						      .bytes = i + 1 < buffers ? each : m->bytes - off,
						      .segment_off = off,
						      .rights = rights };
	}
	rig_withdraw(w, slot);
	w->segments[slot] = seg;
	return seg;
}

void rig_withdraw(struct dp_worker *w, uint32_t slot)
{
	struct dp_segment *seg = (struct dp_segment *)(uintptr_t)w->segments[slot];
	w->segments[slot] = NULL;
	free(seg);
}

struct dp_remote *rig_remote(const struct dp_segment *seg)
{
	struct dp_remote *r = calloc(1, sizeof *r + seg->buffer_cnt * sizeof r->buffers[0]);
	r->handle = tn_handle_make(1, 1);
	r->session = rig.b.session;
	r->generation = seg->generation;
	r->bytes = seg->bytes;
	r->buffer_cnt = seg->buffer_cnt;
	for (uint32_t i = 0; i < seg->buffer_cnt; i++)
		r->buffers[i] = (struct dp_remote_buffer){ .registration = seg->buffers[i].registration,
							   .bytes = seg->buffers[i].bytes,
							   .segment_off = seg->buffers[i].segment_off,
							   .rights = seg->buffers[i].rights };
	return r;
}

void rig_attempt(struct rig_attempt *ra, uint8_t op, const struct dp_remote *remote, uint64_t off, uint8_t *local,
		 uint64_t bytes)
{
	*ra = (struct rig_attempt){ .a = { .op = op,
					   .kind = TN_TRANSPORT_TCP,
					   .priority = TN_PRIORITY_MEDIUM,
					   .remote = remote,
					   .remote_off = off,
					   .local = local,
					   .bytes = bytes,
					   .deadline_ns = dp_worker_now(&rig.a) + 30 * TN_NS_PER_S } };
}

tn_status rig_submit(struct rig_attempt *ra)
{
	ra->a.transport = rig.a.t;
	return rig.a.t->ops->submit(rig.a.t, &ra->a, &ra->r);
}

tn_status rig_move(uint8_t op, const struct dp_remote *remote, uint64_t off, uint8_t *local, uint64_t bytes)
{
	struct rig_attempt ra;
	rig_attempt(&ra, op, remote, off, local, bytes);
	tn_status st = rig_submit(&ra);
	if (st != TN_OK)
		return st;
	if (!rig_until(&ra.done, 10000)) {
		fprintf(stderr, "rig_move: not done after 10 s\n");
		abort();
	}
	return ra.r.status;
}

uint64_t rig_counter(const struct dp_worker *w, uint32_t cell) { return tn_load_relaxed64(&w->cells[cell]); }

uint64_t rig_protocol_errors(const struct dp_worker *w, unsigned side, enum dp_frame_error e)
{
	return rig_counter(w, TN_C3(HP_TCP_PROTOCOL_ERRORS_TOTAL, TN_STREAM_TCP, side, (unsigned)e - 1).cell);
}
