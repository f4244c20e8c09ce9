/* SPDX-License-Identifier: Apache-2.0
 * `tentctl status`: the pair of daemons at a glance. */
#include <string.h>

#include "common/message.h"
#include "controlplane/tentctl/tentctl.h"

static void print_control_plane(const json_t *answer)
{
	const json_t *c = json_object_get(answer, "control_plane");
	printf("host           %s\n", tctl_text(answer, "host"));
	printf("control plane  version %s, %s, %s here, %s remote cached, %s running\n", tctl_text(c, "version"),
	       tctl_count_text(c, "peers", "peer", "peers"), tctl_count_text(c, "segments", "segment", "segments"),
	       tctl_text(c, "remote_segments_cached"), tctl_count_text(c, "calls_outstanding", "call", "calls"));
	if (tctl_u64(c, "messages_refused") > 0 || tctl_u64(c, "datagrams_dropped") > 0)
		printf("               %s refused, %s dropped\n",
		       tctl_count_text(c, "messages_refused", "message", "messages"),
		       tctl_count_text(c, "datagrams_dropped", "datagram", "datagrams"));
}

static void print_endpoints(const json_t *d)
{
	const json_t *list = json_object_get(d, "endpoints");
	size_t i;
	json_t *e;
	json_array_foreach(list, i, e)
		printf("%s %s %s", i == 0 ? "endpoints     " : ",", tctl_text(e, "transport"), tctl_text(e, "address"));
	if (json_array_size(list) > 0)
		putchar('\n');
}

static void print_data_plane(const json_t *answer)
{
	const json_t *d = json_object_get(answer, "data_plane");
	if (d == NULL) {
		printf("data plane     not attached: %s\n", tctl_text(answer, "data_plane_trouble"));
		return;
	}
	printf("data plane     pid %s, generation %s, session %.8s\n", tctl_text(d, "pid"), tctl_text(d, "generation"),
	       tctl_text(d, "session"));
	const json_t *trouble = json_object_get(answer, "data_plane_error");
	if (trouble != NULL) {
		printf("               does not answer: %s\n", json_string_value(trouble));
		return;
	}
	const char *state = tctl_text(d, "state");
	if (strcmp(state, "paused") == 0)
		puts("               paused: requests wait until tentctl resume");
	else if (strcmp(state, "draining") == 0)
		puts("               draining: it ends when it has done what it took");
	json_t *kind;
	size_t i;
	json_array_foreach(json_object_get(d, "transports_off"), i, kind)
		printf("               %s is switched off: requests go other ways, or wait, until tentctl transport enable %s\n",
		       json_string_value(kind), json_string_value(kind));
	printf("               %s, %s, %s (%s), %s published, %s opened\n",
	       tctl_count_text(d, "clients", "client", "clients"), tctl_count_text(d, "qps", "queue pair", "queue pairs"),
	       tctl_count_text(d, "memories", "memory", "memories"), tctl_bytes_text(tctl_u64(d, "memory_bytes")),
	       tctl_count_text(d, "segments", "segment", "segments"), tctl_text(d, "remotes"));
	print_endpoints(d);
}

/* One column per member of the first entry: the list stays readable when a newer data plane says more. */
static void print_rows(const char *title, const json_t *list)
{
	enum { COLUMNS_MOST = 8, HEADING = 24 };
	char heading[COLUMNS_MOST][HEADING];
	const char *headings[COLUMNS_MOST], *keys[COLUMNS_MOST], *cells[COLUMNS_MOST], *key;
	unsigned n = 0;
	size_t i;
	json_t *row, *v;
	if (json_array_size(list) == 0)
		return;
	json_object_foreach(json_array_get(list, 0), key, v) {
		if (n == COLUMNS_MOST || json_is_object(v) || json_is_array(v))
			continue;
		snprintf(heading[n], HEADING, "%s", key);
		for (char *p = heading[n]; *p != '\0'; p++)
			*p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p == '_' ? '-' : *p;
		headings[n] = heading[n];
		keys[n++] = key;
	}
	if (n == 0)
		return;
	struct tctl_table *tb = tctl_table_new(n, headings);
	json_array_foreach(list, i, row) {
		for (unsigned k = 0; k < n; k++)
			cells[k] = tctl_text(row, keys[k]);
		tctl_table_row(tb, cells);
	}
	printf("\n%s\n", title);
	tctl_table_print(tb, stdout);
	tctl_table_free(tb);
}

/* In numbers: tentctl peer list has the table. Peers that the data plane was never asked for are idle. */
static void print_peers(const json_t *answer)
{
	static const char *const states[] = { "up", "connecting", "down", "idle" };
	const json_t *d = json_object_get(answer, "data_plane");
	const json_t *by_state = json_object_get(d, "peers");
	uint64_t cnt[TN_ARRAY_LEN(states)], known = 0, all = tctl_u64(json_object_get(answer, "control_plane"), "peers");
	if (!json_is_object(by_state) || all == 0)
		return;
	for (size_t k = 0; k < TN_ARRAY_LEN(states); k++)
		known += cnt[k] = tctl_u64(by_state, states[k]);
	cnt[TN_ARRAY_LEN(states) - 1] += all > known ? all - known : 0;
	printf("\nlanes to peers");
	for (size_t k = 0, shown = 0; k < TN_ARRAY_LEN(states); k++)
		if (cnt[k] > 0)
			printf("%s%llu %s", shown++ > 0 ? ", " : " ", (unsigned long long)cnt[k], states[k]);
	puts(" (tentctl peer list)");
}

int tctl_cmd_status(struct tctl *t, int argc, char **argv)
{
	json_t *answer;
	if (!tctl_args(t, &argc, argv, NULL, 0, 0))
		return t->exit_code;
	if (tctl_ask(t, "status", NULL, &answer) != TCTL_OK)
		return TCTL_FAILED;
	if (t->json) {
		tctl_print_json(answer);
	} else {
		const json_t *d = json_object_get(answer, "data_plane");
		print_control_plane(answer);
		print_data_plane(answer);
		print_rows("workers", json_object_get(d, "workers"));
		print_peers(answer);
	}
	json_decref(answer);
	return TCTL_OK;
}
