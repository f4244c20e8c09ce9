/* SPDX-License-Identifier: Apache-2.0
 * The exposition read back, the equations over it, and the verb against a server of this test. */
#include "tests/unit/tentctl/run.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "common/metrics_check.h"
#include "controlplane/tentctl/samples.h"

static char err[512];

static const char balanced[] =
    "# HELP tent_logical_requests_started_total x\n# TYPE tent_logical_requests_started_total counter\n"
    "tent_logical_requests_started_total{operation=\"read\"} 10\n"
    "tent_logical_requests_started_total{operation=\"write\"} 4\n"
    "tent_logical_request_outcomes_total{operation=\"read\",transport=\"tcp\",outcome=\"completed\"} 7\n"
    "tent_logical_request_outcomes_total{operation=\"read\",transport=\"shm\",outcome=\"failed\"} 1\n"
    "tent_logical_request_outcomes_total{operation=\"write\",transport=\"tcp\",outcome=\"completed\"} 4\n"
    "tent_logical_requests_inflight{operation=\"read\"} 2\n"
    "tent_transport_attempts_total{transport=\"tcp\",operation=\"read\"} 9\n"
    "tent_transport_attempt_outcomes_total{transport=\"tcp\",operation=\"read\",outcome=\"completed\"} 6\n"
    "tent_transport_attempt_outcomes_total{transport=\"tcp\",operation=\"read\",outcome=\"failed\"} 2\n"
    "tent_inflight_attempts{transport=\"tcp\",operation=\"read\"} 1\n"
    "tent_transport_attempt_failures_total{transport=\"tcp\",operation=\"read\"} 2\n"
    "tent_transport_attempt_latency_us_bucket{transport=\"tcp\",operation=\"read\",le=\"+Inf\"} 9\n"
    "tent_transport_attempt_latency_us_sum{transport=\"tcp\",operation=\"read\"} 12.5\n"
    "tent_admission_events_total{owner_kind=\"user\",event=\"admit\"} 12\n"
    "tent_admission_events_total{owner_kind=\"user\",event=\"dispatch\"} 9\n"
    "tent_admission_events_total{owner_kind=\"user\",event=\"cancel\"} 1\n"
    "tent_admission_queued_owners{owner_kind=\"user\"} 2\n"
    "tent_rdma_slice_events_total{operation=\"read\",event=\"post_attempt\"} 5\n"
    "tent_rdma_slice_events_total{operation=\"read\",event=\"post_error\"} 1\n"
    "tent_rdma_slice_events_total{operation=\"write\",event=\"completion_success\"} 3\n"
    "tent_rdma_posted_inflight_slices 1\n"
    "tent_rpc_attempts_total{method=\"hello\",outcome=\"success\"} 2\n"
    "tent_rpc_attempts_total{method=\"hello\",outcome=\"timeout\"} 1\n"
    "tent_rpc_calls_total{method=\"hello\"} 2\n"
    "tent_rpc_retries_total{method=\"hello\"} 1\n"
    "tent_credit_committed{resource=\"data_bytes\"} 5\ntent_credit_capacity{resource=\"data_bytes\"} 5\n"
    "tent_credit_granted_total{resource=\"data_bytes\"} 15\ntent_credit_completed_total{resource=\"data_bytes\"} 10\n"
    "tent_selection_calls_total 11\n"
    "tent_selection_events_total{event=\"selected\"} 10\n"
    "tent_selection_events_total{event=\"exhausted\"} 1\n"
    "process_cpu_seconds_total{process=\"dataplane\"} 0.25\n"
    "tent_metrics_build_info{version=\"1\",commit=\"a\\\"}b\",build_type=\"x\"} 1\n";

static uint64_t cells[TN_METRIC_CELL_CNT];

static bool load(const char *text)
{
	struct tctl_samples s;
	CU_ASSERT_TRUE_FATAL(tctl_samples_parse(strdup(text), &s, err, sizeof err));
	bool ok = tctl_samples_to_cells(&s, cells, err, sizeof err);
	tctl_samples_free(&s);
	return ok;
}

