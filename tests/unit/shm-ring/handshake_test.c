/* SPDX-License-Identifier: Apache-2.0
 * Messages over a real socket pair: descriptors arrive once and never leak, hang-up and deadlines are told apart. */
#include "shm-ring/handshake.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "shm-ring/lease.h"
#include "tests/unit/shm-ring/fixture.h"

static struct shr_msg out, in;

static void pair(int s[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s) != 0)
		abort();
}

static unsigned open_fds(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

static void register_with(int fd)
{
	struct shr_msg_mem_register *r = shr_msg_begin(&out, SHR_MSG_MEM_REGISTER, 3, sizeof *r);
	r->length = 4096;
	out.fds[0] = fd;
	out.fd_cnt = 1;
}

static void descriptors_travel(void)
{
	int s[2], p[2];
	pair(s);
	if (pipe(p) != 0)
		abort();
	unsigned before = open_fds();
	register_with(p[1]);
	CU_ASSERT_EQUAL(shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in), TN_AGAIN);
	CU_ASSERT_EQUAL(shr_msg_send(s[0], &out), TN_OK);
	CU_ASSERT_EQUAL_FATAL(shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in), TN_OK);
	CU_ASSERT(in.fd_cnt == 1 && in.fds[0] >= 0 && in.len == out.len);
	CU_ASSERT_EQUAL(fcntl(in.fds[0], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	const struct shr_msg_mem_register *r = shr_msg_body_ro(&in);
	CU_ASSERT_EQUAL(r->length, 4096);
	char c = 'x';
	CU_ASSERT_EQUAL(write(in.fds[0], &c, 1), 1);
	CU_ASSERT_EQUAL(read(p[0], &c, 1), 1);
	shr_msg_close_fds(&in);
	shr_msg_close_fds(&in);
	CU_ASSERT_EQUAL(open_fds(), before);
	close(p[0]);
	close(p[1]);
	close(s[0]);
	close(s[1]);
}

/* Sends `len` bytes of a REGISTER with `cnt` copies of one descriptor, past our own sender's checks. */
static void send_raw(int sock, const void *bytes, size_t len, unsigned cnt)
{
	union { struct cmsghdr align; char b[CMSG_SPACE(64 * sizeof(int))]; } ctl;
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	memset(&ctl, 0, sizeof ctl);
	if (cnt != 0) {
		mh.msg_control = ctl.b;
		mh.msg_controllen = CMSG_SPACE(cnt * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
		for (unsigned i = 0; i < cnt; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &(int){ 1 }, sizeof(int));
	}
	if (sendmsg(sock, &mh, 0) < 0)
		abort();
}

static void surplus_descriptors_do_not_leak(void)
{
	int s[2];
	pair(s);
	unsigned before = open_fds();
	register_with(-1);
	static const unsigned counts[] = { 0, 2, 3, 8, 9, 64 };
	for (size_t i = 0; i < TN_ARRAY_LEN(counts); i++) {
		send_raw(s[0], out.bytes, out.len, counts[i]);
		CU_ASSERT_EQUAL(shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in), TN_CLIENT_BROKEN);
		CU_ASSERT_EQUAL(open_fds(), before);
	}
	send_raw(s[0], "garbage", 7, 1);
	CU_ASSERT_EQUAL(shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in), TN_CLIENT_BROKEN);
	static char huge[SHR_MSG_MAX + 100];
	memcpy(huge, out.bytes, out.len);
	send_raw(s[0], huge, sizeof huge, 1);
	CU_ASSERT_EQUAL(shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in), TN_CLIENT_BROKEN);
	CU_ASSERT_EQUAL(open_fds(), before);
	close(s[0]);
	close(s[1]);
}

static void full_descriptor_table_is_our_limit(void)
{
	int s[2];
	pair(s);
	register_with(1);
	CU_ASSERT_EQUAL(shr_msg_send(s[0], &out), TN_OK);
	struct rlimit old, low;
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = 3; /* stdin, stdout, stderr: the rest is over the limit already */
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &low), 0);
	tn_status st = shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &old), 0);
	CU_ASSERT_EQUAL(st, TN_LIMIT);
	close(s[0]);
	close(s[1]);
}

