/* SPDX-License-Identifier: Apache-2.0
 * Owner of the mappings of client memory. A memory passes MAPPING (pool) -> ADDING (workers learn it) -> LIVE ->
 * DELETING (workers forget it) -> UNMAPPING (pool) -> freed; a dying client takes whatever state it is in from there.
 * Control thread, except the two job functions. */
#include "dataplane/segment/map.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/hook.h"
#include "common/clock.h"
#include "dataplane/control.h"
#include "dataplane/segment/populate.h"
#include "dataplane/staging/pool.h"
#include "shm-ring/layout.h"
#include "shm-ring/region.h"

static void mem_move(struct dp_local_memory *mem, enum dp_mem_state to)
{
	dp_control_move(DP_CONTROL_MEM, &mem->state, to);
}

/* How long a registration waits for its page table, how long the pool is at it at a time afterwards, and how often. What
 * then is still missing is entered page by page as it is used: a client's endless hole is not our endless work. */
#define FILL_FIRST_NS (200 * TN_NS_PER_MS)
#define FILL_TURN_NS  (20 * TN_NS_PER_MS)
#define FILL_TURNS    1000u

/* For the fault point: the middle page lies beyond the end of its object from now on. */
static void make_hole(uint8_t *base, uint64_t map_bytes)
{
	int fd = memfd_create("hole", MFD_CLOEXEC);
	uint8_t *at = base + map_bytes / 2 / SHR_PAGE * SHR_PAGE;
	if (fd < 0 || mmap(at, SHR_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED)
		abort();
	close(fd);
}

/* What never changes is the same in a private mapping, and older kernels than 6.7 make no other of it. */
static void *map_pages(const struct dp_map_req *req, uint64_t map_bytes, bool constant)
{
	int prot = PROT_READ | (req->write ? PROT_WRITE : 0);
	int flags = constant ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;

	return mmap(NULL, map_bytes, prot, flags, req->fd, (off_t)req->offset);
}

tn_status dp_map_run(struct dp_map_req *req)
{
	struct shr_foreign foreign;
	struct stat st;
	tn_status s;
	void *base;

	errno = 0;
	s = shr_region_seal_foreign(req->fd, req->offset + req->bytes, &foreign);
	req->detail = (uint32_t)errno;
	if (s != TN_OK)
		return s;
	if (req->write && !foreign.writable)
		return TN_PERMISSION;
	if (fstat(req->fd, &st) != 0) {
		req->detail = (uint32_t)errno;
		return TN_SYSTEM;
	}
	req->detail = foreign.page_bytes;
	if (req->offset % foreign.page_bytes != 0)
		return TN_INVALID;
	req->sealed = true;
	uint64_t map_bytes = (req->bytes + foreign.page_bytes - 1) / foreign.page_bytes * foreign.page_bytes;
	base = map_pages(req, map_bytes, foreign.constant);
	if (base == MAP_FAILED) {
		req->detail = (uint32_t)errno;
		return errno == EACCES ? TN_PERMISSION : tn_status_from_errno(errno);
	}
	/* What applications keep in it is not for our core files. */
	(void)madvise(base, map_bytes, MADV_DONTDUMP);
	if (TN_HOOK_FAIL(dp_memory_hole))
		make_hole(base, map_bytes);
	req->filled_bytes = dp_populate(base, map_bytes, req->write, 0, FILL_FIRST_NS);
	req->base = base;
	req->map_bytes = map_bytes;
	req->dev = st.st_dev;
	req->ino = st.st_ino;
	req->detail = 0;
	return TN_OK;
}

void dp_map_undo(const struct dp_map_req *req)
{
	if (req->base != NULL)
		(void)munmap(req->base, req->map_bytes);
}

/* Imported memory is mapped by nobody. */
static void count_op(struct dp_control *ctl, bool imported, unsigned op, bool good, uint64_t bytes)
{
	unsigned result = good ? TN_RESULT_SUCCESS : TN_RESULT_FAILURE;
	unsigned kind = imported ? TN_TRANSPORT_UNSPEC : TN_TRANSPORT_SHM;

	tn_counter_add(&ctl->metrics, TN_C3(MEMORY_OPERATIONS_TOTAL, kind, op, result), 1);
	tn_counter_add(&ctl->metrics, TN_C3(MEMORY_OPERATION_BYTES_TOTAL, kind, op, result), bytes);
}

static void count_mapping(struct dp_control *ctl, tn_status s, bool sealed)
{
	unsigned event = s == TN_OK ? TN_SHM_MAPPING_MAP : s == TN_RANGE ? TN_SHM_MAPPING_SIZE_MISMATCH :
	                 sealed ? TN_SHM_MAPPING_MAP_ERROR : TN_SHM_MAPPING_BACKING_OPEN_ERROR;

	tn_counter_add(&ctl->metrics, TN_C1(SHM_MAPPING_EVENTS_TOTAL, event), 1);
}

/* ---- release ---- */

static void memory_free(struct dp_local_memory *mem)
{
	struct dp_app *c = mem->client;

	tn_list_unlink(&mem->link);
	c->memory_cnt--;
	free(mem->m.areas);
	free(mem);
}

static void unmap_run(struct dp_job *j)
{
	dp_map_undo(&tn_container_of(j, struct dp_local_memory, job)->req);
}

static void unmap_done(struct dp_job *j)
{
	struct dp_local_memory *mem = tn_container_of(j, struct dp_local_memory, job);
	struct dp_app *c = mem->client;

	mem_move(mem, DP_MEM_FREE);
	memory_free(mem);
	dp_app_settle(c);
}

static void unmap_in_pool(struct dp_local_memory *mem)
{
	mem->job = (struct dp_job){ .run = unmap_run, .done = unmap_done };
	dp_reap_submit(&mem->ctl->reap, &mem->job);
}

/* Workers do not know it any more; the rest happens in the pool, after a turn of filling that may be under way. */
static void memory_unmap(struct dp_local_memory *mem)
{
	struct dp_control *ctl = mem->ctl;

	(void)dp_handles_remove(&ctl->memories, mem->m.handle);
	mem_move(mem, DP_MEM_UNMAPPING);
	if (mem->staging != NULL) {
		mem->staging->refs--;
	} else {
		ctl->memory_bytes -= mem->m.bytes;
		tn_counter_add(&ctl->metrics, TN_C1(SHM_MAPPING_EVENTS_TOTAL, TN_SHM_MAPPING_UNMAP), 1);
	}
	if (mem->client->staging == mem)
		mem->client->staging = NULL;
	if (mem->result == TN_OK)
		count_op(ctl, mem->staging != NULL, TN_MEMOP_UNREGISTER, true, mem->m.bytes);
	if (!mem->filling)
		unmap_in_pool(mem);
}

void dp_map_release_idle(struct dp_app *c)
{
	tn_list_foreach(node, &c->memories) {
		struct dp_local_memory *mem = tn_list_entry(node, struct dp_local_memory, link);
		bool known = mem->state == DP_MEM_ADDING || mem->state == DP_MEM_LIVE;
		if (known && mem->refs == 0 && mem->flight.waiting == 0)
			memory_unmap(mem);
	}
}

void dp_map_destroy_all(struct dp_app *c)
{
	tn_list_foreach(node, &c->memories) {
		struct dp_local_memory *mem = tn_list_entry(node, struct dp_local_memory, link);
		dp_map_undo(&mem->req);
		memory_free(mem);
	}
}

/* ---- registration ---- */

static struct dp_cmd delete_cmd(const struct dp_local_memory *mem)
{
	return (struct dp_cmd){ .kind = DP_CMD_MEM_DEL, .fd = -1, .num = mem->m.handle };
}

/* No worker knows it (any more). */
static void memory_deleted(struct dp_local_memory *mem)
{
	if (mem->result == TN_OK)
		dp_app_reply(mem->client, SHR_MSG_MEM_UNREGISTER, mem->correlation);
	else
		dp_app_fail(mem->client, mem->asked, mem->correlation, mem->result, 0);
	memory_unmap(mem);
}

/* The workers' answer to MEM_ADD. What one of them refused is taken from the others before anybody is told. */
static void memory_added(struct dp_local_memory *mem)
{
	struct dp_app *c = mem->client;

	mem->result = mem->flight.status;
	count_op(mem->ctl, mem->staging != NULL, TN_MEMOP_REGISTER, mem->result == TN_OK, mem->m.bytes);
	if (c->state == DP_APP_CLOSING) {
		dp_app_settle(c); /* CLIENT_DEL decides */
	} else if (mem->result != TN_OK) {
		mem_move(mem, DP_MEM_DELETING);
		if (!dp_crew_undo(&mem->ctl->crew, delete_cmd(mem), &mem->flight))
			memory_deleted(mem);
	} else {
		mem_move(mem, DP_MEM_LIVE);
		TN_HOOK(dp_memory_live);
		dp_app_reply_id(c, mem->asked, mem->correlation, mem->m.handle);
	}
}

static void memory_acked(struct dp_flight *f)
{
	struct dp_local_memory *mem = tn_container_of(f, struct dp_local_memory, flight);

	if (mem->state == DP_MEM_ADDING)
		memory_added(mem);
	else
		memory_deleted(mem);
}

static bool overlaps(const struct dp_local_memory *mem)
{
	const struct dp_map_req *a = &mem->req;

	tn_list_foreach(node, &mem->client->memories) {
		const struct dp_local_memory *other = tn_list_entry(node, struct dp_local_memory, link);
		const struct dp_map_req *b = &other->req;
		if (other == mem || other->state == DP_MEM_MAPPING || other->state == DP_MEM_UNMAPPING)
			continue;
		if (a->dev == b->dev && a->ino == b->ino && a->offset < b->offset + b->bytes &&
		    b->offset < a->offset + a->bytes)
			return true;
	}
	return false;
}

/* ---- the page table of a large memory, while it is in use already ---- */

static void fill_run(struct dp_job *j)
{
	struct dp_map_req *req = &tn_container_of(j, struct dp_local_memory, fill)->req;

	req->filled_bytes = dp_populate(req->base, req->map_bytes, req->write, req->filled_bytes, FILL_TURN_NS);
}

static void fill_done(struct dp_job *j);

/* In turns, each at the end of the pool's queue, so that others' jobs are not stuck behind gigabytes. */
static void fill_on(struct dp_local_memory *mem)
{
	mem->filling = mem->req.filled_bytes < mem->req.map_bytes && mem->fill_turns++ < FILL_TURNS;
	if (!mem->filling)
		return;
	mem->fill = (struct dp_job){ .run = fill_run, .done = fill_done };
	dp_reap_submit(&mem->ctl->reap, &mem->fill);
}

static void fill_done(struct dp_job *j)
{
	struct dp_local_memory *mem = tn_container_of(j, struct dp_local_memory, fill);

	mem->filling = false;
	if (mem->state == DP_MEM_UNMAPPING)
		unmap_in_pool(mem);
	else
		fill_on(mem);
}

static void map_run(struct dp_job *j)
{
	struct dp_local_memory *mem = tn_container_of(j, struct dp_local_memory, job);

	mem->result = dp_map_run(&mem->req);
	close(mem->req.fd); /* the mapping keeps the object alive */
	mem->req.fd = -1;
}

/* ---- staging buffers ---- */

static tn_status make_areas(struct dp_local_memory *mem)
{
	uint64_t chunk = tn_config_u64(mem->ctl->config, TN_CFG_STAGING_CHUNK_BYTES);
	uint32_t cnt;

	if (!dp_stage_split(mem->req.bytes, chunk, mem->ctl->crew.cnt, &chunk, &cnt))
		return TN_RANGE;
	mem->m.areas = calloc(mem->ctl->crew.cnt, sizeof *mem->m.areas);
	return mem->m.areas != NULL ? TN_OK : TN_NO_MEMORY;
}

/* The handle is known. */
static void init_areas(struct dp_local_memory *mem)
{
	uint64_t chunk = tn_config_u64(mem->ctl->config, TN_CFG_STAGING_CHUNK_BYTES);
	uint32_t cnt;

	if (!dp_stage_split(mem->req.bytes, chunk, mem->ctl->crew.cnt, &chunk, &cnt))
		return;
	for (uint32_t i = 0; i < mem->ctl->crew.cnt; i++)
		dp_stage_area_init(&mem->m.areas[i], mem->m.handle, chunk, i * cnt, cnt);
	mem->client->staging = mem;
}

static void map_done(struct dp_job *j)
{
	struct dp_local_memory *mem = tn_container_of(j, struct dp_local_memory, job);
	struct dp_control *ctl = mem->ctl;
	struct dp_app *c = mem->client;
	tn_status s = mem->result;

	TN_HOOK(dp_memory_mapped);
	count_mapping(ctl, s, mem->req.sealed);
	if (s == TN_OK && !dp_app_is_live(c))
		s = TN_CLIENT_GONE;
	else if (s == TN_OK && overlaps(mem))
		s = TN_EXISTS;
	if (s == TN_OK && mem->m.rights == SHR_RIGHT_STAGING)
		s = c->staging == NULL ? make_areas(mem) : TN_EXISTS;
	if (s == TN_OK)
		s = dp_handles_add(&ctl->memories, mem, &mem->m.handle);
	if (s != TN_OK) {
		count_op(ctl, false, TN_MEMOP_REGISTER, false, mem->req.bytes);
		dp_app_fail(c, SHR_MSG_MEM_REGISTER, mem->correlation, s, mem->req.detail);
		/* A mapping that must go again is unmapped where that may take long. */
		mem_move(mem, DP_MEM_UNMAPPING);
		unmap_in_pool(mem);
		return;
	}
	mem->m.base = mem->req.base;
	mem->m.bytes = mem->req.bytes;
	ctl->memory_bytes += mem->m.bytes;
	if (mem->m.areas != NULL)
		init_areas(mem);
	mem_move(mem, DP_MEM_ADDING);
	fill_on(mem);
	dp_crew_broadcast(&ctl->crew, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .fd = -1, .ptr = &mem->m }, &mem->flight);
}

