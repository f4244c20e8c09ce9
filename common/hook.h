/* SPDX-License-Identifier: Apache-2.0
 * Named fault points for tests (preset option TENT_HOOKS; in other builds they are nothing at all). A test sets the
 * environment variable TENT_HOOK to one or more comma-separated orders  name=action[:arg][@nth] :
 *   pause:MS (sleep)  kill (SIGKILL self)  stop (SIGSTOP self)  exit[:CODE] (_exit, default 1)
 *   fail (TN_HOOK_FAIL is true)
 * nth (from 1) fires on that pass only; without it on every pass. A wrong order ends the process with status 2, so that
 * no test passes by a typing mistake. Names are the list in hook.def. Any thread. */
#ifndef TN_HOOK_H
#define TN_HOOK_H

#include <stdbool.h>
#include <stddef.h>

#include "common/compiler.h"

enum tn_hook {
#define HOOK(name, where) TN_HOOK_##name,
#include "common/hook.def"
#undef HOOK
	TN_HOOK_CNT
};

/* Names in the order of the enum, in every build; for tests and `--version`-like listings. */
const char *const *tn_hook_names(size_t *cnt_out);

#if TENT_HOOKS
/* One pass of the fault point; true when the order for it is "fail". */
bool tn_hook_pass(enum tn_hook hook);
/* Replaces all orders of this process (tests of one process; NULL or "" = none) and restarts the pass counts.
 * False, with a line on stderr, when the text is wrong; the orders are then unchanged. No other thread may be inside a
 * fault point meanwhile. */
bool tn_hook_set(const char *orders);
#define TN_HOOK(name) ((void)tn_hook_pass(TN_HOOK_##name))
#define TN_HOOK_FAIL(name) tn_unlikely(tn_hook_pass(TN_HOOK_##name))
/* Is there an order for it? For code that must first make the moment (half of a write) that the fault point names. */
bool tn_hook_armed(enum tn_hook hook);
#define TN_HOOK_ARMED(name) tn_unlikely(tn_hook_armed(TN_HOOK_##name))
#else
#define TN_HOOK(name) ((void)0)
#define TN_HOOK_FAIL(name) false
#define TN_HOOK_ARMED(name) false
#endif

#endif
