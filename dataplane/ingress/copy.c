/* SPDX-License-Identifier: Apache-2.0
 * COPY and COPIED, translated. Control thread. */
#include "dataplane/ingress/copy.h"

#include "common/log.h"
#include "dataplane/control.h"
#include "dataplane/segment/map.h"
#include "dataplane/staging/pool.h"

void dp_copy_ask(struct dp_control *ctl, uint32_t worker, const struct dp_evt *evt)
{
	const struct dp_local_memory *mem = dp_handles_get(&ctl->memories, evt->num);
	struct shr_msg_copy *copy;
	struct shr_msg *m;

	if (mem == NULL || mem->staging == NULL || !dp_app_is_live(mem->client))
		return;
	m = dp_app_tx(mem->client);
	copy = shr_msg_begin(m, SHR_MSG_COPY, 0, sizeof *copy);
	*copy = (struct shr_msg_copy){
		.memory = evt->num, .offset = evt->num2, .length = evt->len, .tag = evt->id, .to_memory = (uint32_t)evt->status,
		.staging_offset = dp_stage_tag_chunk(evt->id) * mem->staging->m.areas[worker].chunk_bytes,
	};
	dp_app_send(mem->client, m);
}

void dp_copy_on_copied(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_copied *copied = shr_msg_body_ro(m);
	uint32_t worker = dp_stage_tag_worker(copied->tag);

	if (c->staging == NULL || worker >= c->ctl->crew.cnt) {
		dp_app_drop(c, TN_CLIENT_BROKEN);
		return;
	}
	struct dp_cmd cmd = { .kind = DP_CMD_COPIED, .fd = -1, .num = copied->tag, .num2 = c->staging->m.handle, .len = c->id,
	                      .status = copied->status };
	if (!dp_crew_post(&c->ctl->crew, worker, cmd)) {
		tn_log_warn("attach", "client %u (pid %d, %s) is dropped: no memory to pass on what it copied", c->id,
		            (int)c->cred.pid, c->app);
		dp_app_drop(c, TN_NO_MEMORY);
	}
}
