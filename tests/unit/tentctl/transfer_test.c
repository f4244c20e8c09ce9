/* SPDX-License-Identifier: Apache-2.0
 * put and get against a publication of this process, with a libtent that fails as it is told. */
#include "tests/unit/tentctl/run.h"

#include <sys/stat.h>
#include <sys/syscall.h>

#include "controlplane/tentctl/publication.h"
#include "controlplane/tentctl/pump.h"
#include "tests/unit/tentctl/fake_tent.h"

static struct tctl server = { .timeout_ns = 1000000000 };
static struct tctl_publication pub;
static uint8_t pattern[(9 << 20) + 123];

static void on_note(const tent_note *note)
{
	CU_ASSERT_TRUE(tctl_publication_on_note(&pub, note));
}

/* Room of that capacity under "room". */
static void serve(uint64_t capacity, const char *output)
{
	static const struct tctl_texts nobody;
	run_dir();
	fake_reset();
	fake.on_note = on_note;
	pub = (struct tctl_publication){ .name = "room", .writable = true, .output = output };
	CU_ASSERT_EQUAL_FATAL(tctl_publication_open(&pub, &server, capacity), TCTL_OK);
	CU_ASSERT_EQUAL_FATAL(tctl_publication_publish(&pub, &nobody), TCTL_OK);
}

static void stop(void)
{
	tctl_publication_close(&pub);
	tn_config_free(server.config);
	server.config = NULL;
}

static void make_file(size_t bytes)
{
	for (size_t i = 0; i < sizeof pattern; i++)
		pattern[i] = (uint8_t)(i * 2654435761u >> 13);
	write_file("in", pattern, bytes);
}

static bool same_file(const char *path, size_t bytes)
{
	static uint8_t got[sizeof pattern + 1];
	FILE *f = fopen(path, "r");
	size_t n = f != NULL ? fread(got, 1, sizeof got, f) : 0;
	if (f != NULL)
		fclose(f);
	return f != NULL && n == bytes && memcmp(got, pattern, bytes) == 0;
}

/* publication's own prints go to the captured output */
static void round_trip(size_t bytes)
{
	make_file(bytes);
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "verified on the far side"));
	CU_ASSERT_EQUAL(run("-j", "get", "peer/room", "out", NULL), 0);
	CU_ASSERT_EQUAL(run_json_number("bytes"), (long long)bytes);
	CU_ASSERT_TRUE(run_json_is("verified", "published_hash"));
	CU_ASSERT_TRUE(same_file("out", bytes));
}

static void sizes(void)
{
	serve(sizeof pattern, "written");
	static const size_t cases[] = { 0, 1, 4095, 4096, 4097, 4 << 20, (4 << 20) + 1, sizeof pattern };
	for (size_t i = 0; i < TN_ARRAY_LEN(cases); i++) {
		round_trip(cases[i]);
		CU_ASSERT_TRUE(same_file("written", cases[i]));
	}
	stop();
}

static void empty_room_of_nothing(void)
{
	serve(0, NULL);
	CU_ASSERT_EQUAL(run("get", "room", "out0", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "is empty"));
	CU_ASSERT_NOT_EQUAL(access("out0", F_OK), 0);
	round_trip(0);
	make_file(1);
	CU_ASSERT_EQUAL(run("-j", "put", "in", "room", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "too_big"));
	stop();
}

static void with_fault(struct fake_fault f, const char *text)
{
	serve(sizeof pattern, NULL);
	make_file(sizeof pattern);
	fake.fault = f;
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	if (ran.rc != 0)
		fprintf(stderr, "%s", ran.err);
	CU_ASSERT_TRUE(fake.requests > f.at);
	if (text != NULL)
		CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, text));
	fake.requests = 0;
	CU_ASSERT_EQUAL(run("get", "room", "out", NULL), 0);
	CU_ASSERT_TRUE(same_file("out", sizeof pattern));
	stop();
}

