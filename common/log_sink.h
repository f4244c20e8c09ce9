/* SPDX-License-Identifier: Apache-2.0
 * Where log lines end: a file, pipe, terminal or socket that may be full, stalled or gone. One write is bounded in time
 * and never raises a signal. Used by log.c only, under its lock. */
#ifndef TN_LOG_SINK_H
#define TN_LOG_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum tn_log_sink_kind { TN_LOG_SINK_FILE, TN_LOG_SINK_STREAM, TN_LOG_SINK_SOCKET };

struct tn_log_sink {
	int fd;                         /* owned */
	enum tn_log_sink_kind kind;
	bool stalled;                   /* the last line timed out: do not wait again until one goes through */
	bool mid_line;                  /* a line was written in part: the next one starts with a newline */
};

/* path NULL = standard error. A status from errno on failure; sink is then untouched. */
tn_status tn_log_sink_open(const char *path, struct tn_log_sink *sink);
void tn_log_sink_close(struct tn_log_sink *sink);

/* Writes text and a newline; line has room for the newline behind len bytes. False when any of it was lost; waits at
 * most 20 ms. */
bool tn_log_sink_write(struct tn_log_sink *sink, char *line, size_t len);

#endif
