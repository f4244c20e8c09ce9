/* SPDX-License-Identifier: Apache-2.0
 * Checks of the runtime directory: its rights, the length of socket paths, what dead daemons left there. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/clock.h"
#include "controlplane/tentctl/doctor/doctor.h"

void tctl_check_runtime_dir(struct tctl_doctor *d)
{
	struct stat st;
	if (lstat(d->dir, &st) != 0) {
		if (errno == ENOENT) {
			tctl_found(d, TCTL_GRADE_OK, "%s does not exist yet: the first daemon makes it", d->dir);
			return;
		}
		tctl_found(d, TCTL_GRADE_FAIL, "%s cannot be looked at: %s", d->dir, strerror(errno));
		tctl_fix(d, "ask as the user of the daemons, or as root");
	} else if (!S_ISDIR(st.st_mode)) {
		tctl_found(d, TCTL_GRADE_FAIL, "%s is no directory (links are not followed)", d->dir);
		tctl_fix(d, "mv %s %s.old && mkdir -m 0700 %s", d->dir, d->dir, d->dir);
	} else if ((st.st_mode & 022) != 0) {
		tctl_found(d, TCTL_GRADE_FAIL, "%s may be written by others (mode %03o): the daemons refuse it", d->dir,
			   (unsigned)st.st_mode & 0777u);
		tctl_fix(d, "chmod 0700 %s", d->dir);
	} else if (st.st_uid != d->host->uid) {
		tctl_found(d, d->host->uid == 0 ? TCTL_GRADE_OK : TCTL_GRADE_FAIL,
			   "%s belongs to uid %u, this is uid %u%s", d->dir, (unsigned)st.st_uid, d->host->uid,
			   d->host->uid == 0 ? "" : ": daemons of this user cannot use it");
		if (d->host->uid != 0)
			tctl_fix(d, "sudo chown %u %s   # or name another runtime_dir", d->host->uid, d->dir);
	} else {
		tctl_found(d, TCTL_GRADE_OK, "%s: ours, mode %03o", d->dir, (unsigned)st.st_mode & 0777u);
	}
}

void tctl_check_socket_path(struct tctl_doctor *d)
{
	/* attach.sock appears by rename from attach.sock.new, the longest name that is bound. */
	size_t len = strlen(d->dir) + sizeof "/attach.sock.new" - 1,
	       most = sizeof((struct sockaddr_un *)0)->sun_path - 1;
	if (len <= most) {
		tctl_found(d, TCTL_GRADE_OK, "socket paths of up to %zu bytes fit", len);
		return;
	}
	tctl_found(d, TCTL_GRADE_FAIL, "%s is too long: its sockets would need %zu bytes, a socket address holds %zu",
		   d->dir, len, most);
	tctl_fix(d, "set runtime_dir to a shorter path, e.g. /run/tent");
}

/* X(file, which daemon's, what it is) */
struct leftover { const char *name; bool dataplane; };
static const struct leftover leftovers[] = {
	{ "attach.sock", true }, { "attach.sock.new", true }, { "link.ipc", false },
	{ "bus.ipc", false },    { "http.port", false },
};

void tctl_check_leftovers(struct tctl_doctor *d)
{
	unsigned before = d->cnt;
	char path[4200], names[2][256] = { "", "" };
	struct stat st;
	for (unsigned i = 0; i < TN_ARRAY_LEN(leftovers); i++) {
		const struct leftover *l = &leftovers[i];
		const struct tctl_daemon *owner = l->dataplane ? &d->pair->dataplane : &d->pair->controlplane;
		snprintf(path, sizeof path, "%s/%s", d->dir, l->name);
		if (owner->held || lstat(path, &st) != 0)
			continue;
		char *to = names[l->dataplane];
		size_t at = strlen(to);
		snprintf(to + at, sizeof names[0] - at, "%s%s", at > 0 ? " " : "", l->name);
	}
	if (names[1][0] != '\0') {
		tctl_found(d, TCTL_GRADE_WARN, "%s is left of a data plane that did not end in order", names[1]);
		tctl_fix(d,
			 "tentctl postmortem, then start tent-dataplane (it replaces the file); or: cd %s && rm -f %s",
			 d->dir, names[1]);
	}
	if (names[0][0] != '\0') {
		tctl_found(d, TCTL_GRADE_WARN, "%s: left of a control plane that did not end in order", names[0]);
		tctl_fix(d, "start tent-controlplane (it replaces them); or: cd %s && rm -f %s", d->dir, names[0]);
	}
	if (d->cnt == before)
		tctl_found(d, TCTL_GRADE_OK, "no sockets or files of dead daemons");
}

static void one_file(struct tctl_doctor *d, uint64_t generation, unsigned *whole)
{
	struct tctl_region r;
	char err[TCTL_REGION_PATH_MAX + 256], name[SHR_TELE_NAME_MAX];
	tn_status s = tctl_region_open(d->dir, generation, &r, err, sizeof err);
	if (s != TN_OK) {
		shr_tele_name(generation, name);
		tctl_found(d, TCTL_GRADE_WARN, "%s", err);
		tctl_fix(d, "rm %s/%s", d->dir, name);
		return;
	}
	enum tctl_life life = tctl_region_life(&r, d->dir, tn_now_ns());
	if (life == TCTL_LIFE_DIED || life == TCTL_LIFE_DIED_STARTING || life == TCTL_LIFE_DIED_DRAINING) {
		tctl_found(d, TCTL_GRADE_WARN, "generation %llu of the data plane died without a word",
			   (unsigned long long)generation);
		tctl_fix(d, "tentctl postmortem %llu", (unsigned long long)generation);
	}
	tctl_region_close(&r);
	(*whole)++;
}

void tctl_check_telemetry(struct tctl_doctor *d)
{
	uint64_t list[TCTL_REGIONS_MAX];
	uint32_t cnt = 0;
	unsigned whole = 0, before = d->cnt;
	tn_status s = shr_tele_scan(d->dir, list, TCTL_REGIONS_MAX, &cnt);
	if (s == TN_NOT_FOUND || (s == TN_OK && cnt == 0)) {
		tctl_found(d, TCTL_GRADE_OK, "no data plane ever ran here");
		return;
	}
	if (s != TN_OK) {
		tctl_found(d, TCTL_GRADE_WARN, "%s cannot be read: %s", d->dir, tn_status_meaning(s));
		tctl_fix(d, "ask as the user of the daemons, or as root");
		return;
	}
	for (uint32_t i = 0; i < cnt; i++)
		one_file(d, list[i], &whole);
	if (d->cnt == before)
		tctl_found(d, TCTL_GRADE_OK, "%u telemetry file%s, nothing died unexpectedly", whole,
			   tn_plural(whole));
}
