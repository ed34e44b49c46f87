/* SPDX-License-Identifier: MIT */
/*
 * sched.h - M, P and the scheduler's shared state, for the files of this room.
 *
 * The rooms above include verbs.h instead: park, ready, yield, enter and leave are all they need.
 */
#ifndef GORT_SRC_SCHED_SCHED_H
#define GORT_SRC_SCHED_SCHED_H

#include "base/rand.h"
#include <gort/run.h>
#include "mem/slab.h"
#include "mem/lock.h"
#include "os/os.h"
#include "sched/core/conf.h"
#include "sched/core/g.h"
#include "sched/core/runq.h"
#include "sched/timers/timer.h"

struct gort__p;

/* A signal frame with AVX-512 state, and room for handlers; below the M. */
#define GORT_ALTSTACK ((size_t)64 << 10)

/* Runs when a G is off its stack, or when nobody else can resume it (gort__park_early). False: it does not
 * wait after all and is made runnable again. */
typedef bool (*gort__commit)(struct gort__g *g, void *arg);

/* Why an M should look up at its next entry or exit: bits of gort__m.attention. */
enum gort__attention {
    GORT_ATT_WORLD = 1,   /* the world is being stopped */
    GORT_ATT_NO_P = 2,    /* its P was taken away */
    GORT_ATT_ENDED = 4,   /* the run is over: end the thread, touch nothing else */
    GORT_ATT_NO_RUN = 8,  /* a plain thread: the run it used is over */
    GORT_ATT_FORKED = 16, /* this is the child of a fork */
    /* Always set where the kernel has no membarrier: every look needs a full fence (entry.c). */
    GORT_ATT_FENCE = 32,
    GORT_ATT_PREEMPT = 64, /* its goroutine's time is up (preempt.c) */
    GORT_ATT_SHADOW = 128  /* not an M, but the stand-in for one in an announced blocking call (block.c) */
};

/* At the end of a run: the first of thread and supervisor to say so decides. */
enum gort__reaper {
    GORT_REAPER_OPEN,
    GORT_REAPER_THREAD /* the thread frees its record */,
    GORT_REAPER_SUPERVISOR /* the supervisor does */
};

/* What a thread that is left behind at the end of a run still uses, and frees when it ends (run.c). */
struct gort__zombie {
    char *stack; /* the slot of its goroutine; NULL: nothing */
    size_t stack_size;
    void *fiber;                  /* TSan's */
    struct gort__chunk *chunk[3]; /* of its goroutine's record, of its copied argument, of its extra */
    struct gort__p *p;            /* its m->p: gort_block_enter looks there without asking; NULL: none */
};

/* What an M's thread does about an announced blocking call: bits of gort__m.block (block.c). */
enum gort__block {
    GORT_BLOCK_CALL = 1, /* it is in one */
    GORT_BLOCK_SEEN = 2, /* in the same one since a look of sysmon, which says so */
    GORT_BLOCK_MORE = 4  /* its end has more to do than the simple one */
};

/* What a thread's self points at during an announced blocking call. The first fields are those of an M. */
struct gort__shadow {
    uint32_t inside, attention; /* attention is GORT_ATT_SHADOW: every call takes the slow way in */
    struct gort__g *g;          /* g0: the caller counts as a plain thread */
    struct gort__p *p;          /* NULL */
} GORT_ALIGNED_LINE;            /* as an M, in which it lies */

/* Since when a thread's CPU clock stands still (sysmon.c). All zero: nobody has looked. */
struct gort__cpu_stall {
    int64_t cpu, since;
};

/* M: an OS thread that runs Gs; or a plain thread that called gort, which runs only its own g0. */
struct gort__m {
    /* Touched by every call. */
    uint32_t inside;     /* 1 while the thread runs our code; atomic, written by the thread (entry.c) */
    uint32_t attention;  /* enum gort__attention; atomic, set by others */
    struct gort__g *g;   /* whose code runs: a G, or &g0; atomic, written by the thread */
    struct gort__p *p;   /* NULL: it may not run Gs. Written by the thread, or while it is stopped */
    gort__commit commit; /* what the next context must do for prev */
    void *commit_arg;
    struct gort__g *prev;    /* the G that was switched away from */
    int *err;                /* the thread's errno */
    struct gort__g *bound_g; /* the G that is bound to this thread (GORT_G_BOUND), or NULL */
    /* The G in an announced blocking call during which it called us (block.c), or NULL. */
    struct gort__g *block_g;
    /* The thread's exceptions of C++, or NULL; none while no goroutine runs. Or &doubt (mask.c). */
    struct gort__os_eh_globals *eh_globals;
    /* Where the last one that stopped here will return to, and where whoever called that one will; and
     * whether the former is where the one that goes on returns to, too: hints for whoever ends by
     * gort__arch_ret_indirect. Owned by the thread. */
    void *ras_stop, *ras_call;
    bool ras_match;
    uint32_t block_depth;   /* calls nested in it, or a plain thread's; owner */
    struct gort__g *handed; /* a picked G that g0 must see to: bound, or without a stack */

