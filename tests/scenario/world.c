/* SPDX-License-Identifier: MIT */
/*
 * world.c - gort_world_stop and gort_world_start: nothing moves in between, wherever it was, and all goes on
 * after.
 * Covers: src/sched/life/world.c
 */
#include "hogs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "sched/life/life.h"

enum { HOG, MALLOC, PRINT, READ, ENTERED, BLOCK, YIELD, SLEEP, QUIET, KINDS };
static const char *const kind_names[KINDS] = {
    "hog", "malloc", "printf", "read", "announced read", "gort_block", "yield", "sleep", "preempt_off"};

static atomic_long moves[KINDS];
static atomic_bool stop;
static atomic_int owners, left;
static FILE *null_file;
static int fds[2];

static bool go_on(int kind)
{
    atomic_fetch_add_explicit(&moves[kind], 1, memory_order_relaxed);
    return !atomic_load_explicit(&stop, memory_order_relaxed);
}

static intptr_t read_one(void *unused)
{
    char c;
    (void)unused;
    ssize_t n = read(fds[0], &c, 1);
    CHECK(n == 1);
    atomic_fetch_add_explicit(&moves[BLOCK], 1, memory_order_relaxed);
    return n;
}

static bool move(int kind)
{
    char c, *volatile p;
    switch (kind) {
    case MALLOC:
        p = malloc(100 + (size_t)(atomic_load_explicit(&moves[MALLOC], memory_order_relaxed) % 3000));
        CHECK(p);
        free(p);
        break;
    case PRINT:
        CHECK_GT(fprintf(null_file, "%d %s\n", kind, "line"), 0);
        break;
    case READ:
        CHECK_EQ(read(fds[0], &c, 1), 1);
        break;
    case ENTERED:
        gort_block_enter();
        CHECK_EQ(read(fds[0], &c, 1), 1);
        atomic_fetch_add_explicit(&moves[kind], 1, memory_order_relaxed); /* in between is user code, too */
        gort_block_leave();
        break;
    case BLOCK:
        CHECK_EQ(gort_block(read_one, NULL), 1);
        break;
    case YIELD:
        gort_yield();
        break;
    case SLEEP:
        CHECK_EQ(gort_sleep(50 * GORT_US), 0);
        break;
    case QUIET: /* no preemption, but a stop all the same */
        gort_preempt_off();
        for (int i = 0; i < 1000; i++)
            atomic_fetch_add_explicit(&moves[kind], 1, memory_order_relaxed);
        gort_preempt_on();
        break;
    default:
        break;
    }
    return go_on(kind);
}

static void mover(void *kind)
{
    while (move((int)(intptr_t)kind))
        ;
    atomic_fetch_sub(&left, 1);
}

/* Plain threads are not stopped: the readers' calls come to their end meanwhile. */
static void *feed(void *unused)
{
    char bytes[16] = {0};
    while (atomic_load(&left)) {
        if (write(fds[1], bytes, sizeof bytes) < 0)
            CHECK_EQ(errno, EAGAIN); /* full: they get no CPU, or have just ended */
        usleep(200);
    }
    return unused;
}

static pthread_t start_movers(int of_each)
{
    pthread_t feeder;
    null_file = fopen("/dev/null", "w");
    CHECK(null_file);
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    atomic_store(&left, KINDS * of_each);
    CHECK_EQ(pthread_create(&feeder, NULL, feed, NULL), 0);
    for (intptr_t kind = 0; kind < KINDS; kind++)
        for (int i = 0; i < of_each; i++)
            CHECK_EQ(gort_go(mover, (void *)kind), 0);
    return feeder;
}

static void end_movers(pthread_t feeder)
{
    atomic_store(&stop, true);
    for (int64_t until = gort_in(test_seconds(40)); atomic_load(&left); gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "%d do not go on", atomic_load(&left));
    CHECK_EQ(pthread_join(feeder, NULL), 0);
    fclose(null_file);
}

/* Stops the world, looks whether anything moves for a while, and starts it. Returns how long the stop
 * took. */
