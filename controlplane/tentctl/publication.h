/* SPDX-License-Identifier: Apache-2.0
 * A published file segment seen from its owner: memory, trailer, and what a put's notice does to them. */
#ifndef TCTL_PUBLICATION_H
#define TCTL_PUBLICATION_H

#include <tent/tent.h>

#include "controlplane/tentctl/tentctl.h"
#include "controlplane/tentctl/trailer.h"

struct tctl_publication {
	struct tctl *t;
	const char *name;
	const char *output;         /* --output; NULL: none */
	bool writable;
	tent_context *ctx;
	tent_memory *mem;
	uint8_t *data;              /* the room; the trailer's page stands behind it */
	uint64_t segment_bytes;
	struct tctl_trailer trailer; /* as last written */
};

/* Attach and allocate. TCTL_OK or TCTL_FAILED (printed); close in both cases. */
int tctl_publication_open(struct tctl_publication *pub, struct tctl *t, uint64_t capacity);
/* Load the file at `path` (of at most the capacity) with a progress bar, and describe it. */
int tctl_publication_load(struct tctl_publication *pub, const char *path);
/* Let others find it. peers: who may; none: all. */
int tctl_publication_publish(struct tctl_publication *pub, const struct tctl_texts *peers);
/* A notice came: hash, write --output, answer in the trailer, report. False: it was no put notice. */
bool tctl_publication_on_note(struct tctl_publication *pub, const tent_note *note);
void tctl_publication_close(struct tctl_publication *pub);

#endif
