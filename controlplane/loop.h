/* SPDX-License-Identifier: Apache-2.0
 * The edge: every ZeroMQ socket of the control plane, and nothing that decides anything. Turns frames into
 * cp_node_input() and cp_output into frames; admits peers by key (ZAP) and local processes by uid. One thread. */
#ifndef CP_LOOP_H
#define CP_LOOP_H

#include "common/config.h"
#include "controlplane/node.h"
#include "controlplane/peer/keys.h"

struct cp_loop;

/* Binds link.ipc and bus.ipc in the runtime directory and control/bind. A busy address is an error that names it.
 * `keys` is borrowed until cp_loop_free(). */
tn_status cp_loop_new(const struct tn_config *config, const struct cp_keys *keys, struct cp_loop **out, char *err,
		      size_t err_bytes);
void cp_loop_free(struct cp_loop *l);

/* The node that gets what arrives; its callbacks are the two below with the loop as context. */
void cp_loop_attach(struct cp_loop *l, struct cp_node *node);
tn_status cp_loop_emit(void *loop, const struct cp_output *out);
void cp_loop_reconnect(void *loop, uint32_t peer);

/* Wait for frames, or for `signal_fd` to be readable, up to timeout_ms. */
void cp_loop_wait(struct cp_loop *l, int signal_fd, int timeout_ms);
/* Hand a bounded number of waiting messages to the node. */
void cp_loop_drain(struct cp_loop *l);

#endif
