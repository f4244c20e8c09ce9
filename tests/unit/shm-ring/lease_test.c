/* SPDX-License-Identifier: Apache-2.0
 * The lease against processes that live, stop and die, and names that only their publisher may remove. */
#include "shm-ring/lease.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "tests/unit/shm-ring/fixture.h"

static const struct tn_id128 session = { { 0xde, 0xad, 1 } };

/* A child that takes the lease, says so with one byte ('y' or 'n') and then waits to be killed. */
static pid_t holder(const char *dir, char *said)
{
	int p[2];
	if (pipe(p) != 0)
		abort();
	pid_t pid = fork();
	if (pid == 0) {
		struct shr_lease l;
		bool got = shr_lease_take(dir, "dataplane", &session, &l) == TN_OK;
		(void)!write(p[1], got ? "y" : "n", 1);
		alarm(30); /* never outlives the test run */
		for (;;)
			pause();
	}
	close(p[1]);
	if (read(p[0], said, 1) != 1)
		*said = '?';
	close(p[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void one_holder_only(void)
{
	struct fx_dir d;
	struct shr_lease l = SHR_LEASE_NONE, again = SHR_LEASE_NONE;
	struct shr_lease_info info;
	fx_dir_make(&d);
	CU_ASSERT_EQUAL(shr_lease_read(d.path, "dataplane", &info), TN_NOT_FOUND);
	CU_ASSERT_EQUAL_FATAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_OK);
	CU_ASSERT_EQUAL(shr_lease_take(d.path, "dataplane", &session, &again), TN_BUSY);
	CU_ASSERT_EQUAL(again.fd, -1);
	CU_ASSERT_EQUAL(shr_lease_read(d.path, "dataplane", &info), TN_OK);
	CU_ASSERT(info.held && info.pid == (uint32_t)getpid() && tn_id128_eq(&info.session, &session));
	CU_ASSERT_EQUAL(shr_lease_take(d.path, "controlplane", &session, &again), TN_OK); /* another lease */
	shr_lease_release(&again);
	CU_ASSERT(shr_lease_intact(&l));
	shr_lease_release(&l);
	shr_lease_release(&l);
	CU_ASSERT_FALSE(shr_lease_intact(&l));
	CU_ASSERT_EQUAL(shr_lease_read(d.path, "dataplane", &info), TN_OK);
	CU_ASSERT_FALSE(info.held);
	CU_ASSERT_EQUAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_OK); /* the stale file means nothing */
	shr_lease_release(&l);
	CU_ASSERT_EQUAL(shr_lease_take("/nonexistent/dir", "dataplane", &session, &l), TN_NOT_FOUND);
	fx_dir_remove(&d);
}

static void lives_as_long_as_its_process(void)
{
	struct fx_dir d;
	struct shr_lease l = SHR_LEASE_NONE;
	struct shr_lease_info info;
	char said;
	fx_dir_make(&d);
	pid_t pid = holder(d.path, &said);
	CU_ASSERT_EQUAL(said, 'y');
	CU_ASSERT_EQUAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_BUSY);
	CU_ASSERT_EQUAL(kill(pid, SIGSTOP), 0);
	CU_ASSERT_EQUAL(waitpid(pid, NULL, WUNTRACED), pid);
	/* Stopped is not dead: it may continue at any time. */
	CU_ASSERT_EQUAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_BUSY);
	CU_ASSERT_EQUAL(shr_lease_read(d.path, "dataplane", &info), TN_OK);
	CU_ASSERT(info.held && info.pid == (uint32_t)pid);
	end(pid);
	CU_ASSERT_EQUAL_FATAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_OK);
	char said2;
	pid_t second = holder(d.path, &said2);
	CU_ASSERT_EQUAL(said2, 'n');
	end(second);
	shr_lease_release(&l);
	fx_dir_remove(&d);
}

/* A successor that is faster than the kernel's burial of its predecessor gets in all the same; beside a living one not. */
static void waits_for_a_dying_holder(void)
{
	struct fx_dir d;
	struct shr_lease l = SHR_LEASE_NONE;
	char said;
	fx_dir_make(&d);
	pid_t pid = holder(d.path, &said);
	CU_ASSERT_EQUAL(said, 'y');
	CU_ASSERT_EQUAL(shr_lease_take_until(d.path, "dataplane", &session, tn_now_ns() + 60 * TN_NS_PER_MS, &l), TN_BUSY);
	pid_t killer = fork();
	if (killer == 0) {
		usleep(100000);
		kill(pid, SIGKILL);
		_exit(0);
	}
	CU_ASSERT_EQUAL(shr_lease_take_until(d.path, "dataplane", &session, tn_now_ns() + 20 * TN_NS_PER_S, &l), TN_OK);
	waitpid(killer, NULL, 0);
	waitpid(pid, NULL, 0);
	shr_lease_release(&l);
	fx_dir_remove(&d);
}

