/* SPDX-License-Identifier: Apache-2.0
 * Settings for tests that make many workers: sanitizers touch every page of what the daemon reserves and never uses. */
#ifndef TEST_SMALL_TABLES_H
#define TEST_SMALL_TABLES_H

#define SMALL_TABLES \
	"limits/max_requests_per_worker=4096", "limits/max_memories_per_client=512", "limits/max_segments_per_client=512", \
		"limits/max_opens_per_client=512", "transports/tcp/max_connections=512"

#endif
