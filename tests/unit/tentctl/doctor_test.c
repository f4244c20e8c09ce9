/* SPDX-License-Identifier: Apache-2.0
 * Every check of the doctor on a host that is made up: files below a root of the test's own, facts in structs. A good
 * host gives no complaint; each thing that is wrong gives its finding with a fix. */
#include "tests/unit/tentctl/run.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/version.h"
#include "controlplane/peer/keys.h"
#include "controlplane/tentctl/doctor/doctor.h"
#include "shm-ring/lease.h"

static char root[96], rundir[128];
static struct tctl_host host;
static struct tctl_pair pair;
static struct tctl_doctor d;
static struct tn_config_errors errors;

static void put(const char *path, const char *text)
{
	char full[512], cmd[640];
	snprintf(full, sizeof full, "%s%s", root, path);
	snprintf(cmd, sizeof cmd, "mkdir -p \"$(dirname %s)\"", full);
	if (system(cmd) != 0)
		abort();
	write_file(full, text, strlen(text));
}

static void add_address(const char *interface, const char *text, bool up)
{
	char why[TN_ERR_TEXT];
	snprintf(host.addrs[host.addr_cnt].interface, sizeof host.addrs[0].interface, "%s", interface);
	CU_ASSERT_EQUAL_FATAL(tn_addr_parse(text, 0, &host.addrs[host.addr_cnt].addr, why), TN_OK);
	host.addrs[host.addr_cnt++].up = up;
}

