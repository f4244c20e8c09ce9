/* SPDX-License-Identifier: Apache-2.0
 * `tentctl postmortem [GENERATION]`: what a dead (or running) data plane left behind. Asks no daemon. */
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/postmortem/postmortem.h"
#include "controlplane/tentctl/region.h"
#include "controlplane/tentctl/tentctl.h"

enum { EVENTS_DEFAULT = 40, EVENTS_MOST = 10000 };

struct found { uint64_t generation; enum tctl_life life; };

static bool crashed(enum tctl_life life)
{
	return life == TCTL_LIFE_DIED || life == TCTL_LIFE_DIED_STARTING || life == TCTL_LIFE_DIED_DRAINING ||
	       life == TCTL_LIFE_UNKNOWN;
}

/* All whole files of the directory, newest first. */
static uint32_t look_around(const char *dir, uint64_t now_ns, struct found out[static TCTL_REGIONS_MAX])
{
	uint64_t list[TCTL_REGIONS_MAX];
	uint32_t cnt = 0, n = 0;
	char err[512];
	if (shr_tele_scan(dir, list, TCTL_REGIONS_MAX, &cnt) != TN_OK)
		return 0;
	for (uint32_t i = 0; i < cnt; i++) {
		struct tctl_region r;
		if (tctl_region_open(dir, list[i], &r, err, sizeof err) != TN_OK)
			continue;
		out[n++] = (struct found){ list[i], tctl_region_life(&r, dir, now_ns) };
		tctl_region_close(&r);
	}
	return n;
}

/* The newest that crashed; else the newest that is over; else the newest. 0 when there is none. */
static uint64_t choose(const struct found *f, uint32_t cnt)
{
	for (uint32_t i = 0; i < cnt; i++)
		if (crashed(f[i].life))
			return f[i].generation;
	for (uint32_t i = 0; i < cnt; i++)
		if (f[i].life == TCTL_LIFE_STOPPED)
			return f[i].generation;
	return cnt > 0 ? f[0].generation : 0;
}

static bool parse_generation(const char *text, uint64_t *out)
{
	char *end;
	*out = strtoull(text, &end, 10);
	return text[0] >= '1' && text[0] <= '9' && *end == '\0' && strlen(text) <= 18;
}

static json_t *others_json(const struct found *f, uint32_t cnt, uint64_t shown)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < cnt; i++) {
		if (f[i].generation == shown)
			continue;
		json_t *j = json_object();
		tn_json_put_u64(j, "generation", f[i].generation);
		tn_json_put_str(j, "verdict", tctl_life_text(f[i].life));
		json_array_append_new(list, j);
	}
	return list;
}

int tctl_cmd_postmortem(struct tctl *t, int argc, char **argv)
{
	uint64_t events = EVENTS_DEFAULT, generation = 0;
	struct tctl_postmortem_cfg cfg = { .now_ns = tn_now_ns(), .now_real_ns = tn_real_ns() };
	const struct tctl_option options[] = {
		{ "events", 'n', TCTL_COUNT, &events },
		{ "spans", '\0', TCTL_FLAG, &cfg.spans },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	struct found found[TCTL_REGIONS_MAX];
	struct tctl_region r;
	char err[TCTL_REGION_PATH_MAX + 256];

	if (!tctl_args(t, &argc, argv, options, 0, 1))
		return t->exit_code;
	if (argc > 1 && !parse_generation(argv[1], &generation))
		return tctl_bad_usage(t, "\"%.100s\" is no generation: the number in dataplane-N.tele", argv[1]);
	if (events > EVENTS_MOST)
		return tctl_bad_usage(t, "--events: at most %d", EVENTS_MOST);
	const char *dir = tctl_runtime_dir(t);
	if (dir == NULL)
		return TCTL_FAILED;
	uint32_t cnt = look_around(dir, cfg.now_ns, found);
	tn_status s = tctl_region_open(dir, generation != 0 ? generation : choose(found, cnt), &r, err, sizeof err);
	if (s != TN_OK)
		return tctl_fail(t, s, "%s", err);
	cfg.events_max = (uint32_t)events;
	cfg.life = tctl_region_life(&r, dir, cfg.now_ns);
	json_t *doc = tctl_postmortem_gather(&r, &cfg);
	json_object_set_new(doc, "others", others_json(found, cnt, r.ro.hdr.generation));
	if (t->json)
		tctl_print_json(doc);
	else
		tctl_postmortem_print(doc, stdout);
	json_decref(doc);
	tctl_region_close(&r);
	return TCTL_OK;
}
