/* SPDX-License-Identifier: Apache-2.0
 * Links in memory; see mem_net.h. */
#include "tests/unit/stream/mem_net.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct mem_net mem;

static uint32_t pipe_used(const struct mem_pipe *p) { return p->wr - p->rd; }

static uint32_t pipe_room(const struct mem_pipe *p)
{
	uint32_t cap = mem.pipe_max > 0 ? (uint32_t)mem.pipe_max : MEM_PIPE_BYTES;
	return pipe_used(p) < cap ? cap - pipe_used(p) : 0;
}

void mem_reset(void)
{
	for (int i = 0; i < MEM_LINKS; i++)
		mem.link[i].used = false;
	mem.read_max = mem.write_max = mem.pipe_max = 0;
	mem.refuse = mem.connects = mem.calls = 0;
	mem.stall[0] = mem.stall[1] = false;
	mem.bad = NULL;
}

static int link_new(void)
{
	for (int i = 0; i < MEM_LINKS; i++) {
		struct mem_link *k = &mem.link[i];
		if (k->used)
			continue;
		for (int e = 0; e < 2; e++) {
			k->pipe[e].rd = k->pipe[e].wr = 0;
			k->pipe[e].fin = k->pipe[e].rst = false;
			k->end[e] = NULL;
			k->events[e] = 0;
			k->wants_out[e] = false;
		}
		k->used = true;
		k->accepted = false;
		return i;
	}
	abort();
}

static struct mem_link *link_of(const struct dp_bytes *b, int *end_out)
{
	struct mem_link *k = b->conn;
	*end_out = k->end[1] == b;
	return k;
}

static tn_status mem_open_provider(struct dp_worker *w, void **out)
{
	(void)w;
	*out = &mem;
	return TN_OK;
}

static void mem_shut(void *provider) { (void)provider; }

static tn_status mem_connect(void *provider, struct dp_bytes *b, const struct sockaddr_storage *to, bool urgent)
{
	(void)provider;
	(void)urgent;
	mem.connects++;
	if (mem.refuse > 0) {
		mem.refuse--;
		return TN_PATH_DOWN;
	}
	struct mem_link *k = &mem.link[link_new()];
	k->end[0] = b;
	k->port = ((const struct sockaddr_in *)to)->sin_port;
	k->events[0] = EPOLLOUT;
	b->conn = k;
	return TN_OK;
}

static tn_status mem_connected(struct dp_bytes *b)
{
	int e;
	return link_of(b, &e)->pipe[1 - e].rst ? TN_PATH_DOWN : TN_OK;
}

static tn_status mem_adopt(void *provider, struct dp_bytes *b, int fd, bool urgent)
{
	(void)provider;
	(void)urgent;
	struct mem_link *k = &mem.link[fd];
	k->end[1] = b;
	k->accepted = true;
	b->conn = k;
	k->events[1] |= EPOLLIN | EPOLLOUT;
	return TN_OK;
}

/* The kernel moves bytes in chunks that know nothing of the entries; one with a bad page in it moves not at all. So how
 * many of `max` bytes move: all, or the whole chunks in front of the bad one. */
static size_t good_bytes(const struct iovec *iov, uint32_t cnt, size_t max)
{
	for (size_t off = 0; cnt > 0 && off < max; off += iov->iov_len, iov++, cnt--) {
		const uint8_t *p = iov->iov_base;
		size_t len = iov->iov_len < max - off ? iov->iov_len : max - off;
		if (mem.bad != NULL && p <= mem.bad && mem.bad < p + len)
			return (off + (size_t)(mem.bad - p)) / MEM_CHUNK_BYTES * MEM_CHUNK_BYTES;
	}
	return max;
}

static tn_status mem_readv(struct dp_bytes *b, const struct iovec *iov, uint32_t cnt, size_t *moved_out)
{
	int e;
	struct mem_link *k = link_of(b, &e);
	struct mem_pipe *p = &k->pipe[1 - e];
	size_t moved = 0, max = mem.read_max > 0 ? mem.read_max : SIZE_MAX;
	mem.calls++;
	if (p->rst)
		return TN_PATH_DOWN;
	if (mem.stall[e])
		return TN_AGAIN;
	max = max < pipe_used(p) ? max : pipe_used(p);
	size_t good = good_bytes(iov, cnt, max);
	if (max > 0 && good == 0)
		return TN_FAULT;
	for (uint32_t i = 0; i < cnt && moved < good; i++) {
		size_t n = iov[i].iov_len < good - moved ? iov[i].iov_len : good - moved;
		for (size_t j = 0; j < n; j++)
			((uint8_t *)iov[i].iov_base)[j] = p->data[p->rd++ % MEM_PIPE_BYTES];
		moved += n;
	}
	if (moved == 0)
		return p->fin && pipe_used(p) == 0 ? TN_CLOSED : TN_AGAIN;
	if (pipe_used(p) > 0)
		k->events[e] |= EPOLLIN; /* a cut read: more is there, the provider must call again */
	if (k->wants_out[1 - e]) {
		k->wants_out[1 - e] = false;
		k->events[1 - e] |= EPOLLOUT;
	}
	*moved_out = moved;
	return TN_OK;
}

