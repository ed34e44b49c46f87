/* SPDX-License-Identifier: MIT */
/*
 * sem.c - semaphores and barriers.
 *
 * Why: a released permit goes straight to the first waiter, so nobody overtakes and a timed acquire
 * that was granted owns its permit. A barrier is the same the other way round: the last to arrive
 * wakes all the others.
 * Invariants: (1) permits > 0 only while nobody waits; (2) arrived < n counts those of this
 * round that have come and not left; a refused one is not counted, because it fails before it is.
 * Threads: any.
 */
#include <errno.h>

#include "base/fatal.h"
#include "sync/object.h"

void gort_sem_init(gort_sem *sem, int n)
{
    GORT_NEED("gort_sem_init", "semaphore", sem);
    if (n < 0)
        gort__fatal("gort_sem_init: the number of permits must not be negative, but is %d", n);
    *sem = (gort_sem){.gort_priv_permits = (uint32_t)n};
}

static int acquire(gort_sem *sem, int64_t deadline, bool no_cancel)
{
    struct gort__m *m = gort__enter();
    int err = 0;
    gort__object_lock(&sem->gort_priv_lock);
    if (GORT_LIKELY(sem->gort_priv_permits)) {
        sem->gort_priv_permits--;
        gort__object_unlock(&sem->gort_priv_lock);
    } else {
        struct gort__waiter w = {0};
        err = gort__object_wait(&m, &sem->gort_priv_lock, gort__object_queue(&sem->gort_priv_waiters), &w,
                                deadline, GORT_WAIT_SEM, no_cancel, "gort_sem_acquire");
    }
    if (m)
        gort__leave(m);
    return err;
}

int gort_sem_acquire(gort_sem *sem)
{
    GORT_NEED("gort_sem_acquire", "semaphore", sem);
    return acquire(sem, GORT_FOREVER, true);
}

int gort_sem_acquire_until(gort_sem *sem, int64_t deadline)
{
    GORT_NEED("gort_sem_acquire", "semaphore", sem);
    return acquire(sem, deadline, false);
}

void gort_sem_release(gort_sem *sem)
{
    GORT_NEED("gort_sem_release", "semaphore", sem);
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, gort__object_lock(&sem->gort_priv_lock), gort__object_unlock(&sem->gort_priv_lock));
    struct gort__waiter *w = gort__waitq_take(gort__object_queue(&sem->gort_priv_waiters));
    if (w)
        w->result = 0;
    else if (++sem->gort_priv_permits == 0)
        gort__fatal("gort_sem_release: more than 4294967295 permits");
    gort__object_unlock(&sem->gort_priv_lock);
    if (w)
        gort__ready(m, w->g);
    if (m)
        gort__leave(m);
}

void gort_barrier_init(gort_barrier *barrier, int n)
{
    GORT_NEED("gort_barrier_init", "barrier", barrier);
    if (n < 1)
        gort__fatal("gort_barrier_init: the number of goroutines must be at least 1, but is %d", n);
    *barrier = (gort_barrier){.gort_priv_n = (uint32_t)n};
}

static int await_others(gort_barrier *barrier, int64_t deadline, bool no_cancel)
{
    struct gort__glist woken = {0};
    struct gort__waitq *q = gort__object_queue(&barrier->gort_priv_waiters);
    struct gort__m *m = gort__enter();
    if (!barrier->gort_priv_n)
        gort__fatal("gort_barrier_wait: the barrier was not initialized by gort_barrier_init");
    int result = 1;
    gort__object_lock(&barrier->gort_priv_lock);
    if (q->run != gort__sched_run()) { /* whoever had arrived in an ended run is gone */
        *q = (struct gort__waitq){.run = gort__sched_run()};
        barrier->gort_priv_arrived = 0;
    }
    if (barrier->gort_priv_arrived + 1 < barrier->gort_priv_n) {
        struct gort__waiter w = {0};
        uint32_t round = barrier->gort_priv_round;
        barrier->gort_priv_arrived++;
        result = gort__object_wait(&m, &barrier->gort_priv_lock, q, &w, deadline, GORT_WAIT_BARRIER,
                                   no_cancel, "gort_barrier_wait");
        if (result < 0) { /* it leaves again, unless the last one came meanwhile and counted it */
            gort__object_lock(&barrier->gort_priv_lock);
            if (barrier->gort_priv_round == round)
                barrier->gort_priv_arrived--;
            else
                result = 0;
            gort__object_unlock(&barrier->gort_priv_lock);
        }
    } else {
        struct gort__waiter *w;
        while ((w = gort__waitq_take(q)) != NULL) {
            w->result = 0;
            gort__runq_list_add(&woken, w->g);
        }
        barrier->gort_priv_arrived = 0; /* one that could not be claimed sees that the round is over */
        barrier->gort_priv_round++;
        gort__object_unlock(&barrier->gort_priv_lock);
    }
    if (woken.n)
        gort__ready_list(m, woken);
    if (m)
        gort__leave(m);
    return result;
}

int gort_barrier_wait(gort_barrier *barrier)
{
    GORT_NEED("gort_barrier_wait", "barrier", barrier);
    return await_others(barrier, GORT_FOREVER, true);
}

int gort_barrier_wait_until(gort_barrier *barrier, int64_t deadline)
{
    GORT_NEED("gort_barrier_wait", "barrier", barrier);
    return await_others(barrier, deadline, false);
}
