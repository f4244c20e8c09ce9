/* SPDX-License-Identifier: Apache-2.0
 * The merge rule. Cheap refusals first: most neighbours in a queue are not contiguous. Pure. */
#include "dataplane/admission/merge.h"

#include "dataplane/segment/view.h"

bool dp_merge_fits(const struct dp_owner *o, const struct dp_request *first, const struct dp_request *r,
		   const struct dp_remote *remote, uint64_t max_bytes)
{
	const struct shr_sqe_shm *a = &first->sqe, *b = &r->sqe;
	if (b->local_off != o->local_off + o->bytes || b->remote_off != o->remote_off + o->bytes)
		return false;
	if (a->memory != b->memory || a->segment != b->segment || a->batch != b->batch || a->opcode != b->opcode ||
	    a->hint != b->hint || a->priority != b->priority || a->policy != b->policy || a->intent != b->intent ||
	    a->flags != b->flags)
		return false;
	if (b->length > max_bytes || o->bytes > max_bytes - b->length)
		return false;
	uint64_t lo = TN_MIN(o->deadline_ns, r->deadline_ns), hi = TN_MAX(o->deadline_ns, r->deadline_ns);
	if (hi - lo > DP_MERGE_SLACK_NS)
		return false;
	uint32_t buffer = dp_remote_buffer_at(remote, o->remote_off);
	return buffer != UINT32_MAX && buffer == dp_remote_buffer_at(remote, b->remote_off + b->length - 1);
}
