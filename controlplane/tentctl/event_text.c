/* SPDX-License-Identifier: Apache-2.0
 * Words of an event record, and the filter over records. */
#include "controlplane/tentctl/event_text.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/domain.h"
#include "common/nearest.h"
#include "controlplane/tentctl/region.h"
#include "shm-ring/event_json.h"

#define PREFIX "tent."

static const char *bare(const char *name)
{
	return strncmp(name, PREFIX, sizeof PREFIX - 1) == 0 ? name + sizeof PREFIX - 1 : name;
}

const char *tctl_event_name(const json_t *e) { return bare(tctl_text(e, "event")); }

bool tctl_event_is_span(const json_t *e) { return json_object_get(e, "span_id") != NULL; }

static bool add(char *out, size_t cap, const json_t *e, const char *key, const char *before)
{
	const json_t *v = json_object_get(e, key);
	size_t at = strlen(out);
	if (v == NULL || (json_is_string(v) && strcmp(json_string_value(v), "unspec") == 0))
		return false;
	snprintf(out + at, cap - at, "%s%s%s", at > 0 ? " " : "", before, tctl_text(e, key));
	return true;
}

void tctl_event_what(const json_t *e, char *out, size_t cap)
{
	out[0] = '\0';
	if (add(out, cap, e, "from", ""))
		(void)add(out, cap, e, "to", "-> ");
	(void)add(out, cap, e, "transport", "");
	(void)add(out, cap, e, "operation", "");
	if (add(out, cap, e, "phase", "") && json_object_get(e, "reason") != NULL) {
		size_t at = strlen(out);
		snprintf(out + at, cap - at, "/%s", tctl_text(e, "reason"));
	}
	bool state = strcmp(tctl_event_name(e), "state") == 0;
	if (state)
		snprintf(out, cap, "%s", tctl_tele_state_text((unsigned)TN_MIN(tctl_u64(e, "arg"), (uint64_t)UINT8_MAX)));
	else
		(void)add(out, cap, e, "arg", "client ");
	(void)add(out, cap, e, "peer_index", "peer #");
	(void)add(out, cap, e, "status", "");
	if (json_object_get(e, "duration_us") != NULL) {
		size_t at = strlen(out);
		double us = json_number_value(json_object_get(e, "duration_us"));
		snprintf(out + at, cap - at, " after %s", tctl_time_text((uint64_t)(us * 1000)));
	}
	if (add(out, cap, e, "rejected", "("))
		snprintf(out + strlen(out), cap - strlen(out), ")");
	(void)add(out, cap, e, "request_id", "request ");
	(void)add(out, cap, e, "attempt_id", "attempt ");
	if (tctl_u64(e, "failover_count") > 0)
		(void)add(out, cap, e, "failover_count", "failovers ");
	(void)add(out, cap, e, "retention", "kept: ");
	(void)add(out, cap, e, "suppressed", "held back before: ");
}

/* ---- the filter ---- */

static const char *event_kind_name(unsigned kind)
{
	const struct shr_event_form *form = shr_event_form(kind + 1); /* 0 is none */
	return form != NULL ? bare(form->name) : "invalid";
}

/* `word` is one of cnt names, or what would be is said. */
static bool known(struct tctl *t, const char *option, const char *word, const char *(*name)(unsigned), unsigned cnt)
{
	char near[48] = "", all[256] = "";
	unsigned limit = word != NULL ? tn_edit_limit(strlen(word)) + 1 : 0, best = limit;
	for (unsigned v = 0; word != NULL && v < cnt; v++) {
		if (strcmp(name(v), word) == 0)
			return true;
		tn_keep_nearest(word, name(v), &best, near, sizeof near);
		snprintf(all + strlen(all), sizeof all - strlen(all), " %s", name(v));
	}
	if (word == NULL)
		return true;
	if (best < limit)
		t->exit_code = tctl_bad_usage(t, "--%s %s: there is none (did you mean %s?)", option, word, near);
	else
		t->exit_code = tctl_bad_usage(t, "--%s %s: none of%s", option, word, all);
	return false;
}

static bool is_trace(const char *text)
{
	return text == NULL || (strlen(text) == 32 && strspn(text, "0123456789abcdef") == 32);
}

bool tctl_event_filter_check(struct tctl *t, struct tctl_event_filter *f)
{
	if (f->event != NULL)
		f->event = bare(f->event);
	if (!known(t, "event", f->event, event_kind_name, SHR_EVENT_KIND_CNT - 1) ||
	    !known(t, "transport", f->transport, tn_transport_name, TN_TRANSPORT_CNT) ||
	    !known(t, "operation", f->operation, tn_op_name, TN_OP_CNT) ||
	    !known(t, "phase", f->phase, tn_phase_name, TN_PHASE_CNT) ||
	    !known(t, "reason", f->reason, tn_reason_name, TN_REASON_CNT))
		return false;
	if (f->request != NULL && strspn(f->request, "0123456789") != strlen(f->request)) {
		t->exit_code = tctl_bad_usage(t, "--request %s: not a number", f->request);
		return false;
	}
	if (!is_trace(f->trace)) {
		t->exit_code = tctl_bad_usage(t, "--trace %s: not 32 hexadecimal digits", f->trace);
		return false;
	}
	const struct shr_event_clock now = { 0, tn_real_ns() };
	shr_event_time(0 - f->since_ns, &now, f->since_text);
	f->spans |= f->event != NULL && (strcmp(f->event, event_kind_name(SHR_EVENT_SPAN_TRANSFER - 1)) == 0 ||
					 strcmp(f->event, event_kind_name(SHR_EVENT_SPAN_ATTEMPT - 1)) == 0);
	return true;
}

static bool is(const json_t *e, const char *key, const char *word)
{
	return word == NULL || strcmp(tctl_text(e, key), word) == 0;
}

bool tctl_event_wanted(const struct tctl_event_filter *f, const json_t *e)
{
	if (tctl_event_is_span(e) && !f->spans)
		return false;
	if (f->since_ns > 0 && strcmp(tctl_text(e, "ts"), f->since_text) < 0)
		return false;
	if (f->event != NULL && strcmp(tctl_event_name(e), f->event) != 0)
		return false;
	if (!is(e, "transport", f->transport) && !is(e, "from", f->transport) && !is(e, "to", f->transport))
		return false;
	return is(e, "operation", f->operation) && is(e, "phase", f->phase) && is(e, "reason", f->reason) &&
	       is(e, "status", f->status) && is(e, "request_id", f->request) && is(e, "trace_id", f->trace);
}