/* A host without a fault. */
static void good_host(void)
{
	struct tctl_fs fs = { true, true, UINT64_C(1) << 33, UINT64_C(1) << 32 };
	snprintf(root, sizeof root, "%s/root", run_dir());
	snprintf(rundir, sizeof rundir, "%s/run", run_dir());
	put("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3\n");
	put("/proc/self/limits", "Limit                     Soft Limit           Hard Limit           Units     \n"
				 "Max locked memory         8388608              unlimited            bytes     \n"
				 "Max open files            1024                 1048576              files     \n");
	put("/proc/self/cgroup", "0::/system.slice/tent\n");
	put("/sys/fs/cgroup/system.slice/tent/cpu.max", "max 100000\n");
	put("/proc/meminfo",
	    "MemTotal: 16 kB\nHugePages_Total:      64\nHugePages_Free:       32\nHugepagesize:       2048 kB\n");
	put("/proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic\n");
	put("/proc/sys/net/ipv4/tcp_allowed_congestion_control", "reno cubic\n");
	put("/proc/sys/net/core/wmem_max", "1048576\n");
	put("/proc/net/tcp",
	    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n");
	host = (struct tctl_host){ .root = root,
				   .uid = geteuid(),
				   .memfd_seals = true,
				   .populate_write = true,
				   .pidfd = true,
				   .clock_known = true,
				   .clock_synced = true,
				   .clock_error_us = 500,
				   .runtime_fs = fs,
				   .shm_fs = fs };
	add_address("lo", "127.0.0.1", true);
	add_address("lo", "::1", true);
	add_address("eth0", "192.0.2.7", true);
	add_address("eth1", "198.51.100.9", false);
	pair = (struct tctl_pair){ .schema_same = true };
	mkdir(rundir, 0700);
}

/* Runs all checks with keys set ("key=value", ends with NULL). */
static void examine(const char *const *sets)
{
	char key[200], dir[200];
	const char *all[24];
	size_t n = 0;
	struct cp_keys k;
	bool made;
	char err[256];
	snprintf(key, sizeof key, "control/key_file=%s/curve.key", run_dir());
	snprintf(dir, sizeof dir, "runtime_dir=%s", rundir);
	all[n++] = key;
	all[n++] = dir;
	for (; sets != NULL && *sets != NULL; sets++)
		all[n++] = *sets;
	if (cp_keys_ensure(key + strlen("control/key_file="), &k, &made, err, sizeof err) == TN_OK)
		cp_keys_wipe(&k);
	static const char *const no_env[] = { NULL };
	struct tn_config_opts opts = {
		.size = sizeof opts, .sets = all, .set_cnt = n, .env = no_env, .default_path = "/nonexistent/x"
	};
	struct tn_config *config = NULL;
	tctl_doctor_free(&d);
	memset(&errors, 0, sizeof errors);
	if (tn_config_load(&opts, &config, &errors) != TN_OK)
		config = NULL; /* the reasons are in errors */
	d = (struct tctl_doctor){
		.host = &host, .pair = &pair, .config = config, .config_errors = &errors, .dir = rundir
	};
	tctl_doctor_run(&d);
	d.config = NULL;
	tn_config_free(config);
}

static const struct tctl_finding *find(const char *check, enum tctl_grade grade, const char *text)
{
	for (unsigned i = 0; i < d.cnt; i++)
		if (strcmp(d.findings[i].check, check) == 0 && d.findings[i].grade == grade &&
		    strstr(d.findings[i].what, text) != NULL)
			return &d.findings[i];
	return NULL;
}

static void has(const char *check, enum tctl_grade grade, const char *text, const char *fix)
{
	const struct tctl_finding *f = find(check, grade, text);
	bool good = f != NULL && strstr(f->fix, fix) != NULL && (grade == TCTL_GRADE_OK || f->fix[0] != '\0');
	CU_ASSERT_TRUE(good);
	if (good)
		return;
	fprintf(stderr, "wanted %s %s \"%s\" fix \"%s\"; got:\n", check, tctl_grade_text(grade), text, fix);
	tctl_doctor_print(&d, false, stderr);
}

#define OK TCTL_GRADE_OK
#define WARN TCTL_GRADE_WARN
#define FAIL TCTL_GRADE_FAIL
#define SETS(...) (const char *const[]){ __VA_ARGS__, NULL }

static void a_good_host(void)
{
	good_host();
	examine(NULL);
	CU_ASSERT_EQUAL(tctl_doctor_count(&d, FAIL), 0);
	CU_ASSERT_EQUAL(tctl_doctor_count(&d, WARN), 0);
	if (tctl_doctor_count(&d, FAIL) + tctl_doctor_count(&d, WARN) > 0)
		tctl_doctor_print(&d, true, stderr);
	for (const struct tctl_check *c = tctl_checks; c->group != NULL; c++) {
		unsigned n = 0;
		for (unsigned i = 0; i < d.cnt; i++)
			n += strcmp(d.findings[i].group, c->group) == 0 && strcmp(d.findings[i].check, c->name) == 0;
		CU_ASSERT_TRUE(n > 0); /* every check says something */
	}
	has("hugepages", OK, "32 of 64 hugepages of 2.00MiB", "");
	has("open-files", OK, "may open 1048576", "");
	has("affinity", OK, "3 workers, 4 CPUs", "");
}

static void kernel(void)
{
	good_host();
	host.memfd_seals = host.populate_write = host.pidfd = host.clock_synced = false;
	put("/proc/sys/kernel/yama/ptrace_scope", "2\n");
	examine(SETS("transports/tcp/congestion_control=bbr", "transports/tcp/send_buffer_bytes=8MiB"));
	has("features", FAIL, "cannot register memory", "seccomp");
	has("features", WARN, "MADV_POPULATE_WRITE", "5.14");
	has("features", WARN, "pidfd", "5.14");
	has("ptrace", OK, "ptrace_scope is 2", "");
	has("congestion", FAIL, "\"bbr\" is not available", "modprobe tcp_bbr");
	has("socket-buffers", WARN, "cuts it to 1.00MiB", "sysctl -w net.core.wmem_max=8388608");
	has("synchronised", WARN, "not synchronised", "timedatectl set-ntp true");
	put("/proc/sys/net/ipv4/tcp_available_congestion_control", "reno cubic bbr\n");
	host.uid = 1234;
	examine(SETS("transports/tcp/congestion_control=bbr"));
	has("congestion", FAIL, "for root only", "tcp_allowed_congestion_control=\"reno cubic bbr\"");
}

static void memory_and_limits(void)
{
	good_host();
	put("/proc/meminfo", "HugePages_Total:      64\nHugePages_Free:       0\nHugepagesize:       2048 kB\n");
	put("/proc/self/limits", "Max locked memory         65536              65536              bytes     \n"
				 "Max open files            1024                 4096                 files     \n");
	host.runtime_fs.free_bytes = 1 << 20;
	host.runtime_fs.tmpfs = false;
	host.shm_fs.free_bytes = 4096;
	examine(NULL);
	has("hugepages", WARN, "all 64 hugepages", "vm.nr_hugepages=128");
	has("memlock", OK, "64.0KiB", "");
	has("open-files", WARN, "may open 4096 files", "ulimit -n ");
	has("shm", FAIL, "only 1.00MiB", "mount -o remount");
	has("shm", WARN, "not on tmpfs", "runtime_dir");
	has("shm", FAIL, "/dev/shm: only 4.00KiB", "remount");
	pair.dataplane = (struct tctl_daemon){ .held = true, .pid = 77 };
	put("/proc/77/limits", "Max open files            256                 256                 files     \n");
	put("/proc/77/status", "Cpus_allowed_list:\t0-1\n");
	examine(NULL);
	has("open-files", FAIL, "the running data plane may open 256", "prlimit --pid 77 --nofile=");
	has("affinity", OK, "1 worker, 2 CPUs", "");
}

static void cpus(void)
{
	good_host();
	examine(SETS("workers/cpus=0,9"));
	has("affinity", FAIL, "names CPU 9", "workers/cpus");
	examine(SETS("workers/count=4", "poll/mode=busy"));
	has("affinity", WARN, "4 workers without sleep for 4 CPUs", "workers/count to 3");
	put("/sys/fs/cgroup/system.slice/cpu.max", "150000 100000\n"); /* a level above counts too */
	examine(NULL);
	has("cgroup", WARN, "may use 1.50 CPUs", "CPUQuota=400%");
	put("/sys/fs/cgroup/system.slice/cpu.max", "900000 100000\n");
	examine(NULL);
	has("cgroup", OK, "9.00 CPUs", "");
	put("/proc/self/cgroup", "4:cpu,cpuacct:/box\n0::/\n");
	put("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
	put("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
	examine(NULL);
	has("cgroup", WARN, "0.50 CPUs", "CPUQuota");
	put("/sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
	examine(NULL);
	has("cgroup", OK, "no CPU quota", "");
}

#define KEY "&c(BCtOoHO9i9h1-s%f.Y>xjg}fOQj6B0fQB)E*x"
#define FAR "peers=[{\"name\":\"far\",\"address\":\"tcp://203.0.113.5:9816\",\"public_key\":\"%s\"}]"

static void addresses(void)
{
	char peers[256];
	good_host();
	examine(SETS("transports/tcp/bind_address=10.1.2.3", "control/bind=tcp://198.51.100.9:9816"));
	has("addresses", FAIL, "bind_address is 10.1.2.3, which no interface",
	    "set transports/tcp/bind_address to \"192.0.2.7\"");
	has("addresses", WARN, "on eth1, which is down", "ip link set eth1 up");
	examine(SETS("transports/tcp/bind_address=0.0.0.0", "transports/tcp/advertise_addresses=203.0.113.77"));
	has("addresses", OK, "0.0.0.0: every address", "");
	has("addresses", WARN, "right only behind address translation", "[\"192.0.2.7\"]");
	snprintf(peers, sizeof peers, FAR, KEY);
	examine(SETS(peers));
	has("reachable", FAIL, "control/bind is a loopback address", "set control/bind to tcp://192.0.2.7:9816");
	has("reachable", FAIL, "told to send data to 127.0.0.1", "set transports/tcp/bind_address to \"192.0.2.7\"");
	examine(SETS(peers, "control/bind=tcp://192.0.2.7:9816", "transports/tcp/bind_address=192.0.2.7"));
	has("reachable", OK, "not loopback", "");
}

#define LISTENER(address, port, inode)                                                                                 \
	"   0: " address ":" port " 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 " inode     \
	" 1 0\n"

static void ports(void)
{
	char link[512];
	good_host();
	put("/proc/net/tcp",
	    "  sl  local_address\n" LISTENER("0100007F", "2658", "4711") LISTENER("00000000", "2657", "4712"));
	put("/proc/net/tcp6", "  sl\n" LISTENER("00000000000000000000000000000000", "1F90", "4713"));
	put("/proc/55/comm", "nginx\n");
	put("/proc/55/fd/x", "");
	snprintf(link, sizeof link, "%s/proc/55/fd/4", root);
	CU_ASSERT_EQUAL(symlink("socket:[4711]", link), 0);
	examine(SETS("transports/tcp/port=8080"));
	has("ports", FAIL, "peers: 127.0.0.1:9816 is taken by nginx (pid 55)", "stop pid 55, or set control/bind");
	has("ports", FAIL, "metrics: 127.0.0.1:9815 is taken by a process of another user", "ss -ltnp 'sport = :9815'");
	has("ports", FAIL, "data lanes: 127.0.0.1:8080 is taken", "transports/tcp/port");
	pair.controlplane = (struct tctl_daemon){
		.held = true, .pid = 55, .answered = true, .version = TN_VERSION, .commit = TN_COMMIT
	};
	examine(SETS("transports/tcp/port=0"));
	has("ports", OK, "served by pid 55", "");
	has("ports", OK, "data lanes: any free port", "");
	examine(SETS("control/bind=tcp://127.0.0.1:4444"));
	has("ports", WARN, "127.0.0.1:4444 is free, although the daemon runs", "restart the daemon (pid 55)");
}

static void keys(void)
{
	char path[200], err[256], peers[900];
	struct cp_keys k;
	good_host();
	examine(NULL);
	has("own", OK, "both halves belong together", "");
	snprintf(path, sizeof path, "%s/curve.key", run_dir());
	CU_ASSERT_EQUAL_FATAL(cp_keys_load(path, &k, err, sizeof err), TN_OK);
	snprintf(peers, sizeof peers,
		 "peers=[{\"name\":\"me\",\"address\":\"tcp://127.0.0.1:1\",\"public_key\":\"%s\"}]", k.public_text);
	examine(SETS(peers));
	has("peers", FAIL, "peer me has this host's own public key", "keygen --show");
	for (unsigned i = 0; i < d.cnt; i++)
		CU_ASSERT_PTR_NULL(strstr(d.findings[i].what, k.secret_text));
	chmod(path, 0644);
	examine(NULL);
	has("own", FAIL, "others may read", "chmod 600");
	chmod(path, 0600);
	write_file(path, "public x\nsecret y\n", 18);
	examine(NULL);
	has("own", FAIL, "not a key file", ".bad && tentctl keygen");
	unlink(path);
	examine(SETS("control/insecure=true"));
	has("own", WARN, "control/insecure", "remove control/insecure");
}

static void runtime(void)
{
	char path[300];
	good_host();
	chmod(rundir, 0777);
	snprintf(path, sizeof path, "%s/attach.sock", rundir);
	write_file(path, "", 0);
	snprintf(path, sizeof path, "%s/bus.ipc", rundir);
	write_file(path, "", 0);
	snprintf(path, sizeof path, "%s/dataplane-1.tele", rundir);
	write_file(path, "", 0);
	examine(NULL);
	has("directory", FAIL, "may be written by others (mode 777)", "chmod 0700");
	has("leftovers", WARN, "attach.sock is left of a data plane", "rm -f attach.sock");
	has("leftovers", WARN, "bus.ipc: left of a control plane", "rm -f bus.ipc");
	has("telemetry", WARN, "never finished", "rm ");
	chmod(rundir, 0700);
	pair.dataplane = (struct tctl_daemon){ .held = true };
	pair.controlplane = (struct tctl_daemon){ .held = true };
	examine(NULL);
	has("leftovers", OK, "no sockets", "");
	memset(rundir, 'x', sizeof rundir - 1);
	rundir[0] = '/';
	d.dir = rundir;
	tctl_check_socket_path((d.running = tctl_checks, &d));
	CU_ASSERT_PTR_NOT_NULL(strstr(d.findings[d.cnt - 1].what, "is too long"));
}

static void a_dead_generation(void)
{
	struct shr_tele t;
	struct shr_tele_cfg cfg = { .worker_cnt = 1,
				    .cell_cnt = TN_METRIC_CELL_CNT,
				    .event_slots = 8,
				    .keep_slots = 8,
				    .schema_hash = tn_metric_schema_hash(),
				    .session = { { 1 } },
				    .metrics_compiled = true,
				    .build = "x y z" };
	char cmd[300];
	good_host();
	snprintf(cmd, sizeof cmd, "rm -f %s/*", rundir);
	CU_ASSERT_EQUAL(system(cmd), 0);
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(rundir, &cfg, &t), TN_OK);
	tn_store_relaxed32(&t.hdr->state, SHR_TELE_RUNNING);
	examine(NULL);
	has("telemetry", WARN, "generation 1 of the data plane died", "tentctl postmortem 1");
	tn_store_relaxed32(&t.hdr->state, SHR_TELE_STOPPED);
	examine(NULL);
	has("telemetry", OK, "1 telemetry file, nothing died", "");
	shr_tele_close(&t);
}

static void daemons(void)
{
	good_host();
	pair.dataplane =
	    (struct tctl_daemon){ .held = true, .pid = 5, .answered = true, .version = "99.1.0", .commit = "abc" };
	pair.dataplane_hung = true;
	pair.schema_same = false;
	examine(NULL);
	has("alive", FAIL, "data plane (pid 5) lives, but gave no sign", "kill -CONT 5");
	has("alive", WARN, "no control plane runs", "start tent-controlplane");
	has("versions", FAIL, "different major versions", "one version everywhere");
	has("versions", WARN, "another layout", "restart the older");
	pair = (struct tctl_pair){ .controlplane = { .held = true, .pid = 6 }, .schema_same = true };
	snprintf(pair.controlplane.error, sizeof pair.controlplane.error, "no answer in time");
	examine(NULL);
	has("alive", FAIL, "(pid 6) does not answer: no answer in time", "kill -CONT 6");
	has("alive", FAIL, "no data plane runs", "start tent-dataplane");
}

static void a_wrong_configuration(void)
{
	good_host();
	examine(SETS("poll/mode=fast"));
	has("file", FAIL, "poll/mode", "tentctl config check");
	CU_ASSERT_PTR_NULL(find("ports", OK, ""));        /* what needs the configuration is silent */
	CU_ASSERT_PTR_NOT_NULL(find("features", OK, "")); /* the rest is not */
	json_t *j = tctl_doctor_json(&d);
	CU_ASSERT_TRUE(json_is_false(json_object_get(j, "ok")));
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json_object_get(j, "counts"), "fail")),
			(json_int_t)tctl_doctor_count(&d, FAIL));
	json_decref(j);
	tctl_doctor_free(&d);
}

