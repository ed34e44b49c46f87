/* SPDX-License-Identifier: MIT */
/*
 * timer.c - something to do at a time.
 *
 * Why: one 4-ary heap under one lock, served by the keeper, which sleeps until the first of them.
 * Four children a node make the heap half as deep as two, and a node's children share a line.
 * An entry keeps the time beside the pointer, so sifting does not touch the timers themselves.
 *
 * Invariants: (1) heap[i].when <= heap[4i+1 .. 4i+4].when; (2) t->index - 1 is the place of t;
 * (3) `firing` is the timer whose function runs, outside the lock: del waits for it.
 * Threads: set and del by anybody inside, in parallel with run by the keeper.
 */
#include "sched/timer.h"

#include <errno.h>

#include "base/fatal.h"
#include "sched/sched.h"

struct entry {
    int64_t when;
    struct gort__timer *timer;
};

static struct {
    struct gort__lock lock;     /* rank GORT_RANK_TIMER */
    struct entry *heap;         /* guarded by lock */
    uint32_t n, room;           /* guarded by lock; n also atomic, for the deadlock detector */
    struct gort__timer *firing; /* atomic, written under lock */
} timers;

static void place(uint32_t i, struct entry e)
{
    timers.heap[i] = e;
    e.timer->index = i + 1;
}

static void sift_up(uint32_t i, struct entry e)
{
    while (i > 0 && timers.heap[(i - 1) / 4].when > e.when) {
        place(i, timers.heap[(i - 1) / 4]);
        i = (i - 1) / 4;
    }
    place(i, e);
}

static void sift_down(uint32_t i, struct entry e)
{
    for (;;) {
        uint32_t first = 4 * i + 1, best = first;
        if (first >= timers.n)
            break;
        for (uint32_t c = first + 1; c < first + 4 && c < timers.n; c++)
            if (timers.heap[c].when < timers.heap[best].when)
                best = c;
        if (timers.heap[best].when >= e.when)
            break;
        place(i, timers.heap[best]);
        i = best;
    }
    place(i, e);
}

static void remove_locked(struct gort__timer *t)
{
    uint32_t i = t->index - 1;
    t->index = 0;
    gort__store(&timers.n, timers.n - 1, RELEASE); /* pairs with gort__timer_count */
    if (i == timers.n)
        return;
    struct entry moved = timers.heap[timers.n];
    if (i > 0 && timers.heap[(i - 1) / 4].when > moved.when)
        sift_up(i, moved);
    else
        sift_down(i, moved);
}

static bool grow_locked(void)
{
    uint32_t room = timers.room ? timers.room * 2 : 256;
    struct entry *heap = gort__os_vm_map(room * sizeof *heap, gort__os_page());
    if (!heap)
        return false;
    for (uint32_t i = 0; i < timers.n; i++)
        heap[i] = timers.heap[i];
    if (timers.heap)
        gort__os_vm_unmap(timers.heap, timers.room * sizeof *heap);
    timers.heap = heap;
    timers.room = room;
    return true;
}

int gort__timer_set(struct gort__timer *t, int64_t when, void (*fn)(void *), void *arg)
{
    gort__lock_take(&timers.lock, GORT_RANK_TIMER);
    gort__check(t->index == 0);
    if (timers.n == timers.room && !grow_locked()) {
        gort__lock_drop(&timers.lock, GORT_RANK_TIMER);
        return -ENOMEM;
    }
    t->when = when;
    t->fn = fn;
    t->arg = arg;
    bool first = timers.n == 0 || when < timers.heap[0].when;
    gort__store(&timers.n, timers.n + 1, RELAXED);
    sift_up(timers.n - 1, (struct entry){when, t});
    gort__lock_drop(&timers.lock, GORT_RANK_TIMER);
    if (first)
        gort__keeper_wake();
    return 0;
}

void gort__timer_del(struct gort__timer *t)
{
    gort__lock_take(&timers.lock, GORT_RANK_TIMER);
    if (t->index)
        remove_locked(t);
    gort__lock_drop(&timers.lock, GORT_RANK_TIMER);
    while (GORT_UNLIKELY(gort__load(&timers.firing, ACQUIRE) == t)) /* pairs with gort__timer_run */
        gort__os_thread_yield();
}

int64_t gort__timer_run(void)
{
    int64_t next = INT64_MAX;
    while (gort__load(&timers.n, RELAXED)) {
        int64_t now = gort__os_now();
        gort__lock_take(&timers.lock, GORT_RANK_TIMER);
        struct gort__timer *t = timers.n ? timers.heap[0].timer : NULL;
        next = t ? timers.heap[0].when : INT64_MAX;
        if (!t || next > now) {
            gort__lock_drop(&timers.lock, GORT_RANK_TIMER);
            return next;
        }
        void (*fn)(void *) = t->fn;
        void *arg = t->arg;
        gort__store(&timers.firing, t, RELAXED); /* before the count goes down: see gort__timer_count */
        remove_locked(t);
        gort__lock_drop(&timers.lock, GORT_RANK_TIMER);
        fn(arg);
        gort__store(&timers.firing, NULL, RELEASE); /* pairs with gort__timer_del */
        next = INT64_MAX;
    }
    return next;
}

uint32_t gort__timer_count(void)
{
    uint32_t n = gort__load(
        &timers.n, ACQUIRE); /* first: one that left the heap is in firing; pairs with remove_locked */
    return n + (gort__load(&timers.firing, RELAXED) != NULL);
}

void gort__timer_reset(void)
{
    for (uint32_t i = 0; i < timers.n; i++)
        timers.heap[i].timer->index = 0;
    if (timers.heap)
        gort__os_vm_unmap(timers.heap, timers.room * sizeof *timers.heap);
    timers.heap = NULL;
    timers.n = timers.room = 0;
}
