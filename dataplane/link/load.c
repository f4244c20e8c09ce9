/* SPDX-License-Identifier: Apache-2.0
 * "peer_load": what was done for each peer and for this host, added up over the workers. In pages, because there may be
 * more peers than fit into a message. Control thread. */
#include "common/clock.h"
#include "dataplane/link/wire.h"
#include "dataplane/stats/load.h"
#include "dataplane/transport/path_info.h"

#define PAGE_MAX 64u

static json_t *failure_json(const struct dp_control *ctl, const struct dp_load_sum *s)
{
	json_t *j = json_object();
	(void)tn_json_put_str(j, "transport", tn_transport_name(s->failure_transport));
	(void)tn_json_put_str(j, "phase", tn_phase_name(s->failure_phase));
	(void)tn_json_put_str(j, "reason", tn_reason_name(s->failure_reason));
	(void)tn_json_put_str(j, "status", tn_status_name(s->failure_status));
	(void)tn_json_put_u64(j, "ms_ago", tn_remaining_ns(ctl->loop.now_ns, s->failure_ns) / TN_NS_PER_MS);
	return j;
}

static json_t *load_json(const struct dp_control *ctl, uint32_t peer_index)
{
	struct dp_load_sum s = { 0 };
	json_t *j = json_object();
	uint64_t ended_bytes;

	for (uint32_t w = 0; w < ctl->crew.cnt; w++)
		dp_worker_load_add(ctl->crew.members[w].worker, peer_index, &s);
	ended_bytes = s.moved[TN_OP_READ] + s.moved[TN_OP_WRITE] + s.lost_bytes;
	(void)tn_json_put_u64(j, "started", s.in_cnt);
	(void)tn_json_put_u64(j, "ended", s.out_cnt);
	(void)tn_json_put_u64(j, "failed", s.failed_cnt);
	(void)tn_json_put_u64(j, "inflight", s.in_cnt > s.out_cnt ? s.in_cnt - s.out_cnt : 0);
	(void)tn_json_put_u64(j, "inflight_bytes", s.in_bytes > ended_bytes ? s.in_bytes - ended_bytes : 0);
	(void)tn_json_put_u64(j, "read_bytes", s.moved[TN_OP_READ]);
	(void)tn_json_put_u64(j, "written_bytes", s.moved[TN_OP_WRITE]);
	if (s.failure_ns != 0)
		json_object_set_new(j, "last_failure", failure_json(ctl, &s));
	if (s.out_cnt > 0) {
		json_t *latency = json_array(); /* buckets of tent_read_latency_us, +Inf last */
		for (unsigned b = 0; b <= TN_BUCKETS_LATENCY_CNT; b++)
			json_array_append_new(latency, json_integer((json_int_t)s.latency[b]));
		json_object_set_new(j, "latency", latency);
	}
	return j;
}

tn_status dp_link_peer_load(const struct dp_control *ctl, struct tn_json_in *in, json_t **answer_out)
{
	uint32_t first, count;
	json_t *b, *list;

	if (tn_json_page(in, PAGE_MAX, &first, &count) != TN_OK)
		return in->status;
	b = json_object();
	list = json_array();
	for (uint32_t i = first; i < ctl->peers.cnt && i - first < count; i++) {
		const struct dp_peer_slot *slot = ctl->peers.slots[i];
		json_t *j = load_json(ctl, slot->index);
		struct dp_path_info path;
		uint32_t lanes = 0;
		for (uint32_t w = 0; w < ctl->crew.cnt; w++)
			for (unsigned kind = 0; kind < TN_TRANSPORT_CNT; kind++)
				if (dp_worker_path_info(ctl->crew.members[w].worker, (enum tn_transport)kind,
							slot->index, &path))
					lanes += path.lanes;
		(void)tn_json_put_str(j, "name", slot->name);
		(void)tn_json_put_u64(j, "lanes", lanes);
		(void)tn_json_put_u64(j, "lanes_in", tn_load_relaxed32(&slot->conn_cnt));
		json_array_append_new(list, j);
	}
	(void)tn_json_put_u64(b, "total", ctl->peers.cnt);
	if (first == 0)
		json_object_set_new(b, "local", load_json(ctl, DP_PEER_SELF));
	json_object_set_new(b, "peers", list);
	*answer_out = b;
	return TN_OK;
}
