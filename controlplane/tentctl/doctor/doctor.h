/* SPDX-License-Identifier: Apache-2.0
 * `tentctl doctor`: a table of checks over facts of this host. Facts that are files are read below host.root, facts
 * that are system calls stand in struct tctl_host, facts about the daemons in struct tctl_pair: a test makes up all
 * three. A check adds one finding or more; it never changes anything and never waits. One file per group of checks. */
#ifndef TCTL_DOCTOR_H
#define TCTL_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/addr.h"
#include "common/compiler.h"
#include "common/config.h"
#include "common/units.h"
#include "controlplane/tentctl/region.h"

/* ---- facts ---- */

enum { TCTL_HOST_ADDRS_MAX = 128 };

struct tctl_fs { bool known, tmpfs; uint64_t total_bytes, free_bytes; };

struct tctl_host {
	const char *root;            /* prefix of /proc, /sys and /etc; "" on a real host */
	unsigned uid;
	struct { char interface[32]; struct tn_addr addr; bool up; } addrs[TCTL_HOST_ADDRS_MAX];
	unsigned addr_cnt;
	bool memfd_seals, populate_write, pidfd;
	bool clock_known, clock_synced;
	uint64_t clock_error_us;     /* largest error that the kernel knows of */
	struct tctl_fs runtime_fs, shm_fs; /* of the runtime directory (or where it would be made) and of /dev/shm */
};

/* Asks the kernel. `dir`: the runtime directory. */
void tctl_host_probe(struct tctl_host *h, const char *dir);
/* A whole small file below the root, NUL-terminated and cut at cap - 1; false when it cannot be read. */
bool tctl_host_read(const struct tctl_host *h, const char *path, char *buf, size_t cap);

/* A daemon as its lease, its telemetry or its answer tells. */
struct tctl_daemon {
	bool held;                   /* lives: holds its lease */
	uint32_t pid;                /* as noted in the lease; 0 = unknown */
	bool answered;               /* told its build */
	char version[32], commit[48];
	char error[256];             /* why it lives and did not tell */
};
struct tctl_pair {
	struct tctl_daemon dataplane, controlplane;
	bool dataplane_hung;
	bool schema_same;            /* the running data plane counts what this tentctl reads */
};

/* ---- findings ---- */

/* X(NAME, text) */
#define TCTL_GRADE_LIST(X) X(OK, ok) X(WARN, warn) X(FAIL, fail)
#define X(n, s) TCTL_GRADE_##n,
enum tctl_grade { TCTL_GRADE_LIST(X) TCTL_GRADE_CNT };
#undef X

struct tctl_finding {
	const char *group, *check;
	enum tctl_grade grade;
	char what[512];              /* one line: what is, and what follows from it */
	char fix[512];               /* the command, or the change; "" when nothing is to be done */
};

struct tctl_check;

struct tctl_doctor {
	const struct tctl_host *host;
	const struct tctl_pair *pair;
	const struct tn_config *config;             /* NULL: it does not load */
	const struct tn_config_errors *config_errors; /* then these are the reasons */
	const char *dir;                            /* runtime directory */
	const struct tctl_check *running;
	struct tctl_finding *findings;              /* owned */
	unsigned cnt, cap, dropped;
};

enum { TCTL_NEEDS_CONFIG = 1 };
struct tctl_check {
	const char *group, *name;
	void (*run)(struct tctl_doctor *d);
	unsigned needs;
};
extern const struct tctl_check tctl_checks[]; /* table.c; ends with a NULL group */

/* Runs every check that can run. */
void tctl_doctor_run(struct tctl_doctor *d);
void tctl_doctor_free(struct tctl_doctor *d);
unsigned tctl_doctor_count(const struct tctl_doctor *d, enum tctl_grade grade);
const char *tctl_grade_text(enum tctl_grade grade);

/* For checks: a finding, and the fix of the last one. */
void tctl_found(struct tctl_doctor *d, enum tctl_grade grade, const char *fmt, ...) TN_PRINTF(3, 4);
void tctl_fix(struct tctl_doctor *d, const char *fmt, ...) TN_PRINTF(2, 3);

/* What several groups ask. "self", or the number of the living data plane: whose limits and CPUs count. */
const char *tctl_doctor_whose(const struct tctl_doctor *d, char out[static 16]);
/* CPUs that it may use as a list of bits; the number of them, 0 when unknown. */
unsigned tctl_doctor_cpus(const struct tctl_doctor *d, bool out[static 1024]);
unsigned tctl_doctor_workers(const struct tctl_doctor *d);

json_t *tctl_doctor_json(const struct tctl_doctor *d);
void tctl_doctor_print(const struct tctl_doctor *d, bool quiet, FILE *to);

/* ---- the checks ---- */
void tctl_check_config(struct tctl_doctor *d);
void tctl_check_features(struct tctl_doctor *d);
void tctl_check_ptrace(struct tctl_doctor *d);
void tctl_check_congestion(struct tctl_doctor *d);
void tctl_check_socket_buffers(struct tctl_doctor *d);
void tctl_check_hugepages(struct tctl_doctor *d);
void tctl_check_nofile(struct tctl_doctor *d);
void tctl_check_memlock(struct tctl_doctor *d);
void tctl_check_shm(struct tctl_doctor *d);
void tctl_check_affinity(struct tctl_doctor *d);
void tctl_check_cgroup(struct tctl_doctor *d);
void tctl_check_addresses(struct tctl_doctor *d);
void tctl_check_reachable(struct tctl_doctor *d);
void tctl_check_ports(struct tctl_doctor *d);
void tctl_check_key_file(struct tctl_doctor *d);
void tctl_check_peers(struct tctl_doctor *d);
void tctl_check_runtime_dir(struct tctl_doctor *d);
void tctl_check_socket_path(struct tctl_doctor *d);
void tctl_check_leftovers(struct tctl_doctor *d);
void tctl_check_telemetry(struct tctl_doctor *d);
void tctl_check_daemons(struct tctl_doctor *d);
void tctl_check_versions(struct tctl_doctor *d);
void tctl_check_clock(struct tctl_doctor *d);

#endif
