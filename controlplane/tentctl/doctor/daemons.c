/* SPDX-License-Identifier: Apache-2.0
 * Checks of the two daemons: do they live and answer, and do their versions fit. That none runs is no failure. */
#include <stdio.h>
#include <string.h>

#include "common/version.h"
#include "controlplane/tentctl/doctor/doctor.h"

void tctl_check_daemons(struct tctl_doctor *d)
{
	const struct tctl_daemon *dp = &d->pair->dataplane, *cp = &d->pair->controlplane;
	if (!dp->held) {
		tctl_found(d, cp->held ? TCTL_GRADE_FAIL : TCTL_GRADE_OK, "no data plane runs in %s%s", d->dir,
			   cp->held ? ", although a control plane does: applications cannot attach" : "");
		if (cp->held)
			tctl_fix(d, "start tent-dataplane");
	} else if (d->pair->dataplane_hung) {
		tctl_found(
		    d, TCTL_GRADE_FAIL,
		    "the data plane (pid %u) lives, but gave no sign for more than 5 s: stopped (SIGSTOP), swapped "
		    "out or stuck",
		    dp->pid);
		tctl_fix(d,
			 "kill -CONT %u   # if it is only stopped; else kill -9 %u and start it again: applications "
			 "re-attach",
			 dp->pid, dp->pid);
	} else {
		tctl_found(d, TCTL_GRADE_OK, "the data plane runs (pid %u)", dp->pid);
	}
	if (!cp->held) {
		tctl_found(d, dp->held ? TCTL_GRADE_WARN : TCTL_GRADE_OK, "no control plane runs in %s%s", d->dir,
			   dp->held
			       ? ": transfers go on, but no new segment of a peer can be opened and nothing is exported"
			       : "");
		if (dp->held)
			tctl_fix(d, "start tent-controlplane");
	} else if (!cp->answered) {
		tctl_found(d, TCTL_GRADE_FAIL, "the control plane (pid %u) does not answer: %s", cp->pid, cp->error);
		tctl_fix(d,
			 "kill -CONT %u   # if it is only stopped; else kill -9 %u and start it again: transfers go on",
			 cp->pid, cp->pid);
	} else {
		tctl_found(d, TCTL_GRADE_OK, "the control plane runs and answers (pid %u)", cp->pid);
	}
}

/* "0.1.0" against ours: 0 same, 1 minor differs, 2 major differs. */
static int distance(const char *version)
{
	int a[2] = { -1, -1 }, b[2] = { -2, -2 };
	if (strcmp(version, TN_VERSION) == 0)
		return 0;
	if (sscanf(version, "%d.%d", &a[0], &a[1]) != 2 || sscanf(TN_VERSION, "%d.%d", &b[0], &b[1]) != 2)
		return 2;
	return a[0] == b[0] ? 1 : 2;
}

static void version(struct tctl_doctor *d, const char *name, const struct tctl_daemon *p)
{
	if (!p->held || !p->answered)
		return;
	int far = distance(p->version);
	if (far == 2) {
		tctl_found(d, TCTL_GRADE_FAIL,
			   "%s is version %s, this tentctl is %s: different major versions do not work together", name,
			   p->version, TN_VERSION);
		tctl_fix(d, "install one version everywhere and restart both daemons");
	} else if (far == 1 || strcmp(p->commit, TN_COMMIT) != 0) {
		tctl_found(d, far == 1 ? TCTL_GRADE_WARN : TCTL_GRADE_OK,
			   "%s is %s (%s), this tentctl is %s (%s): they work together", name, p->version, p->commit,
			   TN_VERSION, TN_COMMIT);
		if (far == 1)
			tctl_fix(d, "restart %s after the upgrade", name);
	} else {
		tctl_found(d, TCTL_GRADE_OK, "%s and tentctl are %s (%s)", name, p->version, p->commit);
	}
}

void tctl_check_versions(struct tctl_doctor *d)
{
	const struct tctl_pair *p = d->pair;
	version(d, "tent-dataplane", &p->dataplane);
	version(d, "tent-controlplane", &p->controlplane);
	if (p->dataplane.held && p->dataplane.answered && !p->schema_same) {
		tctl_found(
		    d, TCTL_GRADE_WARN,
		    "the running data plane counts in another layout than this version: its numbers cannot be shown");
		tctl_fix(d, "restart the older of the two daemons");
	}
	if (!p->dataplane.held && !p->controlplane.held)
		tctl_found(d, TCTL_GRADE_OK, "tentctl is %s (%s); no daemon runs", TN_VERSION, TN_COMMIT);
}
