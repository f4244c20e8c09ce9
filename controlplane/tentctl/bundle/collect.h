/* SPDX-License-Identifier: Apache-2.0
 * What a bundle consists of: the answers of tentctl's own verbs and the pages of the control plane's HTTP server, as they
 * are, not redacted yet. One thread; blocks. */
#ifndef TCTL_BUNDLE_COLLECT_H
#define TCTL_BUNDLE_COLLECT_H

#include <jansson.h>
#include <stdint.h>

#include "controlplane/tentctl/tentctl.h"

enum { TCTL_BUNDLE_MEMBERS_MAX = 40, TCTL_BUNDLE_MEMBER_BYTES = 4 << 20 };

struct tctl_bundle_member {
	char name[32];
	json_t *doc;          /* owned; or */
	char *text;           /* from malloc; or */
	const char *missing;  /* why there is none: "timed_out", "too_big", "no_answer", "not_json" */
	int code;             /* exit code of the verb, status of the page */
	uint64_t took_ns;
};

struct tctl_bundle {
	struct tctl_bundle_member member[TCTL_BUNDLE_MEMBERS_MAX];
	unsigned cnt;
};

/* Ask for everything until `deadline_ns`; what did not come by then, or is larger than TCTL_BUNDLE_MEMBER_BYTES, is missing.
 * Ends early when tctl_stopped(). */
void tctl_bundle_collect(struct tctl *t, uint64_t deadline_ns, struct tctl_bundle *out);
void tctl_bundle_clear(struct tctl_bundle *b);

#endif
