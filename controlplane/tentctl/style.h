/* SPDX-License-Identifier: Apache-2.0
 * Colour for people: only on a terminal, never when NO_COLOR is set or TERM is dumb. Meaning never hangs on colour
 * alone. */
#ifndef TCTL_STYLE_H
#define TCTL_STYLE_H

#include <stdbool.h>
#include <stdio.h>

enum tctl_style { TCTL_PLAIN, TCTL_BOLD, TCTL_DIM, TCTL_GOOD, TCTL_WARN, TCTL_BAD, TCTL_STYLE_CNT };

/* True when escapes make sense there. */
bool tctl_style_on(FILE *to);
/* The escape that switches to a style (PLAIN switches everything off), "" where there is no colour. Static. */
const char *tctl_style(FILE *to, enum tctl_style style);
/* Nothing that came from outside may steer a terminal: control bytes and bytes beyond ASCII become '?'. Returns buf. */
char *tctl_clean(char *buf);

#endif
