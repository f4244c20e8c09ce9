/* SPDX-License-Identifier: Apache-2.0
 * Event rings: order, overwriting and its count, two rings per thread, no torn record under a racing writer. */
#include "shm-ring/events.h"

#include <pthread.h>

#include "common/atomic.h"
#include "common/clock.h"
#include "tests/unit/shm-ring/fixture.h"

struct fx {
	struct fx_dir dir;
	struct shr_tele tele;
	struct shr_tele_ro ro;
	struct shr_event_writer w;
	struct shr_event_reader r;
};

static void open_fx(struct fx *f)
{
	struct shr_tele_cfg cfg = fx_tele_cfg();
	fx_dir_make(&f->dir);
	if (shr_tele_create(f->dir.path, &cfg, &f->tele) != TN_OK)
		abort();
	fx_tele_open(&f->dir, f->tele.generation, &f->ro);
	shr_event_writer_init(&f->w, &f->tele, 1, false);
	shr_event_reader_init(&f->r, &f->ro, 1, false, true);
}

static void close_fx(struct fx *f)
{
	shr_tele_close_ro(&f->ro);
	shr_tele_close(&f->tele);
	fx_dir_remove(&f->dir);
}

/* Every word of record n is made from n, so that a mixture of two records shows. */
static struct shr_event_shm record(uint64_t n)
{
	return (struct shr_event_shm){
		.mono_ns = n, .request_id = n * 3, .batch_id = ~n, .task_id = n ^ 0x5555, .attempt_id = n + 1, .trace_hi = n << 7,
		.trace_lo = n * n, .span_id = n + 2, .parent_span_id = n + 3, .duration_ns = n * 11, .status = (int32_t)n,
		.kind = SHR_EVENT_STATE, .config_generation = (uint32_t)n, .arg = n * 13,
	};
}

static bool whole(const struct shr_event_shm *e)
{
	struct shr_event_shm want = record(e->mono_ns);
	return memcmp((const uint8_t *)e + 8, (const uint8_t *)&want + 8, sizeof want - 8) == 0;
}

static void in_order(void)
{
	struct fx f;
	struct shr_event_shm got[32];
	open_fx(&f);
	CU_ASSERT_EQUAL(shr_event_read(&f.r, got, 32), 0);
	for (uint64_t n = 0; n < 10; n++) {
		struct shr_event_shm e = record(n);
		shr_event_write(&f.w, &e);
	}
	CU_ASSERT_EQUAL_FATAL(shr_event_read(&f.r, got, 4), 4);
	CU_ASSERT_EQUAL_FATAL(shr_event_read(&f.r, got + 4, 32 - 4), 6);
	for (uint64_t n = 0; n < 10; n++)
		CU_ASSERT(got[n].mono_ns == n && whole(&got[n]) && tn_load_relaxed64(&got[n].seq) == 2 * (n + 1));
	CU_ASSERT_EQUAL(f.r.missed, 0);
	close_fx(&f);
}

static void overwriting_is_counted(void)
{
	struct fx f;
	struct shr_event_shm got[32];
	open_fx(&f);
	for (uint64_t n = 0; n < 100; n++) {
		struct shr_event_shm e = record(n);
		shr_event_write(&f.w, &e);
	}
	CU_ASSERT_EQUAL_FATAL(shr_event_read(&f.r, got, 32), 16);
	CU_ASSERT_EQUAL(got[0].mono_ns, 84);
	CU_ASSERT_EQUAL(got[15].mono_ns, 99);
	CU_ASSERT_EQUAL(f.r.missed, 84);
	/* A reader that comes later on a running file does not blame itself for what was before. */
	struct shr_event_reader late;
	shr_event_reader_init(&late, &f.ro, 1, false, false);
	CU_ASSERT_EQUAL(shr_event_read(&late, got, 32), 16);
	CU_ASSERT_EQUAL(late.missed, 0);
	close_fx(&f);
}

