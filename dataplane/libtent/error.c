/* SPDX-License-Identifier: Apache-2.0
 * Words for people: the thread's last error, status texts, and the one-line text of a completion. Proves at compile
 * time that the numbers of the public header are those of common/status.h and common/domain.h. Any thread. */
#include "dataplane/libtent/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/domain.h"
#include "common/ids.h"
#include "shm-ring/abi.h"

#define X(name, value, text, meaning, todo) TN_STATIC_ASSERT((int)TENT_##name == (int)TN_##name, #name " differs");
TN_STATUS_LIST(X)
#undef X
#define X(name, text) TN_STATIC_ASSERT((int)TENT_OUTCOME_##name == (int)TN_OUTCOME_##name, "outcome " #name " differs");
TN_OUTCOME_LIST(X)
#undef X
#define X(name, text)                                                                                                  \
	TN_STATIC_ASSERT((int)TENT_PRIORITY_##name == (int)TN_PRIORITY_##name, "priority " #name " differs");
TN_PRIORITY_LIST(X)
#undef X
#define X(name, text) TN_STATIC_ASSERT((int)TENT_INTENT_##name == (int)TN_INTENT_##name, "intent " #name " differs");
TN_INTENT_LIST(X)
#undef X
TN_STATIC_ASSERT((int)TENT_TRANSPORT_ANY == (int)TN_TRANSPORT_UNSPEC, "transport any");
TN_STATIC_ASSERT((int)TENT_TRANSPORT_RDMA == (int)TN_TRANSPORT_RDMA, "transport rdma");
TN_STATIC_ASSERT((int)TENT_TRANSPORT_HP_TCP == (int)TN_TRANSPORT_HP_TCP, "transport hp_tcp");
TN_STATIC_ASSERT((int)TENT_TRANSPORT_TCP == (int)TN_TRANSPORT_TCP, "transport tcp");
TN_STATIC_ASSERT((int)TENT_TRANSPORT_SHM == (int)TN_TRANSPORT_SHM, "transport shm");
TN_STATIC_ASSERT((int)TENT_READ == (int)SHR_OP_READ && (int)TENT_WRITE == (int)SHR_OP_WRITE, "opcodes");
TN_STATIC_ASSERT(TENT_RIGHT_LOCAL == SHR_RIGHT_LOCAL && TENT_RIGHT_REMOTE_READ == SHR_RIGHT_REMOTE_READ &&
		 TENT_RIGHT_REMOTE_WRITE == SHR_RIGHT_REMOTE_WRITE && TENT_RIGHT_LOCAL_READ == SHR_RIGHT_LOCAL_READ, "rights");
TN_STATIC_ASSERT(TENT_ACCESS_SAME_UID == SHR_ACCESS_SAME_UID && TENT_ACCESS_LOCAL_ALL == SHR_ACCESS_LOCAL_ALL &&
		 TENT_ACCESS_PEERS == SHR_ACCESS_PEERS, "access bits");
TN_STATIC_ASSERT(sizeof(tent_request) == 128 || sizeof(void *) != 8, "a request is two cache lines");
TN_STATIC_ASSERT(sizeof(tent_completion) == 64, "a completion is one cache line");
TN_STATIC_ASSERT(offsetof(tent_request, deadline_ns) + sizeof(uint64_t) <= 64,
		 "what every request needs stands in the first line");
TN_STATIC_ASSERT(TENT_NOTE_MAX == SHR_NOTE_BYTES, "notice size");
TN_STATIC_ASSERT(sizeof(((tent_note *)0)->from) == TN_NAME_MAX, "name size");

static _Thread_local char last_error[LT_ERROR_BYTES];

/* Cuts instead of overflowing, so that the advice is dropped rather than the cause. */
static void write_text(tn_status status, const char *cause)
{
	const char *todo = tn_status_todo(status);

	(void)snprintf(last_error, sizeof last_error, "%s (%s)%s%s", cause, tn_status_name(status), *todo ? ": " : "",
		       todo);
}

tent_status lt_fail(tn_status status, const char *fmt, ...)
{
	char cause[LT_ERROR_BYTES];
	va_list args;

	if (status >= TN_OK)
		return (tent_status)status;
	va_start(args, fmt);
	(void)vsnprintf(cause, sizeof cause, fmt, args);
	va_end(args);
	write_text(status, cause);
	return (tent_status)status;
}

tent_status lt_fail_errno(int err, const char *fmt, ...)
{
	char cause[LT_ERROR_BYTES];
	char number[64];
	va_list args;

	va_start(args, fmt);
	int used = vsnprintf(cause, sizeof cause, fmt, args);
	va_end(args);
	if (used >= 0 && (size_t)used < sizeof cause)
		(void)snprintf(cause + used, sizeof cause - (size_t)used, ": %s",
			       strerror_r(err, number, sizeof number));
	tn_status status = tn_status_from_errno(err);
	write_text(status, cause);
	return (tent_status)status;
}

const char *tent_status_name(tent_status s) { return tn_status_name((tn_status)s); }
const char *tent_status_text(tent_status s) { return tn_status_meaning((tn_status)s); }
const char *tent_status_advice(tent_status s) { return tn_status_todo((tn_status)s); }
const char *tent_last_error(void) { return last_error; }
const char *tent_version(void) { return LT_VERSION; }
uint32_t tent_api_version(void) { return TENT_API_VERSION; }

const char *tent_phase_name(uint8_t phase) { return tn_phase_name(phase); }
const char *tent_reason_name(uint8_t reason) { return tn_reason_name(reason); }
const char *tent_transport_name(tent_transport t) { return t == TENT_TRANSPORT_ANY ? "any" : tn_transport_name(t); }

/* "READ", "WRITE", "notice"; a completion made by hand may carry anything. */
static const char *completion_subject(const tent_completion *c)
{
	if (c->kind == TENT_COMPLETION_NOTIFY)
		return "notice";
	return c->opcode == TENT_READ ? "READ" : c->opcode == TENT_WRITE ? "WRITE" : "request";
}

/* What a status means and what helps, where a completion says more than its status does. */
static void explain(const tent_completion *c, const char **meaning_out, const char **todo_out)
{
	*meaning_out = tn_status_meaning((tn_status)c->status);
	*todo_out = tn_status_todo((tn_status)c->status);
	if (c->status == TENT_TIMEOUT && c->phase == TN_PHASE_ADMISSION && c->reason == TN_REASON_RESOURCE_EXHAUSTED) {
		*meaning_out = "its target cannot take it before its deadline";
		*todo_out = "allow it more time; admission/drop_infeasible decides whether such a request is tried";
	}
}

const char *tent_completion_text(const tent_completion *c, char *buf, size_t buf_bytes)
{
	if (buf == NULL || buf_bytes == 0)
		return "";
	buf[0] = '\0';
	if (c == NULL)
		return buf;
	const char *subject = completion_subject(c);
	if (c->kind == TENT_COMPLETION_RELEASE) {
		(void)snprintf(buf, buf_bytes, "the buffer of a %s is released", subject);
		return buf;
	}
	char tries[48] = "", path[32] = "";
	if (c->attempts > 1)
		(void)snprintf(tries, sizeof tries, " after %u attempts", c->attempts);
	if (c->transport != TENT_TRANSPORT_ANY)
		(void)snprintf(path, sizeof path, " over %s", tn_transport_name(c->transport));
	if (c->outcome == TENT_OUTCOME_COMPLETED) {
		(void)snprintf(buf, buf_bytes, "%s completed%s%s: %llu bytes", subject, tries, path,
			       (unsigned long long)c->bytes);
		return buf;
	}
	const char *meaning, *todo;
	explain(c, &meaning, &todo);
	(void)snprintf(buf, buf_bytes, "%s %s%s%s: phase %s, reason %s (%s: %s)%s%s%s", subject,
		       tn_outcome_name(c->outcome), tries, path, tn_phase_name(c->phase), tn_reason_name(c->reason),
		       tn_status_name((tn_status)c->status), meaning,
		       *todo ? " - " : "", todo,
		       c->memory_busy ? "; keep the buffer until its release completion" : "");
	return buf;
}
