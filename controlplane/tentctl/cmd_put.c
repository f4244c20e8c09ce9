/* SPDX-License-Identifier: Apache-2.0
 * `tentctl put`: a file into a segment. Reading and hashing the file overlap with the WRITEs. Into a file segment it
 * ends with a notice that carries length and hash; the publisher hashes what it has and answers in the trailer. Into
 * any other segment it is verified by reading it back. */
#include <string.h>

#include "common/rand.h"
#include "controlplane/tentctl/infile.h"
#include "controlplane/tentctl/remote_file.h"
#include "controlplane/tentctl/summary.h"

#define PUT_BATCH 1u
/* The publisher must at least hash, perhaps write a file: 50 MB/s, and 10 s to begin with. */
#define VERIFY_NS_PER_BYTE 20u
#define VERIFY_LEAST_NS (10 * TN_NS_PER_S)

struct put {
	struct tctl_pump p;
	struct tctl_summary sum;
	struct tctl_infile in;
	struct tctl_trailer trailer;
	bool described;          /* there is a trailer */
};

static bool check_room(struct put *u)
{
	tn_status s = tctl_remote_trailer(&u->p, &u->trailer);
	u->described = s == TN_OK;
	if (s != TN_OK && s != TN_NOT_FOUND)
		return false;
	uint64_t room = u->described ? u->trailer.capacity : u->p.segment_bytes;
	u->sum.bytes = u->in.bytes;
	return u->in.bytes <= room ||
	       tctl_pump_fail(&u->p, TN_TOO_BIG, "%s has %s (%llu bytes), %s has room for %s (%llu bytes)", u->sum.file,
			      tctl_bytes_text(u->in.bytes), (unsigned long long)u->in.bytes, u->p.ref,
			      tctl_bytes_text(room), (unsigned long long)room);
}

static bool write_chunks(struct put *u, struct tctl_sha256 *sha, struct tctl_progress *bar)
{
	struct tctl_pump *p = &u->p;
	char err[512];
	for (uint64_t chunk = 0; u->in.at < u->in.bytes; chunk++) {
		uint64_t off = u->in.at;
		size_t n = (size_t)TN_MIN(p->chunk_bytes, u->in.bytes - off);
		if (!tctl_pump_wait(p, chunk))
			return false;
		uint8_t *to = tctl_pump_buffer(p, chunk);
		tn_status s = tctl_infile_read(&u->in, to, n, err, sizeof err);
		if (s != TN_OK)
			return tctl_pump_fail(p, s, "%s%s", err,
					      off > 0 ? "; a part of it is in the segment already" : "");
		tctl_sha256_add(sha, to, n);
		if (!tctl_pump_start(p, TENT_WRITE, chunk, off, n, u->described ? PUT_BATCH : 0))
			return false;
		tctl_progress_show(bar, p->stats.done_bytes);
	}
	tn_status s = tctl_infile_at_end(&u->in, err, sizeof err);
	return s == TN_OK || tctl_pump_fail(p, s, "%s", err);
}

static bool write_all(struct put *u)
{
	struct tctl_progress bar;
	struct tctl_sha256 *sha = tctl_sha256_new();
	if (sha == NULL)
		return tctl_pump_fail(&u->p, TN_NO_MEMORY, "no memory for a hash");
	u->sum.first_ns = tn_now_ns();
	tctl_progress_start(&bar, "put", u->in.bytes);
	bool ok = write_chunks(u, sha, &bar);
	tctl_progress_end(&bar);
	if (!ok) {
		tctl_sha256_free(sha);
		return false;
	}
	return tctl_sha256_end(sha, u->sum.sha256) || tctl_pump_fail(&u->p, TN_INTERNAL, "libcrypto cannot hash");
}

/* The notice goes out behind the last chunks, as their batch; if that batch broke, again when all chunks are done. */
static bool announce(struct put *u, const struct tctl_put_notice *n)
{
	struct tctl_pump *p = &u->p;
	uint8_t payload[TCTL_PUT_NOTICE_BYTES];
	uint64_t deadline_ns, pause_ns = 10 * TN_NS_PER_MS;
	tctl_put_notice_encode(n, payload);
	bool batched = u->in.bytes > 0 && !p->batch_broken;
	if (batched && !tctl_pump_notify(p, PUT_BATCH, payload, sizeof payload))
		return false;
	if (!tctl_pump_drain(p))
		return false;
	u->sum.last_ns = tn_now_ns();
	if (batched && tctl_pump_notify_end(p))
		return true;
	deadline_ns = tn_deadline_after(u->sum.last_ns, p->cfg.stall_ns);
	while (!p->failed) {
		if (!tctl_pump_notify(p, 0, payload, sizeof payload))
			return false;
		if (tctl_pump_notify_end(p))
			return true;
		if (!p->failed && tn_now_ns() >= deadline_ns)
			return tctl_pump_fail(p, p->note_status, "%s: the publisher does not take the notice: %s",
					      p->ref, p->note_error);
		tctl_stop_sleep(-1, pause_ns);
		pause_ns = TN_MIN(pause_ns * 2, TN_NS_PER_S);
		if (tctl_stopped())
			return tctl_pump_fail(p, TN_CANCELED, "interrupted");
	}
	return false;
}

