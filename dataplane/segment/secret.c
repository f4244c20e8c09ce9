/* SPDX-License-Identifier: Apache-2.0
 * Owner of the pages that hold tickets. Any thread. */
#include "dataplane/segment/secret.h"

#include <string.h>
#include <sys/mman.h>

void *dp_secret_alloc(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, bytes, MADV_DONTDUMP);
	(void)madvise(p, bytes, MADV_WIPEONFORK);
	return p;
}

void dp_secret_free(void *p, size_t bytes)
{
	if (p == NULL)
		return;
	explicit_bzero(p, bytes);
	(void)munmap(p, bytes);
}
