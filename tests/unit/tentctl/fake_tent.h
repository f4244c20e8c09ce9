/* SPDX-License-Identifier: Apache-2.0
 * A libtent inside the test: segments are memory of the same process, requests are copies that complete at once, and
 * the test can make them fail. One thread. */
#ifndef TCTL_TEST_FAKE_TENT_H
#define TCTL_TEST_FAKE_TENT_H

#include <stdbool.h>

#include <tent/tent.h>

/* What the next requests do, counted from the last fake_reset(): request number `at` (1, 2 ...) ends so. */
struct fake_fault {
	unsigned at;
	unsigned count;          /* this many in a row */
	tent_status status;      /* not OK: fails with it */
	bool landed;             /* the copy was made all the same */
	bool held;               /* memory_busy; released with the next wait */
	bool refused;            /* tent_submit() itself refuses */
	bool lost;               /* accepted and never completed */
};

struct fake_state {
	struct fake_fault fault;
	unsigned requests, notices, opens, opens_failed;
	unsigned note_fails;             /* so many notices complete FAILED with queue_full */
	unsigned opens_fail;             /* so many tent_segment_open() fail with open_status */
	tent_status open_status;
	bool handles_stale;              /* all open handles are; a new one is not */
	void (*on_note)(const tent_note *note);   /* a notice arrived */
	void (*on_request)(unsigned number);      /* before its copy */
	void (*after_request)(unsigned number);
};
extern struct fake_state fake;

void fake_reset(void);

#endif
