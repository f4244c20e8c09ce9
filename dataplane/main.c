/* SPDX-License-Identifier: Apache-2.0
 * Entry of tent-dataplane. */
#include "common/std_fds.h"
#include "dataplane/daemon.h"

int main(int argc, char **argv)
{
	struct tn_daemon_args args = { .program = "tent-dataplane",
	                               .purpose = "Moves bytes between memory of this host's applications and its peers." };
	struct tn_config *config;
	if (!tn_std_fds_open())
		return 1;
	int rc = tn_daemon_args_parse(&args, argc, argv);

	if (rc >= 0)
		return rc;
	if (tn_daemon_config(&args, &config) != TN_OK)
		return 1;
	return dp_daemon_run(&args, config);
}
