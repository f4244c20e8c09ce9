/* SPDX-License-Identifier: Apache-2.0
 * Lines of a screen, built into a text: cut at the width, never more than the height, coloured where that makes sense.
 * The caller writes the text to the terminal in one piece. */
#ifndef TCTL_TOP_CANVAS_H
#define TCTL_TOP_CANVAS_H

#include <stdbool.h>

#include "common/compiler.h"
#include "common/text_buf.h"
#include "controlplane/tentctl/style.h"

struct tctl_canvas {
	struct tn_text text;
	unsigned width, height;      /* height 0: as many rows as there are */
	unsigned row, column;
	unsigned ends;               /* lines that are over, but whose end is not written yet */
	bool colour, utf8;
	bool screen;                 /* on a live screen: every line begins with an erased one, none scrolls */
};

void tctl_canvas_init(struct tctl_canvas *c, unsigned width, unsigned height);
void tctl_canvas_free(struct tctl_canvas *c);
void tctl_canvas_reset(struct tctl_canvas *c);
/* Text of ASCII, cut at the right edge. */
void tctl_put(struct tctl_canvas *c, enum tctl_style style, const char *fmt, ...) TN_PRINTF(3, 4);
/* The same, then blanks up to `width` columns of its own; right: blanks first. Left out when it would not fit whole. */
void tctl_put_cell(struct tctl_canvas *c, enum tctl_style style, unsigned width, bool right, const char *text);
/* A bar of `cells` columns, filled to permille. */
void tctl_put_bar(struct tctl_canvas *c, enum tctl_style style, unsigned cells, unsigned permille);
/* One column per value, as high as value / max. */
void tctl_put_spark(struct tctl_canvas *c, enum tctl_style style, const double *values, unsigned cnt, double max);
void tctl_newline(struct tctl_canvas *c);
/* Rows that are left; a large number when there is no bottom. */
unsigned tctl_rows_left(const struct tctl_canvas *c);

#endif