    /* Sleeping and waking: m.c. */
    uint32_t note GORT_ALIGNED_LINE; /* 0 none, 1 woken, 2 asleep; atomic */
    bool spinning;                   /* counted in sched.spinning; owned by the thread, or the waker */
    bool plain;                      /* a plain thread */
    bool quit;                       /* end the thread instead of running; guarded by sched.lock */
    bool die;                        /* the G bound to it ended: so does the thread */
    bool started;                    /* the thread has come to life; atomic */
    bool has_thread; /* false while the supervisor has not created it; atomic, written by the supervisor */
    uint32_t reaper; /* enum gort__reaper: who sees to the record when the run is over; atomic */
    bool spare;      /* made ahead of need; its thread clears it */
    bool waiting;    /* its goroutine is queued, or will be, to be granted a P; guarded by sched.lock */
    bool reacquiring,
        was_bound; /* it is in gort__handoff_reacquire; its goroutine was bound before. Owned by the thread */
    bool boosted;  /* it was last preempted at the head of the line; guarded by sched.lock */
    bool zombie_called; /* it has called us after the end of its run: it comes to its end by itself; atomic */
    char *chaining;     /* it calls the program's own handler: from this frame; owned by the thread */
    bool nested;        /* inside, whatever inside says: timer.c, gort__nest; atomic, written by the thread */
    bool in_handler;    /* waits in the signal handler; owned by the thread */
    void *met_sp;       /* from here on its stack is as the signal met it; valid with in_handler */
    void *
        parked_sp; /* its stack pointer while it sleeps, with all registers on the stack, plus 1 while it wakes
                    (world.c); NULL: it moves; atomic */
    char *stack_hi;     /* the upper end of the thread's own stack, as far as we use it */
    bool in_libc;       /* what the handler interrupted may hold locks of libc; owned by the thread */
    bool slept_at_end;  /* it slept in the kernel when the run ended; atomic */
    int64_t cpu_at_end; /* its CPU clock when the run had ended; atomic, written by who ends the run */
    struct gort__cpu_stall stall_at_end; /* owned by who ends the run */
    uint32_t frozen;                     /* for good: the run is over (preempt.c); atomic, futex */
    uint8_t deferrals; /* how often the handler has let the goroutine leave libc; owned by the thread */
    /* Where its goroutine went on after it was preempted (cputime.c); atomic, written by the thread. */
    struct gort__p *burst_p;
    uint64_t burst_switches; /* of that P, then; the same */
    int64_t burst;           /* CPU time until then without a sleep, ns; the same */
    int64_t burst_from;      /* its CPU clock then, or when it was last asked to stop; the same */
    int64_t burst_at;        /* the time then; the same */
    uint64_t burst_waits;    /* how often it had gone to sleep; atomic, written by the thread */
    /* The turn of its goroutine, which woken ones interrupt (turn.c). */
    int64_t turn_asked; /* how long it had lasted when sysmon asked it to stop, ns; atomic */
    /* How much of it is over, valid in that slice of that P; atomic, written by the thread. */
    int64_t turn_used;
    struct gort__p *turn_p;
    uint32_t turn_slice;
    int64_t signalled; /* when our signal was last sent to it, 0: never; atomic */
    int cpu; /* where it was when it became idle or preempted, and will wake up if it can; guarded by sched.lock */
    bool counted_no_p;        /* lost its P and counts in sched.without_p; guarded by sched.lock */
    bool stopped;             /* waits for the world to start; guarded by sched.lock */
    struct gort__p *next_p;   /* the P that the waker hands over; guarded by sched.lock */
    struct gort__m *link;     /* in sched.idle_ms, sched.wanted_ms, ...; guarded by sched.lock */
    struct gort__m *all_next; /* in sched.all_ms or sched.plain_ms; guarded by sched.lock */
    int id;
    uintptr_t thread;
    struct gort__rand rand;
    /* The processor's counter when cached_now was found out (cached_now.c); owned by the thread. */
    uint64_t cached_ticks;
    int64_t cached_now;
    struct gort__os_altstack old_altstack;
    uint64_t mask;                    /* the thread's usual signal mask */
    struct gort__os_eh_globals *cxx;  /* what thrown points at, if not &doubt; owned by the thread */
    struct gort__os_eh_globals doubt; /* what it points at while the mask may be another one (mask.c) */
    bool masked;                      /* sysmon has found that it blocks our signal; atomic */
    uint64_t run;                     /* which run it belongs to (plain: used last) */
    struct gort__zombie zombie;       /* what it keeps alive after the end of the run */
    int64_t block_at; /* when it gave its P up for an announced call, 0: it did not; owned by the thread */
    uint64_t block_waits; /* how often it had gone to sleep then; owned by the thread */
    bool on_g0;           /* it makes such a call (gort_block) right now; atomic, written by the thread */
    struct gort__block_call *call; /* what g0 is to call for a goroutine (block.c); owned by the thread */
    struct gort__shadow shadow;
    struct gort__g g0; /* the thread's own stack */
    /* Others may look at these even when the record is just given to a new thread: they are the last ones,
     * see m.c. */
    int tid;                /* atomic */
    int timer;              /* on the thread's CPU clock, < 0: none; atomic */
    uint32_t block;         /* enum gort__block; atomic, written by the thread, and marked by sysmon */
    uint32_t preempt_slice; /* which time slice GORT_ATT_PREEMPT ends; atomic */
    uint32_t preempt_why;   /* enum gort__why; atomic */
    /* These stay with the record. */
    void *tsan_blank; /* TSan's fiber without a past; san.h */
};

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
    char *fresh, *fresh_end; /* Gs that were never used */
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
};

