/* SPDX-License-Identifier: Apache-2.0
 * Checks of ports: who listens where the configuration wants to, from /proc/net/tcp and the descriptors of processes.
 */
#include <dirent.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controlplane/tentctl/doctor/doctor.h"

enum { LISTEN = 0x0a, TABLE_BYTES = 1 << 20 };

/* "0100007F:2648" or 32 digits of IPv6; each 32-bit word is in the host's byte order. */
static bool parse_local(const char *text, struct tn_addr *out)
{
	uint32_t word[4];
	unsigned port, n = 0;
	const char *p = text;
	for (; n < 4 && sscanf(p, "%8" SCNx32, &word[n]) == 1 && strspn(p, "0123456789abcdefABCDEF") >= 8; n++)
		p += 8;
	if ((n != 1 && n != 4) || sscanf(p, ":%4x", &port) != 1)
		return false;
	if (n == 1) {
		struct sockaddr_in in = { .sin_family = AF_INET,
					  .sin_port = htons((uint16_t)port),
					  .sin_addr.s_addr = word[0] };
		return tn_addr_from_sockaddr((const struct sockaddr *)&in, sizeof in, out) == TN_OK;
	}
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	memcpy(&in6.sin6_addr, word, sizeof in6.sin6_addr);
	return tn_addr_from_sockaddr((const struct sockaddr *)&in6, sizeof in6, out) == TN_OK;
}

static bool in_the_way(const struct tn_addr *there, const struct tn_addr *want)
{
	return tn_addr_port(there) == tn_addr_port(want) &&
	       (tn_addr_host_eq(there, want) || tn_addr_is_any(there) || tn_addr_is_any(want));
}

/* Inode of a socket that listens where `want` would; false when none does. */
static bool find_listener(const struct tctl_host *h, const struct tn_addr *want, uint64_t *inode_out)
{
	static const char *const tables[] = { "/proc/net/tcp", "/proc/net/tcp6" };
	char *text = malloc(TABLE_BYTES);
	bool found = false;
	for (unsigned i = 0; text != NULL && !found && i < TN_ARRAY_LEN(tables); i++) {
		char *rest = text, *line;
		if (!tctl_host_read(h, tables[i], text, TABLE_BYTES))
			continue;
		while (!found && (line = strsep(&rest, "\n")) != NULL) {
			char local[64];
			unsigned state;
			struct tn_addr a;
			if (sscanf(line, " %*u: %63s %*s %x %*s %*s %*s %*u %*u %" SCNu64, local, &state, inode_out) ==
			    3)
				found = state == LISTEN && parse_local(local, &a) && in_the_way(&a, want);
		}
	}
	free(text);
	return found;
}

static bool has_socket(const struct tctl_host *h, const char *pid, uint64_t inode)
{
	char dir[4300], wanted[40], target[64];
	bool found = false;
	snprintf(wanted, sizeof wanted, "socket:[%" PRIu64 "]", inode);
	if ((size_t)snprintf(dir, sizeof dir, "%s/proc/%s/fd", h->root, pid) >= sizeof dir)
		return false;
	DIR *fds = opendir(dir);
	if (fds == NULL)
		return false;
	for (struct dirent *e; !found && (e = readdir(fds)) != NULL;) {
		ssize_t n = readlinkat(dirfd(fds), e->d_name, target, sizeof target - 1);
		if (n > 0) {
			target[n] = '\0';
			found = strcmp(target, wanted) == 0;
		}
	}
	closedir(fds);
	return found;
}

/* The process that holds it; 0 when we may not see it. */
static uint32_t find_holder(const struct tctl_host *h, uint64_t inode, char name[static 32])
{
	char dir[4300], path[300];
	uint32_t pid = 0;
	if ((size_t)snprintf(dir, sizeof dir, "%s/proc", h->root) >= sizeof dir)
		return 0;
	DIR *proc = opendir(dir);
	for (struct dirent *e; proc != NULL && pid == 0 && (e = readdir(proc)) != NULL;)
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && has_socket(h, e->d_name, inode)) {
			pid = (uint32_t)strtoul(e->d_name, NULL, 10);
			snprintf(path, sizeof path, "/proc/%s/comm", e->d_name);
			if (!tctl_host_read(h, path, name, 32))
				snprintf(name, 32, "?");
			name[strcspn(name, "\n")] = '\0';
		}
	if (proc != NULL)
		closedir(proc);
	return pid;
}

static void port(struct tctl_doctor *d, const char *key, const char *what, const struct tn_addr *want,
		 const struct tctl_daemon *ours)
{
	char text[TN_ADDR_TEXT], name[32];
	uint64_t inode = 0;
	tn_addr_format(want, text);
	if (tn_addr_port(want) == 0) {
		tctl_found(d, TCTL_GRADE_OK, "%s: any free port", what);
		return;
	}
	if (!find_listener(d->host, want, &inode)) {
		tctl_found(d, ours->held ? TCTL_GRADE_WARN : TCTL_GRADE_OK, "%s: %s is free%s", what, text,
			   ours->held ? ", although the daemon runs: it was started with another configuration" : "");
		if (ours->held)
			tctl_fix(d, "restart the daemon (pid %u), or name its configuration with -c", ours->pid);
		return;
	}
	uint32_t pid = find_holder(d->host, inode, name);
	if (ours->held && (pid == ours->pid || pid == 0)) {
		tctl_found(d, TCTL_GRADE_OK, "%s: %s is served by pid %u", what, text, ours->pid);
	} else if (pid != 0) {
		tctl_found(d, TCTL_GRADE_FAIL, "%s: %s is taken by %s (pid %u)", what, text, name, pid);
		tctl_fix(d, "stop pid %u, or set %s to another port (0: any free one)", pid, key);
	} else {
		tctl_found(d, TCTL_GRADE_FAIL, "%s: %s is taken by a process of another user", what, text);
		tctl_fix(d, "sudo ss -ltnp 'sport = :%u'   # shows it; or set %s to another port", tn_addr_port(want),
			 key);
	}
}

void tctl_check_ports(struct tctl_doctor *d)
{
	const struct tn_config *c = d->config;
	struct tn_addr a;
	char why[TN_ERR_TEXT];
	if (tn_config_bool(c, TN_CFG_TCP_ENABLE) &&
	    tn_addr_parse(tn_config_str(c, TN_CFG_TCP_BIND_ADDRESS), 0, &a, why) == TN_OK) {
		tn_addr_set_port(&a, (uint16_t)tn_config_u64(c, TN_CFG_TCP_PORT));
		port(d, "transports/tcp/port", "data lanes", &a, &d->pair->dataplane);
	}
	if (tn_addr_parse(tn_config_str(c, TN_CFG_CONTROL_BIND), TN_ADDR_NEED_PORT, &a, why) == TN_OK)
		port(d, "control/bind", "peers", &a, &d->pair->controlplane);
	if (tn_config_bool(c, TN_CFG_METRICS_HTTP_ENABLED) &&
	    tn_addr_parse(tn_config_str(c, TN_CFG_METRICS_HTTP_HOST), 0, &a, why) == TN_OK) {
		tn_addr_set_port(&a, (uint16_t)tn_config_u64(c, TN_CFG_METRICS_HTTP_PORT));
		port(d, "metrics/http_port", "metrics", &a, &d->pair->controlplane);
	}
}
