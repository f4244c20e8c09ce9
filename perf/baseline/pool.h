/* SPDX-License-Identifier: Apache-2.0
 * Memory of the comparison loops, of the kind that tent's applications have: a memfd, mapped shared, faulted in. */
#ifndef TB_POOL_H
#define TB_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* NULL: explained on standard error. Lives until the process ends. */
uint8_t *tb_pool_map(uint64_t bytes, bool hugetlb, uint64_t seed);

#endif
