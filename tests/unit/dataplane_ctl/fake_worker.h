/* SPDX-License-Identifier: Apache-2.0
 * A worker without a thread for tests of the control side: keeps what was posted, acknowledges at once or when the test
 * says so, and emits the events that the test makes. One thread. */
#ifndef TN_TEST_FAKE_WORKER_H
#define TN_TEST_FAKE_WORKER_H

#include "dataplane/inspect.h"
#include "dataplane/worker.h"

#define FAKE_CMDS_MAX 4096

struct fake_cmds {
	struct dp_cmd cmd[FAKE_CMDS_MAX];
	unsigned cnt;
};

/* Everything posted to worker i so far, in order. */
struct fake_cmds *fake_posted(unsigned i);
/* The newest posted command of this kind; NULL when there is none. */
const struct dp_cmd *fake_last(unsigned i, enum dp_cmd_kind kind);
unsigned fake_count(unsigned i, enum dp_cmd_kind kind);
/* While held, commands with an id are not acknowledged; release acknowledges what was held, in order. */
void fake_hold(bool hold);
/* Worker i answers commands of this kind with s from now on; TN_OK: it takes them again. */
void fake_refuse(unsigned i, enum dp_cmd_kind kind, tn_status s);
/* The mailbox takes at most n more commands (UINT32_MAX: any number). */
void fake_mailbox_room(uint32_t n);
void fake_emit(unsigned i, const struct dp_evt *evt);
void fake_reset(void);

/* What dp_worker_path_info() answers for every peer over tcp. */
extern struct dp_path_info fake_path;
extern enum dp_rail_state fake_rail;
/* What DP_CMD_INSPECT is filled with. */
extern struct dp_inspect fake_inspect;

#endif
