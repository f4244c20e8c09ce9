/* SPDX-License-Identifier: Apache-2.0
 * Checks of the configuration file itself, and of what the kernel can and allows. */
#include <inttypes.h>
#include <string.h>

#include "common/units.h"
#include "controlplane/tentctl/doctor/doctor.h"

void tctl_check_config(struct tctl_doctor *d)
{
	const struct tn_config_errors *e = d->config_errors;
	if (d->config != NULL) {
		const char *path = tn_config_path(d->config);
		tctl_found(d, TCTL_GRADE_OK, "%s: reads well, %u peer%s",
			   path != NULL ? path : "built-in defaults (no file)", tn_config_peer_cnt(d->config),
			   tn_plural(tn_config_peer_cnt(d->config)));
		return;
	}
	for (unsigned i = 0; e != NULL && i < e->cnt; i++) {
		const struct tn_config_error *item = &e->item[i];
		char where[300];
		snprintf(where, sizeof where, item->line > 0 ? "%s line %u" : "%s",
			 item->source[0] != '\0' ? item->source : "the configuration", item->line);
		tctl_found(d, TCTL_GRADE_FAIL, "%s: %s%s%s", where, item->key, item->key[0] != '\0' ? ": " : "",
			   item->text);
		tctl_fix(d, "%s %s, then: tentctl config check", item->line > 0 ? "edit" : "correct", where);
	}
	if (e == NULL || e->cnt == 0)
		tctl_found(d, TCTL_GRADE_FAIL, "the configuration cannot be read");
}

void tctl_check_features(struct tctl_doctor *d)
{
	const struct tctl_host *h = d->host;
	if (h->memfd_seals && h->populate_write && h->pidfd) {
		tctl_found(d, TCTL_GRADE_OK, "memfd with seals, MADV_POPULATE_WRITE, pidfd: all there");
		return;
	}
	if (!h->memfd_seals) {
		tctl_found(d, TCTL_GRADE_FAIL,
			   "memfd_create with seals does not work: applications cannot register memory");
		tctl_fix(d, "use Linux 5.14 or later; in a container, allow memfd_create in its seccomp profile");
	}
	if (!h->populate_write) {
		tctl_found(d, TCTL_GRADE_WARN,
			   "no MADV_POPULATE_WRITE (Linux 5.14): first touches of new memory are slower");
		tctl_fix(d, "use Linux 5.14 or later");
	}
	if (!h->pidfd) {
		tctl_found(d, TCTL_GRADE_WARN,
			   "no pidfd_open (Linux 5.3): the death of a process is noticed by heartbeat and lock only");
		tctl_fix(d, "use Linux 5.14 or later; in a container, allow pidfd_open in its seccomp profile");
	}
}

void tctl_check_ptrace(struct tctl_doctor *d)
{
	char text[16];
	if (!tctl_host_read(d->host, "/proc/sys/kernel/yama/ptrace_scope", text, sizeof text) || text[0] == '0')
		tctl_found(d, TCTL_GRADE_OK,
			   "debuggers may attach to processes of the same user; tent itself never does");
	else
		tctl_found(d, TCTL_GRADE_OK,
			   "kernel.yama.ptrace_scope is %c: tent shares memory by memfd and does not need it; gdb -p "
			   "needs root",
			   text[0]);
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);
	for (const char *p = text; (p = strstr(p, word)) != NULL; p += len)
		if ((p == text || strchr(" \t", p[-1]) != NULL) && strchr(" \t\n", p[len]) != NULL)
			return true;
	return false;
}

void tctl_check_congestion(struct tctl_doctor *d)
{
	char available[512], allowed[512];
	const char *want = tn_config_str(d->config, TN_CFG_TCP_CONGESTION_CONTROL);
	if (!tn_config_bool(d->config, TN_CFG_TCP_ENABLE))
		return;
	if (!tctl_host_read(d->host, "/proc/sys/net/ipv4/tcp_available_congestion_control", available,
			    sizeof available)) {
		tctl_found(d, TCTL_GRADE_WARN, "the kernel does not say which congestion controls it has; %s is wanted",
			   want);
		return;
	}
	available[strcspn(available, "\n")] = '\0';
	if (!has_word(available, want)) {
		tctl_found(d, TCTL_GRADE_FAIL,
			   "congestion control \"%s\" is not available (there are: %s): the data plane will not start",
			   want, available);
		tctl_fix(d, "modprobe tcp_%s   # or set transports/tcp/congestion_control to one that is there", want);
		return;
	}
	bool listed =
	    tctl_host_read(d->host, "/proc/sys/net/ipv4/tcp_allowed_congestion_control", allowed, sizeof allowed);
	if (listed && !has_word(allowed, want) && d->host->uid != 0) {
		allowed[strcspn(allowed, "\n")] = '\0';
		tctl_found(d, TCTL_GRADE_FAIL, "congestion control \"%s\" is for root only (allowed: %s)", want,
			   allowed);
		tctl_fix(d, "sysctl -w net.ipv4.tcp_allowed_congestion_control=\"%s %s\"", allowed, want);
		return;
	}
	tctl_found(d, TCTL_GRADE_OK, "congestion control \"%s\" is available", want);
}

static void buffer(struct tctl_doctor *d, enum tn_config_key key, const char *sysctl)
{
	char path[64], text[32], size[TN_UNITS_TEXT], most[TN_UNITS_TEXT];
	uint64_t want = tn_config_u64(d->config, key), max;
	snprintf(path, sizeof path, "/proc/sys/net/core/%s", sysctl);
	if (want == 0)
		return;
	if (!tctl_host_read(d->host, path, text, sizeof text) || sscanf(text, "%" SCNu64, &max) != 1)
		return;
	if (want <= max) {
		tctl_found(d, TCTL_GRADE_OK, "%s = %s, within net.core.%s", tn_config_key_path(key),
			   tn_bytes_format(want, size), sysctl);
		return;
	}
	tctl_found(d, TCTL_GRADE_WARN, "%s = %s, but net.core.%s cuts it to %s", tn_config_key_path(key),
		   tn_bytes_format(want, size), sysctl, tn_bytes_format(max, most));
	tctl_fix(d, "sysctl -w net.core.%s=%llu", sysctl, (unsigned long long)want);
}

void tctl_check_socket_buffers(struct tctl_doctor *d)
{
	unsigned before = d->cnt;
	buffer(d, TN_CFG_TCP_SEND_BUFFER_BYTES, "wmem_max");
	buffer(d, TN_CFG_TCP_RECV_BUFFER_BYTES, "rmem_max");
	if (d->cnt == before)
		tctl_found(d, TCTL_GRADE_OK, "socket buffers are tuned by the kernel");
}

void tctl_check_clock(struct tctl_doctor *d)
{
	const struct tctl_host *h = d->host;
	char error[TN_UNITS_TEXT];
	if (!h->clock_known) {
		tctl_found(d, TCTL_GRADE_WARN, "the kernel does not tell whether the clock is synchronised");
	} else if (!h->clock_synced) {
		tctl_found(d, TCTL_GRADE_WARN,
			   "the clock is not synchronised: times in logs of different hosts cannot be compared "
			   "(transfers do not depend on it)");
		tctl_fix(d, "timedatectl set-ntp true   # or install chrony");
	} else {
		tctl_found(d, TCTL_GRADE_OK, "synchronised, error at most %s",
			   tn_duration_format(h->clock_error_us * 1000, error));
	}
}
