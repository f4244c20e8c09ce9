/* SPDX-License-Identifier: Apache-2.0
 * Asks the data plane for the number of a policy. Application threads; may block. */
#include "dataplane/libtent/policy.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/libtent/call.h"

static uint32_t build_find(const void *arg, uint8_t body[static SHR_MSG_MAX])
{
	struct shr_msg_policy_find m = { 0 };

	(void)snprintf(m.name, sizeof m.name, "%s", (const char *)arg);
	memcpy(body, &m, sizeof m);
	return sizeof m;
}

void lt_policy_call(const char *name, uint64_t deadline_ns, struct lt_call *call_out)
{
	*call_out = (struct lt_call){ .type = SHR_MSG_POLICY_FIND, .build = build_find, .arg = name, .fd = -1,
				     .again = true, .deadline_ns = deadline_ns };
}

void lt_policy_answered(struct lt_policies *p, uint32_t i, const struct lt_reply *reply)
{
	struct shr_msg_id m = { .id = SHR_POLICY_GONE };

	if (reply->status == TN_OK)
		memcpy(&m, reply->body, sizeof m);
	tn_store_relaxed32(&p->ids[i], (uint32_t)m.id & UINT16_MAX);
}

/* Where a name stands, or where it would. Lock held. */
static uint32_t place_of(const struct lt_policies *p, const char *name)
{
	uint32_t cnt = tn_load_relaxed32(&p->cnt), i = 0;

	while (i < cnt && strcmp(p->names[i], name) != 0)
		i++;
	return i;
}

/* Lock held; it is let go while the data plane is asked. */
static tent_status find(tent_context *ctx, const char *name, uint16_t *policy_out)
{
	struct lt_policies *p = &ctx->policies;
	struct lt_reply reply;
	struct lt_call call;

	if (ctx->hello.abi_minor < SHR_MINOR_POLICY_FIND)
		return lt_fail(TN_UNSUPPORTED, "tent_policy_find: the data plane that runs is older than this library");
	lt_policy_call(name, tn_deadline_after(tn_now_ns(), ctx->timeout_ns), &call);
	tn_status s = lt_call(ctx, &call, &reply);
	if (s == TN_OK && reply.status == TN_NOT_FOUND)
		return lt_fail(TN_NOT_FOUND, "tent_policy_find: the configuration of the data plane has no policy %s", name);
	if (s != TN_OK || reply.status != TN_OK)
		return lt_call_fail(ctx, "tent_policy_find", name, s != TN_OK ? s : reply.status, reply.detail);
	uint32_t i = place_of(p, name);
	if (i == LT_POLICIES_MAX)
		return lt_fail(TN_LIMIT, "tent_policy_find: %s: a context can name %u policies", name, LT_POLICIES_MAX);
	lt_policy_answered(p, i, &reply);
	if (i == tn_load_relaxed32(&p->cnt)) {
		(void)snprintf(p->names[i], sizeof p->names[i], "%s", name);
		tn_store_relaxed32(&p->cnt, i + 1);
	}
	*policy_out = (uint16_t)(i + 1);
	return TENT_OK;
}

tent_status tent_policy_find(tent_context *ctx, const char *name, uint16_t *policy_out)
{
	tent_status s = lt_context_check(ctx, "tent_policy_find");

	if (s != TENT_OK)
		return s;
	if (name == NULL || policy_out == NULL || !tn_name_valid(name))
		return lt_fail(TN_INVALID, "tent_policy_find: %s", policy_out == NULL ? "policy_out is NULL" :
								   "name is not 1..63 of [A-Za-z0-9._-]");
	(void)pthread_mutex_lock(&ctx->lock);
	s = find(ctx, name, policy_out);
	(void)pthread_mutex_unlock(&ctx->lock);
	return s;
}