/* What sysmon does; sysmon_sleep.c. */
enum gort__mon {
    GORT_MON_AWAKE,      /* looks, or will at the end of a short tick */
    GORT_MON_ARMED_SOON, /* GUARD, but notified: will soon */
    /* Whoever has something for it notifies it in these. */
    GORT_MON_LONG, /* sleeps for a long tick: nobody waited */
    GORT_MON_IDLE, /* sleeps while all Ps are idle */
    GORT_MON_ARMED /* was not woken for a P that was taken, but will be */
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
    bool sysmon_on;                        /* it has a thread; written by the supervisor under lock */
    enum gort__mon sysmon_state;           /* atomic, written under sysmon_sleep.c's lock */
    uint32_t idle_times;                   /* all Ps became idle; atomic, written under lock */
    uint32_t tsan_end;                     /* goroutines, for TSan only (san.h); atomic */
    bool defer_used;    /* wake-ups could wait since sysmon last looked; atomic (wake_defer.c) */
    bool defer_watched; /* sysmon looks often enough for that; atomic */
    int procs;          /* maxprocs now; atomic, written while the world is stopped */

    /* Waiting for fds and timers: poller.c. */
    int64_t poll_until GORT_ALIGNED_LINE; /* when the poll owner wakes; 0: nobody is; atomic */
    int64_t polled_at;                    /* when somebody last looked for ready fds; atomic */

    /* Guarded by lock. */
    uint32_t queued GORT_ALIGNED_LINE; /* Gs in queue; atomic, written under lock */
    uint32_t queue_passed;             /* how often the first segment of queue was passed over */
    struct gort__glist queue;          /* the global run queue: first and last segment (queue.c) */
    struct gort__g *queue_end;         /* the last G in it, NULL: not known */
    struct gort__glist woken;          /* Gs that an event has woken, without a P: they go first (queue.c) */
    uint32_t woken_n;                  /* woken.n; atomic, written under lock */
    struct gort__glist preempted;      /* preempted Gs, whose threads wait with them for a P (handoff.c) */
    uint32_t preempted_n;              /* preempted.n; atomic, written under lock */
    uint32_t preempted_passed;         /* how often others went before the first of them; guarded by lock */
    /* A P was lost to a lock's sleep: so many preempted ones go first; atomic, written under lock. */
    uint32_t boost_n;
    bool spare_coming; /* an M without work is being made */
    bool starved;      /* somebody waits for an M: the supervisor tries again; guarded by lock */
    bool refused;      /* the kernel refused the last thread */
    bool said_limit, said_hogs, said_refused; /* in this run */
    bool no_m;  /* a P is idle because there was no M for it, and none is idle; atomic, written under lock */
    bool tight; /* no thread can be created (tight.c); atomic, written under lock */
    /* Tight, or some are preempted: a G that has not run yet must not just start; atomic, under lock. */
    bool careful;
    struct gort__glist line; /* those who wait for a thread (tight.c) */
    uint32_t line_n;         /* line.n; atomic, written under lock */
    int64_t line_since;      /* since when nobody was switched to; 0: not known */
    uint64_t line_switches;
    /* CPU time that goroutines have used until they were preempted, ns; atomic (cputime.c). */
    int64_t preempted_cpu;
    int64_t admitted_at;     /* its value when one was last started in spite of many preempted ones; atomic */
    struct gort__p *idle_ps; /* last idle first */
    struct gort__m *idle_ms; /* last idle first */
    struct gort__m *wanted_ms; /* records whose thread the supervisor is to create */
    struct gort__m *dead_ms;   /* whose threads have ended or are about to: to be joined */
    struct gort__m *all_ms;    /* all of this run's threads */
    struct gort__m *free_ms;   /* records of threads that have ended, for reuse */
    int m_count, m_next_id;
    int without_p;                         /* Ms that lost their P and may still have something to run */
    int plain_users;                       /* plain threads alive that used this run */
    struct gort__m *poll_owner;            /* sleeps in the poller, or is about to: poller.c */
    int64_t poller_woke_at;                /* when it last woke; atomic, written by poll_owner */
    struct gort__p *ps[GORT_MAXPROCS_MAX]; /* all ever made in this run; atomic pointers */
    int p_made;                            /* atomic, written while the world is stopped */

    /* The world (world.c). */
    uint32_t world_busy;         /* somebody stops the world or has it stopped; atomic */
    struct gort__m *world_owner; /* who called gort_world_stop; atomic */
    bool world_stay_asleep;      /* who sleeps stays so until the world starts, even if it is woken; atomic */
    uint32_t world_event;        /* changes whenever an M stops or gives up a P meanwhile; futex */

