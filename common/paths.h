/* SPDX-License-Identifier: Apache-2.0
 * Where things live when nothing is configured. One rule for the daemons (common/config.c) and for libtent, which
 * reads no JSON: both must compute the same runtime directory or they never meet. Pure; any thread. */
#ifndef TN_PATHS_H
#define TN_PATHS_H

#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

#define TN_RUNTIME_DIR_ENV "TENT_RUNTIME_DIR"   /* the environment name of the key runtime_dir */

/* Value of NAME in an environment of NAME=VALUE texts (NULL-terminated); NULL when unset. */
const char *tn_env_find(const char *const *env, const char *name);

/* Sockets, counters, event rings: /run/tent for root, else $XDG_RUNTIME_DIR/tent, else /dev/shm/tent-UID. XDG
 * variables count only when absolute. TN_TOO_BIG when it does not fit. */
tn_status tn_default_runtime_dir(const char *const *env, unsigned uid, char *out, size_t out_bytes);
/* What survives a reboot: /var/lib/tent for root, else $XDG_STATE_HOME/tent, else $HOME/.local/state/tent, else (no
 * home) /dev/shm/tent-UID-state. */
tn_status tn_default_state_dir(const char *const *env, unsigned uid, char *out, size_t out_bytes);

#endif
