/* SPDX-License-Identifier: Apache-2.0
 * The publisher's side of file segments. Readers and writers are other processes: the trailer page is the only thing
 * that they learn from, and it cannot be written by them (it is a buffer of its own without that right). */
#include "controlplane/tentctl/publication.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/message.h"
#include "controlplane/tentctl/infile.h"
#include "controlplane/tentctl/outfile.h"

#define PIECE_BYTES ((size_t)4 << 20)
/* A publisher waits for its data plane to come back, for as long as the operator lets it. */
#define RECOVER_NS (UINT64_C(365) * 24 * 3600 * TN_NS_PER_S)

static int fail_tent(const struct tctl_publication *pub, tent_status s)
{
	return tctl_fail(pub->t, (tn_status)s, "%s", tent_last_error());
}

/* What the kernel could give without swapping; UINT64_MAX when it does not say. */
static uint64_t memory_available(void)
{
	char line[128];
	unsigned long long kib;
	uint64_t bytes = UINT64_MAX;
	FILE *f = fopen("/proc/meminfo", "re");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1)
			bytes = (uint64_t)kib * 1024;
	if (f != NULL)
		fclose(f);
	return bytes;
}

static void write_trailer(struct tctl_publication *pub)
{
	uint8_t page[TCTL_TRAILER_BYTES];
	pub->trailer.sequence++;
	tctl_trailer_encode(&pub->trailer, page);
	memcpy(pub->data + pub->segment_bytes - TCTL_TRAILER_BYTES, page, sizeof page);
}

int tctl_publication_open(struct tctl_publication *pub, struct tctl *t, uint64_t capacity)
{
	tent_options opt = TENT_OPTIONS_INIT;
	pub->t = t;
	pub->segment_bytes = tctl_trailer_segment_bytes(capacity);
	if (pub->segment_bytes == 0)
		return tctl_fail(t, TN_TOO_BIG, "%s (%" PRIu64 " bytes): a file segment has at most %s",
				 tctl_bytes_text(capacity), capacity, tctl_bytes_text(TCTL_CAPACITY_MAX));
	uint64_t available = memory_available();
	if (pub->segment_bytes > available)
		return tctl_fail(t, TN_NO_MEMORY, "%s: a segment lives in memory, and only %s are available here",
				 tctl_bytes_text(capacity), tctl_bytes_text(available));
	opt.runtime_dir = tctl_runtime_dir(t);
	opt.app_name = "tentctl publish";
	opt.timeout_ns = t->timeout_ns;
	opt.recover_timeout_ns = RECOVER_NS;
	if (opt.runtime_dir == NULL)
		return TCTL_FAILED;
	tent_status s = tent_open(&opt, &pub->ctx);
	if (s == TENT_OK)
		s = tent_memory_alloc(pub->ctx, pub->segment_bytes,
				      TENT_RIGHT_REMOTE_READ | (pub->writable ? TENT_RIGHT_REMOTE_WRITE : 0), 0,
				      &pub->mem);
	if (s != TENT_OK)
		return fail_tent(pub, s);
	pub->data = tent_memory_addr(pub->mem);
	pub->trailer = (struct tctl_trailer){ .content = TCTL_CONTENT_EMPTY, .capacity = capacity };
	write_trailer(pub);
	return TCTL_OK;
}

static tn_status read_file(struct tctl_publication *pub, struct tctl_infile *in, struct tctl_sha256 *sha, char *err,
			   size_t err_bytes)
{
	struct tctl_progress bar;
	tn_status s = TN_OK;
	tctl_progress_start(&bar, "load", in->bytes);
	while (s == TN_OK && in->at < in->bytes) {
		uint8_t *to = pub->data + in->at;
		size_t n = (size_t)TN_MIN((uint64_t)PIECE_BYTES, in->bytes - in->at);
		s = tctl_infile_read(in, to, n, err, err_bytes);
		if (s == TN_OK)
			tctl_sha256_add(sha, to, n);
		tctl_progress_show(&bar, in->at);
	}
	tctl_progress_end(&bar);
	return s == TN_OK ? tctl_infile_at_end(in, err, err_bytes) : s;
}