static tn_status limit_check(const struct dp_app *c, uint32_t *detail_out)
{
	uint64_t max = tn_config_u64(c->ctl->config, TN_CFG_LIMITS_MAX_MEMORIES_PER_CLIENT);

	*detail_out = c->memory_cnt >= max ? (uint32_t)max : 0;
	return c->memory_cnt >= max ? TN_LIMIT : TN_OK;
}

static tn_status register_check(const struct dp_app *c, const struct shr_msg_mem_register *req, uint32_t *detail_out)
{
	bool known = req->rights == SHR_RIGHT_STAGING || (req->rights & ~SHR_RIGHT_ALL) == 0;

	if (limit_check(c, detail_out) != TN_OK)
		return TN_LIMIT;
	if (req->rights == 0 || !known || req->length == 0) {
		*detail_out = req->rights;
		return TN_INVALID;
	}
	if (req->offset % SHR_PAGE != 0) {
		*detail_out = SHR_PAGE;
		return TN_INVALID;
	}
	return req->length > INT64_MAX - req->offset || req->offset > INT64_MAX ? TN_RANGE : TN_OK;
}

void dp_map_on_register(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_mem_register *req = shr_msg_body_ro(m);
	struct dp_local_memory *mem;
	uint32_t detail;
	tn_status s = register_check(c, req, &detail);

	if (s == TN_OK && (mem = calloc(1, sizeof *mem)) == NULL)
		s = TN_NO_MEMORY;
	if (s != TN_OK) {
		count_op(c->ctl, false, TN_MEMOP_REGISTER, false, req->length);
		dp_app_fail(c, SHR_MSG_MEM_REGISTER, m->hdr.correlation, s, detail);
		return;
	}
	*mem = (struct dp_local_memory){
		.m = { .client_id = c->id, .rights = req->rights },
		.client = c, .ctl = c->ctl,
		.job = { .run = map_run, .done = map_done },
		.flight = { .done = memory_acked },
		.req = { .fd = m->fds[0], .offset = req->offset, .bytes = req->length,
		         .write = (req->rights & SHR_RIGHT_WRITING) != 0 },
		.asked = SHR_MSG_MEM_REGISTER, .correlation = m->hdr.correlation,
	};
	mem_move(mem, DP_MEM_MAPPING);
	m->fds[0] = -1;
	tn_list_push_back(&c->memories, &mem->link);
	c->memory_cnt++;
	dp_reap_submit(&c->ctl->reap, &mem->job);
}

