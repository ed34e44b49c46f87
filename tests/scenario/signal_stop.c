/* SPDX-License-Identifier: MIT */
/*
 * signal_stop.c - a signal that meets notify, stop or the end of a run arrives exactly once.
 * Covers: src/os/linux/caught.c src/io/signal.c
 *
 * The former handler counts, the channels are counted: each signal that was sent is in one of the two places.
 * There is one signal at a time, because the kernel makes one of two that are pending. TEST_SIGNAL_ROUNDS
 * sets the number of rounds.
 */
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#include "base/compiler.h"
#include "waiting.h"

static atomic_long owned; /* signals that the former handler got */

static void on_own(int signo)
{
    CHECK_EQ(signo, SIGINT);
    atomic_fetch_add(&owned, 1);
}

static void install(int signo, void (*fn)(int))
{
    struct sigaction action = {.sa_handler = fn, .sa_flags = SA_ONSTACK | SA_RESTART};
    CHECK_EQ(sigaction(signo, &action, NULL), 0);
}

static long rounds(long n)
{
    const char *more = getenv("TEST_SIGNAL_ROUNDS");
    return more ? atol(more) : test_scaled(n, n / 10);
}

static gort_chan *chans[2];

static long in_channels(void)
{
    return (long)(gort_chan_len(chans[0]) + gort_chan_len(chans[1]));
}

/* Where the signal of this round is; whoever was registered is not any more. It may still be on its way to a
 * thread. */
static long settle_round(long round, long owned_before)
{
    int64_t until = soon();
    int signo;
    long sent = in_channels();
    while (!sent && atomic_load(&owned) == owned_before) {
        CHECK_MSG(gort_now() < until, "round %ld: the signal is lost", round);
        sched_yield();
    }
    CHECK_MSG(!sent || atomic_load(&owned) == owned_before, "round %ld: it came twice", round);
    CHECK_LE(atomic_load(&owned) - owned_before, 1);
    for (int i = 0; i < 2; i++)
        while (gort_chan_recv_until(chans[i], &signo, GORT_TRY) == 1)
            CHECK_EQ(signo, SIGINT);
    return sent;
}

static gort_wg wg;

static void send_it(void)
{
    CHECK_EQ(kill(getpid(), SIGINT), 0);
    gort_wg_done(&wg);
}

static void stop_it(gort_chan *ch)
{
    CHECK_EQ(gort_signal_stop(ch, SIGINT), 0);
    gort_wg_done(&wg);
}

static void notify_and_stop(gort_chan *ch)
{
    CHECK_EQ(gort_signal_notify(ch, SIGINT), 0);
    CHECK_EQ(gort_signal_stop(ch, SIGINT), 0);
    gort_wg_done(&wg);
}

/* fn: what the channels' goroutines do while the signal comes. They are registered before, unless fn does
 * that, too. */
static void play(void (*fn)(gort_chan *), int channels, long n)
{
    long to_channels = 0, first = atomic_load(&owned);
    install(SIGINT, on_own);
    for (int i = 0; i < 2; i++)
        chans[i] = gort_chan_new(sizeof(int), 4);
    for (long i = 0; i < n; i++) {
        long before = atomic_load(&owned);
        for (int k = 0; k < channels && fn == stop_it; k++)
            CHECK_EQ(gort_signal_notify(chans[k], SIGINT), 0);
        gort_wg_add(&wg, channels + 1);
        if (i % 2)
            CHECK_EQ(GORT_GO(send_it), 0);
        for (int k = 0; k < channels; k++)
            CHECK_EQ(GORT_GO(fn, chans[k]), 0);
        if (i % 2 == 0)
            CHECK_EQ(GORT_GO(send_it), 0);
        gort_wg_wait(&wg);
        to_channels += settle_round(i, before) != 0;
    }
    test_log("%ld rounds: %ld to channels, %ld to the former handler", n, to_channels,
             atomic_load(&owned) - first);
    CHECK_EQ(to_channels + atomic_load(&owned) - first, n);
    for (int i = 0; i < 2; i++)
        gort_chan_unref(chans[i]);
    settle();
}