static void the_verb(void)
{
	run_dir();
	int rc = run("-j", "doctor", NULL);
	json_t *j = run_json();
	CU_ASSERT_PTR_NOT_NULL_FATAL(j);
	CU_ASSERT_EQUAL(rc, json_is_true(json_object_get(j, "ok")) ? TCTL_OK : TCTL_FAILED);
	CU_ASSERT_TRUE(json_array_size(json_object_get(j, "findings")) > 15);
	json_decref(j);
	CU_ASSERT_EQUAL(run("doctor", "--set", "poll/mode=fast", "-q", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "FAIL  file"));
	CU_ASSERT_PTR_NULL(strstr(ran.out, "ok    "));
	CU_ASSERT_EQUAL(run("doctor", "twice", NULL), TCTL_USAGE);
	run_dir_remove();
}

TN_TEST_MAIN("tentctl doctor",
	{ "a good host gives no complaint", a_good_host },
	{ "kernel and clock", kernel },
	{ "memory, files, room", memory_and_limits },
	{ "CPUs and quotas", cpus },
	{ "addresses", addresses },
	{ "ports and who holds them", ports },
	{ "keys", keys },
	{ "the runtime directory", runtime },
	{ "a generation that died", a_dead_generation },
	{ "the daemons", daemons },
	{ "a configuration that does not load", a_wrong_configuration },
	{ "the verb on this very host", the_verb })
