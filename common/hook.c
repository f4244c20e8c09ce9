/* SPDX-License-Identifier: Apache-2.0
 * Owner of the fault orders of this process: reads TENT_HOOK once at the first pass, counts passes, acts. Any thread:
 * orders are written before they are used, pass counts are atomic. Empty except for the names without TENT_HOOKS. */
#include "common/hook.h"

static const char *const names[] = {
#define HOOK(name, where) #name,
#include "common/hook.def"
#undef HOOK
};

const char *const *tn_hook_names(size_t *cnt_out)
{
	*cnt_out = TN_ARRAY_LEN(names);
	return names;
}

#if TENT_HOOKS

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/atomic.h"

enum action { ACTION_NONE, ACTION_PAUSE, ACTION_KILL, ACTION_STOP, ACTION_EXIT, ACTION_FAIL };

struct order { enum action action; unsigned arg; uint32_t nth; };

struct known { const char *text; enum action action; bool takes_arg, needs_arg; unsigned default_arg; };

static const struct known actions[] = {
	{ "pause", ACTION_PAUSE, true, true, 0 },   { "kill", ACTION_KILL, false, false, 0 },
	{ "stop", ACTION_STOP, false, false, 0 },   { "exit", ACTION_EXIT, true, false, 1 },
	{ "fail", ACTION_FAIL, false, false, 0 },
};

static struct order orders[TN_HOOK_CNT];
static tn_a32 passes[TN_HOOK_CNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool number(const char *s, unsigned max, unsigned *out)
{
	if (s[0] < '0' || s[0] > '9')
		return false;
	char *end;
	errno = 0;
	unsigned long v = strtoul(s, &end, 10);
	if (errno != 0 || *end != '\0' || v > max)
		return false;
	*out = (unsigned)v;
	return true;
}

/* `text` is cut apart in place: name=action[:arg][@nth] */
static bool order_parse(char *text, struct order table[TN_HOOK_CNT])
{
	char *eq = strchr(text, '=');
	if (eq == NULL)
		return false;
	*eq = '\0';
	char *at = strchr(eq + 1, '@'), *colon = strchr(eq + 1, ':');
	if (at != NULL)
		*at = '\0';
	if (colon != NULL)
		*colon = '\0';
	size_t hook = 0, a = 0;
	while (hook < TN_HOOK_CNT && strcmp(names[hook], text) != 0)
		hook++;
	while (a < TN_ARRAY_LEN(actions) && strcmp(actions[a].text, eq + 1) != 0)
		a++;
	if (hook == TN_HOOK_CNT || a == TN_ARRAY_LEN(actions))
		return false;
	struct order o = { actions[a].action, actions[a].default_arg, 0 };
	if (colon == NULL ? actions[a].needs_arg : !actions[a].takes_arg || !number(colon + 1, 3600000, &o.arg))
		return false;
	if (at != NULL && (!number(at + 1, INT32_MAX, &o.nth) || o.nth == 0))
		return false;
	table[hook] = o;
	return true;
}

static bool orders_apply(const char *text)
{
	struct order table[TN_HOOK_CNT] = { 0 };
	char copy[1024], *save = NULL;
	if (text == NULL)
		text = "";
	if (strlen(text) >= sizeof copy) {
		fprintf(stderr, "TENT_HOOK: longer than %zu bytes\n", sizeof copy - 1);
		return false;
	}
	strcpy(copy, text);
	for (char *one = strtok_r(copy, ",", &save); one != NULL; one = strtok_r(NULL, ",", &save)) {
		if (!order_parse(one, table)) {
			fprintf(stderr, "TENT_HOOK: wrong order \"%s\" in \"%s\"; expected name=action[:arg][@nth]\n", one, text);
			return false;
		}
	}
	memcpy(orders, table, sizeof orders);
	for (size_t i = 0; i < TN_HOOK_CNT; i++)
		tn_store_relaxed32(&passes[i], 0);
	return true;
}

static void read_environment(void)
{
	if (!orders_apply(getenv("TENT_HOOK")))
		_exit(2);
}

bool tn_hook_set(const char *text)
{
	(void)pthread_once(&once, read_environment);   /* a later first pass must not bring the environment back */
	return orders_apply(text);
}

bool tn_hook_armed(enum tn_hook hook)
{
	(void)pthread_once(&once, read_environment);
	return orders[hook].action != ACTION_NONE;
}

bool tn_hook_pass(enum tn_hook hook)
{
	(void)pthread_once(&once, read_environment);
	struct order o = orders[hook];
	if (tn_likely(o.action == ACTION_NONE))
		return false;
	uint32_t pass = tn_fetch_add32(&passes[hook], 1) + 1;
	if (o.nth != 0 && pass != o.nth)
		return false;
	switch (o.action) {
	case ACTION_PAUSE: {
		struct timespec ts = { (time_t)(o.arg / 1000), (long)(o.arg % 1000) * 1000000 };
		while (nanosleep(&ts, &ts) != 0 && errno == EINTR) { }
		return false;
	}
	case ACTION_KILL: (void)kill(getpid(), SIGKILL); return false;
	case ACTION_STOP: (void)raise(SIGSTOP); return false; /* to this thread, so that it does not run on; all stop with it */
	case ACTION_EXIT: _exit((int)o.arg);
	case ACTION_FAIL: return true;
	case ACTION_NONE: break;
	}
	return false;
}

#endif
