/* SPDX-License-Identifier: Apache-2.0
 * `tentctl doctor`: what is wrong with this host, its configuration and its daemons, and how to put it right. Works
 * without daemons; exit code 1 when something fails. */
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/paths.h"
#include "controlplane/tentctl/doctor/doctor.h"
#include "controlplane/tentctl/tentctl.h"
#include "shm-ring/lease.h"

#define ASK_NS (1 * TN_NS_PER_S) /* a living control plane answers at once */

static void look_at_lease(const char *dir, const char *name, struct tctl_daemon *out)
{
	struct shr_lease_info info = { 0 };
	if (shr_lease_read(dir, name, &info) == TN_OK && info.held) {
		out->held = true;
		out->pid = info.pid;
	}
}

static void look_at_dataplane(const char *dir, struct tctl_pair *p)
{
	struct tctl_region r;
	char err[512];
	look_at_lease(dir, "dataplane", &p->dataplane);
	if (!p->dataplane.held || tctl_region_open(dir, 0, &r, err, sizeof err) != TN_OK)
		return;
	enum tctl_life life = tctl_region_life(&r, dir, tn_now_ns());
	p->dataplane_hung = life == TCTL_LIFE_HUNG;
	p->dataplane.answered = (life == TCTL_LIFE_RUNNING || life == TCTL_LIFE_HUNG) &&
				sscanf(r.ro.hdr.build, "%31s %47s", p->dataplane.version, p->dataplane.commit) == 2;
	p->schema_same = r.numbers || !r.ro.hdr.metrics_compiled;
	tctl_region_close(&r);
}

static void ask_controlplane(struct tctl *t, const char *dir, struct tctl_pair *p)
{
	struct tctl_daemon *c = &p->controlplane;
	json_t *answer = NULL;
	look_at_lease(dir, "controlplane", c);
	if (!c->held || t->config == NULL)
		return;
	t->timeout_ns = TN_MIN(t->timeout_ns, ASK_NS);
	if (tctl_query(t, "version", NULL, &answer, c->error, sizeof c->error) != TN_OK)
		return;
	c->answered = true;
	snprintf(c->version, sizeof c->version, "%s", tctl_text(answer, "version"));
	snprintf(c->commit, sizeof c->commit, "%s", tctl_text(answer, "commit"));
	json_decref(answer);
}

int tctl_cmd_doctor(struct tctl *t, int argc, char **argv)
{
	static struct tn_config_errors errors;
	static struct tctl_host host;
	struct tctl_pair pair = { .schema_same = true };
	char fallback[4200];
	bool quiet = false;
	const struct tctl_option options[] = { { "quiet", 'q', TCTL_FLAG, &quiet }, { NULL, '\0', TCTL_FLAG, NULL } };
	if (!tctl_args(t, &argc, argv, options, 0, 0))
		return t->exit_code;
	errors = (struct tn_config_errors){ 0 };
	(void)tctl_config_try(t, NULL, &t->config, &errors);
	struct tctl_doctor d = { .host = &host, .pair = &pair, .config = t->config, .config_errors = &errors };
	if (t->config != NULL)
		d.dir = tn_config_str(t->config, TN_CFG_RUNTIME_DIR);
	else if (t->runtime_dir != NULL)
		d.dir = t->runtime_dir;
	else if (tn_default_runtime_dir((const char *const *)environ, getuid(), fallback, sizeof fallback) == TN_OK)
		d.dir = fallback;
	else
		d.dir = "/run/tent";
	tctl_host_probe(&host, d.dir);
	look_at_dataplane(d.dir, &pair);
	ask_controlplane(t, d.dir, &pair);
	tctl_doctor_run(&d);
	if (t->json) {
		json_t *j = tctl_doctor_json(&d);
		tctl_print_json(j);
		json_decref(j);
	} else {
		tctl_doctor_print(&d, quiet, stdout);
	}
	int rc = tctl_doctor_count(&d, TCTL_GRADE_FAIL) == 0 ? TCTL_OK : TCTL_FAILED;
	tctl_doctor_free(&d);
	return rc;
}
