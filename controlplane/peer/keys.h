/* SPDX-License-Identifier: Apache-2.0
 * The pair's CURVE key: made, read, checked. The secret half never leaves this module except into a ZeroMQ socket
 * option. Start-up of the daemon, and tentctl keygen. */
#ifndef CP_PEER_KEYS_H
#define CP_PEER_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/ids.h"
#include "common/status.h"

#define CP_KEY_TEXT 41 /* Z85 text of 32 bytes with the NUL */

struct cp_keys {
	char public_text[CP_KEY_TEXT];
	char secret_text[CP_KEY_TEXT];
	struct tn_peer_id id; /* the public key's bytes */
};

/* Make a new pair and write it to `path` (0600, created exclusively, its folder 0700). EXISTS when the file is there. */
tn_status cp_keys_generate(const char *path, struct cp_keys *out, char *err, size_t err_bytes);
/* Read and check: owner is us or root, nobody else may read it, both halves belong together. NOT_FOUND when absent. */
tn_status cp_keys_load(const char *path, struct cp_keys *out, char *err, size_t err_bytes);
/* Load, or generate on the very first start (made_out). */
tn_status cp_keys_ensure(const char *path, struct cp_keys *out, bool *made_out, char *err, size_t err_bytes);
void cp_keys_wipe(struct cp_keys *k);
/* Public keys as people write them: 40 characters of Z85 or 64 of hex. */
tn_status cp_keys_parse_public(const char *text, struct tn_peer_id *out);
void cp_keys_public_text(const struct tn_peer_id *id, char out[static CP_KEY_TEXT]);

#endif