    /* The run (run.c, supervisor.c). */
    uint32_t supervisor_word; /* changes when the supervisor has something to do; futex */
    bool main_done;           /* main returned, or the last goroutine ended; guarded by lock */
    bool ended;               /* every M was told so; guarded by lock */
    bool main_ending;  /* main has returned: no thread is created or joined any more; guarded by lock */
    bool creating;     /* the supervisor creates or joins threads just now; guarded by lock */
    bool main_leaving; /* main has returned, and is the last to stop the world; atomic */
    bool world_final;  /* main stopped the world for good; guarded by lock */
    bool suspect; /* all are asleep, but other threads exist: the supervisor looks again; guarded by lock */
    bool main_exited; /* main called gort_exit; guarded by lock */
    int result;
    int64_t started_at;     /* when this run began */
    uint64_t ids;           /* goroutine numbers given to Ps; atomic */
    uint64_t plain_spawned; /* Gs started by plain threads; guarded by lock */
    struct gort__conf conf;
    struct gort__slab gs;         /* all Gs */
    struct gort__lock free_lock;  /* rank GORT_RANK_GFREE; guards free_batches and loose */
    struct gort__g *free_batches; /* batches of idle Gs */
    uint32_t free_batches_n;      /* how many; under free_lock */
    uint32_t free_batches_least;  /* since the scavenger last looked; under free_lock */
    struct gort__g *loose;        /* single idle Gs */
    struct gort__slab blocks[4];  /* 128, 256, 512, 1024 bytes: copied arguments, keys, exit handlers */
    struct gort__slab extras;     /* struct gort__extra */
};
extern struct gort__sched gort__sched GORT_HIDDEN;

enum gort__phase { GORT_PHASE_NONE, GORT_PHASE_STARTING, GORT_PHASE_ON, GORT_PHASE_ENDING };

static inline struct gort__m *gort__m_self(void)
{
    return gort__arch_self();
}

/* The thread's M, also while self is its stand-in, in an announced blocking call (block.c). */
static inline struct gort__m *gort__m_home(void)
{
    return gort__arch_home();
}

/* Home first: a signal handler that finds a self finds a home. */
static inline void gort__m_set_self(struct gort__m *m)
{
    gort__arch_set_home(m);
    gort__arch_set_self(m);
}

/* Somebody wants the M's attention. */
static inline bool gort__m_wanted(const struct gort__m *m)
{
    return (gort__load(&m->attention, RELAXED) & ~(uint32_t)GORT_ATT_FENCE) != 0;
}

static inline void gort__p_new_slice(struct gort__p *p)
{
    gort__store(&p->slice, p->slice + 1, RELAXED);
}

static inline void gort__m_eh_set(struct gort__m *m, void *caught, unsigned int uncaught)
{
    m->cxx->caught = caught;
    m->cxx->uncaught = uncaught;
}

static inline void gort__p_count_switch(struct gort__p *p)
{
    gort__store(&p->switches, p->switches + 1, RELAXED);
}

/*
 * The caller holds the only P: nobody steals from it, and nobody is idle. What needs an atomic
 * read-modify-write against thieves may then be done without. It stays so until the caller's next
 * look at attention: procs changes only while the world is stopped (p.c).
 */
static inline bool gort__p_alone(void)
{
    return gort__load(&gort__sched.procs, RELAXED) == 1;
}

/* --- entry.c ---------------------------------------------------------------------------------- */
bool gort__entry_exposed(void);
__attribute__((noreturn)) void gort__entry_end_thread(struct gort__m *m); /* the run is over */
void gort__entry_thread_ends(void *m); /* a plain thread, or one of ours, comes to its end */
/* Back to a blocking call: nobody looks but for a stop of the world. */
void gort__entry_leave_blocking(struct gort__m *m);
void gort__entry_attend(struct gort__m *m); /* with inside set: does what attention asks for */

/* --- schedule.c ------------------------------------------------------------------------------- */
void gort__schedule_loop(struct gort__m *m);                  /* on g0; returns when the thread is to end */
struct gort__g *gort__schedule_pick_local(struct gort__p *p); /* NULL: nothing is queued here */
struct gort__g *gort__schedule_pick(struct gort__p *p);       /* the same, or gort__poll_marker */
/* Picked instead of a G: timers or fds are to be seen to. */
extern struct gort__g gort__poll_marker GORT_HIDDEN;
/* These return the M that the caller is on afterwards. */
struct gort__m *gort__schedule_switch_to(struct gort__m *m, struct gort__g *from, struct gort__g *to);
struct gort__m *gort__schedule_switch_away(struct gort__m *m,
                                           struct gort__g *g); /* to the next G, or to g0 */
struct gort__m *gort__schedule_switch_finish(void);            /* first thing on a new stack */
void gort__gmain_start(void);                                  /* the entry of every goroutine */
bool gort__schedule_give_stack(struct gort__p *p, struct gort__g *g);

