/* SPDX-License-Identifier: Apache-2.0
 * The verbs that ask, against a control plane of this test that answers with canned bodies. */
#include "tests/unit/tentctl/run.h"

#include <pthread.h>
#include <zmq.h>

#include "common/message.h"

struct canned {
	tn_status status;
	const char *detail, *body;
	bool garbage, other_id_first; /* no envelope; an answer to somebody else first */
	unsigned too_big;             /* pages of more segments than this are */
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over the two below */
static struct canned answer;
static unsigned asked_cnt;
static void *zmq_ctx;

static void fill_segments(json_t *body, const json_t *ask)
{
	uint64_t first = tctl_u64(ask, "first"), count = tctl_u64(ask, "count");
	json_t *list = json_array();
	for (uint64_t i = first; i < first + count && i < 150; i++) {
		char name[24];
		snprintf(name, sizeof name, "seg-%03d", (int)i);
		json_array_append_new(list,
				      json_pack("{s:s,s:I,s:I,s:i,s:[s],s:i,s:[{s:I,s:i}]}", "name", name, "bytes",
						(json_int_t)8192, "generation", (json_int_t)i + 1, "access", 5, "peers",
						"host-b", "uid", 7, "buffers", "bytes", (json_int_t)8192, "rights", 6));
	}
	json_object_set_new(body, "segments", list);
	json_object_set_new(body, "total", json_integer(150));
}

static void reply(void *s, const char *who, size_t who_len, struct tn_message *m)
{
	static char text[TN_MESSAGE_MAX];
	size_t len;
	m->reply = true;
	m->status = answer.status;
	json_t *ask = m->body;
	m->body = answer.body != NULL ? json_loads(answer.body, 0, NULL) : json_object();
	if (strcmp(m->type, "segment_list") == 0) {
		if (tctl_u64(ask, "count") > answer.too_big && answer.too_big > 0)
			m->status = TN_TOO_BIG;
		fill_segments(m->body, ask);
	}
	snprintf(m->detail, sizeof m->detail, "%s", answer.detail != NULL ? answer.detail : "");
	if (tn_message_encode(m, text, sizeof text, &len) != TN_OK)
		abort();
	zmq_send(s, who, who_len, ZMQ_SNDMORE);
	zmq_send(s, answer.garbage ? "no JSON" : text, answer.garbage ? 7 : len, 0);
	json_decref(ask);
}

static void *control_plane(void *arg)
{
	char who[256], text[8192], err[TN_ERR_TEXT];
	for (;;) {
		int who_len = zmq_recv(arg, who, sizeof who, 0);
		int n = zmq_recv(arg, text, sizeof text, 0);
		struct tn_message m;
		if (who_len < 0 || n <= 0 || tn_message_decode(text, (size_t)n, &m, err) != TN_OK)
			break; /* an empty message ends it */
		pthread_mutex_lock(&lock);
		asked_cnt++;
		if (answer.other_id_first) {
			struct tn_message other = m;
			other.id += 100;
			json_incref(other.body);
			reply(arg, who, (size_t)who_len, &other);
			tn_message_clear(&other);
		}
		reply(arg, who, (size_t)who_len, &m);
		pthread_mutex_unlock(&lock);
		tn_message_clear(&m);
	}
	zmq_close(arg);
	return NULL;
}

static pthread_t thread;
static void start(void)
{
	char address[128];
	zmq_ctx = zmq_ctx_new();
	void *s = zmq_socket(zmq_ctx, ZMQ_ROUTER);
	snprintf(address, sizeof address, "ipc://%s/bus.ipc", run_dir());
	if (zmq_bind(s, address) != 0)
		abort();
	pthread_create(&thread, NULL, control_plane, s);
}

static void end(void)
{
	char address[128];
	void *s = zmq_socket(zmq_ctx, ZMQ_DEALER);
	snprintf(address, sizeof address, "ipc://%s/bus.ipc", run_dir());
	zmq_connect(s, address);
	zmq_send(s, "", 0, 0);
	pthread_join(thread, NULL);
	zmq_close(s);
	zmq_ctx_term(zmq_ctx);
	run_dir_remove();
}

static void set_all(struct canned c)
{
	pthread_mutex_lock(&lock);
	answer = c;
	asked_cnt = 0;
	pthread_mutex_unlock(&lock);
}

static void set(tn_status status, const char *detail, const char *body)
{
	set_all((struct canned){ .status = status, .detail = detail, .body = body });
}

static unsigned asked(void)
{
	pthread_mutex_lock(&lock);
	unsigned n = asked_cnt;
	pthread_mutex_unlock(&lock);
	return n;
}

static void status(void)
{
	start();
	set(TN_OK, NULL,
	    "{\"host\":\"h\",\"data_plane_attached\":true,\"control_plane\":{\"version\":\"9\",\"peers\":1,\"messages_"
	    "refused\":2},"
	    "\"data_plane\":{\"pid\":77,\"clients\":3,\"memory_bytes\":2048,\"endpoints\":[{\"transport\":\"tcp\","
	    "\"address\":\"a:1\"},"
	    "{\"transport\":\"tcp\",\"address\":\"b:2\"}],\"workers\":[{\"index\":0,\"queue_pairs\":5},{\"index\":1,"
	    "\"queue_pairs\":6}]}}");
	CU_ASSERT_EQUAL(run("status", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "version 9, 1 peer, 0 segments here"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "2 messages refused"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "pid 77"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "(2.00KiB)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "endpoints      tcp a:1, tcp b:2\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "INDEX  QUEUE-PAIRS\n0      5\n1      6\n"));
	CU_ASSERT_PTR_NULL(strstr(ran.out, "lanes to peers"));
	CU_ASSERT_EQUAL(run("status", "-j", NULL), 0);
	CU_ASSERT_TRUE(run_json_is("host", "h"));
	set(TN_OK, NULL, "{\"host\":\"h\",\"data_plane_attached\":false,\"control_plane\":{}}");
	CU_ASSERT_EQUAL(run("status", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "not attached"));
	set(TN_OK, NULL, "{\"data_plane\":{\"pid\":1},\"data_plane_error\":\"too slow\"}");
	CU_ASSERT_EQUAL(run("status", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "does not answer: too slow"));
	set(TN_OK, NULL, "{\"control_plane\":{\"peers\":4},\"data_plane\":{\"peers\":{\"up\":1,\"down\":1}}}");
	CU_ASSERT_EQUAL(run("status", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "lanes to peers 1 up, 1 down, 2 idle ("));
}

static void strange_answers(void)
{
	set(TN_OK, NULL, "{\"host\":[1],\"control_plane\":7,\"data_plane\":\"x\"}"); /* of a newer version, say */
	CU_ASSERT_EQUAL(run("status", NULL), 0);
	set_all((struct canned){ .garbage = true });
	CU_ASSERT_EQUAL(run("-j", "status", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "makes no sense"));
	set_all((struct canned){ .body = "{\"host\":\"h\"}", .other_id_first = true });
	CU_ASSERT_EQUAL(run("-j", "status", NULL), 0);
	CU_ASSERT_TRUE(run_json_is("host", "h"));
}

static void segments(void)
{
	set(TN_OK, NULL, NULL);
	CU_ASSERT_EQUAL(run("segment", "list", NULL), 0);
	CU_ASSERT_EQUAL(asked(), 3); /* 64 + 64 + 22 */
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "seg-149  8.00KiB  1        read, write  same user, peers host-b  150"));
	CU_ASSERT_EQUAL(run("-j", "segment", "list", "--first", "140", "--count", "5", NULL), 0);
	json_t *j = run_json();
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "segments")), 5);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(j, "total")), 150);
	json_decref(j);
	set_all((struct canned){ .too_big = 16 }); /* large segments: pages are halved until they fit */
	CU_ASSERT_EQUAL(run("-j", "segment", "list", NULL), 0);
	j = run_json();
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "segments")), 150);
	json_decref(j);
	set(TN_OK, NULL,
	    "{\"segment\":{\"name\":\"s\",\"bytes\":12288,\"access\":6,\"buffers\":[{\"bytes\":8192,\"rights\":2},"
	    "{\"bytes\":4096,\"rights\":4}]}}");
	CU_ASSERT_EQUAL(run("segment", "show", "s", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "everybody here, all peers"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "1       8192    4.00KiB  write"));
	set(TN_NOT_FOUND, "no segment s is published on this host", NULL);
	CU_ASSERT_EQUAL(run("-j", "segment", "withdraw", "s", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "not_found"));
	set(TN_OK, NULL, NULL);
	CU_ASSERT_EQUAL(run("segment", "withdraw", "s", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out, "withdrawn s\n");
}

