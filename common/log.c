/* SPDX-License-Identifier: Apache-2.0
 * Owner of the process's log: its one sink, level, rate limits and drop count, behind one mutex that is never held
 * longer than a bounded write. Slow threads. */
#include "common/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/atomic.h"
#include "common/clock.h"
#include "common/log_sink.h"
#include "common/log_text.h"

#define LINE_MAX_BYTES 4000     /* with its newline below PIPE_BUF: lines of several processes on one pipe stay whole */
#define MESSAGE_MAX_BYTES 1024
#define LOCK_WAIT_NS (50 * TN_NS_PER_MS)

static const char *const level_names[] = {
#define X(id, name) #name,
	TN_LOG_LEVEL_LIST(X)
#undef X
};

/* All but level and dropped belong to the mutex. */
static struct {
	pthread_mutex_t mutex;
	struct tn_log_sink sink;
	bool sink_open, json;
	char path[4096], process[32];
	uint64_t interval_ns, burst, reported_dropped;
	tn_a32 level;
	tn_a64 dropped;
} log_state = {
	.mutex = PTHREAD_MUTEX_INITIALIZER, .sink = { .fd = -1 }, .interval_ns = TN_NS_PER_S / 10, .burst = 20,
	.level = TN_LOG_INFO,
};

/* A holder may be stuck in a file system that hangs: then the line is lost, the caller is not. */
static bool lock(void)
{
	if (pthread_mutex_trylock(&log_state.mutex) == 0)
		return true;
	uint64_t until = tn_real_ns() + LOCK_WAIT_NS;
	struct timespec ts = { (time_t)(until / TN_NS_PER_S), (long)(until % TN_NS_PER_S) };
	return pthread_mutex_timedlock(&log_state.mutex, &ts) == 0;
}

static void unlock(void) { pthread_mutex_unlock(&log_state.mutex); }

static void count_dropped(void) { (void)tn_fetch_add64(&log_state.dropped, 1); }

static const char *sink_path(void) { return log_state.path[0] != '\0' ? log_state.path : NULL; }

static void line_begin(struct tn_log_text *t, enum tn_log_level level, const char *component)
{
	if (log_state.json) {
		tn_log_text_raw(t, "{\"ts\":\"");
		tn_log_text_time(t, tn_real_ns());
		tn_log_textf(t, "\",\"level\":\"%s\"", tn_log_level_name(level));
		if (log_state.process[0] != '\0') {
			tn_log_text_raw(t, ",\"process\":\"");
			tn_log_text_json(t, log_state.process, 64);
			tn_log_text_raw(t, "\"");
		}
		tn_log_text_raw(t, ",\"component\":\"");
		tn_log_text_json(t, component, LINE_MAX_BYTES / 2);
		tn_log_text_raw(t, "\",\"msg\":\"");
	} else {
		tn_log_text_time(t, tn_real_ns());
		tn_log_textf(t, " %-5s ", tn_log_level_name(level));
		if (log_state.process[0] != '\0') {
			tn_log_text_plain(t, log_state.process, 64);
			tn_log_text_raw(t, " ");
		}
		tn_log_text_plain(t, component, LINE_MAX_BYTES / 2);
		tn_log_text_raw(t, ": ");
	}
}

static void line_end(struct tn_log_text *t, const char *message, uint64_t suppressed)
{
	if (log_state.json) {
		tn_log_text_json(t, message, 64);
		tn_log_text_raw(t, "\"");
		if (suppressed > 0)
			tn_log_textf(t, ",\"suppressed\":%llu", (unsigned long long)suppressed);
		tn_log_text_raw(t, "}");
	} else {
		tn_log_text_plain(t, message, 64);
		if (suppressed > 0)
			tn_log_textf(t, " (%llu alike suppressed)", (unsigned long long)suppressed);
	}
}

static bool put_line(enum tn_log_level level, const char *component, const char *message, uint64_t suppressed)
{
	char line[LINE_MAX_BYTES + 1];
	struct tn_log_text t = { line, 0, LINE_MAX_BYTES };
	line_begin(&t, level, component);
	line_end(&t, message, suppressed);
	return tn_log_sink_write(&log_state.sink, line, t.len);
}

/* Opens the default sink, and tells of lines that were lost as soon as the sink takes lines again. Under the lock. */
static void sink_prepare(void)
{
	if (!log_state.sink_open)
		log_state.sink_open = tn_log_sink_open(sink_path(), &log_state.sink) == TN_OK;
	uint64_t lost = tn_load_relaxed64(&log_state.dropped);
	if (lost == log_state.reported_dropped)
		return;
	char text[64];
	snprintf(text, sizeof text, "%llu lines were lost: the log did not take them",
	         (unsigned long long)(lost - log_state.reported_dropped));
	if (put_line(TN_LOG_WARN, "log", text, 0))
		log_state.reported_dropped = lost;
}

