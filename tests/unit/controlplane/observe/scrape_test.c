/* SPDX-License-Identifier: Apache-2.0
 * A scrape never makes the loop wait: what takes long in it (looking at processes, adding up writers) is done without the
 * lock, on a mapping that stays even when the loop attaches another region meanwhile. This file's cp_process_read() stands
 * in for the real one: it is the middle of a scrape. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "controlplane/observe/observe.h"
#include "shm-ring/telemetry.h"
#include "tests/unit/cu.h"

static char dir[] = "/tmp/tent-scrape-XXXXXX", path[160];
static struct cp_observe *observe;
static unsigned waited, looked;

static void *loop(void *arg)
{
	(void)arg;
	cp_observe_facts(observe, &(struct cp_observe_facts){ true, true, true, 0 });
	(void)cp_observe_poll(observe);
	if (cp_observe_attach(observe, path) != TN_OK)
		waited++;
	return NULL;
}

tn_status cp_process_read(pid_t pid, struct cp_process *out)
{
	pthread_t t;
	struct timespec end;
	*out = (struct cp_process){ .known = true };
	looked |= pid == 0 ? 1u : 2u;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, loop, NULL), 0);
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	if (pthread_timedjoin_np(t, NULL, &end) != 0) {
		waited++;
		pthread_detach(t);
	}
	return TN_OK;
}

static void loop_goes_on(void)
{
	struct shr_tele t;
	char name[SHR_TELE_NAME_MAX];
	const char *type;
	struct tn_text got;
	struct shr_tele_cfg tele = { .worker_cnt = 2, .cell_cnt = TN_METRIC_CELL_CNT, .event_slots = 64, .keep_slots = 64,
				     .schema_hash = tn_metric_schema_hash(), .start_mono_ns = tn_now_ns(),
				     .start_real_ns = tn_real_ns(), .metrics_compiled = true, .build = "x" };
	struct cp_observe_cfg cfg = { .build = { "9.9", "cafe", "Test" }, .recording = true, .stall_ns = TN_NS_PER_S };
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(dir, &tele, &t), TN_OK);
	shr_tele_name(t.generation, name);
	(void)snprintf(path, sizeof path, "%s/%s", dir, name);
	CU_ASSERT_EQUAL_FATAL(cp_observe_create(&cfg, &observe), TN_OK);
	CU_ASSERT_EQUAL_FATAL(cp_observe_attach(observe, path), TN_OK);
	tn_text_init(&got, CP_HTTP_BODY_MAX);
	for (int i = 0; i < 3 && waited == 0; i++) {
		tn_text_reset(&got);
		CU_ASSERT_EQUAL(cp_observe_render(observe, CP_HTTP_METRICS, &got, &type), 200);
		CU_ASSERT_PTR_NOT_NULL(strstr(got.p, "tent_metrics_build_info{"));
	}
	CU_ASSERT_TRUE(looked == 3 && waited == 0); /* at both processes */
	tn_text_free(&got);
	if (waited == 0)
		cp_observe_destroy(observe);
	shr_tele_close(&t);
	(void)unlink(path);
	(void)rmdir(dir);
}

TN_TEST_MAIN("observe/scrape", { "the loop goes on during a scrape", loop_goes_on })
