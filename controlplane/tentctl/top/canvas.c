/* SPDX-License-Identifier: Apache-2.0
 * The canvas. Only ASCII comes in from outside; wider glyphs are this file's own, and it counts their columns. */
#include "controlplane/tentctl/top/canvas.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1 << 20 };

void tctl_canvas_init(struct tctl_canvas *c, unsigned width, unsigned height)
{
	*c = (struct tctl_canvas){ .width = width, .height = height };
	tn_text_init(&c->text, TEXT_MAX);
}

void tctl_canvas_free(struct tctl_canvas *c) { tn_text_free(&c->text); }

void tctl_canvas_reset(struct tctl_canvas *c)
{
	tn_text_reset(&c->text);
	c->row = c->column = c->ends = 0;
}

unsigned tctl_rows_left(const struct tctl_canvas *c)
{
	return c->height == 0 ? UINT_MAX : c->height > c->row ? c->height - c->row : 0;
}

static const char *escape(enum tctl_style style)
{
	static const char *const text[TCTL_STYLE_CNT] = { [TCTL_BOLD] = "\033[1m",  [TCTL_DIM] = "\033[2m",
							  [TCTL_GOOD] = "\033[32m", [TCTL_WARN] = "\033[33m",
							  [TCTL_BAD] = "\033[1;31m" };
	return text[style];
}

/* Line ends are written when something follows: the last row of a screen must not end, or it would scroll. */
static void flush_ends(struct tctl_canvas *c)
{
	if (c->screen && c->text.len == 0)
		tn_text_str(&c->text, "\033[K");
	for (; c->ends > 0; c->ends--)
		tn_text_str(&c->text, "\r\n\033[K");
}

/* Room is left. True: something is switched on and end() must follow. */
static bool begin(struct tctl_canvas *c, enum tctl_style style)
{
	flush_ends(c);
	if (!c->colour || style == TCTL_PLAIN)
		return false;
	tn_text_str(&c->text, escape(style));
	return true;
}

static void end(struct tctl_canvas *c, bool styled)
{
	if (styled)
		tn_text_str(&c->text, "\033[0m");
}

static unsigned room(const struct tctl_canvas *c)
{
	return tctl_rows_left(c) == 0 || c->column >= c->width ? 0 : c->width - c->column;
}

static void add(struct tctl_canvas *c, enum tctl_style style, const char *text)
{
	size_t n = strlen(text);
	n = n > room(c) ? room(c) : n;
	if (n == 0)
		return;
	bool styled = begin(c, style);
	tn_text_add(&c->text, text, n);
	c->column += (unsigned)n;
	end(c, styled);
}

void tctl_put(struct tctl_canvas *c, enum tctl_style style, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	add(c, style, tctl_clean(text));
}

void tctl_put_cell(struct tctl_canvas *c, enum tctl_style style, unsigned width, bool right, const char *text)
{
	unsigned n = (unsigned)strnlen(text, width);
	if (room(c) < width) {
		c->column = c->width;
		return;
	}
	if (right)
		tctl_put(c, TCTL_PLAIN, "%*s", (int)(width - n), "");
	tctl_put(c, style, "%.*s", (int)n, text);
	if (!right)
		tctl_put(c, TCTL_PLAIN, "%*s", (int)(width - n), "");
}

/* Glyphs of eighths, from empty to full. */
static const char *const across[] = { " ",      "\u258f", "\u258e", "\u258d", "\u258c",
				      "\u258b", "\u258a", "\u2589", "\u2588" };
static const char *const upward[] = { " ",      "\u2581", "\u2582", "\u2583", "\u2584",
				      "\u2585", "\u2586", "\u2587", "\u2588" };

static void glyph(struct tctl_canvas *c, const char *utf8, char ascii)
{
	if (room(c) == 0)
		return;
	if (c->utf8)
		tn_text_str(&c->text, utf8);
	else
		tn_text_char(&c->text, ascii);
	c->column++;
}

void tctl_put_bar(struct tctl_canvas *c, enum tctl_style style, unsigned cells, unsigned permille)
{
	if (room(c) == 0)
		return;
	unsigned eighths = (permille > 1000 ? 1000 : permille) * cells * 8 / 1000, i = 0;
	bool styled = begin(c, style);
	for (; eighths > 0; i++) {
		unsigned here = eighths >= 8 ? 8 : eighths;
		eighths -= here;
		glyph(c, across[here], here >= 4 ? '#' : '.');
	}
	end(c, styled);
	styled = begin(c, TCTL_DIM);
	for (; i < cells; i++)
		glyph(c, "\u00b7", '.');
	end(c, styled);
}

void tctl_put_spark(struct tctl_canvas *c, enum tctl_style style, const double *values, unsigned cnt, double max)
{
	static const char ascii[] = " ..::--=#";
	if (room(c) == 0)
		return;
	bool styled = begin(c, style);
	for (unsigned i = 0; i < cnt; i++) {
		unsigned level = max > 0 && values[i] > 0 ? 1 + (unsigned)(values[i] / max * 7.0) : 0;
		level = level > 8 ? 8 : level;
		glyph(c, upward[level], ascii[level]);
	}
	end(c, styled);
}

void tctl_newline(struct tctl_canvas *c)
{
	c->column = 0;
	if (tctl_rows_left(c) == 0)
		return;
	c->row++;
	if (c->screen)
		c->ends++;
	else
		tn_text_char(&c->text, '\n');
}