/* --- spawn.c, gmain.c -------------------------------------------------------------------------- */
struct gort__g *gort__g_new(struct gort__p *p); /* an idle G; p NULL: for a plain thread. NULL: no memory */
void gort__g_free(struct gort__p *p, struct gort__g *g);    /* its stack is gone already */
void gort__g_discard(struct gort__p *p, struct gort__g *g); /* never started */
void gort__g_cache_flush(struct gort__p *p);
/* Free records go from P to P in batches, linked through a field of their first. */
#define GORT_G_BATCH 64
static inline struct gort__g **gort__g_batch_link(struct gort__g *batch)
{
    return (struct gort__g **)(void *)&batch->wait_slot;
}
void gort__g_batch_put_locked(struct gort__g *batch); /* with free_lock held */
void gort__g_collect(void); /* memory is short: takes records and stacks from idle Ps */
bool gort__gmain_at_end(struct gort__g *g, void (*fn)(void *), void *arg); /* false: no memory */
void gort__gmain_at_end_cancel(struct gort__g *g, void (*fn)(void *), void *arg);
void gort__gmain_cleanup(struct gort__g *g);              /* whatever it has to release at its end; inside */
bool gort__key_destroy_all(struct gort__g *g);            /* key.c; false: the run is over */
bool gort__gmain_callback(void (*fn)(void *), void *arg); /* user code, outside; false: the run is over */
void gort__argmem_init(void);
uint64_t gort__g_count(void);
__attribute__((noreturn)) void gort__gmain_end(void); /* the running G ends */
void *gort__argmem_get(size_t size);                  /* up to 1024 bytes, 16-byte aligned; NULL: no memory */
void gort__argmem_put(void *block, size_t size);

/* --- extra.c: what few goroutines have ---------------------------------------------------------- */
struct gort__extra *gort__extra_get(struct gort__g *g); /* made if there is none; NULL: no memory; inside */
void gort__extra_put(struct gort__g *g);                /* it has one, with nothing in it but a name */
bool gort__extra_set_name(struct gort__g *g, const char *name); /* false: no memory; inside */
/* Anybody's, byte by byte: it may change at any time. */
const char *gort__extra_name(const struct gort__g *g);

/* --- queue.c: the global queue ---------------------------------------------------------------- */
void gort__queue_put_locked(struct gort__g *g);
struct gort__g *gort__queue_take(struct gort__p *p, uint32_t most); /* returns one, the rest into p */
struct gort__g *gort__queue_take_bound_locked(void); /* the first that runs on its own M only, or NULL */
void gort__local_drain_locked(struct gort__p *p);    /* its goroutines go to the queue; by its owner */
void gort__queue_put(struct gort__g *g);
void gort__queue_put_woken_locked(struct gort__g *g);
void gort__queue_put_woken(struct gort__glist list); /* to the end of those that an event has woken */
/* Returns one, a fair share of the rest into p; NULL: none. */
struct gort__g *gort__queue_take_woken(struct gort__p *p);
void gort__queue_put_and_wake(struct gort__g *g);
void gort__local_put(struct gort__p *p, struct gort__g *g);      /* tail of p's ring, overflow to the queue */
void gort__local_put_next(struct gort__p *p, struct gort__g *g); /* runs next */
void gort__local_put_woken(struct gort__p *p, struct gort__g *g); /* by its owner: it was woken by an event */
bool gort__local_put_woken_fits(struct gort__p *p, uint32_t n);
/* Anybody: nothing is queued there; as gort__runq_empty and gort__runq_seems_empty. */
static inline bool gort__local_empty(const struct gort__p *p)
{
    return gort__runq_empty(&p->runq) && gort__runq_empty(&p->events);
}
static inline bool gort__local_seems_empty(const struct gort__p *p)
{
    return gort__runq_seems_empty(&p->runq) && gort__runq_seems_empty(&p->events);
}
static inline uint32_t gort__local_length(const struct gort__p *p)
{
    return gort__runq_length(&p->runq) + gort__runq_length(&p->events);
}

/* --- turn.c: who runs next when time is short --- */
#define GORT_SLICE     INT64_C(10000000) /* ns */
#define GORT_LOOK      INT64_C(2000000)  /* ns between looks of sysmon while somebody waits, */
#define GORT_LOOK_LONG INT64_C(10000000) /* and while nobody does */
/* ---------------------------------------------------- */
static inline void gort__p_mode_on(struct gort__p *p, uint32_t bits)
{
    gort__store(&p->mode, p->mode | bits, RELAXED);
}
static inline void gort__p_mode_off(struct gort__p *p, uint32_t bits)
{
    gort__store(&p->mode, p->mode & ~bits, RELAXED);
}
struct gort__g *gort__turn_pick(struct gort__p *p); /* mode is not 0. NULL: nothing is queued here */
void gort__turn_look(struct gort__p *p); /* now and then, whether the ring has waited for a slice */
struct gort__g *gort__turn_woken(struct gort__p *p); /* a woken one, if it may run now; NULL: none */
struct gort__g *gort__turn_last(struct gort__p *p);  /* the same when nobody else was found here */
/* A preempted one, if its turn has come; NULL: none. */
struct gort__g *gort__turn_preempted(struct gort__p *p);
struct gort__g *gort__turn_begin_woken(struct gort__p *p,
                                       struct gort__g *g); /* p runs g, which an event has woken, next; g */
/* p runs g next, which was picked past turn.c: unless it is a woken one, the others have the P from now
 * on. */
void gort__turn_others(struct gort__p *p, const struct gort__g *g);
void gort__turn_rate(int64_t now, bool begin);     /* by sysmon: learns how fast the processor's counter is */
bool gort__turn_may_stop(const struct gort__p *p); /* by sysmon: for woken goroutines */

