/* SPDX-License-Identifier: MIT */
/*
 * g.h - G: a goroutine, its states, and what it may wait for.
 *
 * Who may touch a G: in each state exactly one party owns it (see enum gort__gstate); the fields
 * that others may read at any time are marked atomic. Records are type-stable: a stale pointer
 * always points at a G, perhaps one that is idle or someone else by now.
 */
#ifndef GORT_SRC_SCHED_G_H
#define GORT_SRC_SCHED_G_H

#include "arch/arch.h"
#include "base/atomic.h"
#include "mem/stack.h"

/* Each state says who owns the record and its stack. state.c has the table of legal changes. */
enum gort__gstate {
    GORT_G_IDLE,      /* a free record: the cache or free list that it is in */
    GORT_G_RUNNABLE,  /* a run queue; has no stack before it first runs */
    GORT_G_RUNNING,   /* the M that runs it */
    GORT_G_SYSCALL,   /* the M it runs on, in an announced blocking call, without a P */
    GORT_G_DETACHED,  /* the M it runs on, in C code without a P */
    GORT_G_WAITING,   /* whatever it waits on, which will call gort__ready once */
    GORT_G_PREEMPTED, /* the M whose signal handler holds it */
    GORT_G_DEAD,      /* the M it ended on, until the record is free */
    GORT_G_STATES
};

/* Why a G waits: what a dump shows. names in state.c */
enum gort__reason {
    GORT_WAIT_NONE,
    GORT_WAIT_CHAN_RECV,
    GORT_WAIT_CHAN_SEND,
    GORT_WAIT_SELECT,
    GORT_WAIT_SELECT_NONE,
    GORT_WAIT_MUTEX,
    GORT_WAIT_RWMUTEX_R,
    GORT_WAIT_RWMUTEX_W,
    GORT_WAIT_COND,
    GORT_WAIT_WG,
    GORT_WAIT_SEM,
    GORT_WAIT_ONCE,
    GORT_WAIT_BARRIER,
    GORT_WAIT_SLEEP,
    GORT_WAIT_TIMER,
    GORT_WAIT_IO_READ,
    GORT_WAIT_IO_WRITE,
    GORT_WAIT_IO_WRITE_LOCK,
    GORT_WAIT_IO_ACCEPT,
    GORT_WAIT_IO_CONNECT,
    GORT_WAIT_FD,
    GORT_WAIT_REASONS
};

enum gort__gflag {
    GORT_G_MAIN = 1,      /* the main goroutine */
    GORT_G_THREAD = 2,    /* stands for a thread (a plain one, or an M's own stack), never queued */
    GORT_G_BOUND = 4,     /* runs on m only */
    GORT_G_NAMED = 8,     /* extra has its name */
    GORT_G_CLEANUP = 16,  /* has an extra, GORT_G_FINALLY or GORT_G_COPY to see to at its end */
    GORT_G_WORDS = 32,    /* fn takes more than one word */
    GORT_G_CONTEXT = 64,  /* scope is set */
    GORT_G_FINALLY = 128, /* arg[3] is a function to call with arg[4] at its end */
    GORT_G_COPY = 256,    /* arg[0] is a block of arg[1] bytes to release at its end */
    /* These four are tested together with GORT_G_BOUND by whoever is about to resume one. */
    /* When it becomes runnable, and when it runs then, is to be noted (latency.c). */
    GORT_G_TRACKED = 0x1000,
    /* It has lost its P in a blocking call while threads were short: it may do so again (tight.c). */
    GORT_G_BLOCKS = 0x2000,
    /* Parked, and the scavenger is at its stack: not to be resumed now (scavenge_stack.c). */
    GORT_G_SHRINKING = 0x4000,
    GORT_G_CHECKED = 0x8000 /* its stack is looked at by software: a canary, or the census (overflow.c) */
};

/* Cannot be resumed from just any stack: schedule.c:gort__schedule_loop sees to it. */
#define GORT_G_SPECIAL (GORT_G_BOUND | GORT_G_BLOCKS | GORT_G_SHRINKING | GORT_G_CHECKED | GORT_G_TRACKED)

struct gort__m;
struct gort__exit_handler;
struct gort__keys;
struct gort__ref;
struct gort__scope;

/* A piece of the global queue; described in its first G. */
struct gort__segment {
    struct gort__g *next; /* the first G of the next piece */
    uint32_t n;
    int origin; /* the P it came from, -1: none */
};

#define GORT_NAME_SIZE 32

/* What few goroutines have: made when first needed, released at the end (extra.c). Type-stable, as Gs are. */
struct gort__extra {
    struct gort__exit_handler *handlers; /* the last registered first; the link of a free one (slab.c) */
    struct gort__keys *keys;             /* goroutine-local values, NULL without any */
    struct gort__ref *inherited;         /* the context that it was started under, NULL without one */
    char name[GORT_NAME_SIZE];           /* valid with GORT_G_NAMED; read by dumps at any time */
} GORT_ALIGNED_LINE;

