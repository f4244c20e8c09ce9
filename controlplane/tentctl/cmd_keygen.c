/* SPDX-License-Identifier: Apache-2.0
 * `tentctl keygen`: makes the key of this host, or shows its public half. The secret half is never printed. */
#include "common/addr.h"
#include "common/message.h"
#include "controlplane/peer/keys.h"
#include "controlplane/tentctl/tentctl.h"

/* What the other host's configuration needs to know of this one. */
static json_t *peer_entry(const struct tn_config *c, const struct cp_keys *k)
{
	json_t *j = json_object();
	tn_json_put_str(j, "name", tn_config_str(c, TN_CFG_HOST_NAME));
	tn_json_put_str(j, "address", tn_config_str(c, TN_CFG_CONTROL_ADVERTISE));
	tn_json_put_str(j, "public_key", k->public_text);
	return j;
}

/* The lines are for another host: an address that only this one can use is no use there. NULL: nothing to warn of. */
static const char *address_trouble(const struct tn_config *c)
{
	struct tn_addr a;
	char why[TN_ERR_TEXT];
	const char *told = tn_config_str(c, TN_CFG_CONTROL_ADVERTISE);
	if (told[0] == '\0')
		return "control/bind names no port, so there is no address to give away: set it, then tentctl keygen --show";
	if (tn_addr_parse(told, TN_ADDR_NEED_PORT, &a, why) == TN_OK && tn_addr_is_loopback(&a))
		return "the address is a loopback address, which no other host reaches: for peers on other hosts set "
		       "control/bind and transports/tcp/bind_address to an address of this host, then tentctl keygen --show";
	return NULL;
}

static void print_key(const struct tctl *t, const struct tn_config *c, const char *path, const struct cp_keys *k)
{
	json_t *j = json_object(), *peer = peer_entry(c, k);
	const char *trouble = address_trouble(c);
	if (t->json) {
		tctl_put_name(j, "key_file", path);
		tn_json_put_str(j, "public_key", k->public_text);
		tn_json_put_peer_id(j, "id", &k->id);
		json_object_set(j, "peer", peer);
		if (trouble != NULL)
			tn_json_put_str(j, "warning", trouble);
		tctl_print_json(j);
	} else {
		printf("key file    %s\npublic key  %s\n\nin \"peers\" of the other host's configuration:\n", path,
		       k->public_text);
		tctl_print_json(peer);
		if (trouble != NULL)
			fprintf(stderr, "tentctl: warning: %s\n", trouble);
	}
	json_decref(peer);
	json_decref(j);
}

int tctl_cmd_keygen(struct tctl *t, int argc, char **argv)
{
	char err[512];
	struct cp_keys k;
	bool show = false;
	const struct tctl_option options[] = {
		{ "show", '\0', TCTL_FLAG, &show }, { NULL, '\0', TCTL_FLAG, NULL },
	};
	if (!tctl_args(t, &argc, argv, options, 0, 1))
		return t->exit_code;
	t->without_peers = true; /* their keys are not known before every host has made its own */
	const struct tn_config *c = tctl_config(t);
	if (c == NULL)
		return TCTL_FAILED;
	const char *path = argc > 1 ? argv[1] : tn_config_str(c, TN_CFG_CONTROL_KEY_FILE);
	tn_status s = show ? cp_keys_load(path, &k, err, sizeof err) : cp_keys_generate(path, &k, err, sizeof err);
	if (s == TN_EXISTS)
		return tctl_fail(
		    t, s, "key file %s exists and was not touched; tentctl keygen --show prints its public half", path);
	if (s != TN_OK)
		return tctl_fail(t, s, "%s", err);
	print_key(t, c, path, &k);
	cp_keys_wipe(&k);
	return TCTL_OK;
}