static void explained(void)
{
	set(TN_OK, NULL,
	    "{\"target\":\"remote_segment\",\"segment\":\"kv\",\"segment_state\":{\"cache\":\"refused\",\"error\":"
	    "\"not_found\","
	    "\"detail\":\"no such "
	    "segment\",\"retry_ms\":200},\"peer\":{\"name\":\"b\",\"address\":\"tcp://x:1\",\"answers\":true,"
	    "\"rtt_us\":300,\"ticket\":\"held\",\"holds_our_ticket\":true},\"data_plane\":{\"transports\":["
	    "{\"transport\":\"tcp\",\"verdict\":\"use\",\"why\":\"ready\",\"detail\":\"2 lanes up\"},"
	    "{\"transport\":\"rdma\",\"verdict\":\"no\",\"why\":\"not_built\",\"detail\":\"not in this build\"}],"
	    "\"policy\":{\"name\":\"default\",\"bytes\":1048576,\"order\":[\"rdma\",\"tcp\"]},\"windows\":{\"workers\":"
	    "1},"
	    "\"peer\":{\"endpoints\":[\"127.0.0.1:7\"],\"lanes_in\":1},\"paths\":[{\"worker\":0,\"transport\":\"tcp\",\"lanes\":2,"
	    "\"lanes_most\":2,"
	    "\"up_ms\":61000,\"addresses\":[{\"address\":\"127.0.0.1:7\",\"status\":\"ok\",\"meaning\":\"done\",\"ms_"
	    "ago\":5}]}]}}");
	CU_ASSERT_EQUAL(run("explain", "b/kv", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(ran.out, "tcp carries it: 2 lanes up\nbut b says of segment kv: no such segment"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "rdma       no       not_built  not in this build\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(
	    ran.out, "worker 0   tcp: 2 of 2 lanes, up for 1m01s\n           127.0.0.1:7: connected, 5.00ms ago\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "it admits our lanes; we admit its lanes"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "incoming   1 connection from it"));
	set(TN_OK, NULL,
	    "{\"target\":\"peer\",\"peer\":{\"name\":\"b\",\"answers\":false,\"detail\":\"no "
	    "answer\",\"ticket\":\"failed\","
	    "\"ticket_error\":\"peer_denied\",\"ticket_retry_ms\":700},\"data_plane\":{\"transports\":[{\"transport\":"
	    "\"tcp\","
	    "\"verdict\":\"use\",\"why\":\"lanes_down\",\"detail\":\"refused\"}],\"paths\":[{\"worker\":0,"
	    "\"transport\":\"tcp\","
	    "\"failed_in_a_row\":4,\"next_try_ms\":90,\"addresses\":[{\"address\":\"[::1]:7\",\"status\":\"path_down\","
	    "\"meaning\":\"Connection refused\",\"ms_ago\":12}]}]}}");
	CU_ASSERT_EQUAL(run("explain", "b", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(ran.out, "tcp would carry it: refused\nbut the control plane of host b does not answer: no answer"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "it gave us none: peer_denied"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(ran.out, "4 failures in a row, next try in 90.0ms\n           [::1]:7: Connection refused"));
	set(TN_OK, NULL,
	    "{\"target\":\"segment\",\"segment\":\"s\",\"data_plane\":null,\"data_plane_error\":\"not attached\"}");
	CU_ASSERT_EQUAL(run("explain", "s", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "no data plane: nothing moves (not attached)"));
	CU_ASSERT_EQUAL(
	    run("-j", "explain", "s", "--bytes", "4KiB", "--priority", "high", "--intent", "migration", NULL), 0);
	CU_ASSERT_TRUE(run_json_is("target", "segment"));
	set(TN_OK, NULL, "{\"data_plane\":7,\"peer\":[],\"segment\":{}}"); /* of a newer version, say */
	CU_ASSERT_EQUAL(run("explain", "s", NULL), 0);
	CU_ASSERT_EQUAL(run("explain", NULL), 2);
	CU_ASSERT_EQUAL(run("explain", "a", "--bytes", "many", NULL), 2);
}

#define IDS "\"number\":4,\"engine\":2,\"request_id\":11,\"batch_id\":3,\"task_id\":8,\"trace_id\":\"000000000000000000000000000000ab\","
#define FAILED \
	"{\"event\":\"tent.request.failed\",\"ts\":\"2026-01-01T00:00:02.000000Z\",\"level\":\"warn\"," IDS \
	"\"attempt_id\":14,\"mono_ns\":2000000000,\"transport\":\"tcp\",\"operation\":\"write\",\"phase\":\"post\"," \
	"\"reason\":\"timeout\",\"status\":\"timeout\",\"duration_us\":1000000}"
#define ATTEMPT_SPAN \
	"{\"event\":\"tent.transport_attempt\",\"ts\":\"2026-01-01T00:00:01.900000Z\",\"level\":\"info\"," IDS \
	"\"attempt_id\":14,\"span_id\":\"01\",\"parent_span_id\":\"02\",\"mono_ns\":1900000000,\"transport\":\"tcp\"," \
	"\"operation\":\"write\",\"phase\":\"connect\",\"reason\":\"peer_closed\",\"status\":\"path_down\"," \
	"\"duration_us\":800000,\"retention\":\"error\"}"
#define ROOT_SPAN \
	"{\"event\":\"tent.logical_transfer\",\"ts\":\"2026-01-01T00:00:02.000000Z\",\"level\":\"info\"," IDS \
	"\"span_id\":\"02\",\"start\":\"2026-01-01T00:00:01.000000Z\",\"mono_ns\":2000000000,\"transport\":\"tcp\"," \
	"\"operation\":\"write\",\"phase\":\"post\",\"reason\":\"timeout\",\"status\":\"timeout\",\"duration_us\":1000000," \
	"\"retention\":\"timeout\"}"
#define PAGE(records) "{\"session\":\"01\",\"next\":9,\"missed\":3,\"more\":false,\"records\":[" records "]}"

static void events(void)
{
	static const char *const fit[][2] = { { "--phase", "post" }, { "--reason", "timeout" }, { "--transport", "tcp" },
		{ "--operation", "write" }, { "--status", "timeout" }, { "--request", "11" }, { "--event", "tent.request.failed" },
		{ "--event", "request.failed" }, { "--trace", "000000000000000000000000000000ab" } };
	static const char *const miss[][2] = { { "--phase", "poll" }, { "--reason", "internal" }, { "--transport", "shm" },
		{ "--operation", "read" }, { "--status", "ok" }, { "--request", "12" }, { "--event", "request.slow" },
		{ "--trace", "000000000000000000000000000000ac" }, { "--since", "1h" }, { "--count", "0" } };
	static const char *const wrong[][2] = { { "--phase", "posts" }, { "--reason", "" }, { "--transport", "udp" },
		{ "--operation", "move" }, { "--request", "x" }, { "--event", "nothing" }, { "--trace", "ab" }, { "--since", "now" } };
	set(TN_OK, NULL, PAGE(ROOT_SPAN "," FAILED));
	CU_ASSERT_EQUAL(run("events", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out,
		"-- 3 older records are no longer kept, or were lost before they were read\n"
		"2026-01-01T00:00:02.000000Z warn  request.failed tcp write post/timeout timeout after 1.00s request 11 attempt 14 "
		"trace 000000000000000000000000000000ab\n");
	CU_ASSERT_EQUAL(run("events", "--spans", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "info  logical_transfer tcp write post/timeout timeout after 1.00s request 11 kept: timeout"));
	CU_ASSERT_EQUAL(run("-j", "events", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "{\"missed\":3}\n{\"event\":\"tent.request.failed\""));
	for (size_t i = 0; i < TN_ARRAY_LEN(fit); i++) {
		CU_ASSERT_EQUAL(run("events", fit[i][0], fit[i][1], NULL), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "request.failed"));
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(miss); i++) {
		CU_ASSERT_EQUAL(run("events", miss[i][0], miss[i][1], NULL), 0);
		CU_ASSERT_PTR_NULL(strstr(ran.out, "request.failed"));
	}
	for (size_t i = 0; i < TN_ARRAY_LEN(wrong); i++)
		CU_ASSERT_EQUAL(run("events", wrong[i][0], wrong[i][1], NULL), 2);
	CU_ASSERT_EQUAL(run("events", "--reason", "timeot", NULL), 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "did you mean timeout?"));
	set(TN_OK, NULL, "{\"more\":true,\"records\":7}"); /* of a newer version, say: no circle */
	CU_ASSERT_EQUAL(run("events", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out, "");
	set(TN_UNSUPPORTED, "unknown method \"events\"", NULL);
	CU_ASSERT_EQUAL(run("-j", "events", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "unsupported"));
}

static void traced(void)
{
	static const char id[] = "000000000000000000000000000000ab";
	set(TN_OK, NULL, PAGE(ATTEMPT_SPAN "," FAILED "," ROOT_SPAN));
	CU_ASSERT_EQUAL(run("trace", "11", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out,
		"request 11, batch 3, task 8, trace 000000000000000000000000000000ab\n"
		"  2026-01-01T00:00:01.000000Z  write over tcp: timeout after 1.00s, post/timeout (kept: timeout)\n"
		"  +100ms     |- attempt 14 over tcp: path_down after 800ms, connect/peer_closed (kept: error)\n"
		"  +1.00s     |- request.failed tcp write post/timeout timeout after 1.00s attempt 14\n");
	CU_ASSERT_EQUAL(run("trace", "12", NULL), 0); /* merged into the owner that 11 stands for: the attempt is its own, too */
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "request 12, "));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "|- attempt 14 over tcp"));
	CU_ASSERT_EQUAL(run("-j", "trace", id, NULL), 0);
	json_t *j = run_json(), *r = json_array_get(json_object_get(j, "requests"), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(r, "attempts")), 1);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(r, "events")), 1);
	CU_ASSERT_TRUE(json_is_object(json_object_get(r, "span")) && json_is_true(json_object_get(j, "complete")));
	json_decref(j);
	set(TN_OK, NULL, PAGE(FAILED));
	CU_ASSERT_EQUAL(run("trace", id, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "its span was not kept"));
	set(TN_OK, NULL, PAGE(""));
	CU_ASSERT_EQUAL(run("-j", "trace", "11", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "not_found"));
	set(TN_OK, NULL, "{\"more\":true,\"next\":\"x\",\"records\":[7,[],{}]}");
	CU_ASSERT_EQUAL(run("trace", "11", NULL), 0);
	CU_ASSERT_EQUAL(run("trace", NULL), 2);
	CU_ASSERT_EQUAL(run("trace", "eleven", NULL), 2);
	CU_ASSERT_EQUAL(run("trace", "000000000000000000000000000000AB", NULL), 2);
}

