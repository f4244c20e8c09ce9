/* SPDX-License-Identifier: Apache-2.0
 * Two sources of randomness, never mixed up: tn_rand is a deterministic generator whose state is an argument (policy
 * code, back-off jitter, tests, the simulator: same seed, same run); tn_rand_os is the kernel's, for identities. */
#ifndef TN_RAND_H
#define TN_RAND_H

#include <stddef.h>
#include <stdint.h>

#include "common/compiler.h"
#include "common/ids.h"
#include "common/status.h"

/* xoshiro256** (Blackman, Vigna: "Scrambled linear pseudorandom number generators", 2021). Not for secrets.
 * One owner; no locking. Valid only after tn_rand_seed. */
struct tn_rand { uint64_t s[4]; };

/* Any seed is fine, also 0: it is spread over the state with splitmix64. */
void tn_rand_seed(struct tn_rand *r, uint64_t seed);

/* 64 random bits. */
TN_INLINE uint64_t tn_rand_u64(struct tn_rand *r)
{
	uint64_t *s = r->s;
	uint64_t x = s[1] * 5;
	uint64_t result = (x << 7 | x >> 57) * 9;
	uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return result;
}

/* Uniform in 0 .. n-1, without bias; n >= 1. */
uint64_t tn_rand_below(struct tn_rand *r, uint64_t n);
/* Uniform in lo .. hi, both included; lo <= hi. */
uint64_t tn_rand_range(struct tn_rand *r, uint64_t lo, uint64_t hi);
/* True with probability ppm / 1 000 000. */
TN_INLINE bool tn_rand_chance_ppm(struct tn_rand *r, uint32_t ppm) { return tn_rand_u64(r) % 1000000 < ppm; }

/* Fills buf from getrandom(2). May block only while a host that just booted gathers its first entropy.
 * TN_SYSTEM: the kernel refused; buf is then to be thrown away. */
TN_MUST_USE tn_status tn_rand_os(void *buf, size_t len);
/* A fresh identity, never all zero. The same errors; out untouched then. */
TN_MUST_USE tn_status tn_rand_id128(struct tn_id128 *out);

#endif
