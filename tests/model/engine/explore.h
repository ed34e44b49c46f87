/* SPDX-License-Identifier: MIT */
/*
 * explore.h - the explorer: runs a few model threads through all their interleavings.
 *
 * A model includes this header first, then the real sources, then says in a struct model what its threads do
 * and what must hold in the end:
 *
 *     static const struct model m = {.setup = fill, .threads = {owner, thief}, .final = each_taken_once};
 *     TEST(steal) { model_check(&m, "steal"); }
 *     TEST(steal_torn) { model_catch(&m, "steal, cas torn", "gort__runq_steal", MODEL_OP_CAS, MODEL_TORN); }
 *
 * All state that threads share or that outlives a step lies in memory announced with model_memory() in setup:
 * it is put back before each execution and is part of the state's fingerprint. Locals of threads are found on
 * their stacks.
 * Threads: one OS thread; the model's threads are contexts in it. With ASan and TSan cases are skipped.
 */
#ifndef GORT_TEST_MODEL_EXPLORE_H
#define GORT_TEST_MODEL_EXPLORE_H

/* Jumps between stacks are what _longjmp is used for here; its fortified version would abort. */
#undef _FORTIFY_SOURCE
/* The checks of the real code are part of what is verified, whatever the build type. */
#undef GORT_CHECKS
#define GORT_CHECKS 1

#include "arch/arch.h"
#include "base/atomic.h"
#include "base/fatal.h"
#include "base/rand.h"
#include "test.h"

/* What the processor contributes is modelled too. */
#define gort__arch_fence_after_rmw() model_fence_after_rmw(__func__)
#define gort__arch_pause()           ((void)0)
#define gort__rand_below(r, n)       ((void)(r), model_random(n))
void model_fence_after_rmw(const char *func);
uint32_t model_random(uint32_t n);

enum model_memory_kind {
    MODEL_TSO, /* x86: a FIFO of stores a thread; read-modify-writes and SEQ_CST fences wait until it is empty */
    MODEL_WEAK, /* towards ARM: stores overtake each other unless RELEASE; a read-modify-write's own store can be
                   late too, until the next full fence (gort__arch_fence_after_rmw is one here) */
    MODEL_SC    /* no buffers at all */
};

enum model_op_kind {
    MODEL_OP_NONE,
    MODEL_OP_LOAD,
    MODEL_OP_STORE,
    MODEL_OP_RMW,
    MODEL_OP_CAS,
    MODEL_OP_FENCE,
    MODEL_OP_AWAIT, /* until the word is v */
    MODEL_OP_CHOOSE,
    MODEL_OP_FUTEX_WAIT,
    MODEL_OP_ASLEEP,
    MODEL_OP_FUTEX_WAKE,
    MODEL_OP_BARRIER, /* the kernel makes all threads pass a full fence: membarrier */
    MODEL_OP_DONE,
    /* In mutations only: just those read-modify-writes. */
    MODEL_OP_XCHG,
    MODEL_OP_ADD,
    MODEL_OP_SUB,
    MODEL_OP_OR,
    MODEL_OP_AND
};

/* How one operation of the real code is spoilt. */
enum model_mutation_kind {
    MODEL_INTACT,
    MODEL_SKIPPED, /* a fence, store or read-modify-write that does nothing, a load that reads 0, a compare-and-swap
                      that does not compare */
    MODEL_UNORDERED, /* the order becomes RELAXED: of a store or read-modify-write, seen with MODEL_WEAK only */
    MODEL_TORN,      /* a read-modify-write becomes a load and, one step later, a store */
    MODEL_NOT_A_FENCE, /* a read-modify-write does not wait for its store to be seen, also with MODEL_TSO */
    MODEL_KEPT         /* some bits stay as they were: of a store, read-modify-write or compare-and-swap */
};
struct model_mutation {
    const char *func;      /* the function it stands in */
    enum model_op_kind op; /* all operations of this kind there */
    enum model_mutation_kind kind;
    const char *word; /* only those on this expression, as written; NULL: all */
    uint64_t bits;    /* that are kept */
};

