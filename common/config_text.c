/* SPDX-License-Identifier: Apache-2.0
 * What the text of a string value may say: names, paths, words, numeric addresses, endpoints, public keys. Nothing is
 * resolved by DNS: a config means the same on every start. Any thread. */
#include "common/config_object.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/addr.h"
#include "common/addr_net.h"
#include "common/z85.h"

#define SCHEME "tcp://"
#define QUOTED 64 /* of a wrong text, how much is repeated */

static bool has_scheme(const char *text)
{
	return strncmp(text, SCHEME, strlen(SCHEME)) == 0;
}

/* An address without a port. */
static bool check_address(const char *text, char problem[static TN_ERR_TEXT])
{
	struct tn_addr addr;
	char unused[TN_ERR_TEXT];

	if (has_scheme(text) || tn_addr_parse(text, TN_ADDR_NEED_PORT, &addr, unused) == TN_OK) {
		snprintf(problem, TN_ERR_TEXT,
			 "\"%.*s\": write the address alone, such as 192.0.2.7 or 2001:db8::1, without tcp:// and port",
			 QUOTED, text);
		return false;
	}
	return tn_addr_parse(text, 0, &addr, problem) == TN_OK;
}

static bool check_address_set(const char *text, char problem[static TN_ERR_TEXT])
{
	struct tn_addr_net net;

	return tn_addr_net_parse(text, &net, problem) == TN_OK;
}

static bool check_endpoint(const char *text, bool is_bind, char problem[static TN_ERR_TEXT])
{
	const char *why = NULL;
	struct tn_addr addr;

	if (!has_scheme(text)) {
		snprintf(problem, TN_ERR_TEXT, "\"%.*s\": write tcp://ADDRESS:PORT, such as tcp://192.0.2.7:9816",
			 QUOTED, text);
		return false;
	}
	if (tn_addr_parse(text, TN_ADDR_NEED_PORT, &addr, problem) != TN_OK)
		return false;
	if (!is_bind && tn_addr_port(&addr) == 0)
		why = "port 0 cannot be connected to";
	else if (!is_bind && tn_addr_is_any(&addr))
		why = "a wildcard cannot be connected to";
	if (why != NULL)
		snprintf(problem, TN_ERR_TEXT, "\"%.*s\": %s", QUOTED, text, why);
	return why == NULL;
}

enum tn_cfg_reach tn_cfg_reach(const char *text)
{
	char unused[TN_ERR_TEXT];
	struct tn_addr addr;

	if (tn_addr_parse(text, 0, &addr, unused) != TN_OK)
		return TN_CFG_REACH_OTHER;
	if (tn_addr_is_any(&addr))
		return TN_CFG_REACH_WILDCARD;
	return tn_addr_is_loopback(&addr) ? TN_CFG_REACH_LOOPBACK : TN_CFG_REACH_OTHER;
}

static bool check_path(const char *text, char problem[static TN_ERR_TEXT])
{
	const char *why = text[0] == '/' ? NULL : "not an absolute path; start it with /";

	for (const char *p = text; *p != '\0'; p++)
		if (iscntrl((unsigned char)*p))
			why = "control characters in a path";
	if (why != NULL)
		snprintf(problem, TN_ERR_TEXT, "\"%.*s\": %s", QUOTED, text, why);
	return why == NULL;
}

static bool check_name(const char *text, char problem[static TN_ERR_TEXT])
{
	if (tn_name_valid(text))
		return true;
	snprintf(problem, TN_ERR_TEXT,
		 "\"%.*s\": a name has 1..63 characters of A-Z a-z 0-9 . _ - and does not start with . or -", QUOTED,
		 text);
	return false;
}

static bool check_word(const char *text, char problem[static TN_ERR_TEXT])
{
	for (const char *p = text; *p != '\0'; p++) {
		if (isalnum((unsigned char)*p) || *p == '_' || *p == '-')
			continue;
		snprintf(problem, TN_ERR_TEXT, "\"%.*s\": only letters, digits, _ and - may stand here", QUOTED, text);
		return false;
	}
	return true;
}

/* The text is not repeated: it may be a secret key, pasted by mistake. */
static bool check_public_key(const char *text, char problem[static TN_ERR_TEXT])
{
	struct tn_peer_id id;

	if (tn_peer_id_from_text(text, &id) != TN_OK)
		snprintf(problem, TN_ERR_TEXT,
			 "not a public key; copy it from the peer's tentctl keygen (40 characters Z85 or 64 "
			 "hexadecimal digits)");
	else if (tn_peer_id_is_zero(&id))
		snprintf(problem, TN_ERR_TEXT, "the all-zero key is nobody's");
	else
		return true;
	return false;
}

bool tn_cfg_kind_check(enum tn_cfg_kind kind, const char *text, char problem[static TN_ERR_TEXT])
{
	switch (kind) {
	case TN_CFG_KIND_NAME:
		return check_name(text, problem);
	case TN_CFG_KIND_PATH:
		return check_path(text, problem);
	case TN_CFG_KIND_WORD:
		return check_word(text, problem);
	case TN_CFG_KIND_ADDRESS:
		return check_address(text, problem);
	case TN_CFG_KIND_ADDRESS_SET:
		return check_address_set(text, problem);
	case TN_CFG_KIND_ENDPOINT:
		return check_endpoint(text, false, problem);
	case TN_CFG_KIND_BIND_ENDPOINT:
		return check_endpoint(text, true, problem);
	case TN_CFG_KIND_PUBLIC_KEY:
		return check_public_key(text, problem);
	default:
		return true;
	}
}
