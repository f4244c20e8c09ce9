/* SPDX-License-Identifier: Apache-2.0
 * `tentctl peer list|probe`: the other hosts as this one sees them. */
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/style.h"
#include "controlplane/tentctl/tentctl.h"

static const char *us_text(const json_t *obj, const char *key)
{
	return json_object_get(obj, key) != NULL ? tctl_time_text(tctl_u64(obj, key) * TN_NS_PER_US) : "-";
}

static const char *heard_text(const json_t *peer)
{
	return json_object_get(peer, "heard_ms_ago") != NULL ?
	       tctl_time_text(tctl_u64(peer, "heard_ms_ago") * TN_NS_PER_MS) : "never";
}

/* Whether its control plane answers us. */
static const char *control_text(const json_t *peer)
{
	const char *connection = tctl_text(peer, "connection");
	bool lost = strcmp(connection, "broken") == 0 || strcmp(connection, "unreached") == 0;
	return json_object_get(peer, "error") != NULL ? "fails" : lost ? "lost" :
	       json_object_get(peer, "heard_ms_ago") != NULL ? "ok" : "not asked";
}

/* What fails now; below the table, because such a line is long. */
static void print_trouble(const json_t *list)
{
	size_t i;
	json_t *p;
	json_array_foreach(list, i, p) {
		const json_t *last = json_object_get(p, "last_failure");
		if (json_object_get(p, "detail") == NULL)
			continue;
		char text[400];
		snprintf(text, sizeof text, "%s", json_string_value(json_object_get(p, "detail")));
		printf("%s: %s (%s", tctl_text(p, "name"), tctl_clean(text), tctl_text(p, "error"));
		if (last != NULL && strcmp(tctl_text(last, "error"), tctl_text(p, "error")) == 0)
			printf(", %s ago", tctl_time_text(tctl_u64(last, "ms_ago") * TN_NS_PER_MS));
		puts(")");
	}
}

static void print_list(const json_t *list)
{
	static const char *const headings[] = { "NAME", "ADDRESS", "CONTROL", "CONTROL-HEARD", "TICKET",
						"DATA", "TRANSPORT", ">LANES", ">CONNS-IN", ">LANE-RTT" };
	struct tctl_table *tb = tctl_table_new(TN_ARRAY_LEN(headings), headings);
	size_t i;
	json_t *p;
	json_array_foreach(list, i, p) {
		tctl_table_row(tb, (const char *[]){
			tctl_text(p, "name"), tctl_text(p, "address"), control_text(p), heard_text(p),
			tctl_text(p, "ticket"), tctl_text(p, "state"), tctl_text(p, "transport"), tctl_text(p, "lanes"),
			tctl_text(p, "lanes_in"), us_text(p, "control_lane_rtt_us") });
	}
	if (json_array_size(list) > 0)
		tctl_table_print(tb, stdout);
	else
		puts("no peers in the configuration");
	tctl_table_free(tb);
	print_trouble(list);
}

int tctl_cmd_peer_list(struct tctl *t, int argc, char **argv)
{
	uint64_t total = 0;
	if (!tctl_args(t, &argc, argv, NULL, 0, 0))
		return t->exit_code;
	json_t *all = json_array();
	int rc = tctl_collect(t, "peer_list", "peers", 0, UINT64_MAX, all, &total);
	if (rc == TCTL_OK && t->json) {
		json_t *j = json_object();
		json_object_set(j, "peers", all);
		tctl_print_json(j);
		json_decref(j);
	} else if (rc == TCTL_OK) {
		print_list(all);
	}
	json_decref(all);
	return rc;
}

static void print_probe(const char *peer, const json_t *answer)
{
	const json_t *lanes = json_object_get(answer, "lanes"), *stray = json_object_get(answer, "refused_in");
	printf("%s answers: control plane in %s\n", peer, us_text(answer, "control_plane_rtt_us"));
	if (lanes != NULL)
		printf("lanes there: %s: %s\n", tctl_text(lanes, "transport"), tctl_text(lanes, "detail"));
	if (stray != NULL)
		printf("lanes from there: %s came from %s and were refused, the last one %s ago; if that address is right, add it to "
		       "peers/%s/data_addresses here\n",
		       tctl_text(stray, "count"), tctl_text(stray, "address"),
		       tctl_time_text(tctl_u64(stray, "ms_ago") * TN_NS_PER_MS), peer);
}

/* No lane can get through as both hosts are configured. */
static bool refused_there(const json_t *answer)
{
	const char *why = json_string_value(json_object_get(json_object_get(answer, "lanes"), "why"));
	return why != NULL && strcmp(why, "address_refused") == 0;
}

int tctl_cmd_peer_probe(struct tctl *t, int argc, char **argv)
{
	json_t *answer, *body;
	if (!tctl_args(t, &argc, argv, NULL, 1, 1))
		return t->exit_code;
	if (!tn_name_valid(argv[1]))
		return tctl_bad_usage(t, "\"%.200s\" is no peer name: 1 to 63 of A-Z a-z 0-9 . _ -", argv[1]);
	body = json_object();
	tn_json_put_str(body, "peer", argv[1]);
	if (tctl_ask(t, "peer_probe", body, &answer) != TCTL_OK)
		return TCTL_FAILED;
	tn_json_put_str(answer, "peer", argv[1]);
	if (t->json)
		tctl_print_json(answer);
	else
		print_probe(argv[1], answer);
	int exit_code = refused_there(answer) ? TCTL_FAILED : TCTL_OK;
	json_decref(answer);
	return exit_code;
}