static bool judge(struct put *u, enum tctl_put_result result)
{
	struct tctl_pump *p = &u->p;
	switch (result) {
	case TCTL_PUT_DONE: /* against the hash that our notice carried; the trailer's may be of a later put */
		u->sum.verified = "publisher";
		return true;
	case TCTL_PUT_READ_ONLY:
		return tctl_pump_fail(p, TN_PERMISSION, "%s is published read-only (--writable is missing there)",
				      p->ref);
	case TCTL_PUT_TOO_BIG:
		return tctl_pump_fail(p, TN_TOO_BIG, "%s: the publisher has less room than its trailer said", p->ref);
	case TCTL_PUT_OUTPUT:
		return tctl_pump_fail(p, TN_SYSTEM,
				      "%s: arrived and verified, but the publisher could not write its --output file",
				      p->ref);
	default:
		return tctl_pump_fail(p, TN_INVALID,
				      "%s: the far side computes another hash than this side: the content was changed "
				      "on its way or by another put at the same time",
				      p->ref);
	}
}

static bool verify_there(struct put *u)
{
	struct tctl_pump *p = &u->p;
	struct tctl_put_notice n = { .content_bytes = u->in.bytes };
	uint64_t pause_ns = TN_NS_PER_MS;
	if (tn_rand_os(&n.nonce, sizeof n.nonce) != TN_OK)
		return tctl_pump_fail(p, TN_SYSTEM, "no random numbers from the kernel");
	n.nonce |= 1; /* never 0 */
	memcpy(n.sha256, u->sum.sha256, sizeof n.sha256);
	if (!announce(u, &n))
		return false;
	uint64_t deadline_ns = tn_deadline_after(tn_now_ns(), VERIFY_LEAST_NS + u->in.bytes * VERIFY_NS_PER_BYTE);
	for (;;) {
		if (tctl_remote_trailer(p, &u->trailer) != TN_OK)
			return tctl_pump_fail(p, TN_STALE, "%s: the publisher is gone before it verified the content",
					      p->ref);
		const struct tctl_verdict *v = tctl_trailer_verdict(&u->trailer, n.nonce);
		if (v != NULL && v->result != TCTL_PUT_NONE)
			return judge(u, v->result);
		if (tn_now_ns() >= deadline_ns)
			return tctl_pump_fail(p, TN_TIMEOUT,
					      "%s: written, but the publisher did not verify it in time (%s)", p->ref,
					      v != NULL ? "it is still hashing" : "it did not look at it");
		tctl_stop_sleep(-1, pause_ns);
		pause_ns = TN_MIN(pause_ns * 2, 20 * TN_NS_PER_MS);
	}
}

static bool verify_by_reading(struct put *u)
{
	struct tctl_pump *p = &u->p;
	uint8_t there[TCTL_SHA256_BYTES];
	if (!tctl_pump_drain(p))
		return false;
	u->sum.last_ns = tn_now_ns();
	struct tctl_pump_stats written = p->stats; /* the report is about the put */
	bool ok = tctl_remote_read(p, u->in.bytes, NULL, "verify", there);
	p->stats = written;
	if (!ok)
		return false;
	u->sum.verified = "read_back";
	return memcmp(there, u->sum.sha256, sizeof there) == 0 ||
	       tctl_pump_fail(p, TN_INVALID, "%s: what is read back differs from the file: somebody else writes there",
			      p->ref);
}

static bool run(struct put *u)
{
	if (!check_room(u) || !write_all(u))
		return false;
	return u->described ? verify_there(u) : verify_by_reading(u);
}

int tctl_cmd_put(struct tctl *t, int argc, char **argv)
{
	static struct put u; /* large: the latency recorder */
	struct tctl_pump_cfg cfg = { .stall_ns = TCTL_STALL_DEFAULT_NS };
	const struct tctl_option options[] = {
		{ "transport", '\0', TCTL_TEXT, &cfg.transport },
		{ "stall", '\0', TCTL_TIME, &cfg.stall_ns },
		{ NULL, '\0', TCTL_FLAG, NULL },
	};
	char err[512];
	u = (struct put){ .in = { .fd = -1 } };
	u.sum = (struct tctl_summary){ .command = "put", .start_ns = tn_now_ns(), .cpu_start_ns = tn_cpu_ns() };
	if (!tctl_args(t, &argc, argv, options, 2, 2))
		return t->exit_code;
	if (tctl_pump_cfg_check(t, &cfg) != TCTL_OK || tctl_ref_check(t, argv[2]) != TCTL_OK)
		return TCTL_USAGE;
	u.sum.file = argv[1];
	u.sum.segment = argv[2];
	/* the file first: a wrong name needs no daemon to be told */
	tn_status s = tctl_infile_open(&u.in, argv[1], TCTL_CAPACITY_MAX, err, sizeof err);
	if (s != TN_OK)
		return tctl_fail(t, s, "%s", err);
	tctl_stop_catch();
	int rc = tctl_pump_open(&u.p, t, &cfg, argv[2]);
	if (rc == TCTL_OK)
		rc = tctl_pump_buffers(&u.p, TN_MIN(u.in.bytes, u.p.segment_bytes));
	if (rc == TCTL_OK)
		rc = run(&u) ? TCTL_OK : TCTL_FAILED;
	tctl_infile_close(&u.in);
	if (rc == TCTL_OK) {
		u.sum.end_ns = tn_now_ns();
		tctl_summary_print(&u.p, &u.sum);
	}
	tctl_pump_close(&u.p);
	return rc;
}
