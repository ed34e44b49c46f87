/* SPDX-License-Identifier: MIT */
/*
 * run.c - runs as a whole: they start, nest not, leave nothing; and what each goroutine keeps for itself
 * while it moves between threads: errno, floating-point control words, a stack that unwinders and debuggers
 * can walk.
 * Covers: src/sched/life/run.c src/sched/threads/m.c src/arch/x86_64/entry.S src/arch/aarch64/entry.S
 */
#include <gort.h>

#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <unwind.h>

#include "arch/arch.h"
#include "test.h"
#include "unit/fp.h"

static atomic_long counter;
static atomic_bool stop;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
}

static void yield_until(long n)
{
    while (atomic_load(&counter) < n)
        gort_yield();
}

static void settle(void)
{
    while (gort_count() > 1)
        gort_yield();
}

static bool at_most(void *n)
{
    return test_thread_count() <= *(int *)n;
}

/* --- start and stop -------------------------------------------------------------------------------- */

static int some_work(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(gort_wg_go(&wg, count, NULL), 0);
    gort_wg_wait(&wg);
    gort_lock_thread();
    gort_maxprocs(1 + (int)(counter % 4));
    return (int)(atomic_load(&counter) / 1000);
}

TEST(hundreds_of_runs_leave_nothing, .procs = "1,2,4,64", .fuzz = true)
{
    int fds = test_fd_count(), vmas = 0;
    long rss = 0;
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: memory and threads of the tools would be counted too");
    test_debug("preempt=off");              /* the thread of one that is stopped when its run ends stays */
    CHECK_EQ(gort_run(some_work, NULL), 1); /* sanitizers start a thread of their own beside the first */
    int threads = test_under_sanitizer() ? 2 : 1;
    long n = test_scaled(300, 60);
    for (int i = 2; i <= n; i++) {
        errno = 4711;
        CHECK_EQ(gort_run(some_work, NULL), i);
        CHECK_EQ(errno, 4711);
        CHECK(test_eventually(at_most, &threads, 20)); /* one that was between two calls ends at the next */
        CHECK_EQ(test_fd_count(), fds);
        if (i == 20) {
            vmas = test_vma_count();
            rss = test_rss_kb();
        }
    }
    if (test_under_sanitizer())
        return; /* they keep something for each thread there was */
    /* Less than half a mapping and half a page a run. libc keeps the stacks of as many threads as there ever
     * were at a time. */
    CHECK_LT(test_vma_count(), vmas + (n - 20) / 2);
    CHECK_LT(test_rss_kb(), rss + (n - 20) * 2);
}

/* What is mapped before a run is mapped after it, and nothing else, but for what libc keeps of its
 * threads. */
TEST(a_run_unmaps_what_it_mapped, .procs = "4")
{
    if (test_under_sanitizer() || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    enum { RUNS = 40 };
    test_debug("preempt=off"); /* the thread of one that is stopped when its run ends stays */
    gort_run(some_work, NULL);
    int vmas = test_vma_count();
    for (int i = 0; i < RUNS; i++) {
        atomic_store(&counter, 0);
        CHECK_EQ(gort_run(some_work, NULL), 1);
    }
    CHECK_LT(test_vma_count(), vmas + RUNS); /* libc keeps a few stacks of threads, two mappings each */
}

static int nest(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_run(nest, NULL), -EBUSY);
    CHECK_EQ(gort_run_with(&(gort_config){0}, nest, NULL), -EBUSY);
    return 3;
}

TEST(runs_do_not_nest)
{
    CHECK_EQ(gort_run(nest, NULL), 3);
}

static void *run_too(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_run(nest, NULL), -EBUSY);
    atomic_store(&stop, true);
    return NULL;
}

static int beside_another_thread(void *unused)
{
    pthread_t thread;
    (void)unused;
    CHECK_EQ(pthread_create(&thread, NULL, run_too, NULL), 0);
    while (!atomic_load(&stop))
        gort_yield();
    pthread_join(thread, NULL);
    return 4;
}

TEST(one_run_at_a_time)
{
    CHECK_EQ(gort_run(beside_another_thread, NULL), 4);
}

static int return_5(void *unused)
{
    (void)unused;
    return 5;
}

static void *run_in_thread(void *unused)
{
    for (int i = 0; i < (test_under_valgrind() ? 3 : 20); i++) {
        int got;
        do
            got = gort_run(return_5, NULL);
        while (got == -EBUSY);
        CHECK_EQ(got, 5);
    }
    return unused;
}