static unsigned wrong_of(const char *text, unsigned *number_out)
{
	struct tn_equation_breach b[4];
	CU_ASSERT_TRUE(load(text));
	unsigned n = tn_metric_equations_check(cells, b, TN_ARRAY_LEN(b));
	*number_out = n > 0 ? b[n - 1].equation : 0;
	return n;
}

static void samples(void)
{
	struct tctl_samples s;
	CU_ASSERT_TRUE_FATAL(tctl_samples_parse(strdup(balanced), &s, err, sizeof err));
	CU_ASSERT_STRING_EQUAL(s.item[0].name, "tent_logical_requests_started_total");
	CU_ASSERT_STRING_EQUAL(tctl_sample_label(&s.item[0], "operation"), "read");
	CU_ASSERT_PTR_NULL(tctl_sample_label(&s.item[0], "transport"));
	CU_ASSERT_EQUAL(s.item[0].value, 10);
	CU_ASSERT_STRING_EQUAL(tctl_sample_label(&s.item[s.cnt - 1], "commit"), "a\\\"}b");
	tctl_samples_free(&s);
	static const char *const broken[] = {"<html>", "x{a=\"b\" 1", "x{a=b} 1",    "x{a=\"b} 1",
					     "x{",     "x ",          "{a=\"b\"} 1", "x{a=\"b\"}"};
	for (size_t i = 0; i < TN_ARRAY_LEN(broken); i++)
		CU_ASSERT_FALSE(tctl_samples_parse(strdup(broken[i]), &s, err, sizeof err));
	CU_ASSERT_TRUE(tctl_samples_parse(strdup(""), &s, err, sizeof err));
	CU_ASSERT_EQUAL(s.cnt, 0);
	tctl_samples_free(&s);
}

/* Adding one to any single counter of an equation must break exactly what it stands in. */
static void every_term_counts(void)
{
	unsigned number;
	CU_ASSERT_EQUAL(wrong_of(balanced, &number), 0);
	static const struct { const char *line, *instead; unsigned number, wrong;
	} cases[] = {
	    {"{operation=\"read\"} 10", "{operation=\"read\"} 11", 1, 1},
	    {"outcome=\"failed\"} 1\n", "outcome=\"failed\"} 2\n", 1, 1},
	    {"inflight{operation=\"read\"} 2", "inflight{operation=\"read\"} 1", 1, 1},
	    {"operation=\"read\"} 9\n", "operation=\"read\"} 8\n", 2, 1},
	    {"outcome=\"failed\"} 2\n", "outcome=\"failed\"} 3\n", 3, 2},
	    {"failures_total{transport=\"tcp\",operation=\"read\"} 2",
	     "failures_total{transport=\"tcp\",operation=\"read\"} 3", 3, 1},
	    {"event=\"admit\"} 12", "event=\"admit\"} 13", 4, 1},
	    {"queued_owners{owner_kind=\"user\"} 2", "queued_owners{owner_kind=\"user\"} 0", 4, 1},
	    {"event=\"post_error\"} 1", "event=\"post_error\"} 0", 5, 1},
	    {"slices 1", "slices 2", 5, 1},
	    {"outcome=\"timeout\"} 1", "outcome=\"timeout\"} 2", 6, 1},
	    {"retries_total{method=\"hello\"} 1", "retries_total{method=\"hello\"} 0", 6, 1},
	    {"completed_total{resource=\"data_bytes\"} 10", "completed_total{resource=\"data_bytes\"} 9", 7, 1},
	    {"capacity{resource=\"data_bytes\"} 5", "capacity{resource=\"data_bytes\"} 4", 7, 1},
	    {"event=\"exhausted\"} 1", "event=\"exhausted\"} 0", 9, 1},
	};
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		static char text[sizeof balanced + 64];
		const char *at = strstr(balanced, cases[i].line);
		CU_ASSERT_PTR_NOT_NULL_FATAL(at);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - balanced), balanced, cases[i].instead,
			 at + strlen(cases[i].line));
		CU_ASSERT_EQUAL(wrong_of(text, &number), cases[i].wrong);
		CU_ASSERT_EQUAL(number, cases[i].number);
	}
}

