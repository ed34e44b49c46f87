/* SPDX-License-Identifier: MIT */
/*
 * verbs.h - what the rooms above may ask of the scheduler. A new primitive needs nothing else.
 *
 * Every public call that touches shared state is bracketed by gort__enter and gort__leave. Between
 * them the thread is "inside": it is not preempted, the world stops only at the next look at
 * attention, and locks of the runtime may be held. User code is only ever called outside.
 */
#ifndef GORT_SRC_SCHED_VERBS_H
#define GORT_SRC_SCHED_VERBS_H

#include "os/fence.h"
#include "mem/alloc.h"
#include "sched/core/sched.h"

/* Called at the end of each run, if set, when nobody is inside any more: for what a room above left to
 * goroutines that are gone. Set by that room (atomically). */
extern void (*gort__run_at_end)(void) GORT_HIDDEN;

struct gort__m *gort__entry_plain(void);

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
    return GORT_LIKELY(m != NULL) ? m : gort__entry_plain();
}

void gort__entry_leave_slow(struct gort__m *m);

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
        gort__entry_leave_slow(m);
}

void gort__entry_light_slow(struct gort__m *m);

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
        gort__entry_light_slow(m);
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
        gort__entry_leave_blocking(m);
}

/*
 * A goroutine's brackets around public calls that never park: between them the thread counts as inside all
 * the time. So they happen all, or none of them, before the end of the run.
 */
static inline struct gort__m *gort__nest(void)
{
    struct gort__m *m = gort__enter();
    gort__store(&m->nested, true, RELAXED);
    return m;
}

static inline void gort__nest_end(struct gort__m *m)
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
static inline bool gort__run_began(const struct gort__m *m)
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
        for (int gort__tries = GORT_ENTER_TRIES; gort__run_began(m) && --gort__tries; (lock)) {              \
            (unlock);                                                                                        \
            (m) = gort__enter();                                                                             \
        }

/* For the rest of the block. */
#define GORT_ENTER_LIGHT()                                                                                   \
    __attribute__((cleanup(gort__leave_light), unused)) struct gort__m *gort__light_here = gort__enter_light()

static inline void *gort__light_alloc(size_t size)
{
    GORT_ENTER_LIGHT();
    return gort__alloc(size);
}

static inline void gort__light_free(void *object, size_t size)
{
    GORT_ENTER_LIGHT();
    gort__alloc_free(object, size);
}

/*
 * The calling goroutine (or plain thread) waits until gort__ready(g) is called for it. commit runs
 * once it is off its stack: that is the place to unlock what its waker needs. Returns the M it is
 * on now. Inside, no lock held but what commit releases.
 */
struct gort__m *gort__park(gort__commit commit, void *arg, enum gort__reason reason);

/*
 * The same for a goroutine, and a commit that always returns true and is known here. With one P it need not
 * wait until the stack is left: whoever readies g meanwhile, a plain thread, only queues it, and nobody but
 * this M, which holds the P and is inside, resumes what is queued. It may even pick g itself.
 */
static GORT_ALWAYS_INLINE struct gort__m *gort__park_early(struct gort__m *m, gort__commit commit, void *arg,
                                                           enum gort__reason reason)
{
    struct gort__g *g = m->g;
    if (GORT_UNLIKELY(!gort__p_alone() || (g->flags & GORT_G_CHECKED)))
        return gort__park(commit, arg, reason);
    gort__store(&g->reason, (uint8_t)reason, RELAXED);
    gort__g_set(g, GORT_G_WAITING);
    commit(g, arg);
    return gort__schedule_switch_away(m, g);
}

/*
 * For a call that parks and then returns to its caller at once: `to`. The processor foresees that the one who
 * goes on returns to where the one who stopped would have. If that is wrong, the call had better end by
 * gort__arch_ret_indirect.
 */
static inline void gort__ras_call_begins(struct gort__m *m, void *to)
{
    m->ras_call = to;
}

static inline bool gort__ras_call_matches(const struct gort__m *m, const void *to)
{
    return m->ras_match && m->ras_call == to;
}

/* Makes a waiting goroutine runnable: it runs next on this P. Exactly once a park. Inside; m NULL: the
 * supervisor, or a thread outside of runs. */
