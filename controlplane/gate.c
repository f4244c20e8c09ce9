/* SPDX-License-Identifier: Apache-2.0
 * The only owner of how many connections come in, and of the limit of descriptors. accept4() and accept() are defined
 * here under their C names; the dynamic linker gives the libraries these instead of libc's, which cp_gate_init() checks.
 * Counting afterwards (monitors of the library) was no bound: thousands are accepted before the first event is read.
 * The table is looked through from end to end: it has hundreds of places, and a door accepts one at a time. */
#include "controlplane/gate.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/addr.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/spare_fd.h"
#include "common/units.h"
#include "controlplane/observe/http.h"

#define OWN_FDS 80u          /* of the process itself: files, sockets and pipes of the libraries, mapping files for a moment */
#define FDS_PER_PEER 8u      /* the dealer, its connection, its monitor with two ends; and those that are about to be closed */
#define LEAVING_MAX 16u      /* shut down by us and not yet closed by their library, per door */
#define HANDSHAKE_NS (CP_GATE_HANDSHAKE_MS * TN_NS_PER_MS)
#define SLACK_NS TN_NS_PER_S /* how late the library may be with ending who is silent */
#define LOG_EVERY_NS (10 * TN_NS_PER_S)
#define LOOK_EVERY_NS (5 * TN_NS_PER_MS) /* whether known ones are still there, under pressure */

int cp_gate_accept4(int listen_fd, struct sockaddr *addr, socklen_t *len, int flags) __asm__("accept4")
	__attribute__((visibility("default"), used));
int cp_gate_accept(int listen_fd, struct sockaddr *addr, socklen_t *len) __asm__("accept")
	__attribute__((visibility("default"), used));

/* What the library's CURVE server says at most to who is not let in: greeting, WELCOME, ERROR. READY comes after that and
 * is longer than the rest of this number. */
#define CURVE_STRANGER_BYTES (64u + 170u + 32u)

enum stage { FREE, FRESH, KNOWN, LEAVING };

/* An address as far as its owner cannot choose it: IPv4 whole, IPv6 its /64. On this host: the process. */
struct source { uint64_t bits[2]; };

struct entry {
	enum stage stage;
	int fd;
	ino_t inode; /* of the socket: the descriptor's number may be another's by now */
	uint64_t seq, since_ns;
	struct source from;
};

struct door {
	struct cp_gate_bounds bounds;
	int listen_fd; /* -1: closed */
	struct entry *entries;
	uint32_t entry_cnt;
	uint64_t looked_ns;
	uint64_t refused[TN_REFUSAL_CNT];  /* all of them */
	uint64_t reported[TN_REFUSAL_CNT]; /* those that the counters have */
	uint64_t logged[TN_REFUSAL_CNT], logged_ns;
	char last[TN_ADDR_TEXT]; /* address of the latest */
};

static struct {
	pthread_mutex_t lock;
	struct tn_spare_fd spare; /* given up to accept, and close, one more when there is none */
	uint64_t seq;
	struct door doors[TN_DOOR_CNT];
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER, .spare = TN_SPARE_FD_NONE };

/* ---- bounds ---- */

static struct cp_gate_bounds bounds_of(enum tn_door door, uint32_t peer_cnt)
{
	switch (door) {
	case TN_DOOR_CONTROL:
		return (struct cp_gate_bounds){ 128 + peer_cnt, 64 + peer_cnt, 64 + 4 * peer_cnt, 32 + 2 * peer_cnt,
						CURVE_STRANGER_BYTES, HANDSHAKE_NS };
	case TN_DOOR_LINK: return (struct cp_gate_bounds){ 16, 4, 16, 8, 0, HANDSHAKE_NS };
	case TN_DOOR_BUS: return (struct cp_gate_bounds){ 64, 16, 96, 48, 0, HANDSHAKE_NS };
	case TN_DOOR_HTTP:
		return (struct cp_gate_bounds){ .fresh_max = CP_HTTP_CLIENTS_MAX - LEAVING_MAX,
						.fresh_per_address = CP_HTTP_CLIENTS_MAX / 2,
						.silent_ns = CP_HTTP_CLIENT_MS * TN_NS_PER_MS };
	case TN_DOOR_CNT: break;
	}
	return (struct cp_gate_bounds){ 0 };
}

static uint32_t places(const struct cp_gate_bounds *b)
{
	return b->fresh_max + b->known_max + LEAVING_MAX;
}