int tctl_publication_load(struct tctl_publication *pub, const char *path)
{
	char err[512];
	struct tctl_infile in;
	struct tctl_sha256 *sha = tctl_sha256_new();
	if (sha == NULL)
		return tctl_fail(pub->t, TN_NO_MEMORY, "no memory for a hash");
	tn_status s = tctl_infile_open(&in, path, pub->trailer.capacity, err, sizeof err);
	if (s == TN_OK) {
		s = read_file(pub, &in, sha, err, sizeof err);
		tctl_infile_close(&in);
	}
	if (s != TN_OK) {
		tctl_sha256_free(sha);
		return tctl_fail(pub->t, s, "%s", err);
	}
	if (!tctl_sha256_end(sha, pub->trailer.sha256))
		return tctl_fail(pub->t, TN_INTERNAL, "libcrypto cannot hash");
	pub->trailer.content = TCTL_CONTENT_READY;
	pub->trailer.content_bytes = in.bytes;
	write_trailer(pub);
	return TCTL_OK;
}

int tctl_publication_publish(struct tctl_publication *pub, const struct tctl_texts *peers)
{
	tent_published *handle;
	tent_access access = TENT_ACCESS_INIT;
	uint64_t room = pub->segment_bytes - TCTL_TRAILER_BYTES;
	/* the room first; an empty file has none. Nobody may write the page in which only the publisher speaks. */
	const tent_buffer buffers[2] = {
		{ .memory = pub->mem, .offset = 0, .bytes = room,
		  .rights = TENT_RIGHT_REMOTE_READ | (pub->writable ? TENT_RIGHT_REMOTE_WRITE : 0) },
		{ .memory = pub->mem, .offset = room, .bytes = TCTL_TRAILER_BYTES, .rights = TENT_RIGHT_REMOTE_READ },
	};
	unsigned first = room == 0 ? 1 : 0;
	access.who = TENT_ACCESS_SAME_UID | TENT_ACCESS_PEERS;
	access.peers = peers->item;
	access.peer_count = peers->cnt;
	tent_status s = tent_segment_publish(pub->ctx, pub->name, buffers + first, 2 - first, &access, &handle);
	return s == TENT_OK ? TCTL_OK : fail_tent(pub, s);
}

/* ---- puts ---- */

/* --output, while a put is verified. */
struct output {
	struct tctl_outfile file; /* fd -1: there is none */
	tn_status status;         /* why it cannot be written */
	char err[512];
};

static void output_open(struct output *o, const char *path, uint64_t bytes)
{
	o->file.fd = -1;
	o->status = path != NULL ? tctl_outfile_open(&o->file, path, bytes, o->err, sizeof o->err) : TN_OK;
}

/* Hash [0, bytes) of the room into `out`, and write it. Others may write into the room at any time, so each piece is
 * copied first: what the file holds is what was hashed. False: interrupted, no memory, or libcrypto failed. */
static bool hash_content(const struct tctl_publication *pub, uint64_t bytes, struct output *o,
			 uint8_t out[static TCTL_SHA256_BYTES])
{
	struct tctl_sha256 *sha = tctl_sha256_new();
	uint8_t *piece = malloc(PIECE_BYTES);
	bool good = sha != NULL && piece != NULL;
	for (uint64_t at = 0; good && at < bytes && !tctl_stopped(); at += PIECE_BYTES) {
		size_t n = (size_t)TN_MIN((uint64_t)PIECE_BYTES, bytes - at);
		memcpy(piece, pub->data + at, n);
		tctl_sha256_add(sha, piece, n);
		if (o->file.fd >= 0 && o->status == TN_OK)
			o->status = tctl_outfile_write(&o->file, at, piece, n, o->err, sizeof o->err);
	}
	free(piece);
	if (!good) {
		tctl_sha256_free(sha);
		return false;
	}
	return tctl_sha256_end(sha, out) && !tctl_stopped();
}

/* The room holds what `was` describes. A put that lost against another one, or a notice that is wrong, does not take that
 * away from its readers. */
static bool still_holds(const struct tctl_publication *pub, const struct tctl_trailer *was)
{
	uint8_t now[TCTL_SHA256_BYTES];
	struct output none = { .file = { .fd = -1 } };
	return was->content == TCTL_CONTENT_READY && hash_content(pub, was->content_bytes, &none, now) &&
	       memcmp(now, was->sha256, sizeof now) == 0;
}

/* What the notice says, checked and done; the trailer's content state is settled afterwards. The hash that was found goes
 * to `found`, which is untouched when nothing was hashed. */
