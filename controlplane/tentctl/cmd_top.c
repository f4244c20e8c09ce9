/* SPDX-License-Identifier: Apache-2.0
 * `tentctl top`: what moves, live. Works while the control plane is down, then without peers. */
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "controlplane/tentctl/tentctl.h"
#include "controlplane/tentctl/top/term.h"
#include "controlplane/tentctl/top/top.h"

#define INTERVAL_DEFAULT_NS (1 * TN_NS_PER_S)
#define INTERVAL_LEAST_NS (100 * TN_NS_PER_MS)
#define INTERVAL_MOST_NS (3600 * TN_NS_PER_S)
#define ASK_NS (500 * TN_NS_PER_MS)       /* a question of one sample waits at most so long */
#define ASK_AGAIN_NS (5 * TN_NS_PER_S)    /* after one that was not answered in time */
#define WIDTH_PLAIN 200u

struct top {
	struct tctl *t;
	const char *dir;
	uint64_t interval_ns, ask_ns;     /* ask_ns: the control plane is not asked before */
	struct tctl_top_sample *before, *now;
	struct tctl_top_history history;
	struct tctl_canvas canvas;
	bool paused;
};

static void take(struct top *p)
{
	struct tctl_top_sample *fresh = p->before;
	uint64_t start = tn_now_ns();
	bool ask = start >= p->ask_ns;
	tctl_top_drop(fresh);
	tctl_top_take(p->t, p->dir, ask ? ASK_NS : 0, fresh);
	if (!ask)
		snprintf(fresh->control_error, sizeof fresh->control_error, "%s", p->now->control_error);
	else if (!fresh->control && tn_now_ns() - start >= ASK_NS)
		p->ask_ns = tn_now_ns() + ASK_AGAIN_NS; /* it hangs: the screen must not */
	p->before = p->now;
	p->now = fresh;
}

static void draw(struct top *p, const json_t *view)
{
	char hint[96];
	tctl_term_size(&p->canvas.width, &p->canvas.height);
	tctl_canvas_reset(&p->canvas);
	snprintf(hint, sizeof hint, "every %s   q quit   space %s", tctl_time_text(p->interval_ns),
		 p->paused ? "go on (paused)" : "pause");
	tctl_top_draw(&p->canvas, view, &p->history, hint);
	if (!p->canvas.text.failed && p->canvas.text.p != NULL)
		tctl_term_frame(p->canvas.text.p, p->canvas.text.len);
}

/* Until the next sample is due: keys, and new sizes at once. False: quit. */
static bool wait_due(struct top *p, const json_t *view)
{
	uint64_t due = tn_deadline_after(p->now->at_ns, p->interval_ns);
	for (uint64_t left; (left = p->paused ? TN_NS_PER_S : tn_remaining_ns(due, tn_now_ns())) > 0;) {
		int key = tctl_term_key(left);
		if (tctl_stopped() || key == 'q' || key == 'Q')
			return false;
		if (key == ' ')
			p->paused = !p->paused;
		if (key != 0 || p->paused || tn_remaining_ns(due, tn_now_ns()) > 0)
			draw(p, view);
	}
	return true;
}

static void live(struct top *p)
{
	json_t *view = NULL;
	p->canvas.screen = true;
	do {
		json_decref(view);
		take(p);
		view = tctl_top_view(p->before, p->now);
		tctl_top_remember(&p->history, view);
		draw(p, view);
	} while (wait_due(p, view));
	json_decref(view);
	tctl_term_close();
}

static void once(struct top *p)
{
	take(p);
	tctl_stop_sleep(-1, tn_remaining_ns(tn_deadline_after(p->now->at_ns, p->interval_ns), tn_now_ns()));
	take(p);
	json_t *view = tctl_top_view(p->before, p->now);
	if (p->t->json) {
		tctl_print_json(view);
	} else {
		unsigned height;
		p->canvas.width = WIDTH_PLAIN;
		if (isatty(STDOUT_FILENO))
			tctl_term_size(&p->canvas.width, &height);
		tctl_top_draw(&p->canvas, view, NULL, NULL);
		if (!p->canvas.text.failed && p->canvas.text.p != NULL)
			fwrite(p->canvas.text.p, 1, p->canvas.text.len, stdout);
	}
	json_decref(view);
}

int tctl_cmd_top(struct tctl *t, int argc, char **argv)
{
	struct top p = { .t = t, .interval_ns = INTERVAL_DEFAULT_NS };
	bool single = false;
	const struct tctl_option options[] = {
		{ "once", '1', TCTL_FLAG, &single },
		{ "interval", 'i', TCTL_TIME, &p.interval_ns },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	if (!tctl_args(t, &argc, argv, options, 0, 0))
		return t->exit_code;
	if (p.interval_ns < INTERVAL_LEAST_NS || p.interval_ns > INTERVAL_MOST_NS)
		return tctl_bad_usage(t, "--interval from 100ms to 1h");
	if ((p.dir = tctl_runtime_dir(t)) == NULL)
		return TCTL_FAILED;
	single |= t->json;
	p.before = calloc(1, sizeof *p.before);
	p.now = calloc(1, sizeof *p.now);
	int rc = TCTL_OK;
	if (p.before == NULL || p.now == NULL) {
		rc = tctl_fail(t, TN_NO_MEMORY, "no memory");
	} else {
		tctl_canvas_init(&p.canvas, 0, 0);
		p.canvas.colour = tctl_style_on(stdout);
		p.canvas.utf8 = tctl_term_utf8();
		tctl_stop_catch();
		if (single)
			once(&p);
		else if (tctl_term_open())
			live(&p);
		else
			rc = tctl_fail(t, TN_UNSUPPORTED, "standard input or output is no terminal: use --once or -j");
		tctl_canvas_free(&p.canvas);
		tctl_top_drop(p.before);
		tctl_top_drop(p.now);
	}
	free(p.before);
	free(p.now);
	return rc;
}