void dp_map_on_import(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_mem_import *req = shr_msg_body_ro(m);
	struct dp_local_memory *staging = dp_map_find(c, req->staging), *mem = NULL;
	uint32_t detail;
	tn_status s = limit_check(c, &detail);

	if (s == TN_OK && (staging == NULL || staging->m.areas == NULL))
		s = TN_STALE;
	if (s == TN_OK && (mem = calloc(1, sizeof *mem)) == NULL)
		s = TN_NO_MEMORY;
	if (s == TN_OK)
		s = dp_handles_add(&c->ctl->memories, mem, &mem->m.handle);
	if (s != TN_OK) {
		free(mem);
		count_op(c->ctl, true, TN_MEMOP_REGISTER, false, req->length);
		dp_app_fail(c, SHR_MSG_MEM_IMPORT, m->hdr.correlation, s, detail);
		return;
	}
	*mem = (struct dp_local_memory){
		.m = { .handle = mem->m.handle, .client_id = c->id, .rights = req->rights, .bytes = req->length,
		       .staging = staging->m.handle },
		.client = c, .ctl = c->ctl, .flight = { .done = memory_acked }, .req = { .fd = -1 },
		.asked = SHR_MSG_MEM_IMPORT, .correlation = m->hdr.correlation, .staging = staging,
	};
	staging->refs++;
	mem_move(mem, DP_MEM_ADDING);
	tn_list_push_back(&c->memories, &mem->link);
	c->memory_cnt++;
	dp_crew_broadcast(&c->ctl->crew, (struct dp_cmd){ .kind = DP_CMD_MEM_ADD, .fd = -1, .ptr = &mem->m }, &mem->flight);
}