#define MODEL_THREADS 5

struct model {
    void (*setup)(void);                  /* once, before the first execution */
    void (*threads[MODEL_THREADS])(void); /* in order, the rest NULL */
    void (*final)(void);                  /* where nobody can go on: calls model_fail if that is wrong */
    enum model_memory_kind memory;
    int depth;       /* stores a thread may have pending; 0 means 2 */
    int preemptions; /* at most so many switches away from a thread that could go on, or stores that become
                        visible meanwhile; 0: any number */
    int timeouts;    /* so many timed sleeps may end by time-out */
    bool random;     /* random numbers of the real code take all values; else they are 0 */
    bool eager; /* nobody looks at another thread between its steps but for what is atomic or guarded: what a
                        thread does in its own store buffer then is no moment for others to go first (not used where
                        there are time-outs, because of clocks) */
    bool
        own_stack; /* no other thread looks at what a thread stores atomically into its own stack: such a store is at once
                        visible, and its place may be used for something else when the function has returned */
    bool tree;             /* explore the whole tree, recognise no states: for testing the explorer itself */
    void (*handler)(void); /* of signals (model_signal) */
    struct model_mutation mutation;
};

struct model_result {
    uint64_t executions, states, steps, cut;
    bool failed, mutated;
    char why[200];
};

/* --- for setup -------------------------------------------------------------------------------- */
void model_memory(void *p, size_t size);
/* Atomic operations in there are no steps: words that never change during the run, or are private. */
void model_quiet(const void *p, size_t size);

/* --- for threads ------------------------------------------------------------------------------ */
#define MODEL_ASSERT(cond)                                                                                   \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            model_fail("%s (%s:%d)", #cond, __FILE__, __LINE__);                                             \
    } while (0)
__attribute__((noreturn)) void model_fail(const char *fmt, ...) GORT_PRINTF(1, 2);
/* This execution leaves what the model can show: forget it. The number of them is logged. */
__attribute__((noreturn)) void model_cut(void);
uint32_t model_choose(uint32_t n); /* every number below n is tried */
void model_await(const uint32_t *p, uint32_t v);
/* The kernel's: wait is 0 when woken, -1 when *p was not v or, with a deadline, the time is up. */
int model_futex_wait(uint32_t *p, uint32_t v, bool timed, bool *timed_out);
void model_futex_wake(uint32_t *p);
void model_futex_wake_all(uint32_t *p);
/* The kernel's membarrier: returns when each other thread has had none of its stores pending for a moment. */
void model_barrier(const char *func);
/* The model's handler will run on that thread, before any of its steps, but for one in which it sleeps; not
 * again before it has begun. It does not interrupt itself. */
void model_signal(int thread);
/* Leaves the handler by a jump: signals come again. */
void model_unmask(void);
/* That memory is given back: an atomic operation there is a violation from now on. */
void model_gone(const void *p, size_t size);
int model_self(void); /* which thread runs; -1: none */

/* --- for cases -------------------------------------------------------------------------------- */
struct model_result model_explore(const struct model *m);
/* Explores all, logs the numbers, fails the case with the steps that lead to a violation. */
void model_check(const struct model *m, const char *name);
/* The same with MODEL_TSO and with MODEL_WEAK, with so many preemptions (0: any number). */
void model_check_both(struct model m, const char *name, int tso, int weak);
/* The same with one operation spoilt: fails the case unless a violation is found. */
void model_catch(const struct model *m, const char *name, const char *func, enum model_op_kind op,
                 enum model_mutation_kind kind);
/* The same for bits that an operation leaves as they were. */
void model_catch_kept(const struct model *m, const char *name, const char *func, enum model_op_kind op,
                      uint64_t bits);
void model_catch_at(const struct model *m, const char *name, struct model_mutation mutation);

#endif
