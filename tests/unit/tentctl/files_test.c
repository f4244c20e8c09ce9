/* SPDX-License-Identifier: Apache-2.0
 * Files that are read and written, keys, and the exit codes of the verbs that need no daemon. */
#include "tests/unit/tentctl/run.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "controlplane/tentctl/infile.h"
#include "controlplane/tentctl/outfile.h"

static char err[512];
static struct tctl_outfile out;

static unsigned files_here(void)
{
	char text[16] = "";
	FILE *p = popen("ls -A | wc -l", "r");
	CU_ASSERT_PTR_NOT_NULL(fgets(text, sizeof text, p));
	pclose(p);
	return (unsigned)atoi(text);
}

static void whole_or_not_at_all(void)
{
	char text[8] = "";
	run_dir();
	unsigned before = files_here();
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "new", 5, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(files_here(), before + 1);
	CU_ASSERT_NOT_EQUAL(access("new", F_OK), 0);
	tctl_outfile_abandon(&out);
	tctl_outfile_abandon(&out);
	CU_ASSERT_EQUAL(files_here(), before);
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "new", 5, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_write(&out, 0, "hello", 5, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
	tctl_outfile_abandon(&out);
	CU_ASSERT_EQUAL(files_here(), before + 1);
	FILE *f = fopen("new", "r");
	CU_ASSERT_EQUAL(fread(text, 1, sizeof text, f), 5);
	CU_ASSERT_STRING_EQUAL(text, "hello");
	fclose(f);
}

/* What was synced since the last look, in order; instead of the C library's. */
static struct { char kinds[8]; unsigned cnt; int fail; bool in_place; } synced;
int fsync(int fd)
{
	struct stat st;
	bool dir = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
	if (synced.cnt < sizeof synced.kinds - 1)
		synced.kinds[synced.cnt++] = dir ? 'd' : 'f';
	if (dir)
		synced.in_place = access("safe", F_OK) == 0;
	if (synced.fail != 0 && !dir) {
		errno = synced.fail;
		return -1;
	}
	return (int)syscall(SYS_fsync, fd);
}

/* Content, then name, then the name's directory: a crash leaves the old file or the new one. */
static void a_crash_leaves_one_of_both(void)
{
	memset(&synced, 0, sizeof synced);
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "safe", 5, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_write(&out, 0, "hello", 5, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(synced.cnt, 0);
	CU_ASSERT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
	CU_ASSERT_STRING_EQUAL(synced.kinds, "fd");
	CU_ASSERT_TRUE(synced.in_place);
	/* the disk fails: nothing takes the place of what is there */
	unsigned before = files_here();
	synced.fail = EIO;
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "safe", 3, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_write(&out, 0, "bad", 3, err, sizeof err), TN_OK);
	CU_ASSERT_NOT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "cannot be put in place"));
	CU_ASSERT_EQUAL(files_here(), before);
	struct stat st;
	CU_ASSERT_EQUAL(stat("safe", &st), 0);
	CU_ASSERT_EQUAL(st.st_size, 5);
	/* a file system that knows no fsync */
	synced.fail = EINVAL;
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "safe", 0, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
	synced.fail = 0;
	CU_ASSERT_EQUAL(unlink("safe"), 0);
}

static void places_that_are_refused(void)
{
	CU_ASSERT_EQUAL(tctl_outfile_open(&out, "/dev/null", 0, err, sizeof err), TN_INVALID);
	CU_ASSERT_EQUAL(tctl_outfile_open(&out, "/tmp", 0, err, sizeof err), TN_INVALID);
	CU_ASSERT_EQUAL(tctl_outfile_open(&out, "nosuch/file", 0, err, sizeof err), TN_NOT_FOUND);
	CU_ASSERT_EQUAL(symlink("nowhere", "dangling"), 0);
	CU_ASSERT_EQUAL(tctl_outfile_open(&out, "dangling", 0, err, sizeof err), TN_INVALID);
	CU_ASSERT_NOT_EQUAL(tctl_outfile_open(&out, "huge", (uint64_t)1 << 62, err, sizeof err), TN_OK);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "no room"));
	CU_ASSERT_NOT_EQUAL(access("huge", F_OK), 0);
}

