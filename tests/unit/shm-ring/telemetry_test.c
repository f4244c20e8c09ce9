/* SPDX-License-Identifier: Apache-2.0
 * Telemetry files: they outlive their writer, are numbered, pruned, and believed only as far as they add up. */
#include "shm-ring/telemetry.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/shm-ring/fixture.h"

static const char *tele_path(const struct fx_dir *d, uint64_t generation, char out[static FX_PATH])
{
	char name[SHR_TELE_NAME_MAX];
	shr_tele_name(generation, name);
	return fx_path(d, name, out);
}

static void survives_its_writer(void)
{
	struct fx_dir d;
	struct shr_tele_cfg cfg = fx_tele_cfg();
	fx_dir_make(&d);
	pid_t pid = fork();
	if (pid == 0) {
		struct shr_tele t;
		if (shr_tele_create(d.path, &cfg, &t) != TN_OK)
			_exit(1);
		tn_store_relaxed64(&shr_tele_cells(&t, 1)[3], 4711);
		tn_store_relaxed64(&shr_tele_worker(&t, 0)->busy_ns, 99);
		tn_store_relaxed32(&t.hdr->state, SHR_TELE_RUNNING);
		kill(getpid(), SIGKILL);
	}
	int st;
	CU_ASSERT_EQUAL_FATAL(waitpid(pid, &st, 0), pid);
	CU_ASSERT_FATAL(WIFSIGNALED(st));
	struct shr_tele_ro ro;
	fx_tele_open(&d, 1, &ro);
	CU_ASSERT_EQUAL(ro.hdr.pid, (uint32_t)pid);
	CU_ASSERT_EQUAL(ro.hdr.generation, 1);
	CU_ASSERT_EQUAL(ro.hdr.schema_hash, cfg.schema_hash);
	CU_ASSERT(tn_id128_eq(&ro.hdr.session, &cfg.session));
	CU_ASSERT_STRING_EQUAL(ro.hdr.build, cfg.build);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&shr_tele_ro_cells(&ro, 1)[3]), 4711);
	CU_ASSERT_EQUAL(tn_load_relaxed64(&shr_tele_ro_worker(&ro, 0)->busy_ns), 99);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&ro.live->state), SHR_TELE_RUNNING);
	CU_ASSERT_EQUAL(tn_load_relaxed32(&ro.live->recording), 1);
	shr_tele_close_ro(&ro);
	shr_tele_close_ro(&ro);
	fx_dir_remove(&d);
}

