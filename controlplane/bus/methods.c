/* SPDX-License-Identifier: Apache-2.0
 * The table of what tentctl may ask. */
#include "controlplane/bus/commands.h"

const struct cp_method cp_bus_methods[] = {
	{ "status", cp_bus_status },
	{ "segment_list", cp_bus_segment_list },
	{ "segment_show", cp_bus_segment_show },
	{ "segment_withdraw", cp_bus_segment_withdraw },
	{ "peer_list", cp_bus_peer_list },
	{ "peer_probe", cp_bus_peer_probe },
	{ "peer_load", cp_bus_peer_load },
	{ "explain", cp_bus_explain },
	{ "events", cp_bus_events },
	{ "trace", cp_bus_trace },
	{ "request", cp_bus_request },
	{ "config_reload", cp_bus_config_reload },
	{ "pause", cp_bus_pause },
	{ "resume", cp_bus_resume },
	{ "drain", cp_bus_drain },
	{ "transport", cp_bus_transport },
	{ "version", cp_bus_version },
	{ NULL, NULL },
};