/* What our output is redirected to would be replaced under whoever reads it. */
static void descriptors_are_refused(void)
{
	static const struct open_how how = { .flags = O_PATH, .resolve = RESOLVE_NO_MAGICLINKS };
	char path[64];
	int here = (int)syscall(SYS_openat2, AT_FDCWD, ".", &how, sizeof how);
	if (here < 0) {
		fputs("skipped: this kernel does not tell descriptors from files\n", stderr);
		return;
	}
	close(here);
	write_file("redirected", "old", 3);
	int fd = open("redirected", O_RDWR);
	CU_ASSERT_FATAL(fd >= 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CU_ASSERT_EQUAL(tctl_outfile_open(&out, path, 0, err, sizeof err), TN_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "is an open descriptor"));
	CU_ASSERT_EQUAL(symlink(path, "indirect"), 0);
	CU_ASSERT_EQUAL(tctl_outfile_open(&out, "indirect", 0, err, sizeof err), TN_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "is an open descriptor"));
	CU_ASSERT_EQUAL(tctl_outfile_open(&out, "/proc/self/cwd/redirected", 0, err, sizeof err), TN_OK);
	tctl_outfile_abandon(&out);
	close(fd);
	CU_ASSERT_EQUAL(unlink("indirect"), 0);
}

static void links_stay_links(void)
{
	struct stat st;
	write_file("target", "old", 3);
	CU_ASSERT_EQUAL(symlink("target", "link"), 0);
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "link", 3, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_write(&out, 0, "new!", 4, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
	CU_ASSERT_TRUE(lstat("link", &st) == 0 && S_ISLNK(st.st_mode));
	CU_ASSERT_TRUE(stat("target", &st) == 0 && st.st_size == 4);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? st.st_mode & 07777 : 0;
}

static mode_t mode_after_replace(const char *path, mode_t mode)
{
	write_file(path, "old", 3);
	CU_ASSERT_EQUAL(chmod(path, mode), 0);
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, path, 0, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(mode_of(out.temp), mode); /* never wider, not even for a moment */
	CU_ASSERT_EQUAL(tctl_outfile_write(&out, 0, "new!", 4, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
	return mode_of(path);
}

static void permissions_are_kept(void)
{
	struct stat st;
	mode_t was = umask(022);
	CU_ASSERT_EQUAL(mode_after_replace("private", 0600), 0600);
	CU_ASSERT_EQUAL(mode_after_replace("shared", 0666), 0666); /* the umask is for new files */
	CU_ASSERT_EQUAL(mode_after_replace("private", 0400), 0400);
	CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "fresh", 0, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(mode_of("fresh"), 0644);
	if (geteuid() == 0) {
		write_file("theirs", "old", 3);
		CU_ASSERT_EQUAL(chown("theirs", 12345, 23456), 0);
		CU_ASSERT_EQUAL_FATAL(tctl_outfile_open(&out, "theirs", 0, err, sizeof err), TN_OK);
		CU_ASSERT_EQUAL(tctl_outfile_commit(&out, err, sizeof err), TN_OK);
		CU_ASSERT_TRUE(stat("theirs", &st) == 0 && st.st_uid == 12345 && st.st_gid == 23456);
	}
	umask(was);
}

static void an_output_is_checked_at_start(void)
{
	unsigned before;
	write_file("kept", "old", 3);
	before = files_here();
	CU_ASSERT_EQUAL(tctl_outfile_check("kept", err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_outfile_check("not-there-yet", err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(files_here(), before);
	CU_ASSERT_EQUAL(run("segment", "publish", "x", "--size=4K", "--output=nosuch/file", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "--output nosuch/file: cannot create a file beside it"));
	CU_ASSERT_EQUAL(run("segment", "publish", "x", "--size=4K", "--output=/tmp", NULL), TCTL_FAILED);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "--output /tmp: is a directory"));
	CU_ASSERT_EQUAL(files_here(), before);
}

static void files_to_read(void)
{
	struct tctl_infile in;
	char buf[16];
	CU_ASSERT_EQUAL(tctl_infile_open(&in, "/tmp", 100, err, sizeof err), TN_INVALID);
	CU_ASSERT_EQUAL(tctl_infile_open(&in, "/dev/zero", 100, err, sizeof err), TN_INVALID);
	CU_ASSERT_EQUAL(tctl_infile_open(&in, "/nosuch", 100, err, sizeof err), TN_NOT_FOUND);
	CU_ASSERT_EQUAL(mkfifo("pipe", 0600), 0);
	CU_ASSERT_EQUAL(tctl_infile_open(&in, "pipe", 100, err, sizeof err), TN_INVALID);
	write_file("ten", "0123456789", 10);
	CU_ASSERT_EQUAL(tctl_infile_open(&in, "ten", 9, err, sizeof err), TN_TOO_BIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "at most 9B (9 bytes)"));
	CU_ASSERT_EQUAL_FATAL(tctl_infile_open(&in, "ten", 10, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_infile_read(&in, buf, 6, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(truncate("ten", 8), 0);
	CU_ASSERT_EQUAL(tctl_infile_read(&in, buf, 4, err, sizeof err), TN_INVALID);
	CU_ASSERT_PTR_NOT_NULL(strstr(err, "became shorter"));
	tctl_infile_close(&in);
	CU_ASSERT_EQUAL_FATAL(tctl_infile_open(&in, "ten", 10, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_infile_read(&in, buf, 8, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(tctl_infile_at_end(&in, err, sizeof err), TN_OK);
	CU_ASSERT_EQUAL(truncate("ten", 9), 0);
	CU_ASSERT_EQUAL(tctl_infile_at_end(&in, err, sizeof err), TN_INVALID);
	tctl_infile_close(&in);
}

static void config_check(void)
{
	static const char good[] = "{\"poll\":{\"mode\":\"busy\"}}";
	static const char odd[] = "{\"control\":{\"bind\":\"tcp://192.0.2.1:9816\"}}";
	static const char bad[] = "{\n\"pol\":{\"mode\":\"busy\"},\n\"poll\":{\"spin_us\":-1}}";
	write_file("good.json", good, strlen(good));
	CU_ASSERT_EQUAL(run("config", "check", "good.json", NULL), 0);
	CU_ASSERT_STRING_EQUAL(ran.out, "good.json: ok, 0 peers\n");
	CU_ASSERT_PTR_NULL(strstr(ran.err, "warning"));
	write_file("odd.json", odd, strlen(odd));
	CU_ASSERT_EQUAL(run("config", "check", "odd.json", NULL), 0); /* valid, and most likely not meant */
	CU_ASSERT_STRING_EQUAL(ran.out, "odd.json: ok, 0 peers, 1 warning\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "transports/tcp/bind_address: 127.0.0.1 is a loopback address"));
	CU_ASSERT_EQUAL(run("-j", "config", "check", "odd.json", NULL), 0);
	json_t *warned = run_json();
	CU_ASSERT_EQUAL(json_array_size(json_object_get(warned, "warnings")), 1);
	json_decref(warned);
	write_file("bad.json", bad, strlen(bad));
	CU_ASSERT_EQUAL(run("config", "check", "bad.json", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "bad.json:2: pol"));
	CU_ASSERT_EQUAL(run("-j", "-c", "bad.json", "config", "check", NULL), 1);
	json_t *j = run_json();
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "errors")), 2);
	json_decref(j);
	CU_ASSERT_TRUE(run_json_is("error", "config"));
	CU_ASSERT_EQUAL(run("config", "check", "nosuch.json", NULL), 1);
	CU_ASSERT_EQUAL(run("-c", "bad.json", "status", NULL), 1); /* every verb that needs it says the same */
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "bad.json:2: pol"));
	CU_ASSERT_EQUAL(run("-c", "bad.json", "-j", "segment", "list", NULL), 1);
	j = run_json(); /* one object, not two */
	CU_ASSERT_PTR_NOT_NULL(j);
	json_decref(j);
}

static void config_dump(void)
{
	CU_ASSERT_EQUAL(run("-c", "good.json", "config", "dump", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "poll/mode = \"busy\""));
	CU_ASSERT_PTR_NULL(strstr(ran.out, "deadline/default_ms"));
	CU_ASSERT_EQUAL(
	    run("-c", "good.json", "-s", "deadline/max_ms=9000", "config", "dump", "--effective", "--origin", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "deadline")); /* max below the default */
	CU_ASSERT_EQUAL(run("-c", "good.json", "-s", "deadline/max_ms=90000", "config", "dump", "-eo", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "deadline/max_ms = 90000   # --set"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "poll/mode = \"busy\"   # good.json:1"));
	CU_ASSERT_EQUAL(run("-j", "-c", "good.json", "config", "dump", NULL), 0);
	json_t *j = run_json();
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json_object_get(j, "poll"), "mode")), "busy");
	json_decref(j);
}

static unsigned times(const char *text, const char *what)
{
	unsigned n = 0;
	while ((text = strstr(text, what)) != NULL) {
		text += strlen(what);
		n++;
	}
	return n;
}

static void answers_that_cannot_be_written(void)
{
	static const char lost[] = "tentctl: cannot write the answer: No space left on device\n";
	run_stdout = "/dev/full";
	CU_ASSERT_EQUAL(run("version", NULL), 1);
	CU_ASSERT_STRING_EQUAL(ran.err, lost);
	CU_ASSERT_EQUAL(run("config", "dump", "-e", NULL), 1);
	CU_ASSERT_STRING_EQUAL(ran.err, lost);
	CU_ASSERT_EQUAL(run("-j", "config", "dump", "-e", NULL), 1);
	CU_ASSERT_STRING_EQUAL(ran.err, lost);
	alarm(60); /* it must not stay and serve what nobody learnt of */
	CU_ASSERT_EQUAL(run("segment", "publish", "room", "--size=4K", NULL), 1);
	CU_ASSERT_STRING_EQUAL(ran.err, lost);
	CU_ASSERT_EQUAL(run("-j", "segment", "publish", "room", "--size=4K", NULL), 1);
	CU_ASSERT_EQUAL(times(ran.err, lost), 1);
	alarm(0);
	run_stdout = NULL;
}

/* Bytes that are no UTF-8, or steer a terminal, in names of files. */
static void odd_names(void)
{
	write_file("od\xff\xed\xa0\x80.json", "{}", 2);
	CU_ASSERT_EQUAL(run("-j", "config", "check", "od\xff\xed\xa0\x80.json", NULL), 0);
	CU_ASSERT_TRUE(run_json_is("file", "od????.json"));
	CU_ASSERT_EQUAL(run("-j", "keygen", "k\xff.key", NULL), 0);
	CU_ASSERT_TRUE(run_json_is("key_file", "k?.key"));
	CU_ASSERT_EQUAL(run("-j", "put", "no\xff\x1b[2J", "x", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("detail", "no??[2J: cannot be read: No such file or directory"));
	CU_ASSERT_STRING_EQUAL(ran.err, "tentctl: no??[2J: cannot be read: No such file or directory\n");
	CU_ASSERT_EQUAL(run("-j", "status", "\xff\x1b[2J", NULL), 2);
	CU_ASSERT_TRUE(run_json_is("detail", "unexpected argument \"??[2J\""));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "unexpected argument \"??[2J\""));
}

static void keygen(void)
{
	static const char open_ended[] = "{\"control\":{\"bind\":\"tcp://192.0.2.1:9816\"},\"peers\":[{\"public_key\":\"?\"}]}";
	struct stat st;
	char key[64];
	CU_ASSERT_EQUAL(run("keygen", NULL), 0); /* where the configuration says */
	CU_ASSERT_TRUE(stat("curve.key", &st) == 0 && (st.st_mode & 0777) == 0600);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "\"name\": \"test-host\""));
	CU_ASSERT_PTR_NULL(strstr(ran.out, "secret"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "warning: the address is a loopback address"));
	CU_ASSERT_EQUAL(run("-j", "keygen", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "exists"));
	CU_ASSERT_EQUAL(run("-j", "keygen", "--show", NULL), 0);
	json_t *j = run_json();
	snprintf(key, sizeof key, "%s", json_string_value(json_object_get(j, "public_key")));
	CU_ASSERT_EQUAL(strlen(key), 40);
	json_decref(j);
	CU_ASSERT_EQUAL(run("-s", "control/bind=tcp://192.0.2.1:9816", "keygen", "--show", NULL), 0);
	CU_ASSERT_PTR_NULL(strstr(ran.err, "warning"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "tcp://192.0.2.1:9816"));
	CU_ASSERT_EQUAL(run("keygen", "sub/other.key", NULL), 0);
	CU_ASSERT_PTR_NULL(strstr(ran.out, key));
	CU_ASSERT_EQUAL(run("keygen", "--show", "good.json", NULL), 1);
	write_file("tent.json", open_ended, strlen(open_ended));
	CU_ASSERT_EQUAL(run("-c", "tent.json", "config", "check", NULL), 1);
	CU_ASSERT_EQUAL(run("-c", "tent.json", "keygen", "third.key", NULL), 0); /* before anybody's key is known */
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "tcp://192.0.2.1:9816"));
	run_dir_remove();
}

TN_TEST_MAIN("tentctl files",
	{ "an output file appears whole or not at all", whole_or_not_at_all },
	{ "a crash leaves the old file or the new one", a_crash_leaves_one_of_both },
	{ "places that cannot be written are refused before any transfer", places_that_are_refused },
	{ "an open descriptor is no place for a file", descriptors_are_refused },
	{ "a link is followed, not replaced", links_stay_links },
	{ "a replaced file hands on its permissions", permissions_are_kept },
	{ "--output is checked before anything is published", an_output_is_checked_at_start },
	{ "only regular files that keep their length are read", files_to_read },
	{ "config check: exit codes and what is wrong", config_check },
	{ "config dump: values, origins, JSON", config_dump },
	{ "an answer that cannot be written is a failure, told once", answers_that_cannot_be_written },
	{ "names of files that are no text", odd_names },
	{ "keygen: never overwrites, never prints the secret", keygen })
