/* SPDX-License-Identifier: Apache-2.0
 * Texts: of statuses, of this thread's last failure, of completions. */
#include <pthread.h>
#include <string.h>
#include <tent/tent.h>

#include "common/domain.h"
#include "dataplane/libtent/error.h"
#include "tests/unit/cu.h"

static void statuses(void)
{
	CU_ASSERT_STRING_EQUAL(tent_status_name(TENT_TIMEOUT), "timeout");
	CU_ASSERT_STRING_EQUAL(tent_status_text(TENT_TIMEOUT), "the deadline passed");
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_status_advice(TENT_TIMEOUT), "explain PEER"));
	CU_ASSERT_STRING_EQUAL(tent_status_name((tent_status)12345), "unknown");
	CU_ASSERT_STRING_EQUAL(tent_phase_name(TN_PHASE_NOTIFY), "notify");
	CU_ASSERT_STRING_EQUAL(tent_reason_name(TN_REASON_QUEUE_FULL), "queue_full");
	CU_ASSERT_STRING_EQUAL(tent_phase_name(200), "invalid");
	CU_ASSERT_STRING_EQUAL(tent_transport_name(TENT_TRANSPORT_ANY), "any");
	CU_ASSERT_STRING_EQUAL(tent_transport_name(TENT_TRANSPORT_HP_TCP), "hp_tcp");
	CU_ASSERT_PTR_NOT_NULL(strchr(tent_version(), '.'));
	CU_ASSERT_EQUAL(tent_api_version(), TENT_API_VERSION);
}

static void *other_thread(void *arg)
{
	*(bool *)arg = tent_last_error()[0] == '\0';
	lt_fail(TN_LIMIT, "of the other");
	return NULL;
}

static void the_text_is_the_threads_own(void)
{
	pthread_t th;
	bool empty = false;

	CU_ASSERT_EQUAL(lt_fail(TN_RANGE, "f: x is %d", 3), TENT_RANGE);
	CU_ASSERT_STRING_EQUAL(tent_last_error(), "f: x is 3 (range): check offset + length against the size");
	CU_ASSERT_EQUAL(pthread_create(&th, NULL, other_thread, &empty), 0);
	pthread_join(th, NULL);
	CU_ASSERT_TRUE(empty);
	CU_ASSERT_EQUAL(lt_fail(TN_AGAIN, "not a failure"), TENT_AGAIN);
	CU_ASSERT_STRING_EQUAL(tent_last_error(), "f: x is 3 (range): check offset + length against the size");
	CU_ASSERT_EQUAL(lt_fail_errno(12 /* ENOMEM */, "g: mmap"), TENT_NO_MEMORY);
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_last_error(), "Cannot allocate memory"));
	char longer[2000];
	memset(longer, 'y', sizeof longer);
	longer[sizeof longer - 1] = '\0';
	CU_ASSERT_EQUAL(lt_fail(TN_INVALID, "%s", longer), TENT_INVALID);
	CU_ASSERT_EQUAL(strlen(tent_last_error()), LT_ERROR_BYTES - 1);
}

static void completions(void)
{
	char buf[400];
	tent_completion c = { .kind = TENT_COMPLETION_REQUEST, .outcome = TENT_OUTCOME_FAILED, .status = TENT_PATH_DOWN,
			      .attempts = 2, .transport = TENT_TRANSPORT_TCP, .phase = TN_PHASE_CONNECT,
			      .reason = TN_REASON_UNAVAILABLE, .opcode = TENT_WRITE };

	CU_ASSERT_STRING_EQUAL(
	    tent_completion_text(&c, buf, sizeof buf),
	    "WRITE failed after 2 attempts over tcp: phase connect, reason unavailable (path_down: the connection "
	    "to the peer's data plane was refused, reset or closed) - is its tent-dataplane up, does a firewall drop its "
	    "tcp port? tentctl explain PEER");
	c.status = TENT_TIMEOUT;
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_completion_text(&c, buf, sizeof buf), "the deadline passed"));
	c.phase = TN_PHASE_ADMISSION;
	c.reason = TN_REASON_RESOURCE_EXHAUSTED;
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_completion_text(&c, buf, sizeof buf), "timeout: its target cannot take it"));
	c.memory_busy = 1;
	CU_ASSERT_PTR_NOT_NULL(strstr(tent_completion_text(&c, buf, sizeof buf), "keep the buffer"));
	c = (tent_completion){ .kind = TENT_COMPLETION_REQUEST, .opcode = TENT_READ, .bytes = 10, .attempts = 1,
			       .transport = TENT_TRANSPORT_SHM };
	CU_ASSERT_STRING_EQUAL(tent_completion_text(&c, buf, sizeof buf), "READ completed over shm: 10 bytes");
	c.kind = TENT_COMPLETION_RELEASE;
	CU_ASSERT_STRING_EQUAL(tent_completion_text(&c, buf, sizeof buf), "the buffer of a READ is released");
	char tiny[8];
	CU_ASSERT_EQUAL(strlen(tent_completion_text(&c, tiny, sizeof tiny)), 7);
	CU_ASSERT_STRING_EQUAL(tent_completion_text(&c, NULL, 0), "");
	CU_ASSERT_STRING_EQUAL(tent_completion_text(NULL, buf, sizeof buf), "");
}

TN_TEST_MAIN("libtent error",
	{ "statuses", statuses },
	{ "the text is the thread's own", the_text_is_the_threads_own },
	{ "completions", completions })
