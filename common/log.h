/* SPDX-License-Identifier: Apache-2.0
 * The log of a daemon: one line per event as text or JSON, to stderr or a file. For slow threads only; a line costs a
 * short lock and a write that is bounded in time: where a reader stalls or the disk is full, lines are dropped, counted
 * and reported later, and the daemon goes on. Each call site has its own rate limit. Never log secrets (keys, tickets)
 * or payload; text from outside is escaped, so it cannot forge lines. */
#ifndef TN_LOG_H
#define TN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"

#define TN_LOG_LEVEL_LIST(X) X(ERROR, error) X(WARN, warn) X(INFO, info) X(DEBUG, debug)
enum tn_log_level {
#define X(id, name) TN_LOG_##id,
	TN_LOG_LEVEL_LIST(X)
#undef X
	TN_LOG_LEVEL_CNT
};

struct tn_log_cfg {
	const char *path;               /* NULL or "stderr": standard error; else a file, created 0640, appended to */
	const char *process;            /* field "process" of each line, e.g. "tent-dataplane"; at most 31 bytes are kept */
	enum tn_log_level level;        /* this and more important levels are written */
	bool json;
	uint32_t rate_per_s, burst;     /* per call site; 0 = 10 and 20 */
};

/* Without open, lines go to stderr as text at level info. May be called again. The strings are copied.
 * A status from errno (PERMISSION, NOT_FOUND ...) when the file cannot be opened; the old sink then stays. Blocks only
 * as long as open(2) of the path. */
tn_status tn_log_open(const struct tn_log_cfg *cfg);
/* Opens the same path again after a rotation; on failure the old file stays in use. */
tn_status tn_log_reopen(void);
/* Back to the state without open. */
void tn_log_close(void);

void tn_log_set_level(enum tn_log_level level);
bool tn_log_enabled(enum tn_log_level level);
/* Lines lost so far because the sink did not take them (not those that a rate limit held back). */
uint64_t tn_log_dropped(void);

const char *tn_log_level_name(enum tn_log_level level);
/* False, level_out untouched: not a level. */
bool tn_log_level_from_name(const char *name, enum tn_log_level *level_out);

/* A ready line (rendered JSON, without newline, at most 4000 bytes) past level and rate limit: structured events.
 * False when it was dropped. */
bool tn_log_line(const char *line, size_t len);

/* State of one call site; zero-initialised; only the logger touches it. */
struct tn_log_site { uint64_t next_free_ns, suppressed_cnt; };

/* Use the macros. A message longer than 1 KiB is cut. */
void tn_log_emit(struct tn_log_site *site, enum tn_log_level level, const char *component, const char *fmt, ...)
	TN_PRINTF(4, 5);

/* component: a short constant such as "attach". tn_log_warn("attach", "client %u sent %zu bytes", id, len); */
#define tn_log_at(level, component, ...) \
	do { \
		static struct tn_log_site site_; \
		if (tn_log_enabled(level)) \
			tn_log_emit(&site_, level, component, __VA_ARGS__); \
	} while (0)
#define tn_log_error(component, ...) tn_log_at(TN_LOG_ERROR, component, __VA_ARGS__)
#define tn_log_warn(component, ...) tn_log_at(TN_LOG_WARN, component, __VA_ARGS__)
#define tn_log_info(component, ...) tn_log_at(TN_LOG_INFO, component, __VA_ARGS__)
#define tn_log_debug(component, ...) tn_log_at(TN_LOG_DEBUG, component, __VA_ARGS__)

#endif
