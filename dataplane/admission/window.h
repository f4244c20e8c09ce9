/* SPDX-License-Identifier: Apache-2.0
 * A dispatch window: how many owners and bytes may be with the transports at once, in total or for one peer. Pure; the
 * admission queue of one worker owns it. Limits may change at run time, so "used" may be above the limit for a while. */
#ifndef DP_ADMISSION_WINDOW_H
#define DP_ADMISSION_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

#include "common/compiler.h"

struct dp_window {
	uint64_t bytes, bytes_max;
	uint32_t owners, owners_max;
};

TN_INLINE void dp_window_init(struct dp_window *w, uint32_t owners_max, uint64_t bytes_max)
{
	*w = (struct dp_window){ .owners_max = owners_max, .bytes_max = bytes_max };
}

/* Is there room for it beside what is out? An owner larger than the whole window never fits. */
TN_INLINE bool dp_window_has_room(const struct dp_window *w, uint64_t bytes)
{
	return w->owners < w->owners_max && w->bytes <= w->bytes_max && bytes <= w->bytes_max - w->bytes;
}

/* The same, but one larger than the whole window fits when the window is empty: it goes alone. */
TN_INLINE bool dp_window_fits(const struct dp_window *w, uint64_t bytes)
{
	return w->owners == 0 || (w->bytes < w->bytes_max && dp_window_has_room(w, bytes));
}

TN_INLINE void dp_window_take(struct dp_window *w, uint64_t bytes)
{
	w->owners++;
	w->bytes += bytes;
}

TN_INLINE void dp_window_give(struct dp_window *w, uint64_t bytes)
{
	w->owners--;
	w->bytes -= bytes;
}

#endif
