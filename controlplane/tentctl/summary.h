/* SPDX-License-Identifier: Apache-2.0
 * What put and get report when they are done. */
#ifndef TCTL_SUMMARY_H
#define TCTL_SUMMARY_H

#include "controlplane/tentctl/pump.h"
#include "controlplane/tentctl/sha256.h"

struct tctl_summary {
	const char *command, *file, *segment;
	const char *verified; /* "publisher", "published_hash", "read_back"; NULL: there was nothing to compare with */
	uint64_t bytes;
	uint64_t start_ns, first_ns, last_ns, end_ns; /* command, first submit, last completion, now */
	uint64_t cpu_start_ns;
	uint8_t sha256[TCTL_SHA256_BYTES];
};

void tctl_summary_print(const struct tctl_pump *p, const struct tctl_summary *s);

#endif
