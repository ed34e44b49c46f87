/* SPDX-License-Identifier: MIT */
/*
 * gort/sync.h - mutexes, conditions, wait groups and the like.
 *
 * An object that is all zero is ready for use, except that a barrier and a semaphore with permits need their
 * init. No object needs to be destroyed. Goroutines and plain threads may use one object together. Waiters
 * are served in the order of their arrival, with one exception: during the first millisecond that a goroutine
 * waits for a mutex, running goroutines may take the mutex before it. The memory of an object may be freed as
 * soon as the program knows that no call on it will begin any more, even while another goroutine is still
 * returning from its last call.
 *
 * The plain forms (lock, rlock, acquire, wait, do) wait for ever. Nothing ends them early, not even a
 * cancelled context, and they return 0 (gort_barrier_wait: 0 or 1), so their result may be ignored. Only a
 * plain thread that waits when the run ends gets -ECANCELED.
 *
 * The forms with _until take a deadline, which may be GORT_FOREVER. They return 0, or -ETIMEDOUT, -EAGAIN
 * (GORT_TRY), -ECANCELED (see gort/ctx.h) or -ENOMEM. After an error the caller does not own what it waited
 * for, so the result must be checked.
 *
 * Plain forms and _until forms may park. All other functions never park: init, try, unlock, signal,
 * broadcast, add, done, go, release.
 */
#ifndef GORT_SYNC_H
#define GORT_SYNC_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/* The queue of waiters in the objects below. */
typedef struct gort_priv_queue {
    void *first, *last;
    uint64_t run;
} gort_priv_queue;

/*
 * A mutex, not recursive. The goroutine that unlocks it need not be the one that locked it. To unlock a mutex
 * that is not locked is fatal. gort_mutex_trylock returns true if it has locked the mutex.
 */
typedef struct gort_mutex {
    uint64_t gort_priv_state;
} gort_mutex;

GORT_API int gort_mutex_lock(gort_mutex *mu);
GORT_API bool gort_mutex_trylock(gort_mutex *mu);
GORT_API GORT_MUST_CHECK int gort_mutex_lock_until(gort_mutex *mu, int64_t deadline);
GORT_API void gort_mutex_unlock(gort_mutex *mu);

/* The rest of gort_mutex_unlock, when goroutines wait for the mutex. */
GORT_API void gort_priv_mutex_unlocked(gort_mutex *mu);

/*
 * A mutex that no other goroutine wants is locked and unlocked inline, by one atomic operation each on its
 * first byte: 0 means free, 1 means locked without waiters. Unlock only tests whether the byte has become 0,
 * which is cheaper than to fetch the value that it had.
 */
#define GORT_PRIV_BYTE(mu) GORT_PRIV_CAST(unsigned char *, &(mu)->gort_priv_state)
static inline int gort_priv_mutex_lock(gort_mutex *mu)
{
    unsigned char unlocked = 0;
    if (__builtin_expect(!mu, 0)) /* fatal there; mostly the compiler knows that mu is not NULL */
        return gort_mutex_lock(mu);
    bool taken = !__atomic_compare_exchange_n(GORT_PRIV_BYTE(mu), &unlocked, 1, false, __ATOMIC_ACQUIRE,
                                              __ATOMIC_RELAXED);
    return __builtin_expect(taken, 0) ? gort_mutex_lock(mu) : 0;
}
static inline void gort_priv_mutex_unlock(gort_mutex *mu)
{
    if (__builtin_expect(!mu, 0))
        gort_priv_mutex_unlocked(mu);
    bool more = __atomic_sub_fetch(GORT_PRIV_BYTE(mu), 1, __ATOMIC_RELEASE) != 0;
    if (__builtin_expect(more, 0))
        gort_priv_mutex_unlocked(mu);
}
#define gort_mutex_lock(mu)   gort_priv_mutex_lock(mu)
#define gort_mutex_unlock(mu) gort_priv_mutex_unlock(mu)

/*
 * Held by many readers or by one writer. A reader that arrives while a writer waits queues behind that
 * writer, so that writers do not starve. A goroutine must therefore not take the read lock twice: if a writer
 * arrives in between, both wait for ever. The try forms return true if they have taken the lock; to unlock
 * what is not locked is fatal.
 */
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

