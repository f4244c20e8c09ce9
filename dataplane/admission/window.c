/* SPDX-License-Identifier: Apache-2.0
 * Window arithmetic. Pure; limits may change at run time (TUNE), so "used" may be above the limit for a while. */
#include "dataplane/admission/window.h"

void dp_window_init(struct dp_window *w, uint32_t owners_max, uint64_t bytes_max)
{
	*w = (struct dp_window){ .owners_max = owners_max, .bytes_max = bytes_max };
}

bool dp_window_fits(const struct dp_window *w, uint64_t bytes)
{
	if (w->owners == 0)
		return true;
	return w->owners < w->owners_max && w->bytes < w->bytes_max && bytes <= w->bytes_max - w->bytes;
}

void dp_window_take(struct dp_window *w, uint64_t bytes)
{
	w->owners++;
	w->bytes += bytes;
}

void dp_window_give(struct dp_window *w, uint64_t bytes)
{
	w->owners--;
	w->bytes -= bytes;
}
