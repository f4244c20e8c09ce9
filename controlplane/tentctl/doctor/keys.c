/* SPDX-License-Identifier: Apache-2.0
 * Checks of keys: our own file, and the public keys of the peers. No secret is ever shown. */
#include <string.h>
#include <sys/stat.h>

#include "controlplane/peer/keys.h"
#include "controlplane/tentctl/doctor/doctor.h"

static void fix_key_file(struct tctl_doctor *d, const char *path)
{
	struct stat st;
	if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode))
		tctl_fix(d, "tentctl keygen   # then give the new public key to every peer");
	else if (st.st_uid != d->host->uid && st.st_uid != 0)
		tctl_fix(d, "chown %u %s", d->host->uid, path);
	else if ((st.st_mode & 077) != 0)
		tctl_fix(d, "chmod 600 %s", path);
	else
		tctl_fix(d, "mv %s %s.bad && tentctl keygen   # then give the new public key to every peer", path,
			 path);
}

void tctl_check_key_file(struct tctl_doctor *d)
{
	const char *path = tn_config_str(d->config, TN_CFG_CONTROL_KEY_FILE);
	struct cp_keys k;
	char err[512];
	if (tn_config_bool(d->config, TN_CFG_CONTROL_INSECURE)) {
		tctl_found(
		    d, TCTL_GRADE_WARN,
		    "control/insecure: peers are neither authenticated nor encrypted (only possible on loopback)");
		tctl_fix(d, "remove control/insecure and give every peer its public_key");
		return;
	}
	tn_status s = cp_keys_load(path, &k, err, sizeof err);
	if (s == TN_NOT_FOUND) {
		tctl_found(
		    d, TCTL_GRADE_WARN,
		    "%s does not exist: the control plane makes a new identity at its start, which no peer knows yet",
		    path);
		tctl_fix(d, "tentctl keygen   # then put the public key into \"peers\" of the other hosts");
		return;
	}
	if (s != TN_OK) {
		tctl_found(d, TCTL_GRADE_FAIL, "%s: the control plane will not start", err);
		fix_key_file(d, path);
		return;
	}
	tctl_found(d, TCTL_GRADE_OK, "%s: private, both halves belong together; public key %s", path, k.public_text);
	cp_keys_wipe(&k);
}

static bool own_id(const struct tctl_doctor *d, struct tn_peer_id *out)
{
	struct cp_keys k;
	char err[512];
	if (cp_keys_load(tn_config_str(d->config, TN_CFG_CONTROL_KEY_FILE), &k, err, sizeof err) != TN_OK)
		return false;
	*out = k.id;
	cp_keys_wipe(&k);
	return true;
}

void tctl_check_peers(struct tctl_doctor *d)
{
	const struct tn_config *c = d->config;
	struct tn_peer_id self;
	bool known = own_id(d, &self);
	unsigned before = d->cnt, cnt = tn_config_peer_cnt(c);
	for (unsigned i = 0; i < cnt; i++) {
		const struct tn_config_peer *p = tn_config_peer(c, i);
		if (tn_peer_id_is_zero(&p->id))
			continue;
		if (known && tn_peer_id_eq(&p->id, &self)) {
			tctl_found(d, TCTL_GRADE_FAIL,
				   "peer %s has this host's own public key: it would be a connection to ourselves",
				   p->name);
			tctl_fix(d, "on %s: tentctl keygen --show; put that key into public_key of peer %s here",
				 p->name, p->name);
		}
		if (strcmp(p->name, tn_config_str(c, TN_CFG_HOST_NAME)) == 0) {
			tctl_found(d, TCTL_GRADE_WARN, "peer %s has the name of this host", p->name);
			tctl_fix(d, "set host/name here, or rename the peer");
		}
		for (unsigned k = 0; k < i; k++)
			if (tn_peer_id_eq(&p->id, &tn_config_peer(c, k)->id)) {
				tctl_found(d, TCTL_GRADE_FAIL,
					   "peers %s and %s have the same public key: one of them is a copy",
					   tn_config_peer(c, k)->name, p->name);
				tctl_fix(d, "on each host: tentctl keygen --show; correct public_key of both peers");
			}
	}
	if (d->cnt == before)
		tctl_found(d, TCTL_GRADE_OK, "%u peer%s, no key twice, none our own", cnt, tn_plural(cnt));
}
