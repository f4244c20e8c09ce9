/* SPDX-License-Identifier: Apache-2.0
 * The states of what the control thread keeps - applications, their queue pairs, memories, segments and opened
 * segments, the link, and the data plane as a whole - with the allowed moves and the one function that makes a move. docs/state-machines.md is
 * generated from here. State 0 is an object that does not exist (of the link: no connection; of the whole: it is not
 * open yet). Control thread. */
#ifndef DP_CONTROL_STATE_H
#define DP_CONTROL_STATE_H

#include "dataplane/request/state.h"

/* X(STATE, name) and X(from, to, "when") */
#define DP_APP_STATES(X) X(FREE, free) X(NEW, new) X(ATTACHED, attached) X(CLOSING, closing) X(GONE, gone)
#define DP_APP_MOVES(X) \
	X(FREE, NEW, "connected; the kernel's note of its uid is good") \
	X(NEW, ATTACHED, "HELLO of our ABI, and room") \
	X(NEW, CLOSING, "hang-up, dead process, refused, or no HELLO in time") \
	X(ATTACHED, CLOSING, "BYE, hang-up, dead process, a broken rule, or answers that it does not read") \
	X(CLOSING, GONE, "workers and pool let go of everything it owned") \
	X(GONE, FREE, "the turn of the loop ended")

#define DP_QPAIR_STATES(X) X(FREE, free) X(ADDING, adding) X(LIVE, live) X(DELETING, deleting) X(DEAD, dead)
#define DP_QPAIR_MOVES(X) \
	X(FREE, ADDING, "QP_CREATE: region and doorbell made, on its way to the worker") \
	X(ADDING, LIVE, "the worker has it; region and doorbell sent") \
	X(ADDING, DEAD, "the application died; the worker's answer is still to come") \
	X(LIVE, DELETING, "QP_DESTROY") \
	X(ADDING, FREE, "the worker refused it or could not be told, or the application died") \
	X(LIVE, FREE, "the application died and the worker quiesced") \
	X(DELETING, FREE, "quiesced") \
	X(DEAD, FREE, "the worker answered")

#define DP_MEM_STATES(X) \
	X(FREE, free) X(MAPPING, mapping) X(ADDING, adding) X(LIVE, live) X(DELETING, deleting) X(UNMAPPING, unmapping)
#define DP_MEM_MOVES(X) \
	X(FREE, MAPPING, "MEM_REGISTER: sealed and mapped in the slow pool") \
	X(FREE, ADDING, "MEM_IMPORT: there is nothing to map; workers learn it") \
	X(MAPPING, ADDING, "mapped; workers learn it") \
	X(MAPPING, UNMAPPING, "refused, or the application died") \
	X(ADDING, LIVE, "every worker knows it") \
	X(ADDING, DELETING, "a worker refused it: the others forget it") \
	X(ADDING, UNMAPPING, "the application died and every worker quiesced") \
	X(LIVE, DELETING, "MEM_UNREGISTER: workers forget it") \
	X(LIVE, UNMAPPING, "the application died, every worker quiesced and no segment uses it") \
	X(DELETING, UNMAPPING, "quiesced; unmapped in the slow pool") \
	X(UNMAPPING, FREE, "unmapped")

#define DP_SEG_STATES(X) X(FREE, free) X(ADDING, adding) X(LIVE, live) X(DELETING, deleting)
#define DP_SEG_MOVES(X) \
	X(FREE, ADDING, "PUBLISH: the name is taken; workers learn it") \
	X(ADDING, LIVE, "every worker knows it: it can be found") \
	X(ADDING, DELETING, "a worker refused it, or the application died") \
	X(LIVE, DELETING, "WITHDRAW, the operator, or the application died: the name is free, workers drain") \
	X(DELETING, FREE, "quiesced")

#define DP_OPENED_STATES(X) \
	X(FREE, free) X(OPENING, opening) X(SETTING, setting) X(LIVE, live) X(DELETING, deleting) X(DEAD, dead)
