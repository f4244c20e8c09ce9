/* SPDX-License-Identifier: Apache-2.0
 * `tentctl verify`: do the counters of this host add up? Both sides of an equation are read while workers count, so a
 * running host is looked at several times: an equation is wrong only if it never held. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "common/metrics_check.h"
#include "controlplane/tentctl/samples.h"
#include "controlplane/tentctl/server.h"
#include "controlplane/tentctl/tentctl.h"

enum { LOOKS_MOST = 20, BALANCES_MOST = 512 };
#define LOOK_AGAIN_NS (100 * TN_NS_PER_MS)

/* A family that the data plane always exposes: without it nothing is recorded or nobody ever attached. */
#define WITNESS "tent_logical_requests_started_total"

struct verify {
	struct tctl *t;
	char where[TCTL_SERVER_TEXT];
	unsigned looks;
	struct balance { struct tn_equation_breach sides; bool holds; } kept[BALANCES_MOST];
	size_t cnt;
	size_t at;               /* of the walk that runs */
	uint64_t cells[TN_METRIC_CELL_CNT];
};

static int look(struct verify *v)
{
	char err[512];
	struct tctl_samples s;
	bool witness = false;
	int status;
	char *text = tctl_page_fetch(v->where, "/metrics", v->t->timeout_ns, &status, err, sizeof err);
	if (text == NULL)
		return tctl_fail(v->t, TN_CONTROLPLANE_DOWN, "%s", err);
	if (status != 200) {
		free(text);
		return tctl_fail(v->t, TN_CONTROLPLANE_DOWN, "http://%s/metrics answers with status %d", v->where, status);
	}
	if (!tctl_samples_parse(text, &s, err, sizeof err))
		return tctl_fail(v->t, TN_PATH_PROTOCOL, "%s", err);
	for (size_t i = 0; i < s.cnt; i++)
		witness |= strcmp(s.item[i].name, WITNESS) == 0;
	bool known = tctl_samples_to_cells(&s, v->cells, err, sizeof err);
	tctl_samples_free(&s);
	if (!witness)
		return tctl_fail(v->t, TN_UNSUPPORTED,
				 "http://%s/metrics has no counters of a data plane: none ever attached, or the "
				 "build records none",
				 v->where);
	return known ? TCTL_OK : tctl_fail(v->t, TN_ABI_MISMATCH, "%s", err);
}

/* Keeps the first look at which an equation held, else the last look. The walk has the same order every time. */
static void keep(void *ctx, const struct tn_equation_breach *sides, bool holds)
{
	struct verify *v = ctx;
	if (v->at == BALANCES_MOST)
		return;
	struct balance *k = &v->kept[v->at++];
	if (!k->holds)
		*k = (struct balance){ .sides = *sides, .holds = holds };
	v->cnt = TN_MAX(v->cnt, v->at);
}

/* How many never held. */
static size_t merge(struct verify *v)
{
	size_t wrong = 0;
	v->at = 0;
	tn_metric_equations_walk(v->cells, keep, v);
	for (size_t i = 0; i < v->cnt; i++)
		wrong += !v->kept[i].holds;
	return wrong;
}

static void print_table(const struct verify *v, size_t wrong)
{
	static const char *const headings[] = { "NO", "EQUATION", "OF", "LEFT", "RIGHT", "HOLDS" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	size_t idle = 0;
	for (size_t i = 0; i < v->cnt; i++) {
		const struct tn_equation_breach *b = &v->kept[i].sides;
		char number[8], left[24], right[24];
		if (b->left == 0 && b->right == 0) { /* most of them: nothing of that kind happened */
			idle++;
			continue;
		}
		snprintf(number, sizeof number, "%u", b->equation);
		snprintf(left, sizeof left, "%" PRId64, b->left);
		snprintf(right, sizeof right, "%" PRId64, b->right);
		tctl_table_row(
		    tb, (const char *[]){number, b->text, b->where, left, right, v->kept[i].holds ? "yes" : "NO"});
	}
	tctl_table_print(tb, stdout);
	tctl_table_free(tb);
	printf("\n%zu of %zu hold, %zu of them as 0 = 0 (looked %u time%s at http://%s/metrics)\n", v->cnt - wrong,
	       v->cnt, idle, v->looks, tn_plural(v->looks), v->where);
}

static void print_json(const struct verify *v, size_t wrong)
{
	json_t *j = json_object(), *list = json_array();
	for (size_t i = 0; i < v->cnt; i++) {
		const struct tn_equation_breach *b = &v->kept[i].sides;
		json_t *item = json_object();
		tn_json_put_u64(item, "number", b->equation);
		tn_json_put_str(item, "equation", b->text);
		tn_json_put_str(item, "of", b->where);
		json_object_set_new(item, "left", json_integer(b->left));
		json_object_set_new(item, "right", json_integer(b->right));
		tn_json_put_bool(item, "holds", v->kept[i].holds);
		json_array_append_new(list, item);
	}
	tn_json_put_bool(j, "ok", wrong == 0);
	tn_json_put_u64(j, "wrong", wrong);
	tn_json_put_u64(j, "looks", v->looks);
	json_object_set_new(j, "equations", list);
	tctl_print_json(j);
	json_decref(j);
}

int tctl_cmd_verify(struct tctl *t, int argc, char **argv)
{
	size_t wrong = 1;
	if (!tctl_args(t, &argc, argv, NULL, 0, 0))
		return t->exit_code;
	struct verify *v = calloc(1, sizeof *v);
	if (v == NULL)
		return tctl_fail(t, TN_NO_MEMORY, "no memory");
	v->t = t;
	char err[512];
	tn_status s = tctl_server_address(t, v->where, err, sizeof err);
	int rc = s == TN_OK ? TCTL_OK : s == TN_CONFIG ? TCTL_FAILED : tctl_fail(t, s, "%s", err); /* CONFIG was said */
	while (rc == TCTL_OK && wrong > 0 && v->looks < LOOKS_MOST) {
		if (v->looks > 0)
			tctl_stop_sleep(-1, LOOK_AGAIN_NS);
		rc = look(v);
		v->looks++;
		wrong = rc == TCTL_OK ? merge(v) : wrong;
	}
	if (rc == TCTL_OK) {
		if (t->json)
			print_json(v, wrong);
		else
			print_table(v, wrong);
		if (wrong > 0)
			fprintf(stderr,
				"tentctl: %zu equation%s wrong: that is a bug in tent, please report it with this output\n",
				wrong, tn_plural(wrong));
		rc = wrong == 0 ? TCTL_OK : TCTL_FAILED;
	}
	free(v);
	return rc;
}
