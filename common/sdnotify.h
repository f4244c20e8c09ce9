/* SPDX-License-Identifier: Apache-2.0
 * Tells the supervisor (systemd, or any other that sets NOTIFY_SOCKET) how the daemon is: the protocol of
 * sd_notify(3), without its library. Slow threads only; one datagram per call, never blocks. */
#ifndef TN_SDNOTIFY_H
#define TN_SDNOTIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"

/* Sends one state text, e.g. "READY=1" or "STOPPING=1\nSTATUS=draining". `state` is NUL-terminated.
 * TN_OK: sent. TN_UNSUPPORTED: no supervisor asked (NOTIFY_SOCKET unset): nothing to do. TN_INVALID: NOTIFY_SOCKET is
 * not a unix socket address. Other: the send failed (never worth stopping for). */
tn_status tn_sdnotify(const char *state);

/* The same with formatting; a text longer than 511 bytes is refused with TN_TOO_BIG. */
tn_status tn_sdnotifyf(const char *fmt, ...) TN_PRINTF(1, 2);

/* Period in ns at which "WATCHDOG=1" is due (half of WATCHDOG_USEC, as sd_watchdog_enabled(3) advises);
 * 0 when no watchdog is set or it is meant for another process. */
uint64_t tn_sdnotify_watchdog_ns(void);

#endif
