/* SPDX-License-Identifier: Apache-2.0
 * Lines are whole and cannot be forged; levels and rate limits hold; a full disk, a stalled reader or a closed pipe
 * costs lines, which are counted and reported, and never blocks or kills the process. */
#include "common/log.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/hook.h"
#include "tests/unit/cu.h"

static char path[64];

static struct tn_log_cfg cfg_of(bool json)
{
	snprintf(path, sizeof path, "/tmp/tent-log-%d", (int)getpid());
	return (struct tn_log_cfg){ .path = path, .process = "unit", .level = TN_LOG_INFO, .json = json };
}

/* Closes the log and gives the file's text. */
static char *finish(void)
{
	static char text[1 << 20];
	tn_log_close();
	FILE *f = fopen(path, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	fclose(f);
	unlink(path);
	return text;
}

static unsigned lines_of(const char *text)
{
	unsigned n = 0;
	for (; *text != '\0'; text++)
		n += *text == '\n';
	return n;
}

static void text_lines(void)
{
	struct tn_log_cfg cfg = cfg_of(false);
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	errno = ENOENT;
	tn_log_warn("attach", "client %d says \"%s\"", 7, "a\nb\x1b[31m\xff\xc2\x9b" "ä");
	CU_ASSERT_EQUAL(errno, ENOENT);
	tn_log_debug("attach", "not at this level");
	tn_log_set_level(TN_LOG_DEBUG);
	tn_log_debug("attach", "now");
	char *text = finish();
	CU_ASSERT_EQUAL(lines_of(text), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Z warn  unit attach: client 7 says \"a\\x0ab\\x1b[31m??ä\"\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Z debug unit attach: now\n"));
	CU_ASSERT_PTR_NULL(strstr(text, "not at this level"));
}

static void json_lines(void)
{
	static char longer[3000];
	memset(longer, '\x01', sizeof longer - 1);   /* each becomes six bytes */
	struct tn_log_cfg cfg = cfg_of(true);
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	tn_log_error("link", "q\"b\\n\nt\tc\x7f bad\xf0\x28 ok\xf0\x9f\x98\x80");
	tn_log_error("link", "%s", longer);
	CU_ASSERT_TRUE(tn_log_line("{\"event\":\"tent.request.slow\"}", 29));
	CU_ASSERT_FALSE(tn_log_line("{}\n{}", 5));
	CU_ASSERT_FALSE(tn_log_line(longer, 4001));
	char *text = finish();
	CU_ASSERT_EQUAL(lines_of(text), 3);
	char *save = NULL, *line = strtok_r(text, "\n", &save);
	json_t *j = json_loads(line, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "level")), "error");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "process")), "unit");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "component")), "link");
	CU_ASSERT_EQUAL(strlen(json_string_value(json_object_get(j, "ts"))), 24);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "msg")),
	                       "q\"b\\n\nt\tc\x7f bad\xef\xbf\xbd( ok\xf0\x9f\x98\x80");
	json_decref(j);
	line = strtok_r(NULL, "\n", &save);
	CU_ASSERT(strlen(line) <= 4000);
	j = json_loads(line, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL(j);
	json_decref(j);
	CU_ASSERT_STRING_EQUAL(strtok_r(NULL, "\n", &save), "{\"event\":\"tent.request.slow\"}");
}

static void one_site(int i) { tn_log_info("loop", "line %d", i); }

static void rate_limit(void)
{
	struct tn_log_cfg cfg = cfg_of(false);
	cfg.rate_per_s = 50;
	cfg.burst = 5;
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	for (int i = 0; i < 1000; i++)
		one_site(i);
	tn_log_info("loop", "another site is not held back");
	usleep(60000);
	one_site(1000);
	char *text = finish();
	unsigned lines = lines_of(text);
	CU_ASSERT(lines >= 7 && lines < 20);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "another site"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "line 1000 ("));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "alike suppressed)"));
}

static void rotation(void)
{
	char rotated[80];
	struct tn_log_cfg cfg = cfg_of(false);
	snprintf(rotated, sizeof rotated, "%s.1", path);
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	tn_log_info("rotate", "before");
	CU_ASSERT_EQUAL_FATAL(rename(path, rotated), 0);
	tn_log_info("rotate", "still the old file");
	CU_ASSERT_EQUAL(tn_log_reopen(), TN_OK);
	tn_log_info("rotate", "after");
	char *text = finish();
	CU_ASSERT_EQUAL(lines_of(text), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "after"));
	unlink(rotated);
}

static void refused_sinks(void)
{
	struct tn_log_cfg cfg = { .path = "/nonexistent/dir/log" };
	CU_ASSERT_EQUAL(tn_log_open(&cfg), TN_NOT_FOUND);
	cfg.path = "";
	CU_ASSERT_EQUAL(tn_log_open(&cfg), TN_INVALID);
	enum tn_log_level level = TN_LOG_WARN;
	CU_ASSERT_TRUE(tn_log_level_from_name("debug", &level) && level == TN_LOG_DEBUG);
	CU_ASSERT_FALSE(tn_log_level_from_name("loud", &level));
	CU_ASSERT_STRING_EQUAL(tn_log_level_name(TN_LOG_ERROR), "error");
	CU_ASSERT_STRING_EQUAL(tn_log_level_name((enum tn_log_level)99), "invalid");
}

