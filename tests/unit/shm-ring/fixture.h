/* SPDX-License-Identifier: Apache-2.0
 * What several shm-ring tests need: a directory of their own that is removed again, a queue pair in private memory,
 * and a telemetry file open on both sides. Test code only; one thread. */
#ifndef TEST_SHM_RING_FIXTURE_H
#define TEST_SHM_RING_FIXTURE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shm-ring/ring_check.h"
#include "shm-ring/telemetry.h"
#include "tests/unit/cu.h"

#define FX_PATH 300

struct fx_dir {
	char path[200];
};

static inline void fx_dir_make(struct fx_dir *d)
{
	const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(d->path, sizeof d->path, "%s/tent-test-XXXXXX", base);
	if (mkdtemp(d->path) == NULL) {
		perror("mkdtemp");
		abort();
	}
}

static inline void fx_dir_remove(struct fx_dir *d)
{
	DIR *dir = opendir(d->path);
	for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir != NULL)
		closedir(dir);
	rmdir(d->path);
}

static inline const char *fx_path(const struct fx_dir *d, const char *name, char out[static FX_PATH])
{
	snprintf(out, FX_PATH, "%s/%s", d->path, name);
	return out;
}

struct fx_qp {
	void *mem;
	struct shr_qp_layout lay;
	struct shr_qp_view creator, joiner;
};

static inline void fx_qp_make(struct fx_qp *q, uint32_t sq_entries, uint32_t note_slots)
{
	if (shr_qp_layout(sq_entries, note_slots, &q->lay) != TN_OK)
		abort();
	q->mem = aligned_alloc(SHR_PAGE, q->lay.region_bytes);
	if (q->mem == NULL)
		abort();
	memset(q->mem, 0, q->lay.region_bytes);
	shr_qp_format(q->mem, &q->lay, 7, &q->creator);
	if (shr_qp_check(q->mem, q->lay.region_bytes, &q->joiner) != TN_OK)
		abort();
}

static inline void fx_qp_free(struct fx_qp *q) { free(q->mem); }

static inline struct shr_tele_cfg fx_tele_cfg(void)
{
	return (struct shr_tele_cfg){
		.worker_cnt = 2, .cell_cnt = 16, .event_slots = 16, .keep_slots = 8, .schema_hash = 0xabcdef,
		.session = { { 1, 2, 3 } }, .start_mono_ns = 5, .start_real_ns = 6, .loaded_transports = 1u << 4,
		.metrics_compiled = true, .build = "0.1.0 abc RelWithDebInfo",
	};
}

static inline void fx_tele_open(const struct fx_dir *d, uint64_t generation, struct shr_tele_ro *out)
{
	char name[SHR_TELE_NAME_MAX], path[FX_PATH];
	shr_tele_name(generation, name);
	if (shr_tele_open_ro(fx_path(d, name, path), out) != TN_OK)
		abort();
}

#endif