/* --- find.c, idle.c --------------------------------------------------------------------------- */
struct gort__g *gort__find(struct gort__m *m); /* on g0, with a P; NULL: the thread is to end */
#define GORT_POLL_EVERY INT64_C(50000)         /* ns between looks for ready fds while there is other work */
void gort__find_poll(struct gort__m *m);       /* on g0, with a P: due timers and ready fds */
bool gort__idle_has_work(void);                /* any P's queue, or the global one */
void gort__idle(struct gort__m *m);            /* nothing to run: sleeps, comes back with a P or to end */
void gort__idle_wake_p(void);                  /* gets one more M to look for work */
void gort__idle_spin_stop(struct gort__m *m);  /* it found work */
void gort__sysmon_sleep_work(void);
/* No P is idle, so nobody owns the poller: sysmon waits for timers and fds from now on. */
void gort__sysmon_sleep_events(void);
/* Somebody has put a goroutine into a queue while no P may be idle: sysmon looks soon whether it still
 * waits. */
static inline void gort__sysmon_note_work(void)
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.sysmon_state, RELAXED) == GORT_MON_LONG))
        gort__sysmon_sleep_work();
}
static inline void gort__idle_wake(void) /* after a SEQ_CST read-modify-write that published work */
{
    gort__arch_fence_after_rmw();
    if (GORT_LIKELY(gort__load(&gort__sched.idle_count, RELAXED) == 0))
        gort__sysmon_note_work();
    else if (gort__load(&gort__sched.spinning, RELAXED) == 0)
        gort__idle_wake_p();
}

/* --- wake_defer.c: wake-ups that can wait ------------------------------------------------------------ */
#define GORT_WAKE_DEFER_EVERY 4 /* picks between looks */
/* p's M is about to put n goroutines into its queue. True: it need not wake anybody for them now. By its
 * owner. */
bool gort__wake_defer(struct gort__p *p, uint32_t n);
/* By its owner, at a pick; false: it is the turn of a fair one. */
bool gort__wake_defer_look(struct gort__p *p);
void gort__wake_defer_watch(struct gort__p *p); /* by sysmon */

/* --- handoff.c: Ps change hands ----------------------------------------------------------------- */
void gort__handoff_give(struct gort__m *m);      /* gives up m's P to whoever can use it */
void gort__handoff_reacquire(struct gort__m *m); /* m's G runs without a P: waits for one */
void gort__handoff_preempt(struct gort__m *m,
                           bool in_libc); /* m's G has run long enough: waits for its turn, on its thread */
/* m is in user code, or in an announced call that sysmon has seen before: somebody else gets p. False: not
 * now. */
bool gort__handoff_retake(struct gort__p *p, struct gort__m *m, bool announced);
void gort__handoff_run_bound(struct gort__m *m, struct gort__g *g); /* hands m's P to g's own M */
bool gort__handoff_wait_bound(struct gort__m *m);                   /* false: the thread is to end */
struct gort__m *gort__handoff_grant_locked(struct gort__p *p,
                                           struct gort__g *g); /* p goes to g's own M, to be woken */
/* There is no thread for p, which is nobody's: it goes to the first queued G with an M of its own, to be
 * woken. NULL: none. */
struct gort__m *gort__handoff_grant_bound_locked(struct gort__p *p);
/*
 * So many Ms, or preempted goroutines, are looked at for one that sleeps on this CPU, and so often may the
 * first be passed over. Beside 4,096 hogs and a ticker of 1 ms, 2 procs: with 4 a CPU was idle for 2 to 5 %
 * of the time, with 16 for 1 to 3 %.
 */
#define GORT_M_NEAR 16
struct gort__g *gort__preempted_pop_locked(void);
struct gort__g *gort__preempted_take(void);
struct gort__g *gort__preempted_take_first(void); /* the one that let others go first, if it is still there */
/* cputime.c. */
/* A goroutine that has not run yet; false: those that are preempted go first. */
bool gort__cputime_admit_new(void);
/* Its goroutine is about to be preempted, or at least was asked to stop. */
void gort__cputime_end(struct gort__m *m);
void gort__cputime_begin(struct gort__m *m); /* it was preempted, and goes on */
/* A thread that has used so much CPU time of that time has not slept to speak of. */
bool gort__cputime_awake(int64_t ns, int64_t cpu);
/* The CPU time for which the goroutine that m runs on p has only computed until now, as far as the clocks
 * tell, ns. */
int64_t gort__cputime_burst(struct gort__m *m, struct gort__p *p, int64_t now, int64_t cpu);

/* --- mask.c: the signal mask of a goroutine ------------------------------------------------------ */
void gort__mask_thread(struct gort__m *m); /* an M's thread starts */
void gort__mask_doubt(struct gort__m *m);  /* the mask may not be the usual one; in handlers, too */
/* Whoever runs stops: the thread has its usual mask. True: *mask is what it was; else it is not touched or
 * worthless. */
bool gort__mask_put_away(struct gort__m *m, uint64_t *mask);
void gort__mask_take_up(struct gort__m *m, uint64_t mask); /* and goes on, here */
/* --- tight.c: no more threads ------------------------------------------------------------------ */
void gort__tight_update_locked(void);   /* after a change of m_count, refused or preempted */
void gort__tight_starve_locked(void);   /* the supervisor is to try again soon */
void gort__tight_say_locked(void);      /* somebody waits for a thread: says so once in a run, or is fatal */
void gort__tight_say_hogs_locked(void); /* the same, if it is because all threads compute */
/* g has not run yet, or has GORT_G_BLOCKS: it, or another one whose turn it is; NULL: not now. */
struct gort__g *gort__tight_turn(struct gort__p *p, struct gort__g *g);
struct gort__g *gort__tight_take(struct gort__p *p); /* one that waits in the line; NULL: none, or not now */

