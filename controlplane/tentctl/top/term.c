/* SPDX-License-Identifier: Apache-2.0
 * The terminal by ANSI escapes and termios. Keys come unbuffered; signals of the keyboard still work (stop.c catches
 * them), except suspend, which would leave the alternate screen behind. */
#include "controlplane/tentctl/top/term.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/clock.h"

static struct termios before;
static bool taken;

static void nothing(int sig) { (void)sig; }

static void put(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, text, len);
		if (n <= 0)
			return;
		text += n;
		len -= (size_t)n;
	}
}

static void put_text(const char *text) { put(text, strlen(text)); }

bool tctl_term_open(void)
{
	if (taken || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) != 0)
		return taken;
	struct termios raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	raw.c_cc[VSUSP] = _POSIX_VDISABLE;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0)
		return false;
	taken = true;
	(void)atexit(tctl_term_close);
	/* Without SA_RESTART, so that a new size ends the wait for keys. */
	struct sigaction sa = { .sa_handler = nothing };
	(void)sigaction(SIGWINCH, &sa, NULL);
	put_text("\033[?1049h\033[?25l\033[2J");
	return true;
}

void tctl_term_close(void)
{
	if (!taken)
		return;
	taken = false;
	put_text("\033[?25h\033[?1049l");
	(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

void tctl_term_size(unsigned *width, unsigned *height)
{
	struct winsize w = { 0 };
	bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0;
	*width = known ? w.ws_col : 80;
	*height = known ? w.ws_row : 24;
}

bool tctl_term_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *v = getenv(names[i]);
		if (v == NULL || v[0] == '\0')
			continue;
		const char *dot = strchr(v, '.');
		return dot != NULL && (strncasecmp(dot + 1, "utf-8", 5) == 0 || strncasecmp(dot + 1, "utf8", 4) == 0);
	}
	return false;
}

void tctl_term_frame(const char *text, size_t len)
{
	put_text("\033[H");
	put(text, len);
	put_text("\033[J");
}

int tctl_term_key(uint64_t timeout_ns)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	unsigned char key;
	if (poll(&p, 1, tn_ns_to_poll_ms(timeout_ns)) <= 0)
		return 0;
	ssize_t n = read(STDIN_FILENO, &key, 1);
	return n == 1 ? key : n == 0 || (p.revents & (POLLHUP | POLLERR)) != 0 ? 'q' : 0;
}
