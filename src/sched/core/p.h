/* SPDX-License-Identifier: MIT */
/*
 * p.h - P: the right to run user code, with what it needs to do so without locks.
 */
#ifndef GORT_SRC_SCHED_CORE_P_H
#define GORT_SRC_SCHED_CORE_P_H

#include "sched/core/heap.h"
#include "sched/core/m.h"
#include "sched/core/runq.h"

/* Why a goroutine is asked to stop, which says who runs instead, and when it goes on itself (turn.c). */
enum gort__why {
    GORT_WHY_TURN,  /* its time slice is over: it goes to the end of the line */
    GORT_WHY_WOKEN, /* for goroutines that an event has woken: it goes on right after them */
    GORT_WHY_NEXT   /* for the one that is to run next on its P, which it has woken itself: the same */
};

/* What sysmon remembers of a P (sysmon.c). */
struct gort__watch {
    struct gort__m *m;
    uint32_t slice;
    uint64_t switches;
    bool done;                /* there have been some since the last look */
    int64_t since;            /* when the slice began, as far as is known */
    int64_t looked;           /* the last look at it, */
    int64_t cpu;              /* the thread's CPU clock then, */
    int64_t from, from_cpu;   /* and at the first look */
    int64_t stood, stood_cpu; /* and when it was first seen with so many switches */
    bool next;                /* one that has run before was to run next there */
    struct gort__cpu_stall stall;
    int64_t call_cpu;   /* the thread's CPU clock when it was first seen in its announced call */
    int64_t ready_cpu;  /* the same when it was last found to wait for a CPU there; -1: it was not */
    int64_t asked;      /* when it was last asked to stop; 0: not yet */
    int64_t asked_cpu;  /* its CPU clock when it was first asked */
    int64_t masked_cpu; /* its CPU clock when first found to block the signal; 0: it was not */
    bool by_tgkill;     /* and by tgkill */
    enum gort__why why; /* what it was asked for */
};

/* What is special about the next pick of a P: bits of gort__p.mode (turn.c). */
enum gort__mode {
    GORT_MODE_EVENTS = 1, /* there may be woken goroutines in its ring of them */
    GORT_MODE_OVER = 2,   /* the time slice is over: what is to run next waits for another one */
    GORT_MODE_WOKEN = 4,  /* woken goroutines have the P */
    GORT_MODE_OWES = 8    /* a preempted goroutine let them go first: it goes on after them */
};

/* For statistics. Atomic, written by the M that holds the P; retired Ps keep theirs. */
struct gort__p_counts {
    struct gort__hist latency;            /* from runnable to running, of a few (latency.c) */
    uint32_t latency_fair, latency_found; /* picks, to choose those few; owner */
    uint64_t steals;                      /* how often it took goroutines of another P */
    uint64_t handoffs;                    /* how often its M gave it up for an announced call */
    uint64_t mutex_ns;                    /* how long goroutines have waited for mutexes */
};

/* P: the right to run user code, with what it needs to do so without locks. Owned by its M. */
struct gort__p {
    struct gort__runq runq;
    struct gort__runq events; /* those that timers, fds and the like have woken; its `next` is not used */
    /* Owned by the M that holds the P. */
    int id GORT_ALIGNED_LINE;
    uint32_t fair_in;     /* counts down to the next look at the global queue (schedule.c) */
    uint32_t mode;        /* enum gort__mode; atomic, written by the owner */
    bool queue_first;     /* the last fair pick did not look at woken goroutines first (schedule.c) */
    bool yielded;         /* there may be goroutines in its ring that have yielded (schedule.c) */
    bool preempted_first; /* the last one that it took from many was preempted (turn.c, find.c) */
    /* When woken goroutines got the P, in ticks; atomic, written by the owner (turn.c). */
    uint64_t woken_from;
    uint64_t woken_took;           /* how long they had it the last time; the same */
    uint64_t others_from;          /* when they left it; the same */
    uint64_t ring_at;              /* when the ring last had its turn because a slice was over; owner */
    const struct gort__g *woken_g; /* the last one that was picked as woken by an event; owner */
    uint64_t preempted_at;         /* when a preempted goroutine last had its turn here; owner */
    bool deferred;                 /* nobody was woken for what it has (wake_defer.c) */
    uint32_t defer_fair_in;        /* picks until the next fair one then */
    uint64_t deferred_since;       /* in ticks; 0: nothing has ever waited; atomic */
    uint32_t slice;           /* counts picks that started a new time slice; atomic, written by the owner */
    uint64_t next_id, end_id; /* goroutine numbers to give out */
    struct gort__g *free;     /* idle Gs, last used first */
    uint32_t free_n;
    struct gort__g *freed[GORT_G_PREFETCH]; /* those that came last, by their place in the list: hints */
    struct gort__g *spare;                  /* full batches of idle Gs (spawn.c) */
    uint32_t spare_n;
    struct {
        char *at, *end;
    } fresh; /* Gs that were never used */
    struct gort__stack_cache stacks;
    void *timer_cache; /* a freed struct gort_timer (time/timer.c); NULL: none; owned by the holder */
    struct gort__rand rand;
    uint64_t spawned, exited;    /* atomic, written by the owner; retired Ps keep theirs */
    uint64_t switches;           /* atomic, written by the owner; for statistics */
    struct gort__g *let_through; /* the last one that tight.c took from the line here */
    uint32_t other;              /* whose timers a fair pick looks at besides its own (schedule.c) */
    struct gort__m *m;           /* who holds it; atomic, written under sched.lock, NULL: idle */
    struct gort__p *link;        /* in sched.idle_ps; guarded by sched.lock */
    /* So many announced calls are taken for long ones before they happen (block.c); atomic. */
    uint32_t long_blocks;
    struct gort__watch watch; /* what sysmon saw when it last looked; owned by it */
    struct gort__heap timers GORT_ALIGNED_LINE;
    struct gort__p_counts counts GORT_ALIGNED_LINE;
};

static inline void gort__p_new_slice(struct gort__p *p)
{
    gort__store(&p->slice, p->slice + 1, RELAXED);
}

static inline void gort__p_count_switch(struct gort__p *p)
{
    gort__store(&p->switches, p->switches + 1, RELAXED);
}

static inline void gort__p_mode_on(struct gort__p *p, uint32_t bits)
{
    gort__store(&p->mode, p->mode | bits, RELAXED);
}

static inline void gort__p_mode_off(struct gort__p *p, uint32_t bits)
{
    gort__store(&p->mode, p->mode & ~bits, RELAXED);
}

#endif
