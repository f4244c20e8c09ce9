/* SPDX-License-Identifier: Apache-2.0
 * Telling peers that a segment of this host changed. Control-plane thread. */
#ifndef CP_SEGMENT_UPDATES_H
#define CP_SEGMENT_UPDATES_H

#include <stdint.h>

#include "controlplane/node.h"

/* This peer used the segment, or waits for it: tell it that there is another generation now (0: it is gone). What is told
 * of one segment before the peer could hear it is told once, as it is then. */
void cp_updates_tell(struct cp_node *node, uint32_t peer, const char *name, uint64_t generation);

#endif
