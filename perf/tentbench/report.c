/* SPDX-License-Identifier: Apache-2.0
 * Table and JSON. See report.h. */
#include "perf/tentbench/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/compiler.h"
#include "common/units.h"
#include "common/version.h"

#define JSON_MAX (16u << 20)
#define OTHERS_NOTED 0.10 /* CPUs that others used: from here on the table says so */

static const char *const transport_names[] = { "any", "rdma", "hp_tcp", "tcp", "shm" }; /* order of tent_transport */

/* ---- environment ---- */

/* Of the first line of `path` that begins with `prefix`: what follows. "?" when there is none. */
static void read_line(const char *path, const char *prefix, char *out, size_t out_bytes)
{
	char line[512];
	FILE *f = fopen(path, "re");

	(void)snprintf(out, out_bytes, "?");
	while (f != NULL && fgets(line, sizeof line, f) != NULL) {
		if (strncmp(line, prefix, strlen(prefix)) != 0)
			continue;
		const char *value = line + strlen(prefix) + strspn(line + strlen(prefix), "\t :");
		(void)snprintf(out, out_bytes, "%.*s", (int)strcspn(value, "\n"), value);
		break;
	}
	if (f != NULL)
		(void)fclose(f);
}

static void json_line(struct tn_jout *j, const char *key, const char *path, const char *prefix)
{
	char value[256];

	read_line(path, prefix, value, sizeof value);
	tn_jout_str(j, key, value);
}

static void json_processes(struct tn_jout *j, const struct tb_procs *ps)
{
	tn_jout_array(j, "processes");
	for (unsigned i = 0; i < ps->cnt; i++) {
		tn_jout_object(j, NULL);
		tn_jout_i64(j, "pid", ps->p[i].pid);
		tn_jout_str(j, "name", ps->p[i].name);
		tn_jout_str(j, "cpus", ps->p[i].cpus);
		tn_jout_close_object(j);
	}
	tn_jout_close_array(j);
}