TEST_GO(stop_loses_nothing, .procs = "1,2,4,8", .fuzz = true)
{
    play(stop_it, 1, rounds(5000));
}

TEST_GO(two_channels_stop, .procs = "1,2,4,8", .fuzz = true)
{
    play(stop_it, 2, rounds(5000));
}

TEST_GO(notify_against_notify, .procs = "1,2,4,8", .fuzz = true)
{
    play(notify_and_stop, 2, rounds(5000));
}

/* --- the end of a run ----------------------------------------------------------------------------- */

static atomic_int go_on; /* 1: the run is about to end, 2: the signal was sent, 3: it is over */

static void *send_at_the_end(void *unused)
{
    (void)unused;
    uint64_t seed = test_seed();
    for (;;) {
        int now;
        while ((now = atomic_load(&go_on)) != 1 && now != 3)
            sched_yield();
        if (now == 3)
            return NULL;
        for (uint64_t spin = test_random(&seed) % 4096; spin; spin--)
            __asm__ volatile("");
        CHECK_EQ(kill(getpid(), SIGINT), 0);
        atomic_store(&go_on, 2);
    }
}

static int notify_and_return(void *two)
{
    CHECK_EQ(gort_signal_notify(chans[0], SIGINT), 0);
    if (two)
        CHECK_EQ(gort_signal_notify(chans[1], SIGINT), 0);
    atomic_store(&go_on, 1);
    return 0;
}

TEST(the_end_of_a_run_loses_nothing, .procs = "1,2,4", .fuzz = true)
{
    pthread_t thread;
    long n = rounds(1000), to_channels = 0;
    install(SIGINT, on_own);
    for (int i = 0; i < 2; i++)
        chans[i] = gort_chan_new(sizeof(int), 4);
    CHECK_EQ(pthread_create(&thread, NULL, send_at_the_end, NULL), 0);
    for (long i = 0; i < n; i++) {
        long before = atomic_load(&owned);
        CHECK_EQ(gort_run(notify_and_return, i & 2 ? (void *)chans : NULL), 0);
        while (atomic_load(&go_on) != 2)
            sched_yield();
        to_channels += settle_round(i, before) != 0;
    }
    atomic_store(&go_on, 3);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    test_log("%ld runs: %ld to channels, %ld to the former handler", n, to_channels, atomic_load(&owned));
    CHECK_EQ(to_channels + atomic_load(&owned), n);
    for (int i = 0; i < 2; i++)
        gort_chan_unref(chans[i]);
}

/* --- a handler that runs late --------------------------------------------------------------------- */

/* gort's handler, as a program's own finds it when it asks for the former one. */
static struct sigaction handler_of(int signo)
{
    struct sigaction now;
    CHECK_EQ(sigaction(signo, NULL, &now), 0);
    CHECK(now.sa_flags & SA_SIGINFO);
    return now;
}

static siginfo_t info;
static ucontext_t context;
static atomic_int told;

static void on_told(int signo, siginfo_t *i, void *c)
{
    CHECK_EQ(signo, SIGUSR1);
    CHECK_EQ(i, &info);
    CHECK_EQ(c, &context);
    atomic_fetch_add(&told, 1);
}

static struct sigaction registered_and_stopped(int signo)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_signal_notify(ch, signo), 0);
    struct sigaction ours = handler_of(signo);
    CHECK_EQ(gort_signal_stop(ch, signo), 0);
    gort_chan_unref(ch);
    return ours;
}

