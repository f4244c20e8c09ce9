/* SPDX-License-Identifier: Apache-2.0
 * Entry of tent-controlplane. */
#include "common/std_fds.h"
#include "controlplane/daemon.h"

int main(int argc, char **argv)
{
	struct tn_daemon_args args = { .program = "tent-controlplane",
				       .purpose = "Keeps segment metadata, talks to peers, answers tentctl and Prometheus." };
	struct tn_config *config;
	if (!tn_std_fds_open())
		return 1;
	int rc = tn_daemon_args_parse(&args, argc, argv);
	if (rc >= 0)
		return rc;
	if (tn_daemon_config(&args, &config) != TN_OK)
		return 1;
	return cp_daemon_run(&args, config);
}
