/* SPDX-License-Identifier: Apache-2.0
 * The one HTTP server: GET and HEAD on a closed list of paths, one thread of its own. Bounded on every side: clients,
 * bytes of a request head, and time from accept to close. It knows no numbers: bodies come from a callback. */
#ifndef CP_OBSERVE_HTTP_H
#define CP_OBSERVE_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/status.h"
#include "common/text_buf.h"

#define CP_HTTP_PATH_LIST(X) \
	X(METRICS, "/metrics") X(OPENMETRICS, "/metrics/openmetrics") X(HEALTH, "/health") X(LIVE, "/live") \
	X(READY, "/ready") X(DIAGNOSTICS, "/diagnostics")
enum cp_http_path {
#define X(n, s) CP_HTTP_##n,
	CP_HTTP_PATH_LIST(X)
#undef X
	CP_HTTP_PATH_CNT
};

enum {
	CP_HTTP_CLIENTS_MAX = 64,
	CP_HTTP_CLIENT_MS = 5000,       /* accept to close, whatever the client does */
	CP_HTTP_REQUEST_BYTES = 8192,   /* request line and header fields */
	CP_HTTP_BODY_MAX = 8 << 20,     /* of an answer */
};

struct cp_http_ops {
	/* Appends the body of `path` to out and returns the HTTP status (200, 404, 500, 503). content_type_out: a static
	 * text. Called on the HTTP thread, one call at a time; takes whatever lock its data need. */
	unsigned (*render)(void *ctx, enum cp_http_path path, struct tn_text *out, const char **content_type_out);
	void *ctx;
};

struct cp_http;

/* Binds host (a numeric IPv4 or IPv6 address) and port (0 = any free one), listens and starts the thread.
 * On success *out is running and *port_out is the real port. On failure: TN_INVALID (host is no numeric address),
 * TN_EXISTS (port in use), TN_PERMISSION, TN_NO_MEMORY, TN_SYSTEM; err gets one line for the operator that names
 * address and cause; nothing is left behind. The caller decides what a failure means. */
TN_MUST_USE tn_status cp_http_start(const char *host, uint16_t port, const struct cp_http_ops *ops, struct cp_http **out,
				    uint16_t *port_out, char err[static TN_ERR_TEXT]);

/* The listener's descriptor, for who bounds its connections; the library's until cp_http_stop(). */
int cp_http_fd(const struct cp_http *h);
/* Stops accepting, closes all clients, joins the thread, frees. NULL is accepted. */
void cp_http_stop(struct cp_http *h);

#endif