/* request 1 is the READ of the trailer, the chunks follow */
static void passing_failures(void)
{
	with_fault((struct fake_fault){.at = 2, .count = 1, .status = TENT_AMBIGUOUS, .landed = true}, "1 sent again");
	with_fault((struct fake_fault){ .at = 3, .count = 2, .status = TENT_PATH_DOWN }, "2 sent again");
	with_fault((struct fake_fault){ .at = 2, .count = 4, .status = TENT_TIMEOUT }, NULL);
	with_fault((struct fake_fault){ .at = 1, .count = 3, .status = TENT_PEER_DOWN }, "0 sent again");
	with_fault((struct fake_fault){ .at = 3, .count = 1, .status = TENT_AGAIN, .refused = true }, "1 sent again");
	with_fault((struct fake_fault){.at = 2, .count = 1, .status = TENT_PATH_TIMEOUT, .held = true}, "1 sent again");
}

static void a_broken_batch_sends_its_notice_again(void)
{
	serve(sizeof pattern, NULL);
	make_file(sizeof pattern);
	fake.fault = (struct fake_fault){ .at = 4, .count = 1, .status = TENT_PATH_DOWN };
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	CU_ASSERT_EQUAL(fake.notices, 2); /* the batch's was canceled */
	fake_reset();
	fake.on_note = on_note;
	fake.note_fails = 2;
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	CU_ASSERT_EQUAL(fake.notices, 3);
	stop();
}

static void go_stale(unsigned number)
{
	if (number == 3)
		fake.handles_stale = true;
}

static void stale_handles_are_opened_again(void)
{
	serve(sizeof pattern, NULL);
	make_file(sizeof pattern);
	fake.on_request = go_stale;
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	CU_ASSERT_EQUAL(fake.opens, 2);
	stop();
}

static void open_waits_for_what_may_come(void)
{
	serve(4096, NULL);
	make_file(10);
	fake.opens_fail = 3;
	fake.open_status = TENT_CONTROLPLANE_DOWN;
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	CU_ASSERT_EQUAL(fake.opens, 4);
	fake.opens_failed = 0;
	fake.opens_fail = 1000;
	CU_ASSERT_EQUAL(run("-j", "--timeout", "200ms", "put", "in", "room", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "controlplane_down"));
	fake.opens_fail = 0;
	CU_ASSERT_EQUAL(run("put", "in", "peer/nosuch", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "not_found"));
	stop();
}

static void final_failures(void)
{
	serve(sizeof pattern, NULL);
	make_file(sizeof pattern);
	fake.fault = (struct fake_fault){ .at = 3, .count = 1, .status = TENT_PERMISSION };
	CU_ASSERT_EQUAL(run("-j", "put", "in", "room", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "permission"));
	fake_reset();
	fake.fault = (struct fake_fault){ .at = 2, .count = 100000, .status = TENT_PATH_DOWN };
	CU_ASSERT_EQUAL(run("put", "--stall", "7s", "in", "room", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "still trying"));
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "nothing moved for "));
	stop();
}

static void leave(unsigned number)
{
	if (number != 2)
		return;
	fake.opens_fail = 1000;
	fake.open_status = TENT_NOT_FOUND;
}

static void a_segment_that_went_away_is_named(void)
{
	serve(sizeof pattern, NULL);
	make_file(sizeof pattern);
	fake.on_request = leave;
	fake.on_note = NULL; /* the batch never ends, so its notice never leaves */
	fake.fault = (struct fake_fault){ .at = 3, .count = 100, .status = TENT_OK, .lost = true };
	CU_ASSERT_EQUAL(run("-j", "put", "--stall", "4s", "in", "room", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "not_found"));
	CU_ASSERT_EQUAL(fake.opens, 2); /* the second look, when nothing moved */
	stop();
}

static void withdraw(unsigned number)
{
	if (number != 3)
		return;
	fake.handles_stale = true;
	fake.opens_fail = 1000;
	fake.open_status = TENT_NOT_FOUND;
}

/* In the middle: somebody may publish it again, so it waits, and says for what. */
static void a_withdrawn_segment_is_waited_for(void)
{
	serve(sizeof pattern, NULL);
	make_file(sizeof pattern);
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	fake.requests = 0;
	fake.on_request = withdraw;
	CU_ASSERT_EQUAL(run("get", "--stall", "4s", "room", "out8", NULL), 1);
	const char *said = strstr(ran.err, "still trying: ");
	CU_ASSERT_PTR_NOT_NULL_FATAL(said);
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "waiting for it to be published again"));
	CU_ASSERT_PTR_NULL(strstr(said + 1, "still trying: ")); /* once */
	CU_ASSERT_NOT_EQUAL(access("out8", F_OK), 0);
	stop();
}