/* Token bucket kept as the time when all tokens are back: each line moves it by one interval. */
static bool site_allows(struct tn_log_site *site, uint64_t now_ns)
{
	uint64_t back_ns = TN_MAX(site->next_free_ns, now_ns);
	if (back_ns - now_ns > (log_state.burst - 1) * log_state.interval_ns) {
		site->suppressed_cnt++;
		return false;
	}
	site->next_free_ns = back_ns + log_state.interval_ns;
	return true;
}

tn_status tn_log_open(const struct tn_log_cfg *cfg)
{
	const char *path = cfg->path != NULL && strcmp(cfg->path, "stderr") != 0 ? cfg->path : NULL;
	struct tn_log_sink sink;
	if (path != NULL && (path[0] == '\0' || strlen(path) >= sizeof log_state.path))
		return TN_INVALID;
	tn_status st = tn_log_sink_open(path, &sink);
	if (st != TN_OK)
		return st;
	if (!lock()) {
		tn_log_sink_close(&sink);
		return TN_BUSY;
	}
	tn_log_sink_close(&log_state.sink);
	log_state.sink = sink;
	log_state.sink_open = true;
	log_state.json = cfg->json;
	snprintf(log_state.path, sizeof log_state.path, "%s", path != NULL ? path : "");
	snprintf(log_state.process, sizeof log_state.process, "%.31s", cfg->process != NULL ? cfg->process : "");
	log_state.interval_ns = TN_NS_PER_S / (cfg->rate_per_s != 0 ? cfg->rate_per_s : 10);
	log_state.burst = cfg->burst != 0 ? cfg->burst : 20;
	unlock();
	tn_log_set_level(cfg->level);
	return TN_OK;
}

tn_status tn_log_reopen(void)
{
	struct tn_log_sink sink;
	if (!lock())
		return TN_BUSY;
	tn_status st = tn_log_sink_open(sink_path(), &sink);
	if (st == TN_OK) {
		tn_log_sink_close(&log_state.sink);
		log_state.sink = sink;
		log_state.sink_open = true;
	}
	unlock();
	return st;
}

void tn_log_close(void)
{
	if (!lock())
		return;
	tn_log_sink_close(&log_state.sink);
	log_state.sink_open = log_state.json = false;
	log_state.path[0] = log_state.process[0] = '\0';
	log_state.interval_ns = TN_NS_PER_S / 10;
	log_state.burst = 20;
	unlock();
	tn_log_set_level(TN_LOG_INFO);
}

void tn_log_set_level(enum tn_log_level level) { tn_store_relaxed32(&log_state.level, (uint32_t)level); }
bool tn_log_enabled(enum tn_log_level level) { return (uint32_t)level <= tn_load_relaxed32(&log_state.level); }
uint64_t tn_log_dropped(void) { return tn_load_relaxed64(&log_state.dropped); }

const char *tn_log_level_name(enum tn_log_level level)
{
	return (unsigned)level < TN_LOG_LEVEL_CNT ? level_names[level] : "invalid";
}

bool tn_log_level_from_name(const char *name, enum tn_log_level *level_out)
{
	for (unsigned i = 0; i < TN_LOG_LEVEL_CNT; i++) {
		if (strcmp(level_names[i], name) == 0) {
			*level_out = (enum tn_log_level)i;
			return true;
		}
	}
	return false;
}

bool tn_log_line(const char *line, size_t len)
{
	char copy[LINE_MAX_BYTES + 1];
	bool good = false;
	if (len <= LINE_MAX_BYTES && memchr(line, '\n', len) == NULL && lock()) {
		memcpy(copy, line, len);
		sink_prepare();
		good = tn_log_sink_write(&log_state.sink, copy, len);
		unlock();
	}
	if (!good)
		count_dropped();
	return good;
}

void tn_log_emit(struct tn_log_site *site, enum tn_log_level level, const char *component, const char *fmt, ...)
{
	char message[MESSAGE_MAX_BYTES];
	int saved_errno = errno;   /* a log line between a call and the look at its errno must not change it */
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(message, sizeof message, fmt, ap);
	va_end(ap);
	if (lock()) {
		if (site_allows(site, tn_now_ns())) {
			uint64_t suppressed = site->suppressed_cnt;
			site->suppressed_cnt = 0;
			sink_prepare();
			if (!put_line(level, component, message, suppressed))
				count_dropped();
		}
		unlock();
	} else {
		count_dropped();
	}
	errno = saved_errno;
}
