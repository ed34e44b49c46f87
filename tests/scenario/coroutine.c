/* SPDX-License-Identifier: MIT */
/*
 * coroutine.c - goroutines that stand on stacks that are not gort's: those of ucontext coroutines.
 * Covers: src/sched/core/schedule.c src/sched/threads/block.c src/sched/monitor/preempt.c src/sched/core/gmain.c src/observe/census.c
 * Covers: src/sched/core/ras.h
 * Covers: src/observe/roots.c
 *
 * A library with coroutines of its own (makecontext, libco, an interpreter) is called by a goroutine and
 * changes to a stack that it has allocated; there the goroutine sleeps, waits, is preempted. Where that stack
 * lies does not matter: above the goroutine's own one, below it, in malloc's memory or among the variables of
 * the program.
 */
#include "hogs.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif
#if UNDER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#if UNDER_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define KIB     ((size_t)1 << 10)
#define CO_SIZE (test_under_sanitizer() ? 256 * KIB : 64 * KIB)
#define CO_MOST (256 * KIB)

/* --- a small library of coroutines ------------------------------------------------------------------------------ */

struct co {
    ucontext_t caller, self;
    void (*fn)(void *);
    void *arg;
    char *stack;
    bool over;
    /* What sanitizers want to know about a change of stacks. */
    void *caller_fake, *self_fake, *caller_fiber, *self_fiber;
    const void *caller_lo;
    size_t caller_size;
};

/* ASan must think of the stack that is in use, also after the goroutine has parked there. */
static void check_bounds(const struct co *co)
{
#if UNDER_ASAN
    const void *lo;
    size_t size;
    void *fake;
    __sanitizer_start_switch_fiber(&fake, co->stack, CO_SIZE);
    __sanitizer_finish_switch_fiber(fake, &lo, &size);
    CHECK_EQ(lo, co->stack);
    CHECK_EQ(size, CO_SIZE);
#endif
    (void)co;
}

static void leaving(struct co *co, bool in)
{
#if UNDER_ASAN
    if (in)
        __sanitizer_start_switch_fiber(&co->caller_fake, co->stack, CO_SIZE);
    else
        __sanitizer_start_switch_fiber(co->over ? NULL : &co->self_fake, co->caller_lo, co->caller_size);
#elif UNDER_TSAN
    if (in)
        co->caller_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(in ? co->self_fiber : co->caller_fiber, 0);
#endif
    (void)co, (void)in;
}

static void arrived(struct co *co, bool in)
{
#if UNDER_ASAN
    if (in)
        __sanitizer_finish_switch_fiber(co->self_fake, &co->caller_lo, &co->caller_size);
    else
        __sanitizer_finish_switch_fiber(co->caller_fake, NULL, NULL);
#endif
    (void)co, (void)in;
}

static void co_main(unsigned high, unsigned low)
{
    struct co *co = (struct co *)((uintptr_t)high << 32 | low);
    arrived(co, true);
    co->fn(co->arg);
    check_bounds(co);
    co->over = true;
    leaving(co, false);
    setcontext(&co->caller);
}

static void co_make(struct co *co, char *stack, void (*fn)(void *), void *arg)
{
    *co = (struct co){.stack = stack, .fn = fn, .arg = arg};
    CHECK_EQ(getcontext(&co->self), 0);
    co->self.uc_stack.ss_sp = stack;
    co->self.uc_stack.ss_size = CO_SIZE;
    makecontext(&co->self, (void (*)(void))co_main, 2, (unsigned)((uintptr_t)co >> 32),
                (unsigned)(uintptr_t)co);
#if UNDER_TSAN
    co->self_fiber = __tsan_create_fiber(0);
#endif
}

/* Runs it until it yields or ends. */
static void co_resume(struct co *co)
{
    leaving(co, true);
    CHECK_EQ(swapcontext(&co->caller, &co->self), 0);
    arrived(co, false);
#if UNDER_TSAN
    if (co->over)
        __tsan_destroy_fiber(co->self_fiber);
#endif
}

