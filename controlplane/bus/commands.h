/* SPDX-License-Identifier: Apache-2.0
 * One handler per question of tentctl (docs/protocol.md section 5). Control-plane thread. */
#ifndef CP_BUS_COMMANDS_H
#define CP_BUS_COMMANDS_H

#include "controlplane/node.h"

void cp_bus_status(struct cp_node *node, const struct cp_request *rq);
void cp_bus_segment_list(struct cp_node *node, const struct cp_request *rq);
void cp_bus_segment_show(struct cp_node *node, const struct cp_request *rq);
void cp_bus_segment_withdraw(struct cp_node *node, const struct cp_request *rq);
void cp_bus_peer_list(struct cp_node *node, const struct cp_request *rq);
void cp_bus_peer_probe(struct cp_node *node, const struct cp_request *rq);
void cp_bus_peer_load(struct cp_node *node, const struct cp_request *rq);
void cp_bus_explain(struct cp_node *node, const struct cp_request *rq);
void cp_bus_events(struct cp_node *node, const struct cp_request *rq);
void cp_bus_trace(struct cp_node *node, const struct cp_request *rq);
void cp_bus_request(struct cp_node *node, const struct cp_request *rq);
void cp_bus_config_reload(struct cp_node *node, const struct cp_request *rq);
void cp_bus_pause(struct cp_node *node, const struct cp_request *rq);
void cp_bus_resume(struct cp_node *node, const struct cp_request *rq);
void cp_bus_drain(struct cp_node *node, const struct cp_request *rq);
void cp_bus_transport(struct cp_node *node, const struct cp_request *rq);
void cp_bus_version(struct cp_node *node, const struct cp_request *rq);

/* One record as `events` has it; NULL: it is damaged. */
struct cp_recent_item;
json_t *cp_bus_event_json(const struct cp_recent_item *i);

#endif
