/* SPDX-License-Identifier: Apache-2.0
 * The semantic check, in the order shape -> handles -> rights -> ranges -> the rest. A handle of another client is as
 * stale as one that never existed: nobody learns what others have open. Pure. */
#include "dataplane/ingress/validate.h"

#include "common/bits.h"
#include "dataplane/selection/policy.h"

static tn_status check_memory(const struct dp_view *v, const struct dp_qp *qp, const struct shr_sqe_shm *e)
{
	const struct dp_memory *m = dp_view_memory(v, e->memory);
	if (!m || m->client_id != qp->cfg.client_id)
		return TN_STALE;
	if (!(m->rights & (e->opcode == SHR_OP_READ ? SHR_RIGHT_LOCAL : SHR_RIGHT_LOCAL | SHR_RIGHT_LOCAL_READ)))
		return TN_PERMISSION;
	return tn_range_within(e->local_off, e->length, m->bytes) ? TN_OK : TN_RANGE;
}

/* Every buffer that the range touches must grant the right. */
static tn_status check_remote(const struct dp_remote *r, const struct shr_sqe_shm *e)
{
	if (r->lost)
		return TN_OK; /* accepted, then fails with the reason why it was lost */
	if (!tn_range_within(e->remote_off, e->length, r->bytes))
		return TN_RANGE;
	uint32_t right = e->opcode == SHR_OP_READ ? SHR_RIGHT_REMOTE_READ : SHR_RIGHT_REMOTE_WRITE;
	uint32_t i = dp_remote_buffer_at(r, e->remote_off);
	if (i == UINT32_MAX)
		return TN_RANGE;
	for (uint64_t end = e->remote_off + e->length; i < r->buffer_cnt && r->buffers[i].segment_off < end; i++)
		if (!(r->buffers[i].rights & right))
			return TN_PERMISSION;
	return TN_OK;
}

static tn_status check_hint(const struct dp_ingress_cfg *cfg, const struct dp_remote *r, uint8_t hint)
{
	if (hint == TN_TRANSPORT_UNSPEC)
		return TN_OK;
	return cfg->transports >> hint & 1 && dp_policy_kind_serves(hint, r->local) ? TN_OK : TN_UNSUPPORTED;
}

static uint64_t deadline(const struct dp_ingress_cfg *cfg, uint64_t asked, uint64_t now_ns)
{
	if (asked == 0)
		return now_ns + cfg->default_deadline_ns;
	return TN_MIN(asked, now_ns + cfg->max_deadline_ns);
}

tn_status dp_validate(const struct dp_view *v, const struct dp_ingress_cfg *cfg, const struct dp_qp *qp,
		      const struct shr_sqe_shm *e, uint64_t now_ns, uint64_t *deadline_out)
{
	tn_status s = shr_sqe_check_shape(e, qp->view.lay.note_slots);
	if (s != TN_OK)
		return s;
	if (e->opcode == SHR_OP_CANCEL)
		return TN_OK;
	if (cfg->draining)
		return TN_CLOSED;
	const struct dp_remote *r = dp_view_remote(v, e->segment);
	if (!r || r->client_id != qp->cfg.client_id)
		return TN_STALE;
	if (e->policy != 0 && e->policy != SHR_POLICY_GONE &&
	    (e->policy < TN_CONFIG_POLICY_ID_FIRST || e->policy >= cfg->policy_end))
		return TN_INVALID;
	if (e->opcode != SHR_OP_NOTIFY) {
		if ((s = check_memory(v, qp, e)) != TN_OK || (s = check_remote(r, e)) != TN_OK)
			return s;
		if (e->length > cfg->max_request_bytes)
			return TN_TOO_BIG;
		if ((s = check_hint(cfg, r, e->hint)) != TN_OK)
			return s;
	}
	*deadline_out = deadline(cfg, e->deadline_ns, now_ns);
	return TN_OK;
}

enum tn_reason dp_refusal_reason(tn_status s)
{
	switch (s) {
	case TN_STALE: return TN_REASON_STALE_GENERATION;
	case TN_UNSUPPORTED: case TN_CLOSED: return TN_REASON_UNAVAILABLE;
	case TN_LIMIT: case TN_NO_MEMORY: return TN_REASON_RESOURCE_EXHAUSTED;
	default: return TN_REASON_PROTOCOL;
	}
}