static void co_give(struct co *co)
{
    leaving(co, false);
    CHECK_EQ(swapcontext(&co->self, &co->caller), 0);
    arrived(co, true);
}

/* --- where the stacks lie ----------------------------------------------------------------------------------------- */

#define MANY 500
enum place { MAPPED_BEFORE, MAPPED, MALLOC, STATIC };

static char *before, *during; /* mappings for MANY of them */
static char variables[16][CO_MOST] __attribute__((aligned(64)));

static char *map_many(void)
{
    char *p = mmap(NULL, MANY * CO_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static char *stack_at(enum place place, int i)
{
    switch (place) {
    case MAPPED_BEFORE: /* the kernel maps downwards: above all stacks of goroutines */
        return before + (size_t)i * CO_SIZE;
    case MAPPED:
        return during + (size_t)i * CO_SIZE;
    case STATIC:
        return variables[i];
    default: {
        char *p = malloc(CO_SIZE);
        CHECK(p);
        return p;
    }
    }
}

static void stack_free(enum place place, char *stack)
{
    if (place == MALLOC)
        free(stack);
}

/* --- what is done on them -------------------------------------------------------------------------------------------- */

static atomic_int inside, ended, gate_open;
static gort_chan *gate;
static gort_mutex turn;

/* Uses the stack for n KiB. */
__attribute__((noinline)) static int use(int n)
{
    volatile char frame[1024];
    frame[0] = frame[1023] = (char)n;
    return n > 0 ? use(n - 1) + frame[0] : frame[1023];
}

static void wait_in_sleep(void)
{
    while (!atomic_load(&gate_open))
        CHECK_EQ(gort_sleep(20 * GORT_MS), 0);
}

static void wait_in_long_sleep(void)
{
    CHECK_EQ(gort_sleep(1500 * GORT_MS), 0);
}

static void wait_in_chan(void)
{
    int v;
    CHECK_EQ(gort_chan_recv(gate, &v), 0); /* until it is closed */
}

static void wait_in_mutex(void)
{
    gort_mutex_lock(&turn);
    gort_mutex_unlock(&turn);
}

static intptr_t wait_on_thread(void *unused)
{
    (void)unused;
    while (!atomic_load(&gate_open))
        usleep(1000);
    return 7;
}

static void wait_in_block(void)
{
    CHECK_EQ(gort_block(wait_on_thread, NULL), 7);
}

static void wait_in_announced(void)
{
    gort_block_enter();
    wait_on_thread(NULL);
    gort_block_leave();
}

/* Surfaces: waits as a plain thread would. */
static void wait_in_surfaced(void)
{
    gort_block_enter();
    wait_in_chan();
    gort_block_leave();
}

static void wait_in_yield(void)
{
    while (!atomic_load(&gate_open))
        gort_yield();
}

static void wait_in_loop(void)
{
    for (volatile long i = 0; !atomic_load_explicit(&gate_open, memory_order_relaxed); i++)
        ;
}

struct job {
    enum place place;
    int i;
    void (*wait)(void);
    struct co co;
};

static void wait_in_co(void *arg)
{
    struct job *j = arg;
    char frame[2000];
    memset(frame, j->i, sizeof frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    atomic_fetch_add(&inside, 1);
    j->wait();
    check_bounds(&j->co);
    for (size_t i = 0; i < sizeof frame; i++)
        CHECK_EQ(frame[i], (char)j->i);
    use(20); /* the stack can be used as before */
}

/* Changes to another stack from deep in its own one, with frames above and below that must not be lost. */
__attribute__((noinline)) static void run_deep(struct job *j)
{
    char frame[40 * KIB];
    memset(frame, ~j->i, sizeof frame);
    __asm__ volatile("" : : "r"(frame) : "memory");
    /* Below everything that is in use: what the scavenger looks for. */
    use(test_under_sanitizer() ? 20 : 120);
    co_resume(&j->co);
    CHECK(j->co.over);
    for (size_t i = 0; i < sizeof frame; i++)
        CHECK_EQ(frame[i], (char)~j->i);
}

static void stand_elsewhere(void *arg)
{
    struct job *j = arg;
    char *stack = stack_at(j->place, j->i);
    co_make(&j->co, stack, wait_in_co, j);
    run_deep(j);
    stack_free(j->place, stack);
    atomic_fetch_add(&ended, 1);
}

static void await(atomic_int *count, int n)
{
    for (int64_t until = gort_in(test_seconds(40)); atomic_load(count) < n; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "%d of %d", atomic_load(count), n);
}

enum { DEEP_MOST = 1000, PAGE = 4096, FROM = 32 * 1024, SPAN = 64 * 1024 };
/* Where those who went deep wait: their stacks have been in use far below. */
static uintptr_t deep[DEEP_MOST];
static atomic_int deep_n;

/* How many pages of those parts are in memory. */
static int deep_pages(void)
{
    unsigned char there[SPAN / PAGE];
    int pages = 0, n = atomic_load(&deep_n);
    for (int i = 0; i < n && i < DEEP_MOST; i++) {
        if (mincore((void *)((deep[i] - FROM - SPAN) & -(uintptr_t)PAGE), SPAN, there) != 0)
            continue;
        for (size_t k = 0; k < sizeof there; k++)
            pages += there[k] & 1;
    }
    return pages;
}

static void go_deep_and_wait(void *unused)
{
    (void)unused;
    use(test_under_sanitizer() ? 20 : 150);
    int i = atomic_fetch_add(&deep_n, 1);
    if (i < DEEP_MOST)
        deep[i] = (uintptr_t)__builtin_frame_address(0);
    atomic_fetch_add(&inside, 1);
    wait_in_chan();
    atomic_fetch_add(&ended, 1);
}

/*
 * n goroutines on other stacks, and as many deep ones on their own, which the scavenger trims: when their
 * memory is gone it has been at the others as well, twice.
 */
static void many_stand_elsewhere(enum place place, void (*wait)(void), int n)
{
    struct job *jobs = calloc((size_t)n, sizeof *jobs);
    CHECK(jobs);
    atomic_store(&deep_n, 0);
    during = map_many();
    gate = gort_chan_new(sizeof(int), 0);
    gort_mutex_lock(&turn);
    for (int i = 0; i < n; i++) {
        jobs[i] = (struct job){.place = place, .i = i, .wait = wait};
        CHECK_EQ(gort_go(stand_elsewhere, &jobs[i]), 0);
        CHECK_EQ(gort_go(go_deep_and_wait, NULL), 0);
    }
    await(&inside, 2 * n);
    if (n >= 100 && !test_under_sanitizer() && !test_under_valgrind() && !test_under_emulator()) {
        int least = n * (SPAN / PAGE) / 8;
        for (int64_t until = gort_in(test_seconds(20)); deep_pages() > least; gort_sleep(10 * GORT_MS))
            CHECK_MSG(gort_now() < until, "%d of %d pages are not given back", deep_pages(),
                      n * (SPAN / PAGE));
    }
    gort_sleep(700 * GORT_MS); /* three ticks of the scavenger */
    atomic_store(&gate_open, 1);
    CHECK_EQ(gort_chan_close(gate), 0);
    gort_mutex_unlock(&turn);
    await(&ended, 2 * n);
    gort_chan_unref(gate);
    munmap(during, MANY * CO_SIZE);
    free(jobs);
}

struct plan {
    enum place place;
    void (*wait)(void);
    int n;
};

static int run_plan(void *arg)
{
    const struct plan *p = arg;
    many_stand_elsewhere(p->place, p->wait, p->n);
    return 0;
}

static void run_at(enum place place, void (*wait)(void), int n)
{
    struct plan p = {place, wait, n};
    before = map_many();
    CHECK_EQ(gort_run(run_plan, &p), 0);
    munmap(before, MANY * CO_SIZE);
}

static int many(void)
{
    return (int)test_scaled(MANY, 50);
}

TEST(sleeping_above_their_own, .procs = "1,2,4")
{
    run_at(MAPPED_BEFORE, wait_in_sleep, many());
}

TEST(one_long_sleep_above_their_own, .procs = "1,2,4")
{
    run_at(MAPPED_BEFORE, wait_in_long_sleep, many());
}

TEST(sleeping_below_their_own, .procs = "1,2,4")
{
    run_at(STATIC, wait_in_long_sleep, 16);
}

TEST(sleeping_in_mappings, .procs = "1,2,4")
{
    run_at(MAPPED, wait_in_long_sleep, many());
}

TEST(sleeping_in_memory_of_malloc, .procs = "1,2,4")
{
    run_at(MALLOC, wait_in_long_sleep, many());
}

TEST(in_channels, .procs = "1,2,4", .fuzz = true)
{
    run_at(MAPPED_BEFORE, wait_in_chan, many());
}

TEST(in_a_mutex, .procs = "1,2,4", .fuzz = true)
{
    run_at(MALLOC, wait_in_mutex, many());
}

TEST(in_yield, .procs = "1,2,4")
{
    run_at(MAPPED_BEFORE, wait_in_yield, 50);
}

TEST(in_blocking_calls, .procs = "1,2,4")
{
    run_at(MAPPED_BEFORE, wait_in_block, 16);
}

TEST(in_announced_calls, .procs = "1,2,4")
{
    run_at(MAPPED, wait_in_announced, 16);
}

TEST(as_plain_threads, .procs = "1,2,4")
{
    run_at(MALLOC, wait_in_surfaced, 16);
}

TEST(preempted, .procs = "1,2,4")
{
    NEEDS_PURE_LOOPS();
    run_at(MAPPED_BEFORE, wait_in_loop, 8);
}

TEST(with_canaries, .procs = "1,2", .env = "GORT_DEBUG=canary=1")
{
    run_at(MAPPED_BEFORE, wait_in_long_sleep, many());
}

TEST(with_the_census, .procs = "1,2", .env = "GORT_DEBUG=stackcensus=1",
     .expect = "stack census\n +1[67][0-9] KiB .* stand_elsewhere")
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: frames are larger there, or page tables cannot be read");
    run_at(MAPPED_BEFORE, wait_in_long_sleep, many());
}

/* --- more that a coroutine may do --------------------------------------------------------------------------------- */

static void exit_in_co(void *arg)
{
    struct job *j = arg;
    atomic_fetch_add(&inside, 1);
    gort_sleep(GORT_MS);
    check_bounds(&j->co);
    gort_exit();
}

static void exit_elsewhere(void *arg)
{
    struct job *j = arg;
    co_make(&j->co, stack_at(j->place, j->i), exit_in_co, j);
    co_resume(&j->co);
    CHECK_MSG(false, "the goroutine has ended");
}

/* A goroutine may end on any stack; whoever allocated that one frees it afterwards. */
TEST_GO(exit_from_another_stack, .procs = "1,2,4")
{
    enum { N = 16 };
    static struct job jobs[N];
    during = map_many();
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            jobs[i] = (struct job){.place = MAPPED, .i = i};
            CHECK_EQ(gort_go(exit_elsewhere, &jobs[i]), 0);
        }
        await(&inside, (round + 1) * N);
        while (gort_count() > 1)
            gort_sleep(GORT_MS);
#if UNDER_TSAN
        for (int i = 0; i < N; i++)
            __tsan_destroy_fiber(jobs[i].co.self_fiber);
#endif
    }
    munmap(during, MANY * CO_SIZE);
}