static void rings_are_apart(void)
{
	struct fx f;
	struct shr_event_shm got[32];
	struct shr_event_writer keep;
	struct shr_event_reader keep_r, other;
	open_fx(&f);
	shr_event_writer_init(&keep, &f.tele, 1, true);
	shr_event_reader_init(&keep_r, &f.ro, 1, true, true);
	shr_event_reader_init(&other, &f.ro, 2, false, true);
	struct shr_event_shm e = record(7);
	shr_event_write(&keep, &e);
	for (uint64_t n = 0; n < 1000; n++) {
		e = record(n);
		shr_event_write(&f.w, &e);
	}
	CU_ASSERT_EQUAL(shr_event_read(&keep_r, got, 32), 1);
	CU_ASSERT_EQUAL(got[0].mono_ns, 7);
	CU_ASSERT_EQUAL(shr_event_read(&other, got, 32), 0);
	close_fx(&f);
}

/* A writer that died inside a record: what is whole stays readable, the slot it was overwriting counts as missed. */
static void dead_writer(void)
{
	struct fx f;
	struct shr_event_shm got[32];
	open_fx(&f);
	for (uint64_t n = 0; n < 20; n++) {
		struct shr_event_shm e = record(n);
		shr_event_write(&f.w, &e);
	}
	tn_a64 *slot = (tn_a64 *)(void *)((uint8_t *)(f.w.ring + 1) + (20 & f.w.mask) * sizeof(struct shr_event_shm));
	tn_store_relaxed64(&slot[0], 2 * (20 + 1) - 1);
	tn_store_relaxed64(&slot[1], 12345);
	CU_ASSERT_EQUAL(shr_event_read(&f.r, got, 32), 15);
	CU_ASSERT_EQUAL(f.r.missed, 5);
	CU_ASSERT_EQUAL(got[0].mono_ns, 5);
	for (int i = 0; i < 15; i++)
		CU_ASSERT(whole(&got[i]));
	CU_ASSERT_EQUAL(shr_event_read(&f.r, got, 32), 0);
	close_fx(&f);
}

struct racer {
	struct shr_event_writer *w;
	tn_a32 stop;
	uint64_t written;
};

static void *race(void *arg)
{
	struct racer *c = arg;
	while (tn_load_relaxed32(&c->stop) == 0) {
		struct shr_event_shm e = record(c->written++);
		shr_event_write(c->w, &e);
	}
	return NULL;
}

static void no_torn_record(void)
{
	struct fx f;
	struct shr_event_shm got[64];
	open_fx(&f);
	struct racer c = { .w = &f.w };
	pthread_t t;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, race, &c), 0);
	uint64_t until = tn_now_ns() + TN_NS_PER_S, read = 0, torn = 0, unordered = 0, last = 0;
	bool first = true;
	while (tn_now_ns() < until) {
		uint32_t n = shr_event_read(&f.r, got, 64);
		for (uint32_t i = 0; i < n; i++) {
			torn += !whole(&got[i]);
			unordered += !first && got[i].mono_ns <= last;
			last = got[i].mono_ns;
			first = false;
		}
		read += n;
	}
	tn_store_relaxed32(&c.stop, 1);
	pthread_join(t, NULL);
	for (uint32_t n; (n = shr_event_read(&f.r, got, 64)) != 0;)
		read += n;
	CU_ASSERT_EQUAL(torn, 0);
	CU_ASSERT_EQUAL(unordered, 0);
	CU_ASSERT_EQUAL(read + f.r.missed, c.written);
	CU_ASSERT(read > 0);
	printf("(read %llu, missed %llu) ", (unsigned long long)read, (unsigned long long)f.r.missed);
	close_fx(&f);
}

TN_TEST_MAIN("shm-ring/events",
	{ "records come out whole and in order [E1] [E2]", in_order },
	{ "what was overwritten is counted", overwriting_is_counted },
	{ "rings of threads and of kept events are apart", rings_are_apart },
	{ "a writer that died in a record", dead_writer },
	{ "no torn record beside a racing writer [E1] [E2]", no_torn_record })
