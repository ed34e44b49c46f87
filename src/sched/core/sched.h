/* SPDX-License-Identifier: MIT */
/*
 * sched.h - what all Ms and Ps share: the global queue, who is idle, the world, the run.
 *
 * verbs.h is for the rooms above.
 */
#ifndef GORT_SRC_SCHED_CORE_SCHED_H
#define GORT_SRC_SCHED_CORE_SCHED_H

#include "sched/core/conf.h"
#include "sched/core/p.h"

/* What sysmon does; sysmon_sleep.c. */
enum gort__mon {
    GORT_MON_AWAKE,      /* looks, or will at the end of a short tick */
    GORT_MON_ARMED_SOON, /* ARMED, but notified: will soon */
    /* Whoever has something for it notifies it in these. */
    GORT_MON_LONG, /* sleeps for a long tick: nobody waited */
    GORT_MON_IDLE, /* sleeps while all Ps are idle */
    GORT_MON_ARMED /* was not woken for a P that was taken, but will be */
};

#define GORT_LATENCY_PLACES 256 /* a power of two */

/* For statistics; atomic. What a P counts is in p.h. */
struct gort__counts {
    uint64_t polls, polled; /* looks at fds, and how many goroutines they woke; by anybody */
    struct gort__hist
        poll_late;          /* how long an fd that was found ready can have been (netpoll.c); by anybody */
    uint64_t mutex_ns;      /* as in p.h, of those without a P; by anybody */
    uint64_t retakes[2];    /* Ps taken from calls: unannounced, announced; written under sched.lock */
    uint64_t preempted;     /* goroutines preempted; written under sched.lock */
    uint64_t preempt_asked; /* and asked to stop; written by sysmon */
    /* Written by whoever stops the world. From the wish until all have stopped; until they go on. */
    struct gort__hist stop_stopping, stop_total;
    uint64_t stop_from, stop_at;           /* of the stop under way, in ticks; not atomic */
    uint64_t latency[GORT_LATENCY_PLACES]; /* latency.c */
};

/* Everything that is shared. The line of a field's group says who may touch it. */
struct gort__sched {
    /* These survive runs. */
    struct gort__lock lock GORT_ALIGNED_LINE; /* rank GORT_RANK_SCHED */
    uint32_t phase;                           /* enum gort__phase; atomic */
    uint32_t world_word;                      /* odd while the world is stopped or stopping; futex */
    uint32_t dumpers;                         /* who walk the records right now; atomic */
    bool forked;                              /* this is the child of a fork; set once */
    uint64_t run;                             /* counts runs and their ends; atomic */
    struct gort__m *plain_ms;                 /* all attached plain threads; guarded by lock */

    /* Everything below is zero between runs. */
    char begin[0];

    /* Read at every wake-up, written when Ps or Ms come and go: idle.c. */
    uint32_t idle_count GORT_ALIGNED_LINE; /* Ps in idle_ps; atomic, written under lock */
    uint32_t spinning;                     /* Ms that look for work; atomic */
    uint32_t fuzz;                         /* schedule fuzzing is on; atomic, set before the run */
    bool scarce;                           /* there was no memory for a new record; atomic */
    struct {
        bool on;              /* it has a thread; written by the supervisor under lock */
        enum gort__mon state; /* atomic, written under sysmon_sleep.c's lock */
    } sysmon;
    uint32_t idle_times; /* all Ps became idle; atomic, written under lock */
    uint32_t tsan_end;   /* goroutines, for TSan only (san.h); atomic */
    struct {             /* wake_defer.c */
        bool used;       /* wake-ups could wait since sysmon last looked; atomic */
        bool watched;    /* sysmon looks often enough for that; atomic */
    } defer;
    int procs; /* maxprocs now; atomic, written while the world is stopped */

    /* Waiting for fds and timers: poller.c. */
    struct {
        int64_t until;         /* when the poll owner wakes; 0: there is none; atomic */
        int64_t at;            /* when somebody last looked for ready fds; atomic */
        struct gort__m *owner; /* sleeps in the poller, or is about to; guarded by lock */
        int64_t woke_at;       /* when it last woke; atomic, written by owner */
    } poll GORT_ALIGNED_LINE;