/* A generator that several goroutines resume, one at a time: it parks as whoever has resumed it. */
struct generator {
    struct co co;
    int value;
};

static void generate(void *arg)
{
    struct generator *g = arg;
    for (g->value = 1; g->value <= 300; g->value++) {
        CHECK_EQ(gort_sleep(GORT_US), 0);
        gort_yield();
        co_give(&g->co);
    }
}

static void take_values(void *arg)
{
    gort_chan *ch = arg;
    struct generator *g;
    while (gort_chan_recv(ch, &g) == 1) {
        int last = g->value;
        co_resume(&g->co);
        if (g->co.over) {
            CHECK_EQ(gort_chan_close(ch), 0);
        } else {
            CHECK_EQ(g->value, last + 1);
            CHECK_EQ(gort_chan_send(ch, &g), 0);
        }
    }
}

TEST_GO(a_generator_changes_hands, .procs = "1,2,4", .fuzz = true)
{
    gort_chan *ch = gort_chan_new(sizeof(void *), 1);
    struct generator *g = calloc(1, sizeof *g);
    char *stack = stack_at(MALLOC, 0);
    gort_wg wg = {0};
    co_make(&g->co, stack, generate, g);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_wg_go(&wg, take_values, ch), 0);
    CHECK_EQ(gort_chan_send(ch, &g), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(g->value, 301);
    gort_chan_unref(ch);
    free(stack);
    free(g);
}

