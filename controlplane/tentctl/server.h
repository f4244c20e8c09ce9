/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server of the control plane: where it listens, and a page of it, over a plain socket. Bounded: anything may listen
 * at that port. One thread; blocks. */
#ifndef TCTL_SERVER_H
#define TCTL_SERVER_H

#include <stddef.h>
#include <stdint.h>

#include "controlplane/tentctl/tentctl.h"

enum { TCTL_SERVER_TEXT = 128, TCTL_PAGE_MAX = 16 << 20 };

/* "127.0.0.1:9815", "[::1]:9815": as the control plane of this pair wrote it down. CONFIG, CONTROLPLANE_DOWN: err says why. */
tn_status tctl_server_address(struct tctl *t, char out[static TCTL_SERVER_TEXT], char *err, size_t err_bytes);
/* GET `page` ("/metrics") of `where`: the body, from malloc, whatever the HTTP status is. NULL: err says why. */
char *tctl_page_fetch(const char *where, const char *page, uint64_t timeout_ns, int *status_out, char *err, size_t err_bytes);

#endif
