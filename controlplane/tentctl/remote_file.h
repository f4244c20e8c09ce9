/* SPDX-License-Identifier: Apache-2.0
 * Reading from a segment for put and get: its trailer, and a range of it hashed on the way. */
#ifndef TCTL_REMOTE_FILE_H
#define TCTL_REMOTE_FILE_H

#include "controlplane/tentctl/outfile.h"
#include "controlplane/tentctl/pump.h"
#include "controlplane/tentctl/trailer.h"

/* READ the trailer until a whole one is seen. OK, or NOT_FOUND: the segment has none. Else the pump failed (printed).
 */
tn_status tctl_remote_trailer(struct tctl_pump *p, struct tctl_trailer *out);
/* READ [0, bytes) in order, hash it, and write it to `to` unless that is NULL. False: printed. */
bool tctl_remote_read(struct tctl_pump *p, uint64_t bytes, struct tctl_outfile *to, const char *what,
		      uint8_t sha256_out[static TCTL_SHA256_BYTES]);

#endif
