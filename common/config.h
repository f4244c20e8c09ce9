/* SPDX-License-Identifier: Apache-2.0
 * The configuration of the pair: one JSON file that both daemons and tentctl read. This header is the whole API; the
 * keys themselves stand in common/config_schema.def. A struct tn_config is immutable after load, so any thread may
 * read it; loading, dumping and diffing read files and allocate: start-up and the control thread only. */
#ifndef TN_CONFIG_H
#define TN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/compiler.h"
#include "common/domain.h"
#include "common/ids.h"
#include "common/log.h"
#include "common/status.h"

#define TN_CONFIG_DEFAULT_PATH "/etc/tent/tent.json"
#define TN_CONFIG_ERRORS_MAX 20

/* Closed sets of words. tn_config_enum() returns the place of a word. log/level is enum tn_log_level. */
#define TN_POLL_MODE_LIST(X) X(BUSY, busy) X(ADAPTIVE, adaptive)
#define TN_CONFIG_LOG_FORMAT_LIST(X) X(JSON, json) X(TEXT, text)
#define TN_CONFIG_TRANSPORT_LIST(X) X(RDMA, rdma) X(HP_TCP, hp_tcp) X(TCP, tcp) X(SHM, shm)
#define TN_CONFIG_PRIORITY_LIST(X) X(ANY, any) TN_PRIORITY_LIST(X)
#define TN_CONFIG_INTENT_LIST(X) X(ANY, any) TN_INTENT_LIST(X)

#define X(n, s) TN_POLL_MODE_##n,
enum tn_poll_mode { TN_POLL_MODE_LIST(X) TN_POLL_MODE_CNT };
#undef X
#define X(n, s) TN_CONFIG_LOG_FORMAT_##n,
enum tn_config_log_format { TN_CONFIG_LOG_FORMAT_LIST(X) TN_CONFIG_LOG_FORMAT_CNT };
#undef X

/* One constant per key: TN_CFG_POLL_SPIN_US is poll/spin_us. */
enum tn_config_key {
#define TN_CFG(id, path, type, kind, min, max, def, choices, change, help) TN_CFG_##id,
#include "common/config_schema.def"
	TN_CFG_KEY_CNT
};

struct tn_config; /* opaque */

/* ---- errors ---- */

struct tn_config_error {
	char source[256];  /* file path, environment name, "--set", or "" for a rule over several keys */
	unsigned line;     /* 1-based; 0 = the source has no lines */
	char key[128];     /* key path; "" when the error is about a file as a whole */
	char text[384];    /* what is wrong and what would be right; one line */
};

/* Filled in order of reading. The caller provides it (about 16 KiB: static or heap) and needs no cleanup. */
struct tn_config_errors {
	unsigned cnt;                                      /* in item[] */
	unsigned dropped_cnt;                              /* found besides */
	struct tn_config_error item[TN_CONFIG_ERRORS_MAX];
};

/* "SOURCE:LINE: KEY: TEXT" without the parts that are not known. */
#define TN_CONFIG_ERROR_LINE (sizeof(struct tn_config_error) + 16)
void tn_config_error_line(const struct tn_config_error *e, char out[static TN_CONFIG_ERROR_LINE]);
/* One such line per error. */
void tn_config_errors_print(const struct tn_config_errors *errors, FILE *out);

/* ---- load ---- */

struct tn_config_opts {
	size_t size;                     /* sizeof(struct tn_config_opts) */
	const char *path;                /* --config; NULL: $TENT_CONFIG, else default_path if it exists, else none */
	const char *const *sets;         /* --set arguments, "key=value", a later one wins; may be NULL */
	size_t set_cnt;
	const char *const *env;          /* NAME=VALUE, NULL-terminated; NULL: this process's environment */
	const char *default_path;        /* NULL: TN_CONFIG_DEFAULT_PATH */
	uint64_t generation;             /* number of the new config; 0: 1 */
	bool without_peers;              /* pass over peers, right or wrong: a key is made before the others are known */
};

/* Read defaults, file, conf.d/ *.json beside it in lexical order, environment (TENT_ + upper-cased path, / as _) and
 * flags, the later winning, and check all of it. OK: *out is a new config, the caller frees it. CONFIG: errors says
 * what is wrong (every problem found, not only the first). NO_MEMORY. Outputs untouched on failure except errors. */
TN_MUST_USE tn_status tn_config_load(const struct tn_config_opts *opts, struct tn_config **out,
				     struct tn_config_errors *errors);
/* Add to `out` what is valid and most likely not meant: addresses that other hosts cannot use, a peer that is this host. */
void tn_config_warnings(const struct tn_config *cfg, struct tn_config_errors *out);
void tn_config_free(struct tn_config *cfg);

/* ---- read: O(1), a wrong type for the key is a bug and asserts ---- */

uint64_t tn_config_u64(const struct tn_config *cfg, enum tn_config_key key);
/* The same for keys in _ms or _us, as nanoseconds. */
uint64_t tn_config_ns(const struct tn_config *cfg, enum tn_config_key key);
bool tn_config_bool(const struct tn_config *cfg, enum tn_config_key key);
/* A STR or the word of an ENUM; never NULL; lives as long as cfg. Empty defaults that the help describes are already
 * resolved: host/name, runtime_dir, state_dir, control/key_file are never "", and control/advertise is "" only when
 * control/bind has port 0 (then the endpoint that was really bound is meant). */
