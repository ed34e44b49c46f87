/* SPDX-License-Identifier: MIT */
/* fence.h - the frequent half of the asymmetric fence that os.h describes. */
#ifndef GORT_SRC_OS_FENCE_H
#define GORT_SRC_OS_FENCE_H

#include "base/atomic.h"
#include "os/os.h"

static inline void gort__os_fence_light(void)
{
    if (GORT_UNLIKELY(gort__load(&gort__os_light_is_full, RELAXED)))
        gort__fence(SEQ_CST); /* pairs with gort__os_fence_heavy */
    else
        gort__compiler_fence();
}

#endif
