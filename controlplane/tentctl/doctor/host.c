/* SPDX-License-Identifier: Apache-2.0
 * Facts of a real host that are not files: its addresses, what its kernel can, its clock, room on its tmpfs. */
#include "controlplane/tentctl/doctor/doctor.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#define TMPFS_KIND 0x01021994 /* TMPFS_MAGIC of linux/magic.h */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

static void probe_addresses(struct tctl_host *h)
{
	struct ifaddrs *list = NULL;
	if (getifaddrs(&list) != 0)
		return;
	for (const struct ifaddrs *i = list; i != NULL && h->addr_cnt < TCTL_HOST_ADDRS_MAX; i = i->ifa_next) {
		if (i->ifa_addr == NULL || (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
			continue;
		socklen_t len =
		    i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
		if (tn_addr_from_sockaddr(i->ifa_addr, len, &h->addrs[h->addr_cnt].addr) != TN_OK)
			continue;
		snprintf(h->addrs[h->addr_cnt].interface, sizeof h->addrs[0].interface, "%s", i->ifa_name);
		h->addrs[h->addr_cnt].up = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_RUNNING) != 0;
		h->addr_cnt++;
	}
	freeifaddrs(list);
}

static void probe_features(struct tctl_host *h)
{
	long page = sysconf(_SC_PAGESIZE);
	int fd = memfd_create("tentctl-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	h->memfd_seals = fd >= 0 && ftruncate(fd, page) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0;
	void *p = h->memfd_seals ? mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
	if (p != MAP_FAILED) {
		h->populate_write = madvise(p, (size_t)page, MADV_POPULATE_WRITE) == 0;
		munmap(p, (size_t)page);
	}
	if (fd >= 0)
		close(fd);
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	h->pidfd = pidfd >= 0;
	if (pidfd >= 0)
		close(pidfd);
}

static void probe_clock(struct tctl_host *h)
{
	struct timex tx = { 0 };
	int state = adjtimex(&tx); /* modes 0: only reads, needs no right */
	h->clock_known = state >= 0;
	h->clock_synced = state >= 0 && state != TIME_ERROR && (tx.status & STA_UNSYNC) == 0;
	h->clock_error_us = (uint64_t)(tx.maxerror > 0 ? tx.maxerror : 0);
}

/* The nearest existing folder of `dir`: where it would be made. */
static struct tctl_fs probe_fs(const char *dir)
{
	struct tctl_fs fs = { 0 };
	struct statfs s;
	char path[4200];
	snprintf(path, sizeof path, "%s", dir);
	while (statfs(path, &s) != 0) {
		char *slash = strrchr(path, '/');
		if (slash == NULL || path[1] == '\0')
			return fs;
		slash[slash == path] = '\0';
	}
	fs.known = true;
	fs.tmpfs = s.f_type == TMPFS_KIND;
	fs.total_bytes = (uint64_t)s.f_blocks * (uint64_t)s.f_bsize;
	fs.free_bytes = (uint64_t)s.f_bavail * (uint64_t)s.f_bsize;
	return fs;
}

void tctl_host_probe(struct tctl_host *h, const char *dir)
{
	memset(h, 0, sizeof *h);
	h->root = "";
	h->uid = geteuid();
	probe_addresses(h);
	probe_features(h);
	probe_clock(h);
	h->runtime_fs = probe_fs(dir);
	h->shm_fs = probe_fs("/dev/shm");
}

bool tctl_host_read(const struct tctl_host *h, const char *path, char *buf, size_t cap)
{
	char full[4300];
	if ((size_t)snprintf(full, sizeof full, "%s%s", h->root, path) >= sizeof full)
		return false;
	int fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	size_t at = 0;
	ssize_t n;
	while (at < cap - 1 && (n = read(fd, buf + at, cap - 1 - at)) > 0)
		at += (size_t)n;
	close(fd);
	buf[at] = '\0';
	return at > 0;
}
