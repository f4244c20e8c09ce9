/* SPDX-License-Identifier: Apache-2.0
 * What a segment of the scale tests holds: 4 KiB that follow from its name, so that a reader knows every byte of every
 * segment without asking anybody. Shared by the applications and by the peers that stand in. Pure. */
#ifndef TESTS_INTEGRATION_CONTENT_H
#define TESTS_INTEGRATION_CONTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define CONTENT_BYTES 4096u

static inline uint64_t content_word(const char *name, size_t i)
{
	uint64_t x = UINT64_C(0xcbf29ce484222325); /* FNV-1a of the name, then a mix with the position */
	for (; *name != '\0'; name++)
		x = (x ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
	x += (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ x >> 27;
}

static inline void content_fill(void *to, const char *name)
{
	for (size_t i = 0; i < CONTENT_BYTES / 8; i++) {
		uint64_t w = content_word(name, i);
		memcpy((uint8_t *)to + 8 * i, &w, 8);
	}
}

static inline bool content_is(const void *at, const char *name)
{
	for (size_t i = 0; i < CONTENT_BYTES / 8; i++) {
		uint64_t w = content_word(name, i);
		if (memcmp((const uint8_t *)at + 8 * i, &w, 8) != 0)
			return false;
	}
	return true;
}

#endif
