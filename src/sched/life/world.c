/* SPDX-License-Identifier: MIT */
/*
 * world.c - stopping the world: nobody but the stopper is inside the runtime.
 *
 * How: the stopper raises the attention of every M and then, through a heavy fence, makes sure that
 * each of them either sees it or is seen. An M in user code (inside is 0) counts as stopped: its
 * next call looks at attention first and waits here. An M inside comes to a look at attention soon:
 * at its exit, or in the search for work. So user code that never calls us stops nobody.
 *
 * Proof: M writes inside and reads attention, with a light fence between; the stopper writes
 * attention and reads inside, with a heavy fence between. By the contract of the fences (os.h) not
 * both miss the other's write. If M sees attention, it waits in gort__world_wait before it touches
 * anything shared. If the stopper sees inside == 0, M is in user code, and its next entry is ordered
 * after the heavy fence, so it sees attention.
 *
 * world_word is odd while the world is stopped (or about to be); its value tells one stop from the
 * next, so that an M that was slow to fall asleep in the last stop does not sleep through this one.
 * tests/model/world.c explores it, with a goroutine that calls, blocks, loses its P, or is woken meanwhile.
 * Threads: one stopper at a time (world.busy); `_locked` functions with sched.lock held.
 */
#include <errno.h>

#include "base/fatal.h"
#include "sched/life/life.h"

void gort__world_event(void)
{
    gort__add(&gort__sched.world.event, 1, RELEASE); /* pairs with all_stopped's caller */
    gort__os_futex_wake(&gort__sched.world.event, 1);
}

void gort__world_publish_sp(struct gort__m *m, void *sp)
{
    gort__store(&m->stack.parked_sp, sp, RELEASE); /* pairs with user_stopped_locked */
    if (GORT_UNLIKELY(gort__load(&gort__sched.world_word, RELAXED) & 1))
        gort__world_event();
}

/* The lowest bit of m->stack.parked_sp: it is where it was, but may go on in a moment. */
static void *waking(void *sp)
{
    return (char *)sp + 1;
}

static bool sleeps_parked(const void *parked_sp)
{
    return parked_sp && !((uintptr_t)parked_sp & 1);
}

/*
 * It was woken. While its stack may be looked at it stays where it is: plain threads go on, and may wake it.
 * Proof: it marks itself as waking and looks at world.stay_asleep; the stopper sets that and looks at the
 * mark, with fences between, so not both miss the other. The mark leaves the stack pointer as it is: whoever
 * was once seen to stand still can be looked at from then on, also in the moment in which it finds out that
 * it must not go on.
 */
void gort__world_retract_sp(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    void *sp = m->stack.parked_sp;
    for (;;) {
        gort__store(&m->stack.parked_sp, waking(sp), RELAXED);
        gort__fence(SEQ_CST); /* pairs with stop_users */
        uint32_t word = gort__load(&s->world_word, RELAXED);
        if (GORT_LIKELY(!gort__load(&s->world.stay_asleep, ACQUIRE)) || m->plain || /* pairs with let_go_on */
            gort__load(&s->world.owner, RELAXED) == m)
            break;
        gort__world_publish_sp(m, sp);
        gort__os_futex_wait(&s->world_word, word, INT64_MAX);
    }
    gort__store(&m->stack.parked_sp, NULL, RELAXED);
}

static void let_go_on(void)
{
    struct gort__sched *s = &gort__sched;
    gort__store(&s->world.owner, NULL, RELAXED);
    gort__store(&s->world.stay_asleep, false, RELEASE); /* pairs with gort__world_retract_sp */
    gort__world_start();
}

void gort__world_wait(struct gort__m *m)
{
    struct gort__sched *s = &gort__sched;
    GORT_PUBLISH_SP(m);
    for (;;) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        uint32_t word = s->world_word;
        if (!(word & 1)) {
            gort__store(&m->stack.parked_sp, NULL, RELAXED);
            gort__and(&m->attention, ~(uint32_t)GORT_ATT_WORLD, RELAXED);
            gort__lock_release(&s->lock, GORT_RANK_SCHED);
            return;
        }
        m->handoff.stopped = true;
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        gort__world_event();
        gort__os_futex_wait(&s->world_word, word, INT64_MAX);
    }
}

