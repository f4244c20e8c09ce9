/* SPDX-License-Identifier: Apache-2.0
 * Owns the page that is wiped on fork. Kernels before 4.14 cannot wipe; there a fork handler of the C library does it
 * (and a bare clone() goes unnoticed). Mapped once per process and never unmapped. */
#include "dataplane/libtent/fork.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

const tn_a32 *lt_fork_page;

static tn_a32 *page;      /* zero in a child until it opens a context of its own */
static tn_a32 marks_used; /* copied into the child as it is, so a child's mark is new */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void wipe(void)
{
	tn_store_relaxed32(page, 0);
}

static void map_page(void)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	page = p;
	if (madvise(p, bytes, MADV_WIPEONFORK) != 0 && pthread_atfork(NULL, NULL, wipe) != 0) {
		(void)munmap(p, bytes);
		page = NULL;
	}
	lt_fork_page = page;
}

tn_status lt_fork_mark(uint32_t *mark_out)
{
	(void)pthread_once(&once, map_page);
	if (page == NULL)
		return TN_NO_MEMORY;
	uint32_t mark = tn_load_relaxed32(page);
	if (mark == 0) {
		uint32_t fresh = tn_fetch_add32(&marks_used, 1) + 1;
		mark = tn_cas32(page, &mark, fresh) ? fresh : mark; /* a failed exchange tells the winner's mark */
	}
	*mark_out = mark;
	return TN_OK;
}
