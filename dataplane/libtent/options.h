/* SPDX-License-Identifier: Apache-2.0
 * Public structs that begin with their size and grow at the end: what the library takes of one that an older or newer
 * program filled. Any thread. */
#ifndef LT_OPTIONS_H
#define LT_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "dataplane/libtent/error.h"

#define LT_STRUCT_BYTES_MAX 65536u /* no version of any public struct is longer; a size above it is garbage */

/* Could some version of the struct, whose first release had `least` bytes, have this size? */
TN_INLINE bool lt_struct_size_ok(size_t size, size_t least) { return size >= least && size <= LT_STRUCT_BYTES_MAX; }

/* Copies the struct at `in` over `out`, which holds the defaults and has `known` bytes. A shorter one leaves the rest of
 * `out`; of a longer one everything beyond must be zero: what it asks for there, this library cannot give. `what` names
 * the argument in the text, `macro` what to set it with. TENT_OK, TENT_INVALID (*out untouched). */
tent_status lt_options_take(const char *what, const char *macro, const void *in, size_t least, void *out, size_t known);

#endif