struct dp_local_memory *dp_map_find(struct dp_app *c, tn_handle h)
{
	struct dp_local_memory *mem = dp_handles_get(&c->ctl->memories, h);

	return mem != NULL && mem->client == c && mem->state == DP_MEM_LIVE ? mem : NULL;
}

void dp_map_on_unregister(struct dp_app *c, struct shr_msg *m)
{
	const struct shr_msg_id *req = shr_msg_body_ro(m);
	struct dp_local_memory *ending = dp_handles_get(&c->ctl->memories, req->id);
	struct dp_local_memory *mem = dp_map_find(c, req->id);
	uint16_t answer = SHR_MSG_MEM_UNREGISTER;

	if (ending != NULL && ending->client == c && ending->state == DP_MEM_DELETING && ending->result == TN_OK &&
	    dp_app_asks_again(c, m, &answer, &ending->correlation))
		return;
	if (mem == NULL || mem->refs > 0) {
		dp_app_fail(c, SHR_MSG_MEM_UNREGISTER, m->hdr.correlation, mem == NULL ? TN_STALE : TN_BUSY,
		               mem == NULL ? 0 : mem->refs);
		return;
	}
	mem_move(mem, DP_MEM_DELETING);
	mem->correlation = m->hdr.correlation;
	dp_crew_broadcast(&c->ctl->crew, delete_cmd(mem), &mem->flight);
}
