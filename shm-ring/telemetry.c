/* SPDX-License-Identifier: Apache-2.0
 * Telemetry files: naming, creation with the magic last, checked read-only opening, scan and prune. The lease of the
 * data plane makes creation and pruning single-handed; readers need no lock. Control threads only. */
#include "shm-ring/telemetry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm-ring/words.h"

#define NAME_PREFIX "dataplane-"
#define NAME_SUFFIX ".tele"
#define CREATE_TRIES 8
#define HDR_WORDS ((uint32_t)(sizeof(struct shr_tele_hdr_shm) / 8))

void shr_tele_name(uint64_t generation, char out[static SHR_TELE_NAME_MAX])
{
	snprintf(out, SHR_TELE_NAME_MAX, NAME_PREFIX "%" PRIu64 NAME_SUFFIX, generation);
}

/* 0 when the name is not exactly what shr_tele_name() writes. */
static uint64_t parse_name(const char *name)
{
	if (strncmp(name, NAME_PREFIX, sizeof NAME_PREFIX - 1) != 0)
		return 0;
	const char *digits = name + sizeof NAME_PREFIX - 1;
	if (*digits < '1' || *digits > '9')
		return 0;
	char *end = NULL;
	errno = 0;
	uint64_t generation = strtoull(digits, &end, 10);
	if (errno != 0 || generation == UINT64_MAX || strcmp(end, NAME_SUFFIX) != 0)
		return 0;
	return generation;
}

static int newest_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

/* All generations in an open directory, sorted newest first, malloc'ed (caller frees). Takes ownership of dir_fd. */
static tn_status list_generations(int dir_fd, uint64_t **list_out, uint32_t *cnt_out)
{
	DIR *d = fdopendir(dir_fd);
	if (d == NULL) {
		tn_status s = tn_status_from_errno(errno);
		close(dir_fd);
		return s;
	}
	uint64_t *list = NULL;
	uint32_t cnt = 0, room = 0;
	tn_status s = TN_OK;
	for (struct dirent *e; s == TN_OK && (e = readdir(d)) != NULL;) {
		uint64_t generation = parse_name(e->d_name);
		if (generation == 0)
			continue;
		if (cnt == room) {
			room = room != 0 ? 2 * room : 16;
			uint64_t *bigger = realloc(list, room * sizeof *list);
			if (bigger == NULL) {
				s = TN_NO_MEMORY;
				continue;
			}
			list = bigger;
		}
		list[cnt++] = generation;
	}
	closedir(d);
	if (s != TN_OK) {
		free(list);
		return s;
	}
	if (cnt != 0)
		qsort(list, cnt, sizeof *list, newest_first);
	*list_out = list;
	*cnt_out = cnt;
	return TN_OK;
}

static tn_status open_dir(const char *dir, int *fd_out)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return tn_status_from_errno(errno);
	*fd_out = fd;
	return TN_OK;
}

static tn_status list_dir(const char *dir, uint64_t **list_out, uint32_t *cnt_out)
{
	int fd = -1;
	tn_status s = open_dir(dir, &fd);
	return s != TN_OK ? s : list_generations(fd, list_out, cnt_out);
}

/* Opens a file of the next free generation. Under the lease the first try wins; O_EXCL guards against a mistake. */
static tn_status create_next(const char *dir, int dir_fd, uint64_t *generation_out, int *fd_out)
{
	for (int i = 0; i < CREATE_TRIES; i++) {
		uint64_t *list = NULL;
		uint32_t cnt = 0;
		tn_status s = list_dir(dir, &list, &cnt);
		if (s != TN_OK)
			return s;
		uint64_t generation = cnt != 0 ? list[0] + 1 : 1;
		free(list);
		char name[SHR_TELE_NAME_MAX];
		shr_tele_name(generation, name);
		int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
		if (fd >= 0) {
			*generation_out = generation;
			*fd_out = fd;
			return TN_OK;
		}
		if (errno != EEXIST)
			return tn_status_from_errno(errno);
	}
	return TN_BUSY;
}

