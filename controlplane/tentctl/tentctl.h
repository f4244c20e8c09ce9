/* SPDX-License-Identifier: Apache-2.0
 * What the verbs of tentctl share: global options, the question to the control plane, output, and the table of verbs.
 * One process, one thread. Exit codes: 0 done, 1 failed, 2 wrong usage. */
#ifndef TCTL_TENTCTL_H
#define TCTL_TENTCTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/config.h"
#include "common/status.h"

enum { TCTL_OK = 0, TCTL_FAILED = 1, TCTL_USAGE = 2 };

struct tctl {
	const char *config_path;     /* --config */
	const char *runtime_dir;     /* --runtime-dir; NULL: from the configuration */
	const char *sets[32];
	unsigned set_cnt;
	bool json;                   /* -j */
	uint64_t timeout_ns;         /* --timeout */
	struct tn_config *config;    /* loaded on first use */
};

struct tctl_verb {
	const char *noun, *verb;     /* verb NULL: the noun alone is the command */
	const char *args;            /* for the usage line */
	const char *help;
	int (*run)(struct tctl *t, int argc, char **argv); /* argv[0] is the last word of the verb */
};
extern const struct tctl_verb tctl_verbs[]; /* ends with a NULL noun */

int tctl_usage(const struct tctl_verb *v); /* prints the usage line of one verb, returns TCTL_USAGE */
const struct tctl_verb *tctl_find(const char *noun, const char *verb);

/* "tentctl: what went wrong" on stderr (an object {"error":...} on stdout with -j); returns TCTL_FAILED. */
int tctl_fail(const struct tctl *t, tn_status status, const char *fmt, ...) TN_PRINTF(3, 4);

/* Loads the configuration once; its errors are printed. NULL when it is wrong. */
const struct tn_config *tctl_config(struct tctl *t);
/* NULL when it cannot be known; the reason was printed. */
const char *tctl_runtime_dir(struct tctl *t);

/* ---- client.c ---- */
/* Ask the control plane (body stolen, may be NULL). 0 and a new reference in *body_out, or TCTL_FAILED with the reason
 * printed. Blocks up to the timeout. */
int tctl_ask(struct tctl *t, const char *type, json_t *body, json_t **body_out);

/* ---- output.c ---- */
void tctl_print_json(const json_t *j);
/* A table for people: columns as wide as their widest cell, headings in capitals. Cells are copied. */
struct tctl_table;
struct tctl_table *tctl_table_new(unsigned columns, const char *const *headings);
void tctl_table_row(struct tctl_table *tb, const char *const *cells);
void tctl_table_print(const struct tctl_table *tb);
void tctl_table_free(struct tctl_table *tb);
/* Text of a string or integer member, "-" when absent; in one of a few static buffers. */
const char *tctl_text(const json_t *obj, const char *key);
uint64_t tctl_u64(const json_t *obj, const char *key);

/* ---- progress.c ---- */
struct tctl_progress { const char *what; uint64_t total, start_ns, shown_ns; bool tty; };
/* A bar on stderr when that is a terminal, nothing otherwise. */
void tctl_progress_start(struct tctl_progress *p, const char *what, uint64_t total_bytes);
void tctl_progress_show(struct tctl_progress *p, uint64_t done_bytes);
void tctl_progress_end(struct tctl_progress *p);

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
int tctl_cmd_config_check(struct tctl *t, int argc, char **argv);
int tctl_cmd_config_dump(struct tctl *t, int argc, char **argv);
int tctl_cmd_keygen(struct tctl *t, int argc, char **argv);
int tctl_cmd_verify(struct tctl *t, int argc, char **argv);
int tctl_cmd_version(struct tctl *t, int argc, char **argv);

#endif
