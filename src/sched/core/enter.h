/* SPDX-License-Identifier: MIT */
/*
 * enter.h - entering and leaving the runtime.
 *
 * Every public call that touches shared state is bracketed by gort__enter and gort__leave. Between
 * them the thread is "inside": it is not preempted, the world stops only at the next look at
 * attention, and locks of the runtime may be held. User code is only ever called outside.
 */
#ifndef GORT_SRC_SCHED_CORE_ENTER_H
#define GORT_SRC_SCHED_CORE_ENTER_H

#include "mem/alloc.h"
#include "os/fence.h"
#include "sched/core/hooks.h"
#include "sched/core/sched.h"

/* As gort__enter, but NULL when there is anything to see to: then the caller is to call that. */
static inline struct gort__m *gort__enter_at_once(void)
{
    struct gort__m *m = gort__m_self();
    if (GORT_UNLIKELY(!m))
        return NULL;
    gort__store(&m->inside, 1, RELAXED);
    gort__compiler_fence(); /* a light one: pairs with world.c:gort__world_stop; see GORT_ATT_FENCE */
    return GORT_LIKELY(!gort__load(&m->attention, RELAXED)) ? m : NULL;
}

/*
 * The calling thread's M; its `g` is the caller: a goroutine, or the stand-in for a plain thread
 * (GORT_G_THREAD), which can park and be readied just the same. NULL: a plain thread and no run is
 * on, or no memory to attach it.
 */
static inline struct gort__m *gort__enter(void)
{
    struct gort__m *m = gort__enter_at_once();
    return GORT_LIKELY(m != NULL) ? m : gort__hooks.life.enter_plain();
}

/* True: gort__entry_leave_slow must follow. */
static inline bool gort__leave_looks(struct gort__m *m)
{
    gort__store(&m->inside, 0, RELEASE); /* pairs with world.c:gort__world_stop */
    gort__compiler_fence(); /* a light one: pairs with world.c:gort__world_stop; see GORT_ATT_FENCE */
    return GORT_UNLIKELY(gort__load(&m->attention, RELAXED) != 0);
}

/* m: the M of the calling thread now; after a park that may not be the one that entered. */
static inline void gort__leave(struct gort__m *m)
{
    if (gort__leave_looks(m))
        gort__hooks.life.leave_slow(m);
}

/*
 * Around a few instructions that hold a lock of the runtime, in a call that needs nothing else of an entry:
 * whoever holds one must not be stopped by a signal. May be used inside as well, where it does nothing. It
 * keeps no run from ending, but a goroutine whose run has ended goes no further.
 */
static inline struct gort__m *gort__enter_light(void)
{
    struct gort__m *m = gort__m_home();
    if (!m || gort__load(&m->inside, RELAXED))
        return NULL;
    gort__store(&m->inside, 1, RELAXED);
    gort__compiler_fence(); /* a signal handler on this thread looks; a light one: see GORT_ATT_FENCE */
    if (GORT_UNLIKELY(gort__load(&m->attention, RELAXED)))
        gort__hooks.life.light_slow(m);
    return m;
}

static inline void gort__leave_light(struct gort__m **light)
{
    struct gort__m *m = *light;
    if (!m)
        return;
    if (gort__m_self() == m)
        gort__leave(m);
    else
        gort__hooks.life.leave_blocking(m);
}

/*
 * A goroutine's brackets around public calls that never park: between them the thread counts as inside all
 * the time. So they happen all, or none of them, before the end of the run.
 */
static inline struct gort__m *gort__enter_nest(void)
{
    struct gort__m *m = gort__enter();
    gort__store(&m->nested, true, RELAXED);
    return m;
}

static inline void gort__enter_nest_end(struct gort__m *m)
{
    gort__store(&m->inside, 1, RELAXED);
    gort__store(&m->nested, false, RELEASE); /* pairs with world.c:all_stopped */
    gort__leave(m);
}

/*
 * Whoever finds no run on goes on outside of runs: those who wait in an object's queue are of ended ones, and
 * gone. But a run may have begun since then, they may be its, and its end would not wait for this thread. So
 * with the object's lock in hand, before the queue is looked at, the question is asked again; if one has
 * begun the lock is dropped and the run entered. While the lock is held and no run is on, nobody can come to
 * the queue. Not more than a few times: a thread of ours that calls us at its very end is not let in, and the
 * end waits for it.
 */
static inline bool gort__enter_run_began(const struct gort__m *m)
{
    if (GORT_LIKELY(m != NULL))
        return false;
    uint32_t phase = gort__load(&gort__sched.phase, ACQUIRE); /* pairs with run.c */
    return phase == GORT_PHASE_ON || phase == GORT_PHASE_ENDING;
}

#define GORT_ENTER_TRIES 3
#define GORT_ENTER_LOCKED(m, lock, unlock)                                                                   \
    (m) = gort__enter();                                                                                     \
    (lock);                                                                                                  \
    if (GORT_UNLIKELY(!(m)))                                                                                 \
        for (int gort__tries = GORT_ENTER_TRIES; gort__enter_run_began(m) && --gort__tries; (lock)) {        \
            (unlock);                                                                                        \
            (m) = gort__enter();                                                                             \
        }

/* For the rest of the block. */
#define GORT_ENTER_LIGHT()                                                                                   \
    __attribute__((cleanup(gort__leave_light), unused)) struct gort__m *gort__light_here = gort__enter_light()

static inline void *gort__enter_light_alloc(size_t size)
{
    GORT_ENTER_LIGHT();
    return gort__alloc(size);
}

static inline void gort__enter_light_free(void *object, size_t size)
{
    GORT_ENTER_LIGHT();
    gort__alloc_free(object, size);
}

#endif
