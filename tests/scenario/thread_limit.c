/* SPDX-License-Identifier: MIT */
/*
 * thread_limit.c - more goroutines that block or compute than gort_config.max_threads: they wait for a
 * thread, it is said once, and those who need none for long, such as tickers, go on.
 * Covers: src/sched/core/tight.c
 *
 * What must not starve is counted in rounds of what it competes with, not in time: a ticker runs many times
 * while a hundred calls wait for their turns, and at most as many calls are in progress at a time as there
 * are threads.
 */
#include <gort.h>

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

#define LIMIT 8
#define CALLS 100

static const gort_config limited = {.max_threads = LIMIT};
static atomic_int in_call, most_in_call, calls_done, ticks;
static atomic_bool stop;
static char text[1 << 16];

/* --- what standard error gets --------------------------------------------------------------------- */

static int captured, saved;

static void capture(void)
{
    saved = dup(2);
    captured = memfd_create("stderr", 0);
    CHECK(saved >= 0 && captured >= 0);
    dup2(captured, 2);
}

static int times_said(const char *what)
{
    ssize_t n = pread(captured, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    int times = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++)
        times++;
    return times;
}

static void release(void)
{
    dup2(saved, 2);
    test_log("%s", text);
}

/* --- blocking calls ------------------------------------------------------------------------------- */

enum { UNANNOUNCED, ANNOUNCED, BLOCK };
static int way;

static void nap(void)
{
    int now = atomic_fetch_add(&in_call, 1) + 1, most = atomic_load(&most_in_call);
    while (now > most && !atomic_compare_exchange_weak(&most_in_call, &most, now))
        ;
    usleep(20000);
    atomic_fetch_sub(&in_call, 1);
    atomic_fetch_add(&calls_done, 1);
}

static intptr_t nap_call(void *unused)
{
    (void)unused;
    nap();
    return 0;
}

static void call(void *unused)
{
    (void)unused;
    if (way == BLOCK) {
        gort_block(nap_call, NULL);
    } else if (way == ANNOUNCED) {
        gort_block_enter();
        nap();
        gort_block_leave();
    } else {
        nap();
    }
}

static void tick(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        gort_sleep(5 * GORT_MS);
        atomic_fetch_add(&ticks, 1);
    }
}

static int many_calls(void *as)
{
    gort_wg calls = {0}, ticker = {0};
    way = (int)(intptr_t)as;
    CHECK_EQ(gort_wg_go(&ticker, tick, NULL), 0);
    for (int i = 0; i < CALLS; i++)
        CHECK_EQ(gort_wg_go(&calls, call, NULL), 0);
    gort_wg_wait(&calls);
    int ticked = atomic_load(&ticks);
    atomic_store(&stop, true);
    gort_wg_wait(&ticker);
    test_log("at most %d calls at a time, %d ticks", atomic_load(&most_in_call), ticked);
    CHECK_EQ(atomic_load(&calls_done), CALLS);
    CHECK_LE(atomic_load(&most_in_call), LIMIT);
    /* All threads but the last can be in calls. One that is not used for want of a wake-up is seen as fewer
     * calls at a time. */
    CHECK_GE(atomic_load(&most_in_call), LIMIT - 2);
    /* In each round of calls the ticker runs: without a thread for it, it would run when all calls are
     * over. */
    CHECK_GE(ticked, CALLS / LIMIT);
    return 0;
}

static void run_calls(int as)
{
    capture();
    int got = gort_run_with(&limited, many_calls, (void *)(intptr_t)as);
    int times = times_said("gort: all 8 threads (gort_config.max_threads)");
    release();
    CHECK_EQ(got, 0);
    CHECK_EQ(times, 1);
}

TEST(unannounced_calls_wait_for_a_thread, .procs = "1,2,4")
{
    run_calls(UNANNOUNCED);
}

TEST(announced_calls_wait_for_a_thread, .procs = "1,2,4")
{
    run_calls(ANNOUNCED);
}

