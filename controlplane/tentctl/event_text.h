/* SPDX-License-Identifier: Apache-2.0
 * An event record (the JSON that the control plane or postmortem makes of one) as words for people, and which records
 * somebody wants to see. Shared by events, trace and postmortem. */
#ifndef TCTL_EVENT_TEXT_H
#define TCTL_EVENT_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "controlplane/tentctl/tentctl.h"

/* "request.failed": the name without its prefix; in one of tctl_text()'s buffers. */
const char *tctl_event_name(const json_t *e);
/* "tcp write connect/peer_closed path_down after 1.5ms request 11 attempt 14": what it says besides its name. */
void tctl_event_what(const json_t *e, char *out, size_t cap);
/* A completed span, not an event of the log. */
bool tctl_event_is_span(const json_t *e);

/* Texts as given on the command line; NULL: any. */
struct tctl_event_filter {
	const char *event, *transport, *operation, *phase, *reason, *status, *request, *trace;
	uint64_t since_ns;              /* 0: any age */
	bool spans;
	char since_text[48];            /* of now - since_ns, as records say it; by tctl_event_filter_check() */
};

/* Every name must be one that records can have. False: a usage error was printed, t->exit_code is set. */
bool tctl_event_filter_check(struct tctl *t, struct tctl_event_filter *f);
bool tctl_event_wanted(const struct tctl_event_filter *f, const json_t *e);

#endif