#define DP_OPENED_MOVES(X) \
	X(FREE, OPENING, "OPEN: the control plane is asked, or this host's table") \
	X(OPENING, SETTING, "found; workers learn it") \
	X(OPENING, FREE, "not found, refused, or the application died") \
	X(SETTING, LIVE, "every worker knows it") \
	X(SETTING, DELETING, "a worker refused it: the others forget it") \
	X(SETTING, FREE, "the application died and every worker answered") \
	X(SETTING, DEAD, "the application died; answers of workers are still to come") \
	X(LIVE, DELETING, "CLOSE, or a worker refused a newer version") \
	X(LIVE, DEAD, "the application died while workers took a newer version") \
	X(LIVE, FREE, "the application died") \
	X(DELETING, FREE, "quiesced") \
	X(DEAD, FREE, "every worker answered")

#define DP_LINK_STATES(X) X(DOWN, down) X(CONNECTED, connected) X(SNAPSHOT, snapshot) X(LIVE, live)
#define DP_LINK_MOVES(X) \
	X(DOWN, CONNECTED, "the socket is connected, or it is time to attach again") \
	X(CONNECTED, SNAPSHOT, "attached: the control plane is told what is here") \
	X(CONNECTED, DOWN, "disconnected") \
	X(SNAPSHOT, LIVE, "the last chunk was taken; changes and heartbeats follow") \
	X(SNAPSHOT, CONNECTED, "the snapshot could not be made") \
	X(SNAPSHOT, DOWN, "disconnected, or refused") \
	X(LIVE, DOWN, "disconnected, no heartbeat, or the control plane restarted")

#define DP_PAIR_STATES(X) X(STARTING, starting) X(RUNNING, running) X(PAUSED, paused) X(DRAINING, draining)
#define DP_PAIR_MOVES(X) \
	X(STARTING, RUNNING, "the doors are open") \
	X(STARTING, DRAINING, "the start failed, or a signal came before its end") \
	X(RUNNING, PAUSED, "tentctl pause: requests queue, what is under way ends") \
	X(PAUSED, RUNNING, "tentctl resume") \
	X(RUNNING, DRAINING, "tentctl drain, or a signal") \
	X(PAUSED, DRAINING, "tentctl drain, or a signal")

/* X(PREFIX, prefix, name, what it is) */
#define DP_CONTROL_OBJECTS(X) \
	X(APP, app, "application", "One attachment: a unix socket and everything that was asked for over it.") \
	X(QPAIR, qpair, "queue pair", "The control thread's half of a queue pair.") \
	X(MEM, mem, "memory", "A registered memory of an application.") \
	X(SEG, seg, "segment", "A segment that an application of this host publishes.") \
	X(OPENED, opened, "opened segment", "A segment that an application of this host opened, here or at a peer.") \
	X(LINK, link, "link", "The connection to this host's control plane.") \
	X(PAIR, pair, "data plane", "The process as operators see it; /ready and tentctl status show its state.")

#define X(n, s) DP_APP_##n,
enum dp_app_state { DP_APP_STATES(X) DP_APP_STATE_CNT };
#undef X
#define X(n, s) DP_QPAIR_##n,
enum dp_qpair_state { DP_QPAIR_STATES(X) DP_QPAIR_STATE_CNT };
#undef X
#define X(n, s) DP_MEM_##n,
enum dp_mem_state { DP_MEM_STATES(X) DP_MEM_STATE_CNT };
#undef X
#define X(n, s) DP_SEG_##n,
enum dp_seg_state { DP_SEG_STATES(X) DP_SEG_STATE_CNT };
#undef X
#define X(n, s) DP_OPENED_##n,
enum dp_opened_state { DP_OPENED_STATES(X) DP_OPENED_STATE_CNT };
#undef X
#define X(n, s) DP_LINK_##n,
enum dp_link_state { DP_LINK_STATES(X) DP_LINK_STATE_CNT };
#undef X
#define X(n, s) DP_PAIR_##n,
enum dp_pair_state { DP_PAIR_STATES(X) DP_PAIR_STATE_CNT };
#undef X
#define X(P, p, name, what) DP_CONTROL_##P,
enum dp_control_object { DP_CONTROL_OBJECTS(X) DP_CONTROL_OBJECT_CNT };
#undef X

/* A move outside the object's table is our own bug and asserts. */
void dp_control_move(enum dp_control_object object, uint8_t *state, unsigned to);
/* "invalid" outside the table. */
const char *dp_control_state_name(enum dp_control_object object, unsigned state);

extern const struct dp_machine dp_control_machines[DP_CONTROL_OBJECT_CNT];

#endif