static tn_status limit_raise(uint64_t need, uint32_t peer_cnt, char *err, size_t n)
{
	struct rlimit fds;
	if (getrlimit(RLIMIT_NOFILE, &fds) != 0) {
		snprintf(err, n, "cannot read the limit of open files: %s", strerror(errno));
		return TN_SYSTEM;
	}
	fds.rlim_cur = fds.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &fds);
	if (fds.rlim_max >= need)
		return TN_OK;
	snprintf(err, n, "the limit of open files (RLIMIT_NOFILE) is %" PRIu64 "; %u peer%s and the bounds of the doors need %" PRIu64
		 ": raise it with ulimit -n %" PRIu64 ", or LimitNOFILE= in the unit",
		 (uint64_t)fds.rlim_max, peer_cnt, tn_plural(peer_cnt), need, need);
	return TN_LIMIT;
}

static tn_status door_bound(struct door *d, const struct cp_gate_bounds *b)
{
	struct entry *entries = calloc(places(b), sizeof *entries);
	if (entries == NULL)
		return TN_NO_MEMORY;
	free(d->entries);
	d->entries = entries;
	d->entry_cnt = places(b);
	d->bounds = *b;
	return TN_OK;
}

tn_status cp_gate_init(uint32_t peer_cnt, char *err, size_t err_bytes)
{
	uint64_t need = OWN_FDS + (uint64_t)FDS_PER_PEER * peer_cnt;
	if (dlsym(RTLD_DEFAULT, "accept4") != (void *)cp_gate_accept4 || dlsym(RTLD_DEFAULT, "accept") != (void *)cp_gate_accept) {
		snprintf(err, err_bytes, "accept4() of this process is not the control plane's own: connections would not be "
			 "bounded (is another library preloaded?)");
		return TN_SYSTEM;
	}
	for (unsigned i = 0; i < TN_DOOR_CNT; i++) {
		struct cp_gate_bounds b = bounds_of(i, peer_cnt);
		gate.doors[i].listen_fd = -1;
		if (door_bound(&gate.doors[i], &b) != TN_OK) {
			snprintf(err, err_bytes, "no memory");
			return TN_NO_MEMORY;
		}
		need += places(&b);
	}
	tn_status s = limit_raise(need, peer_cnt, err, err_bytes);
	if (s != TN_OK)
		return s;
	(void)tn_spare_fd_keep(&gate.spare);
	return TN_OK;
}

void cp_gate_fini(void)
{
	pthread_mutex_lock(&gate.lock);
	for (unsigned i = 0; i < TN_DOOR_CNT; i++) {
		free(gate.doors[i].entries);
		gate.doors[i] = (struct door){ .listen_fd = -1 };
	}
	(void)tn_spare_fd_give(&gate.spare);
	pthread_mutex_unlock(&gate.lock);
}

void cp_gate_bound(enum tn_door door, const struct cp_gate_bounds *bounds)
{
	pthread_mutex_lock(&gate.lock);
	(void)door_bound(&gate.doors[door], bounds);
	pthread_mutex_unlock(&gate.lock);
}

void cp_gate_open(enum tn_door door, int listen_fd)
{
	pthread_mutex_lock(&gate.lock);
	gate.doors[door].listen_fd = listen_fd;
	pthread_mutex_unlock(&gate.lock);
}

/* ---- who is inside; the lock is held ---- */

static bool still_there(const struct entry *e)
{
	struct stat st;
	return fstat(e->fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == e->inode;
}

/* It is still there. */
static bool showed(const struct door *d, const struct entry *e, uint64_t now_ns)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof info;
	if (d->bounds.known_max == 0)
		return false;
	if (now_ns - e->since_ns >= d->bounds.silent_ns + SLACK_NS)
		return true;
	return d->bounds.stranger_bytes != 0 && getsockopt(e->fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_bytes_acked > d->bounds.stranger_bytes;
}

/* Its descriptor is another's or nobody's: the library ended it, or it went by itself. */
static void forget(struct door *d, struct entry *e, uint64_t now_ns)
{
	bool silent = now_ns - e->since_ns >= d->bounds.silent_ns;
	if (e->stage == FRESH && silent && (d->bounds.stranger_bytes != 0 || d->bounds.known_max == 0))
		d->refused[TN_REFUSAL_SILENT]++;
	else if (e->stage == FRESH && d->bounds.stranger_bytes != 0)
		d->refused[TN_REFUSAL_STRANGER]++;
	e->stage = FREE;
}

static void look(struct door *d, bool also_known, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->entry_cnt; i++) {
		struct entry *e = &d->entries[i];
		if (e->stage == FREE || (e->stage == KNOWN && !also_known))
			continue;
		if (!still_there(e))
			forget(d, e, now_ns);
		else if (e->stage == FRESH && showed(d, e, now_ns))
			e->stage = KNOWN;
	}
}