static void numbers_and_labels(void)
{
	unsigned number;
	CU_ASSERT_EQUAL(wrong_of("tent_selection_calls_total 9223372036854775807\n", &number), 1);
	CU_ASSERT_EQUAL(wrong_of("tent_of_tomorrow{a=\"b\"} 5\ntent_metrics_build_info{version=\"9\"} 1\n", &number),
			0);
	CU_ASSERT_FALSE(load("tent_logical_requests_started_total{operation=\"swap\"} 1\n")); /* of a newer build */
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "tent_logical_requests_started_total has labels"));
	CU_ASSERT_FALSE(load("tent_logical_requests_started_total 1\n"));
}

/* ---- the verb ---- */

struct server { int fd; const char *const *answers; };

static void *serve(void *arg)
{
	struct server *s = arg;
	for (const char *const *a = s->answers; *a != NULL; a++) {
		char ask[1024];
		int c = accept(s->fd, NULL, NULL);
		if (recv(c, ask, sizeof ask, 0) < 0 || send(c, *a, strlen(*a), MSG_NOSIGNAL) < 0)
			perror("server");
		close(c);
	}
	return NULL;
}

static int verify_with(const char *const *answers)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	pthread_t th;
	char port[64], path[128];
	struct server s = { .fd = socket(AF_INET, SOCK_STREAM, 0), .answers = answers };
	if (bind(s.fd, (struct sockaddr *)&a, sizeof a) != 0 || listen(s.fd, 4) != 0 ||
	    getsockname(s.fd, (struct sockaddr *)&a, &len) != 0)
		abort();
	snprintf(path, sizeof path, "%s/http.port", run_dir());
	write_file(path, port, (size_t)snprintf(port, sizeof port, "127.0.0.1:%u\n", ntohs(a.sin_port)));
	pthread_create(&th, NULL, serve, &s);
	int rc = run("--timeout", "2s", "-j", "verify", NULL);
	pthread_join(th, NULL);
	close(s.fd);
	return rc;
}

static void the_verb(void)
{
	static char good[sizeof balanced + 64], off[sizeof balanced + 64];
	snprintf(good, sizeof good, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n%s", balanced);
	memcpy(off, good, sizeof off);
	memcpy(strstr(off, "} 10\n"), "} 99\n", 5);
	run_dir();
	CU_ASSERT_EQUAL(run("verify", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "http.port is missing"));
	CU_ASSERT_EQUAL(verify_with((const char *[]){ good, NULL }), 0);
	CU_ASSERT_EQUAL(run_json_number("looks"), 1);
	CU_ASSERT_EQUAL(verify_with((const char *[]){ off, off, good, NULL }), 0); /* seen while it moved */
	CU_ASSERT_EQUAL(run_json_number("looks"), 3);
	const char *always_off[21];
	for (size_t i = 0; i < 20; i++)
		always_off[i] = off;
	always_off[20] = NULL;
	CU_ASSERT_EQUAL(verify_with(always_off), 1);
	CU_ASSERT_EQUAL(run_json_number("wrong"), 1);
	CU_ASSERT_EQUAL(verify_with((const char *[]){ "HTTP/1.1 503 No\r\n\r\n", NULL }), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "status 503"));
	CU_ASSERT_EQUAL(verify_with((const char *[]){ "HTTP/1.1 200 OK\r\n\r\ntent_dataplane_up 0\n", NULL }), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "no counters of a data plane"));
	CU_ASSERT_EQUAL(verify_with((const char *[]){ "SSH-2.0-x\r\n", NULL }), 1);
	run_dir_remove();
}

TN_TEST_MAIN("tentctl verify",
	{ "samples with their labels; what is no exposition is refused", samples },
	{ "one count off anywhere is found, under its number", every_term_counts },
	{ "numbers at the limit, families and labels of another version", numbers_and_labels },
	{ "the verb: exit codes, second looks, servers that are none", the_verb })
