/* SPDX-License-Identifier: MIT */
/*
 * ref.h - a counted reference to something that knows how to go away.
 *
 * Why: a goroutine inherits a context that a room above it defines; with the way to drop it in the
 * object, the scheduler needs to know nothing else about it.
 */
#ifndef GORT_SRC_BASE_REF_H
#define GORT_SRC_BASE_REF_H

#include <stdbool.h>

#include "base/atomic.h"

struct gort__ref {
    uint32_t n;                          /* atomic */
    void (*destroy)(struct gort__ref *); /* when the last is dropped */
};

static inline void gort__ref_take(struct gort__ref *r)
{
    gort__add(&r->n, 1, RELAXED);
}

/* One less. True: that was the last, and the caller destroys it. */
static inline bool gort__ref_give(struct gort__ref *r)
{
    return gort__sub(&r->n, 1, ACQ_REL) == 1; /* pairs with itself: the uses of the others come before */
}

static inline void gort__ref_drop(struct gort__ref *r)
{
    if (gort__ref_give(r))
        r->destroy(r);
}

#endif