TEST_GO(a_late_handler_does_what_was_there_before)
{
    struct sigaction action = {.sa_sigaction = on_told, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    struct sigaction ours = registered_and_stopped(SIGUSR1);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &context.uc_sigmask), 0);
    ours.sa_sigaction(SIGUSR1, &info, &context);
    CHECK_EQ(atomic_load(&told), 1);
    signal(SIGUSR1, SIG_IGN);
    ours = registered_and_stopped(SIGUSR1);
    ours.sa_sigaction(SIGUSR1, &info, &context);
    signal(SIGCHLD, SIG_DFL);
    ours = registered_and_stopped(SIGCHLD);
    ours.sa_sigaction(SIGCHLD, &info, &context);
    CHECK_EQ(atomic_load(&told), 1);
    /* Registered again, it is for the new channel. */
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    int signo;
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0);
    ours.sa_sigaction(SIGUSR1, &info, &context);
    CHECK_EQ(gort_chan_recv_until(ch, &signo, soon()), 1);
    CHECK_EQ(gort_signal_stop(ch, SIGUSR1), 0);
    CHECK(handler_of(SIGURG).sa_sigaction != ours.sa_sigaction);
    gort_chan_unref(ch);
}

static int die_late(void *unused)
{
    (void)unused;
    signal(SIGTERM, SIG_DFL);
    struct sigaction ours = registered_and_stopped(SIGTERM);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &context.uc_sigmask), 0);
    ours.sa_sigaction(SIGTERM, &info, &context);
    sigset_t none; /* what the return from a real handler does */
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, NULL);
    return 0;
}

TEST(a_late_handler_ends_the_process_by_default, .crash = "", .signal = SIGTERM)
{
    gort_run(die_late, NULL);
}

/* A library that keeps the handler it found and puts it back after stop; one that stays and calls it. */
static struct sigaction found;
static atomic_int passed;

static void pass_on(int signo, siginfo_t *i, void *c)
{
    atomic_fetch_add(&passed, 1);
    found.sa_sigaction(signo, i, c);
}

TEST_GO(a_handler_that_is_put_back_after_stop)
{
    install(SIGINT, on_own);
    found = registered_and_stopped(SIGINT);
    CHECK_EQ(sigaction(SIGINT, &found, NULL), 0);
    for (int i = 1; i <= 3; i++) {
        CHECK_EQ(raise(SIGINT), 0);
        CHECK_EQ(atomic_load(&owned), i);
    }
    /* The same channel again: what was there before is still known. */
    registered_and_stopped(SIGINT);
    CHECK_EQ(raise(SIGINT), 0);
    CHECK_EQ(atomic_load(&owned), 4);
}

TEST_GO(a_handler_of_the_program_stays_after_stop)
{
    struct sigaction action = {.sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_ONSTACK}, now;
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    int signo;
    install(SIGINT, on_own);
    CHECK_EQ(gort_signal_notify(ch, SIGINT), 0);
    CHECK_EQ(sigaction(SIGINT, &action, &found), 0);
    CHECK_EQ(raise(SIGINT), 0);
    CHECK_EQ(gort_chan_recv_until(ch, &signo, soon()), 1);
    CHECK_EQ(gort_signal_stop(ch, SIGINT), 0);
    CHECK_EQ(sigaction(SIGINT, NULL, &now), 0);
    CHECK(now.sa_sigaction == pass_on);
    CHECK_EQ(raise(SIGINT), 0);
    CHECK_EQ(atomic_load(&passed), 2);
    CHECK_EQ(atomic_load(&owned), 1);
    gort_chan_unref(ch);
}

/* A forked child has nobody who would send it on: the signal ends it, as it did before. */
TEST_GO(a_forked_child_can_be_ended, .native = TEST_FORKS)
{
    if (GORT_TSAN)
        SKIP("ThreadSanitizer does not call handlers in the child of a fork: other builds run it");
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    int status;
    signal(SIGTERM, SIG_DFL);
    CHECK_EQ(gort_signal_notify(ch, SIGTERM), 0);
    pid_t pid = fork();
    if (pid == 0)
        for (;;)
            pause();
    CHECK_EQ(kill(pid, SIGTERM), 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    CHECK_EQ(gort_chan_len(ch), 0);
    CHECK_EQ(gort_signal_stop(ch, SIGTERM), 0);
    gort_chan_unref(ch);
}