static void read_only_is_refused(void)
{
	serve(4096, NULL);
	pub.writable = false; /* as the publisher sees it; no bytes, so no WRITE tells before */
	make_file(0);
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "is published read-only"));
	stop();
}

static uint8_t *spoiled;
static void spoil(const tent_note *note)
{
	spoiled[7] ^= 1;
	on_note(note);
}

static void damage_is_found(void)
{
	serve(sizeof pattern, "written2");
	make_file(5000);
	spoiled = pub.data;
	fake.on_note = spoil;
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "computes another hash"));
	CU_ASSERT_NOT_EQUAL(access("written2", F_OK), 0);
	CU_ASSERT_EQUAL(run("get", "room", "out2", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "did not arrive intact"));
	stop();
}

/* Another put ends behind ours, before we look: what we learn is our own verdict, and at once. */
static uint64_t others_bytes;
static void another_put(const tent_note *note)
{
	struct tctl_put_notice other = { .nonce = 4711, .content_bytes = others_bytes };
	tent_note theirs = *note;
	on_note(note);
	tctl_put_notice_encode(&other, theirs.payload);
	on_note(&theirs);
}

static void spoil_and_another_put(const tent_note *note)
{
	pub.data[7] ^= 1;
	another_put(note);
}

static void each_of_two_puts_learns_its_verdict(void)
{
	serve(sizeof pattern, NULL);
	make_file(5000);
	fake.on_note = another_put;
	for (others_bytes = 3; others_bytes <= 5000; others_bytes += 4997) {
		CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(ran.out, "verified on the far side"));
		CU_ASSERT_EQUAL(tctl_trailer_verdict(&pub.trailer, 4711)->result, TCTL_PUT_MISMATCH);
		CU_ASSERT_EQUAL(run("get", "room", "out6", NULL), 0); /* the loser takes nothing away */
		CU_ASSERT_TRUE(same_file("out6", 5000));
	}
	fake.on_note = spoil_and_another_put;
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "computes another hash"));
	CU_ASSERT_EQUAL(run("get", "room", "out6", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "did not arrive intact"));
	stop();
}

/* Somebody changes the room just when its content goes into the file. Instead of the C library's. */
static bool change_while_writing;
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset)
{
	if (change_while_writing)
		pub.data[offset] ^= 1;
	return syscall(SYS_pwrite64, fd, bytes, n, offset);
}

static void the_output_is_what_was_hashed(void)
{
	serve(sizeof pattern, "written3");
	make_file(sizeof pattern);
	change_while_writing = true;
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	change_while_writing = false;
	CU_ASSERT_TRUE(same_file("written3", sizeof pattern));
	CU_ASSERT_NOT_EQUAL(pub.data[0], pattern[0]);
	stop();
}

static void change_first(unsigned number)
{
	if (number == 2)
		pub.data[0] ^= 1;
}

static void rewrite(unsigned number)
{
	uint8_t page[TCTL_TRAILER_BYTES];
	if (number != 2)
		return;
	pub.data[1] ^= 1;
	pub.trailer.sequence++;
	tctl_trailer_encode(&pub.trailer, page);
	memcpy(pub.data + pub.segment_bytes - sizeof page, page, sizeof page);
}

static void get_notices_changes(void)
{
	serve(sizeof pattern, NULL);
	make_file(9000);
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	fake.requests = 0;
	fake.on_request = change_first;
	write_file("out3", "old", 3);
	CU_ASSERT_EQUAL(run("get", "room", "out3", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "does not match its published hash"));
	fake.requests = 0;
	fake.on_request = rewrite;
	CU_ASSERT_EQUAL(run("get", "room", "out3", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "changed while it was read"));
	memcpy(pattern, "old", 3);
	CU_ASSERT_TRUE(same_file("out3", 3));
	CU_ASSERT_EQUAL(system("ls -a | grep -q '^\\.out3'"), 256); /* no temporary file is left */
	stop();
}

