/* SPDX-License-Identifier: MIT */
/*
 * os.c - the contract of src/os/os.h, function by function, on each path that this kernel offers and
 * on the ones that force.h makes us take.
 * Covers: src/os/os.h src/os/fence.h src/os/linux/vm.c src/os/linux/futex.c src/os/linux/clock.c
 * Covers: src/os/linux/thread.c src/os/linux/barrier.c src/os/linux/signal.c src/os/linux/alarm.c
 * Covers: src/os/linux/beat.c src/os/linux/init.c
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/fence.h"
#include "os/force.h"
#include "os/os.h"
#include "sandbox.h"
#include "test.h"

#define MS            INT64_C(1000000)
#define ALTSTACK_SIZE 65536

/* --- memory ----------------------------------------------------------------------------------- */

static bool dies_writing(volatile char *at)
{
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL); /* the sanitizers have one */
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        *at = 1;
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void check_guard(void)
{
    size_t page = gort__os_page();
    char *p = gort__os_vm_map(8 * page, page);
    CHECK(p);
    memset(p, 7, 8 * page);
    errno = 4711;
    CHECK_EQ(gort__os_vm_guard(p + 2 * page, 2 * page), 0);
    CHECK_EQ(errno, 4711);
    CHECK(dies_writing(p + 2 * page));
    CHECK(dies_writing(p + 4 * page - 1));
    CHECK(!dies_writing(p + 2 * page - 1));
    CHECK(!dies_writing(p + 4 * page));
    CHECK_EQ(p[2 * page - 1], 7);
    CHECK_EQ(p[4 * page], 7);
    gort__os_vm_discard(p, 2 * page);
    gort__os_vm_discard(p + 4 * page, 4 * page);
    CHECK(dies_writing(p + 3 * page)); /* giving memory back beside it leaves the guard */
    gort__os_vm_unmap(p, 8 * page);
}

TEST(guard_as_the_kernel_can)
{
    gort__os_init();
    check_guard();
}

TEST(guard_by_mprotect)
{
    gort__os_force.no_guard_install = true;
    gort__os_init();
    check_guard();
}

TEST(guard_without_init)
{
    check_guard();
}

TEST(guard_costs_no_mapping)
{
    size_t page = gort__os_page(), n = 200;
    if (test_under_emulator())
        SKIP("only natively: the emulator's own mappings would be counted too");
    gort__os_init();
    char *p = gort__os_vm_map(2 * n * page, page);
    CHECK(p);
    if (madvise(p, page, 102 /* MADV_GUARD_INSTALL */) != 0)
        SKIP("needs MADV_GUARD_INSTALL: Linux 6.13");
    int before = test_vma_count();
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(gort__os_vm_guard(p + 2 * i * page, page), 0);
    CHECK_LT(test_vma_count() - before, 20);
    gort__os_force.no_guard_install = true;
    gort__os_init();
    char *q = gort__os_vm_map(2 * n * page, page);
    before = test_vma_count();
    for (size_t i = 0; i < n; i++)
        CHECK_EQ(gort__os_vm_guard(q + 2 * i * page, page), 0);
    CHECK_GE(test_vma_count() - before, n); /* the other path was taken */
}

TEST(guard_in_locked_memory)
{
    size_t page = gort__os_page();
    if (test_under_emulator())
        SKIP("only natively: qemu accepts advice about memory that it does not follow");
    gort__os_init();
    char *p = gort__os_vm_map(4 * page, page);
    if (mlock(p, 4 * page) != 0)
        SKIP("needs the right to lock memory: raise ulimit -l");
    memset(p, 7, 4 * page);
    CHECK_EQ(gort__os_vm_guard(p, page), 0);
    CHECK(dies_writing(p));
    gort__os_vm_discard(p + page, page);
    CHECK_EQ(p[page], 0);
    CHECK_EQ(p[2 * page - 1], 0);
    CHECK_EQ(p[2 * page], 7);
}

TEST(map_aligns)
{
    size_t page = gort__os_page();
    gort__os_init();
    for (size_t align = page; align <= (size_t)64 << 20; align *= 2)
        for (size_t size = page; size <= 64 * page; size *= 4) {
            errno = 4711;
            char *p = gort__os_vm_map(size, align);
            CHECK(p);
            CHECK_EQ((uintptr_t)p % align, 0);
            CHECK_EQ(p[0] | p[size - 1], 0);
            p[0] = p[size - 1] = 1;
            gort__os_vm_small(p, size);
            gort__os_vm_huge(p, size);
            gort__os_vm_unmap(p, size);
            CHECK_EQ(errno, 4711);
        }
}