TEST(any_thread_may_run_it)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, run_in_thread, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void check_outside(void)
{
    gort_wg wg = {0};
    errno = 4711;
    CHECK_EQ(gort_go(count, NULL), -ESRCH);
    CHECK_EQ(gort_go_with(NULL, count, NULL), -ESRCH);
    CHECK_EQ(gort_go_copy(count, &wg, sizeof wg), -ESRCH);
    CHECK_EQ(GORT_GO(count, NULL), -ESRCH);
    CHECK_EQ(gort_wg_go(&wg, count, NULL), -ESRCH);
    CHECK_EQ(gort_on_exit(count, NULL), -ESRCH);
    CHECK_EQ(gort_yield(), 0);
    CHECK_EQ(gort_id(), 0);
    CHECK_STR(gort_name(), "");
    gort_set_name("x");
    CHECK_EQ(gort_count(), 0);
    gort_lock_thread();
    gort_unlock_thread();
    CHECK_EQ(gort_wg_wait(&wg), 0); /* as long as nothing parks */
    gort_wg_add(&wg, 2);
    gort_wg_done(&wg);
    gort_wg_done(&wg);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_GE(gort_maxprocs(0), 1);
    CHECK(gort_now() > 0);
    CHECK_EQ(errno, 4711);
}

TEST(calls_outside_a_run_say_so)
{
    check_outside();
    CHECK_EQ(gort_run(return_5, NULL), 5);
    check_outside();
    CHECK_EQ(gort_run(return_5, NULL), 5);
    CHECK_EQ(atomic_load(&counter), 0);
}

TEST(bad_configurations_are_refused)
{
    CHECK_EQ(gort_run_with(&(gort_config){.maxprocs = -1}, return_5, NULL), -EINVAL);
    CHECK_EQ(gort_run_with(&(gort_config){.stack_size = 1}, return_5, NULL),
             5); /* rounded up, as in gort_attr */
    CHECK_EQ(gort_run_with(&(gort_config){.stack_size = SIZE_MAX}, return_5, NULL), -EINVAL);
    CHECK_EQ(gort_run_with(&(gort_config){.max_threads = -1}, return_5, NULL), -EINVAL);
    CHECK_EQ(gort_run_with(&(gort_config){.signal = 9}, return_5, NULL), -EINVAL);
    CHECK_EQ(gort_run_with(&(gort_config){.reserved_int = 1}, return_5, NULL), -EINVAL);
    CHECK_EQ(gort_run_with(&(gort_config){.reserved = {[11] = 1}}, return_5, NULL), -EINVAL);
    CHECK_EQ(gort_run_with(&(gort_config){0}, return_5, NULL), 5);
    CHECK_EQ(gort_run_with(NULL, return_5, NULL), 5);
}

/* --- idle threads ------------------------------------------------------------------------------------ */

static atomic_int arrived;

/* Seven do, each on a thread of its own; main counts the threads and lets them go. */
static void meet(void *unused)
{
    (void)unused;
    atomic_fetch_add(&arrived, 1);
    while (atomic_load(&arrived) < 9)
        sched_yield();
}

static int rounds_of_idleness(void *threads_before)
{
    int before = *(int *)threads_before;
    for (int round = 0; round < 3; round++) {
        gort_wg wg = {0};
        atomic_store(&arrived, 0);
        for (int i = 0; i < 7; i++)
            CHECK_EQ(gort_wg_go(&wg, meet, NULL), 0);
        while (atomic_load(&arrived) < 7)
            sched_yield();
        CHECK_GE(test_thread_count(), before + 8);
        atomic_store(&arrived, 9);
        gort_wg_wait(&wg);
        int few = before + 3; /* this goroutine's, the monitor, and perhaps one that looks for work */
        if (test_under_sanitizer())
            few++; /* it starts one of its own beside the first */
        CHECK(test_eventually(at_most, &few, 30));
    }
    return 6;
}

TEST(idle_threads_end, .procs = "8", .env = "GORT_DEBUG=idle=50")
{
    int before = test_thread_count();
    CHECK_EQ(gort_run(rounds_of_idleness, &before), 6);
}

/* --- errno --------------------------------------------------------------------------------------------- */

static atomic_long moves;

static __attribute__((noinline)) void keep_errno(int mine)
{
    errno = mine;
    pthread_t on = pthread_self();
    for (int i = 0; i < 200; i++) {
        gort_yield();
        CHECK_EQ(errno, mine); /* gort.h's errno: asked anew each time */
        if (!pthread_equal(on, pthread_self())) {
            atomic_fetch_add(&moves, 1);
            on = pthread_self();
        }
        if (i % 10 == 0)
            CHECK_EQ(close(-1), -1);
        if (i % 10 == 0) {
            CHECK_EQ(errno, EBADF);
            errno = mine;
        }
    }
    atomic_fetch_add(&counter, 1);
}

static void new_errno(void *unused)
{
    (void)unused;
    CHECK_EQ(errno, 0);
    errno = 12345; /* the next one does not see it */
    atomic_fetch_add(&counter, 1);
}

TEST_GO(each_has_its_errno, .procs = "1,2,4", .fuzz = true)
{
    errno = 77;
    for (int i = 0; i < 50; i++)
        CHECK_EQ(GORT_GO(keep_errno, 1000 + i), 0);
    yield_until(50);
    CHECK_EQ(errno, 77);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(gort_go(new_errno, NULL), 0);
        gort_yield();
    }
    yield_until(150);
    CHECK_EQ(errno, 77);
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_go(&wg, new_errno, NULL), 0);
    gort_wg_wait(&wg);
    CHECK_EQ(errno, 77);
    if (gort_maxprocs(0) > 1)
        test_log("%ld moves between threads", atomic_load(&moves));
}

/* --- floating-point control words ------------------------------------------------------------------------ */

static volatile double one = 1, three = 3, tiny = 1e-308;
static double thirds[4];
static uint64_t default_words;

static void keep_words(int n)
{
    CHECK_EQ(fp_read(), default_words); /* not those of whoever started it, nor of who ran here before */
    enum fp_round mode = (enum fp_round)(n % 4);
    int flush = n / 4 % 2;
    fp_set(mode, flush);
    uint64_t mine = fp_read();
    for (long i = test_scaled(2000, 100); i; i--) {
        gort_yield();
        CHECK_EQ(fp_read(), mine);
        CHECK(one / three == thirds[mode]);
        CHECK((tiny / 16 == 0) == (flush == 1));
    }
    if (n % 3 == 0)
        gort_exit();
}

static void short_with_words(int n)
{
    CHECK_EQ(fp_read(), default_words);
    fp_set((enum fp_round)(n % 4), n & 1);
}

TEST_GO(each_has_its_control_words, .procs = "1,2,4", .fuzz = true)
{
    if (test_under_valgrind())
        SKIP("only without valgrind: it knows one rounding mode");
    default_words = fp_read();
    for (int i = 0; i < 4; i++) {
        fp_set((enum fp_round)i, 0);
        thirds[i] = one / three;
    }
    CHECK(thirds[FP_UP] > thirds[FP_DOWN]);
    fp_set(FP_UP, 1);
    uint64_t mine = fp_read();
    for (int i = 0; i < 24; i++)
        CHECK_EQ(GORT_GO(keep_words, i), 0);
    /* Some that end at once, so that the next one starts where the last one stood. */
    for (int i = 0; i < 1000; i++) {
        CHECK_EQ(GORT_GO(short_with_words, i), 0);
        if (i % 20 == 0)
            gort_yield();
    }
    CHECK_EQ(fp_read(), mine);
    settle();
    CHECK_EQ(fp_read(), mine);
}

static int read_words(void *out)
{
    *(uint64_t *)out = fp_read();
    fp_set(FP_DOWN, 1);
    return 0;
}

TEST(a_run_starts_with_and_gives_back_the_callers_words, .procs = "1,2")
{
    uint64_t seen = 0, mine = fp_read();
    CHECK_EQ(gort_run(read_words, &seen), 0);
    CHECK_EQ(seen, mine);
    CHECK_EQ(fp_read(), mine);
    CHECK_EQ(gort_run(read_words, &seen), 0);
    CHECK_EQ(seen, mine);
}

/* --- walking the stack -------------------------------------------------------------------------------------- */

struct walk {
    int n;
    uintptr_t pc[200];
};

static _Unwind_Reason_Code one_frame(struct _Unwind_Context *context, void *arg)
{
    struct walk *w = arg;
    if (w->n < 200)
        w->pc[w->n++] = (uintptr_t)_Unwind_GetIP(context);
    return _URC_NO_REASON;
}

/* The outermost frame is the entry of the goroutine, wherever the unwinder stopped there. */
static void check_outermost(uintptr_t pc)
{
    uintptr_t entry = (uintptr_t)gort__arch_entry;
    CHECK_MSG(pc >= entry && pc < entry + 64, "the outermost frame is at %lx, the entry at %lx",
              (unsigned long)pc, (unsigned long)entry);
}

static __attribute__((noinline)) int walk_below(int depth)
{
    if (depth > 0)
        return walk_below(depth - 1) + 1;
    struct walk w = {.n = 0};
    CHECK_EQ(_Unwind_Backtrace(one_frame, &w), _URC_END_OF_STACK);
    while (w.n && !w.pc[w.n - 1]) /* some report the end as a frame at 0 */
        w.n--;
    CHECK_GE(w.n, 3);
    CHECK_LT(w.n, 100);
    check_outermost(w.pc[w.n - 1]);
    void *frames[100];
    int n = backtrace(frames, 100);
    while (n && !frames[n - 1])
        n--;
    CHECK_GE(n, 3);
    CHECK_LT(n, 100);
    check_outermost((uintptr_t)frames[n - 1]);
    return 0;
}

static void walk_here(void *depth)
{
    walk_below((int)(intptr_t)depth);
    gort_yield();
    walk_below((int)(intptr_t)depth + 1);
    atomic_fetch_add(&counter, 1);
}

static void walk_at_exit(void *unused)
{
    (void)unused;
    walk_below(1);
    atomic_fetch_add(&counter, 1);
}

static void exit_with_walk(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_on_exit(walk_at_exit, NULL), 0);
    gort_exit();
}

TEST_GO(unwinders_stop_at_the_entry, .procs = "1,2")
{
    walk_here((void *)5); /* main */
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_go(walk_here, (void *)(intptr_t)(i % 20)), 0);
        CHECK_EQ(gort_go(exit_with_walk, NULL), 0);
        if (i % 5 == 0)
            gort_yield();
    }
    yield_until(101);
    settle();
    CHECK_EQ(gort_go(walk_here, (void *)3), 0);
    yield_until(102);
}

/* --- gdb ----------------------------------------------------------------------------------------------------- */

void gdb_stops_here(void); /* not static: gdb finds it by name in every build */
__attribute__((noinline)) void gdb_stops_here(void)
{
    __asm__ volatile("" : : : "memory");
    atomic_fetch_add(&counter, 1);
}

__attribute__((noinline)) static void gdb_goroutine(void *unused)
{
    (void)unused;
    gdb_stops_here();
    gort_yield();
}

TEST_GO(gdb_target, .procs = "2") /* what gdb_shows_a_clean_stack looks at; passes by itself */
{
    CHECK_EQ(gort_go(gdb_goroutine, NULL), 0);
    yield_until(1);
}

TEST(gdb_shows_a_clean_stack)
{
    if (test_under_sanitizer() || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: gdb would see the tools");
    if (system("command -v gdb >/dev/null 2>&1") != 0)
        SKIP("install gdb");
    char command[4600], self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    CHECK_GT(len, 0);
    self[len] = '\0';
    snprintf(
        command, sizeof command,
        "gdb -nx -batch -ex 'set startup-with-shell off' -ex 'break gdb_stops_here' -ex run -ex 'echo BT\\n' -ex bt "
        "-ex 'echo END\\n' -ex kill --args %s gdb_target 2>&1",
        self);
    FILE *f = popen(command, "r");
    CHECK(f);
    static char text[1 << 16];
    size_t n = fread(text, 1, sizeof text - 1, f);
    pclose(f);
    text[n] = '\0';
    if (strstr(text, "Operation not permitted") || strstr(text, "Could not trace"))
        SKIP(
            "gdb may not trace here: allow ptrace (kernel.yama.ptrace_scope=0, or a container with SYS_PTRACE)");
    const char *bt = strstr(text, "\nBT\n"), *end = strstr(text, "\nEND");
    CHECK_MSG(bt && end && bt < end, "gdb said: %s", text);
    text[end - text] = '\0';
    CHECK_MSG(strstr(bt, "gdb_stops_here") && strstr(bt, "gdb_goroutine"), "gdb said: %s", bt);
    CHECK_MSG(strstr(bt, "arch_entry"), "gdb said: %s", bt);
    CHECK_MSG(!strstr(bt, "??") && !strstr(bt, "Backtrace stopped") && !strstr(bt, "corrupt"), "gdb said: %s",
              bt);
}
