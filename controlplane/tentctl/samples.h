/* SPDX-License-Identifier: Apache-2.0
 * Reading /metrics back: the text exposition as numbers. The text may come from anything that listens on the port. */
#ifndef TCTL_SAMPLES_H
#define TCTL_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum { TCTL_LABELS_MAX = 4 };

struct tctl_sample {
	const char *name;                       /* into the text */
	struct { const char *key, *value; } labels[TCTL_LABELS_MAX];
	unsigned label_cnt;
	int64_t value;
};

struct tctl_samples {
	char *text;             /* owned; the names point into it */
	struct tctl_sample *item;
	size_t cnt;
};

/* Takes over `text` and cuts it up. Samples with whole numbers only; others (and histograms' buckets, with more labels
 * than fit) are left out. False: no memory, or a line is no exposition; nothing is owned then. */
bool tctl_samples_parse(char *text, struct tctl_samples *out, char *err, size_t err_bytes);
void tctl_samples_free(struct tctl_samples *s);
/* Value of a label; NULL when it has none of that name. */
const char *tctl_sample_label(const struct tctl_sample *s, const char *key);

/* The value cells of the families that have whole numbers, as the table of common/metrics.def lays them out;
 * cells[TN_METRIC_CELL_CNT]. Series that are not exposed stay 0. False: a label has a value that this build does not
 * know, so the numbers would be incomplete; err names it. */
bool tctl_samples_to_cells(const struct tctl_samples *s, uint64_t *cells, char *err, size_t err_bytes);

#endif
