/* SPDX-License-Identifier: MIT */
/*
 * gort/sync.h - waiting for one another: zero-valid, usable from goroutines and plain threads alike.
 */
#ifndef GORT_SYNC_H
#define GORT_SYNC_H

#include "base.h"

GORT_BEGIN_DECLS

/* Waits for a number of goroutines to be done. Zero-valid; may live on the stack of whoever waits. */
typedef struct gort_wg {
    uint64_t gort_priv_state;
    void *gort_priv_waiters;
} gort_wg;

/* Changes the count by n; below zero is fatal. Never parks. */
GORT_API void gort_wg_add(gort_wg *wg, int n);
/* gort_wg_add(wg, -1). */
GORT_API void gort_wg_done(gort_wg *wg);
/* Waits until the count is zero. 0. May park. */
GORT_API int gort_wg_wait(gort_wg *wg);
/* Counts one, starts a goroutine that runs fn(arg) and is done then. 0 or -errno as gort_go. */
GORT_API int gort_wg_go(gort_wg *wg, void (*fn)(void *), void *arg);

GORT_END_DECLS
#endif
