/* SPDX-License-Identifier: Apache-2.0
 * What our own connection to each peer's control plane is worth: the sockets' last word, and the last call that failed
 * for want of an answer. Kept for those who ask, and logged once per change. Control-plane thread. */
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "controlplane/node.h"

/* Why nobody answers, as far as the sockets told: before and behind the address. */
static const struct { const char *before, *behind; } why[] = {
	[CP_CONTACT_NONE] = { "no connection to ", " so far: is the address right, is a firewall in between?" },
	[CP_CONTACT_UNREACHED] = { "no connection to ", ": is tent-controlplane up there, is the address right?" },
	[CP_CONTACT_UP] = { "no answer from ", ", although connected: is its control plane stopped or overloaded?" },
	[CP_CONTACT_BROKEN] = { "the connection to ", " broke: was its control plane stopped?" },
	[CP_CONTACT_DENIED] = { "", " refused our key, or has another one than our peers say: compare with tentctl keygen "
				    "--show on both hosts" },
};

/* A broken connection behind a refusal is the refusal's end, and no news. */
static bool is_news(enum cp_contact old, enum cp_contact now)
{
	return !(old == CP_CONTACT_DENIED && now == CP_CONTACT_BROKEN);
}

void cp_node_contact(struct cp_node *node, uint32_t peer, enum cp_contact contact, uint64_t now_ns)
{
	struct cp_peer *p = &node->peers[peer];
	node->now_ns = now_ns;
	if (is_news(p->contact, contact))
		p->contact = contact;
	if (contact == CP_CONTACT_DENIED || contact == CP_CONTACT_BROKEN)
		cp_exchange_drop(node->exchange, peer, p->contact == CP_CONTACT_DENIED ? TN_PEER_DENIED : TN_PEER_DOWN,
				 cp_contact_text(p));
	/* Refused without a call that waits: the operator wants to know before somebody needs it. */
	if (p->contact == CP_CONTACT_DENIED)
		cp_contact_failed(node, p, TN_PEER_DENIED, cp_contact_text(p));
}

const char *cp_contact_text(struct cp_peer *p)
{
	snprintf(p->contact_text, sizeof p->contact_text, "%s%.80s%s", why[p->contact].before, p->cfg->address,
		 why[p->contact].behind);
	return p->contact_text;
}

void cp_contact_failed(struct cp_node *node, struct cp_peer *p, tn_status status, const char *detail)
{
	struct cp_peer_error *e = &p->error;
	bool change = !e->now || strcmp(e->detail, detail) != 0;
	e->now = true;
	e->status = status;
	e->at_ns = node->now_ns;
	if (!change)
		return;
	snprintf(e->detail, sizeof e->detail, "%s", detail);
	tn_log_warn("peer", "%s: %s (%s)", p->cfg->name, e->detail, tn_status_name(status));
}

void cp_contact_answered(struct cp_peer *p)
{
	if (p->error.now)
		tn_log_info("peer", "%s answers", p->cfg->name);
	p->error.now = false;
	p->contact = CP_CONTACT_UP;
}
