/* SPDX-License-Identifier: Apache-2.0
 * The table of checks, in the order in which they are shown. To add one: a row here, its function in the file of its
 * group, a case in tests/unit/tentctl/doctor_test.c. */
#include "controlplane/tentctl/doctor/doctor.h"

const struct tctl_check tctl_checks[] = {
	{ "config", "file", tctl_check_config, 0 },
	{ "kernel", "features", tctl_check_features, 0 },
	{ "kernel", "ptrace", tctl_check_ptrace, 0 },
	{ "kernel", "congestion", tctl_check_congestion, TCTL_NEEDS_CONFIG },
	{ "kernel", "socket-buffers", tctl_check_socket_buffers, TCTL_NEEDS_CONFIG },
	{ "memory", "hugepages", tctl_check_hugepages, 0 },
	{ "memory", "memlock", tctl_check_memlock, 0 },
	{ "memory", "shm", tctl_check_shm, TCTL_NEEDS_CONFIG },
	{ "limits", "open-files", tctl_check_nofile, TCTL_NEEDS_CONFIG },
	{ "cpu", "affinity", tctl_check_affinity, TCTL_NEEDS_CONFIG },
	{ "cpu", "cgroup", tctl_check_cgroup, TCTL_NEEDS_CONFIG },
	{ "network", "addresses", tctl_check_addresses, TCTL_NEEDS_CONFIG },
	{ "network", "reachable", tctl_check_reachable, TCTL_NEEDS_CONFIG },
	{ "network", "ports", tctl_check_ports, TCTL_NEEDS_CONFIG },
	{ "keys", "own", tctl_check_key_file, TCTL_NEEDS_CONFIG },
	{ "keys", "peers", tctl_check_peers, TCTL_NEEDS_CONFIG },
	{ "runtime", "directory", tctl_check_runtime_dir, 0 },
	{ "runtime", "socket-path", tctl_check_socket_path, 0 },
	{ "runtime", "leftovers", tctl_check_leftovers, 0 },
	{ "runtime", "telemetry", tctl_check_telemetry, 0 },
	{ "daemons", "alive", tctl_check_daemons, 0 },
	{ "daemons", "versions", tctl_check_versions, 0 },
	{ "clock", "synchronised", tctl_check_clock, 0 },
	{ NULL, NULL, NULL, 0 },
};
