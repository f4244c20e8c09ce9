/* SPDX-License-Identifier: Apache-2.0
 * What tentctl verify reads from whatever listens on the metrics port: cut up in place, never beyond its end. */
#include <stdlib.h>
#include <string.h>

#include "common/assert.h"
#include "common/metrics.h"
#include "controlplane/tentctl/samples.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint64_t cells[TN_METRIC_CELL_CNT];
	struct tctl_samples s;
	char err[256] = "";
	char *text = malloc(len + 1);
	if (text == NULL)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	if (!tctl_samples_parse(text, &s, err, sizeof err)) {
		tn_assert(err[0] != '\0');
		return 0;
	}
	for (size_t i = 0; i < s.cnt; i++) {
		tn_assert(s.item[i].label_cnt <= TCTL_LABELS_MAX && s.item[i].name[0] != '\0');
		(void)tctl_sample_label(&s.item[i], "operation");
	}
	(void)tctl_samples_to_cells(&s, cells, err, sizeof err);
	tctl_samples_free(&s);
	return 0;
}
