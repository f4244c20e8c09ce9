/* SPDX-License-Identifier: Apache-2.0
 * The bar that shows how far a transfer is. */
#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/units.h"
#include "controlplane/tentctl/tentctl.h"

#define REDRAW_NS (100 * TN_NS_PER_MS)
#define WIDTH 30

void tctl_progress_start(struct tctl_progress *p, const char *what, uint64_t total_bytes)
{
	*p = (struct tctl_progress){.what = what, .total = total_bytes, .start_ns = tn_now_ns(), .tty = isatty(2) == 1};
}

void tctl_progress_show(struct tctl_progress *p, uint64_t done)
{
	uint64_t now = tn_now_ns();
	if (!p->tty || (now - p->shown_ns < REDRAW_NS && done < p->total))
		return;
	p->shown_ns = now;
	int filled = p->total == 0 ? WIDTH : (int)(done * WIDTH / p->total);
	double s = (double)(now - p->start_ns) / 1e9;
	fprintf(stderr, "\r%s [", p->what);
	for (int i = 0; i < WIDTH; i++)
		fputc(i < filled ? '=' : i == filled ? '>' : ' ', stderr);
	fprintf(stderr, "] %3d%%  %.2f GB/s ", p->total == 0 ? 100 : (int)(done * 100 / p->total),
		s > 0 ? (double)done / 1e9 / s : 0.0);
	fflush(stderr);
}

void tctl_progress_end(struct tctl_progress *p)
{
	if (p->tty)
		fputs("\r\033[K", stderr);
}
