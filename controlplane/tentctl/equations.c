/* SPDX-License-Identifier: Apache-2.0
 * Equations over counters. A series that never occurred is not exposed and counts as zero. */
#include "controlplane/tentctl/equations.h"

#include <stdio.h>
#include <string.h>

enum { LEFT = 1, RIGHT = -1, LEFT_LESS = 2, RIGHT_LESS = -2 };

const struct tctl_equation tctl_equations[] = {
	{ "1", "started = outcomes + inflight", { "operation", NULL }, false, {
		{ LEFT, "tent_logical_requests_started_total", NULL },
		{ RIGHT, "tent_logical_request_outcomes_total", NULL },
		{ RIGHT, "tent_logical_requests_inflight", NULL } } },
	{ "2", "attempts = attempt outcomes + inflight attempts", { "transport", "operation" }, false, {
		{ LEFT, "tent_transport_attempts_total", NULL },
		{ RIGHT, "tent_transport_attempt_outcomes_total", NULL },
		{ RIGHT, "tent_inflight_attempts", NULL } } },
	{ "3", "attempt failures = attempt outcomes{failed}", { "transport", "operation" }, false, {
		{ LEFT, "tent_transport_attempt_failures_total", NULL },
		{ RIGHT, "tent_transport_attempt_outcomes_total", "outcome=failed" } } },
	{ "4", "admit = dispatch + deadline_drop + cancel + queued", { "owner_kind", NULL }, false, {
		{ LEFT, "tent_admission_events_total", "event=admit" },
		{ RIGHT, "tent_admission_events_total", "event=dispatch" },
		{ RIGHT, "tent_admission_events_total", "event=deadline_drop" },
		{ RIGHT, "tent_admission_events_total", "event=cancel" },
		{ RIGHT, "tent_admission_queued_owners", NULL } } },
	{ "5", "post_attempt - post_error = completions + canceled + abandoned + posted", { NULL, NULL }, false, {
		{ LEFT, "tent_rdma_slice_events_total", "event=post_attempt" },
		{ LEFT_LESS, "tent_rdma_slice_events_total", "event=post_error" },
		{ RIGHT, "tent_rdma_slice_events_total", "event=completion_success" },
		{ RIGHT, "tent_rdma_slice_events_total", "event=completion_error" },
		{ RIGHT, "tent_rdma_slice_events_total", "event=canceled" },
		{ RIGHT, "tent_rdma_slice_events_total", "event=abandoned" },
		{ RIGHT, "tent_rdma_posted_inflight_slices", NULL } } },
	{ "6", "rpc attempts = calls + retries", { "method", NULL }, false, {
		{ LEFT, "tent_rpc_attempts_total", NULL },
		{ RIGHT, "tent_rpc_calls_total", NULL },
		{ RIGHT, "tent_rpc_retries_total", NULL } } },
	{ "7", "credit committed = granted - completed", { "resource", NULL }, false, {
		{ LEFT, "tent_credit_committed", NULL },
		{ RIGHT, "tent_credit_granted_total", NULL },
		{ RIGHT_LESS, "tent_credit_completed_total", NULL } } },
	{ "7", "credit committed <= capacity", { "resource", NULL }, true, {
		{ LEFT, "tent_credit_committed", NULL },
		{ RIGHT, "tent_credit_capacity", NULL } } },
	{ "9", "selection calls = selected + fallback + exhausted", { NULL, NULL }, false, {
		{ LEFT, "tent_selection_calls_total", NULL },
		{ RIGHT, "tent_selection_events_total", "event=selected" },
		{ RIGHT, "tent_selection_events_total", "event=fallback" },
		{ RIGHT, "tent_selection_events_total", "event=exhausted" } } },
	{ NULL, NULL, { NULL, NULL }, false, { { 0, NULL, NULL } } },
};

static bool term_matches(const struct tctl_term *t, const struct tctl_sample *s)
{
	if (strcmp(t->family, s->name) != 0)
		return false;
	if (t->label == NULL)
		return true;
	const char *equals = strchr(t->label, '=');
	char key[32];
	snprintf(key, sizeof key, "%.*s", (int)(equals - t->label), t->label);
	const char *value = tctl_sample_label(s, key);
	return value != NULL && strcmp(value, equals + 1) == 0;
}

static void name_group(const struct tctl_equation *e, const struct tctl_sample *s, char *out, size_t out_bytes)
{
	out[0] = '\0';
	for (unsigned i = 0; i < 2 && e->by[i] != NULL; i++) {
		const char *value = tctl_sample_label(s, e->by[i]);
		size_t at = strlen(out);
		snprintf(out + at, out_bytes - at, "%s%s=%.40s", i > 0 ? "," : "", e->by[i], value != NULL ? value : "");
	}
}

/* The balance of that group among out[first..*cnt), a new one when there is none and room for it. */
static struct tctl_balance *find_group(const struct tctl_equation *e, const char *group, struct tctl_balance *out,
				       size_t first, size_t cap, size_t *cnt)
{
	for (size_t i = first; i < *cnt; i++)
		if (strcmp(out[i].group, group) == 0)
			return &out[i];
	if (*cnt == cap)
		return NULL;
	struct tctl_balance *b = &out[(*cnt)++];
	*b = (struct tctl_balance){ .equation = e };
	snprintf(b->group, sizeof b->group, "%s", group);
	return b;
}

static void add_sample(const struct tctl_equation *e, const struct tctl_sample *s, struct tctl_balance *out, size_t first,
		       size_t cap, size_t *cnt)
{
	char group[sizeof out->group];
	for (const struct tctl_term *t = e->terms; t < e->terms + TCTL_EQUATION_TERMS && t->family != NULL; t++) {
		if (!term_matches(t, s))
			continue;
		name_group(e, s, group, sizeof group);
		struct tctl_balance *b = find_group(e, group, out, first, cap, cnt);
		if (b == NULL)
			continue;
		int64_t *side = t->side > 0 ? &b->left : &b->right;
		/* a stranger's numbers may be of any size: wrap, do not trap */
		*side = (int64_t)(t->side == LEFT || t->side == RIGHT ? (uint64_t)*side + (uint64_t)s->value :
				  (uint64_t)*side - (uint64_t)s->value);
	}
}

size_t tctl_equations_check(const struct tctl_samples *s, struct tctl_balance *out, size_t cap)
{
	size_t cnt = 0;
	for (const struct tctl_equation *e = tctl_equations; e->number != NULL; e++) {
		size_t first = cnt;
		for (size_t i = 0; i < s->cnt; i++)
			add_sample(e, &s->item[i], out, first, cap, &cnt);
		for (size_t i = first; i < cnt; i++)
			out[i].holds = e->at_most ? out[i].left <= out[i].right : out[i].left == out[i].right;
	}
	return cnt;
}