static bool same_source(const struct source *a, const struct source *b)
{
	return a->bits[0] == b->bits[0] && a->bits[1] == b->bits[1];
}

static struct source source_of(int fd, const struct tn_addr *addr)
{
	struct source s = { { 0 } };
	struct ucred who;
	socklen_t len = sizeof who;
	if (addr->ss.ss_family == AF_INET) {
		s.bits[0] = 1;
		s.bits[1] = ((const struct sockaddr_in *)(const void *)&addr->ss)->sin_addr.s_addr;
	} else if (addr->ss.ss_family == AF_INET6) {
		const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)&addr->ss)->sin6_addr;
		memcpy(s.bits, a, IN6_IS_ADDR_LINKLOCAL(a) || IN6_IS_ADDR_LOOPBACK(a) ? 16 : 8);
	} else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0) {
		s.bits[0] = 2;
		s.bits[1] = (uint64_t)who.pid;
	}
	return s;
}

struct census {
	uint32_t fresh, fresh_same, known, known_same;
	struct entry *oldest, *oldest_same, *free;
};

static void take_census(struct door *d, const struct source *from, struct census *out)
{
	*out = (struct census){ 0 };
	for (uint32_t i = 0; i < d->entry_cnt; i++) {
		struct entry *e = &d->entries[i];
		bool same = same_source(&e->from, from);
		if (e->stage == FREE)
			out->free = e;
		if (e->stage == KNOWN) {
			out->known++;
			out->known_same += same;
		}
		if (e->stage != FRESH)
			continue;
		out->fresh++;
		out->fresh_same += same;
		if (out->oldest == NULL || e->seq < out->oldest->seq)
			out->oldest = e;
		if (same && (out->oldest_same == NULL || e->seq < out->oldest_same->seq))
			out->oldest_same = e;
	}
}

static bool over(uint32_t cnt, uint32_t max)
{
	return max != 0 && cnt >= max;
}

static bool is_full(const struct door *d, const struct census *c)
{
	return over(c->known, d->bounds.known_max) || over(c->known_same, d->bounds.known_per_address) || c->free == NULL;
}

/* Its library sees the end of it, and closes: only the library may close its descriptor. That is the thread that accepts
 * for this door, so the descriptor cannot change its meaning meanwhile. */
static void evict(struct door *d, struct entry *e)
{
	(void)shutdown(e->fd, SHUT_RDWR);
	e->stage = LEAVING;
	d->refused[TN_REFUSAL_CROWDED]++;
}

/* Makes room among the fresh. False: there is none for this one. */
static bool make_room(struct door *d, const struct source *from, uint64_t now_ns, struct census *c)
{
	for (;;) {
		take_census(d, from, c);
		struct entry *e = over(c->fresh_same, d->bounds.fresh_per_address) ? c->oldest_same :
				  over(c->fresh, d->bounds.fresh_max) ? c->oldest : NULL;
		if (e == NULL || is_full(d, c))
			return !is_full(d, c);
		if (!still_there(e))
			forget(d, e, now_ns);
		else if (showed(d, e, now_ns))
			e->stage = KNOWN;
		else
			evict(d, e);
	}
}

static bool admit(struct door *d, int fd, const struct source *from)
{
	struct stat st;
	struct census c;
	uint64_t now_ns = tn_now_ns();
	bool room = make_room(d, from, now_ns, &c);
	if (!room && now_ns - d->looked_ns >= LOOK_EVERY_NS) {
		d->looked_ns = now_ns;
		look(d, true, now_ns);
		room = make_room(d, from, now_ns, &c);
	}
	if (!room || fstat(fd, &st) != 0)
		return false;
	*c.free = (struct entry){ .stage = FRESH, .fd = fd, .inode = st.st_ino, .seq = ++gate.seq, .since_ns = now_ns,
				  .from = *from };
	return true;
}

static struct door *door_of(int listen_fd)
{
	for (unsigned i = 0; i < TN_DOOR_CNT; i++)
		if (gate.doors[i].listen_fd == listen_fd && listen_fd >= 0)
			return &gate.doors[i];
	return NULL;
}

/* ---- accept ---- */

/* No descriptor is left, for whatever reason. One connection is taken with the spare one and closed, or the listener
 * would stay readable and its thread would spin. */
