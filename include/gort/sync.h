/* SPDX-License-Identifier: MIT */
/*
 * gort/sync.h - locks and other ways to wait for one another.
 *
 * All are zero-valid (a barrier and a semaphore with permits need their init), have a fixed size, and work between
 * goroutines and plain threads in any mix. Waiters are served in the order of their arrival, but for a running
 * goroutine that may overtake within the first millisecond on a mutex. An object may be released as soon as the
 * program knows that nobody will use it again, even while a peer is still returning from its call.
 *
 * The plain forms wait for ever and return 0; `_until` takes a deadline: -ETIMEDOUT, GORT_TRY: -EAGAIN; when one of
 * them returns 0, the caller owns what it waited for. Under a context (gort/ctx.h) all but the plain locks may
 * return -ECANCELED. A plain thread that waits when the run ends gets -ECANCELED from any of them.
 */
#ifndef GORT_SYNC_H
#define GORT_SYNC_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/* A queue of waiters inside the objects below. */
typedef struct gort_priv_queue {
    void *first, *last;
    uint64_t run;
} gort_priv_queue;

/* A mutex. Unlocking one that is not locked is fatal; another goroutine than the locker may unlock. */
typedef struct gort_mutex {
    uint64_t gort_priv_state;
} gort_mutex;

GORT_API int gort_mutex_lock(gort_mutex *mu);
GORT_API bool gort_mutex_trylock(gort_mutex *mu);
GORT_API GORT_MUST_CHECK int gort_mutex_lock_until(gort_mutex *mu, int64_t deadline);
GORT_API void gort_mutex_unlock(gort_mutex *mu);

GORT_API void gort_priv_mutex_unlocked(gort_mutex *mu); /* the rest of an unlock that others wait for */

/* A mutex that nobody else wants is locked and unlocked on the spot, by one atomic operation each on its first byte: 0 is free, 1
 * is locked and nobody need be told. An unlock asks only whether it is 0 now, which costs less than what it was. */
#define GORT_PRIV_BYTE(mu) GORT_PRIV_CAST(unsigned char *, &(mu)->gort_priv_state)
static inline int gort_priv_mutex_lock(gort_mutex *mu)
{
    unsigned char unlocked = 0;
    bool taken = !__atomic_compare_exchange_n(GORT_PRIV_BYTE(mu), &unlocked, 1, false, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED);
    return __builtin_expect(taken, 0) ? gort_mutex_lock(mu) : 0;
}
static inline void gort_priv_mutex_unlock(gort_mutex *mu)
{
    bool more = __atomic_sub_fetch(GORT_PRIV_BYTE(mu), 1, __ATOMIC_RELEASE) != 0;
    if (__builtin_expect(more, 0))
        gort_priv_mutex_unlocked(mu);
}
#define gort_mutex_lock(mu)   gort_priv_mutex_lock(mu)
#define gort_mutex_unlock(mu) gort_priv_mutex_unlock(mu)

/* Many readers or one writer. A reader that arrives while a writer waits, waits too: writers do not starve. So a
 * goroutine must not take the read lock twice. */
typedef struct gort_rwmutex {
    uint32_t gort_priv_lock;
    int32_t gort_priv_holders;
    gort_priv_queue gort_priv_waiters;
} gort_rwmutex;

GORT_API int gort_rwmutex_rlock(gort_rwmutex *rw);
GORT_API bool gort_rwmutex_tryrlock(gort_rwmutex *rw);
GORT_API GORT_MUST_CHECK int gort_rwmutex_rlock_until(gort_rwmutex *rw, int64_t deadline);
GORT_API void gort_rwmutex_runlock(gort_rwmutex *rw);
GORT_API int gort_rwmutex_lock(gort_rwmutex *rw);
GORT_API bool gort_rwmutex_trylock(gort_rwmutex *rw);
GORT_API GORT_MUST_CHECK int gort_rwmutex_lock_until(gort_rwmutex *rw, int64_t deadline);
GORT_API void gort_rwmutex_unlock(gort_rwmutex *rw);

/* A condition. Wait with the mutex locked: unlocks it, waits for a signal, locks it again; locked again also when it
 * returns an error. No wake-ups without a signal. */
typedef struct gort_cond {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_reserved;
    gort_priv_queue gort_priv_waiters;
} gort_cond;

GORT_API int gort_cond_wait(gort_cond *cond, gort_mutex *mu);
GORT_API GORT_MUST_CHECK int gort_cond_wait_until(gort_cond *cond, gort_mutex *mu, int64_t deadline);
GORT_API void gort_cond_signal(gort_cond *cond);
GORT_API void gort_cond_broadcast(gort_cond *cond);

/* Waits for a number of things to be done. May live on the stack of whoever waits. */
typedef struct gort_wg {
    uint64_t gort_priv_state;
    gort_priv_queue gort_priv_waiters;
} gort_wg;

GORT_API void gort_wg_add(gort_wg *wg, int n); /* a count below zero is fatal */
GORT_API void gort_wg_done(gort_wg *wg);
GORT_API int gort_wg_wait(gort_wg *wg);
GORT_API GORT_MUST_CHECK int gort_wg_wait_until(gort_wg *wg, int64_t deadline);
/* Counts one, starts a goroutine that runs fn(arg) and is done then, also if it ends by gort_exit. 0 or -errno as gort_go. */
GORT_API int gort_wg_go(gort_wg *wg, void (*fn)(void *), void *arg);

/* Runs fn(arg) once, however many call; all return after it has returned (or ended by gort_exit). 0. */
typedef struct gort_once {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_state;
    gort_priv_queue gort_priv_waiters;
} gort_once;

GORT_API int gort_once_do(gort_once *once, void (*fn)(void *), void *arg);

/* A number of permits; zero-valid with none. */
typedef struct gort_sem {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_permits;
    gort_priv_queue gort_priv_waiters;
} gort_sem;

GORT_API void gort_sem_init(gort_sem *sem, int n);
GORT_API int gort_sem_acquire(gort_sem *sem);
GORT_API GORT_MUST_CHECK int gort_sem_acquire_until(gort_sem *sem, int64_t deadline);
GORT_API void gort_sem_release(gort_sem *sem);

/* n goroutines wait for one another, round after round. */
typedef struct gort_barrier {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_n, gort_priv_arrived, gort_priv_round;
    gort_priv_queue gort_priv_waiters;
} gort_barrier;

GORT_API void gort_barrier_init(gort_barrier *barrier, int n); /* n >= 1 */
/* Waits until n have arrived. 1 for the last of them, 0 for the others. An error takes the caller out again. */
GORT_API int gort_barrier_wait(gort_barrier *barrier);
GORT_API GORT_MUST_CHECK int gort_barrier_wait_until(gort_barrier *barrier, int64_t deadline);

GORT_END_DECLS
#endif