/* Every M that holds a P, self aside, waits here or is in user code. */
static bool all_stopped(struct gort__m *self)
{
    struct gort__sched *s = &gort__sched;
    bool all = true;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    for (struct gort__m *m = s->ms.all; m && all; m = m->all_next) {
        bool holds_p = m->p || m->handoff.next_p;
        if (m != self && holds_p && !m->handoff.stopped &&
            (gort__load(&m->inside, ACQUIRE) ||
             gort__load(&m->nested, ACQUIRE))) /* pairs with gort__leave, timer.c */
            all = false;
    }
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    return all;
}

/* Somebody else stops the world: lets it. False: it is stopped for good, and the caller is not one who would
 * be. */
static bool wait_for_turn(struct gort__m **m)
{
    if (!m) {
        gort__os_nap(100000);
        return !gort__load(&gort__sched.main.leaving, RELAXED) &&
               !gort__load(&gort__sched.main.done, RELAXED);
    }
    if ((*m)->p)
        *m = gort__schedule_yield(*m);
    else
        gort__os_nap(100000);
    if (gort__m_wanted(*m))
        gort__entry_attend(*m);
    *m = gort__m_self();
    return !gort__load(&gort__sched.main.leaving, RELAXED) &&
           !(gort__load(&(*m)->attention, RELAXED) & (GORT_ATT_NO_RUN | GORT_ATT_ENDED));
}

bool gort__world_turn(struct gort__m **caller)
{
    while (gort__xchg(&gort__sched.world.busy, 1, ACQUIRE)) /* pairs with gort__world_start */
        if (!wait_for_turn(caller))
            return false;
    return true;
}

void gort__world_stop_now(struct gort__m *self)
{
    struct gort__sched *s = &gort__sched;
    s->counts.stop_from = gort__arch_ticks();
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__store(&s->world_word, s->world_word + 1, RELAXED);
    for (struct gort__m *m = s->ms.all; m; m = m->all_next)
        if (m != self)
            gort__or(&m->attention, GORT_ATT_WORLD, RELAXED);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__os_fence_heavy(); /* pairs with gort__enter and gort__leave */
    for (;;) {
        uint32_t seen = gort__load(&s->world.event, ACQUIRE); /* pairs with gort__world_event */
        if (all_stopped(self)) {
            s->counts.stop_at = gort__arch_ticks();
            return;
        }
        gort__os_futex_wait(&s->world.event, seen, INT64_MAX);
    }
}

bool gort__world_stop(struct gort__m **caller)
{
    if (gort__load(&gort__sched.main.leaving, RELAXED) || !gort__world_turn(caller))
        return false;
    gort__world_stop_now(caller ? *caller : NULL);
    return true;
}

/* --- user code too ----------------------------------------------------------------------------- */

/* Until a thread whose signals are blocked is given up on: so many ns, and so many looks at it, because a
 * machine that stood still meanwhile has given nobody a chance. */
int64_t gort__world_timeout = INT64_C(5000000000);
#define USER_LOOKS 100

/* Whether m runs no user code: it is no thread yet; or it is inside, and will wait before it leaves. What it
 * interrupted must stand still, too: somebody may look at its stack. If a program's own handler has left ours
 * meanwhile, a signal tells. */
static bool user_stopped_locked(struct gort__m *m, bool first)
{
    if (m->handoff.stopped || !gort__load(&m->life.started, ACQUIRE)) /* pairs with m.c */
        return true;
    if (!gort__load(&m->inside, ACQUIRE) &&
        !gort__load(&m->nested, ACQUIRE)) /* pair with gort__leave, timer.c */
        return false;
    if (first && gort__load(&m->preempt.in_handler, RELAXED))
        gort__preempt_ask(m, true);
    /* Twice, because block_g is set before g changes to g0, and cleared after it changes back. Pair with
     * block.c. */
    bool idle = !gort__load(&m->block_g, ACQUIRE) && gort__load(&m->g, ACQUIRE) == &m->g0 &&
                !gort__load(&m->block_g, RELAXED);
    return idle ||
           sleeps_parked(gort__load(&m->stack.parked_sp, ACQUIRE)); /* pairs with gort__world_publish_sp */
}