static void write_header(struct shr_tele_hdr_shm *shm, const struct shr_tele_cfg *cfg, const struct shr_tele_layout *l,
			 uint64_t generation)
{
	struct shr_tele_hdr_shm h = {
		.abi_major = SHR_ABI_MAJOR,
		.abi_minor = SHR_ABI_MINOR,
		.schema_hash = cfg->schema_hash,
		.region_bytes = l->region_bytes,
		.generation = generation,
		.session = cfg->session,
		.start_mono_ns = cfg->start_mono_ns,
		.start_real_ns = cfg->start_real_ns,
		.pid = (uint32_t)getpid(),
		.worker_cnt = l->worker_cnt,
		.cell_cnt = l->cell_cnt,
		.cell_block_bytes = l->cell_block_bytes,
		.event_slots = l->event_slots,
		.keep_slots = l->keep_slots,
		.worker_off = l->worker_off,
		.cell_off = l->cell_off,
		.event_off = l->event_off,
		.keep_off = l->keep_off,
		.loaded_transports = cfg->loaded_transports,
		.metrics_compiled = cfg->metrics_compiled,
		.state = SHR_TELE_STARTING,
		.recording = cfg->metrics_compiled,
		.heartbeat_ns = cfg->start_mono_ns,
	};
	snprintf(h.build, sizeof h.build, "%s", cfg->build != NULL ? cfg->build : "");
	shr_words_store(shm, &h, HDR_WORDS);
	/* [M2] release: whoever sees the magic sees the whole header and the zeroed rest. */
	tn_store_release32(&shm->magic, SHR_TELE_MAGIC);
}

tn_status shr_tele_create(const char *dir, const struct shr_tele_cfg *cfg, struct shr_tele *out)
{
	struct shr_tele_layout lay;
	tn_status s = shr_tele_layout(cfg->worker_cnt, cfg->cell_cnt, cfg->event_slots, cfg->keep_slots, &lay);
	if (s != TN_OK)
		return s;
	int dir_fd = -1, fd = -1;
	uint64_t generation = 0;
	s = open_dir(dir, &dir_fd);
	if (s != TN_OK)
		return s;
	s = create_next(dir, dir_fd, &generation, &fd);
	if (s != TN_OK)
		goto undo_dir;
	/* Mode independent of the umask; all pages now, so that a full tmpfs is an error here and no SIGBUS later. */
	int err = fchmod(fd, 0640) != 0 ? errno : 0;
	if (err == 0)
		do
			err = posix_fallocate(fd, 0, (off_t)lay.region_bytes);
		while (err == EINTR);
	if (err != 0) {
		errno = err;
		s = err == ENOSPC ? TN_NO_MEMORY : tn_status_from_errno(err);
		goto undo_file;
	}
	void *base = mmap(NULL, lay.region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED) {
		s = tn_status_from_errno(errno);
		goto undo_file;
	}
	close(fd);
	close(dir_fd);
	write_header(base, cfg, &lay, generation);
	*out = (struct shr_tele){ .hdr = base, .lay = lay, .generation = generation };
	return TN_OK;
undo_file:;
	char name[SHR_TELE_NAME_MAX];
	shr_tele_name(generation, name);
	err = errno;
	unlinkat(dir_fd, name, 0);
	close(fd);
	errno = err;
undo_dir:
	close(dir_fd);
	return s;
}

void shr_tele_close(struct shr_tele *t)
{
	if (t->hdr != NULL)
		munmap(t->hdr, t->lay.region_bytes);
	*t = (struct shr_tele){ 0 };
}

struct shr_worker_shm *shr_tele_worker(const struct shr_tele *t, uint32_t worker)
{
	return (struct shr_worker_shm *)(void *)((uint8_t *)t->hdr + shr_tele_worker_off(&t->lay, worker));
}

tn_a64 *shr_tele_cells(const struct shr_tele *t, uint32_t thread)
{
	return (tn_a64 *)(void *)((uint8_t *)t->hdr + shr_tele_cells_off(&t->lay, thread));
}

struct shr_event_ring_shm *shr_tele_ring(const struct shr_tele *t, uint32_t thread, bool keep)
{
	return (struct shr_event_ring_shm *)(void *)((uint8_t *)t->hdr + shr_tele_ring_off(&t->lay, thread, keep));
}

/* Judges a private copy of the header against the arithmetic and the file's size. */
static tn_status check_header(struct shr_tele_hdr_shm *h, uint64_t file_bytes, struct shr_tele_layout *lay_out)
{
	if (h->abi_major != SHR_ABI_MAJOR)
		return TN_ABI_MISMATCH;
	struct shr_tele_layout l;
	if (shr_tele_layout(h->worker_cnt, h->cell_cnt, h->event_slots, h->keep_slots, &l) != TN_OK)
		return TN_INVALID;
	if (h->region_bytes != l.region_bytes || file_bytes != l.region_bytes ||
	    h->cell_block_bytes != l.cell_block_bytes || h->worker_off != l.worker_off || h->cell_off != l.cell_off ||
	    h->event_off != l.event_off || h->keep_off != l.keep_off || h->generation == 0)
		return TN_INVALID;
	h->build[sizeof h->build - 1] = '\0';
	*lay_out = l;
	return TN_OK;
}