static void shed(struct door *d, int listen_fd)
{
	if (tn_spare_fd_give(&gate.spare)) {
		int fd = (int)syscall(SYS_accept4, listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			close(fd);
	}
	(void)tn_spare_fd_keep(&gate.spare);
	d->refused[TN_REFUSAL_DESCRIPTORS]++;
}

/* A new connection that may stay, or -1 and *err_out. */
static int take(struct door *d, int listen_fd, int flags, struct sockaddr_storage *ss, socklen_t *ss_len, int *err_out)
{
	struct pollfd ready = { .fd = listen_fd, .events = POLLIN };
	struct tn_addr addr = { .len = 0 };
	*err_out = EAGAIN;
	if (poll(&ready, 1, 0) != 1) /* the lock is held: never wait */
		return -1;
	int fd = (int)syscall(SYS_accept4, listen_fd, ss, ss_len, flags);
	*err_out = errno;
	if (fd < 0 && (*err_out == EMFILE || *err_out == ENFILE)) {
		shed(d, listen_fd);
		*err_out = ECONNABORTED;
	}
	if (fd < 0)
		return -1;
	bool remote = tn_addr_from_sockaddr((const struct sockaddr *)ss, *ss_len, &addr) == TN_OK;
	struct source from = source_of(fd, &addr);
	uint64_t crowded = d->refused[TN_REFUSAL_CROWDED];
	if (!admit(d, fd, &from)) {
		d->refused[TN_REFUSAL_CROWDED]++;
		close(fd);
		*err_out = ECONNABORTED;
		fd = -1;
	}
	if (remote && d->refused[TN_REFUSAL_CROWDED] != crowded)
		(void)tn_addr_format_host(&addr, d->last);
	return fd;
}

/* Each library takes ECONNABORTED for what it is: that one is gone, come again. Never waits. */
int cp_gate_accept4(int listen_fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t ss_len = sizeof ss;
	int err = EAGAIN;

	pthread_mutex_lock(&gate.lock);
	struct door *d = door_of(listen_fd);
	int fd = d == NULL ? -1 : take(d, listen_fd, flags, &ss, &ss_len, &err);
	pthread_mutex_unlock(&gate.lock);
	if (fd < 0) {
		errno = err;
		return -1;
	}
	if (addr != NULL && len != NULL) {
		memcpy(addr, &ss, TN_MIN(*len, ss_len));
		*len = ss_len;
	}
	return fd;
}

int cp_gate_accept(int listen_fd, struct sockaddr *addr, socklen_t *len)
{
	return cp_gate_accept4(listen_fd, addr, len, 0);
}

/* ---- numbers ---- */

static const char *const door_texts[TN_DOOR_CNT] = { "control/bind", "link.ipc", "bus.ipc", "metrics/http_port" };

static void report_line(enum tn_door door, const uint64_t n[TN_REFUSAL_CNT], const struct cp_gate_bounds *b, const char *last)
{
	tn_log_warn("door", "%s: closed unheard: %" PRIu64 " because too many were open at once (at most %u that have not shown who "
		    "they are, %u that have), %" PRIu64 " because no descriptor was left, %" PRIu64 " strangers, %" PRIu64
		    " silent%s%s", door_texts[door], n[TN_REFUSAL_CROWDED], b->fresh_max, b->known_max,
		    n[TN_REFUSAL_DESCRIPTORS], n[TN_REFUSAL_STRANGER], n[TN_REFUSAL_SILENT],
		    last[0] != '\0' ? "; the latest newcomer was from " : "", last);
}

void cp_gate_report(const struct tn_metrics *m, uint64_t now_ns)
{
	for (unsigned i = 0; i < TN_DOOR_CNT; i++) {
		struct door *d = &gate.doors[i];
		uint64_t add[TN_REFUSAL_CNT], since[TN_REFUSAL_CNT], sum = 0;
		char last[TN_ADDR_TEXT];
		pthread_mutex_lock(&gate.lock);
		look(d, false, tn_now_ns()); /* not before the latest came */
		memcpy(last, d->last, sizeof last);
		for (unsigned r = 0; r < TN_REFUSAL_CNT; r++) {
			add[r] = d->refused[r] - d->reported[r];
			since[r] = d->refused[r] - d->logged[r];
			d->reported[r] = d->refused[r];
			sum += since[r];
		}
		bool tell = sum != 0 && (d->logged_ns == 0 || now_ns - d->logged_ns >= LOG_EVERY_NS);
		if (tell) {
			memcpy(d->logged, d->refused, sizeof d->logged);
			d->logged_ns = now_ns;
		}
		pthread_mutex_unlock(&gate.lock);
		for (unsigned r = 0; r < TN_REFUSAL_CNT; r++)
			if (add[r] != 0)
				tn_counter_add(m, TN_C2(CONNECTIONS_REFUSED_TOTAL, i, r), add[r]);
		if (tell)
			report_line(i, since, &d->bounds, last);
	}
}