static int64_t stop_and_look(void)
{
    long before[KINDS];
    int64_t from = hog_clock();
    CHECK_EQ(gort_world_stop(), 0);
    int64_t took = hog_clock() - from;
    for (int i = 0; i < KINDS; i++)
        before[i] = atomic_load(&moves[i]);
    usleep(3000);
    for (int i = 0; i < KINDS; i++)
        CHECK_MSG(atomic_load(&moves[i]) == before[i], "%s: %ld moves while the world is stopped",
                  kind_names[i], atomic_load(&moves[i]) - before[i]);
    CHECK_EQ(gort_world_start(), 0);
    return took;
}

/* Everybody has moved, from some state of things on. */
static void wait_for_all(const char *when)
{
    long from[KINDS];
    for (int i = 0; i < KINDS; i++)
        from[i] = atomic_load(&moves[i]);
    int64_t until = hog_clock() + test_seconds(40);
    for (int i = 0; i < KINDS; i++)
        while (atomic_load(&moves[i]) == from[i]) {
            CHECK_MSG(hog_clock() < until, "%s: %s does not go on", when, kind_names[i]);
            gort_sleep(GORT_MS);
        }
}

static int compare_times(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void stop_often(int rounds)
{
    int64_t took[32];
    wait_for_all("at first");
    for (int i = 0; i < rounds; i++) {
        took[i] = stop_and_look();
        if (i % 4 == 3)
            wait_for_all("after a stop");
        else
            gort_sleep(GORT_MS);
    }
    qsort(took, (size_t)rounds, sizeof *took, compare_times);
    test_log("time to stop: median %ld us, worst %ld us", (long)(took[rounds / 2] / 1000),
             (long)(took[rounds - 1] / 1000));
}

/* --- everything at once ------------------------------------------------------------------------------------- */

TEST_GO(nothing_moves, .procs = "1,2,4", .fuzz = true)
{
    NEEDS_NATIVE_SPEED();
    pthread_t feeder = start_movers(2);
    stop_often(12);
    end_movers(feeder);
}

static void *stop_from_thread(void *unused)
{
    stop_often(12);
    CHECK_EQ(gort_world_start(), -EPERM);
    return unused;
}

TEST_GO(stopped_by_a_plain_thread, .procs = "1,2,4")
{
    pthread_t thread;
    NEEDS_NATIVE_SPEED();
    pthread_t feeder = start_movers(1);
    CHECK_EQ(pthread_create(&thread, NULL, stop_from_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0); /* blocks without a word, and is stopped as well */
    end_movers(feeder);
}

static intptr_t stop_in_block(void *unused)
{
    (void)unused;
    stop_often(6);
    return 1;
}

TEST_GO(stopped_in_a_blocking_call, .procs = "1,2")
{
    NEEDS_NATIVE_SPEED();
    pthread_t feeder = start_movers(1);
    CHECK_EQ(gort_block(stop_in_block, NULL), 1);
    gort_block_enter();
    stop_often(6);
    gort_block_leave();
    end_movers(feeder);
}

/* --- calls that end meanwhile --------------------------------------------------------------------------------- */

static atomic_int back;

static void read_and_tell(void *how)
{
    char c;
    if ((intptr_t)how == 1)
        gort_block_enter();
    if ((intptr_t)how == 2)
        CHECK_EQ(gort_block(read_one, NULL), 1);
    else
        CHECK_EQ(read(fds[0], &c, 1), 1);
    atomic_fetch_add(&back, 1);
    if ((intptr_t)how == 1)
        gort_block_leave();
}

TEST_GO(calls_that_end_come_back_after_the_start, .procs = "1,2,4")
{
    enum { N = 9 };
    gort_wg wg = {0};
    char bytes[N] = {0};
    if (UNDER_TSAN)
        SKIP("only without ThreadSanitizer: it keeps signals back from calls that block");
    CHECK_EQ(pipe(fds), 0);
    for (int round = 0; round < 3; round++) {
        atomic_store(&back, 0);
        for (intptr_t i = 0; i < N; i++)
            CHECK_EQ(gort_wg_go(&wg, read_and_tell, (void *)(i % 3)), 0);
        hog_ticks(round * 10); /* in the calls, on the way there, or not even started */
        CHECK_EQ(gort_world_stop(), 0);
        CHECK_EQ(write(fds[1], bytes, N), N);
        usleep(5000);
        CHECK_EQ(atomic_load(&back), 0);
        CHECK_EQ(gort_world_start(), 0);
        CHECK_EQ(gort_wg_wait_until(&wg, gort_in(test_seconds(40))), 0);
        CHECK_EQ(atomic_load(&back), N);
    }
}

/* Waits in a call like a plain thread, and is woken by one, which a stop does not touch: it comes back after
 * the start. */
static gort_chan *from_thread;
static pthread_barrier_t stopped;

static intptr_t wait_in_block(void *unused)
{
    int v = 0;
    (void)unused;
    CHECK_EQ(gort_chan_recv(from_thread, &v), 1);
    atomic_fetch_add(&back, 1);
    return v;
}

static void wait_and_tell(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_block(wait_in_block, NULL), 5);
}

static void *send_meanwhile(void *unused)
{
    int v = 5;
    CHECK_GE(gort_count(), 1);
    for (int round = 0; round < 5; round++) {
        pthread_barrier_wait(&stopped);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(gort_chan_send_until(from_thread, &v, GORT_TRY), 0);
        pthread_barrier_wait(&stopped);
    }
    return unused;
}

TEST_GO(those_woken_by_a_thread_stay_where_they_are, .procs = "1,2,4")
{
    pthread_t t;
    gort_wg wg = {0};
    from_thread = gort_chan_new(sizeof(int), 4);
    CHECK_EQ(pthread_barrier_init(&stopped, NULL, 2), 0);
    CHECK_EQ(pthread_create(&t, NULL, send_meanwhile, NULL), 0);
    for (int round = 0; round < 5; round++) {
        atomic_store(&back, 0);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(gort_wg_go(&wg, wait_and_tell, NULL), 0);
        hog_ticks(10); /* now they wait; one that is not that far yet finds its value when it comes */
        CHECK_EQ(gort_world_stop(), 0);
        pthread_barrier_wait(&stopped);
        pthread_barrier_wait(&stopped);
        usleep(2000);
        CHECK_EQ(atomic_load(&back), 0);
        CHECK_EQ(gort_world_start(), 0);
        CHECK_EQ(gort_wg_wait_until(&wg, gort_in(test_seconds(40))), 0);
        CHECK_EQ(atomic_load(&back), 4);
    }
    CHECK_EQ(pthread_join(t, NULL), 0);
    gort_chan_unref(from_thread);
}

/* --- more than one ---------------------------------------------------------------------------------------------- */

static void stop_in_turn(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        CHECK_EQ(gort_world_stop(), 0);
        CHECK_EQ(atomic_fetch_add(&owners, 1), 0);
        for (volatile int k = 0; k < 1000; k++)
            ;
        CHECK_EQ(atomic_fetch_sub(&owners, 1), 1);
        CHECK_EQ(gort_world_start(), 0);
    }
}