/* Signals everybody who runs user code until all of them have come to the handler. False: one does not. */
static bool stop_users(struct gort__m *self)
{
    struct gort__sched *s = &gort__sched;
    int64_t deadline = gort__os_now() + gort__world_timeout;
    gort__store(&s->world.stay_asleep, true, RELAXED);
    gort__os_fence_heavy(); /* pairs with gort__world_retract_sp */
    for (int round = 0;; round++) {
        uint32_t seen = gort__load(&s->world.event, ACQUIRE); /* pairs with gort__world_event */
        bool all = true;
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        for (struct gort__m *m = s->ms.all; m; m = m->all_next)
            if (m != self && !user_stopped_locked(m, round == 0)) {
                all = false;
                if (round % 10 == 0)
                    gort__preempt_ask(m, true);
            }
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
        if (all)
            return true;
        if (round >= USER_LOOKS && gort__os_now() > deadline)
            return false;
        gort__os_futex_wait(&s->world.event, seen, gort__os_now() + INT64_C(1000000));
    }
}

int gort_world_stop(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = gort__enter();
    int err = 0;
    if (!m) /* or it is left from a run that is over */
        return gort__load(&s->phase, RELAXED) == GORT_PHASE_NONE ? -ESRCH : -ECANCELED;
    if (gort__load(&s->world.owner, RELAXED) == m)
        err = -EBUSY;
    else if (!gort__world_stop(&m))
        err = -ECANCELED;
    else if (!stop_users(m)) {
        let_go_on();
        err = -ETIMEDOUT;
    } else {
        s->counts.stop_at = gort__arch_ticks();
        gort__store(&s->world.owner, m, RELAXED);
    }
    gort__leave(m);
    return err;
}

int gort_world_start(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *m = gort__m_self();
    if (!m || gort__load(&s->world.owner, RELAXED) != m)
        return -EPERM;
    m = gort__enter();
    let_go_on();
    gort__leave(m);
    return 0;
}

void gort__world_disown(struct gort__m *m)
{
    if (gort__load(&gort__sched.world.owner, RELAXED) == m)
        let_go_on();
}

/* --- going on --------------------------------------------------------------------------------- */

/* Gives every P that nobody holds to an M if it has work, else to the idle list. Lock held. */
static struct gort__m *distribute_locked(void)
{
    struct gort__sched *s = &gort__sched;
    struct gort__m *wake = NULL;
    s->idle_ps = NULL;
    gort__store(&s->idle_count, 0, RELAXED);
    for (int i = s->procs - 1; i >= 0; i--) {
        struct gort__p *p = s->ps[i];
        if (p->m)
            continue;
        if (gort__local_empty(p)) {
            gort__p_idle_put_locked(p);
            continue;
        }
        struct gort__m *m = gort__m_start_locked(p, false);
        if (m) {
            m->link = wake;
            wake = m;
        }
    }
    return wake;
}

static void count_stop(struct gort__sched *s)
{
    uint64_t now = gort__arch_ticks();
    gort__hist_add(&s->counts.stop_stopping, gort__turn_ns(s->counts.stop_at - s->counts.stop_from));
    gort__hist_add(&s->counts.stop_total, gort__turn_ns(now - s->counts.stop_from));
}

void gort__world_start(void)
{
    struct gort__sched *s = &gort__sched;
    count_stop(s);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__store(&s->world_word, s->world_word + 1, RELEASE); /* pairs with gort__world_wait */
    for (struct gort__m *m = s->ms.all; m; m = m->all_next) {
        m->handoff.stopped = false;
        gort__and(&m->attention, ~(uint32_t)GORT_ATT_WORLD, RELAXED);
    }
    struct gort__m *wake = distribute_locked();
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__os_futex_wake(&s->world_word, INT32_MAX);
    while (wake) {
        struct gort__m *next = wake->link;
        gort__note_wake(wake);
        wake = next;
    }
    gort__store(&s->world.busy, 0, RELEASE); /* pairs with gort__world_stop */
    gort__fence(SEQ_CST);                    /* pairs with idle.c */
    if (gort__queue_has_work() || gort__poller_vacant())
        gort__wake_idle();
}
