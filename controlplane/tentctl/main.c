/* SPDX-License-Identifier: Apache-2.0
 * The executable tentctl. Everything is in the library beside it, so that tests run the same program. */
#include <signal.h>

#include "common/std_fds.h"
#include "controlplane/tentctl/tentctl.h"

int main(int argc, char **argv)
{
	if (!tn_std_fds_open())
		return TCTL_FAILED;
	(void)signal(SIGPIPE,
		     SIG_IGN); /* a closed pipe is an error of a write, after which files are still cleaned up */
	return tctl_run(argc, argv);
}
