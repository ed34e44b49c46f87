/* SPDX-License-Identifier: MIT */
/*
 * preempt_signal.c - the signal behind preemption and the program's own signals: the same one and others,
 * handlers that jump, masks; preemption switched off for a moment or for good.
 * Covers: src/sched/monitor/preempt.c src/os/linux/signal.c
 */
#include "hogs.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

static atomic_long counter;
static atomic_bool stop;

static void hog(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        ;
}

static void tick(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        atomic_fetch_add(&counter, 1);
        gort_sleep(GORT_MS);
    }
}

static void compute(int64_t ns)
{
    for (int64_t until = hog_clock() + ns; hog_clock() < until;)
        ;
}

/* Computes until the counter has gone on by n: at one P that needs preemption. */
static void compute_until_counted(long n)
{
    long from = atomic_load(&counter);
    int64_t until = hog_clock() + test_seconds(30);
    while (atomic_load(&counter) < from + n)
        CHECK_MSG(hog_clock() < until, "the others do not go on");
}

/* --- off and on ------------------------------------------------------------------------------------------ */

TEST_GO(off_holds_the_others_off, .procs = "1")
{
    NEEDS_NATIVE_SPEED();
    CHECK_EQ(gort_go(tick, NULL), 0);
    compute_until_counted(3);
    for (int round = 0; round < 3; round++) {
        gort_preempt_off();
        gort_preempt_off();
        long was = atomic_load(&counter);
        compute(30 * GORT_MS);
        CHECK_EQ(atomic_load(&counter), was);
        gort_preempt_on(); /* one is left */
        compute(30 * GORT_MS);
        CHECK_EQ(atomic_load(&counter), was);
        gort_preempt_on();
        compute_until_counted(3);
    }
    atomic_store(&stop, true);
}

TEST_GO(off_and_a_call_that_parks, .procs = "1,2")
{
    CHECK_EQ(gort_go(tick, NULL), 0);
    gort_preempt_off();
    for (int64_t until = gort_in(test_seconds(30)); !atomic_load(&counter); gort_sleep(GORT_MS))
        CHECK_LT(gort_now(), until); /* it may still wait for something itself */
    gort_preempt_on();
    compute_until_counted(2);
    atomic_store(&stop, true);
}

TEST(off_in_a_plain_thread_does_nothing)
{
    gort_preempt_off();
    gort_preempt_on();
    gort_preempt_on();
}

TEST_GO(off_for_good, .procs = "1", .env = "GORT_DEBUG=preempt=off")
{
    CHECK_EQ(gort_go(tick, NULL), 0);
    gort_sleep(5 * GORT_MS);
    long was = atomic_load(&counter);
    CHECK_GT(was, 0);
    compute(100 * GORT_MS);
    CHECK_EQ(atomic_load(&counter), was);
    for (int64_t until = gort_in(test_seconds(30)); atomic_load(&counter) == was; gort_yield())
        CHECK_LT(gort_now(), until);
    atomic_store(&stop, true);
}

/* --- the program's own use of the signal ------------------------------------------------------------------- */

static atomic_int own[65];
static atomic_int own_info; /* with the sender's pid */

static void on_own(int signo, siginfo_t *info, void *context)
{
    (void)context;
    atomic_fetch_add(&own[signo], 1);
    if (info->si_pid == getpid())
        atomic_fetch_add(&own_info, 1);
}

static void install(int signo)
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_own;
    sa.sa_flags = SA_SIGINFO | SA_RESTART;
    CHECK_EQ(sigaction(signo, &sa, NULL), 0);
}

static bool is_installed(int signo)
{
    struct sigaction sa;
    CHECK_EQ(sigaction(signo, NULL, &sa), 0);
    return (sa.sa_flags & SA_SIGINFO) && sa.sa_sigaction == on_own;
}

static bool has_default(int signo)
{
    struct sigaction sa;
    CHECK_EQ(sigaction(signo, NULL, &sa), 0);
    return !(sa.sa_flags & SA_SIGINFO) && sa.sa_handler == SIG_DFL;
}

