/* SPDX-License-Identifier: Apache-2.0
 * What the verbs of tentctl share: global options, arguments, the question to the control plane, output, the table of
 * verbs. One process, one thread. Exit codes: 0 done, 1 failed, 2 wrong usage. */
#ifndef TCTL_TENTCTL_H
#define TCTL_TENTCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/compiler.h"
#include "common/config.h"
#include "common/ids.h"
#include "common/status.h"
#include "common/units.h"

enum { TCTL_OK = 0, TCTL_FAILED = 1, TCTL_USAGE = 2 };
enum { TCTL_TEXTS_MAX = 32, TCTL_REF_MAX = 2 * TN_NAME_MAX };

struct tctl_verb;

/* An option that may be given several times. */
struct tctl_texts {
	const char *item[TCTL_TEXTS_MAX];
	unsigned cnt;
};

struct tctl {
	const char *config_path;     /* --config */
	const char *runtime_dir;     /* --runtime-dir; NULL: from the configuration */
	struct tctl_texts sets;      /* --set */
	bool without_peers;          /* the verb needs the configuration, but no peers: they may be wrong */
	bool json;                   /* --json */
	uint64_t timeout_ns;         /* --timeout, for one question */
	const struct tctl_verb *verb; /* that runs; NULL before it is known */
	bool answer_lost;            /* stdout could not be written, and that was said */
	int exit_code;               /* set when tctl_args() says that the command is over */
	char *const *argv;           /* as started, ends with NULL */
	struct tn_config *config;    /* loaded on first use */
};

struct tctl_verb {
	const char *noun, *verb;     /* verb NULL: the noun alone is the command */
	const char *args;            /* for the usage line */
	const char *help;
	int (*run)(struct tctl *t, int argc, char **argv); /* argv[0] is the last word of the verb */
};
extern const struct tctl_verb tctl_verbs[]; /* ends with a NULL noun */

/* ---- command.c ---- */
/* The whole program: global options, the verb, its exit code. */
int tctl_run(int argc, char **argv);
/* "tentctl: what went wrong" on stderr (also an object {"error":...} on stdout with -j); returns TCTL_FAILED. */
int tctl_fail(const struct tctl *t, tn_status status, const char *fmt, ...) TN_PRINTF(3, 4);
/* The same for an error in the arguments, with the usage of the running verb; returns TCTL_USAGE. */
int tctl_bad_usage(struct tctl *t, const char *fmt, ...) TN_PRINTF(2, 3);
/* Loads the configuration once; its errors are printed. NULL when it is wrong. */
const struct tn_config *tctl_config(struct tctl *t);
/* The same as tctl_config_load() without printing: TN_CONFIG with the reasons, TN_TOO_BIG (--runtime-dir), NO_MEMORY.
 */
tn_status tctl_config_try(struct tctl *t, const char *path, struct tn_config **out, struct tn_config_errors *errors);
/* Loads `path` (NULL: as the global options say) afresh; the caller frees it. NULL: errors were printed. */
struct tn_config *tctl_config_load(struct tctl *t, const char *path);
/* The directory of the pair to talk to; NULL when it cannot be known, the reason was printed. */
const char *tctl_runtime_dir(struct tctl *t);

/* ---- options.c ---- */
enum tctl_option_kind {
	TCTL_FLAG,   /* bool */
	TCTL_TEXT,   /* const char * */
	TCTL_TEXTS,  /* struct tctl_texts */
	TCTL_BYTES,  /* uint64_t, "64KiB"; never UINT64_MAX, which may stand for "not given" */
	TCTL_COUNT,  /* uint64_t */
	TCTL_TIME,   /* uint64_t ns > 0, "500ms" */
};
struct tctl_option { const char *name; char letter; enum tctl_option_kind kind; void *to; };

/* Read the options of a verb (an array that ends with a NULL name, or NULL) and the global ones out of argv[1..argc);
 * what remains stands in argv[1..*argc) in its order; at least `min` and at most `max` of it, none empty. "--" ends options.
 * False: the command is over (help was shown, or usage is wrong) with t->exit_code. */
bool tctl_args(struct tctl *t, int *argc, char **argv, const struct tctl_option *options, int min, int max);
/* Global options before the verb: *at is the index of the first word that is none. */
bool tctl_global_args(struct tctl *t, int argc, char **argv, int *at);
void tctl_help(FILE *to);
void tctl_verb_usage(const struct tctl_verb *v, FILE *to);

/* ---- client.c ---- */
/* Ask the control plane (body stolen, may be NULL). OK: a new reference in *body_out. Else the status, and err says
 * why. Blocks up to the timeout. Prints nothing. */
tn_status tctl_query(struct tctl *t, const char *type, json_t *body, json_t **body_out, char *err, size_t err_bytes);
/* The same with the failure printed: TCTL_OK or TCTL_FAILED. */
int tctl_ask(struct tctl *t, const char *type, json_t *body, json_t **body_out);

/* ---- trouble.c ---- */
/* Which daemon of which host does not answer, as far as the control plane here knows, and what to do; "" when it knows of
 * nothing. `ref`: the segment it is about; NULL: only this host is. Blocks for some seconds at most. Prints nothing. */
void tctl_trouble(struct tctl *t, const char *ref, char *out, size_t cap);
/* The same of the `peer` part of an answer to `explain`, in a line without advice; returns out. */
const char *tctl_peer_obstacle(const json_t *peer, char *out, size_t cap);

