/* SPDX-License-Identifier: Apache-2.0
 * Where whoever watches the moves of all state machines is kept. A library of its own, because the control thread and the
 * stream transports move states too and are tested without a worker. */
#include "dataplane/request/state.h"

#if TENT_HOOKS
void (*dp_move_seen)(const struct dp_machine *m, unsigned from, unsigned to);
#endif