    /* Guarded by lock. What is atomic here is written under it. */
    struct {                     /* queue.c */
        uint32_t n;              /* Gs in the global queue; atomic */
        uint32_t passed;         /* how often the first segment was passed over */
        struct gort__glist list; /* first and last segment */
        struct gort__g *end;     /* the last G in it, NULL: not known */
    } global GORT_ALIGNED_LINE;
    struct { /* queue.c: Gs that an event has woken, without a P: they go first */
        struct gort__glist list;
        uint32_t n; /* list.n; atomic */
    } events;
    struct { /* preempted.c: Gs whose threads wait with them for a P */
        struct gort__glist list;
        uint32_t n;       /* list.n; atomic */
        uint32_t passed;  /* how often others went before the first of them */
        uint32_t boost_n; /* a P was lost to a lock's sleep: so many of them go first; atomic */
        int64_t
            cpu; /* CPU time that goroutines have used until they were preempted, ns; atomic (cputime.c) */
        int64_t admitted_at; /* its value when a G was last started in spite of many preempted ones; atomic */
    } preempted;
    struct {               /* tight.c: no more threads */
        bool spare_coming; /* an M without work is being made */
        bool starved;      /* somebody waits for an M: the supervisor tries again */
        bool refused;      /* the kernel refused the last thread */
        bool no_m;         /* a P is idle because there was no M for it, and none is idle; atomic */
        bool tight;        /* no thread can be created; atomic */
        bool careful; /* tight, or some are preempted: a G that has not run yet must not just start; atomic */
    } limit;
    struct {
        bool limit, hogs, refused;
    } said;  /* in this run (tight.c) */
    struct { /* tight.c: those who wait for a thread */
        struct gort__glist list;
        uint32_t n;    /* list.n; atomic */
        int64_t since; /* since when nobody was switched to; 0: not known */
        uint64_t switches;
    } line;
    struct gort__p *idle_ps;    /* last idle first */
    struct {                    /* m.c */
        struct gort__m *idle;   /* last idle first */
        struct gort__m *wanted; /* records whose thread the supervisor is to create */
        struct gort__m *dead;   /* whose threads have ended or are about to: to be joined */
        struct gort__m *all;    /* all of this run's threads */
        struct gort__m *free;   /* records of threads that have ended, for reuse */
        int n, next_id;
        int without_p; /* those that lost their P and may still have something to run */
    } ms;
    struct {
        int users;        /* plain threads alive that used this run */
        uint64_t spawned; /* Gs started by plain threads */
    } plain;
    struct gort__p *ps[GORT_MAXPROCS_MAX]; /* all ever made in this run; atomic pointers */
    int p_made;                            /* atomic, written while the world is stopped */

    struct {                   /* world.c */
        uint32_t busy;         /* somebody stops the world or has it stopped; atomic */
        struct gort__m *owner; /* who called gort_world_stop; atomic */
        bool stay_asleep;      /* who sleeps stays so until the world starts, even if it is woken; atomic */
        uint32_t event;        /* changes whenever an M stops or gives up a P meanwhile; futex */
    } world;

    struct {           /* supervisor.c; guarded by lock */
        uint32_t word; /* changes when the supervisor has something to do; futex */
        bool creating; /* it creates or joins threads just now */
        bool suspect;  /* all are asleep, but other threads exist: it looks again */
    } supervisor;
    bool ended;       /* every M was told so; guarded by lock (run.c) */
    struct {          /* run.c; guarded by lock */
        bool done;    /* main returned, or the last goroutine ended */
        bool ending;  /* main has returned: no thread is created or joined any more */
        bool leaving; /* main has returned, and is the last to stop the world; atomic */
        bool final;   /* main stopped the world for good */
        bool exited;  /* main called gort_exit */
        int result;
        int64_t started_at; /* when this run began */
    } main;
    uint64_t ids; /* goroutine numbers given to Ps; atomic */
    struct gort__conf conf;
    struct gort__slab gs;        /* all Gs */
    struct {                     /* g.c; guarded by free.lock */
        struct gort__lock lock;  /* rank GORT_RANK_GFREE */
        struct gort__g *batches; /* batches of idle Gs */
        uint32_t batches_n;      /* how many */
        uint32_t batches_least;  /* since the scavenger last looked */
        struct gort__g *loose;   /* single idle Gs */
    } free;
    struct gort__slab extras; /* struct gort__extra */

    struct gort__counts counts GORT_ALIGNED_LINE;
};
extern struct gort__sched gort__sched GORT_HIDDEN;

enum gort__phase { GORT_PHASE_NONE, GORT_PHASE_STARTING, GORT_PHASE_ON, GORT_PHASE_ENDING };

/*
 * The caller holds the only P: nobody steals from it, and nobody is idle. What needs an atomic
 * read-modify-write against thieves may then be done without. It stays so until the caller's next
 * look at attention: procs changes only while the world is stopped (p.c).
 */
static inline bool gort__sched_alone(void)
{
    return gort__load(&gort__sched.procs, RELAXED) == 1;
}

/* Which run is on, or was the last one: objects tell by it that those who waited in their queues are gone. */
static inline uint64_t gort__sched_run(void)
{
    return gort__load(&gort__sched.run, RELAXED);
}

#endif
