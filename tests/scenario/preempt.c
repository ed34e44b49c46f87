/* SPDX-License-Identifier: MIT */
/*
 * preempt.c - nothing that computes stops the others: loops without a single gort call beside goroutines that
 * want to go on, locks that a stopped one holds, and many more loops than Ps.
 * Covers: src/sched/monitor/preempt.c src/sched/monitor/sysmon.c src/os/linux/text.c
 *
 * What the interrupted code itself may notice (nothing) is in preempt_state.c; signals in preempt_signal.c.
 */
#include "hogs.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

static atomic_long counter;
static atomic_bool stop;
static FILE *null_file;

/* What a frozen one had allocated is no leak that we can help. */
#define NEEDS_LIBC_MALLOC()                                                                                         \
    do {                                                                                                            \
        if (test_under_sanitizer() || test_under_valgrind())                                                        \
            SKIP(                                                                                                   \
                "only without sanitizers and valgrind: what is left at the end of the run counts as a leak there"); \
    } while (0)

/* --- loops of every kind beside one that ticks ------------------------------------------------------- */

static void loop_empty(void *unused)
{
    (void)unused;
    for (;;)
        __asm__ volatile("");
}

static volatile long cell;

static void loop_arithmetic(void *unused)
{
    (void)unused;
    unsigned long a = 1;
    double x = 1;
    for (;;) {
        a = a * 2862933555777941757u + 3037000493u;
        x = x * 0.5 + (double)(a & 7);
        cell = (long)x;
    }
}

static void loop_atomic(void *unused)
{
    (void)unused;
    for (;;)
        atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
}

static __attribute__((noinline)) long fib(long n)
{
    return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void loop_calls(void *unused)
{
    (void)unused;
    for (;;)
        cell = fib(20);
}

static void loop_big_frame(void *unused)
{
    volatile char frame[8192];
    (void)unused;
    for (unsigned i = 0;; i++) {
        frame[i % sizeof frame] = (char)i;
        cell = frame[i / 2 % sizeof frame];
    }
}

static void loop_malloc(void *unused)
{
    (void)unused;
    for (size_t i = 0;; i++) {
        char *volatile p = malloc(16 + i % 4000);
        CHECK(p);
        p[0] = 1;
        free(p);
    }
}

static void loop_printf(void *unused)
{
    (void)unused;
    for (int i = 0;; i++)
        fprintf(null_file, "%d %s\n", i, "line");
}

static void loop_strtod(void *unused)
{
    (void)unused;
    for (;;)
        CHECK(fabs(strtod("3.14159265358979323846", NULL) - 3.14159265358979323846) < 1e-15);
}

static void loop_clock(void *unused)
{
    (void)unused;
    for (int64_t last = 0;;) {
        int64_t now = hog_clock();
        CHECK_GE(now, last);
        last = now;
    }
}

static void loop_syscall(void *unused)
{
    (void)unused;
    for (;;)
        CHECK_EQ(getppid(), getppid());
}

/* Hardly ever outside of a pair. */
static void loop_off_and_on(void *unused)
{
    (void)unused;
    for (;;) {
        gort_preempt_off();
        for (int i = 0; i < 2000; i++)
            atomic_fetch_add_explicit(&counter, 1, memory_order_relaxed);
        gort_preempt_on();
    }
}

static void ticks_beside(void (*loop)(void *))
{
    null_file = fopen("/dev/null", "w");
    CHECK(null_file);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(loop, NULL), 0);
    int64_t took = hog_ticks(20);
    CHECK_LT(took, test_seconds(20));
}

