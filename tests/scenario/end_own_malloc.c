/* SPDX-License-Identifier: MIT */
/*
 * end_own_malloc.c - the end of a run in a program with a malloc of its own (tests/lib/own_malloc.h).
 * Covers: src/os/linux/heap.c src/os/linux/code.c src/os/linux/unwind.c src/os/linux/object.c src/sched/life/run.c
 */
#include "own_malloc.h"

#include "heaping.h"

#include <sys/mman.h>
#include <ucontext.h>

#ifdef HAVE_OWN_MALLOC
#define NEEDS_OWN_MALLOC()                                                                                   \
    do {                                                                                                     \
        if (test_under_valgrind())                                                                           \
            SKIP("only without valgrind: it brings its own malloc");                                         \
    } while (0)
#else
static bool own_malloc_mutex;
#define NEEDS_OWN_MALLOC() SKIP("only without sanitizers: they bring their own malloc")
#endif

TEST(goroutines_in_a_malloc_with_a_spin_lock, .procs = "1,2,4")
{
    NEEDS_OWN_MALLOC();
    heaping_end_runs();
}

TEST(goroutines_in_a_malloc_with_a_mutex, .procs = "1,2,4")
{
    NEEDS_OWN_MALLOC();
    own_malloc_mutex = true;
    heaping_end_runs();
}

/* --- on a stack of the program's own -------------------------------------------------------------- */

enum { STACK = 64 << 10 };

static void use_on_own_stack(void)
{
    heaping_use(NULL);
}

static void switch_and_use(void *unused)
{
    ucontext_t here, there;
    (void)unused;
    CHECK_EQ(getcontext(&there), 0);
    there.uc_stack.ss_sp = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(there.uc_stack.ss_sp != MAP_FAILED);
    there.uc_stack.ss_size = STACK;
    there.uc_link = &here;
    makecontext(&there, use_on_own_stack, 0);
    CHECK_EQ(swapcontext(&here, &there), 0);
}

TEST(goroutines_in_malloc_on_stacks_that_are_not_ours, .procs = "2,4")
{
    NEEDS_OWN_MALLOC();
    heaping_user = switch_and_use;
    heaping_end_runs();
}

/* --- what earlier calls left on the stack --------------------------------------------------------- */

enum { DEEP = 16 << 10 };
static atomic_long steps;

/* Leaves return addresses of malloc's callers and insides where step_on has its array. */
static __attribute__((noinline)) void malloc_deep(int depth)
{
    char room[500];
    memset(room, depth, sizeof room);
    heaping_free(heaping_malloc((size_t)room[0] + 10));
    free(malloc((size_t)room[1] + 1000));
    if (depth < DEEP / 600)
        malloc_deep(depth + 1);
    __asm__ volatile("" ::"r"(room) : "memory");
}

static __attribute__((noinline)) void step_on(void)
{
    volatile char never_set[DEEP];
    __asm__ volatile("" ::"r"(never_set));
    for (;;)
        atomic_fetch_add(&steps, 1);
}

static void malloc_and_step(void *unused)
{
    (void)unused;
    malloc_deep(0);
    step_on();
}

static int leave_one_stepping(void *unused)
{
    (void)unused;
    atomic_store(&steps, 0);
    CHECK_EQ(gort_go(malloc_and_step, NULL), 0);
    while (!atomic_load(&steps))
        gort_yield();
    return 5;
}

TEST(one_that_has_left_malloc_is_frozen, .procs = "2,4")
{
    NEEDS_OWN_MALLOC();
    if (test_under_emulator())
        SKIP("threads do not run at the same time under an emulator");
    for (int round = 0; round < 5; round++) {
        CHECK_EQ(gort_run(leave_one_stepping, NULL), 5);
        long at = atomic_load(&steps);
        usleep(20000);
        CHECK_EQ(atomic_load(&steps), at);
    }
}
