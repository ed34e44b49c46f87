/* SPDX-License-Identifier: MIT */
/*
 * m.h - M: a thread that runs goroutines, or a plain thread that called gort.
 */
#ifndef GORT_SRC_SCHED_CORE_M_H
#define GORT_SRC_SCHED_CORE_M_H

#include <gort/run.h>

#include "base/rand.h"
#include "mem/lock.h"
#include "mem/slab.h"
#include "os/os.h"
#include "sched/core/g.h"

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

/*
 * M: an OS thread that runs Gs; or a plain thread that called gort, which runs only its own g0. A field is owned by the
 * thread, and a struct belongs to the file that its comment names, unless it says otherwise.
 */
struct gort__m {
    /* Touched by every call. */
    uint32_t inside;    /* 1 while the thread runs our code; atomic, written by the thread (entry.c) */
    uint32_t attention; /* enum gort__attention; atomic, set by others */
    struct gort__g *g;  /* whose code runs: a G, or &g0; atomic, written by the thread */
    struct gort__p *p;  /* NULL: it may not run Gs. Written by the thread, or while it is stopped */
    struct {            /* what the next context must do for prev */
        gort__commit fn;
        void *arg;
    } commit;
    struct gort__g *prev;    /* the G that was switched away from */
    int *err;                /* the thread's errno */
    struct gort__g *bound_g; /* the G that is bound to this thread (GORT_G_BOUND), or NULL */
    struct gort__g *block_g; /* the G in an announced call during which it called us (block.c), or NULL */
    /* The thread's exceptions of C++, or NULL; none while no goroutine runs. Or &sig.doubt (mask.c). */
    struct gort__os_eh_globals *eh_globals;
    struct {        /* ras.h: hints for a call that ends by gort__arch_ret_indirect */
        void *stop; /* where the last one that stopped here will return to, */
        void *call; /* and where its caller will */
        bool match; /* stop is where the one that goes on returns to, too */
    } ras;
    uint32_t block_depth;   /* announced calls nested in it, or a plain thread's (block.c) */
    struct gort__g *handed; /* a picked G that g0 must see to: bound, or without a stack */

