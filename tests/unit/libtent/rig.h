/* SPDX-License-Identifier: Apache-2.0
 * What every libtent test stands on: a runtime directory, a stand-in data plane in it that can be killed and started
 * again, and an application ready to move bytes. Every wait has a deadline; one that expires ends the test binary. */
#ifndef RIG_H
#define RIG_H

#include <tent/tent.h>

#include <sys/types.h>

#include "tests/unit/libtent/standin.h"
#include "tests/unit/cu.h"

#define RIG_MS UINT64_C(1000000)
#define RIG_BYTES (256u * 1024u)

struct rig {
	char dir[64];
	struct standin_ctl *ctl;
	pid_t pid;
	int kick_fd;
};

void rig_up(struct rig *r);              /* directory, control file, running stand-in */
void rig_down(struct rig *r);            /* everything away */
void rig_start(struct rig *r);           /* a new stand-in; returns when it listens */
void rig_kill(struct rig *r);            /* kill -9, reaped */
void rig_kick(struct rig *r);            /* it looks at its knobs now */
void rig_set(struct rig *r, tn_a32 *knob, uint32_t value); /* and kick */
void rig_wait_for(const tn_a32 *counter, uint32_t value);  /* at least value, within 5 s */
void rig_wait_zero(const tn_a32 *counter);
/* Attach with short time-outs: 1 s for calls, recover_ms for recovery. */
tent_context *rig_open(struct rig *r, uint64_t recover_ms);

/* An application: 2 memories of RIG_BYTES, one published as "far" and opened again, one queue pair. */
struct app {
	tent_context *ctx;
	tent_memory *near, *far;
	tent_published *pub;
	tent_segment *seg;
	tent_qp *qp;
};
void app_up(struct app *a, struct rig *r, uint64_t recover_ms);
void app_down(struct app *a);
tent_request app_request(const struct app *a, tent_opcode op, uint64_t offset, uint64_t bytes, uint64_t user_data);
tent_status app_submit(struct app *a, tent_request rq);
/* Exactly `cnt` completions within 5 s, in the order in which they came. */
void app_collect(struct app *a, tent_completion *out, int cnt);
/* One completion with this user data among cnt, or a failed assertion and a zero completion. */
tent_completion app_find(const tent_completion *c, int cnt, uint64_t user_data);
/* No completion for `ms`. */
void app_expect_quiet(struct app *a, uint64_t ms);
/* The same for as long as a counter of the stand-in takes to get there. */
void app_quiet_until(struct app *a, const tn_a32 *counter, uint32_t value);

#endif
