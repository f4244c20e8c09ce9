/* SPDX-License-Identifier: Apache-2.0
 * Policies by name. The number that an application gets is the place of a name in the context and stays; what the data
 * plane calls it is asked for in each attachment anew. Names are added under the context lock; queue pairs read numbers
 * without it. */
#ifndef LT_POLICY_H
#define LT_POLICY_H

#include "common/atomic.h"
#include "common/ids.h"
#include "shm-ring/abi.h"

#define LT_POLICIES_MAX 256u

struct lt_policies {
	tn_a32 cnt;
	tn_a32 ids[LT_POLICIES_MAX];           /* of this attachment */
	char names[LT_POLICIES_MAX][TN_NAME_MAX];
};

struct lt_call;
struct lt_reply;

/* The message that asks for a policy; `name` stays until it is answered. */
void lt_policy_call(const char *name, uint64_t deadline_ns, struct lt_call *call_out);
/* Policy `i` has the number of this reply; any other status than OK: it is not there. */
void lt_policy_answered(struct lt_policies *p, uint32_t i, const struct lt_reply *reply);

/* Does an application's number name something? */
TN_INLINE bool lt_policy_is_known(const struct lt_policies *p, uint32_t number) { return number <= tn_load_relaxed32(&p->cnt); }
/* For a descriptor; 0 stays 0. */
TN_INLINE uint16_t lt_policy_id(const struct lt_policies *p, uint32_t number)
{
	return number == 0 ? 0 : (uint16_t)tn_load_relaxed32(&p->ids[number - 1]);
}

#endif