static tn_status mem_writev(struct dp_bytes *b, const struct iovec *iov, uint32_t cnt, size_t *moved_out)
{
	int e;
	struct mem_link *k = link_of(b, &e);
	struct mem_pipe *p = &k->pipe[e];
	size_t moved = 0, asked = 0, max = mem.write_max > 0 ? mem.write_max : SIZE_MAX;
	mem.calls++;
	if (k->pipe[1 - e].rst || p->rst)
		return TN_PATH_DOWN;
	for (uint32_t i = 0; i < cnt; i++)
		asked += iov[i].iov_len;
	max = mem.stall[e] ? 0 : max < pipe_room(p) ? max : pipe_room(p);
	size_t good = good_bytes(iov, cnt, max);
	if (max > 0 && good == 0)
		return TN_FAULT;
	for (uint32_t i = 0; i < cnt && moved < good; i++) {
		size_t n = iov[i].iov_len < good - moved ? iov[i].iov_len : good - moved;
		for (size_t j = 0; j < n; j++)
			p->data[p->wr++ % MEM_PIPE_BYTES] = ((const uint8_t *)iov[i].iov_base)[j];
		moved += n;
	}
	if (moved > 0)
		k->events[1 - e] |= EPOLLIN;
	if (moved < asked) {
		if (pipe_room(p) > 0)
			k->events[e] |= EPOLLOUT;
		else
			k->wants_out[e] = true;
	}
	*moved_out = moved;
	return moved > 0 ? TN_OK : TN_AGAIN;
}

static void mem_close(struct dp_bytes *b, bool rst)
{
	if (b->conn == NULL)
		return;
	int e;
	struct mem_link *k = link_of(b, &e);
	k->end[e] = NULL;
	k->events[e] = 0;
	b->conn = NULL;
	mem_hang_up((int)(k - mem.link), e, rst);
}

static bool mem_info(const struct dp_bytes *b, struct dp_bytes_info *out)
{
	(void)b;
	*out = (struct dp_bytes_info){ .retrans_total = 3, .srtt_ns = 1500, .cwnd_segments = 10 };
	return true;
}

const struct dp_bytes_ops mem_bytes = {
	.open = mem_open_provider,
	.shut = mem_shut,
	.connect = mem_connect,
	.connected = mem_connected,
	.adopt = mem_adopt,
	.readv = mem_readv,
	.writev = mem_writev,
	.close = mem_close,
	.info = mem_info,
};

uint32_t mem_poll(void)
{
	uint32_t cnt = 0;
	for (int i = 0; i < MEM_LINKS; i++)
		for (int e = 0; e < 2; e++) {
			struct mem_link *k = &mem.link[i];
			uint32_t events = k->events[e];
			if (!k->used || k->end[e] == NULL || events == 0 || mem.stall[e])
				continue;
			k->events[e] = 0;
			cnt++;
			k->end[e]->poll.ready(&k->end[e]->poll, events);
		}
	return cnt;
}

size_t mem_push(int link, int end, const void *bytes, size_t len)
{
	struct mem_link *k = &mem.link[link];
	struct mem_pipe *p = &k->pipe[end];
	size_t n = len < MEM_PIPE_BYTES - pipe_used(p) ? len : MEM_PIPE_BYTES - pipe_used(p);
	for (size_t j = 0; j < n; j++)
		p->data[p->wr++ % MEM_PIPE_BYTES] = ((const uint8_t *)bytes)[j];
	k->events[1 - end] |= EPOLLIN;
	return n;
}

size_t mem_pull(int link, int end, void *bytes, size_t len)
{
	struct mem_link *k = &mem.link[link];
	struct mem_pipe *p = &k->pipe[1 - end];
	size_t n = len < pipe_used(p) ? len : pipe_used(p);
	for (size_t j = 0; j < n; j++)
		((uint8_t *)bytes)[j] = p->data[p->rd++ % MEM_PIPE_BYTES];
	if (n > 0 && k->wants_out[1 - end]) {
		k->wants_out[1 - end] = false;
		k->events[1 - end] |= EPOLLOUT;
	}
	return n;
}

size_t mem_waiting(int link, int end) { return pipe_used(&mem.link[link].pipe[1 - end]); }

void mem_hang_up(int link, int end, bool rst)
{
	struct mem_link *k = &mem.link[link];
	struct mem_pipe *p = &k->pipe[end];
	if (rst) {
		p->rst = true;
		p->rd = p->wr;
	}
	p->fin = true;
	k->events[1 - end] |= EPOLLRDHUP | (rst ? EPOLLHUP | EPOLLERR : 0);
	if (k->end[0] == NULL && k->end[1] == NULL && (k->accepted || rst))
		k->used = false;
}

bool mem_is_open(int link, int end) { return mem.link[link].used && mem.link[link].end[end] != NULL; }

int mem_open(void)
{
	int i = link_new();
	mem.link[i].accepted = true;
	return i;
}

int mem_next_unaccepted(void)
{
	for (int i = 0; i < MEM_LINKS; i++)
		if (mem.link[i].used && !mem.link[i].accepted)
			return i;
	return -1;
}