static void stop_as_goroutine(void *unused)
{
    (void)unused;
    stop_in_turn((int)test_scaled(60, 10));
}

static void *stop_as_thread(void *unused)
{
    stop_as_goroutine(unused);
    return unused;
}

static void loop(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        ;
}

TEST_GO(one_stopper_at_a_time, .procs = "1,2,4", .fuzz = true)
{
    gort_wg wg = {0};
    pthread_t threads[2];
    NEEDS_NATIVE_SPEED();
    CHECK_EQ(gort_go(loop, NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, stop_as_thread, NULL), 0);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_wg_go(&wg, stop_as_goroutine, NULL), 0);
    for (int n = 1; gort_wg_wait_until(&wg, gort_in(GORT_MS)) != 0; n++)
        gort_maxprocs(1 + n % 4); /* which stops the runtime, too */
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    atomic_store(&stop, true);
}

/* --- what the stopper may do ------------------------------------------------------------------------------------ */

static void tell(void *unused)
{
    (void)unused;
    atomic_fetch_add(&back, 1);
}

TEST_GO(the_stopper_goes_on, .procs = "1,2,4")
{
    uint64_t id = gort_id();
    int procs = gort_maxprocs(0);
    CHECK_EQ(gort_world_stop(), 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_go(tell, NULL), 0);
        CHECK_EQ(gort_yield(), 0);
    }
    CHECK_EQ(gort_maxprocs(procs + 3), procs);
    CHECK_EQ(gort_maxprocs(0), procs);
    CHECK_EQ(gort_id(), id);
    usleep(2000);
    CHECK_EQ(atomic_load(&back), 0);
    CHECK_EQ(gort_world_start(), 0);
    for (int64_t until = gort_in(test_seconds(20)); atomic_load(&back) < 10; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "they do not start");
}

static void *start_as_thread(void *unused)
{
    CHECK_EQ(gort_world_start(), -EPERM);
    return unused;
}

TEST_GO(misuse, .procs = "1,2")
{
    pthread_t thread;
    CHECK_EQ(gort_world_start(), -EPERM);
    CHECK_EQ(gort_world_stop(), 0);
    CHECK_EQ(gort_world_stop(), -EBUSY);
    CHECK_EQ(pthread_create(&thread, NULL, start_as_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(gort_world_start(), 0);
    CHECK_EQ(gort_world_start(), -EPERM);
}

static void compute_behind_a_mask(void *at)
{
    sigset_t all, before;
    sigfillset(&all);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, &before), 0);
    while (go_on(HOG))
        continue;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    atomic_store((atomic_bool *)at, true);
}

static void moves_again(long before)
{
    for (int64_t until = gort_in(test_seconds(20)); atomic_load(&moves[HOG]) == before;)
        CHECK_LT(gort_now(), until);
}

/* Who lets no signal in cannot be stopped: it is said, nobody stays stopped, and it works as soon as it
 * can. */
TEST_GO(signals_are_blocked, .procs = "2")
{
    static atomic_bool over;
    gort__world_timeout = 300 * GORT_MS;
    CHECK_EQ(gort_go(compute_behind_a_mask, &over), 0);
    moves_again(0);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_world_stop(), -ETIMEDOUT);
        CHECK_EQ(gort_world_start(), -EPERM);
        moves_again(atomic_load(&moves[HOG]));
    }
    atomic_store(&stop, true);
    while (!atomic_load(&over))
        gort_yield();
    gort__world_timeout = 30 * GORT_SEC;
    CHECK_EQ(gort_world_stop(), 0);
    CHECK_EQ(gort_world_start(), 0);
}

TEST(outside_of_a_run)
{
    CHECK_EQ(gort_world_stop(), -ESRCH);
    CHECK_EQ(gort_world_start(), -EPERM);
}

static int return_with_it_stopped(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(loop, NULL), 0);
    CHECK_EQ(gort_go(tell, NULL), 0);
    gort_sleep(2 * GORT_MS);
    CHECK_EQ(gort_world_stop(), 0);
    return 5;
}

static int stop_once(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_world_stop(), 0);
    CHECK_EQ(gort_world_start(), 0);
    return 6;
}

TEST(main_returns_with_the_world_stopped, .procs = "1,2")
{
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_run(return_with_it_stopped, NULL), 5);
        CHECK_EQ(gort_run(stop_once, NULL), 6);
    }
}

/* A run ends while others stop the world, or wait for their turn to. */
static intptr_t stop_forever(void *unused)
{
    (void)unused;
    while (gort_world_stop() == 0)
        CHECK_EQ(gort_world_start(), 0);
    return 0;
}

static void stop_until_the_end(void *how)
{
    if ((intptr_t)how == 0)
        stop_forever(NULL);
    gort_block(stop_forever, NULL);
}

static void *thread_until_the_end(void *unused)
{
    stop_forever(unused);
    return unused;
}

static int return_soon(void *thread)
{
    CHECK_EQ(pthread_create(thread, NULL, thread_until_the_end, NULL), 0);
    for (intptr_t i = 0; i < 4; i++)
        CHECK_EQ(gort_go(stop_until_the_end, (void *)(i % 2)), 0);
    gort_sleep(3 * GORT_MS);
    return 7;
}

TEST(the_end_beside_stoppers, .procs = "1,2,4")
{
    pthread_t thread;
    for (long i = test_scaled(10, 3); i; i--) {
        CHECK_EQ(gort_run(return_soon, &thread), 7);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
}