#define BESIDE(name, loop, needs)                                                                            \
    TEST_GO(beside_##name, .procs = "1,2")                                                                   \
    {                                                                                                        \
        needs;                                                                                               \
        ticks_beside(loop);                                                                                  \
    }

BESIDE(an_empty_loop, loop_empty, NEEDS_PURE_LOOPS())
BESIDE(arithmetic, loop_arithmetic, NEEDS_PURE_LOOPS())
BESIDE(a_big_frame, loop_big_frame, NEEDS_PURE_LOOPS())
BESIDE(calls, loop_calls, NEEDS_PURE_LOOPS())
BESIDE(an_atomic_loop, loop_atomic, (void)0)
BESIDE(malloc, loop_malloc, NEEDS_LIBC_MALLOC())
BESIDE(printf, loop_printf, (void)0)
BESIDE(strtod, loop_strtod, NEEDS_PURE_LOOPS())
BESIDE(preempt_off_and_on, loop_off_and_on, (void)0)
BESIDE(clock_gettime, loop_clock, (void)0)
BESIDE(short_system_calls, loop_syscall, NEEDS_PURE_LOOPS()) /* getppid is none of those that TSan knows */

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* CPU time of the whole process, or of this thread. */
static int64_t cpu_time(clockid_t of)
{
    struct timespec t;
    CHECK_EQ(clock_gettime(of, &t), 0);
    return t.tv_sec * GORT_SEC + t.tv_nsec;
}

/* What counts is how much the hogs compute meanwhile: on a busy machine everything takes longer. */
TEST_GO(a_sleeper_beside_four_hogs_is_in_time, .procs = "1,2", .serial = true)
{
    int64_t late[100], hogged[100];
    NEEDS_NATIVE_SPEED();
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(loop_atomic, NULL), 0);
    gort_sleep(20 * GORT_MS);
    for (int i = 0; i < 100; i++) {
        int64_t due = gort_in(GORT_MS), from = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
        gort_sleep_until(due);
        hogged[i] = cpu_time(CLOCK_PROCESS_CPUTIME_ID) - from;
        late[i] = gort_now() - due;
        CHECK_GE(late[i], 0);
    }
    qsort(late, 100, sizeof *late, compare_times);
    qsort(hogged, 100, sizeof *hogged, compare_times);
    test_log("late: median %ld us, worst %ld us; meanwhile they computed %ld us, at the most %ld us",
             (long)(late[50] / 1000), (long)(late[99] / 1000), (long)(hogged[50] / 1000),
             (long)(hogged[99] / 1000));
    CHECK_LT(hogged[50], gort_maxprocs(0) * (test_under_sanitizer() ? 200 * GORT_MS : 50 * GORT_MS));
}

/* --- many loops --------------------------------------------------------------------------------------- */

static void count_one(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
}

static void loop_quietly(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        ;
}

/* Most of the loops start late: those that were started and stopped go before new ones. */
TEST_GO(many_endless_loops_stop_nobody, .procs = "2")
{
    NEEDS_NATIVE_SPEED();
    for (int i = 0; i < 200; i++)
        CHECK_EQ(gort_go(loop_quietly, NULL), 0);
    int64_t from = gort_now();
    CHECK_EQ(gort_go(count_one, NULL), 0); /* one that is new must come to run as well */
    int64_t first = hog_ticks(1), ten = hog_ticks(10);
    for (int64_t until = gort_in(test_seconds(50)); !atomic_load(&counter); gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "a new goroutine is not started");
    test_log("first tick after %ld ms, ten more took %ld ms, a new one ran after %ld ms, %d threads",
             (long)(first / GORT_MS), (long)(ten / GORT_MS), (long)((gort_now() - from) / GORT_MS),
             test_thread_count());
    CHECK_LT(first + ten, test_seconds(30));
    CHECK_LT(test_thread_count(), 100);
    atomic_store(&stop, true);
}

static void compute_20_ms(void *arg)
{
    (void)arg;
    for (int64_t until = cpu_time(CLOCK_THREAD_CPUTIME_ID) + 20 * GORT_MS;
         cpu_time(CLOCK_THREAD_CPUTIME_ID) < until;)
        ;
    atomic_fetch_add(&counter, 1);
}

/* The exact bound is tried in unit/cputime.c; here a few more may be those that were in a call of the kernel
 * when somebody waited. */
TEST_GO(computing_needs_few_threads, .procs = "2")
{
    NEEDS_NATIVE_SPEED();
    enum { N = 80 };
    gort_wg wg = {0};
    int before = test_thread_count();
    for (int i = 0; i < N; i++)
        CHECK_EQ(gort_wg_go(&wg, compute_20_ms, NULL), 0);
    int most = 0;
    while (gort_wg_wait_until(&wg, gort_in(10 * GORT_MS)) != 0) {
        int now = test_thread_count();
        most = now > most ? now : most;
    }
    CHECK_EQ(atomic_load(&counter), N);
    test_log("at most %d threads, %d before", most, before);
    CHECK_LT(most - before, N * 3 / 4);
}

/* --- the one that is stopped holds a lock that everybody needs --------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long guarded;
static atomic_long used;
static atomic_int ticks; /* of the one that waits beside them; they go on until there were some */

static bool use_again(int round)
{
    atomic_fetch_add(&used, 1);
    return round < 2 || atomic_load(&ticks) < 5;
}

static void compute(int64_t ns)
{
    for (int64_t until = hog_clock() + ns; hog_clock() < until;)
        ;
}

static void use_mutex(void *unused)
{
    (void)unused;
    int i = 0;
    do {
        pthread_mutex_lock(&lock);
        long was = guarded;
        compute(8 * GORT_MS);
        guarded = was + 1;
        pthread_mutex_unlock(&lock);
    } while (use_again(i++));
    atomic_fetch_add(&counter, 1);
}

static void use_stdio(void *unused)
{
    (void)unused;
    int i = 0;
    do {
        flockfile(null_file);
        long was = guarded;
        compute(8 * GORT_MS);
        guarded = was + 1;
        fprintf(null_file, "%d\n", i);
        funlockfile(null_file);
    } while (use_again(i++));
    atomic_fetch_add(&counter, 1);
}

static void all_use(void (*use)(void *))
{
    enum { N = 12 };
    gort_wg wg = {0};
    null_file = fopen("/dev/null", "w");
    CHECK(null_file);
    for (int i = 0; i < N; i++)
        CHECK_EQ(gort_wg_go(&wg, use, NULL), 0);
    for (int64_t until = gort_in(test_seconds(50)); gort_wg_wait_until(&wg, gort_in(2 * GORT_MS)) != 0;) {
        CHECK_MSG(gort_now() < until, "they stand still: %ld of %d are done", atomic_load(&counter), N);
        atomic_fetch_add(&ticks, 1);
    }
    CHECK_EQ(guarded, atomic_load(&used));
    CHECK_GE(guarded, 3 * N);
}

TEST_GO(a_mutex_that_a_stopped_one_holds, .procs = "1,2")
{
    all_use(use_mutex);
}

TEST_GO(a_file_lock_that_a_stopped_one_holds, .procs = "1,2")
{
    if (UNDER_TSAN)
        SKIP("only without ThreadSanitizer: it does not know the locks of stdio");
    all_use(use_stdio);
}

/* Preempted again and again with the lock of malloc's one arena in its hand. */
static void use_malloc(void *arg)
{
    uint64_t state = test_seed() + (uint64_t)(uintptr_t)arg;
    void *kept[16] = {0};
    while (!atomic_load(&stop)) {
        uint64_t r = test_random(&state);
        size_t size = 2000 + r % 200000;
        void **slot = &kept[r >> 32 & 15];
        free(*slot);
        *slot = malloc(size);
        CHECK(*slot);
        memset(*slot, 1, 64);
    }
    for (int i = 0; i < 16; i++)
        free(kept[i]);
}

TEST_GO(the_lock_of_malloc, .procs = "1,2",
        .env = "MALLOC_ARENA_MAX=1 GLIBC_TUNABLES=glibc.malloc.tcache_count=0")
{
    gort_wg wg = {0};
    if (test_under_valgrind())
        SKIP("only without valgrind: its malloc is not the C library's");
    test_seed();
    for (intptr_t i = 0; i < 16; i++)
        CHECK_EQ(gort_wg_go(&wg, use_malloc, (void *)i), 0);
    int64_t from = gort_now();
    for (int i = 0; i < 200 && gort_now() - from < 500 * GORT_MS; i++) {
        gort_sleep(GORT_MS);
        char *volatile p = malloc(100000);
        CHECK(p);
        free(p);
    }
    CHECK_LT(gort_now() - from, test_seconds(30));
    atomic_store(&stop, true);
    CHECK_EQ(gort_wg_wait_until(&wg, gort_in(test_seconds(30))), 0);
}

/* --- processes under preemption ------------------------------------------------------------------------------ */

static void spawn_some(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        int status = 0;
        pid_t pid;
        if (i % 2) {
            char *argv[] = {(char *)"sh", (char *)"-c", (char *)"exit 3", NULL};
            CHECK_EQ(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ), 0);
        } else {
            pid = fork();
            if (pid == 0) {
                execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
                _exit(9);
            }
        }
        CHECK_GT(pid, 0);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 3);
    }
}

TEST_GO(children_under_preemption, .procs = "1,2", .native = TEST_FORKS)
{
    if (test_under_sanitizer())
        SKIP("only without sanitizers: what is left at the end of the run counts as a leak there");
    gort_wg wg = {0};
    NEEDS_NATIVE_SPEED();
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_go(loop_atomic, NULL), 0);
        CHECK_EQ(gort_go(loop_malloc, NULL), 0);
    }
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_wg_go(&wg, spawn_some, NULL), 0);
    CHECK_EQ(gort_wg_wait_until(&wg, gort_in(test_seconds(50))), 0);
    CHECK_EQ(system("exit 4") >> 8, 4);
}

/* --- the end of a run ------------------------------------------------------------------------------------------ */

static int leave_loops(void *loop)
{
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go((void (*)(void *))(uintptr_t)loop, NULL), 0);
    gort_sleep(3 * GORT_MS);
    return 11;
}

/* Whoever was stopped for good holds no lock of libc. As often as half a second allows. */
static void check_libc_after(void (*loop)(void *))
{
    static char room[1 << 20];
    if (test_under_valgrind())
        SKIP(
            "only without valgrind: it delivers signals every 100,000 blocks of code, hardly ever outside of libc");
    null_file = fopen("/dev/null", "w");
    CHECK(null_file);
    CHECK_EQ(setvbuf(null_file, room, _IOFBF, sizeof room), 0);
    int64_t enough = hog_clock() + GORT_SEC / 2;
    long least = test_scaled(8, 3);
    for (long i = 0; i < 200 && (i < least || hog_clock() < enough); i++) {
        int64_t from = hog_clock();
        CHECK_EQ(gort_run(leave_loops, (void *)(uintptr_t)loop), 11);
        CHECK_LT(hog_clock() - from, test_seconds(30));
        for (size_t size = 10; size < 300000; size *= 3) {
            char *volatile p = malloc(size);
            CHECK(p);
            free(p);
        }
        CHECK_GT(fprintf(null_file, "%ld\n", i), 0);
        CHECK_EQ(fflush(NULL), 0);
    }
    /* exit asks for no locks: one that slept in there must not have come back meanwhile. */
    flockfile(null_file);
}

TEST(malloc_after_loops_over_malloc_were_left, .procs = "1,2", .env = "MALLOC_ARENA_MAX=1")
{
    NEEDS_LIBC_MALLOC();
    check_libc_after(loop_malloc);
}

TEST(printf_after_loops_over_printf_were_left, .procs = "1,2")
{
    check_libc_after(loop_printf);
}

/* memcpy with a lock of malloc, of stdio: those must not be stopped for good in there. */
static void loop_realloc(void *unused)
{
    (void)unused;
    for (;;) {
        char *p = NULL, *volatile wall;
        for (size_t size = 20000; size < 120000; size += 20000) {
            p = realloc(p, size);
            wall = malloc(2000); /* so that it cannot grow where it is */
            CHECK(p && wall);
            p[size - 1] = 1;
            free(wall);
            wall = malloc(size / 2);
            CHECK(wall);
            free(wall);
        }
        free(p);
    }
}

static void loop_fwrite(void *unused)
{
    static char text[100000];
    (void)unused;
    for (;;)
        CHECK_EQ(fwrite(text, 1, sizeof text, null_file), sizeof text);
}

TEST(malloc_after_loops_over_realloc_were_left, .procs = "1,2", .env = "MALLOC_ARENA_MAX=1")
{
    NEEDS_LIBC_MALLOC();
    check_libc_after(loop_realloc);
}

TEST(printf_after_loops_over_fwrite_were_left, .procs = "1,2")
{
    check_libc_after(loop_fwrite);
}

static clockid_t clock_of_one;

static void loop_memset(void *unused)
{
    static char big[32 << 20];
    (void)unused;
    CHECK_EQ(pthread_getcpuclockid(pthread_self(), &clock_of_one), 0);
    atomic_store(&counter, 1);
    for (int i = 0;; i++) {
        memset(big, i, sizeof big);
        cell = big[i & 0xffff];
    }
}

static int leave_memset(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(loop_memset, NULL), 0);
    while (!atomic_load(&counter))
        gort_sleep(GORT_MS);
    gort_sleep(20 * GORT_MS);
    return 13;
}

static bool sleeps_parked(void *unused)
{
    struct timespec before, after;
    (void)unused;
    CHECK_EQ(clock_gettime(clock_of_one, &before), 0);
    usleep(200000);
    CHECK_EQ(clock_gettime(clock_of_one, &after), 0);
    return before.tv_sec == after.tv_sec && before.tv_nsec == after.tv_nsec;
}

/* It is hardly ever outside of libc. */
TEST(a_loop_over_memset_stands_still_after_the_run, .procs = "1,2")
{
    if (test_under_sanitizer())
        SKIP("only without sanitizers: memset is theirs");
    CHECK_EQ(gort_run(leave_memset, NULL), 13);
    CHECK(test_eventually(sleeps_parked, NULL, 20));
}

static atomic_ulong steps; /* by one hog */

static void hog_steps(void *unused)
{
    (void)unused;
    for (;;)
        atomic_fetch_add_explicit(&steps, 1, memory_order_relaxed);
}

static int leave_hog(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(hog_steps, NULL), 0);
    while (!atomic_load(&steps))
        gort_sleep(GORT_MS);
    gort_sleep(20 * GORT_MS);
    return 12;
}

TEST(a_hog_stands_still_after_the_run, .procs = "1,2")
{
    NEEDS_PURE_LOOPS();
    int64_t from = hog_clock();
    CHECK_EQ(gort_run(leave_hog, NULL), 12);
    CHECK_LT(hog_clock() - from, test_seconds(30));
    unsigned long was = atomic_load(&steps);
    usleep(50000);
    CHECK_EQ(atomic_load(&steps), was);
}