const char *tn_config_str(const struct tn_config *cfg, enum tn_config_key key);
/* The place of an ENUM's word in its list, e.g. enum tn_poll_mode. */
unsigned tn_config_enum(const struct tn_config *cfg, enum tn_config_key key);
/* Lists: number of items, and item i < cnt. transports/tcp/advertise_addresses is never empty (already resolved). */
unsigned tn_config_list_cnt(const struct tn_config *cfg, enum tn_config_key key);
uint64_t tn_config_list_u64(const struct tn_config *cfg, enum tn_config_key key, unsigned i);
const char *tn_config_list_str(const struct tn_config *cfg, enum tn_config_key key, unsigned i);

/* Number of workers for a process that may use cpu_cnt CPUs: workers/count, or its rule for 0. */
unsigned tn_config_worker_cnt(const struct tn_config *cfg, unsigned cpu_cnt);

struct tn_config_peer {
	const char *name;
	const char *address;                  /* tcp://ADDRESS:PORT */
	const char *public_key;               /* as written; "" when control/insecure and none given */
	struct tn_peer_id id;                 /* the key's bytes; zero when none */
	const char *const *data_addresses;    /* tn_addr_net_parse() reads each; may be NULL when the count is 0 */
	unsigned data_address_cnt;
};

unsigned tn_config_peer_cnt(const struct tn_config *cfg);
/* i < cnt. Sorted as written; lives as long as cfg. */
const struct tn_config_peer *tn_config_peer(const struct tn_config *cfg, unsigned i);
/* By name or id; NULL when unknown. */
const struct tn_config_peer *tn_config_peer_by_name(const struct tn_config *cfg, const char *name);
const struct tn_config_peer *tn_config_peer_by_id(const struct tn_config *cfg, const struct tn_peer_id *id);

#define TN_CONFIG_ANY 255u

/* Policies are numbered, so that a request can name one in a few bits: a reload leaves its number to a name that any
 * config since the start had, and gives no number twice. */
#define TN_CONFIG_POLICY_ID_FIRST 256u

struct tn_config_policy {
	const char *name;
	uint16_t id;                          /* >= TN_CONFIG_POLICY_ID_FIRST */
	uint8_t transports[TN_TRANSPORT_CNT]; /* enum tn_transport, best first */
	uint8_t transport_cnt;
	uint8_t priority;                     /* enum tn_priority or TN_CONFIG_ANY */
	uint8_t intent;                       /* enum tn_intent or TN_CONFIG_ANY */
	uint64_t min_bytes, max_bytes;        /* inclusive */
};

unsigned tn_config_policy_cnt(const struct tn_config *cfg);
const struct tn_config_policy *tn_config_policy(const struct tn_config *cfg, unsigned i);
/* By name, by number; NULL: there is none of it now. */
const struct tn_config_policy *tn_config_policy_by_name(const struct tn_config *cfg, const char *name);
const struct tn_config_policy *tn_config_policy_by_id(const struct tn_config *cfg, unsigned id);
/* One more than the largest number that was ever given out. */
unsigned tn_config_policy_id_end(const struct tn_config *cfg);

/* ---- where values come from ---- */

enum tn_config_origin_kind { TN_ORIGIN_DEFAULT, TN_ORIGIN_FILE, TN_ORIGIN_ENV, TN_ORIGIN_FLAG };

struct tn_config_origin {
	enum tn_config_origin_kind kind;
	const char *name;   /* file path or environment name; NULL else */
	unsigned line;      /* of the key in the file; 0 else */
};

struct tn_config_origin tn_config_origin(const struct tn_config *cfg, enum tn_config_key key);
/* "default", "FILE:LINE", "env NAME" or "--set", cut to fit. */
void tn_config_origin_text(struct tn_config_origin origin, char *out, size_t out_bytes);
uint64_t tn_config_generation(const struct tn_config *cfg);
/* The main file that was read; NULL when there was none. */
const char *tn_config_path(const struct tn_config *cfg);

/* ---- names ---- */

const char *tn_config_key_path(enum tn_config_key key);
const char *tn_config_key_help(enum tn_config_key key);
/* True when a reload applies the key; false when the daemon must be restarted. */
bool tn_config_key_is_hot(enum tn_config_key key);

/* ---- dump, diff, reload ---- */

#define TN_CONFIG_DUMP_EFFECTIVE 1u /* all keys; without it only those that are not default */
#define TN_CONFIG_DUMP_ORIGIN 2u    /* say where each value came from */
#define TN_CONFIG_DUMP_JSON 4u      /* JSON; without ORIGIN it is itself a valid config file */

/* No value of a config is a secret (keys are in files), so nothing is hidden. SYSTEM when out fails. */
tn_status tn_config_dump(const struct tn_config *cfg, FILE *out, unsigned flags);

/* The value as a file would have it, cut to the buffer; sizes with their unit. */
void tn_config_value_text(const struct tn_config *cfg, enum tn_config_key key, char *out, size_t out_bytes);

struct tn_config_change {
	enum tn_config_key key;
	bool hot;
};

/* Keys whose values differ, in the order of the schema; returns their number. */
unsigned tn_config_diff(const struct tn_config *old_cfg, const struct tn_config *new_cfg,
			struct tn_config_change out[static TN_CFG_KEY_CNT]);

/* Load again for a running daemon: *out has the sources' values of HOT keys and the running values of COLD ones (what
 * is in effect, so that a dump tells the truth), and the next generation. changes lists what differs in the sources;
 * the not-hot ones wait for a restart. Policies keep their numbers. Statuses and ownership as in load, and LIMIT: no number
 * is left for a policy; running stays the caller's. */
TN_MUST_USE tn_status tn_config_reload(const struct tn_config *running, const struct tn_config_opts *opts,
				       struct tn_config **out, struct tn_config_errors *errors,
				       struct tn_config_change changes[static TN_CFG_KEY_CNT],
				       unsigned *change_cnt_out);

#endif
