/* SPDX-License-Identifier: MIT */
/*
 * task.c - what is told about another thread: its CPU time, whether it sleeps; signals that carry a value,
 * and timers on its CPU clock. Signals that it holds back: os.c.
 * Covers: src/os/linux/task.c
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/os.h"
#include "test.h"

#define MS INT64_C(1000000)

static sem_t leave;
static int sleeper; /* its number; atomic */

static void *sleep_until_told(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "a) R (b) 1");
    gort__store(&sleeper, gort__os_thread_id(), RELEASE); /* pairs with begin */
    while (sem_wait(&leave) != 0)
        ;
    return NULL;
}

static pthread_t begin(void)
{
    pthread_t thread;
    CHECK_EQ(sem_init(&leave, 0, 0), 0);
    gort__store(&sleeper, 0, RELAXED);
    CHECK_EQ(pthread_create(&thread, NULL, sleep_until_told, NULL), 0);
    while (!gort__load(&sleeper, ACQUIRE)) /* pairs with sleep_until_told */
        usleep(1000);
    return thread;
}

static void end(pthread_t thread)
{
    CHECK_EQ(sem_post(&leave), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static bool sleeps(void *unused)
{
    (void)unused;
    return gort__os_thread_state(sleeper) == GORT__OS_TASK_SLEEPS;
}

static bool is_gone(void *unused)
{
    (void)unused;
    return gort__os_thread_state(sleeper) == GORT__OS_TASK_UNKNOWN && gort__os_thread_cpu(sleeper) == -1;
}

/* The caller runs, whatever its name looks like; a sleeper sleeps; of one that has ended nothing is known. */
TEST(states)
{
    char name[] = "a) S (b) 1";
    CHECK_EQ(prctl(PR_SET_NAME, name), 0);
    errno = 4711;
    CHECK_EQ(gort__os_thread_state(gort__os_thread_id()), GORT__OS_TASK_RUNS);
    CHECK_EQ(errno, 4711);
    pthread_t thread = begin();
    CHECK(test_eventually(sleeps, NULL, 10));
    end(thread);
    CHECK(test_eventually(is_gone, NULL, 10));
    errno = 4711;
    CHECK_EQ(gort__os_thread_state(sleeper), GORT__OS_TASK_UNKNOWN);
    CHECK_EQ(gort__os_thread_cpu(sleeper), -1);
    CHECK(!gort__os_thread_holds_back(sleeper, SIGUSR2));
    CHECK_EQ(errno, 4711);
}

/* The CPU time of a thread grows while it computes, and its waits when it sleeps; both ways of asking
 * agree. */
TEST(usage)
{
    int self = gort__os_thread_id();
    int64_t from = gort__os_thread_cpu(self), used;
    uint64_t before, waits;
    gort__os_thread_usage(&used, &before);
    CHECK_GE(from, 0);
    while (gort__os_thread_cpu(self) - from < 20 * MS)
        ;
    gort__os_thread_usage(&used, &waits);
    CHECK_GE(used, 20 * MS);
    CHECK_GE(waits, before);
    for (int i = 0; i < 5; i++)
        usleep(1000);
    gort__os_thread_usage(&used, &waits);
    CHECK_GE(waits, before + 5);
}

TEST(a_sleeper_uses_nothing)
{
    pthread_t thread = begin();
    CHECK(test_eventually(sleeps, NULL, 10));
    int64_t used = gort__os_thread_cpu(sleeper);
    usleep(20000);
    CHECK_EQ(gort__os_thread_cpu(sleeper), used);
    end(thread);
}

static struct {
    uint32_t n; /* atomic */
    int code, tid;
    void *value;
} arrived;

static void note(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)context;
    arrived.code = info->si_code;
    arrived.value = info->si_value.sival_ptr;
    arrived.tid = gort__os_thread_id();
    gort__add(&arrived.n, 1, RELEASE); /* pairs with wait_for */
}

static void take(int signo)
{
    struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigemptyset(&action.sa_mask);
    CHECK_EQ(sigaction(signo, &action, NULL), 0);
}

static void wait_for(uint32_t n, int code, int tid, void *value)
{
    while (gort__load(&arrived.n, ACQUIRE) < n) /* computes; pairs with note */
        ;
    CHECK_EQ(arrived.n, n);
    CHECK_EQ(arrived.code, code);
    CHECK_EQ(arrived.tid, tid);
    CHECK(arrived.value == value);
}

TEST(a_signal_carries_a_value)
{
    take(SIGUSR2);
    pthread_t thread = begin();
    errno = 4711;
    gort__os_thread_signal(sleeper, SIGUSR2, &leave);
    CHECK_EQ(errno, 4711);
    wait_for(1, SI_QUEUE, sleeper, &leave);
    gort__os_thread_signal(gort__os_thread_id(), SIGUSR2, NULL);
    wait_for(2, SI_QUEUE, gort__os_thread_id(), NULL);
    end(thread);
    CHECK(test_eventually(is_gone, NULL, 10));
    gort__os_thread_signal(sleeper, SIGUSR2, &leave); /* to nobody */
    CHECK_EQ(errno, 4711);
    CHECK_EQ(gort__load(&arrived.n, RELAXED), 2);
}

TEST(a_cpu_timer_counts_cpu_time)
{
    int self = gort__os_thread_id();
    take(SIGUSR1);
    errno = 4711;
    int timer = gort__os_cpu_timer_make(self, SIGUSR1, &arrived);
    CHECK_GE(timer, 0);
    int64_t from = gort__os_thread_cpu(self);
    CHECK(gort__os_cpu_timer_arm(timer, 20 * MS));
    wait_for(1, SI_TIMER, self, &arrived);
    CHECK_GE(gort__os_thread_cpu(self) - from, 20 * MS);
    CHECK(gort__os_cpu_timer_arm(timer, 20 * MS));
    usleep(50000); /* which is no CPU time */
    CHECK_EQ(gort__load(&arrived.n, RELAXED), 1);
    CHECK(gort__os_cpu_timer_arm(timer, 0));
    from = gort__os_thread_cpu(self);
    while (gort__os_thread_cpu(self) - from < 50 * MS)
        ;
    CHECK_EQ(gort__load(&arrived.n, RELAXED), 1);
    gort__os_cpu_timer_drop(timer);
    CHECK(!gort__os_cpu_timer_arm(timer, MS));
    CHECK_EQ(errno, 4711);
}

TEST(no_cpu_timer_for_nobody)
{
    pthread_t thread = begin();
    end(thread);
    CHECK(test_eventually(is_gone, NULL, 10));
    CHECK_LT(gort__os_cpu_timer_make(sleeper, SIGUSR1, NULL), 0);
}
