/* SPDX-License-Identifier: MIT */
/*
 * ending.c - the end of a run as others meet it: a blocking call that outlives it and calls us, plain threads
 * that go on using objects while it happens, objects that outlive those who waited for them, a signal from
 * before it, who computes on.
 * Covers: src/sched/life/run.c src/sched/life/entry.c src/sched/wait/wait.c
 */
#include <gort.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static atomic_int in, out;
static atomic_bool go_on;
static int bell[2];

static bool is_out(void *unused)
{
    (void)unused;
    return atomic_load(&out) != 0;
}

static bool alone(void *unused)
{
    (void)unused;
    return test_thread_count() <= (test_under_sanitizer() ? 2 : 1);
}

static void yield_until_in(int n)
{
    while (atomic_load(&in) < n)
        gort_yield();
}

static long mapped_kb(void)
{
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return atol(text) * (sysconf(_SC_PAGESIZE) / 1024);
}

/* --- calls that outlive their run ------------------------------------------------------------------ */

static gort_chan *box;

/* It has its P all the time: nobody else wants it. */
static void call_late(void *unused)
{
    (void)unused;
    char c;
    int v = 1;
    gort_block_enter();
    atomic_store(&in, 1);
    CHECK_EQ(read(bell[0], &c, 1), 1);
    CHECK_EQ(gort_chan_send_until(box, &v, GORT_TRY), -EAGAIN); /* as a plain thread outside of runs */
    atomic_store(&out, 1);
    gort_block_leave();
    CHECK_MSG(false, "a goroutine of an ended run goes on");
}

static void (*late)(void *);

static int leave_in_call(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(late, NULL), 0);
    yield_until_in(1);
    return 3;
}

static void rest(void *unused)
{
    (void)unused;
    gort_yield();
}

static int ring_and_work(void *unused)
{
    (void)unused;
    CHECK_EQ(write(bell[1], "x", 1), 1);
    for (int64_t until = gort_in(test_seconds(10)); !is_out(NULL) && gort_now() < until;) {
        gort_wg wg = {0};
        for (int i = 0; i < 10; i++)
            CHECK_EQ(gort_wg_go(&wg, rest, NULL), 0);
        CHECK_EQ(gort_wg_wait(&wg), 0);
    }
    return 4;
}

TEST(an_announced_call_calls_us_after_its_run, .procs = "1,2,4")
{
    CHECK_EQ(pipe(bell), 0);
    box = gort_chan_new(sizeof(int), 0);
    late = call_late;
    for (int i = 0; i < 6; i++) {
        atomic_store(&in, 0);
        atomic_store(&out, 0);
        CHECK_EQ(gort_run(leave_in_call, NULL), 3);
        if (i % 2)
            CHECK_EQ(gort_run(ring_and_work, NULL), 4); /* beside another run, which it must not touch */
        else
            CHECK_EQ(write(bell[1], "x", 1), 1);
        CHECK(test_eventually(is_out, NULL, 20));
        CHECK(test_under_emulator() || test_eventually(alone, NULL, 20));
    }
    gort_chan_unref(box);
}

/* Nobody stops it, so it computes when the run ends, and then announces a call. */
static void announce_late(void *unused)
{
    (void)unused;
    atomic_store(&in, 1);
    while (!atomic_load(&go_on))
        ;
    gort_block_enter();
    CHECK_MSG(false, "a goroutine of an ended run goes on");
}

TEST(a_call_is_announced_after_its_run, .procs = "2,4")
{
    test_debug("preempt=off");
    late = announce_late;
    for (int i = 0; i < 3; i++) {
        atomic_store(&in, 0);
        atomic_store(&go_on, false);
        CHECK_EQ(gort_run(leave_in_call, NULL), 3);
        atomic_store(&go_on, true);
        CHECK(test_under_emulator() || test_eventually(alone, NULL, 20));
    }
}

/* It computes when the run ends, with a name and a copied argument that are not part of its record. */
static void compute_late(void *copy)
{
    gort_set_name("computes");
    const char *name = gort_name();
    atomic_store(&in, 1);
    while (!atomic_load(&go_on)) {
        CHECK_EQ(*(int *)copy, 7);
        CHECK_STR(name, "computes");
        CHECK_STR(gort_name(), "computes");
    }
    atomic_store(&out, 1);
    gort_set_name("late");
    CHECK_MSG(false, "a goroutine of an ended run goes on");
}