void gort__ready(struct gort__m *m, struct gort__g *g);
/* The same without a call, for the only P and if nobody is to run next. False: gort__ready is to be called. m
 * is not NULL, and schedules are not fuzzed. */
static inline bool gort__ready_at_once(struct gort__m *m, struct gort__g *g)
{
    struct gort__p *p = m->p;
    if (GORT_UNLIKELY(!p || !gort__p_alone() || gort__load(&p->runq.next, RELAXED) ||
                      (gort__load(&g->flags, RELAXED) & GORT_G_THREAD)))
        return false;
    gort__g_set(g, GORT_G_RUNNABLE);
    gort__g_prefetch_arg(g);
    gort__runq_put_next_alone(&p->runq, g);
    gort__sysmon_note_work();
    return true;
}
/* Appends g, which is in no queue. */
static inline void gort__glist_add(struct gort__glist *list, struct gort__g *g)
{
    g->link = NULL;
    if (list->last)
        list->last->link = g;
    else
        list->first = g;
    list->last = g;
    list->n++;
}
/* The same as ready for many, linked: they go to the tail, and other Ps are told. */
void gort__ready_list(struct gort__m *m, struct gort__glist list);
/* The same without waking an M for them: see wake_defer.c. */
void gort__ready_list_no_wake(struct gort__m *m, struct gort__glist list);
/* The same for those that fds or timers wake: they go before all that wait for their turn (turn.c). */
void gort__ready_events(struct gort__m *m, struct gort__glist list);
void gort__ready_events_no_wake(struct gort__m *m, struct gort__glist list); /* see wake_defer.c */

/*
 * When more than one party may end a wait (a peer, a deadline, a context, the end of the run), the
 * waiter arms its word from its commit function, and whoever changes it back has won and readies it.
 */
enum { GORT_CLAIM_NONE, GORT_CLAIM_ARMED };

static inline bool gort__claim(struct gort__g *g)
{
    uint32_t armed = GORT_CLAIM_ARMED;
    return gort__cas(&g->wait_word, &armed, GORT_CLAIM_NONE, ACQ_REL); /* pairs with itself: one winner */
}

/* After the unlock of an object that others wait for: perhaps a delay, when schedules are fuzzed. */
void gort__fuzz_here(void);
static inline void gort__fuzz_released(void)
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.fuzz, RELAXED)))
        gort__fuzz_here();
}

/* Drops the lock of such an object, with that delay. */
void gort__fuzz_release_slow(struct gort__lock *l); /* after gort__lock_release_look has said so */
static inline void gort__fuzz_release(struct gort__lock *l, enum gort__rank rank)
{
    if (gort__lock_release_look(l, rank))
        gort__fuzz_release_slow(l);
}

/* Not before now, and at most 100 us after it; cheaper than the clock. For time-outs that are much longer.
 * Inside. */
int64_t gort__cached_now(struct gort__m *m);

/* The caller is about to wait for an fd, and counts in gort__poll_pending: somebody must look. Inside. */
void gort__poller_notice_fd(struct gort__m *m);

/* Lets others run first; returns the M it is on now. Inside. */
struct gort__m *gort__yield(struct gort__m *m);

/* Starts a goroutine on behalf of m. 0 or -errno. Inside. */
int gort__spawn(struct gort__m *m, const gort_attr *attr, void (*fn)(void), const uintptr_t *args, int nargs);
/* The same with up to three words, and done(done_arg) is called (outside) when the goroutine ends, however it
 * does. */
int gort__spawn_finally(struct gort__m *m, void (*fn)(void), const uintptr_t *args, int nargs,
                        void (*done)(void *), void *done_arg);
/* The same with two words, of which the first is a block (gort__argmem_get of args[1] bytes) that lives until
 * fn returns. */
int gort__spawn_owning(struct gort__m *m, void (*fn)(void), const uintptr_t args[2]);
/* One that has not run and waits: it begins when it is readied, which somebody must do. NULL: no memory.
 * Inside. */
struct gort__g *gort__spawn_parked(struct gort__m *m, void (*fn)(void), uintptr_t arg,
                                   enum gort__reason reason);

#endif
