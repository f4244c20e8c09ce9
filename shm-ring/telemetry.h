/* SPDX-License-Identifier: Apache-2.0
 * The life of telemetry files `dataplane-<generation>.tele` in the runtime directory (tmpfs): one per data-plane start,
 * created by the data plane under its lease, left behind when it dies, the last two kept. Readers (control plane,
 * tentctl) map them read-only and believe only their own arithmetic. Set-up time; control threads only. */
#ifndef SHR_TELEMETRY_H
#define SHR_TELEMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/atomic.h"
#include "common/compiler.h"
#include "common/ids.h"
#include "common/status.h"
#include "shm-ring/abi.h"
#include "shm-ring/layout.h"

#define SHR_TELE_KEEP 2u       /* files that prune leaves: the running one and its predecessor */
#define SHR_TELE_NAME_MAX 48u  /* file name with the NUL */

/* What the writer decides; copied into the header. */
struct shr_tele_cfg {
	uint32_t worker_cnt, cell_cnt, event_slots, keep_slots; /* ranges: shr_tele_layout() */
	uint64_t schema_hash;       /* of metrics.def */
	struct tn_id128 session;
	uint64_t start_mono_ns, start_real_ns;
	uint32_t loaded_transports; /* bit (1 << enum tn_transport) */
	bool metrics_compiled;
	const char *build;          /* "version commit build_type"; cut at 63 bytes */
};

/* The writer's mapping. Pointers are valid until shr_tele_close(). */
struct shr_tele {
	struct shr_tele_hdr_shm *hdr; /* also the start of the mapping; NULL = none */
	struct shr_tele_layout lay;
	uint64_t generation;
};

/* Writes the file name of a generation. */
void shr_tele_name(uint64_t generation, char out[static SHR_TELE_NAME_MAX]);

/* Creates the file of the next generation (newest + 1) in `dir` with mode 0640, all pages allocated, state STARTING,
 * recording on, heartbeat = start. Call under the data plane's lease. TN_INVALID (counts), TN_NOT_FOUND (dir),
 * TN_PERMISSION, TN_NO_MEMORY (tmpfs full), TN_SYSTEM (errno set). *out untouched on failure, no file left. */
TN_MUST_USE tn_status shr_tele_create(const char *dir, const struct shr_tele_cfg *cfg, struct shr_tele *out);
/* Unmaps; the file stays for readers. Accepts a zeroed object. */
void shr_tele_close(struct shr_tele *t);

/* Writer's pointers. thread = worker index, or lay.worker_cnt for the control thread (which has no worker block). */
struct shr_worker_shm *shr_tele_worker(const struct shr_tele *t, uint32_t worker);
tn_a64 *shr_tele_cells(const struct shr_tele *t, uint32_t thread);
struct shr_event_ring_shm *shr_tele_ring(const struct shr_tele *t, uint32_t thread, bool keep);

/* A reader's mapping of one file. `hdr` is a private copy of the constant fields; live fields come through `live`. */
struct shr_tele_ro {
	const struct shr_tele_hdr_shm *live; /* start of the read-only mapping; NULL = none */
	struct shr_tele_layout lay;
	struct shr_tele_hdr_shm hdr;         /* copied at open: everything above `state`, and build (NUL-terminated) */
	uint64_t dev, ino;                   /* which file this is */
};

/* Maps a file read-only and checks all of it: regular file, magic, ABI major, every count, offset and size recomputed
 * and compared with header and fstat. TN_NOT_FOUND; TN_AGAIN: being created, or its creator died doing so;
 * TN_ABI_MISMATCH; TN_INVALID: not a telemetry file, or contradictory; TN_PERMISSION, TN_NO_MEMORY, TN_SYSTEM.
 * A schema hash is compared by the caller. *out untouched on failure. */
TN_MUST_USE tn_status shr_tele_open_ro(const char *path, struct shr_tele_ro *out);
void shr_tele_close_ro(struct shr_tele_ro *t);

const struct shr_worker_shm *shr_tele_ro_worker(const struct shr_tele_ro *t, uint32_t worker);
const tn_a64 *shr_tele_ro_cells(const struct shr_tele_ro *t, uint32_t thread);
const struct shr_event_ring_shm *shr_tele_ro_ring(const struct shr_tele_ro *t, uint32_t thread, bool keep);

/* Generations present in `dir` by file name, newest first, at most `max`; *cnt_out = how many were written.
 * No file is opened. TN_OK (also when there are none), TN_NOT_FOUND, TN_PERMISSION, TN_SYSTEM. */
TN_MUST_USE tn_status shr_tele_scan(const char *dir, uint64_t *generations, uint32_t max, uint32_t *cnt_out);

/* Removes all files but the newest `keep` that were completely created (a file without magic is debris). Call under
 * the data plane's lease, after creating one's own. *removed_out may be NULL. */
tn_status shr_tele_prune(const char *dir, uint32_t keep, uint32_t *removed_out);

#endif