struct gort__g {
    /* What a switch and a queue touch. */
    /* Where it goes on; valid while it is not running; pc NULL: has not run yet, and sp is no sp. */
    struct gort__ctx ctx;
    struct gort__g *link;      /* next in the queue or list that holds it */
    uint8_t state;             /* enum gort__gstate; atomic, written by the owner */
    uint8_t reason;            /* enum gort__reason; atomic, written by the owner */
    uint16_t flags;            /* enum gort__gflag; atomic, written by the owner */
    int err;                   /* errno while it is not running; owner */
    struct gort__m *m;         /* the M that ran it last; a GORT_G_THREAD's M; atomic, for dumps */
    struct gort__stack *stack; /* NULL before the first run and for GORT_G_THREAD; atomic, for dumps */

    /* How it starts: fn is called with arg[0]; with GORT_G_WORDS with all six, of which a callee may ignore
     * those that it lacks. The last word and all below it are not touched by a simple start. */
    uint64_t id;     /* atomic, for dumps */
    uint64_t parent; /* who started it; 0: a plain thread; atomic, for dumps */
    void (*fn)(void);
    uintptr_t arg[6];

    /* Rarely used. */
    struct gort__scope *scope; /* of the context in use, inherited; valid with GORT_G_CONTEXT */
    struct gort__extra *extra; /* what few have, NULL: nothing of it; atomic, written by the owner */

    /* For the primitives that it waits on, and for the sanitizers. */
    uint16_t lock_depth;          /* nested gort_lock_thread calls; atomic, written by the owner */
    uint16_t preempt_off;         /* nested gort_preempt_off calls; owner */
    uint32_t wait_word;           /* who won the race to wake it; meaning given by what it waits on */
    void *wait_slot;              /* whatever the waker left for it */
    void *sanitizer;              /* ASan's fake stack, or TSan's fiber */
    struct gort__segment segment; /* of the first G of each piece of the global queue (queue.c) */
} GORT_ALIGNED_LINE;

_Static_assert(sizeof(struct gort__g) == 192, "a goroutine that has not run costs 192 bytes");

/*
 * A record that has no stack needs no sp: in a list that will be walked by somebody in whose cache it is not,
 * its sp is the record GORT_G_PREFETCH further. Who walks there asks for that one's memory, and so waits for
 * some eight at once.
 */
#define GORT_G_PREFETCH 8
static inline void gort__g_prefetch_ahead(const struct gort__g *g)
{
    /* A hint: anything may be in it, and what is no pointer has no next line. */
    uintptr_t ahead = (uintptr_t)g->ctx.sp;
    __builtin_prefetch((const void *)ahead, 1);
    __builtin_prefetch((const void *)(ahead + GORT_LINE), 1);
}

/*
 * Who is woken often ends soon, and then writes to what it was given: fork and join all the way down waits
 * for that memory more than for anything else (fib24 170 -> 135 ns). A small number is no address; asking for
 * such would cost a page walk.
 */
static inline void gort__g_prefetch_arg(const struct gort__g *g)
{
    uintptr_t arg = g->arg[0];
    __builtin_prefetch(arg >> 16 ? (const void *)arg : g, 1);
}

/* Changes flags of a G that the caller owns. Dumps look at them at any time. */
static inline void gort__g_flag_on(struct gort__g *g, unsigned flags)
{
    gort__store(&g->flags, (uint16_t)(g->flags | flags), RELAXED);
}

static inline void gort__g_flag_off(struct gort__g *g, unsigned flags)
{
    gort__store(&g->flags, (uint16_t)(g->flags & ~flags), RELAXED);
}

/* Changes the state of a G that the caller owns; debug builds check the edge. */
void gort__state_check_edge(const struct gort__g *g, enum gort__gstate to);
static inline void gort__g_set(struct gort__g *g, enum gort__gstate to)
{
    if (GORT_CHECKS)
        gort__state_check_edge(g, to);
    if (GORT_TSAN_EDGES && to != GORT_G_RUNNING)
        gort__store(&g->state, (uint8_t)to, RELEASE); /* pairs with gort__g_edge */
    else
        gort__store(&g->state, (uint8_t)to, RELAXED);
}

/* For TSan only, which sees no order in a switch: whoever made g wait or run comes before what the caller
 * does next. */
static inline void gort__g_edge(const struct gort__g *g)
{
    if (GORT_TSAN_EDGES)
        (void)gort__load(&g->state, ACQUIRE); /* pairs with gort__g_set */
}
const char *gort__state_name(enum gort__gstate s);
const char *gort__state_reason_name(enum gort__reason r);

/*
 * When more than one party may end a wait (a peer, a deadline, a context, the end of the run), the
 * waiter arms its word from its commit function, and whoever changes it back has won and readies it.
 */
enum { GORT_CLAIM_NONE, GORT_CLAIM_ARMED };

static inline bool gort__g_claim(struct gort__g *g)
{
    uint32_t armed = GORT_CLAIM_ARMED;
    return gort__cas(&g->wait_word, &armed, GORT_CLAIM_NONE, ACQ_REL); /* pairs with itself: one winner */
}

/* Free records go from P to P in batches, linked through a field of their first. */
#define GORT_G_BATCH 64
static inline struct gort__g **gort__g_batch_link(struct gort__g *batch)
{
    return (struct gort__g **)(void *)&batch->wait_slot;
}

#endif