static bool own_is(void *n)
{
    return atomic_load(&own[SIGURG]) >= *(int *)n;
}

static int send_own(void *unused)
{
    (void)unused;
    int sent = 0;
    CHECK_EQ(gort_go(hog, NULL), 0);
    CHECK_EQ(gort_go(tick, NULL), 0);
    for (int i = 0; i < 6; i++) {
        compute(2 * GORT_MS); /* ours come meanwhile */
        if (i % 3 == 0)
            CHECK_EQ(raise(SIGURG), 0);
        else if (i % 3 == 1)
            CHECK_EQ(pthread_kill(pthread_self(), SIGURG), 0);
        else
            CHECK_EQ(kill(getpid(), SIGURG), 0);
        sent++;
        CHECK(test_eventually(own_is, &sent, 20));
    }
    CHECK_EQ(atomic_load(&own[SIGURG]), sent); /* and none of ours */
    CHECK_EQ(atomic_load(&own_info), sent);
    atomic_store(&stop, true);
    return 0;
}

TEST(a_handler_for_the_same_signal, .procs = "1,2")
{
    install(SIGURG);
    CHECK_EQ(gort_run(send_own, NULL), 0);
    CHECK(is_installed(SIGURG));
    CHECK_EQ(raise(SIGURG), 0);
    CHECK_EQ(atomic_load(&own[SIGURG]), 7);
}

static int preempt_a_while(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(tick, NULL), 0);
    compute_until_counted(5);
    atomic_store(&stop, true);
    while (gort_count() > 1)
        gort_yield();
    atomic_store(&stop, false);
    return 7;
}

TEST(the_disposition_comes_back, .procs = "1,2")
{
    CHECK(has_default(SIGURG));
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_run(preempt_a_while, NULL), 7);
        CHECK(has_default(SIGURG));
    }
    CHECK_EQ(raise(SIGURG), 0); /* ignored by default */
}

static int other_signal(void *unused)
{
    CHECK(has_default(SIGURG));
    CHECK(!has_default(SIGUSR2));
    return preempt_a_while(unused);
}

TEST(another_signal_by_config, .procs = "1,2")
{
    CHECK_EQ(gort_run_with(&(gort_config){.signal = SIGUSR2}, other_signal, NULL), 7);
    CHECK(has_default(SIGUSR2));
}

TEST(another_signal_by_environment, .procs = "1,2", .env = "GORT_SIGNAL=USR2")
{
    CHECK_EQ(gort_run(other_signal, NULL), 7);
    CHECK(has_default(SIGUSR2));
}

TEST_GO(a_handler_installed_over_ours, .procs = "1")
{
    CHECK_EQ(gort_go(tick, NULL), 0);
    compute_until_counted(2);
    /* The program does not know better: gort takes the signal back and passes on what is not its own. */
    install(SIGURG);
    compute_until_counted(5);
    int was = atomic_load(&own[SIGURG]);
    CHECK_EQ(raise(SIGURG), 0);
    CHECK_EQ(atomic_load(&own[SIGURG]), was + 1);
    atomic_store(&stop, true);
}

/* A plain thread gets the signal as well; there is nothing to preempt. */
static void *plain_thread(void *unused)
{
    while (!atomic_load(&stop))
        usleep(1000);
    return unused;
}

TEST_GO(the_signal_in_a_plain_thread, .procs = "1,2")
{
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, plain_thread, NULL), 0);
    CHECK_EQ(gort_go(tick, NULL), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(pthread_kill(t, SIGURG), 0);
    compute_until_counted(3);
    atomic_store(&stop, true);
    pthread_join(t, NULL);
}

/* --- several who send it ---------------------------------------------------------------------------------------- */

static void *stop_the_world(void *unused)
{
    while (!atomic_load(&stop)) {
        if (gort_world_stop() == 0)
            CHECK_EQ(gort_world_start(), 0);
        usleep(300);
    }
    return unused;
}