/* --- block.c, preempt.c, sysmon.c ------------------------------------------------------------- */
#define GORT_LONG_BLOCKS 8
struct gort__m *gort__block_surface(struct gort__m *m); /* a call during an announced blocking call */
/* The function of a goroutine returned in one: fatal. */
__attribute__((noreturn)) void gort__block_left_open(void);
void gort__block_call_run(struct gort__m *m); /* on g0 */
int gort__preempt_start(void);                /* the start of a run: installs the handler */
void gort__preempt_end(bool keep);            /* its end; keep: threads that are left may still need it */
void gort__preempt_again(void);               /* installs the handler again if it is gone */
void gort__preempt_thread(struct gort__m *m); /* an M's thread starts */
void gort__preempt_thread_end(struct gort__m *m);
int gort__preempt_signal(void); /* our signal's number in the current or last run, 0: there was none */
bool gort__preempt_refused(struct gort__m *m);          /* its thread blocks the signal. Reads a file */
void gort__preempt_ask(struct gort__m *m, bool urgent); /* makes the thread look at its attention soon */
void gort__preempt_freeze(struct gort__m *list);        /* the end of the run: who computes stops for good */
int gort__sysmon_start(void);
/* The supervisor, while sysmon has no thread: sees to timers and fds, as every M may wait with a goroutine
 * that is bound to it. */
void gort__sysmon_stand_in(void);
/* It looks at nothing any more, but its thread is still there. Never waits for a lock of libc's. */
void gort__sysmon_quiet(void);
void gort__sysmon_stop(void);
/* The thread sleeps in the kernel; since_last: and has not run since the last look. Where the kernel cannot
 * be asked (no fd left, no /proc), one that has not run for long counts as asleep. Keeps what it saw in
 * *s. */
bool gort__sysmon_asleep(struct gort__cpu_stall *s, int tid, int64_t now, bool since_last);

/* --- sysmon_sleep.c: how sysmon sleeps ------------------------------------------------------------------ */
void gort__sysmon_sleep_notify(void);
void gort__sysmon_sleep_calm(void);          /* nobody waits any more, and it was about to look */
void gort__sysmon_sleep_timer(int64_t when); /* a timer became the first, and nobody owns the poller for it */
static inline void gort__sysmon_notify(void) /* there may be something for it to do soon */
{
    if (GORT_UNLIKELY(gort__load(&gort__sched.sysmon_state, RELAXED) >= GORT_MON_LONG))
        gort__sysmon_sleep_notify();
}
static inline bool gort__sysmon_sleep_armed(void)
{
    enum gort__mon mon = gort__load(&gort__sched.sysmon_state, RELAXED);
    return mon == GORT_MON_ARMED || mon == GORT_MON_ARMED_SOON;
}
void gort__sysmon_sleep_arm_locked(void);    /* a P is taken while it rests */
void gort__sysmon_sleep_disarm_locked(void); /* all Ps are idle, and it has a guard */
/* For sysmon alone. Open, then quit by another thread, which wakes it for good, and close when it has
 * ended. */
void gort__sysmon_sleep_open(void);
void gort__sysmon_sleep_quit(void);
void gort__sysmon_sleep_close(void);
bool gort__sysmon_sleep_if_idle(int64_t now); /* there is nothing to look at: sleeps without an alarm next */
/* Else; is_long: whoever has something for it must notify it; listen: fds that are ready wake it; slack: of
 * timers. */
void gort__sysmon_sleep_until(int64_t until, bool is_long, bool listen, int64_t slack);
bool gort__sysmon_sleep(void); /* true: it was notified */

/* --- netpoll.c, poller.c: waiting for fds and timers --------------------------------------------- */
int gort__netpoll_open(void); /* 0 or -errno */
/* Readies those whose fds are ready; deadline as in poll.h. How many. m NULL or without a P: for the global
 * queue. */
uint32_t gort__netpoll(struct gort__m *m, int64_t deadline);
struct gort__glist gort__netpoll_look(int64_t deadline); /* the same, but the caller readies them */
/* M, in idle_ms, owns the poller from now on. False: nobody needs to be. */
bool gort__poller_take_locked(struct gort__m *m);
void gort__poller_wait(struct gort__m *m); /* instead of sleeping on the note; with a P or without */
/* After a full fence: somebody should own the poller, and nobody is. Wakes one that sleeps too long. */
bool gort__poller_wanted(void);
/* The same, and waking an M for it pays: while timers are coalesced the former owner comes back soon. */
bool gort__poller_vacant(void);
/* The poll owner wakes for the timer that is due then, and does not come back later than it: false while
 * timers are coalesced. A hint. */
bool gort__poller_covers(int64_t when);
void gort__poller_notice(struct gort__m *m,
                         int64_t when); /* a timer became the first of its heap; after its unlock */

/* --- cached_now.c: roughly the time ------------------------------------------------------------------ */
void gort__cached_now_init(void); /* while no run is on */