static void wrong_trailers(void)
{
	serve(8192, NULL);
	make_file(10);
	uint8_t *page = pub.data + 8192;
	page[8] = 9;
	CU_ASSERT_EQUAL(run("-j", "put", "in", "room", NULL), 1);
	CU_ASSERT_TRUE(run_json_is("error", "unsupported"));
	page[8] = TCTL_TRAILER_VERSION;
	page[40] ^= 1; /* as if it never stopped changing */
	CU_ASSERT_EQUAL(run("get", "room", "out4", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "being rewritten, or damaged"));
	stop();
}

static void segments_without_a_trailer(void)
{
	serve(3 * 4096, NULL);
	pub.data[3 * 4096] = 'X'; /* no magic: now it is anybody's segment */
	make_file(5001);
	CU_ASSERT_EQUAL(run("-j", "put", "in", "room", NULL), 0);
	CU_ASSERT_TRUE(run_json_is("verified", "read_back"));
	CU_ASSERT_EQUAL(run_json_number("chunks"), 1);
	CU_ASSERT_EQUAL(memcmp(pub.data, pattern, 5001), 0);
	stop();
}

static void names_that_are_no_text(void)
{
	serve(4096, NULL);
	make_file(10);
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 0);
	CU_ASSERT_EQUAL(run("-j", "get", "room", "out7\xff", NULL), 0);
	CU_ASSERT_TRUE(same_file("out7\xff", 10));
	CU_ASSERT_TRUE(run_json_is("file", "out7?"));
	stop();
}

/* Nobody hears the publisher any more: it says so, and goes on for those who use the segment. */
static void reports_that_cannot_be_written(void)
{
	serve(4096, NULL);
	make_file(10);
	run_stdout = "/dev/full";
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 1); /* its own answer is lost as well */
	run_stdout = NULL;
	const char *said = strstr(ran.err, "cannot write the answer: No space left on device");
	CU_ASSERT_PTR_NOT_NULL_FATAL(said);
	CU_ASSERT_PTR_NOT_NULL(strstr(said + 1, "cannot write the answer"));
	CU_ASSERT_TRUE(server.answer_lost);
	CU_ASSERT_EQUAL(run("get", "room", "out9", NULL), 0);
	CU_ASSERT_TRUE(same_file("out9", 10));
	server.answer_lost = false;
	stop();
}

static void output_that_cannot_be_written(void)
{
	serve(4096, "/nosuchfolder/file");
	make_file(10);
	CU_ASSERT_EQUAL(run("put", "in", "room", NULL), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(ran.err, "could not write its --output"));
	CU_ASSERT_EQUAL(run("get", "room", "out5", NULL), 0); /* the content is good */
	stop();
	run_dir_remove();
}

TN_TEST_MAIN("tentctl transfers",
	{ "files of every odd size go there and back", sizes },
	{ "a room without room", empty_room_of_nothing },
	{ "failures that pass are sent again", passing_failures },
	{ "the notice of a broken batch is sent again when all is written", a_broken_batch_sends_its_notice_again },
	{ "a stale handle is opened again", stale_handles_are_opened_again },
	{ "opening waits for daemons, not for names", open_waits_for_what_may_come },
	{ "final failures and stalls end with the reason", final_failures },
	{ "a segment that went away is told from a slow one", a_segment_that_went_away_is_named },
	{ "a segment that is withdrawn in the middle is waited for", a_withdrawn_segment_is_waited_for },
	{ "a publisher that allows no writing says so", read_only_is_refused },
	{ "damage between the two hashes is found", damage_is_found },
	{ "each of two puts at once learns its own verdict", each_of_two_puts_learns_its_verdict },
	{ "the output file is what was hashed", the_output_is_what_was_hashed },
	{ "get notices content and trailer that change under it", get_notices_changes },
	{ "trailers of a newer version, and torn ones", wrong_trailers },
	{ "segments that are no file segments", segments_without_a_trailer },
	{ "a file whose name is no text", names_that_are_no_text },
	{ "reports of the publisher that cannot be written", reports_that_cannot_be_written },
	{ "an output file that cannot be written", output_that_cannot_be_written })