static int hogs_and_stoppers(void *unused)
{
    pthread_t t;
    (void)unused;
    atomic_store(&stop, false);
    CHECK_EQ(pthread_create(&t, NULL, stop_the_world, NULL), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(hog, NULL), 0);
    CHECK_EQ(gort_go(tick, NULL), 0);
    for (int64_t until = gort_in(200 * GORT_MS); gort_now() < until;) {
        compute(2 * GORT_MS);
        gort_sleep(100 * GORT_US);
    }
    atomic_store(&stop, true);
    CHECK_EQ(pthread_join(t, NULL), 0);
    return 9;
}

/* sysmon, a stop of the world and the end of the run direct it at the same threads; its default is to
 * kill. */
TEST(preempted_and_stopped_at_a_time, .procs = "1,2,4")
{
    CHECK(has_default(SIGUSR2));
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_run_with(&(gort_config){.signal = SIGUSR2}, hogs_and_stoppers, NULL), 9);
}

/* The kernel has no room to note who sent what: it comes as if from nobody. */
TEST(no_room_for_queued_signals, .procs = "1,2", .env = "GORT_SIGNAL=USR2")
{
    struct rlimit none = {0, 0};
    CHECK_EQ(setrlimit(RLIMIT_SIGPENDING, &none), 0);
    CHECK_EQ(gort_run(hogs_and_stoppers, NULL), 9);
    atomic_store(&stop, false);
    CHECK_EQ(gort_run(preempt_a_while, NULL), 7);
}

/* --- a storm of other signals ---------------------------------------------------------------------------------- */

static void *storm(void *unused)
{
    while (!atomic_load(&stop)) {
        kill(getpid(), SIGUSR1);
        kill(getpid(), SIGURG);
        usleep(50);
    }
    return unused;
}

TEST_GO(a_storm_of_signals, .procs = "1,2")
{
    pthread_t t;
    install(SIGUSR1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_go(hog, NULL), 0);
    CHECK_EQ(gort_go(tick, NULL), 0);
    CHECK_EQ(pthread_create(&t, NULL, storm, NULL), 0);
    for (int i = 0; i < 20; i++) {
        compute(5 * GORT_MS);
        gort_sleep(GORT_MS);
    }
    atomic_store(&stop, true);
    pthread_join(t, NULL);
    CHECK_GT(atomic_load(&own[SIGUSR1]), 0);
}

/* --- a handler that jumps ----------------------------------------------------------------------------------------- */

static _Thread_local sigjmp_buf *target;
static atomic_long jumps;

static void jump(int signo)
{
    (void)signo;
    if (target)
        siglongjmp(*target, 1);
}

static atomic_int jumper_tid;
static atomic_bool armed;

/* Is hit by the signal in its loop; one that comes in gort's handler, where it waits for its P, is kept for
 * later. */
static void jumper(void *unused)
{
    (void)unused;
    sigjmp_buf here;
    atomic_store(&jumper_tid, hog_tid());
    int tid = hog_tid();
    if (sigsetjmp(here, 1)) {
        target = NULL;
        atomic_store(&armed, false);
        atomic_fetch_add(&jumps, 1);
    }
    if (atomic_load(&jumps) < 20) {
        target = &here;
        atomic_store(&armed, true);
        for (;;)
            if (hog_clock() < 0)
                break;
    }
    CHECK_EQ(hog_tid(), tid);
    for (int i = 0; i < 10; i++) {
        compute(2 * GORT_MS);
        gort_yield();
    }
    atomic_store(&stop, true);
}

static void install_jump(int signo)
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: jumping off a signal stack confuses the tools");
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = jump;
    sa.sa_flags = SA_ONSTACK;
    CHECK_EQ(sigaction(signo, &sa, NULL), 0);
}

