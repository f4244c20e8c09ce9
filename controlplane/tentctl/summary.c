/* SPDX-License-Identifier: Apache-2.0
 * The report of a transfer: two lines for people, one object with -j. Speed is that of the transfer phase, from the
 * first chunk submitted to the last one done (reading and hashing the file overlap with it); verification is extra. */
#include "controlplane/tentctl/summary.h"

#include <string.h>

#include "common/message.h"

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0.0;
}

static double gb_per_s(const struct tctl_summary *s)
{
	double d = seconds(s->first_ns, s->last_ns);
	return d > 0 ? (double)s->bytes / 1e9 / d : 0.0;
}

/* Kinds that carried payload, the busiest first. */
static unsigned by_share(const struct tctl_pump *p, tent_transport kinds[TCTL_PUMP_TRANSPORTS])
{
	unsigned n = 0;
	for (unsigned k = 0; k < TCTL_PUMP_TRANSPORTS; k++) {
		if (p->stats.bytes[k] == 0)
			continue;
		unsigned at = n++;
		for (; at > 0 && p->stats.bytes[kinds[at - 1]] < p->stats.bytes[k]; at--)
			kinds[at] = kinds[at - 1];
		kinds[at] = (tent_transport)k;
	}
	return n;
}

static const char *verified_text(const struct tctl_summary *s)
{
	if (s->verified == NULL)
		return "not verified: the segment has no published hash";
	if (strcmp(s->verified, "publisher") == 0)
		return "verified on the far side";
	return strcmp(s->verified, "read_back") == 0 ? "verified by reading it back"
						     : "verified against the published hash";
}

static void print_json(const struct tctl_pump *p, const struct tctl_summary *s, const char *hex, double cpu_s)
{
	tent_transport kinds[TCTL_PUMP_TRANSPORTS];
	tent_info info = TENT_INFO_INIT;
	unsigned n = by_share(p, kinds);
	json_t *j = json_object(), *by = json_object(), *lat = json_object();
	tn_json_put_str(j, "command", s->command);
	tctl_put_name(j, "file", s->file);
	tn_json_put_str(j, "segment", s->segment);
	tn_json_put_u64(j, "bytes", s->bytes);
	tn_json_put_str(j, "sha256", hex);
	json_object_set_new(j, "verified", s->verified != NULL ? json_string(s->verified) : json_false());
	json_object_set_new(j, "seconds", json_real(seconds(s->first_ns, s->last_ns)));
	json_object_set_new(j, "gb_per_s", json_real(gb_per_s(s)));
	json_object_set_new(j, "verify_seconds", json_real(seconds(s->last_ns, s->end_ns)));
	json_object_set_new(j, "total_seconds", json_real(seconds(s->start_ns, s->end_ns)));
	json_object_set_new(j, "cpu_seconds", json_real(cpu_s));
	json_object_set_new(j, "transport", n > 0 ? json_string(tent_transport_name(kinds[0])) : json_null());
	for (unsigned i = 0; i < n; i++)
		tn_json_put_u64(by, tent_transport_name(kinds[i]), p->stats.bytes[kinds[i]]);
	json_object_set_new(j, "bytes_by_transport", by);
	tn_json_put_u64(j, "chunks", p->stats.chunks);
	tn_json_put_u64(j, "attempts", p->stats.attempts);
	tn_json_put_u64(j, "resubmitted", p->stats.resent);
	if (tent_query(p->ctx, &info) == TENT_OK)
		tn_json_put_u64(j, "reattached", info.reattach_count);
	tn_json_put_u64(lat, "p50", tn_loghist_percentile(&p->stats.latency_ns, 50) / TN_NS_PER_US);
	tn_json_put_u64(lat, "p99", tn_loghist_percentile(&p->stats.latency_ns, 99) / TN_NS_PER_US);
	tn_json_put_u64(lat, "max", p->stats.latency_ns.max / TN_NS_PER_US);
	json_object_set_new(j, "chunk_latency_us", lat);
	tctl_print_json(j);
	json_decref(j);
}

static void print_text(const struct tctl_pump *p, const struct tctl_summary *s, const char *hex, double cpu_s)
{
	tent_transport kinds[TCTL_PUMP_TRANSPORTS];
	unsigned n = by_share(p, kinds);
	printf("%s %s, %.3f s", s->command, tctl_bytes_text(s->bytes), seconds(s->first_ns, s->last_ns));
	if (s->bytes > 0)
		printf(", %.2f GB/s", gb_per_s(s));
	for (unsigned i = 0; i < n; i++) {
		printf("%s%s", i == 0 ? " over " : ", ", tent_transport_name(kinds[i]));
		if (n > 1)
			printf(" %.1f %%", 100.0 * (double)p->stats.bytes[kinds[i]] / (double)p->stats.done_bytes);
	}
	printf("; %s (%.3f s)\n  sha256 %s\n", verified_text(s), seconds(s->last_ns, s->end_ns), hex);
	printf(
	    "  %llu chunk%s, %llu attempt%s, %llu sent again; latency of a chunk p50 %s, p99 %s; CPU of tentctl %.3f s\n",
	    (unsigned long long)p->stats.chunks, tn_plural(p->stats.chunks),
	    (unsigned long long)p->stats.attempts, tn_plural(p->stats.attempts),
	    (unsigned long long)p->stats.resent, tctl_time_text(tn_loghist_percentile(&p->stats.latency_ns, 50)),
	    tctl_time_text(tn_loghist_percentile(&p->stats.latency_ns, 99)), cpu_s);
}

void tctl_summary_print(const struct tctl_pump *p, const struct tctl_summary *s)
{
	char hex[TCTL_SHA256_HEX];
	double cpu_s = seconds(s->cpu_start_ns, tn_cpu_ns());
	tctl_sha256_hex(s->sha256, hex);
	if (p->t->json)
		print_json(p, s, hex, cpu_s);
	else
		print_text(p, s, hex, cpu_s);
}
