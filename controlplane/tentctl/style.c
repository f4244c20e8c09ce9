/* SPDX-License-Identifier: Apache-2.0
 * The escapes of the few styles, and the guard against foreign ones. */
#include "controlplane/tentctl/style.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool tctl_style_on(FILE *to)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
	return isatty(fileno(to)) && (no_color == NULL || no_color[0] == '\0') && term != NULL &&
	       strcmp(term, "dumb") != 0;
}

const char *tctl_style(FILE *to, enum tctl_style style)
{
	static const char *const escape[TCTL_STYLE_CNT] = {
		[TCTL_PLAIN] = "\033[0m", [TCTL_BOLD] = "\033[1m", [TCTL_DIM] = "\033[2m", [TCTL_GOOD] = "\033[32m",
		[TCTL_WARN] = "\033[33m", [TCTL_BAD] = "\033[1;31m",
	};
	return (unsigned)style < TCTL_STYLE_CNT && tctl_style_on(to) ? escape[style] : "";
}

char *tctl_clean(char *buf)
{
	for (char *p = buf; *p != '\0'; p++)
		if ((unsigned char)*p < ' ' || (unsigned char)*p >= 127)
			*p = '?';
	return buf;
}
