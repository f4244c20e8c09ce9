/* SPDX-License-Identifier: Apache-2.0
 * The control-message envelope: no input crashes the decoder or leaves something owned, and what was accepted can be
 * sent on and read back the same. */
#include <string.h>

#include "common/assert.h"
#include "common/message.h"
#include "tests/fuzz/fuzz.h"

/* Readers of bodies on whatever a stranger sent. */
static void read_body(const json_t *body)
{
	static const char *const ops[] = { "read", "write" };
	struct tn_json_in in;
	char name[TN_NAME_MAX] = "";
	uint64_t n = 0;
	const json_t *v = NULL;
	struct tn_id128 id;
	struct tn_peer_id peer;
	unsigned op = 0;
	tn_json_in_init(&in, body);
	if (tn_json_has(&in, "name") && tn_json_name(&in, "name", name) == TN_OK)
		tn_assert(tn_name_valid(name));
	if (tn_json_has(&in, "length") && tn_json_u64(&in, "length", 1, 1000, &n) == TN_OK)
		tn_assert(n >= 1 && n <= 1000);
	if (tn_json_has(&in, "ticket"))
		(void)tn_json_hex128(&in, "ticket", &id);
	if (tn_json_has(&in, "peer"))
		(void)tn_json_peer_id(&in, "peer", &peer);
	if (tn_json_has(&in, "op") && tn_json_choice(&in, "op", ops, 2, &op) == TN_OK)
		tn_assert(op < 2);
	if (tn_json_has(&in, "buffers") && tn_json_array(&in, "buffers", 4, &v) == TN_OK)
		tn_assert(json_array_size(v) <= 4);
	tn_assert(in.status == TN_OK || in.err[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static char buf[TN_MESSAGE_MAX];
	struct tn_message m, again;
	char err[TN_ERR_TEXT] = "";
	size_t out_len;
	if (tn_message_decode(data, len, &m, err) != TN_OK) {
		tn_assert(err[0] != '\0' && m.body == NULL && m.type[0] == '\0');
		return 0;
	}
	read_body(m.body);
	tn_status st = tn_message_encode(&m, buf, sizeof buf, &out_len);
	tn_assert(st == TN_OK || st == TN_TOO_BIG);   /* escapes may make the text longer than what came */
	if (st == TN_OK) {
		tn_assert(tn_message_decode(buf, out_len, &again, err) == TN_OK);
		tn_assert(again.id == m.id && again.status == m.status && strcmp(again.type, m.type) == 0);
		tn_assert((m.body == NULL) == (again.body == NULL));
		tn_message_clear(&again);
	}
	tn_message_clear(&m);
	return 0;
}
