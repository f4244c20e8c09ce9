/* SPDX-License-Identifier: Apache-2.0
 * What a telemetry file tells about its data plane, as one JSON document (what -j prints), and that document as a page
 * for people. gather.c and events.c read, print.c writes; cmd_postmortem.c chooses the file. */
#ifndef TCTL_POSTMORTEM_H
#define TCTL_POSTMORTEM_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "controlplane/tentctl/region.h"

struct tctl_postmortem_cfg {
	enum tctl_life life;
	uint64_t now_ns, now_real_ns;
	uint32_t events_max;     /* of the last events, how many */
	bool spans;              /* completed spans among them */
};

/* The document; new reference. Never fails halfway: a file whose numbers are of another schema has fewer parts. */
json_t *tctl_postmortem_gather(const struct tctl_region *r, const struct tctl_postmortem_cfg *cfg);
/* "events": the last ones of all rings merged by time. `end_ns`: their distances are counted from it. */
json_t *tctl_postmortem_events(const struct tctl_region *r, const struct tctl_postmortem_cfg *cfg, uint64_t end_ns);

void tctl_postmortem_print(const json_t *doc, FILE *to);

#endif
