/* SPDX-License-Identifier: Apache-2.0
 * Checks of addresses: those of the configuration against those of this host, and whether peers can use what they are
 * told. */
#include <netinet/in.h>
#include <string.h>

#include "controlplane/tentctl/doctor/doctor.h"

/* The interface that has this address; NULL when none has. */
static const char *interface_of(const struct tctl_host *h, const struct tn_addr *a, bool *up_out)
{
	for (unsigned i = 0; i < h->addr_cnt; i++)
		if (tn_addr_host_eq(&h->addrs[i].addr, a) ||
		    (tn_addr_is_loopback(a) && tn_addr_is_loopback(&h->addrs[i].addr))) {
			*up_out = h->addrs[i].up;
			return h->addrs[i].interface;
		}
	return NULL;
}

/* An address of this host that others may reach; NULL when there is none. */
static const struct tn_addr *outward(const struct tctl_host *h)
{
	for (unsigned i = 0; i < h->addr_cnt; i++) {
		const struct sockaddr_storage *ss = &h->addrs[i].addr.ss;
		bool link_local = ss->ss_family == AF_INET6 &&
				  IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)ss)->sin6_addr);
		if (h->addrs[i].up && !link_local && !tn_addr_is_loopback(&h->addrs[i].addr))
			return &h->addrs[i].addr;
	}
	return NULL;
}

static void suggest(struct tctl_doctor *d, const char *key, const char *form)
{
	const struct tn_addr *a = outward(d->host);
	char host[TN_ADDR_TEXT];
	if (a == NULL)
		tctl_fix(d, "bring an interface up (ip -br address), then set %s to its address", key);
	else if (strchr(form, 'P') != NULL)
		tctl_fix(d, "set %s to tcp://%s%s%s:9816", key, a->ss.ss_family == AF_INET6 ? "[" : "",
			 tn_addr_format_host(a, host), a->ss.ss_family == AF_INET6 ? "]" : "");
	else
		tctl_fix(d, "set %s to %s%s%s", key, strcmp(form, "[A]") == 0 ? "[\"" : "\"",
			 tn_addr_format_host(a, host), strcmp(form, "[A]") == 0 ? "\"]" : "\"");
}

/* `must`: the daemon binds it, so it has to be here; else peers are told it, and a translated address is possible. */
static void address(struct tctl_doctor *d, const char *key, const char *text, const char *form, bool must)
{
	struct tn_addr a;
	char why[TN_ERR_TEXT];
	bool up = false;
	tn_status s = tn_addr_parse(text, strcmp(form, "P") == 0 ? TN_ADDR_NEED_PORT : 0, &a, why);
	if (s != TN_OK) {
		tctl_found(d, TCTL_GRADE_FAIL, "%s is %s: %s", key, text, why);
		tctl_fix(d, "ip -br address   # shows the interfaces; change %s", key);
		return;
	}
	if (tn_addr_is_any(&a)) {
		tctl_found(d, TCTL_GRADE_OK, "%s is %s: every address of this host", key, text);
		return;
	}
	const char *interface = interface_of(d->host, &a, &up);
	if (interface == NULL) {
		tctl_found(d, must ? TCTL_GRADE_FAIL : TCTL_GRADE_WARN,
			   "%s is %s, which no interface of this host has%s", key, text,
			   must ? ": the daemon cannot listen there" : ": right only behind address translation");
		suggest(d, key, form);
	} else if (!up) {
		tctl_found(d, TCTL_GRADE_WARN, "%s is %s on %s, which is down", key, text, interface);
		tctl_fix(d, "ip link set %s up", interface);
	} else {
		tctl_found(d, TCTL_GRADE_OK, "%s is %s (%s)", key, text, interface);
	}
}

void tctl_check_addresses(struct tctl_doctor *d)
{
	const struct tn_config *c = d->config;
	const char *advertise = tn_config_str(c, TN_CFG_CONTROL_ADVERTISE);
	if (tn_config_bool(c, TN_CFG_TCP_ENABLE)) {
		address(d, "transports/tcp/bind_address", tn_config_str(c, TN_CFG_TCP_BIND_ADDRESS), "A", true);
		for (unsigned i = 0; i < tn_config_list_cnt(c, TN_CFG_TCP_ADVERTISE_ADDRESSES); i++)
			if (strcmp(tn_config_list_str(c, TN_CFG_TCP_ADVERTISE_ADDRESSES, i),
				   tn_config_str(c, TN_CFG_TCP_BIND_ADDRESS)) != 0)
				address(d, "transports/tcp/advertise_addresses",
					tn_config_list_str(c, TN_CFG_TCP_ADVERTISE_ADDRESSES, i), "[A]", false);
	}
	address(d, "control/bind", tn_config_str(c, TN_CFG_CONTROL_BIND), "P", true);
	if (advertise[0] != '\0' && strcmp(advertise, tn_config_str(c, TN_CFG_CONTROL_BIND)) != 0)
		address(d, "control/advertise", advertise, "P", false);
	if (tn_config_bool(c, TN_CFG_METRICS_HTTP_ENABLED))
		address(d, "metrics/http_host", tn_config_str(c, TN_CFG_METRICS_HTTP_HOST), "A", true);
}

static bool is_loopback(const char *text, int default_port)
{
	struct tn_addr a;
	char why[TN_ERR_TEXT];
	return tn_addr_parse(text, default_port, &a, why) == TN_OK && tn_addr_is_loopback(&a);
}

/* A peer on another host cannot use our loopback addresses. */
void tctl_check_reachable(struct tctl_doctor *d)
{
	const struct tn_config *c = d->config;
	const struct tn_config_peer *far = NULL;
	unsigned before = d->cnt;
	for (unsigned i = 0; i < tn_config_peer_cnt(c) && far == NULL; i++)
		if (!is_loopback(tn_config_peer(c, i)->address, TN_ADDR_NEED_PORT))
			far = tn_config_peer(c, i);
	if (far == NULL) {
		tctl_found(d, TCTL_GRADE_OK,
			   tn_config_peer_cnt(c) > 0 ? "every peer is on this host (loopback)"
						     : "no peers are configured");
		return;
	}
	if (is_loopback(tn_config_str(c, TN_CFG_CONTROL_BIND), TN_ADDR_NEED_PORT)) {
		tctl_found(
		    d, TCTL_GRADE_FAIL,
		    "peer %s is on another host, but control/bind is a loopback address: it cannot reach this control "
		    "plane",
		    far->name);
		suggest(d, "control/bind", "P");
	}
	for (unsigned i = 0;
	     tn_config_bool(c, TN_CFG_TCP_ENABLE) && i < tn_config_list_cnt(c, TN_CFG_TCP_ADVERTISE_ADDRESSES); i++) {
		const char *a = tn_config_list_str(c, TN_CFG_TCP_ADVERTISE_ADDRESSES, i);
		if (!is_loopback(a, 0))
			continue;
		tctl_found(d, TCTL_GRADE_FAIL, "peer %s is on another host, but is told to send data to %s: it cannot",
			   far->name, a);
		suggest(d, "transports/tcp/bind_address", "A");
	}
	if (d->cnt == before)
		tctl_found(d, TCTL_GRADE_OK, "peers on other hosts are told addresses that are not loopback");
}