static void hang_up_and_full_queue(void)
{
	int s[2];
	pair(s);
	(void)shr_msg_begin(&out, SHR_MSG_BYE, 1, 0);
	unsigned sent = 0;
	tn_status st;
	while ((st = shr_msg_send(s[0], &out)) == TN_OK && sent < 100000)
		sent++;
	CU_ASSERT_EQUAL(st, TN_AGAIN);
	uint64_t start = tn_now_ns();
	CU_ASSERT_EQUAL(shr_msg_send_until(s[0], &out, start + 50 * TN_NS_PER_MS), TN_TIMEOUT);
	CU_ASSERT(tn_now_ns() - start >= 50 * TN_NS_PER_MS);
	close(s[0]);
	for (unsigned i = 0; i < sent; i++)
		CU_ASSERT_EQUAL_FATAL(shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in), TN_OK);
	CU_ASSERT_EQUAL(shr_msg_recv(s[1], SHR_FROM_APPLICATION, &in), TN_PATH_DOWN);
	CU_ASSERT_EQUAL(shr_msg_send(s[1], &out), TN_PATH_DOWN);
	close(s[1]);
}

static void receive_deadline(void)
{
	int s[2];
	pair(s);
	uint64_t start = tn_now_ns();
	CU_ASSERT_EQUAL(shr_msg_recv_until(s[1], SHR_FROM_DATAPLANE, &in, start + 30 * TN_NS_PER_MS), TN_TIMEOUT);
	CU_ASSERT(tn_now_ns() - start >= 30 * TN_NS_PER_MS);
	(void)shr_msg_begin(&out, SHR_MSG_SHUTDOWN, 0, 0);
	CU_ASSERT_EQUAL(shr_msg_send_until(s[0], &out, tn_now_ns() + TN_NS_PER_S), TN_OK);
	CU_ASSERT_EQUAL(shr_msg_recv_until(s[1], SHR_FROM_DATAPLANE, &in, tn_now_ns() + TN_NS_PER_S), TN_OK);
	close(s[0]);
	CU_ASSERT_EQUAL(shr_msg_recv_until(s[1], SHR_FROM_DATAPLANE, &in, tn_now_ns() + TN_NS_PER_S), TN_PATH_DOWN);
	close(s[1]);
}

static void connects_by_name(void)
{
	struct fx_dir d;
	char path[FX_PATH];
	int listener = -1, sock = -1;
	struct shr_published p;
	struct shr_peer_cred cred;
	fx_dir_make(&d);
	fx_path(&d, "attach.sock", path);
	uint64_t soon = tn_now_ns() + TN_NS_PER_S;
	CU_ASSERT_EQUAL(shr_attach_connect(path, soon, &sock), TN_DATAPLANE_DOWN);
	CU_ASSERT_EQUAL_FATAL(shr_publish_socket(path, SOCK_SEQPACKET, 0600, &listener, &p), TN_OK);
	CU_ASSERT_EQUAL_FATAL(shr_attach_connect(path, soon, &sock), TN_OK);
	int served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CU_ASSERT_FATAL(served >= 0);
	CU_ASSERT_EQUAL(shr_peer_cred(served, &cred), TN_OK);
	CU_ASSERT(cred.pid == getpid() && cred.uid == getuid() && cred.gid == getgid());
	close(served);
	close(sock);
	close(listener); /* the daemon died, its socket file stays */
	sock = -1;
	CU_ASSERT_EQUAL(shr_attach_connect(path, soon, &sock), TN_DATAPLANE_DOWN);
	memset(path, 'x', 150);
	path[150] = '\0';
	CU_ASSERT_EQUAL(shr_attach_connect(path, soon, &sock), TN_TOO_BIG);
	CU_ASSERT_EQUAL(sock, -1);
	fx_dir_remove(&d);
}

TN_TEST_MAIN("shm-ring/handshake",
	{ "descriptors travel close-on-exec and are ours to close", descriptors_travel },
	{ "surplus, missing and truncated descriptors are refused without a leak", surplus_descriptors_do_not_leak },
	{ "a full descriptor table is our limit, not the peer's fault", full_descriptor_table_is_our_limit },
	{ "hang-up and full queue", hang_up_and_full_queue },
	{ "a wait ends at its deadline", receive_deadline },
	{ "connecting tells a missing daemon from a bad path", connects_by_name })
