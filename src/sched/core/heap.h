/* SPDX-License-Identifier: MIT */
/*
 * heap.h - what a P's heap of timers is; timers/timer.c works on it.
 */
#ifndef GORT_SRC_SCHED_CORE_HEAP_H
#define GORT_SRC_SCHED_CORE_HEAP_H

#include "base/hist.h"
#include "mem/lock.h"

struct gort__timer_node;

/* A place of its own for a timer that must not be refused; see timer.c. In the object that owns the timer,
 * zero-valid, guarded by the heap's lock. */
struct gort__timer_reserve {
    struct gort__timer_reserve *next, **link; /* link NULL: it is not in use */
    int64_t when;
    void (*fn)(void *);
    void *arg;
    uint64_t seq;
};

struct gort__timer_entry {
    int64_t when;
    char *what; /* a node; or a goroutine that sleeps, plus 1 */
};

/* A P's timers; see timer.c. */
struct gort__heap {
    struct gort__lock lock; /* rank GORT_RANK_TIMER; guards all but what is atomic */
    uint32_t live;          /* pending ones; atomic, written under lock */
    uint32_t firing;        /* threads that fire some right now; atomic */
    uint32_t n, room, dead; /* entries; places for them; entries whose timer was taken back */
    int64_t first;          /* when the first is due, INT64_MAX: there is none; atomic, written under lock */
    struct gort__timer_entry *entry;
    struct gort__timer_node *free;              /* unused nodes that belong to this heap */
    struct gort__timer_reserve *oom_list;       /* P 0: those in their own places, */
    const struct gort__timer_reserve *oom_busy; /* the one whose function runs now, */
    uint64_t oom_seq;                           /* and which use of its place that is */
    int64_t oom_first;                          /* when the first of them is due; valid while there is one */
    struct gort__hist late;                     /* how much later than it was due each has fired */
};

#endif
