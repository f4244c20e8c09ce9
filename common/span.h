/* SPDX-License-Identifier: Apache-2.0
 * Bounded reading and writing of big-endian wire data. A read or write that does not fit sets `overrun`, yields zero or
 * does nothing, and keeps failing from then on: a codec does all its fields and checks once at the end. Any thread. */
#ifndef TN_SPAN_H
#define TN_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/compiler.h"

/* Bytes that belong to somebody else. */
struct tn_span { const uint8_t *ptr; size_t len; };

struct tn_rd { const uint8_t *ptr; size_t left; bool overrun; };
struct tn_wr { uint8_t *ptr; size_t left; bool overrun; };

TN_INLINE struct tn_rd tn_rd_make(const void *buf, size_t len) { return (struct tn_rd){ buf, len, false }; }
TN_INLINE struct tn_wr tn_wr_make(void *buf, size_t len) { return (struct tn_wr){ buf, len, false }; }

/* The next len bytes inside the buffer, or NULL (overrun). Both ends use these, so no other place moves a pointer. */
TN_INLINE const uint8_t *tn_rd_take(struct tn_rd *r, size_t len)
{
	if (tn_unlikely(r->overrun || len > r->left)) {
		r->overrun = true;
		r->left = 0;
		return NULL;
	}
	const uint8_t *p = r->ptr;
	if (len == 0)
		return p;   /* NULL + 0 is undefined in C */
	r->ptr += len;
	r->left -= len;
	return p;
}
TN_INLINE uint8_t *tn_wr_take(struct tn_wr *w, size_t len)
{
	if (tn_unlikely(w->overrun || len > w->left)) {
		w->overrun = true;
		w->left = 0;
		return NULL;
	}
	uint8_t *p = w->ptr;
	if (len == 0)
		return p;   /* NULL + 0 is undefined in C */
	w->ptr += len;
	w->left -= len;
	return p;
}

/* Fixed places: the caller knows that the bytes exist. */
TN_INLINE uint16_t tn_be16_load(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }
TN_INLINE uint32_t tn_be32_load(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return __builtin_bswap32(v); }
TN_INLINE uint64_t tn_be64_load(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
TN_INLINE void tn_be16_store(uint8_t *p, uint16_t v) { p[0] = (uint8_t)(v >> 8); p[1] = (uint8_t)v; }
TN_INLINE void tn_be32_store(uint8_t *p, uint32_t v) { v = __builtin_bswap32(v); memcpy(p, &v, 4); }
TN_INLINE void tn_be64_store(uint8_t *p, uint64_t v) { v = __builtin_bswap64(v); memcpy(p, &v, 8); }

/* Reading in order; 0 on overrun. */
TN_INLINE uint8_t tn_rd_u8(struct tn_rd *r) { const uint8_t *p = tn_rd_take(r, 1); return p ? *p : 0; }
TN_INLINE uint16_t tn_rd_u16(struct tn_rd *r) { const uint8_t *p = tn_rd_take(r, 2); return p ? tn_be16_load(p) : 0; }
TN_INLINE uint32_t tn_rd_u32(struct tn_rd *r) { const uint8_t *p = tn_rd_take(r, 4); return p ? tn_be32_load(p) : 0; }
TN_INLINE uint64_t tn_rd_u64(struct tn_rd *r) { const uint8_t *p = tn_rd_take(r, 8); return p ? tn_be64_load(p) : 0; }
/* Copies len bytes; zeroes `out` on overrun. */
TN_INLINE void tn_rd_bytes(struct tn_rd *r, void *out, size_t len)
{
	const uint8_t *p = tn_rd_take(r, len);
	if (p != NULL)
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}
/* A view of len bytes in place; empty on overrun. */
TN_INLINE struct tn_span tn_rd_span(struct tn_rd *r, size_t len)
{
	const uint8_t *p = tn_rd_take(r, len);
	return (struct tn_span){ p, p ? len : 0 };
}
TN_INLINE void tn_rd_skip(struct tn_rd *r, size_t len) { (void)tn_rd_take(r, len); }
/* Everything was read and nothing beyond: the end of a message of exact length. */
TN_INLINE bool tn_rd_done(const struct tn_rd *r) { return !r->overrun && r->left == 0; }

/* Writing in order; nothing on overrun. */
TN_INLINE void tn_wr_u8(struct tn_wr *w, uint8_t v) { uint8_t *p = tn_wr_take(w, 1); if (p) *p = v; }
TN_INLINE void tn_wr_u16(struct tn_wr *w, uint16_t v) { uint8_t *p = tn_wr_take(w, 2); if (p) tn_be16_store(p, v); }
TN_INLINE void tn_wr_u32(struct tn_wr *w, uint32_t v) { uint8_t *p = tn_wr_take(w, 4); if (p) tn_be32_store(p, v); }
TN_INLINE void tn_wr_u64(struct tn_wr *w, uint64_t v) { uint8_t *p = tn_wr_take(w, 8); if (p) tn_be64_store(p, v); }
TN_INLINE void tn_wr_bytes(struct tn_wr *w, const void *src, size_t len)
{
	uint8_t *p = tn_wr_take(w, len);
	if (p != NULL && len > 0)
		memcpy(p, src, len);
}
TN_INLINE void tn_wr_zero(struct tn_wr *w, size_t len)
{
	uint8_t *p = tn_wr_take(w, len);
	if (p != NULL)
		memset(p, 0, len);
}

TN_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "byte swaps above assume a little-endian host");

#endif