TEST(map_refuses)
{
    errno = 4711;
    CHECK(gort__os_vm_map((size_t)1 << 62, gort__os_page()) == NULL);
    CHECK(gort__os_vm_map(SIZE_MAX - 65535, (size_t)1 << 30) == NULL); /* must not wrap around */
    CHECK_EQ(errno, 4711);
}

TEST(discard_zeroes)
{
    size_t page = gort__os_page();
    char *p = gort__os_vm_map(4 * page, page);
    memset(p, 7, 4 * page);
    errno = 4711;
    gort__os_vm_discard(p + page, 2 * page);
    CHECK_EQ(errno, 4711);
    for (size_t i = 0; i < 4 * page; i++)
        CHECK_EQ(p[i], i < page || i >= 3 * page ? 7 : 0);
}

TEST(discard_frees)
{
    size_t size = (size_t)64 << 20;
    if (test_under_sanitizer() || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    char *p = gort__os_vm_map(size, gort__os_page());
    long before = test_rss_kb();
    memset(p, 1, size);
    CHECK_GT(test_rss_kb(), before + 60000);
    gort__os_vm_discard(p, size);
    CHECK_LT(test_rss_kb(), before + 4000);
}

/* --- waiting and time ------------------------------------------------------------------------- */

TEST(futex_deadline_is_never_early)
{
    uint32_t word = 5;
    for (int i = 0; i < 200; i++) {
        int64_t deadline = gort__os_now() + (i * 37 % 200) * INT64_C(10007);
        int result;
        errno = 4711;
        do
            result = gort__os_futex_wait(&word, 5, deadline);
        while (result == 0);
        CHECK_GE(gort__os_now(), deadline);
        CHECK_EQ(result, -ETIMEDOUT);
        CHECK_EQ(errno, 4711);
    }
}

TEST(futex_past_deadlines)
{
    uint32_t word = 5;
    CHECK_EQ(gort__os_futex_wait(&word, 5, 0), -ETIMEDOUT);
    CHECK_EQ(gort__os_futex_wait(&word, 5, -1), -ETIMEDOUT);
    CHECK_EQ(gort__os_futex_wait(&word, 5, INT64_MIN), -ETIMEDOUT);
}

TEST(futex_changed_word)
{
    uint32_t word = 5;
    errno = 4711;
    CHECK_EQ(gort__os_futex_wait(&word, 6, INT64_MAX), 0);
    CHECK_EQ(gort__os_futex_wait(&word, 6, INT64_MAX - 1), 0);
    gort__os_futex_wake(&word, 1); /* nobody there */
    CHECK_EQ(errno, 4711);
}

static void wake_later(void *arg)
{
    uint32_t *word = arg;
    gort__os_nap(20 * MS);
    gort__store(word, 1, RELEASE); /* pairs with futex_wakes */
    gort__os_futex_wake(word, 1);
}

TEST(futex_wakes)
{
    for (int i = 0; i < 2; i++) {
        uint32_t word = 0;
        uintptr_t thread;
        CHECK_EQ(gort__os_thread_start(&thread, wake_later, &word, "waker"), 0);
        while (gort__load(&word, ACQUIRE) == 0) /* pairs with wake_later */
            CHECK_EQ(gort__os_futex_wait(&word, 0, i ? INT64_MAX : gort__os_now() + 30000 * MS), 0);
        gort__os_thread_join(thread);
    }
}

static void on_alarm(int signo)
{
    (void)signo;
}

TEST(futex_interrupted)
{
    /* With SA_RESTART the kernel may take the wait up again by itself, but never past the deadline. */
    CHECK(gort__os_signal_take(SIGALRM, on_alarm));
    uint32_t word = 0;
    int64_t deadline = gort__os_now() + 1200 * MS;
    int result;
    alarm(1);
    do
        result = gort__os_futex_wait(&word, 0, deadline);
    while (result == 0);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_GE(gort__os_now(), deadline);
    CHECK_LT(gort__os_now(), deadline + 10000 * MS);
}

TEST(clock_advances)
{
    int64_t last = gort__os_now();
    CHECK_GT(last, 0);
    for (int i = 0; i < 100000; i++) {
        int64_t now = gort__os_now();
        CHECK_GE(now, last);
        last = now;
    }
    errno = 4711;
    gort__os_nap(5 * MS);
    CHECK_GE(gort__os_now(), last + 5 * MS);
    gort__os_nap(0);
    gort__os_nap(-1);
    CHECK_EQ(errno, 4711);
}

/* --- threads ---------------------------------------------------------------------------------- */

struct seen {
    char name[16];
    int id;
    sigset_t mask;
    int *errno_at;
    size_t size;
};

static void look_around(void *arg)
{
    struct seen *s = arg;
    prctl(PR_GET_NAME, s->name);
    s->id = gort__os_thread_id();
    pthread_sigmask(SIG_BLOCK, NULL, &s->mask);
    s->errno_at = gort__os_errno();
    pthread_attr_t attr;
    void *lo;
    CHECK_EQ(pthread_getattr_np(pthread_self(), &attr), 0);
    CHECK_EQ(pthread_attr_getstack(&attr, &lo, &s->size), 0);
    pthread_attr_destroy(&attr);
}

TEST(thread_sees)
{
    struct seen s;
    uintptr_t thread;
    sigset_t block;
    gort__os_init();
    sigemptyset(&block);
    sigaddset(&block, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    errno = 4711;
    CHECK_EQ(gort__os_thread_start(&thread, look_around, &s, "a-name-that-is-too-long"), 0);
    gort__os_thread_join(thread);
    CHECK_EQ(errno, 4711);
    CHECK_STR(s.name, "a-name-that-is-");
    CHECK_NE(s.id, gort__os_thread_id());
    CHECK_EQ(gort__os_thread_id(), getpid());
    CHECK(sigismember(&s.mask, SIGUSR2) && !sigismember(&s.mask, SIGUSR1));
    CHECK_NE(s.errno_at, gort__os_errno());
    CHECK_EQ(*gort__os_errno(), 4711);
    CHECK_GE(s.size, 65536);
    CHECK_EQ(gort__os_thread_stack_size(), s.size);
}

static uint32_t running;

static void count(void *arg)
{
    (void)arg;
    gort__add(&running, 1, RELAXED);
}

static bool all_ran(void *arg)
{
    return gort__load(&running, RELAXED) == *(uint32_t *)arg;
}

TEST(thread_many)
{
    /* More at once than there are start records. */
    uint32_t total = (uint32_t)test_scaled(400, 100);
    for (uint32_t i = 0; i < total; i++) {
        uintptr_t thread;
        CHECK_EQ(gort__os_thread_start(&thread, count, NULL, NULL), 0);
        gort__os_thread_detach(thread);
    }
    CHECK(test_eventually(all_ran, &total, 30));
}

TEST(thread_refused)
{
    if (test_under_sanitizer() || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: the tools need more address space than the limit leaves");
    struct rlimit limit = {(rlim_t)64 << 20, (rlim_t)64 << 20};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    uintptr_t thread;
    uint32_t word = 0;
    int result = 0, started = 0;
    for (; result == 0 && started < 1000; started++)
        result = gort__os_thread_start(&thread, wake_later, &word, "x");
    CHECK(result == -EAGAIN || result == -ENOMEM);
    for (int i = 0; i < 100; i++) /* failures give their records back */
        gort__os_thread_start(&thread, wake_later, &word, "x");
    _exit(0);
}

static void note_end(void *arg)
{
    *(int *)arg += 1;
}

static void other_end(void *arg)
{
    (void)arg;
}

static void with_end(void *arg)
{
    CHECK_EQ(gort__os_at_thread_end(note_end, arg), 0);
    CHECK_EQ(gort__os_at_thread_end(other_end, arg), -EINVAL);
}

static void with_end_taken_back(void *arg)
{
    with_end(arg);
    CHECK_EQ(gort__os_at_thread_end(note_end, NULL), 0);
}

TEST(thread_end)
{
    int ended = 0;
    uintptr_t thread;
    CHECK_EQ(gort__os_thread_start(&thread, with_end, &ended, "x"), 0);
    gort__os_thread_join(thread);
    CHECK_EQ(ended, 1);
    CHECK_EQ(gort__os_thread_start(&thread, with_end_taken_back, &ended, "x"), 0);
    gort__os_thread_join(thread);
    CHECK_EQ(ended, 1);
}

static int in_child;

static void note_child(void)
{
    in_child++;
}

TEST(fork_child)
{
    CHECK_EQ(gort__os_at_fork_child(note_child), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child == 1 ? 5 : 6);
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 5);
    CHECK_EQ(in_child, 0);
}

/* --- fences ----------------------------------------------------------------------------------- */

static struct {
    GORT_ALIGNED_LINE uint32_t a;
    GORT_ALIGNED_LINE uint32_t b;
    GORT_ALIGNED_LINE uint32_t round, done; /* the light side runs round n when round is n, then sets done */
    uint32_t light_saw;
} dekker;

static void light_side(void *arg)
{
    uint32_t rounds = *(uint32_t *)arg;
    for (uint32_t i = 1; i <= rounds; i++) {
        while (gort__load(&dekker.round, ACQUIRE) != i) /* pairs with check_fences */
            gort__os_thread_yield();
        gort__store(&dekker.a, i, RELAXED);
        gort__os_fence_light();
        dekker.light_saw = gort__load(&dekker.b, RELAXED);
        gort__store(&dekker.done, i, RELEASE); /* pairs with check_fences */
    }
}

/* Both sides store, fence, load the other's: never may both miss. */
static void check_fences(long most)
{
    uint32_t rounds = (uint32_t)test_scaled(most, most / 40);
    uintptr_t thread;
    memset(&dekker, 0, sizeof dekker);
    CHECK_EQ(gort__os_thread_start(&thread, light_side, &rounds, "light"), 0);
    for (uint32_t i = 1; i <= rounds; i++) {
        gort__store(&dekker.round, i, RELEASE); /* pairs with light_side */
        for (uint32_t k = i % 64; k; k--)
            gort__compiler_fence();
        gort__store(&dekker.b, i, RELAXED);
        gort__os_fence_heavy();
        uint32_t saw = gort__load(&dekker.a, RELAXED);
        while (gort__load(&dekker.done, ACQUIRE) != i) /* pairs with light_side */
            gort__os_thread_yield();
        CHECK(saw == i || dekker.light_saw == i);
    }
    gort__os_thread_join(thread);
}

TEST(fences_as_the_kernel_can)
{
    CHECK(gort__os_light_is_full); /* until somebody has looked */
    gort__os_init();
    test_log("membarrier: %s", gort__os_light_is_full ? "no" : "yes");
    errno = 4711;
    gort__os_fence_heavy();
    CHECK_EQ(errno, 4711);
    check_fences(20000);
}

TEST(fences_without_membarrier)
{
    gort__os_init();
    gort__os_force.no_membarrier = true;
    gort__os_init();
    CHECK(gort__os_light_is_full);
    check_fences(20000);
    gort__os_force.no_membarrier = false;
    gort__os_init(); /* a second run may have it back */
    check_fences(20000);
}

/* A sandbox is closed after the frequent half has begun to do without a fence. */
static void check_refused(const int calls[SANDBOX_MOST], int err, long rounds)
{
    cpu_set_t before, after;
    sandbox_begin();
    gort__os_init();
    if (gort__os_light_is_full)
        SKIP("needs membarrier: Linux 4.14, no sandbox that refuses it");
    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    CHECK_EQ(sandbox_close(calls, err, true), 0);
    errno = 4711;
    gort__os_fence_heavy();
    CHECK_EQ(errno, 4711);
    CHECK(!gort__os_light_is_full);
    check_fences(rounds);
    CHECK_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    CHECK(CPU_EQUAL(&before, &after));
    gort__os_init();
    CHECK(gort__os_light_is_full);
    check_fences(rounds);
}

TEST(fences_when_membarrier_is_refused, .expect = "^gort: membarrier is refused .errno 1.*visiting every CPU")
{
    check_refused((const int[SANDBOX_MOST]){SYS_membarrier}, EPERM, 2000);
}

TEST(fences_when_all_ways_are_refused, .expect = "^gort: membarrier is refused .errno 38.*waiting 10 ms")
{
    check_refused((const int[SANDBOX_MOST]){SYS_membarrier, SYS_sched_setaffinity}, ENOSYS, 200);
}

/* --- signals ---------------------------------------------------------------------------------- */

static volatile sig_atomic_t calls;
static volatile uintptr_t stack_lo;
static volatile sig_atomic_t on_altstack;

static void on_signal(int signo)
{
    char here;
    (void)signo;
    calls++;
    on_altstack = (uintptr_t)&here - stack_lo < ALTSTACK_SIZE;
}

static void other_handler(int signo)
{
    (void)signo;
}

TEST(altstack)
{
    char *stack = gort__os_vm_map(ALTSTACK_SIZE, gort__os_page());
    stack_lo = (uintptr_t)stack;
    struct gort__os_altstack saved;
    stack_t before, after;
    sigaltstack(NULL, &before);
    errno = 4711;
    gort__os_altstack_set(stack, ALTSTACK_SIZE, &saved);
    CHECK(gort__os_signal_take(SIGUSR1, on_signal));
    CHECK_EQ(errno, 4711);
    raise(SIGUSR1);
    CHECK_EQ(calls, 1);
    if (!test_under_sanitizer())
        CHECK(on_altstack);
    gort__os_altstack_restore(&saved);
    sigaltstack(NULL, &after);
    CHECK_EQ(after.ss_flags, before.ss_flags);
    if (!test_under_valgrind()) { /* which makes something up for "none" */
        CHECK_EQ(after.ss_sp, before.ss_sp);
        CHECK_EQ(after.ss_size, before.ss_size);
    }
}

/* Both: a handler blocks the signal for a moment, and what is on its way to a thread is pending for a
 * moment. */
TEST(thread_that_holds_a_signal_back)
{
    sigset_t set;
    int tid = gort__os_thread_id();
    sigemptyset(&set);
    sigaddset(&set, SIGURG);
    CHECK(!gort__os_thread_holds_back(tid, SIGURG));
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    CHECK(!gort__os_thread_holds_back(tid, SIGURG));
    CHECK_EQ(pthread_kill(pthread_self(), SIGURG), 0);
    CHECK(gort__os_thread_holds_back(tid, SIGURG));
    CHECK(!gort__os_thread_holds_back(tid, SIGUSR1));
    CHECK_EQ(pthread_sigmask(SIG_UNBLOCK, &set, NULL), 0);
    CHECK(!gort__os_thread_holds_back(tid, SIGURG));
}

TEST(signal_take_and_give_back)
{
    struct sigaction now;
    errno = 4711;
    CHECK(gort__os_signal_take(SIGUSR1, on_signal));
    sigaction(SIGUSR1, NULL, &now);
    CHECK_EQ(now.sa_handler, on_signal);
    CHECK_EQ(now.sa_flags & (SA_ONSTACK | SA_RESTART), SA_ONSTACK | SA_RESTART);
    CHECK(!gort__os_signal_take(SIGUSR1, other_handler));
    gort__os_signal_give_back(SIGUSR1, other_handler); /* not its own: stays */
    sigaction(SIGUSR1, NULL, &now);
    CHECK_EQ(now.sa_handler, on_signal);
    gort__os_signal_give_back(SIGUSR1, on_signal);
    sigaction(SIGUSR1, NULL, &now);
    CHECK_EQ(now.sa_handler, SIG_DFL);
    signal(SIGUSR1, SIG_IGN);
    CHECK(!gort__os_signal_take(SIGUSR1, on_signal)); /* ignored on purpose */
    CHECK(!gort__os_signal_take(SIGKILL, on_signal));
    CHECK(!gort__os_signal_take(0, on_signal));
    CHECK(!gort__os_signal_take(4711, on_signal));
    CHECK_EQ(errno, 4711);
}

TEST(exit_now, .crash = "", .status = 9)
{
    gort__os_exit_now(9);
}

/* --- alarms ------------------------------------------------------------------------------------- */

static struct gort__os_alarm alarm_clock;
static int64_t woke_at; /* atomic */

static void *sleeps_for_it(void *unused)
{
    (void)unused;
    errno = 4711;
    gort__os_alarm_sleep(&alarm_clock, -1);
    gort__store(&woke_at, gort__os_now(), RELEASE); /* pairs with woken */
    CHECK_EQ(errno, 4711);
    return NULL;
}

static int64_t woken(void)
{
    return gort__load(&woke_at, ACQUIRE); /* pairs with sleeps_for_it */
}

/* Set for never, then for a time that is moved to later and to earlier: it ends the sleep once, not before
 * its time. */
static void check_alarm(bool by_timerfd)
{
    gort__os_alarm_open(&alarm_clock);
    CHECK_EQ(alarm_clock.fd >= 0, by_timerfd);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        gort__store(&woke_at, 0, RELAXED);
        gort__os_alarm_set(&alarm_clock, INT64_MAX);
        CHECK_EQ(pthread_create(&thread, NULL, sleeps_for_it, NULL), 0);
        if (i & 1)
            usleep(20000); /* so it sleeps already */
        errno = 4711;
        int64_t first = gort__os_now() + 50 * MS, when = first + (i < 2 ? -20 : 10) * MS;
        gort__os_alarm_set(&alarm_clock, first);
        gort__os_alarm_set(&alarm_clock, when);
        bool in_time = gort__os_now() < first; /* else the first may have come already */
        CHECK_EQ(errno, 4711);
        pthread_join(thread, NULL);
        CHECK_GE(woken(), in_time || when < first ? when : first);
    }
    gort__os_alarm_set(&alarm_clock, 0); /* one that has passed is as good */
    gort__os_alarm_sleep(&alarm_clock, -1);
    gort__os_alarm_set(&alarm_clock, 1); /* and one that nobody has slept for is forgotten */
    int64_t when = gort__os_now() + 20 * MS;
    gort__os_alarm_set(&alarm_clock, when);
    gort__os_alarm_sleep(&alarm_clock, -1);
    CHECK_GE(gort__os_now(), when);
    gort__os_alarm_close(&alarm_clock);
}

TEST(alarm_by_timerfd)
{
    check_alarm(true);
    CHECK_EQ(alarm_clock.fd, -1);
}

/* A sandbox is closed while somebody sleeps for a timer that cannot be set any more, nor waited for. */
static void check_refused_alarm(int call)
{
    const int refuse[SANDBOX_MOST] = {call};
    pthread_t thread;
    sandbox_begin();
    gort__os_alarm_open(&alarm_clock);
    CHECK_GE(alarm_clock.fd, 0);
    CHECK_EQ(pthread_create(&thread, NULL, sleeps_for_it, NULL), 0);
    usleep(20000);
    CHECK_EQ(sandbox_close(refuse, EPERM, true), 0);
    errno = 4711;
    int64_t when = gort__os_now() + 10 * MS;
    gort__os_alarm_set(&alarm_clock, when + 1000000 * MS);
    gort__os_alarm_set(&alarm_clock, when);
    CHECK_EQ(errno, 4711);
    pthread_join(thread, NULL);
    CHECK_GE(woken(), when);
    for (int i = 0; i < 3; i++) { /* and again */
        when = gort__os_now() + 2 * MS;
        gort__os_alarm_set(&alarm_clock, when);
        gort__os_alarm_sleep(&alarm_clock, -1);
        CHECK_GE(gort__os_now(), when);
    }
    gort__os_alarm_close(&alarm_clock);
}

TEST(alarm_that_cannot_be_set_any_more)
{
    check_refused_alarm(SYS_timerfd_settime);
}

#ifdef SYS_poll /* else it is ppoll, too */
TEST(alarm_that_is_waited_for_in_another_way)
{
    check_refused_alarm(SYS_ppoll);
}
#endif

TEST(alarm_by_futex)
{
    gort__os_force.no_timerfd = true;
    check_alarm(false);
}

/* A hint only: nothing of it is seen but its fds, which go at the end; and without fds it does nothing. */
TEST(beats_are_forgotten)
{
    int fd = dup(0);
    struct rlimit limit, none;
    close(fd); /* the next that is free */
    errno = 4711;
    for (int i = 0; i < 10; i++)
        gort__os_beat(gort__os_now() + MS, gort__os_now() + 2 * MS);
    CHECK_EQ(errno, 4711);
    gort__os_beat_end();
    CHECK_EQ(dup(0), fd);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = (rlim_t)fd;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    errno = 4711;
    gort__os_beat(gort__os_now() + MS, gort__os_now() + 2 * MS);
    CHECK_EQ(errno, 4711);
    gort__os_beat_end();
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    close(fd);
}
