/* SPDX-License-Identifier: Apache-2.0
 * Who may connect to the peer door: ZeroMQ asks here (ZAP, RFC 27), and the answer is the peers list of the config. The
 * user id of an admitted connection is the peer's index. Control-plane thread. */
#ifndef CP_PEER_ZAP_H
#define CP_PEER_ZAP_H

#include "common/config.h"
#include "common/status.h"

/* Must be bound before any socket that wants authentication. */
tn_status cp_zap_bind(void *zmq_context, void **socket_out);
/* Answer what is waiting; true: there may be more. Refusals are logged (rate limited) with the address, never with key
 * material. */
bool cp_zap_serve(void *socket, const struct tn_config *config);

#endif
