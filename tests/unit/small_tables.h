/* SPDX-License-Identifier: Apache-2.0
 * Settings for tests that make many workers: sanitizers touch every page of what the daemon reserves and never uses. */
#ifndef TEST_SMALL_TABLES_H
#define TEST_SMALL_TABLES_H

#include <assert.h>
#include <stddef.h>

#define SETS_MAX 32u

#define SMALL_TABLES \
	"limits/max_requests_per_worker=4096", "limits/max_memories_per_client=512", "limits/max_segments_per_client=512", \
		"limits/max_opens_per_client=512", "transports/tcp/max_connections=512"

/* Puts `more`, at most `cnt` of them and none behind a NULL, behind what `all` holds already (the rest of it is NULL). How
 * many there are then. */
static inline size_t sets_append(const char *all[static SETS_MAX], const char *const *more, size_t cnt)
{
	size_t n = 0;
	while (all[n] != NULL)
		n++;
	for (size_t i = 0; more != NULL && i < cnt && more[i] != NULL; i++) {
		assert(n + 1 < SETS_MAX);
		all[n++] = more[i];
	}
	return n;
}

#endif
