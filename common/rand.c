/* SPDX-License-Identifier: Apache-2.0
 * The only caller of getrandom(2), and the seeding and bounding of the deterministic generator. Any thread. */
#include "common/rand.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "common/assert.h"
#include "common/hook.h"

void tn_rand_seed(struct tn_rand *r, uint64_t seed)
{
	for (size_t i = 0; i < TN_ARRAY_LEN(r->s); i++) {
		uint64_t z = seed += UINT64_C(0x9e3779b97f4a7c15);
		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		r->s[i] = z ^ z >> 31;
	}
}

/* Multiply and keep the high half; the low half tells the few values that would be drawn once too often
 * (Lemire: "Fast random integer generation in an interval", 2019). */
uint64_t tn_rand_below(struct tn_rand *r, uint64_t n)
{
	tn_assert(n > 0);
	unsigned __int128 m = (unsigned __int128)tn_rand_u64(r) * n;
	if ((uint64_t)m < n) {
		uint64_t floor = -n % n;
		while ((uint64_t)m < floor)
			m = (unsigned __int128)tn_rand_u64(r) * n;
	}
	return (uint64_t)(m >> 64);
}

uint64_t tn_rand_range(struct tn_rand *r, uint64_t lo, uint64_t hi)
{
	tn_assert(lo <= hi);
	uint64_t width = hi - lo;
	return width == UINT64_MAX ? tn_rand_u64(r) : lo + tn_rand_below(r, width + 1);
}

tn_status tn_rand_os(void *buf, size_t len)
{
	if (TN_HOOK_FAIL(rand_os))
		return TN_SYSTEM;
	uint8_t *p = buf;
	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return TN_SYSTEM;
		p += n;
		len -= (size_t)n;
	}
	return TN_OK;
}

tn_status tn_rand_id128(struct tn_id128 *out)
{
	struct tn_id128 id;
	do {
		tn_status st = tn_rand_os(id.b, sizeof id.b);
		if (st != TN_OK)
			return st;
	} while (tn_id128_is_zero(&id));
	*out = id;
	return TN_OK;
}
