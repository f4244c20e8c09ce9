/* SPDX-License-Identifier: Apache-2.0
 * A dispatch window: how many owners and bytes may be with the transports at once, in total or for one peer. Pure; the
 * admission queue of one worker owns it. */
#ifndef DP_ADMISSION_WINDOW_H
#define DP_ADMISSION_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct dp_window {
	uint64_t bytes, bytes_max;
	uint32_t owners, owners_max;
};

void dp_window_init(struct dp_window *w, uint32_t owners_max, uint64_t bytes_max);
/* Would an owner of `bytes` fit? One larger than the whole window fits when the window is empty: it goes alone. */
bool dp_window_fits(const struct dp_window *w, uint64_t bytes);
void dp_window_take(struct dp_window *w, uint64_t bytes);
void dp_window_give(struct dp_window *w, uint64_t bytes);

#endif