static void full_disk(void)
{
	uint64_t before = tn_log_dropped();
	struct tn_log_cfg cfg = { .path = "/dev/full", .level = TN_LOG_INFO };
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	for (int i = 0; i < 3; i++)
		tn_log_info("disk", "lost %d", i);
	CU_ASSERT_EQUAL(tn_log_dropped() - before, 3);
	cfg = cfg_of(false);
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	tn_log_info("disk", "room again");
	char *text = finish();
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "lines were lost"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "room again"));
	CU_ASSERT_EQUAL(lines_of(text), 2);
}

#if TENT_HOOKS
static void write_error_in_between(void)
{
	struct tn_log_cfg cfg = cfg_of(false);
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	CU_ASSERT_TRUE(tn_hook_set("log_write=fail@2"));
	tn_log_info("disk", "one");
	tn_log_info("disk", "two");
	tn_log_info("disk", "three");
	CU_ASSERT_TRUE(tn_hook_set(NULL));
	char *text = finish();
	CU_ASSERT_PTR_NULL(strstr(text, "two"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "1 lines were lost"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "three"));
}

/* Threads behind a sink that hangs lose lines instead of waiting for it. */
static void *writer_behind(void *arg)
{
	uint64_t start = tn_now_ns();
	tn_log_info("hang", "second");
	*(uint64_t *)arg = tn_now_ns() - start;
	return NULL;
}

static void *writer_first(void *arg)
{
	(void)arg;
	tn_log_info("hang", "first");
	return NULL;
}

static void hanging_sink(void)
{
	struct tn_log_cfg cfg = cfg_of(false);
	uint64_t waited_ns = 0;
	pthread_t a, b;
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	CU_ASSERT_TRUE(tn_hook_set("log_write=pause:700@1"));
	CU_ASSERT_EQUAL_FATAL(pthread_create(&a, NULL, writer_first, NULL), 0);
	usleep(150000);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&b, NULL, writer_behind, &waited_ns), 0);
	pthread_join(b, NULL);
	pthread_join(a, NULL);
	CU_ASSERT(waited_ns < 400 * TN_NS_PER_MS);
	CU_ASSERT_TRUE(tn_hook_set(NULL));
	char *text = finish();
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "first"));
	CU_ASSERT_PTR_NULL(strstr(text, "second"));
}
#endif

/* stderr is a pipe that nobody reads, then one that is closed: this process was started like that often enough. */
static void stalled_and_closed_pipe(void)
{
	int p[2], saved = dup(STDERR_FILENO);
	CU_ASSERT_FATAL(pipe(p) == 0);
	dup2(p[1], STDERR_FILENO);
	close(p[1]);
	struct tn_log_cfg cfg = { .level = TN_LOG_INFO, .rate_per_s = 1000000, .burst = 1000000 };
	tn_status st = tn_log_open(&cfg);
	uint64_t before = tn_log_dropped(), start = tn_now_ns();
	for (int i = 0; i < 2000; i++)
		tn_log_info("pipe", "a line of some length to fill the pipe: %d", i);
	uint64_t took = tn_now_ns() - start, lost = tn_log_dropped() - before;
	int flags = fcntl(STDERR_FILENO, F_GETFL);
	close(p[0]);
	tn_log_info("pipe", "to nobody");
	tn_log_close();
	dup2(saved, STDERR_FILENO);
	close(saved);
	CU_ASSERT_EQUAL(st, TN_OK);
	CU_ASSERT(lost > 0 && lost < 2000);
	CU_ASSERT(took < 5 * TN_NS_PER_S);
	CU_ASSERT_EQUAL(flags & O_NONBLOCK, 0);   /* others who share stderr keep their blocking writes */
}

static void *many_lines(void *arg)
{
	for (int i = 0; i < 200; i++)
		tn_log_info("threads", "thread %d line %d end", *(int *)arg, i);
	return NULL;
}

static void lines_of_threads_stay_whole(void)
{
	struct tn_log_cfg cfg = cfg_of(false);
	cfg.rate_per_s = 1000000;
	cfg.burst = 1000000;
	pthread_t t[4];
	int id[4] = { 0, 1, 2, 3 };
	CU_ASSERT_EQUAL_FATAL(tn_log_open(&cfg), TN_OK);
	uint64_t lost = tn_log_dropped();
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&t[i], NULL, many_lines, &id[i]), 0);
	tn_log_reopen();
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	lost = tn_log_dropped() - lost;
	char *save = NULL, *text = finish();
	unsigned seen = 0;
	for (char *line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		if (strstr(line, "lines were lost") != NULL)
			continue;
		CU_ASSERT_PTR_NOT_NULL(strstr(line, " info  unit threads: thread "));
		CU_ASSERT_STRING_EQUAL(line + strlen(line) - 4, " end");
		seen++;
	}
	CU_ASSERT_EQUAL(seen + lost, 800);
}

TN_TEST_MAIN("common/log", { "text lines", text_lines }, { "JSON lines", json_lines }, { "rate limit", rate_limit },
	{ "rotation", rotation }, { "refused sinks", refused_sinks }, { "full disk", full_disk },
#if TENT_HOOKS
	{ "write error in between", write_error_in_between }, { "hanging sink", hanging_sink },
#endif
	{ "stalled and closed pipe", stalled_and_closed_pipe },
	{ "lines of threads stay whole", lines_of_threads_stay_whole })
