/* SPDX-License-Identifier: MIT */
/*
 * good_plain_ignored.c - the plain waits for sync objects, which nothing cuts short: their result may be ignored.
 * Covers: include/gort/sync.h include/gort/group.h
 */
#include <gort.h>

void drop(gort_mutex *mu, gort_rwmutex *rw, gort_cond *cond, gort_wg *wg, gort_once *once,
          void (*fn)(void *));
void drop(gort_mutex *mu, gort_rwmutex *rw, gort_cond *cond, gort_wg *wg, gort_once *once, void (*fn)(void *))
{
    gort_mutex_lock(mu);
    gort_rwmutex_lock(rw);
    gort_rwmutex_rlock(rw);
    gort_cond_wait(cond, mu);
    gort_wg_wait(wg);
    gort_once_do(once, fn, mu);
}

void drop_more(gort_sem *sem, gort_barrier *barrier, gort_group *group, gort_timer *timer);
void drop_more(gort_sem *sem, gort_barrier *barrier, gort_group *group, gort_timer *timer)
{
    gort_sem_acquire(sem);
    gort_barrier_wait(barrier);
    gort_group_wait(group);
    gort_timer_stop_wait(timer);
}
