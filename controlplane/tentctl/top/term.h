/* SPDX-License-Identifier: Apache-2.0
 * The terminal as a live screen: its size, raw keys, the alternate screen; always put back. One per process. */
#ifndef TCTL_TOP_TERM_H
#define TCTL_TOP_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Takes over standard input and output. False when they are no terminal. Undone by close, also at exit. */
bool tctl_term_open(void);
void tctl_term_close(void);
/* 80x24 when it cannot be known. */
void tctl_term_size(unsigned *width, unsigned *height);
/* Does the terminal show UTF-8 (by LC_ALL, LC_CTYPE, LANG)? */
bool tctl_term_utf8(void);
/* Writes a whole frame from the top left corner. */
void tctl_term_frame(const char *text, size_t len);
/* Waits for a key, a new size or the time: the key, 0 otherwise. */
int tctl_term_key(uint64_t timeout_ns);

#endif
