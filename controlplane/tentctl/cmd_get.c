/* SPDX-License-Identifier: Apache-2.0
 * `tentctl get`: a segment into a file, compared with the hash that its publisher wrote. */
#include <string.h>

#include "controlplane/tentctl/remote_file.h"
#include "controlplane/tentctl/summary.h"

struct get {
	struct tctl_pump p;
	struct tctl_summary sum;
	struct tctl_outfile out;
	struct tctl_trailer before;
	bool described;          /* there is a trailer */
};

/* The trailer once its content is settled: a put that just ended may still be hashed there. */
static bool read_description(struct get *g)
{
	struct tctl_pump *p = &g->p;
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), p->cfg.stall_ns);
	for (;;) {
		tn_status s = tctl_remote_trailer(p, &g->before);
		g->described = s == TN_OK;
		if (s != TN_OK)
			return s == TN_NOT_FOUND;
		switch (g->before.content) {
		case TCTL_CONTENT_READY:
			return true;
		case TCTL_CONTENT_HASHING:
			break;
		case TCTL_CONTENT_DAMAGED:
			return tctl_pump_fail(p, TN_INVALID, "%s: the last put did not arrive intact; put it again",
					      p->ref);
		default:
			return tctl_pump_fail(p, TN_NOT_FOUND, "%s is empty: nothing was put into it yet", p->ref);
		}
		if (tn_now_ns() >= deadline_ns)
			return tctl_pump_fail(p, TN_TIMEOUT, "%s: its publisher is still reading the last put", p->ref);
		tctl_stop_sleep(-1, 10 * TN_NS_PER_MS);
	}
}

static bool compare(struct get *g)
{
	struct tctl_pump *p = &g->p;
	struct tctl_trailer after;
	if (!g->described)
		return true;
	g->sum.verified = "published_hash";
	if (memcmp(g->sum.sha256, g->before.sha256, TCTL_SHA256_BYTES) == 0)
		return true;
	if (tctl_remote_trailer(p, &after) != TN_OK)
		return tctl_pump_fail(p, TN_INVALID, "%s changed while it was read; nothing was written", p->ref);
	if (after.sequence != g->before.sequence)
		return tctl_pump_fail(p, TN_INVALID,
				      "%s changed while it was read (a put ended meanwhile); get it again", p->ref);
	return tctl_pump_fail(p, TN_INVALID,
			      "%s does not match its published hash: a put into it is running, or one was broken "
			      "off; nothing was written",
			      p->ref);
}

static bool fetch(struct get *g)
{
	struct tctl_pump *p = &g->p;
	char err[512];
	if (!read_description(g))
		return false;
	g->sum.bytes = g->described ? g->before.content_bytes : p->segment_bytes;
	tn_status s = tctl_outfile_open(&g->out, g->sum.file, g->sum.bytes, err, sizeof err);
	if (s != TN_OK)
		return tctl_pump_fail(p, s, "%s", err);
	g->sum.first_ns = tn_now_ns();
	if (!tctl_remote_read(p, g->sum.bytes, &g->out, "get", g->sum.sha256))
		return false;
	g->sum.last_ns = tn_now_ns();
	if (!compare(g))
		return false;
	s = tctl_outfile_commit(&g->out, err, sizeof err);
	return s == TN_OK || tctl_pump_fail(p, s, "%s", err);
}

int tctl_cmd_get(struct tctl *t, int argc, char **argv)
{
	static struct get g; /* large: the latency recorder */
	struct tctl_pump_cfg cfg = { .stall_ns = TCTL_STALL_DEFAULT_NS };
	const struct tctl_option options[] = {
		{ "transport", '\0', TCTL_TEXT, &cfg.transport },
		{ "stall", '\0', TCTL_TIME, &cfg.stall_ns },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	g = (struct get){ .out = { .fd = -1 } };
	g.sum = (struct tctl_summary){ .command = "get", .start_ns = tn_now_ns(), .cpu_start_ns = tn_cpu_ns() };
	if (!tctl_args(t, &argc, argv, options, 2, 2))
		return t->exit_code;
	if (tctl_pump_cfg_check(t, &cfg) != TCTL_OK || tctl_ref_check(t, argv[1]) != TCTL_OK)
		return TCTL_USAGE;
	g.sum.segment = argv[1];
	g.sum.file = argv[2];
	tctl_stop_catch();
	int rc = tctl_pump_open(&g.p, t, &cfg, argv[1]);
	if (rc == TCTL_OK)
		rc = tctl_pump_buffers(&g.p, g.p.segment_bytes);
	if (rc == TCTL_OK)
		rc = fetch(&g) ? TCTL_OK : TCTL_FAILED;
	tctl_outfile_abandon(&g.out);
	if (rc == TCTL_OK) {
		g.sum.end_ns = tn_now_ns();
		tctl_summary_print(&g.p, &g.sum);
	}
	tctl_pump_close(&g.p);
	return rc;
}