/* --- m.c: threads ----------------------------------------------------------------------------- */
/* An M for p, which is nobody's; returns whom to wake after unlocking, NULL: the supervisor sees to it. */
struct gort__m *gort__m_start_locked(struct gort__p *p, bool spinning);
void gort__m_spare_locked(void); /* sees to it that there will be an idle M */
void gort__m_probe_locked(void); /* the same although the kernel refused the last one: it may not this time */
void gort__m_stop(struct gort__m *m); /* sleeps until handed a P, or quit */
void gort__m_sleep(struct gort__m *m);
void gort__m_sleep_again(struct gort__m *m); /* the same when it may have been left before its end */
bool gort__m_sleep_until(struct gort__m *m, int64_t deadline);
void gort__m_wake(struct gort__m *m);
bool gort__m_doze(struct gort__m *m); /* before a sleep in the poller; false: woken already */
/* After it; false: it was woken, and gort__m_sleep says so once more. */
bool gort__m_undoze(struct gort__m *m);
void gort__m_take_next_p(struct gort__m *m);
void gort__m_main(void *m); /* the thread */
struct gort__m *gort__m_make(bool plain);
void gort__m_destroy(struct gort__m *m);
void gort__m_retire_locked(struct gort__m *m);  /* kept until the end of the run: dumps may look at it */
void gort__m_found_p_locked(struct gort__m *m); /* what it was counted_no_p is settled */

/* --- p.c: Ps ------------------------------------------------------------------------------- */
struct gort__p *gort__p_idle_get_locked(void);
void gort__p_idle_put_locked(struct gort__p *p);
void gort__p_take(struct gort__m *m, struct gort__p *p);
int gort__p_resize(int n); /* the world is stopped; 0 or -ENOMEM */

/* --- overflow.c, scavenge_stack.c, census.c: what is special about stacks ------------------------------- */
void gort__overflow_init(void);               /* at the start of a run: faults are reported from now on */
void gort__overflow_end(void);                /* at its end */
void gort__overflow_check(struct gort__g *g); /* GORT_G_CHECKED: fatal when it has run over its stack's end */
void gort__census_take(struct gort__g *g);    /* GORT_G_CHECKED: it has ended, and is off its stack */
void gort__census_print(void);                /* at the end of a run, while its goroutines are still there */
/* scavenge_g.c, by the supervisor: at each tick, true: there is something to do; some of it, until that time,
 * true: there is more. */
bool gort__scavenge_g_tick(void);
bool gort__scavenge_g(int64_t until);
void gort__scavenge_g_reset(void);
/* By the supervisor: when it wants to be called again, INT64_MAX: not soon. */
int64_t gort__scavenge_stack(int64_t now);
/* All Ps are idle: a good moment, if it has not looked for long. */
void gort__scavenge_stack_stir_locked(void);
void gort__scavenge_stack_stir(void); /* the same for whoever does not hold sched.lock: a P is at work */
char *gort__m_altstack(struct gort__m *m, size_t *size, size_t *guard); /* m.c; the guard lies below it */
bool gort__m_own_stack(const struct gort__m *m,
                       uintptr_t sp); /* m.c: on, or just below, the thread's own stack */

/* --- supervisor.c: the thread that called gort_run ------------------------------------------------ */
void gort__supervisor_wake_locked(void);
void gort__supervisor_loop(void);
void gort__supervisor_deadlock_locked(void);

/* --- run.c ----------------------------------------------------------------------------------- */
extern int gort__zombie_count GORT_HIDDEN; /* threads that ended runs have left behind; atomic */
void gort__zombie_free(struct gort__zombie *e);
void gort__run_main_ends(void);         /* the main goroutine ends */
void gort__run_done_locked(int result); /* main returned, or the last goroutine ended */

/* --- world.c ---------------------------------------------------------------------------------- */
/* *self: the caller's M, updated; NULL: the supervisor. False: the run is ending, nothing was stopped. */
bool gort__world_stop(struct gort__m **self);
bool gort__world_turn(struct gort__m **self); /* its two steps: nobody else may, which may take time; */
void gort__world_stop_now(struct gort__m *self);
void gort__world_start(void);
void gort__world_wait(struct gort__m *m); /* attention said so */
void gort__world_event(void);
extern int64_t gort__world_timeout;         /* ns; tests shorten it */
void gort__world_disown(struct gort__m *m); /* main returns: if it has stopped the world it goes on */
/* Its thread is about to sleep: from here on whoever stops the world may look at its stack; and wakes up. */
#define GORT_PUBLISH_SP(m)                                                                                   \
    do {                                                                                                     \
        __builtin_unwind_init(); /* what registers hold is in this frame */                                  \
        gort__world_publish_sp(m, gort__arch_sp());                                                          \
    } while (0)
void gort__world_publish_sp(struct gort__m *m, void *sp);
void gort__world_retract_sp(struct gort__m *m);

/* --- fuzz.c ----------------------------------------------------------------------------------- */
size_t gort__dump_name(const struct gort__g *g, char *buf, size_t size); /* dump.c: "goroutine 7 (worker)" */
size_t gort__dump_who(char *buf, size_t size); /* dump.c: the calling goroutine; 0 in a plain thread */
void gort__fuzz_point(struct gort__m *m);      /* perhaps a delay; with fuzzing on only */

#endif
