/* SPDX-License-Identifier: Apache-2.0
 * See hostile.h. */
#include "tests/integration/hostile.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int sock = -1;
uint8_t *region;
size_t region_bytes;
static int doorbell = -1;
struct shr_qp_view view;

_Noreturn void die(const char *what)
{
	fprintf(stderr, "hostile: %s\n", what);
	exit(1);
}

bool try_ask(struct shr_msg *m)
{
	return shr_msg_send_until(sock, m, in_s(5)) == TN_OK && shr_msg_recv_until(sock, SHR_FROM_DATAPLANE, m, in_s(5)) == TN_OK;
}

void ask(struct shr_msg *m)
{
	if (!try_ask(m))
		die("no answer");
}

void attach(const char *dir)
{
	static struct shr_msg m;
	char path[200];
	snprintf(path, sizeof path, "%s/attach.sock", dir);
	if (region != NULL)
		munmap(region, region_bytes);
	if (doorbell >= 0)
		close(doorbell);
	if (sock >= 0)
		close(sock);
	region = NULL;
	doorbell = -1;
	if (shr_attach_connect(path, in_s(5), &sock) != TN_OK)
		die("cannot connect");
	struct shr_msg_hello *h = shr_msg_begin(&m, SHR_MSG_HELLO, 1, sizeof *h);
	h->abi_major = SHR_ABI_MAJOR;
	h->abi_minor = SHR_ABI_MINOR;
	snprintf(h->app, sizeof h->app, "hostile");
	ask(&m);
	if (m.hdr.status != TN_OK)
		die("hello refused");
}

void make_ring(void)
{
	static struct shr_msg m;
	struct shr_msg_qp_create *q = shr_msg_begin(&m, SHR_MSG_QP_CREATE, 2, sizeof *q);
	q->sq_entries = 64;
	q->note_slots = 4;
	ask(&m);
	if (m.hdr.status != TN_OK || m.fd_cnt != 2)
		die("no ring");
	const struct shr_msg_qp_create_reply *r = shr_msg_body_ro(&m);
	region_bytes = r->region_bytes;
	region = mmap(NULL, region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.fds[0], 0);
	if (region == MAP_FAILED || shr_qp_check(region, region_bytes, &view) != TN_OK)
		die("bad ring");
	close(m.fds[0]);
	doorbell = m.fds[1];
}

void ring_bell(void)
{
	if (doorbell >= 0)
		shr_doorbell_ring(doorbell);
}

bool dropped_within(uint64_t ns)
{
	struct pollfd p = { .fd = sock, .events = POLLRDHUP };
	uint64_t end = tn_now_ns() + ns;
	bool dropped = false;
	while (!dropped && tn_now_ns() < end) {
		ring_bell();
		dropped = poll(&p, 1, 20) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
	}
	return dropped;
}
