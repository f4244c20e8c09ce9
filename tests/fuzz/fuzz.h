/* SPDX-License-Identifier: Apache-2.0
 * What a fuzz target defines: one call per input; it returns 0 and aborts (tn_assert) when a promise is broken. */
#ifndef TN_TEST_FUZZ_H
#define TN_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif
