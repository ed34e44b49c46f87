/* SPDX-License-Identifier: MIT */
/*
 * signal.c - signals in channels.
 * Covers: src/io/signal.c src/os/linux/caught.c
 */
#include <signal.h>
#include <sys/wait.h>

#include "waiting.h"

TEST_GO(a_signal_arrives, .procs = "1,2,4", .fuzz = true)
{
    int signo = 0;
    gort_chan *ch = gort_chan_new(sizeof(int), 4), *other = gort_chan_new(sizeof(int), 4);
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0);
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0); /* once is enough */
    CHECK_EQ(gort_signal_notify(ch, SIGUSR2), 0);
    CHECK_EQ(gort_signal_notify(other, SIGUSR2), 0);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(gort_chan_recv_until(ch, &signo, soon()), 1);
    CHECK_EQ(signo, SIGUSR1);
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(gort_chan_recv_until(ch, &signo, soon()), 1);
    CHECK_EQ(signo, SIGUSR2);
    CHECK_EQ(gort_chan_recv_until(other, &signo, soon()), 1);
    CHECK_EQ(signo, SIGUSR2);
    CHECK_EQ(gort_signal_stop(ch, SIGUSR2), 0);
    CHECK_EQ(gort_signal_stop(ch, SIGUSR2), -ENOENT);
    CHECK_EQ(raise(SIGUSR2), 0);
    CHECK_EQ(gort_chan_recv_until(other, &signo, soon()), 1);
    CHECK_EQ(gort_chan_len(ch), 0);
    CHECK_EQ(gort_signal_stop(other, SIGUSR2), 0);
    CHECK_EQ(gort_signal_stop(ch, SIGUSR1), 0);
    CHECK_EQ(gort_signal_notify(ch, SIGKILL), -EINVAL);
    CHECK_EQ(gort_signal_notify(ch, SIGSEGV), -EINVAL);
    CHECK_EQ(gort_signal_notify(ch, 0), -EINVAL);
    CHECK_EQ(gort_signal_notify(ch, 1000), -EINVAL);
    gort_chan *wide = gort_chan_new(sizeof(long), 1);
    CHECK_EQ(gort_signal_notify(wide, SIGUSR1), -EINVAL);
    gort_chan_unref(wide);
    gort_chan_unref(ch);
    gort_chan_unref(other);
    settle();
}

TEST_GO(a_full_channel_drops)
{
    int signo = 0;
    gort_chan *ch = gort_chan_new(sizeof(int), 1), *all = gort_chan_new(sizeof(int), 16);
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0);
    CHECK_EQ(gort_signal_notify(all, SIGUSR1), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(raise(SIGUSR1), 0);
        CHECK_EQ(gort_chan_recv_until(all, &signo, soon()), 1);
    }
    CHECK_EQ(gort_chan_len(ch), 1);
    CHECK_EQ(gort_signal_stop(ch, SIGUSR1), 0);
    CHECK_EQ(gort_signal_stop(all, SIGUSR1), 0);
    gort_chan_unref(ch);
    gort_chan_unref(all);
}

static volatile sig_atomic_t own;

static void on_own(int signo)
{
    own = signo;
}

static int notify_and_leave(void *ch)
{
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0);
    CHECK_EQ(raise(SIGUSR1), 0);
    int signo;
    CHECK_EQ(gort_chan_recv_until(ch, &signo, soon()), 1);
    return 0;
}

/* The end of the run takes registrations back; so does stop, to what was there before. */
TEST(dispositions_come_back)
{
    struct sigaction action = {.sa_handler = on_own};
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), -ESRCH);
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_run(notify_and_leave, ch), 0);
        CHECK_EQ(own, 0);
        raise(SIGUSR1);
        CHECK_EQ(own, SIGUSR1);
        own = 0;
    }
    gort_chan_unref(ch);
}

static const int taken[] = {SIGQUIT, SIGPIPE, SIGURG};

static int catch_all_of_ours(void *ch)
{
    for (int i = 0; i < 3; i++) {
        int signo = 0;
        CHECK_EQ(gort_signal_notify(ch, taken[i]), 0);
        CHECK_EQ(raise(taken[i]), 0);
        CHECK_EQ(gort_chan_recv_until(ch, &signo, soon()), 1);
        CHECK_EQ(signo, taken[i]);
    }
    return 0;
}

/* Also when the signal is one that gort itself has a handler for during a run. */
TEST(defaults_come_back_where_gort_had_its_own)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_run(catch_all_of_ours, ch), 0);
        for (int k = 0; k < 3; k++) {
            struct sigaction now;
            CHECK_EQ(sigaction(taken[k], NULL, &now), 0);
            CHECK(now.sa_handler == SIG_DFL);
        }
    }
    gort_chan_unref(ch);
}

/* After stop the default is back: the signal kills, with the right status. */
static int stop_and_die(void *unused)
{
    (void)unused;
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_signal_notify(ch, SIGTERM), 0);
    CHECK_EQ(gort_signal_stop(ch, SIGTERM), 0);
    raise(SIGTERM);
    return 0;
}

TEST(the_default_kills)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(gort_run(stop_and_die, NULL) == 0 ? 1 : 2);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static atomic_long stop;

static void work(gort_chan *ch)
{
    char byte = 0;
    while (!atomic_load(&stop)) {
        CHECK_EQ(gort_chan_send(ch, &byte), 0);
        CHECK_EQ(gort_chan_recv(ch, &byte), 1);
        free(malloc(100));
        gort_yield();
    }
}

TEST_GO(a_storm, .procs = "1,2,4")
{
    int signo;
    long n = test_scaled(20000, 500), got = 0;
    gort_chan *ch = gort_chan_new(sizeof(int), 16), *busy = gort_chan_new(1, 8);
    signal(SIGUSR1, SIG_IGN); /* what stop goes back to: the kernel may deliver the last one late */
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(GORT_GO(work, busy), 0);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(kill(getpid(), SIGUSR1), 0);
        while (gort_chan_recv_until(ch, &signo, GORT_TRY) == 1)
            got++;
        if (i % 64 == 0)
            gort_yield();
    }
    while (gort_chan_recv_until(ch, &signo, GORT_TRY) == 1)
        got++;
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(gort_signal_stop(ch, SIGUSR1), 0); /* what was raised before is delivered by now */
    CHECK_GE(gort_chan_len(ch), 1);
    while (gort_chan_recv_until(ch, &signo, GORT_TRY) == 1)
        got++;
    test_log("%ld signals, %ld arrived", n, got);
    CHECK_GT(got, 0);
    atomic_store(&stop, 1);
    settle();
    gort_chan_unref(ch);
    gort_chan_unref(busy);
}

/* Registered: the program may sleep for ever without being called dead. */
static void raise_later(void)
{
    struct timespec ts = {.tv_nsec = 300000000};
    pid_t pid = getpid();
    if (fork() == 0) {
        nanosleep(&ts, NULL);
        kill(pid, SIGUSR1);
        _exit(0);
    }
}

TEST_GO(no_deadlock_while_registered, .native = TEST_FORKS)
{
    int signo, status;
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    CHECK_EQ(gort_signal_notify(ch, SIGUSR1), 0);
    raise_later();
    CHECK_EQ(gort_chan_recv(ch, &signo), 1);
    wait(&status);
    gort_chan_unref(ch);
}

/* The signal of preemption may be asked for too: it stays ours, and only what others send arrives. */
TEST_GO(the_signal_of_preemption, .procs = "1,2")
{
    int signo = 0;
    struct sigaction before, now;
    gort_chan *ch = gort_chan_new(sizeof(int), 4);
    CHECK_EQ(sigaction(SIGURG, NULL, &before), 0);
    CHECK_EQ(gort_signal_notify(ch, SIGURG), 0);
    CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
    CHECK(now.sa_sigaction == before.sa_sigaction);
    CHECK_EQ(kill(getpid(), SIGURG), 0);
    CHECK_EQ(gort_chan_recv_until(ch, &signo, soon()), 1);
    CHECK_EQ(signo, SIGURG);
    CHECK_EQ(gort_signal_stop(ch, SIGURG), 0);
    CHECK_EQ(sigaction(SIGURG, NULL, &now), 0);
    CHECK(now.sa_sigaction == before.sa_sigaction);
    CHECK_EQ(kill(getpid(), SIGURG), 0);
    gort_sleep(GORT_MS);
    CHECK_EQ(gort_chan_len(ch), 0);
    gort_chan_unref(ch);
}

/* A plain thread registers and stops all the time, through the ends of many runs. */
static atomic_int runs_left;

static void *register_and_stop(void *ch)
{
    while (atomic_load(&runs_left) > 0) {
        int err = gort_signal_notify(ch, SIGUSR1);
        CHECK_MSG(!err || err == -ESRCH || err == -ECANCELED, "notify: %s", gort_strerror(err));
        err = gort_signal_stop(ch, SIGUSR1);
        CHECK_MSG(!err || err == -ENOENT || err == -ECANCELED, "stop: %s", gort_strerror(err));
    }
    return NULL;
}

static int short_run(void *ch)
{
    CHECK_EQ(gort_signal_notify(ch, SIGUSR2), 0);
    for (int i = 0; i < atomic_load(&runs_left) % 16; i++)
        gort_yield();
    return 0;
}

TEST(threads_register_while_runs_end, .procs = "1,2,4", .fuzz = true)
{
    pthread_t threads[2];
    gort_chan *ch = gort_chan_new(sizeof(int), 1), *own_ch = gort_chan_new(sizeof(int), 1);
    struct sigaction before, after;
    CHECK_EQ(sigaction(SIGUSR1, NULL, &before), 0);
    atomic_store(&runs_left, (int)test_scaled(300, 50));
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, register_and_stop, ch), 0);
    while (atomic_fetch_sub(&runs_left, 1) > 0)
        CHECK_EQ(gort_run(short_run, own_ch), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(sigaction(SIGUSR1, NULL, &after), 0);
    /* An emulator waits for locks of its own, which looks like a call that a goroutine sleeps in: it outlives
     * the run then. */
    CHECK(before.sa_handler == after.sa_handler || test_under_emulator());
    gort_chan_unref(ch);
    gort_chan_unref(own_ch);
}