static void touch(const struct fx_dir *d, const char *name)
{
	char path[FX_PATH];
	int fd = open(fx_path(d, name, path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		abort();
	close(fd);
}

static void generations_and_pruning(void)
{
	struct fx_dir d;
	struct shr_tele_cfg cfg = fx_tele_cfg();
	uint64_t g[8];
	uint32_t n = 0, removed = 0;
	fx_dir_make(&d);
	CU_ASSERT_EQUAL(shr_tele_scan(d.path, g, 8, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 0);
	static const char *const strangers[] = { "dataplane-x.tele", "dataplane-0.tele", "dataplane-01.tele", "dataplane-9.tele.bak",
						 "dataplane--3.tele", "dataplane-99999999999999999999999.tele", "dataplane.lock" };
	for (size_t i = 0; i < TN_ARRAY_LEN(strangers); i++)
		touch(&d, strangers[i]);
	for (int i = 0; i < 4; i++) {
		struct shr_tele t;
		CU_ASSERT_EQUAL_FATAL(shr_tele_create(d.path, &cfg, &t), TN_OK);
		CU_ASSERT_EQUAL(t.generation, (uint64_t)i + 1);
		shr_tele_close(&t);
	}
	touch(&d, "dataplane-10.tele"); /* a creator that died before the magic */
	CU_ASSERT_EQUAL(shr_tele_scan(d.path, g, 3, &n), TN_OK);
	CU_ASSERT(n == 3 && g[0] == 10 && g[1] == 4 && g[2] == 3);
	struct shr_tele t;
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(d.path, &cfg, &t), TN_OK);
	CU_ASSERT_EQUAL(t.generation, 11);
	CU_ASSERT_EQUAL(shr_tele_prune(d.path, SHR_TELE_KEEP, &removed), TN_OK);
	CU_ASSERT_EQUAL(removed, 4); /* 10 (debris), 3, 2, 1 */
	CU_ASSERT_EQUAL(shr_tele_scan(d.path, g, 8, &n), TN_OK);
	CU_ASSERT(n == 2 && g[0] == 11 && g[1] == 4);
	char path[FX_PATH];
	for (size_t i = 0; i < TN_ARRAY_LEN(strangers); i++)
		CU_ASSERT_EQUAL(access(fx_path(&d, strangers[i], path), F_OK), 0);
	struct stat st;
	CU_ASSERT_EQUAL(stat(tele_path(&d, 11, path), &st), 0);
	CU_ASSERT_EQUAL(st.st_mode & 07777, 0640);
	CU_ASSERT_EQUAL((uint64_t)st.st_size, t.lay.region_bytes);
	shr_tele_close(&t);
	CU_ASSERT_EQUAL(shr_tele_scan("/nonexistent/dir", g, 8, &n), TN_NOT_FOUND);
	fx_dir_remove(&d);
}

static void open_refuses_what_does_not_add_up(void)
{
	struct fx_dir d;
	struct shr_tele_cfg cfg = fx_tele_cfg();
	struct shr_tele t;
	struct shr_tele_ro ro = { 0 };
	char path[FX_PATH];
	fx_dir_make(&d);
	CU_ASSERT_EQUAL(shr_tele_open_ro(tele_path(&d, 1, path), &ro), TN_NOT_FOUND);
	CU_ASSERT_EQUAL(shr_tele_open_ro(d.path, &ro), TN_INVALID);
	CU_ASSERT_EQUAL_FATAL(shr_tele_create(d.path, &cfg, &t), TN_OK);
	/* Each bit of every number that places something. */
	uint8_t *h = (uint8_t *)t.hdr;
	size_t from = offsetof(struct shr_tele_hdr_shm, worker_cnt), to = offsetof(struct shr_tele_hdr_shm, loaded_transports);
	for (size_t bit = 8 * from; bit < 8 * to; bit++) {
		h[bit / 8] ^= (uint8_t)(1u << bit % 8);
		CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_INVALID);
		h[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	t.hdr->region_bytes += SHR_PAGE;
	CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_INVALID);
	t.hdr->region_bytes -= SHR_PAGE;
	t.hdr->abi_major++;
	CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_ABI_MISMATCH);
	t.hdr->abi_major--;
	tn_store_relaxed32(&t.hdr->magic, 0);
	CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_AGAIN);
	tn_store_relaxed32(&t.hdr->magic, 0x12345678);
	CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_INVALID);
	tn_store_relaxed32(&t.hdr->magic, SHR_TELE_MAGIC);
	memset(t.hdr->build, 'x', sizeof t.hdr->build);
	CU_ASSERT_EQUAL_FATAL(shr_tele_open_ro(path, &ro), TN_OK);
	CU_ASSERT_EQUAL(strlen(ro.hdr.build), sizeof ro.hdr.build - 1);
	shr_tele_close_ro(&ro);
	CU_ASSERT_EQUAL(truncate(path, (off_t)t.lay.region_bytes - SHR_PAGE), 0);
	CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_INVALID);
	CU_ASSERT_EQUAL(truncate(path, 100), 0);
	CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_INVALID);
	CU_ASSERT_EQUAL(truncate(path, 0), 0);
	CU_ASSERT_EQUAL(shr_tele_open_ro(path, &ro), TN_AGAIN);
	char link[FX_PATH];
	CU_ASSERT_EQUAL(symlink(path, fx_path(&d, "dataplane-7.tele", link)), 0);
	CU_ASSERT_EQUAL(shr_tele_open_ro(link, &ro), TN_INVALID);
	CU_ASSERT_PTR_NULL(ro.live);
	shr_tele_close(&t);
	fx_dir_remove(&d);
}

static void create_refuses(void)
{
	struct fx_dir d;
	struct shr_tele t = { 0 };
	struct shr_tele_cfg cfg = fx_tele_cfg();
	uint32_t n = 9;
	uint64_t g;
	fx_dir_make(&d);
	CU_ASSERT_EQUAL(shr_tele_create("/nonexistent/dir", &cfg, &t), TN_NOT_FOUND);
	cfg.worker_cnt = 0;
	CU_ASSERT_EQUAL(shr_tele_create(d.path, &cfg, &t), TN_INVALID);
	CU_ASSERT_EQUAL(shr_tele_scan(d.path, &g, 1, &n), TN_OK);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_PTR_NULL(t.hdr);
	shr_tele_close(&t);
	fx_dir_remove(&d);
}

TN_TEST_MAIN("shm-ring/telemetry",
	{ "numbers outlive a killed writer [M2]", survives_its_writer },
	{ "generations count up; all but the newest whole files go", generations_and_pruning },
	{ "a file that does not add up is refused [M2]", open_refuses_what_does_not_add_up },
	{ "a failed creation leaves nothing", create_refuses })
