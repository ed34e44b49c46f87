/* SPDX-License-Identifier: MIT */
/*
 * ignored_until.c - the waits for sync objects that a deadline or a context may cut short: whoever drops the result is warned.
 * good_plain_ignored.c has those that may be ignored.
 * Covers: include/gort/sync.h include/gort/group.h
 */
#include <gort.h>

void drop(gort_mutex *mu, gort_rwmutex *rw, gort_cond *cond, gort_wg *wg, gort_once *once,
          void (*fn)(void *));
void drop(gort_mutex *mu, gort_rwmutex *rw, gort_cond *cond, gort_wg *wg, gort_once *once, void (*fn)(void *))
{
    gort_mutex_lock_until(mu, GORT_FOREVER);
    gort_rwmutex_lock_until(rw, GORT_FOREVER);
    gort_rwmutex_rlock_until(rw, GORT_FOREVER);
    gort_cond_wait_until(cond, mu, GORT_FOREVER);
    gort_wg_wait_until(wg, GORT_FOREVER);
    gort_once_do_until(once, fn, mu, GORT_FOREVER);
}

void drop_more(gort_sem *sem, gort_barrier *barrier, gort_pool *pool, void (*fn)(void *));
void drop_more(gort_sem *sem, gort_barrier *barrier, gort_pool *pool, void (*fn)(void *))
{
    gort_sem_acquire_until(sem, GORT_FOREVER);
    gort_barrier_wait_until(barrier, GORT_FOREVER);
    gort_pool_submit_until(pool, fn, sem, GORT_FOREVER);
}
