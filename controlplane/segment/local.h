/* SPDX-License-Identifier: Apache-2.0
 * Segments published on this host: a cache of what the data plane said, rebuilt at each attach. Also remembers which
 * peers fetched a segment, so that they can be told when it changes. Control-plane thread. */
#ifndef CP_SEGMENT_LOCAL_H
#define CP_SEGMENT_LOCAL_H

#include <jansson.h>
#include <stdbool.h>

#include "common/ids.h"
#include "common/status.h"

struct cp_local;
struct cp_node;

struct cp_local *cp_local_new(void);
void cp_local_free(struct cp_local *l);

/* A snapshot begins: what it does not name is gone at snapshot_end. */
void cp_local_snapshot_begin(struct cp_local *l);
/* Add or replace one SEG object (borrowed); INVALID names the field in err. */
tn_status cp_local_put(struct cp_node *node, struct cp_local *l, const json_t *seg, char *err, size_t err_bytes);
/* Remove if the generation is not newer. */
void cp_local_remove(struct cp_node *node, struct cp_local *l, const char *name, uint64_t generation);
void cp_local_snapshot_end(struct cp_node *node, struct cp_local *l);

/* Borrowed SEG, or NULL. */
const json_t *cp_local_get(const struct cp_local *l, const char *name);
size_t cp_local_cnt(const struct cp_local *l);
/* New array of SEG objects first .. first+count-1 in name order of the table. */
json_t *cp_local_list(const struct cp_local *l, size_t first, size_t count);
/* May this peer see and reach it? */
bool cp_local_allows(const json_t *seg, const char *peer_name);
/* Peer `index` fetched it and wants to hear of changes, or it is not there and the peer wants to hear when it is (and the
 * peer may see it then). */
void cp_local_subscribe(struct cp_local *l, const char *name, uint32_t index);

#endif