static enum tctl_put_result take_put(struct tctl_publication *pub, const struct tctl_put_notice *n,
				     uint8_t found[static TCTL_SHA256_BYTES])
{
	struct tctl_trailer *tr = &pub->trailer, was = *tr;
	struct output o;
	if (!pub->writable)
		return TCTL_PUT_READ_ONLY;
	if (n->content_bytes > tr->capacity)
		return TCTL_PUT_TOO_BIG;
	tr->content = TCTL_CONTENT_HASHING;
	tctl_trailer_judge(tr, n->nonce, TCTL_PUT_NONE);
	write_trailer(pub);
	output_open(&o, pub->output, n->content_bytes);
	bool same = hash_content(pub, n->content_bytes, &o, found) && memcmp(found, n->sha256, sizeof n->sha256) == 0;
	if (same && o.file.fd >= 0 && o.status == TN_OK)
		o.status = tctl_outfile_commit(&o.file, o.err, sizeof o.err);
	tctl_outfile_abandon(&o.file);
	if (!same) {
		tr->content = still_holds(pub, &was) ? TCTL_CONTENT_READY : TCTL_CONTENT_DAMAGED;
		return TCTL_PUT_MISMATCH;
	}
	tr->content = TCTL_CONTENT_READY;
	tr->content_bytes = n->content_bytes;
	memcpy(tr->sha256, found, sizeof tr->sha256);
	if (o.status != TN_OK)
		(void)tctl_fail(pub->t, o.status, "%s", o.err);
	return o.status != TN_OK ? TCTL_PUT_OUTPUT : TCTL_PUT_DONE;
}

static const char *const result_names[TCTL_PUT_CNT] = {
	[TCTL_PUT_NONE] = "none", [TCTL_PUT_DONE] = "verified", [TCTL_PUT_READ_ONLY] = "read_only",
	[TCTL_PUT_TOO_BIG] = "too_big", [TCTL_PUT_MISMATCH] = "mismatch", [TCTL_PUT_OUTPUT] = "output_failed",
};

static void report_put(const struct tctl_publication *pub, const char *from, const struct tctl_put_notice *n,
		       const uint8_t found[static TCTL_SHA256_BYTES], enum tctl_put_result verdict)
{
	char hex[TCTL_SHA256_HEX];
	const char *result = result_names[verdict];
	bool written = pub->output != NULL && verdict == TCTL_PUT_DONE;
	tctl_sha256_hex(found, hex);
	if (pub->t->json) {
		json_t *j = json_object();
		tn_json_put_str(j, "event", "put");
		tn_json_put_str(j, "segment", pub->name);
		tn_json_put_str(j, "from", from);
		tn_json_put_str(j, "result", result);
		tn_json_put_u64(j, "bytes", n->content_bytes);
		tn_json_put_str(j, "sha256", hex);
		tn_json_put_bool(j, "written", written);
		tctl_print_json_line(j);
		json_decref(j);
	} else {
		printf("put from %s: %s, %s, sha256 %s%s%s\n", from[0] != '\0' ? from : "this host", result,
		       tctl_bytes_text(n->content_bytes), hex, written ? ", written to " : "",
		       written ? pub->output : "");
	}
	(void)tctl_flush(pub->t); /* others still use the segment: that nobody listens here shows at the end */
}

bool tctl_publication_on_note(struct tctl_publication *pub, const tent_note *note)
{
	struct tctl_put_notice n;
	uint8_t found[TCTL_SHA256_BYTES];
	if (note->kind != TENT_NOTE_DATA || !tctl_put_notice_decode(note->payload, note->bytes, &n))
		return false;
	memcpy(found, pub->trailer.sha256, sizeof found);
	enum tctl_put_result result = take_put(pub, &n, found);
	if (tctl_stopped() && result != TCTL_PUT_DONE)
		return true; /* it is ending: the sender sees the segment go, not a verdict that was broken off */
	tctl_trailer_judge(&pub->trailer, n.nonce, result);
	write_trailer(pub);
	report_put(pub, note->from, &n, found, result);
	return true;
}

void tctl_publication_close(struct tctl_publication *pub)
{
	(void)tent_close(pub->ctx); /* withdraws; whatever it says, the process ends now */
	pub->ctx = NULL;
}
