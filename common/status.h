/* SPDX-License-Identifier: Apache-2.0
 * The one status type of every room and of the public API (same numbers there; libtent asserts it).
 * 0 = done; positive = not now, ask again; negative = failed, grouped by what must be dropped. Any thread. */
#ifndef TN_STATUS_H
#define TN_STATUS_H

#include <stdbool.h>

#include "common/compiler.h"

#define TN_ERR_TEXT 192   /* size of a caller's buffer for one line of error text, with the NUL */

/* X(NAME, value, "name", "what it means", "what to do") */
#define TN_STATUS_LIST(X) \
	X(OK, 0, "ok", "done", "") \
	X(AGAIN, 1, "again", "not now: a queue or window is full", "poll completions, then try again") \
	X(PENDING, 2, "pending", "accepted, not finished yet", "poll or wait") \
	/* the request is over; nothing else is touched */ \
	X(INVALID, -1, "invalid", "an argument is malformed", "fix the argument that the text names") \
	X(RANGE, -2, "range", "offset and length leave the buffer or segment", "check offset + length against the size") \
	X(PERMISSION, -3, "permission", "the rights of the memory or the segment's access list forbid it", "publish with the right and peer that is needed") \
	X(STALE, -4, "stale", "the handle or registration belongs to something that is gone", "open or register again") \
	X(NOT_FOUND, -5, "not_found", "no such segment, peer or key", "check the name; is it published?") \
	X(EXISTS, -6, "exists", "the name or range is taken", "choose another name or withdraw the old one") \
	X(TOO_BIG, -7, "too_big", "larger than a fixed bound", "split it") \
	X(TIMEOUT, -8, "timeout", "the deadline passed", "see phase and reason; raise the deadline or look at the peer") \
	X(CANCELED, -9, "canceled", "canceled by its owner", "") \
	X(UNSUPPORTED, -10, "unsupported", "this build, peer or object cannot do it", "see the text for what would") \
	X(AMBIGUOUS, -11, "ambiguous", "a WRITE may have landed and must not be sent again", "read back, or submit again yourself") \
	X(LIMIT, -12, "limit", "a configured bound is reached", "raise the bound that the text names") \
	X(NO_MEMORY, -13, "no_memory", "memory could not be had", "free memory or lower the pool sizes") \
	X(BUSY, -14, "busy", "in use", "wait for outstanding work, then try again") \
	X(FAULT, -15, "fault", "a page of memory cannot be had: in phase post of this application's, else of the segment's", \
	  "look for huge pages, memory limits and hardware errors on that host; other pages still work") \
	/* the path (lane, queue pair) is dropped; another may serve */ \
	X(PATH_DOWN, -100, "path_down", "the connection was refused, reset or closed", "tentctl peer list; is the peer up?") \
	X(PATH_PROTOCOL, -101, "path_protocol", "the other end broke the framing rules", "compare versions of both ends") \
	X(PATH_TIMEOUT, -102, "path_timeout", "the connection made no progress in time", "look at the network and the peer's load") \
	/* the peer is not usable now */ \
	X(PEER_UNKNOWN, -200, "peer_unknown", "no peer of that name is configured", "add it to peers in the config") \
	X(PEER_DOWN, -201, "peer_down", "the peer does not answer", "is its control plane up? tentctl peer list") \
	X(PEER_STALE, -202, "peer_stale", "the peer restarted: its session changed", "retry; tent refreshes by itself") \
	X(PEER_DENIED, -203, "peer_denied", "the peer refused our key or ticket", "exchange public keys: tentctl keygen, peers allow-list") \
	X(PEER_ADDRESS, -204, "peer_address", "the peer takes our lanes, but not from the address they come from", "tentctl explain PEER names it: allow it in peers/NAME/data_addresses over there, or set transports/tcp/bind_address here") \
	/* the client (an application's attachment) is dropped */ \
	X(CLIENT_BROKEN, -300, "client_broken", "the application broke the ring or message rules", "a stray write into tent's memory? attach again") \
	X(CLIENT_GONE, -301, "client_gone", "the application went away", "") \
	X(FORKED, -302, "forked", "the handle belongs to the parent process", "open a context of your own after fork") \
	X(CLOSED, -303, "closed", "the context or queue pair is closed", "") \
	/* the process has a problem */ \
	X(DATAPLANE_DOWN, -400, "dataplane_down", "tent-dataplane is not running here", "start tent-dataplane; check the runtime directory") \
	X(CONTROLPLANE_DOWN, -401, "controlplane_down", "tent-controlplane is not running here", "start tent-controlplane; established transfers go on") \
	X(ABI_MISMATCH, -402, "abi_mismatch", "the two sides were built with different major versions", "install matching versions") \
	X(SYSTEM, -403, "system", "a system call failed", "see errno in the text") \
	X(CONFIG, -404, "config", "the configuration is wrong", "tentctl config check") \
	X(INTERNAL, -499, "internal", "a bug in tent", "please report it with the log")

typedef enum tn_status {
#define X(name, value, text, meaning, todo) TN_##name = value,
	TN_STATUS_LIST(X)
#undef X
} tn_status;

/* Short name ("timeout"), meaning, and what to do; static strings, never NULL; unknown values give "unknown". */
const char *tn_status_name(tn_status s);
const char *tn_status_meaning(tn_status s);
const char *tn_status_todo(tn_status s);

/* The status of that short name; false (status_out untouched) when a newer version knows a name that this one does not. */
bool tn_status_from_name(const char *name, tn_status *status_out);

/* The status for an errno value (ENOMEM -> NO_MEMORY, ECONNRESET -> PATH_DOWN ...; else SYSTEM). */
tn_status tn_status_from_errno(int err);

#endif