static void jump_by(int signo)
{
    install_jump(signo);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gort_go(hog, NULL), 0);
    CHECK_EQ(gort_go(jumper, NULL), 0);
    for (int64_t until = gort_in(test_seconds(50)); !atomic_load(&stop); gort_sleep(GORT_MS)) {
        CHECK_MSG(gort_now() < until, "it does not go on after %ld jumps", atomic_load(&jumps));
        if (atomic_load(&armed))
            syscall(SYS_tgkill, getpid(), atomic_load(&jumper_tid), signo);
    }
    CHECK_GE(atomic_load(&jumps), 20);
}

TEST_GO(a_handler_that_jumps_out, .procs = "1,2")
{
    jump_by(SIGUSR1);
}

/* Sent by somebody, not the code's own doing: it waits like the others. */
TEST_GO(a_trap_handler_that_jumps_out, .procs = "1,2")
{
    jump_by(SIGTRAP);
}

TEST_GO(an_abort_handler_that_jumps_out, .procs = "1,2")
{
    jump_by(SIGABRT);
}

static int leave_three_times(void *unused)
{
    (void)unused;
    sigjmp_buf here;
    for (volatile int i = 0; i < 3; i++) {
        if (sigsetjmp(here, 1) == 0) {
            target = &here;
            CHECK_EQ(raise(SIGURG), 0);
        } else {
            target = NULL;
            atomic_fetch_add(&jumps, 1);
        }
    }
    return 0;
}

/* Gort's own signal is the program's, too: its handler is called each time, however it was left. */
TEST(a_chained_handler_that_jumps_out, .procs = "1,2")
{
    install_jump(SIGURG);
    CHECK_EQ(gort_run(leave_three_times, NULL), 0);
    CHECK_EQ(atomic_load(&jumps), 3);
}

/* --- a handler that passes on what is not its own ----------------------------------------------------------------- */

static struct sigaction before;
static atomic_int passed_on;

static void pass_on(int signo, siginfo_t *info, void *context)
{
    atomic_fetch_add(&passed_on, 1);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signo, info, context);
}

/* It calls ours, which would call it: once each is enough. */
TEST_GO(a_handler_that_calls_ours_in_turn, .procs = "1")
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = pass_on;
    sa.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    CHECK_EQ(sigaction(SIGURG, &sa, &before), 0);
    CHECK((before.sa_flags & SA_SIGINFO) && before.sa_sigaction);
    CHECK_EQ(gort_go(tick, NULL), 0);
    /* By now gort's is installed again, with this one behind it, or is called by it. */
    compute_until_counted(5);
    atomic_store(&stop, true);
    while (gort_count() > 1)
        gort_sleep(GORT_MS);
    compute(20 * GORT_MS); /* what was on its way has come: the kernel would make one of it and the next */
    int was = atomic_load(&passed_on);
    CHECK_EQ(raise(SIGURG), 0);
    CHECK_EQ(atomic_load(&passed_on), was + 1);
    atomic_store(&stop, false);
    CHECK_EQ(gort_go(tick, NULL), 0);
    compute_until_counted(3);
    atomic_store(&stop, true);
}

/* --- masks --------------------------------------------------------------------------------------------------------- */

static void hog_behind_mask(void *unused)
{
    sigset_t all, old;
    sigfillset(&all);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, &old), 0);
    compute(200 * GORT_MS);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &old, NULL), 0);
    hog(unused);
}

TEST_GO(one_that_blocks_all_signals, .procs = "2")
{
    CHECK_EQ(gort_go(hog_behind_mask, NULL), 0);
    CHECK_EQ(gort_go(hog, NULL), 0);
    CHECK_EQ(gort_go(tick, NULL), 0);
    CHECK_LT(hog_ticks(50), test_seconds(30));
    compute_until_counted(5);
    atomic_store(&stop, true);
}

static int leave_masked(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(hog_behind_mask, NULL), 0);
    hog_ticks(5);
    return 8;
}

TEST(the_end_with_one_that_blocks_all_signals, .procs = "2")
{
    int64_t from = hog_clock();
    CHECK_EQ(gort_run(leave_masked, NULL), 8);
    CHECK_LT(hog_clock() - from, test_seconds(20));
}
