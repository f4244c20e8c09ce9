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
	X(PERMISSION, -3, "permission", "the rights of the memory, the segment's access list or the file's mode forbid it", "compare what was published (tentctl segment show there) with what is asked, and the user") \
	X(STALE, -4, "stale", "the segment or memory behind the handle is gone", "is it still published? open it again (memory: register again)") \
	X(NOT_FOUND, -5, "not_found", "no such segment, peer or file", "tentctl segment list on its host shows what is published there") \
	X(EXISTS, -6, "exists", "the name or range is taken", "choose another name or withdraw the old one") \
	X(TOO_BIG, -7, "too_big", "larger than a fixed bound", "split it, or raise the limit that the text names") \
	X(TIMEOUT, -8, "timeout", "the deadline passed", "tentctl status and explain PEER say what holds it up; a longer deadline helps only when bytes move") \
	X(CANCELED, -9, "canceled", "canceled by the application, or its queue pair was destroyed", "nothing to do") \
	X(UNSUPPORTED, -10, "unsupported", "this build, peer or object cannot do it", "tentctl version and tentctl explain say what this build and the peer can") \
	X(AMBIGUOUS, -11, "ambiguous", "the connection broke after a WRITE may have landed; tent does not send it twice", "read the range back, or submit it again if writing twice is harmless") \
	X(LIMIT, -12, "limit", "a bound of the configuration is reached (limits/*, windows, descriptors)", "tentctl status and the log say which; raise it, or use less at once") \
	X(NO_MEMORY, -13, "no_memory", "memory could not be had", "free -h, dmesg; lower limits/* or give the daemon's cgroup more") \
	X(BUSY, -14, "busy", "in use by outstanding work or another process", "wait for it to end, then try again") \
	X(FAULT, -15, "fault", "a page of memory cannot be had: in phase post of this application's, else of the segment's", \
	  "look for huge pages, memory limits and hardware errors on that host; other pages still work") \
	/* the path (lane, queue pair) is dropped; another may serve */ \
	X(PATH_DOWN, -100, "path_down", "the connection to the peer's data plane was refused, reset or closed", "is its tent-dataplane up, does a firewall drop its tcp port? tentctl explain PEER") \
	X(PATH_PROTOCOL, -101, "path_protocol", "the other end broke the framing rules", "compare tentctl version on both hosts; if equal, report it with both logs") \
	X(PATH_TIMEOUT, -102, "path_timeout", "the connection made no progress in time", "tentctl top here and there; is the network or the peer overloaded or stopped?") \
	/* the peer is not usable now */ \
	X(PEER_UNKNOWN, -200, "peer_unknown", "no peer of that name is configured", "add it to peers in the config") \
	X(PEER_DOWN, -201, "peer_down", "the peer does not answer", "tentctl peer list says why; is its tent-controlplane up?") \
	X(PEER_STALE, -202, "peer_stale", "the peer's data plane restarted", "nothing: tent asks for the new one by itself; submit again if it was given up") \
	X(PEER_DENIED, -203, "peer_denied", "the peer refused our key or ticket", "compare tentctl keygen --show of each host with public_key in peers of the other") \
	X(PEER_ADDRESS, -204, "peer_address", "the peer takes our lanes, but not from the address they come from", "tentctl explain PEER names it: allow it in peers/NAME/data_addresses over there, or set transports/tcp/bind_address here") \
	/* the client (an application's attachment) is dropped */ \
	X(CLIENT_BROKEN, -300, "client_broken", "the application broke the ring or message rules", "the application was cut off: look for stray writes into tent's memory; attach again") \
	X(CLIENT_GONE, -301, "client_gone", "the application went away", "nothing to do: its memory and segments are given back") \
	X(FORKED, -302, "forked", "the handle belongs to the parent process", "open a context of your own after fork") \
	X(CLOSED, -303, "closed", "the context or queue pair is closed", "open a new one") \
	/* the process has a problem */ \
	X(DATAPLANE_DOWN, -400, "dataplane_down", "tent-dataplane is not running here, or serves another directory", "start tent-dataplane; tentctl doctor shows the runtime directory that is looked at") \
	X(CONTROLPLANE_DOWN, -401, "controlplane_down", "tent-controlplane is not running here, or serves another directory", "start tent-controlplane (running transfers go on); tentctl doctor shows the directory that is looked at") \
	X(ABI_MISMATCH, -402, "abi_mismatch", "the application's libtent and the daemons have different major versions", "install matching versions, then restart whichever is older") \
	X(SYSTEM, -403, "system", "a system call failed", "the errno in the text and the log say which; tentctl doctor checks the usual causes") \
	X(CONFIG, -404, "config", "the configuration is wrong", "tentctl config check names file, line and key") \
	X(INTERNAL, -499, "internal", "a bug in tent", "report it with the logs and the output of tentctl postmortem")

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