/* ---- pages.c ---- */
/* Entries [first, first + count) of the list `key` that the control plane gives in pages as answers to `type`: appended to
 * `all`; how many there are in *total_out. A failure is printed: TCTL_OK or TCTL_FAILED. */
int tctl_collect(struct tctl *t, const char *type, const char *key, uint64_t first, uint64_t count, json_t *all,
		 uint64_t *total_out);

/* ---- output.c ---- */
void tctl_print_json(const json_t *j);
/* As one line: for commands that go on and report. */
void tctl_print_json_line(const json_t *j);
/* All that was printed is out. False: some of it is lost, which is said once on stderr; the command will fail. */
bool tctl_flush(struct tctl *t);
/* A file name as a member: as it is, or with '?' for what is no UTF-8. */
void tctl_put_name(json_t *obj, const char *key, const char *name);
/* A table for people: columns as wide as their widest cell, headings in capitals. Cells are copied, bytes that could
 * steer a terminal become '?'. A heading that starts with '>' stands for a column of numbers: aligned to the right. */
struct tctl_table;
struct tctl_table *tctl_table_new(unsigned columns, const char *const *headings);
void tctl_table_row(struct tctl_table *tb, const char *const *cells);
void tctl_table_print(const struct tctl_table *tb, FILE *to);
void tctl_table_free(struct tctl_table *tb);
/* An empty line and the table of transports with verdicts, as the bus tells it in `explain` and `request`. */
void tctl_print_transports(const json_t *list);
/* Text of a string, number or boolean member, "-" when absent; in one of a few static buffers. */
const char *tctl_text(const json_t *obj, const char *key);
/* Number of an integer member or a decimal string, 0 when absent. */
uint64_t tctl_u64(const json_t *obj, const char *key);
/* "1 peer", "4 peers": the number of a member with its noun, in one of the same buffers. */
const char *tctl_count_text(const json_t *obj, const char *key, const char *one, const char *many);
/* A size or a time as people read it, in one of the same buffers. */
const char *tctl_bytes_text(uint64_t bytes);
const char *tctl_time_text(uint64_t ns);

/* ---- read.c ---- */
/* All that comes from `fd` until it ends, NUL-terminated, from malloc. NULL: *why_out is TIMEOUT, TOO_BIG (more than `most`
 * bytes), CANCELED (tctl_stopped()), NO_MEMORY, or the status of an errno. Blocks until the deadline at most. */
char *tctl_read_to_end(int fd, size_t most, uint64_t deadline_ns, tn_status *why_out);

/* ---- progress.c ---- */
struct tctl_progress { const char *what; uint64_t total, start_ns, shown_ns; bool tty; };
/* A bar on stderr when that is a terminal, nothing otherwise. */
void tctl_progress_start(struct tctl_progress *p, const char *what, uint64_t total_bytes);
void tctl_progress_show(struct tctl_progress *p, uint64_t done_bytes);
void tctl_progress_end(struct tctl_progress *p);

/* ---- stop.c ---- */
/* From now on SIGINT, SIGTERM and SIGHUP only raise the flag, so that a command can clean up. */
void tctl_stop_catch(void);
bool tctl_stopped(void);
/* Sleep until `fd` (-1: none) is readable, the flag is raised or the time is over. */
void tctl_stop_sleep(int fd, uint64_t timeout_ns);

/* ---- the verbs (cmd_<noun>.c) ---- */
int tctl_cmd_status(struct tctl *t, int argc, char **argv);
int tctl_cmd_segment_list(struct tctl *t, int argc, char **argv);
int tctl_cmd_segment_show(struct tctl *t, int argc, char **argv);
int tctl_cmd_segment_withdraw(struct tctl *t, int argc, char **argv);
int tctl_cmd_segment_publish(struct tctl *t, int argc, char **argv);
int tctl_cmd_put(struct tctl *t, int argc, char **argv);
int tctl_cmd_get(struct tctl *t, int argc, char **argv);
int tctl_cmd_peer_list(struct tctl *t, int argc, char **argv);
int tctl_cmd_peer_probe(struct tctl *t, int argc, char **argv);
int tctl_cmd_bundle(struct tctl *t, int argc, char **argv);
int tctl_cmd_config_check(struct tctl *t, int argc, char **argv);
int tctl_cmd_config_dump(struct tctl *t, int argc, char **argv);
int tctl_cmd_config_reload(struct tctl *t, int argc, char **argv);
int tctl_cmd_pause(struct tctl *t, int argc, char **argv);
int tctl_cmd_resume(struct tctl *t, int argc, char **argv);
int tctl_cmd_drain(struct tctl *t, int argc, char **argv);
int tctl_cmd_keygen(struct tctl *t, int argc, char **argv);
int tctl_cmd_verify(struct tctl *t, int argc, char **argv);
int tctl_cmd_doctor(struct tctl *t, int argc, char **argv);
int tctl_cmd_events(struct tctl *t, int argc, char **argv);
int tctl_cmd_explain(struct tctl *t, int argc, char **argv);
int tctl_cmd_postmortem(struct tctl *t, int argc, char **argv);
int tctl_cmd_top(struct tctl *t, int argc, char **argv);
int tctl_cmd_trace(struct tctl *t, int argc, char **argv);
int tctl_cmd_request_show(struct tctl *t, int argc, char **argv);
int tctl_cmd_transport_disable(struct tctl *t, int argc, char **argv);
int tctl_cmd_transport_enable(struct tctl *t, int argc, char **argv);
int tctl_cmd_version(struct tctl *t, int argc, char **argv);

#endif