tn_status shr_tele_open_ro(const char *path, struct shr_tele_ro *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ELOOP ? TN_INVALID : tn_status_from_errno(errno);
	tn_status s;
	struct stat st;
	if (fstat(fd, &st) != 0) {
		s = tn_status_from_errno(errno);
		goto undo_fd;
	}
	if (!S_ISREG(st.st_mode)) {
		s = TN_INVALID;
		goto undo_fd;
	}
	if ((uint64_t)st.st_size < sizeof(struct shr_tele_hdr_shm)) {
		s = st.st_size == 0 ? TN_AGAIN : TN_INVALID;
		goto undo_fd;
	}
	const struct shr_tele_hdr_shm *live = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (live == MAP_FAILED) {
		s = tn_status_from_errno(errno);
		goto undo_fd;
	}
	struct shr_tele_ro ro = { .live = live, .dev = st.st_dev, .ino = st.st_ino };
	/* [M2] acquire: pairs with write_header; the header behind the magic is whole. */
	uint32_t magic = tn_load_acquire32(&live->magic);
	shr_words_load(&ro.hdr, live, HDR_WORDS);
	s = magic == 0 ? TN_AGAIN : magic != SHR_TELE_MAGIC ? TN_INVALID : check_header(&ro.hdr, (uint64_t)st.st_size, &ro.lay);
	if (s != TN_OK)
		goto undo_map;
	close(fd);
	*out = ro;
	return TN_OK;
undo_map:
	munmap((void *)(uintptr_t)live, (size_t)st.st_size);
undo_fd:
	close(fd);
	return s;
}

void shr_tele_close_ro(struct shr_tele_ro *t)
{
	if (t->live != NULL)
		munmap((void *)(uintptr_t)t->live, t->lay.region_bytes);
	*t = (struct shr_tele_ro){ 0 };
}

const struct shr_worker_shm *shr_tele_ro_worker(const struct shr_tele_ro *t, uint32_t worker)
{
	return (const struct shr_worker_shm *)(const void *)((const uint8_t *)t->live +
							     shr_tele_worker_off(&t->lay, worker));
}

const tn_a64 *shr_tele_ro_cells(const struct shr_tele_ro *t, uint32_t thread)
{
	return (const tn_a64 *)(const void *)((const uint8_t *)t->live + shr_tele_cells_off(&t->lay, thread));
}

const struct shr_event_ring_shm *shr_tele_ro_ring(const struct shr_tele_ro *t, uint32_t thread, bool keep)
{
	return (const struct shr_event_ring_shm *)(const void *)((const uint8_t *)t->live +
								 shr_tele_ring_off(&t->lay, thread, keep));
}

tn_status shr_tele_scan(const char *dir, uint64_t *generations, uint32_t max, uint32_t *cnt_out)
{
	uint64_t *list = NULL;
	uint32_t cnt = 0;
	tn_status s = list_dir(dir, &list, &cnt);
	if (s != TN_OK)
		return s;
	cnt = TN_MIN(cnt, max);
	for (uint32_t i = 0; i < cnt; i++)
		generations[i] = list[i];
	free(list);
	*cnt_out = cnt;
	return TN_OK;
}

/* Whole = its creator got as far as the magic. Files of another ABI count: they may be all that explains a crash. */
static bool file_is_whole(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	uint32_t magic = 0;
	bool whole = pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic && magic == SHR_TELE_MAGIC;
	close(fd);
	return whole;
}

tn_status shr_tele_prune(const char *dir, uint32_t keep, uint32_t *removed_out)
{
	uint64_t *list = NULL;
	uint32_t cnt = 0, kept = 0, removed = 0;
	int dir_fd = -1;
	tn_status s = open_dir(dir, &dir_fd);
	if (s != TN_OK)
		return s;
	s = list_dir(dir, &list, &cnt);
	for (uint32_t i = 0; s == TN_OK && i < cnt; i++) {
		char name[SHR_TELE_NAME_MAX];
		shr_tele_name(list[i], name);
		if (kept < keep && file_is_whole(dir_fd, name))
			kept++;
		else if (unlinkat(dir_fd, name, 0) == 0)
			removed++;
		else if (errno != ENOENT)
			s = tn_status_from_errno(errno);
	}
	free(list);
	close(dir_fd);
	if (removed_out != NULL)
		*removed_out = removed;
	return s;
}