static void one_request(void)
{
	set(TN_OK, NULL,
	    "{\"live\":true,\"request_id\":11,\"operation\":\"write\",\"bytes\":4096,\"peer\":\"b\",\"state\":\"queued\","
	    "\"phase\":\"retry\",\"waits_for\":\"rail\",\"wait_ms\":120,\"age_us\":1500000,\"deadline_us\":28500000,\"attempts\":2,"
	    "\"failovers\":1,\"last_failure\":{\"status\":\"path_down\",\"phase\":\"connect\",\"reason\":\"unavailable\"},"
	    "\"task_id\":8,\"task_requests\":3,\"task_bytes\":12288,\"batch_id\":3,\"priority\":\"high\",\"trace_id\":\"ab\","
	    "\"transports\":[{\"transport\":\"tcp\",\"verdict\":\"no\",\"why\":\"cooling\",\"detail\":\"it failed\"}]}");
	CU_ASSERT_EQUAL(run("request", "show", "11", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out,
		"request 11: write of 4.00KiB at host b\n"
		"state      queued, phase retry\n"
		"waits for  a way to its target: all fail too often and cool down, 120ms more\n"
		"age        1.50s, 28.5s to its deadline\n"
		"attempts   2, failovers 1; the last failure: path_down, connect/unavailable\n"
		"merged     3 requests, 12.0KiB in all\n"
		"known as   task 8, batch 3, priority high, trace ab\n"
		"\nTRANSPORT  VERDICT  WHY      DETAIL\n"
		"tcp        no       cooling  it failed\n");
	set(TN_OK, NULL,
	    "{\"live\":true,\"request_id\":11,\"operation\":\"read\",\"bytes\":4096,\"state\":\"running\",\"phase\":\"poll\","
	    "\"task_id\":8,\"task_bytes\":4096,\"attempt_id\":5,\"attempt_us\":2000,\"moved_bytes\":1024,\"transport\":\"shm\"}");
	CU_ASSERT_EQUAL(run("request", "show", "11", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "read of 4.00KiB at this host"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "attempt    5 over shm for 2.00ms, 1.00KiB of 4.00KiB moved"));
	set(TN_OK, NULL, "{\"live\":false,\"request_id\":11,\"end\":" FAILED "}");
	CU_ASSERT_EQUAL(run("request", "show", "11", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "request 11 has ended: timeout\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "tentctl trace 11 says more"));
	CU_ASSERT_EQUAL(run("-j", "request", "show", "11", NULL), 0);
	set(TN_NOT_FOUND, "no such live request", NULL);
	CU_ASSERT_EQUAL(run("request", "show", "12", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "no such live request"));
	set(TN_OK, NULL, "{\"live\":7,\"end\":[]}");
	CU_ASSERT_EQUAL(run("request", "show", "11", NULL), 0);
	CU_ASSERT_EQUAL(run("request", "show", NULL), 2);
	CU_ASSERT_EQUAL(run("request", "show", "0", NULL), 2);
	CU_ASSERT_EQUAL(run("request", "show", "eleven", NULL), 2);
}

static void switched(void)
{
	set(TN_OK, NULL, "{\"changed\":true}");
	CU_ASSERT_EQUAL(run("transport", "disable", "tcp", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "tcp is off: requests go other ways, or wait"));
	CU_ASSERT_EQUAL(run("transport", "enable", "tcp", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "tcp is on"));
	CU_ASSERT_EQUAL(run("-j", "transport", "disable", "--force", "tcp", NULL), 0);
	set(TN_OK, NULL, "{\"changed\":false}");
	CU_ASSERT_EQUAL(run("transport", "disable", "tcp", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out, "tcp was off already\n");
	set(TN_BUSY, "tcp is one of observability/required_transports: without it this host is not ready", NULL);
	CU_ASSERT_EQUAL(run("transport", "disable", "tcp", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "required_transports"));
	CU_ASSERT_EQUAL(run("transport", "disable", NULL), 2);
	CU_ASSERT_EQUAL(run("transport", "enable", "--force", "tcp", NULL), 2);
}

static void peers(void)
{
	set(TN_OK, NULL,
	    "{\"peers\":[{\"name\":\"b\",\"address\":\"tcp://"
	    "x:1\",\"ticket\":\"held\",\"heard_ms_ago\":1500,\"lanes\":4,\"lanes_in\":0,"
	    "\"transport\":\"tcp\",\"state\":\"up\",\"control_lane_rtt_us\":250},"
	    "{\"name\":\"c\",\"connection\":\"denied\",\"error\":\"peer_denied\",\"detail\":\"no \\u001b[2J\","
	    "\"last_failure\":{\"error\":\"peer_denied\",\"ms_ago\":40}},"
	    "{\"name\":\"d\",\"connection\":\"broken\",\"heard_ms_ago\":9}]}");
	CU_ASSERT_EQUAL(run("peer", "list", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "b     tcp://x:1  ok       1.50s          held    up    tcp            4         0     250us\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "c     -          fails    never"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "d     -          lost     9.00ms"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "\nc: no ?[2J (peer_denied, 40.0ms ago)\n"));
	CU_ASSERT_PTR_NULL(strchr(ran.out, '\033'));
	set(TN_OK, NULL, "{\"control_plane_rtt_us\":321}");
	CU_ASSERT_EQUAL(run("peer", "probe", "b", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out, "b answers: control plane in 321us\n");
	set(TN_OK, NULL, "{\"control_plane_rtt_us\":321,\"lanes\":{\"transport\":\"tcp\",\"why\":\"address_refused\","
	    "\"detail\":\"not from 203.0.113.9\"},\"refused_in\":{\"address\":\"203.0.113.8\",\"count\":3,\"ms_ago\":2000}}");
	CU_ASSERT_EQUAL(run("peer", "probe", "b", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "lanes there: tcp: not from 203.0.113.9\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "3 came from 203.0.113.8"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "peers/b/data_addresses"));
	CU_ASSERT_EQUAL(run("-j", "peer", "probe", "b", NULL), 1);
	set(TN_PEER_UNKNOWN, "no peer \"q\" in the config", NULL);
	CU_ASSERT_EQUAL(run("-j", "peer", "probe", "q", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "peer_unknown"));
	set(TN_OK, NULL, "{\"version\":\"3.2.1\",\"commit\":\"c\",\"build_type\":\"b\"}");
	CU_ASSERT_EQUAL(run("version", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "tent-controlplane 3.2.1 (c, b)"));
	end();
}

TN_TEST_MAIN("tentctl bus",
	{ "status: both daemons, one, and one that hangs", status },
	{ "answers that are garbage, foreign, or of a newer version", strange_answers },
	{ "segments: pages, one, withdraw", segments },
	{ "explain: the conclusion, then the parts", explained },
	{ "events: filters, what is missing", events },
	{ "trace: a request, a trace, nothing", traced },
	{ "one request: live, ended, unknown", one_request },
	{ "a transport is switched", switched },
	{ "peers and versions", peers })