TEST(block_waits_for_a_thread, .procs = "1,2,4", .fuzz = true)
{
    run_calls(BLOCK);
}

/* --- a pool of workers: none of them is new when it blocks ---------------------------------------- */

static gort_chan *jobs;

static void work(void *unused)
{
    (void)unused;
    int job;
    while (gort_chan_recv(jobs, &job) == 1)
        call(NULL);
}

static int worker_pool(void *as)
{
    gort_wg workers = {0}, ticker = {0};
    way = (int)(intptr_t)as;
    jobs = gort_chan_new(sizeof(int), 0);
    CHECK(jobs);
    for (int i = 0; i < 3 * LIMIT; i++)
        CHECK_EQ(gort_wg_go(&workers, work, NULL), 0);
    CHECK_EQ(gort_wg_go(&ticker, tick, NULL), 0);
    for (int i = 0; i < 2 * CALLS; i++)
        CHECK_EQ(gort_chan_send(jobs, &i), 0);
    gort_chan_close(jobs);
    gort_wg_wait(&workers);
    int ticked = atomic_load(&ticks);
    atomic_store(&stop, true);
    gort_wg_wait(&ticker);
    test_log("at most %d calls at a time, %d ticks", atomic_load(&most_in_call), ticked);
    CHECK_EQ(atomic_load(&calls_done), 2 * CALLS);
    CHECK_GE(ticked, CALLS / LIMIT);
    gort_chan_unref(jobs);
    return 0;
}

TEST(workers_wait_for_a_thread, .procs = "1,2,4")
{
    CHECK_EQ(gort_run_with(&limited, worker_pool, (void *)(intptr_t)UNANNOUNCED), 0);
}

/* --- bound goroutines ------------------------------------------------------------------------------ */

static gort_wg gate;
static atomic_int through;

static void wait_tied(void *unused)
{
    (void)unused;
    gort_lock_thread();
    gort_wg_wait(&gate);
    atomic_fetch_add(&through, 1);
    gort_unlock_thread();
}

static int many_tied(void *unused)
{
    (void)unused;
    gort_wg all = {0};
    gort_wg_add(&gate, 1);
    for (int i = 0; i < 5 * LIMIT; i++)
        CHECK_EQ(gort_wg_go(&all, wait_tied, NULL), 0);
    while (!times_said("gort: all 8 threads"))
        gort_sleep(GORT_MS);
    CHECK_EQ(atomic_load(&through), 0);
    gort_wg_done(&gate);
    gort_wg_wait(&all);
    return atomic_load(&through);
}

TEST(tied_goroutines_wait_for_a_thread, .procs = "1,2,4")
{
    capture();
    int got = gort_run_with(&limited, many_tied, NULL), times = times_said("gort: all 8 threads");
    release();
    CHECK_EQ(got, 5 * LIMIT);
    CHECK_EQ(times, 1);
}

/* --- the last thread is used after all, if nobody else needs it ----------------------------------- */

static sem_t posted;

static void wait_for_post(void *unused)
{
    (void)unused;
    atomic_fetch_add(&in_call, 1);
    while (sem_wait(&posted))
        ;
}

static void post_all(void *unused)
{
    (void)unused;
    for (int i = 0; i < LIMIT - 1; i++)
        sem_post(&posted);
}

static int wait_for_the_last(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    CHECK_EQ(sem_init(&posted, 0, 0), 0);
    for (int i = 0; i < LIMIT - 1; i++)
        CHECK_EQ(gort_wg_go(&wg, wait_for_post, NULL), 0);
    while (atomic_load(&in_call) < LIMIT - 1) /* before the one that lets them go on is there */
        gort_sleep(GORT_MS);
    CHECK_EQ(gort_wg_go(&wg, post_all, NULL), 0);
    gort_wg_wait(&wg);
    return 0;
}

