/* SPDX-License-Identifier: Apache-2.0
 * READs of a file segment. Chunks are asked for ahead, so that hashing and writing one overlaps with the others. */
#include "controlplane/tentctl/remote_file.h"

#define TORN_MOST_NS (2 * TN_NS_PER_S)

tn_status tctl_remote_trailer(struct tctl_pump *p, struct tctl_trailer *out)
{
	char err[TN_ERR_TEXT];
	uint64_t off, deadline_ns = tn_deadline_after(tn_now_ns(), TORN_MOST_NS);
	if (!tctl_trailer_offset(p->segment_bytes, &off))
		return TN_NOT_FOUND;
	for (;;) {
		const uint8_t *page = tctl_pump_peek(p, off, TCTL_TRAILER_BYTES);
		if (page == NULL)
			return TN_CANCELED;
		tn_status s = tctl_trailer_decode(page, p->segment_bytes, out, err);
		if (s == TN_OK || s == TN_NOT_FOUND)
			return s;
		if (s != TN_AGAIN || tn_now_ns() >= deadline_ns) {
			tctl_pump_fail(p, s, "%s: %s", p->ref, err);
			return s;
		}
		tctl_stop_sleep(-1, TN_NS_PER_MS);
	}
}

static uint64_t chunk_length(const struct tctl_pump *p, uint64_t chunk, uint64_t bytes)
{
	return TN_MIN(p->chunk_bytes, bytes - chunk * p->chunk_bytes);
}

static bool read_chunks(struct tctl_pump *p, uint64_t bytes, struct tctl_outfile *to, struct tctl_sha256 *sha,
			struct tctl_progress *bar)
{
	char err[512];
	uint64_t chunks = bytes == 0 ? 0 : (bytes + p->chunk_bytes - 1) / p->chunk_bytes, asked = 0;
	for (uint64_t i = 0; i < chunks; i++) {
		for (; asked < chunks && asked < i + p->buffer_cnt; asked++)
			if (!tctl_pump_start(p, TENT_READ, asked, asked * p->chunk_bytes, chunk_length(p, asked, bytes),
					     0))
				return false;
		if (!tctl_pump_wait(p, i))
			return false;
		const uint8_t *data = tctl_pump_buffer(p, i);
		size_t n = (size_t)chunk_length(p, i, bytes);
		tctl_sha256_add(sha, data, n);
		tn_status s = to != NULL ? tctl_outfile_write(to, i * p->chunk_bytes, data, n, err, sizeof err) : TN_OK;
		if (s != TN_OK)
			return tctl_pump_fail(p, s, "%s", err);
		tctl_progress_show(bar, i * p->chunk_bytes + n);
	}
	return true;
}

bool tctl_remote_read(struct tctl_pump *p, uint64_t bytes, struct tctl_outfile *to, const char *what,
		      uint8_t sha256_out[static TCTL_SHA256_BYTES])
{
	struct tctl_progress bar;
	struct tctl_sha256 *sha = tctl_sha256_new();
	if (sha == NULL)
		return tctl_pump_fail(p, TN_NO_MEMORY, "no memory for a hash");
	tctl_progress_start(&bar, what, bytes);
	bool ok = read_chunks(p, bytes, to, sha, &bar);
	tctl_progress_end(&bar);
	if (!ok) {
		tctl_sha256_free(sha);
		return false;
	}
	return tctl_sha256_end(sha, sha256_out) || tctl_pump_fail(p, TN_INTERNAL, "libcrypto cannot hash");
}