static void json_environment(struct tb_report *rep, int argc, char **argv)
{
	struct tn_jout *j = &rep->json;
	struct utsname u = { 0 };
	char when[40], kernel[160];
	time_t now = time(NULL);
	struct tm tm;

	(void)uname(&u);
	(void)snprintf(kernel, sizeof kernel, "%s %s", u.sysname, u.release);
	(void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	tn_jout_object(j, "environment");
	tn_jout_str(j, "tool", tb_tool_name(rep->args->tool));
	tn_jout_str(j, "version", TN_VERSION);
	tn_jout_str(j, "commit", TN_COMMIT);
	tn_jout_str(j, "build_type", TN_BUILD_TYPE);
	tn_jout_str(j, "started", when);
	json_line(j, "cpu", "/proc/cpuinfo", "model name");
	tn_jout_i64(j, "cpus_online", sysconf(_SC_NPROCESSORS_ONLN));
	tn_jout_str(j, "kernel", kernel);
	tn_jout_str(j, "machine", u.machine);
	json_line(j, "transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled", "");
	json_line(j, "transparent_hugepage_shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled", "");
	json_line(j, "default_congestion_control", "/proc/sys/net/ipv4/tcp_congestion_control", "");
	json_line(j, "load_at_start", "/proc/loadavg", "");
	tn_jout_u64(j, "seed", rep->args->seed);
	tn_jout_array(j, "command");
	for (int i = 0; i < argc; i++)
		tn_jout_str(j, NULL, argv[i]);
	tn_jout_close_array(j);
	json_processes(j, rep->procs);
	tn_jout_close_object(j);
}

static void table_environment(struct tb_report *rep, const struct tb_result *first_lap)
{
	char cpu[200], load[80];
	struct utsname u = { 0 };

	(void)uname(&u);
	read_line("/proc/cpuinfo", "model name", cpu, sizeof cpu);
	read_line("/proc/loadavg", "", load, sizeof load);
	fprintf(rep->table, "# %s %s (%s, %s), %s, %s %s, load %s\n# seed %" PRIu64 "; CPUs/GB is CPU time of:",
		tb_tool_name(rep->args->tool), TN_VERSION, TN_COMMIT, TN_BUILD_TYPE, cpu, u.sysname, u.release, load,
		rep->args->seed);
	for (unsigned i = 0; i < rep->procs->cnt; i++)
		fprintf(rep->table, " %s[%d]", rep->procs->p[i].name, (int)rep->procs->p[i].pid);
	if (first_lap != NULL && !first_lap->failed)
		fprintf(rep->table, "\n# first lap over pools that the daemons never touched: %.3f GB/s, %.3f CPUs/GB",
			tb_result_gbps(first_lap), tb_result_cpu_per_gb(first_lap, rep->procs, -1));
	fprintf(rep->table, "\n%-5s %8s %5s %-5s %-5s %8s %9s %8s %8s %8s %8s %8s %8s\n", "op", "size", "depth", "pool", "via",
		"GB/s", "ops/s", "p50", "p90", "p99", "p99.9", "daemon", "CPUs/GB");
	(void)fflush(rep->table);
}

/* ---- cells ---- */

static void json_number(struct tn_jout *j, const char *key, double value, unsigned decimals)
{
	double scale = 1;

	for (unsigned i = 0; i < decimals; i++)
		scale *= 10;
	if (value < 0)
		tn_jout_null(j, key);
	else
		tn_jout_fixed(j, key, (uint64_t)(value * scale + 0.5), decimals);
}

static void json_latency(struct tn_jout *j, const char *key, const struct tn_loghist *h)
{
	static const struct { const char *key; double pct; } rows[] = {
		{ "min", 0 }, { "p50", 50 }, { "p90", 90 }, { "p99", 99 }, { "p999", 99.9 }, { "max", 100 } };

	tn_jout_object(j, key);
	for (size_t i = 0; i < TN_ARRAY_LEN(rows); i++)
		tn_jout_fixed(j, rows[i].key, tn_loghist_percentile(h, rows[i].pct), 3);
	json_number(j, "mean", tn_loghist_mean(h) / 1e3, 3);
	tn_jout_close_object(j);
}

static void json_what(struct tn_jout *j, const struct tb_args *a, const struct tb_result *r)
{
	tn_jout_str(j, "tool", tb_tool_name(a->tool));
	tn_jout_str(j, "op", tb_op_name(r->spec.op));
	tn_jout_u64(j, "bytes", r->spec.bytes);
	tn_jout_u64(j, "depth", r->spec.depth);
	tn_jout_u64(j, "threads", a->threads);
	tn_jout_str(j, "pool", tb_pool_name(a->pool));
	tn_jout_u64(j, "pool_bytes", r->spec.pool_bytes);
	tn_jout_bool(j, "hugetlb", a->hugetlb);
	if (a->tool == TB_TENT) {
		tn_jout_str(j, "hint", transport_names[a->transport]);
		tn_jout_str(j, "application", a->busy ? "busy" : "sleeping");
		tn_jout_bool(j, "verify", a->verify);
	}
	tn_jout_array(j, "transports");
	for (unsigned t = 0; t < TN_ARRAY_LEN(transport_names); t++)
		if ((r->transports & 1u << t) != 0)
			tn_jout_str(j, NULL, transport_names[t]);
	tn_jout_close_array(j);
}

static void json_cpu(struct tn_jout *j, const struct tb_result *r, const struct tb_procs *ps)
{
	json_number(j, "cpu_s_per_gb", tb_result_cpu_per_gb(r, ps, -1), 5);
	tn_jout_array(j, "cpu");
	for (unsigned i = 0; i < ps->cnt; i++) {
		tn_jout_object(j, NULL);
		tn_jout_i64(j, "pid", ps->p[i].pid);
		tn_jout_str(j, "name", ps->p[i].name);
		tn_jout_fixed(j, "seconds", r->end.cpu_ns[i] - r->begin.cpu_ns[i], 9);
		json_number(j, "s_per_gb", tb_result_cpu_per_gb(r, ps, (int)i), 5);
		tn_jout_close_object(j);
	}
	tn_jout_close_array(j);
	json_number(j, "other_cpus", tb_result_other_cpus(r, ps), 3);
}

static void json_cell(struct tb_report *rep, const struct tb_result *r)
{
	struct tn_jout *j = &rep->json;

	tn_jout_object(j, NULL);
	json_what(j, rep->args, r);
	tn_jout_bool(j, "ok", !r->failed);
	if (r->failed) {
		tn_jout_str(j, "error", r->why);
	} else {
		tn_jout_fixed(j, "window_s", tb_result_window_ns(r), 9);
		tn_jout_u64(j, "operations", r->ops);
		tn_jout_u64(j, "moved_bytes", r->bytes);
		tn_jout_u64(j, "verified_bytes", r->verified_bytes);
		tn_jout_u64(j, "retried", r->retried);
		json_number(j, "gb_per_s", tb_result_gbps(r), 5);
		json_number(j, "ops_per_s", tb_result_ops_per_s(r), 1);
		if (rep->args->background.bytes != 0)
			json_number(j, "background_gb_per_s", tb_result_background_gbps(r), 5);
		json_latency(j, "latency_us", &r->latency_ns);
		if (r->daemon_ns.cnt != 0)
			json_latency(j, "daemon_latency_us", &r->daemon_ns);
		json_cpu(j, r, rep->procs);
	}
	tn_jout_close_object(j);
}

static void table_notes(struct tb_report *rep, const struct tb_result *r)
{
	double other = tb_result_other_cpus(r, rep->procs);

	if (rep->args->verify)
		fprintf(rep->table, "  verified");
	if (rep->args->background.bytes != 0)
		fprintf(rep->table, "  beside %.2f GB/s", tb_result_background_gbps(r));
	if (r->retried != 0)
		fprintf(rep->table, "  %" PRIu64 " retried", r->retried);
	if (other >= OTHERS_NOTED)
		fprintf(rep->table, "  (others used %.2f CPUs)", other);
}

static void table_cell(struct tb_report *rep, const struct tb_result *r)
{
	static const double pcts[] = { 50, 90, 99, 99.9 };
	char size[TN_UNITS_TEXT], p[TN_UNITS_TEXT], via[64] = "-";
	double cpu = tb_result_cpu_per_gb(r, rep->procs, -1);
	size_t len = 0;

	for (unsigned t = 0; t < TN_ARRAY_LEN(transport_names); t++)
		if ((r->transports & 1u << t) != 0 && len < sizeof via)
			len += (size_t)snprintf(via + len, sizeof via - len, "%s%s", len ? "+" : "", transport_names[t]);
	fprintf(rep->table, "%-5s %8s %5" PRIu32 " %-5s %-5s ", tb_op_name(r->spec.op),
		tn_bytes_format_exact(r->spec.bytes, size), r->spec.depth, tb_pool_name(rep->args->pool), via);
	if (r->failed) {
		fprintf(rep->table, "FAILED: %s", r->why);
	} else {
		fprintf(rep->table, "%8.3f %9.0f", tb_result_gbps(r), tb_result_ops_per_s(r));
		for (unsigned i = 0; i < TN_ARRAY_LEN(pcts); i++)
			fprintf(rep->table, " %8s", tn_duration_format(tn_loghist_percentile(&r->latency_ns, pcts[i]), p));
		fprintf(rep->table, " %8s", r->daemon_ns.cnt == 0 ? "-" :
			tn_duration_format(tn_loghist_percentile(&r->daemon_ns, 50), p));
		if (cpu < 0)
			fprintf(rep->table, " %8s", "?");
		else
			fprintf(rep->table, " %8.3f", cpu);
		table_notes(rep, r);
	}
	fputc('\n', rep->table);
	(void)fflush(rep->table);
}

/* ---- the document ---- */

static void json_first_lap(struct tb_report *rep, const struct tb_result *r)
{
	struct tn_jout *j = &rep->json;

	tn_jout_object(j, "first_lap");
	if (r->failed) {
		tn_jout_str(j, "error", r->why);
	} else {
		tn_jout_u64(j, "moved_bytes", r->bytes);
		json_number(j, "gb_per_s", tb_result_gbps(r), 5);
		json_number(j, "cpu_s_per_gb", tb_result_cpu_per_gb(r, rep->procs, -1), 5);
	}
	tn_jout_close_object(j);
}

void tb_report_begin(struct tb_report *rep, const struct tb_args *args, const struct tb_procs *procs,
		     const struct tb_result *first_lap, int argc, char **argv)
{
	bool json_to_stdout = args->json_path != NULL && strcmp(args->json_path, "-") == 0;

	*rep = (struct tb_report){ .args = args, .procs = procs, .table = json_to_stdout ? stderr : stdout };
	tn_text_init(&rep->text, JSON_MAX);
	tn_jout_begin(&rep->json, &rep->text);
	tn_jout_u64(&rep->json, "schema_version", 1);
	json_environment(rep, argc, argv);
	if (first_lap != NULL)
		json_first_lap(rep, first_lap);
	tn_jout_array(&rep->json, "cells");
	table_environment(rep, first_lap);
}

void tb_report_cell(struct tb_report *rep, const struct tb_result *r)
{
	rep->cells++;
	rep->failed += r->failed;
	json_cell(rep, r);
	table_cell(rep, r);
}

static bool write_json(const struct tb_report *rep, const char *path)
{
	FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");
	bool good = f != NULL && !rep->text.failed && fwrite(rep->text.p, 1, rep->text.len, f) == rep->text.len &&
		    fputc('\n', f) != EOF;

	if (f != NULL && f != stdout)
		good &= fclose(f) == 0;
	else if (f != NULL)
		good &= fflush(f) == 0;
	if (!good)
		fprintf(stderr, "%s: cannot write %s: %s\n", tb_tool_name(rep->args->tool), path,
			rep->text.failed ? "out of memory" : strerror(errno));
	return good;
}

int tb_report_end(struct tb_report *rep)
{
	bool good = rep->failed == 0;

	tn_jout_close_array(&rep->json);
	tn_jout_end(&rep->json);
	if (rep->args->json_path != NULL)
		good &= write_json(rep, rep->args->json_path);
	if (rep->failed != 0)
		fprintf(stderr, "%s: %u of %u cells failed\n", tb_tool_name(rep->args->tool), rep->failed, rep->cells);
	tn_text_free(&rep->text);
	return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