TEST(blocked_ones_wait_for_one_without_a_thread, .procs = "1,2,4")
{
    CHECK_EQ(gort_run_with(&limited, wait_for_the_last, NULL), 0);
}

/* --- the dump ------------------------------------------------------------------------------------- */

static int dump_it(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    CHECK_EQ(sem_init(&posted, 0, 0), 0);
    for (int i = 0; i < 3 * LIMIT; i++)
        CHECK_EQ(gort_wg_go(&wg, wait_for_post, NULL), 0);
    unsigned threads = 0, most = 0, waiting = 0;
    while (waiting < LIMIT) { /* until those that block have come so far */
        gort_sleep(GORT_MS);
        CHECK_EQ(ftruncate(captured, 0), 0);
        CHECK_EQ(lseek(captured, 0, SEEK_SET), 0);
        gort_dump(captured);
        CHECK_EQ(times_said(" threads of at most "), 1);
        const char *line = strstr(text, " threads of at most ");
        while (line[-1] != ' ')
            line--;
        CHECK_EQ(sscanf(line, "%u threads of at most %u, %u goroutines", &threads, &most, &waiting), 3);
    }
    for (int i = 0; i < 3 * LIMIT; i++)
        sem_post(&posted);
    gort_wg_wait(&wg);
    CHECK_EQ(threads, LIMIT);
    CHECK_EQ(most, LIMIT);
    return 0;
}

TEST(the_dump_says_how_many_wait, .procs = "1,2,4")
{
    capture();
    int got = gort_run_with(&limited, dump_it, NULL);
    release();
    CHECK_EQ(got, 0);
}

/* --- goroutines that compute ---------------------------------------------------------------------- */

static atomic_bool enough;
static atomic_int computing;

static void compute(void *unused)
{
    (void)unused;
    atomic_fetch_add(&computing, 1);
    while (!atomic_load_explicit(&enough, memory_order_relaxed))
        ;
}

/* As many as there are threads, and a ticker: the last one starts when another has ended. */
static int as_many_hogs_as_threads(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    for (int i = 0; i < LIMIT + 2; i++)
        CHECK_EQ(gort_wg_go(&wg, compute, NULL), 0);
    for (int i = 0; i < 100; i++)
        gort_sleep(5 * GORT_MS);
    test_log("%d of %d compute", atomic_load(&computing), LIMIT + 2);
    CHECK_LT(atomic_load(&computing), LIMIT);
    atomic_store(&enough, true);
    gort_wg_wait(&wg);
    return atomic_load(&computing);
}

TEST(a_ticker_beside_as_many_hogs_as_threads, .procs = "1,2,4")
{
    CHECK_EQ(gort_run_with(&limited, as_many_hogs_as_threads, NULL), LIMIT + 2);
}

static void sleep_then_compute(void *unused)
{
    (void)unused;
    gort_sleep(GORT_MS);
    compute(NULL);
}

static void *end_them(void *unused)
{
    while (!times_said("goroutines that compute use all"))
        usleep(1000);
    atomic_store(&enough, true);
    return unused;
}

/* Goroutines that have run before take the last thread, too: nothing else runs, which is said. */
static int more_hogs_than_threads(void *unused)
{
    (void)unused;
    gort_wg wg = {0};
    for (int i = 0; i < LIMIT + 4; i++)
        CHECK_EQ(gort_wg_go(&wg, sleep_then_compute, NULL), 0);
    gort_wg_wait(&wg);
    return 0;
}

TEST(hogs_on_all_threads_are_said, .procs = "1,2,4")
{
    pthread_t t;
    capture();
    CHECK_EQ(pthread_create(&t, NULL, end_them, NULL), 0);
    int got = gort_run_with(&limited, more_hogs_than_threads, NULL);
    pthread_join(t, NULL);
    int times = times_said("goroutines that compute use all");
    release();
    CHECK_EQ(got, 0);
    CHECK_EQ(times, 1);
}