/*
 * A condition variable. The caller of wait has mu locked. Wait unlocks mu, waits for a signal or broadcast,
 * and locks mu again before it returns, also when it returns an error. It does not return 0 without a signal.
 * Signal wakes the goroutine that has waited longest; broadcast wakes all. The caller of those two need not
 * hold the mutex.
 */
typedef struct gort_cond {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_reserved;
    gort_priv_queue gort_priv_waiters;
} gort_cond;

GORT_API int gort_cond_wait(gort_cond *cond, gort_mutex *mu);
GORT_API GORT_MUST_CHECK int gort_cond_wait_until(gort_cond *cond, gort_mutex *mu, int64_t deadline);
GORT_API void gort_cond_signal(gort_cond *cond);
GORT_API void gort_cond_broadcast(gort_cond *cond);

/*
 * A wait group: a counter, and goroutines that wait until it is 0. It may lie on the stack of the waiting
 * goroutine.
 */
typedef struct gort_wg {
    uint64_t gort_priv_state;
    gort_priv_queue gort_priv_waiters;
} gort_wg;

/* Adds n, which may be negative, to the counter. A counter below 0 is fatal. */
GORT_API void gort_wg_add(gort_wg *wg, int n);
/* Subtracts 1 from the counter. */
GORT_API void gort_wg_done(gort_wg *wg);
/* Waits until the counter is 0. */
GORT_API int gort_wg_wait(gort_wg *wg);
GORT_API GORT_MUST_CHECK int gort_wg_wait_until(gort_wg *wg, int64_t deadline);
/*
 * Adds 1 to the counter and starts a goroutine that runs fn(arg). When that goroutine ends, also by
 * gort_exit, it subtracts 1. Returns 0, or -errno as gort_go does; then the counter is as it was.
 */
GORT_API int gort_wg_go(gort_wg *wg, void (*fn)(void *), void *arg);

/*
 * Runs fn(arg) once. The first call runs fn itself; the other calls wait until fn has returned, or has ended
 * its goroutine by gort_exit. The deadline of the _until form limits how long a call waits for another one;
 * it does not interrupt fn.
 */
typedef struct gort_once {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_state;
    gort_priv_queue gort_priv_waiters;
} gort_once;

GORT_API int gort_once_do(gort_once *once, void (*fn)(void *), void *arg);
GORT_API GORT_MUST_CHECK int gort_once_do_until(gort_once *once, void (*fn)(void *), void *arg,
                                                int64_t deadline);

/* A counting semaphore. All zero means no permits. */
typedef struct gort_sem {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_permits;
    gort_priv_queue gort_priv_waiters;
} gort_sem;

/* Gives the semaphore n permits; n < 0 is fatal. */
GORT_API void gort_sem_init(gort_sem *sem, int n);
/* Takes a permit; waits for one if there is none. */
GORT_API int gort_sem_acquire(gort_sem *sem);
GORT_API GORT_MUST_CHECK int gort_sem_acquire_until(gort_sem *sem, int64_t deadline);
/* Puts a permit back; if goroutines wait, the first of them gets it. */
GORT_API void gort_sem_release(gort_sem *sem);

/* A barrier: n goroutines wait for one another, again and again. */
typedef struct gort_barrier {
    uint32_t gort_priv_lock;
    uint32_t gort_priv_n, gort_priv_arrived, gort_priv_round;
    gort_priv_queue gort_priv_waiters;
} gort_barrier;

/* Prepares the barrier for n goroutines; n < 1 is fatal. */
GORT_API void gort_barrier_init(gort_barrier *barrier, int n);
/*
 * Waits until n goroutines have arrived. Returns 1 in the last one to arrive, 0 in the others. A goroutine
 * that gets an error no longer counts as arrived.
 */
GORT_API int gort_barrier_wait(gort_barrier *barrier);
GORT_API GORT_MUST_CHECK int gort_barrier_wait_until(gort_barrier *barrier, int64_t deadline);

GORT_END_DECLS
#endif
