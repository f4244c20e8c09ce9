/* SPDX-License-Identifier: Apache-2.0
 * Configurations that are valid, and most likely not meant: each key is right, together they cannot work between hosts.
 * Nothing is refused. Start-up and control thread. */
#include "common/config_object.h"

#include <string.h>

/* warn(cfg, out, key, fmt...): one warning about the effective value of key, with where it was written. */
#define warn(cfg, out, key, ...) warn_origin((cfg)->value[key].origin, out, tn_cfg_rows[key].path, __VA_ARGS__)
#define warn_peer(cfg, out, i, ...) \
	warn_origin((cfg)->value[TN_CFG_PEERS].item_origin[i], out, tn_cfg_rows[TN_CFG_PEERS].path, __VA_ARGS__)
#define warn_origin(origin, out, path, ...) \
	do { \
		struct tn_config_origin o_ = (origin); \
		struct tn_cfg_source s_ = { .errors = out, .kind = o_.kind, \
					    .name = o_.kind == TN_ORIGIN_FLAG ? "--set" : o_.name != NULL ? o_.name : "default" }; \
		tn_cfg_fail_at(&s_, path, o_.line, __VA_ARGS__); \
	} while (0)

static bool is_loopback(const char *text)
{
	return tn_cfg_reach(text) == TN_CFG_REACH_LOOPBACK;
}

/* A peer that is not on this host; NULL when all are. */
static const struct tn_config_peer *far_peer(const struct tn_config *cfg)
{
	for (unsigned i = 0; i < cfg->peer_cnt; i++)
		if (!is_loopback(cfg->peers[i].address))
			return &cfg->peers[i];
	return NULL;
}

static void check_control(const struct tn_config *cfg, struct tn_config_errors *out)
{
	const char *bind = tn_config_str(cfg, TN_CFG_CONTROL_BIND), *told = tn_config_str(cfg, TN_CFG_CONTROL_ADVERTISE);
	const struct tn_config_peer *far = far_peer(cfg);

	if (far != NULL && is_loopback(bind))
		warn(cfg, out, TN_CFG_CONTROL_BIND, "%s is a loopback address, but peer %s is on another host (%s): it cannot "
		     "reach this one; use an address of this host that it can reach", bind, far->name, far->address);
	else if (!is_loopback(bind) && told[0] != '\0' && is_loopback(told))
		warn(cfg, out, TN_CFG_CONTROL_ADVERTISE, "peers are told %s, which only this host can reach; control/bind is %s",
		     told, bind);
}

/* Control messages would arrive from other hosts, data never could. */
static void check_lanes(const struct tn_config *cfg, struct tn_config_errors *out)
{
	const char *bind = tn_config_str(cfg, TN_CFG_TCP_BIND_ADDRESS);
	bool others = far_peer(cfg) != NULL || !is_loopback(tn_config_str(cfg, TN_CFG_CONTROL_BIND)), told_far = false;

	if (!tn_config_bool(cfg, TN_CFG_TCP_ENABLE))
		return;
	for (unsigned i = 0; i < tn_config_list_cnt(cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES); i++)
		told_far |= !is_loopback(tn_config_list_str(cfg, TN_CFG_TCP_ADVERTISE_ADDRESSES, i));
	if (is_loopback(bind) && (others || told_far))
		warn(cfg, out, TN_CFG_TCP_BIND_ADDRESS, "%s is a loopback address, but %s: data of other hosts cannot arrive; "
		     "use an address of this host that they can reach", bind,
		     told_far ? "advertise_addresses has others" : "control/bind or a peer is for other hosts");
	else if (others && !told_far)
		warn(cfg, out, TN_CFG_TCP_ADVERTISE_ADDRESSES, "peers are told loopback addresses only: data of other hosts "
		     "cannot arrive; list addresses of this host that they can reach");
}

/* The file of the other host, or a line of it, copied. */
static void check_self(const struct tn_config *cfg, struct tn_config_errors *out)
{
	const char *bind = tn_config_str(cfg, TN_CFG_CONTROL_BIND), *told = tn_config_str(cfg, TN_CFG_CONTROL_ADVERTISE);

	for (unsigned i = 0; i < cfg->peer_cnt; i++) {
		const struct tn_config_peer *p = &cfg->peers[i];

		if (strcmp(p->name, tn_config_str(cfg, TN_CFG_HOST_NAME)) == 0)
			warn_peer(cfg, out, i, "peer %s has the name of this host (host/name): its segments cannot be opened",
				  p->name);
		if (strcmp(p->address, bind) == 0 || strcmp(p->address, told) == 0)
			warn_peer(cfg, out, i, "peer %s has the address of this host (%s); peers are the other hosts", p->name,
				  p->address);
	}
}

void tn_config_warnings(const struct tn_config *cfg, struct tn_config_errors *out)
{
	check_control(cfg, out);
	check_lanes(cfg, out);
	check_self(cfg, out);
}