static int leave_computing(void *unused)
{
    (void)unused;
    int seven = 7;
    CHECK_EQ(gort_go_copy(compute_late, &seven, sizeof seven), 0);
    yield_until_in(1);
    return 3;
}

TEST(a_name_lives_as_long_as_who_has_it, .procs = "2,4")
{
    test_debug("preempt=off");
    for (int i = 0; i < 3; i++) {
        atomic_store(&in, 0);
        atomic_store(&out, 0);
        atomic_store(&go_on, false);
        CHECK_EQ(gort_run(leave_computing, NULL), 3);
        usleep(20000); /* it looks at them meanwhile */
        atomic_store(&go_on, true);
        CHECK(test_eventually(is_out, NULL, 20));
        CHECK(test_under_emulator() || test_eventually(alone, NULL, 20));
    }
}

/* --- plain threads meanwhile ----------------------------------------------------------------------- */

enum { WAITING = 1500, RUNS = 14 }; /* many: the end takes its time */
static atomic_bool stop;
static gort_mutex mutex;
static gort_cond cond;
static gort_rwmutex rw;

static void wait_somehow(void *how)
{
    long v;
    atomic_fetch_add(&in, 1);
    switch ((intptr_t)how % 4) {
    case 0:
        for (;;)
            (void)!gort_chan_recv(box, &v);
    case 1:
        for (;;)
            (void)!gort_chan_recv_until(box, &v, gort_in(GORT_SEC));
    case 2:
        CHECK_EQ(gort_mutex_lock(&mutex), 0);
        for (;;)
            (void)!gort_cond_wait(&cond, &mutex);
    default:
        for (;;) {
            (void)!gort_rwmutex_lock(&rw);
            gort_rwmutex_unlock(&rw);
        }
    }
}

static int leave_waiting(void *unused)
{
    (void)unused;
    atomic_store(&in, 0);
    memset(&mutex, 0, sizeof mutex); /* whoever had it in the last run is gone */
    memset(&rw, 0, sizeof rw);
    CHECK_EQ(gort_rwmutex_rlock(&rw), 0);
    for (intptr_t i = 0; i < WAITING; i++)
        CHECK_EQ(gort_go(wait_somehow, (void *)i), 0);
    yield_until_in(WAITING);
    return 5;
}

/* It meets those who wait, whether their run is on, just ends, or has ended. */
static void *meddle(void *unused)
{
    (void)unused;
    for (long v = 1; !atomic_load(&stop); v++) {
        (void)!gort_chan_send_until(box, &v, GORT_TRY);
        gort_cond_signal(&cond);
    }
    return NULL;
}

TEST(plain_threads_go_on_while_a_run_ends, .procs = "1,2,4")
{
    pthread_t t[2];
    box = gort_chan_new(sizeof(long), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, meddle, NULL), 0);
    for (int i = 0; i < test_scaled(RUNS, 4); i++)
        CHECK_EQ(gort_run(leave_waiting, NULL), 5);
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    gort_chan_unref(box);
}

static void keep_nothing(void *unused)
{
    (void)unused;
}

/* Not more than a few at a time: on a busy machine those who are to run them may get no CPU for long. */
static void *keep_starting(void *unused)
{
    while (!atomic_load(&stop))
        if (gort_count() < 500)
            (void)!gort_go(keep_nothing, unused);
    return NULL;
}

static int sleep_a_little(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_sleep(GORT_MS / 2), 0);
    return 9;
}

TEST(plain_threads_start_goroutines_while_a_run_ends, .procs = "2,4")
{
    enum { TIMES = 300 };
    pthread_t t[2];
    long before = 0;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, keep_starting, NULL), 0);
    for (int i = 0; i < test_scaled(TIMES, 20); i++) {
        CHECK_EQ(gort_run(sleep_a_little, NULL), 9);
        if (i == TIMES / 3)
            before = mapped_kb();
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    if (before && !test_under_sanitizer() && !test_under_emulator() && !test_under_valgrind())
        CHECK_LT(mapped_kb(), before + 1024); /* no records of threads are left: those have 132 KiB each */
}

/* Threads of ours come to their end with the run, and with them what the program keeps for each. */
static pthread_key_t per_thread;
static atomic_int destroyed;

static void call_us(void *unused)
{
    long v = 1;
    (void)unused;
    (void)!gort_chan_send_until(box, &v, GORT_TRY);
    atomic_fetch_add(&destroyed, 1);
}

static void keep_for_thread(void *unused)
{
    (void)unused;
    CHECK_EQ(pthread_setspecific(per_thread, &per_thread), 0);
}

static int keep_for_threads(void *unused)
{
    gort_wg wg = {0};
    for (int i = 0; i < 20; i++)
        CHECK_EQ(gort_wg_go(&wg, keep_for_thread, unused), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    return 8;
}

TEST(destructors_of_threads_call_us_at_the_end, .procs = "1,4")
{
    int64_t fastest = INT64_MAX;
    box = gort_chan_new(sizeof(long), 1);
    CHECK_EQ(pthread_key_create(&per_thread, call_us), 0);
    for (int i = 0; i < 10; i++) {
        int64_t from = gort_now();
        CHECK_EQ(gort_run(keep_for_threads, NULL), 8);
        int64_t took = gort_now() - from;
        fastest = took < fastest ? took : fastest;
    }
    CHECK_GE(atomic_load(&destroyed), 10);
    CHECK_LT(fastest, 2 * GORT_SEC); /* nobody waits for one who waits for the end */
    gort_chan_unref(box);
}

enum { CONTEXTS = 20000 };

static void *free_contexts(void *unused)
{
    static gort_ctx *ctx[CONTEXTS];
    (void)unused;
    for (int i = 0; i < CONTEXTS; i++) {
        ctx[i] = gort_ctx_new(NULL, gort_in(3600 * GORT_SEC));
        CHECK(ctx[i] && gort_ctx_done(ctx[i])); /* which has a timer */
    }
    atomic_store(&in, 1);
    while (!atomic_load(&go_on))
        ;
    for (int i = 0; i < CONTEXTS; i++)
        gort_ctx_unref(ctx[i]);
    return NULL;
}

static int leave_contexts(void *t)
{
    atomic_store(&in, 0);
    atomic_store(&go_on, false);
    CHECK_EQ(pthread_create(t, NULL, free_contexts, NULL), 0);
    while (!atomic_load(&in))
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    atomic_store(&go_on, true);
    return 6;
}

TEST(contexts_are_freed_while_a_run_ends, .procs = "1,2,4")
{
    pthread_t t;
    for (int i = 0; i < test_scaled(8, 3); i++) {
        CHECK_EQ(gort_run(leave_contexts, &t), 6);
        pthread_join(t, NULL);
    }
}

/* --- objects that outlive those who waited --------------------------------------------------------- */

enum { ROOM = 64 << 10 };

static void wait_with_deadline(void *unused)
{
    static char value[ROOM];
    (void)unused;
    atomic_fetch_add(&in, 1);
    CHECK_MSG(gort_chan_recv_until(box, value, gort_in(3600 * GORT_SEC)) == 0, "nobody sends");
}

static int leave_one_waiting(void *unused)
{
    (void)unused;
    atomic_store(&in, 0);
    CHECK_EQ(gort_go(wait_with_deadline, NULL), 0);
    yield_until_in(1);
    CHECK_EQ(gort_sleep(GORT_MS), 0); /* it is parked now */
    return 7;
}

TEST(a_channel_is_freed_after_the_run_of_those_who_waited)
{
    long before = 0;
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    for (int i = 0; i < 40; i++) {
        box = gort_chan_new(ROOM, 64);
        CHECK(box);
        CHECK_EQ(gort_run(leave_one_waiting, NULL), 7);
        gort_chan_unref(box);
        if (i == 10)
            before = mapped_kb();
    }
    CHECK_LT(mapped_kb(), before + 40 * 1024); /* all of them would be 120 MB */
}

/* --- a signal from before the end -------------------------------------------------------------------- */

static atomic_bool computes, asked, leaving, done;
static pthread_t computing;
static atomic_long done_after; /* ns */
static atomic_bool starve;
static int busy_cpu;

static void stay_on_busy_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(busy_cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* From here on the thread gets the CPU only when the child on busy_cpu leaves it a little: about once a
 * second. */
static void give_up_cpu(void)
{
    stay_on_busy_cpu();
    sched_setscheduler(0, SCHED_IDLE, &(struct sched_param){0});
}

/* Its goroutine is asked to stop while others wait, but the signal is kept back until main is gone. It meets
 * the goroutine where this handler did: outside of libc, which pthread_sigmask would not be. */
static void keep_back(int signo)
{
    sigset_t waiting;
    (void)signo;
    do
        CHECK_EQ(sigpending(&waiting), 0);
    while (!sigismember(&waiting, SIGURG));
    if (atomic_load(&starve))
        give_up_cpu();
    atomic_store(&asked, true);
    while (!atomic_load(&leaving))
        ;
    for (int64_t until = gort_now() + atomic_load(&done_after); gort_now() < until;)
        ;
    atomic_store(&done, true);
}

static void compute_and_call(void *unused)
{
    (void)unused;
    computing = pthread_self();
    atomic_store(&computes, true);
    while (!atomic_load(&done))
        ;
    for (;;)
        gort_yield();
}

static void yield_until_asked(void *unused)
{
    (void)unused;
    while (!atomic_load(&asked)) {
        /* The one that is asked may have been told to get a CPU only when nobody else wants it. */
        usleep(200);
        gort_yield();
    }
}

static int leave_one_asked(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(compute_and_call, NULL), 0);
    while (!atomic_load(&computes))
        gort_yield();
    CHECK_EQ(pthread_kill(computing, SIGUSR2), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(gort_go(yield_until_asked, NULL), 0);
    while (gort_count() > 2)
        CHECK_EQ(gort_sleep(GORT_MS / 10),
                 0); /* so its P takes those who wait behind the one that computes */
    atomic_store(&leaving, true);
    return 4;
}

static void end_beside_one_asked(int rounds)
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: valgrind and emulators run threads one at a time, or add their own");
    struct sigaction action = {.sa_handler = keep_back};
    sigaddset(&action.sa_mask, SIGURG);
    CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
    for (int round = 0; round < rounds; round++) {
        atomic_store(&computes, false);
        atomic_store(&asked, false);
        atomic_store(&leaving, false);
        atomic_store(&done, false);
        atomic_store(&done_after, round % 10 * 50 * GORT_US);
        CHECK_EQ(gort_run(leave_one_asked, NULL), 4);
        CHECK_MSG(test_eventually(alone, NULL, 20), "round %d: its thread is still there", round);
    }
}

/* Who ran when main returned may come to its next call. It is not frozen instead, which would leave its
 * thread for good. */
TEST(a_signal_from_before_the_end_freezes_nobody, .procs = "2,4")
{
    end_beside_one_asked(20);
}

/* Not even one that gets no CPU for so long that nobody waits for it. */
TEST(a_signal_from_before_the_end_freezes_nobody_who_is_late, .procs = "2,4")
{
    busy_cpu = sched_getcpu();
    CHECK_GE(busy_cpu, 0);
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
        stay_on_busy_cpu();
        for (;;)
            ;
    }
    atomic_store(&starve, true);
    end_beside_one_asked(5);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
}

static atomic_long steps;

static void step_for_ever(void *unused)
{
    (void)unused;
    for (;;)
        atomic_fetch_add(&steps, 1);
}

static int leave_one_stepping(void *unused)
{
    (void)unused;
    atomic_store(&steps, 0);
    CHECK_EQ(gort_go(step_for_ever, NULL), 0);
    while (!atomic_load(&steps))
        gort_yield();
    return 5;
}

/* Who never calls us stands still when gort_run has returned. */
TEST(one_that_computes_is_frozen_at_the_end, .procs = "2,4")
{
    if (test_under_sanitizer() || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: they keep signals back, or run threads one at a time");
    for (int round = 0; round < 5; round++) {
        CHECK_EQ(gort_run(leave_one_stepping, NULL), 5);
        long at = atomic_load(&steps);
        usleep(20000);
        CHECK_EQ(atomic_load(&steps), at);
    }
}