/* --- what a collector is told --------------------------------------------------------------------------------------- */

#define NUMBER(i) ((uintptr_t)0x5ec7e70000000000 + (uintptr_t)(i))
enum { HOLDERS = 6 };
static void (*const holder_waits[HOLDERS])(void) = {wait_in_loop,  wait_in_chan,      wait_in_sleep,
                                                    wait_in_block, wait_in_announced, wait_in_surfaced};
static atomic_int found[HOLDERS], strays;

static void look_for_numbers(const void *from, const void *to, void *arg)
{
    (void)arg;
    CHECK(from < to);
    if ((const char *)to > during && (const char *)from < during + MANY * CO_SIZE)
        atomic_fetch_add(&strays, 1);
    for (const uintptr_t *at = from; (const void *)(at + 1) <= to; at++)
        if (*at - NUMBER(0) < HOLDERS)
            atomic_fetch_add(&found[*at - NUMBER(0)], 1);
}

/* The number is on the goroutine's own stack, and nowhere else. */
static void hold_elsewhere(void *arg)
{
    struct job *j = arg;
    volatile uintptr_t number = NUMBER(j->i);
    co_make(&j->co, stack_at(j->place, j->i), wait_in_co, j);
    co_resume(&j->co);
    CHECK_EQ(number, NUMBER(j->i));
    atomic_fetch_add(&ended, 1);
}