    /* Sleeping and waking: note.c. */
    uint32_t note GORT_ALIGNED_LINE; /* 0 none, 1 woken, 2 asleep; atomic */
    bool spinning;                   /* counted in sched.spinning; owned by the thread, or the waker */
    bool plain;                      /* a plain thread */
    struct {                         /* m.c */
        bool quit;                   /* end the thread instead of running; guarded by sched.lock */
        bool die;                    /* the G bound to it ended: so does the thread */
        bool started;                /* the thread has come to life; atomic */
        bool has_thread;             /* false while it is not created; atomic, written by the supervisor */
        bool spare;                  /* made ahead of need; its thread clears it */
    } life;
    bool nested;         /* inside, whatever inside says: gort__enter_nest; atomic, written by the thread */
    struct {             /* at the end of the run: run.c, zombie.c */
        uint32_t reaper; /* enum gort__reaper: who sees to the record; atomic */
        bool called; /* it has called us after the end of its run: it comes to its end by itself; atomic */
        bool slept;  /* it slept in the kernel when the run ended; atomic */
        int64_t cpu; /* its CPU clock when the run had ended; atomic, written by who ends the run */
        struct gort__cpu_stall stall; /* owned by who ends the run */
        uint32_t frozen;              /* for good: the run is over (preempt.c); atomic, futex */
        struct gort__zombie zombie;   /* what it keeps alive */
    } end;
    struct {               /* preempt.c, for the thread but for what is atomic */
        char *chaining;    /* it calls the program's own handler: from this frame */
        void *met_sp;      /* from here on its stack is as the signal met it; valid with in_handler */
        bool in_handler;   /* waits in the signal handler; atomic */
        bool in_libc;      /* what the handler interrupted may hold locks of libc */
        bool masked;       /* sysmon has found that it blocks our signal; atomic */
        int64_t signalled; /* when our signal was last sent to it, 0: never; atomic */
        uint8_t deferrals; /* how often the handler has let the goroutine leave libc */
    } preempt;
    struct { /* world.c */
        /* Its stack pointer while it sleeps, with all registers on the stack, plus 1 while it wakes; NULL: it moves;
         * atomic. */
        void *parked_sp;
        char *hi; /* the upper end of the thread's own stack, as far as we use it */
        struct gort__os_altstack old_alt;
    } stack;
    struct {               /* cputime.c: since its goroutine was preempted; atomic, written by the thread */
        struct gort__p *p; /* where it went on, */
        uint64_t switches; /* of that P, then */
        int64_t ns;        /* CPU time until then without a sleep */
        int64_t from;      /* its CPU clock then, or when it was last asked to stop */
        int64_t at;        /* the time then */
        uint64_t waits;    /* how often it had gone to sleep */
    } burst;
    struct {           /* turn.c: the turn of its goroutine, which woken ones interrupt */
        int64_t asked; /* how long it had lasted when sysmon asked it to stop, ns; atomic */
        int64_t used;  /* how much is over, valid in that slice of that P; atomic, written by the thread */
        struct gort__p *p;
        uint32_t slice;
    } turn;
    struct {               /* handoff.c; guarded by sched.lock */
        bool waiting;      /* its goroutine is queued, or will be, to be granted a P */
        bool reacquiring;  /* it is in gort__handoff_reacquire, */
        bool was_bound;    /* and its goroutine was bound before; both owned by the thread */
        bool boosted;      /* it was last preempted at the head of the line */
        bool counted_no_p; /* lost its P and counts in sched.ms.without_p */
        bool stopped;      /* waits for the world to start */
        int cpu;           /* where it was when it became idle or preempted, and will wake up if it can */
        struct gort__p *next_p; /* the P that the waker hands over */
    } handoff;
    struct gort__m *link;     /* in sched.ms.idle, sched.ms.wanted, ...; guarded by sched.lock */
    struct gort__m *all_next; /* in sched.ms.all or sched.plain_ms; guarded by sched.lock */
    int id;
    uintptr_t thread;
    struct gort__rand rand;
    struct {            /* cached_now.c */
        uint64_t ticks; /* the processor's counter when now was found out */
        int64_t now;
    } cached;
    struct {                              /* mask.c */
        uint64_t mask;                    /* the thread's usual signal mask */
        struct gort__os_eh_globals *cxx;  /* what eh_globals points at, if not &doubt */
        struct gort__os_eh_globals doubt; /* what it points at while the mask may be another one */
    } sig;
    uint64_t run;       /* which run it belongs to (plain: used last) */
    struct {            /* block.c */
        int64_t at;     /* when it gave its P up for an announced call, 0: it did not */
        uint64_t waits; /* how often it had gone to sleep then */
        bool on_g0;     /* it makes such a call (gort_block) right now; atomic, written by the thread */
        struct gort__block_call *call; /* what g0 is to call for a goroutine */
    } block;
    struct gort__shadow shadow;
    struct gort__g g0; /* the thread's own stack */
    /* Others may look at these even when the record is just given to a new thread: they are the last ones,
     * see m.c. */
    int tid;             /* atomic */
    int timer;           /* on the thread's CPU clock, < 0: none; atomic */
    uint32_t block_word; /* enum gort__block; atomic, written by the thread, and marked by sysmon */
    struct {             /* preempt.c; atomic */
        uint32_t slice;  /* which time slice GORT_ATT_PREEMPT ends */
        uint32_t why;    /* enum gort__why */
    } ask;
    /* This stays with the record. */
    void *tsan_blank; /* TSan's fiber without a past; san.h */
};

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

static inline void gort__m_eh_set(struct gort__m *m, void *caught, unsigned int uncaught)
{
    m->sig.cxx->caught = caught;
    m->sig.cxx->uncaught = uncaught;
}

#endif