static void probing_disturbs_nobody(void)
{
	struct fx_dir d;
	char said;
	fx_dir_make(&d);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(30);
		for (;;) {
			struct shr_lease_info info;
			(void)!shr_lease_read(d.path, "dataplane", &info);
		}
	}
	for (int i = 0; i < 300; i++) {
		struct shr_lease l = SHR_LEASE_NONE;
		CU_ASSERT_EQUAL_FATAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_OK);
		shr_lease_release(&l);
	}
	end(pid);
	pid = holder(d.path, &said);
	CU_ASSERT_EQUAL(said, 'y');
	end(pid);
	fx_dir_remove(&d);
}

static void removed_lock_file_is_noticed(void)
{
	struct fx_dir d;
	struct shr_lease l = SHR_LEASE_NONE;
	char path[FX_PATH];
	fx_dir_make(&d);
	CU_ASSERT_EQUAL_FATAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_OK);
	CU_ASSERT_EQUAL(unlink(fx_path(&d, "dataplane.lock", path)), 0);
	CU_ASSERT_FALSE(shr_lease_intact(&l));
	shr_lease_release(&l);
	CU_ASSERT_EQUAL(symlink("/etc/passwd", path), 0);
	CU_ASSERT_NOT_EQUAL(shr_lease_take(d.path, "dataplane", &session, &l), TN_OK);
	fx_dir_remove(&d);
}

static int dial(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
		return fd;
	close(fd);
	return -1;
}

static void published_socket_is_whole_and_ours(void)
{
	struct fx_dir d;
	char path[FX_PATH];
	int first = -1, second = -1;
	struct shr_published p1, p2;
	struct stat st;
	fx_dir_make(&d);
	fx_path(&d, "dataplane.sock", path);
	mode_t old = umask(0077);
	CU_ASSERT_EQUAL_FATAL(shr_publish_socket(path, SOCK_SEQPACKET, 0660, &first, &p1), TN_OK);
	umask(old);
	CU_ASSERT_EQUAL(stat(path, &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0660);
	int c = dial(path);
	CU_ASSERT(c >= 0);
	close(c);
	/* A successor publishes over what the dead one left; the late exit of the first must not take it away. */
	CU_ASSERT_EQUAL_FATAL(shr_publish_socket(path, SOCK_SEQPACKET, 0660, &second, &p2), TN_OK);
	CU_ASSERT_FALSE(shr_publish_remove(&p1));
	c = dial(path);
	CU_ASSERT(c >= 0);
	close(c);
	CU_ASSERT(shr_publish_remove(&p2));
	CU_ASSERT_FALSE(shr_publish_remove(&p2));
	CU_ASSERT_EQUAL(dial(path), -1);
	CU_ASSERT_EQUAL(access(path, F_OK), -1);
	close(first);
	close(second);
	fx_dir_remove(&d);
}

static void debris_and_bad_paths(void)
{
	struct fx_dir d;
	char path[FX_PATH], debris[FX_PATH], longer[200];
	int fd = -1;
	struct shr_published p;
	fx_dir_make(&d);
	fx_path(&d, "s", path);
	int file = open(fx_path(&d, "s.new", debris), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(file);
	CU_ASSERT_EQUAL_FATAL(shr_publish_socket(path, SOCK_STREAM, 0600, &fd, &p), TN_OK);
	CU_ASSERT_EQUAL(access(debris, F_OK), -1);
	close(fd);
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	fd = -1;
	CU_ASSERT_EQUAL(shr_publish_socket(longer, SOCK_STREAM, 0600, &fd, &p), TN_TOO_BIG);
	CU_ASSERT_EQUAL(shr_publish_socket("/nonexistent/x", SOCK_STREAM, 0600, &fd, &p), TN_NOT_FOUND);
	CU_ASSERT_EQUAL(fd, -1);
	struct shr_published noted;
	CU_ASSERT_EQUAL(shr_publish_note(path, &noted), TN_OK);
	CU_ASSERT(noted.ino == p.ino);
	CU_ASSERT_EQUAL(shr_publish_note("/nonexistent/x", &noted), TN_NOT_FOUND);
	fx_dir_remove(&d);
}

TN_TEST_MAIN("shm-ring/lease",
	{ "one holder; a stale file means nothing", one_holder_only },
	{ "held while stopped, free when killed", lives_as_long_as_its_process },
	{ "waits for a holder that is being killed", waits_for_a_dying_holder },
	{ "looking at a lease never makes a start fail", probing_disturbs_nobody },
	{ "a removed or replaced lock file is noticed", removed_lock_file_is_noticed },
	{ "a late exit cannot remove its successor's socket", published_socket_is_whole_and_ours },
	{ "debris of a half-made publication, unusable paths", debris_and_bad_paths })
