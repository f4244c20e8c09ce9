/* SPDX-License-Identifier: Apache-2.0
 * Telemetry files for people. Nothing here needs a daemon, and nothing believes more than shm-ring checked. */
#include "controlplane/tentctl/region.h"

#include <stdio.h>
#include <string.h>

#include "shm-ring/lease.h"

/* tent-dataplane takes this lease in its runtime directory. */
#define LEASE "dataplane"

static tn_status say(char *err, size_t err_bytes, tn_status s, const char *path)
{
	const char *why = s == TN_AGAIN ? "was never finished: its data plane died while it made the file" :
			  s == TN_ABI_MISMATCH ? "was written by a tent of another major version" :
			  s == TN_INVALID ? "is no telemetry file, or a damaged one" :
			  s == TN_NOT_FOUND ? "does not exist" : tn_status_meaning(s);
	snprintf(err, err_bytes, "%s %s", path, why);
	return s;
}

static tn_status open_one(const char *dir, uint64_t generation, struct tctl_region *out, char *err, size_t err_bytes)
{
	char name[SHR_TELE_NAME_MAX];
	struct tctl_region r = { 0 };
	shr_tele_name(generation, name);
	if ((size_t)snprintf(r.path, sizeof r.path, "%s/%s", dir, name) >= sizeof r.path)
		return say(err, err_bytes, TN_TOO_BIG, dir);
	tn_status s = shr_tele_open_ro(r.path, &r.ro);
	if (s != TN_OK)
		return say(err, err_bytes, s, r.path);
	r.numbers = r.ro.hdr.metrics_compiled && r.ro.lay.cell_cnt == TN_METRIC_CELL_CNT &&
		    r.ro.hdr.schema_hash == tn_metric_schema_hash();
	*out = r;
	return TN_OK;
}

tn_status tctl_region_open(const char *dir, uint64_t generation, struct tctl_region *out, char *err, size_t err_bytes)
{
	uint64_t list[TCTL_REGIONS_MAX];
	uint32_t cnt = 0;
	if (generation != 0)
		return open_one(dir, generation, out, err, err_bytes);
	tn_status s = shr_tele_scan(dir, list, TCTL_REGIONS_MAX, &cnt);
	if (s == TN_OK && cnt == 0)
		s = TN_NOT_FOUND;
	if (s != TN_OK) {
		snprintf(err, err_bytes, "no telemetry file of a data plane in %s: %s", dir,
			 s == TN_NOT_FOUND ? "did one ever run there? (-r names another directory)"
					   : tn_status_meaning(s));
		return s;
	}
	for (uint32_t i = 0; i < cnt; i++)
		if ((s = open_one(dir, list[i], out, err, err_bytes)) == TN_OK)
			return s;
	return s;
}

void tctl_region_close(struct tctl_region *r)
{
	shr_tele_close_ro(&r->ro);
}

const char *tctl_life_text(enum tctl_life life)
{
	static const char *const text[] = {
#define X(n, s) #s,
		TCTL_LIFE_LIST(X)
#undef X
	};
	return (unsigned)life < TN_ARRAY_LEN(text) ? text[life] : "unknown";
}

const char *tctl_tele_state_text(unsigned state)
{
#define X(n, s) #s,
	static const char *const text[] = { SHR_TELE_STATES(X) };
#undef X
	return state < TN_ARRAY_LEN(text) ? text[state] : "invalid";
}

enum tctl_life tctl_region_life(const struct tctl_region *r, const char *dir, uint64_t now_ns)
{
	uint32_t state = tn_load_relaxed32(&r->ro.live->state);
	struct shr_lease_info lease = { 0 };
	tn_status s = shr_lease_read(dir, LEASE, &lease);
	if (s == TN_OK && lease.held && tn_id128_eq(&lease.session, &r->ro.hdr.session)) {
		uint64_t beat = tn_load_relaxed64(&r->ro.live->heartbeat_ns);
		return now_ns > beat && now_ns - beat > TCTL_HUNG_NS ? TCTL_LIFE_HUNG : TCTL_LIFE_RUNNING;
	}
	if (state == SHR_TELE_STOPPED)
		return TCTL_LIFE_STOPPED;
	if (s != TN_OK && s != TN_NOT_FOUND)
		return TCTL_LIFE_UNKNOWN;
	return state == SHR_TELE_STARTING ? TCTL_LIFE_DIED_STARTING :
	       state == SHR_TELE_DRAINING ? TCTL_LIFE_DIED_DRAINING : TCTL_LIFE_DIED;
}

uint64_t tctl_region_last_sign_ns(const struct tctl_region *r)
{
	uint64_t last = TN_MAX(r->ro.hdr.start_mono_ns, tn_load_relaxed64(&r->ro.live->heartbeat_ns));
	for (uint32_t i = 0; i < r->ro.lay.worker_cnt; i++) {
		const struct shr_worker_shm *w = shr_tele_ro_worker(&r->ro, i);
		last = TN_MAX(last, TN_MAX(tn_load_relaxed64(&w->loop_ns), tn_load_relaxed64(&w->last_progress_ns)));
	}
	return last;
}

void tctl_region_fold(const struct tctl_region *r, uint64_t *cells)
{
	memset(cells, 0, TN_METRIC_CELL_CNT * sizeof *cells);
	if (!r->numbers)
		return;
	for (uint32_t t = 0; t <= r->ro.lay.worker_cnt; t++)
		tn_metric_fold(cells, shr_tele_ro_cells(&r->ro, t), TN_OWNER_DP);
}

void tctl_region_fold_thread(const struct tctl_region *r, uint32_t thread, uint64_t *cells)
{
	memset(cells, 0, TN_METRIC_CELL_CNT * sizeof *cells);
	if (r->numbers && thread <= r->ro.lay.worker_cnt)
		tn_metric_fold(cells, shr_tele_ro_cells(&r->ro, thread), TN_OWNER_DP);
}

uint64_t tctl_hist_count(const uint64_t *cells, struct tn_hist_at at)
{
	uint64_t n = 0;
	for (uint32_t b = 0; b <= tn_bucket_cnt(at.type); b++)
		n += cells[at.cell + b];
	return n;
}

uint64_t tctl_hist_at2(const uint64_t *cells, struct tn_hist_at a, struct tn_hist_at b, unsigned permille)
{
	const struct tn_buckets *set = &tn_bucket_sets[a.type - TN_MTYPE_LATENCY];
	bool one = a.cell == b.cell;
	uint64_t total = tctl_hist_count(cells, a) + (one ? 0 : tctl_hist_count(cells, b));
	if (total == 0)
		return 0;
	double want = (double)total * permille / 1000.0, below = 0;
	for (uint32_t k = 0; k < set->cnt; k++) {
		double here = (double)(cells[a.cell + k] + (one ? 0 : cells[b.cell + k]));
		uint64_t low = k > 0 ? set->bound[k - 1] : 0;
		if (here > 0 && below + here >= want)
			return low + (uint64_t)((double)(set->bound[k] - low) * (want - below) / here);
		below += here;
	}
	return set->bound[set->cnt - 1];
}

uint64_t tctl_hist_at(const uint64_t *cells, struct tn_hist_at at, unsigned permille)
{
	return tctl_hist_at2(cells, at, at, permille);
}