/* Their own stacks are looked at, whatever else they stand on; and nothing that is not gort's. */
TEST_GO(roots_are_on_their_own_stacks, .procs = "1,2,4")
{
    NEEDS_NATIVE_SPEED();
    NEEDS_PURE_LOOPS();
    if (test_under_sanitizer())
        SKIP("only without sanitizers: they may keep variables off the stack");
    static struct job jobs[HOLDERS];
    during = map_many();
    gate = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < HOLDERS; i++) {
        jobs[i] = (struct job){.place = MAPPED, .i = i, .wait = holder_waits[i]};
        CHECK_EQ(gort_go(hold_elsewhere, &jobs[i]), 0);
    }
    await(&inside, HOLDERS);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < HOLDERS; i++)
            atomic_store(&found[i], 0);
        gort_sleep(round * 100 * GORT_US);
        CHECK_EQ(gort_world_stop(), 0);
        CHECK_EQ(gort_world_roots(look_for_numbers, NULL), 0);
        CHECK_EQ(gort_world_start(), 0);
        for (int i = 0; i < HOLDERS; i++)
            CHECK_MSG(atomic_load(&found[i]) > 0, "round %d: the number of holder %d is not seen", round, i);
        CHECK_EQ(atomic_load(&strays), 0);
    }
    atomic_store(&gate_open, 1);
    CHECK_EQ(gort_chan_close(gate), 0);
    await(&ended, HOLDERS);
    gort_chan_unref(gate);
    munmap(during, MANY * CO_SIZE);
}
