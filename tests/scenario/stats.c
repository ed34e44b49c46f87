/* SPDX-License-Identifier: MIT */
/*
 * stats.c - what gort counts is what happens: goroutines of each kind, threads, queues, hand-offs, preemptions, times; and
 * the text for Prometheus is one.
 * Covers: src/observe/stats.c src/observe/metrics.c src/observe/schedtrace.c src/sched/core/latency.c src/base/hist.h
 * Covers: src/sched/threads/netpoll.c include/gort/stats.h
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "waiting.h"

static atomic_bool stop;
static atomic_long begun;

static gort_stats get(void)
{
    gort_stats s = {.size = sizeof s};
    CHECK_EQ(gort_stats_get(&s), 0);
    CHECK_EQ(s.size, sizeof s);
    CHECK_EQ(s.running + s.runnable + s.preempted + s.waiting + s.blocked + s.detached, s.goroutines);
    CHECK_EQ(s.threads_running + s.threads_searching + s.threads_blocked + s.threads_stopped + s.threads_idle,
             s.threads);
    CHECK_EQ(s.created - s.ended, s.goroutines);
    return s;
}

/* Polls until it is so; what does not come true is a failure with the numbers. */
#define EVENTUALLY(s, condition)                                                                             \
    for (int64_t until_ = soon(); !(condition); gort_sleep(GORT_MS), (s) = get())                            \
    CHECK_MSG(                                                                                               \
        gort_now() < until_,                                                                                 \
        "%s: %lu goroutines: %lu run, %lu runnable, %lu preempted, %lu wait, %lu blocked, %lu detached",     \
        #condition, (unsigned long)(s).goroutines, (unsigned long)(s).running, (unsigned long)(s).runnable,  \
        (unsigned long)(s).preempted, (unsigned long)(s).waiting, (unsigned long)(s).blocked,                \
        (unsigned long)(s).detached)

static void parks(void *never)
{
    gort_chan_recv(never, NULL);
}

static void computes(void *unused)
{
    (void)unused;
    atomic_fetch_add(&begun, 1);
    while (!atomic_load(&stop))
        ;
}

static intptr_t reads(void *fd)
{
    char c;
    return read((int)(intptr_t)fd, &c, 1);
}

static void blocks(void *fd)
{
    gort_block(reads, fd);
}

static void blocks_unannounced(void *fd)
{
    reads(fd);
}

TEST_GO(counts_each_kind, .procs = "1,2,4")
{
    enum { PARKED = 1000, READERS = 10, HOGS = 10 };
    gort_chan *never = gort_chan_new(0, 0);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    gort_stats before = get(), s;
    CHECK_EQ(before.maxprocs, (uint64_t)gort_maxprocs(0));
    CHECK_EQ(before.goroutines, 1);
    CHECK_EQ(before.running, 1);
    for (int i = 0; i < PARKED; i++)
        CHECK_EQ(gort_go(parks, never), 0);
    s = get();
    EVENTUALLY(s, s.waiting == PARKED);
    CHECK_EQ(s.created, before.created + PARKED);
    CHECK_GE(s.switches, before.switches + PARKED);
    for (int i = 0; i < READERS; i++)
        CHECK_EQ(gort_go(blocks, (void *)(intptr_t)ends[0]), 0);
    EVENTUALLY(s, s.blocked == READERS);
    CHECK_GE(s.threads_blocked, READERS);
    CHECK_GE(s.handoffs_announced, 1);
    for (int i = 0; i < HOGS; i++)
        CHECK_EQ(gort_go(computes, NULL), 0);
    s = get();
    CHECK_EQ(s.goroutines, 1 + PARKED + READERS + HOGS);
    EVENTUALLY(s, s.running + s.runnable + s.preempted == 1 + HOGS);
    CHECK_LE(s.running, s.maxprocs + s.preempted);
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        CHECK_EQ(write(ends[1], "x", 1), 1);
    gort_chan_close(never);
    settle();
    s = get();
    CHECK_EQ(s.ended, s.created - 1);
    CHECK_EQ(s.goroutines, 1);
}

TEST_GO(counts_unannounced_calls, .procs = "1,2,4")
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(gort_go(blocks_unannounced, (void *)(intptr_t)ends[0]), 0);
    gort_stats s = get();
    /* The one that nobody waits behind keeps its P: it counts as running. */
    EVENTUALLY(s, s.detached + s.running >= 5 && s.detached >= 1);
    CHECK_GE(s.handoffs_unannounced, 1);
    CHECK_EQ(write(ends[1], "xxxxx", 5), 5);
    settle();
}

TEST_GO(counts_preemptions, .procs = "1,2,4")
{
    gort_stats s = get();
    for (uint64_t i = 0; i < 2 * s.maxprocs; i++)
        CHECK_EQ(gort_go(computes, NULL), 0);
    await(&begun, (long)(2 * s.maxprocs)); /* the later ones begin only if others are stopped */
    s = get();
    CHECK_GE(s.preemptions_asked, 1);
    CHECK_GE(s.preemptions_done, 1);
    atomic_store(&stop, true);
    settle();
}

static void yields(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20000; i++)
        gort_yield();
}

/* One of 244 that yield is followed, and that does not depend on luck. */
TEST_GO(measures_latency_of_those_that_yield, .procs = "1,2,4")
{
    gort_wg wg = {0};
    for (int i = 0; i < 8; i++)
        gort_wg_go(&wg, yields, NULL);
    gort_wg_wait(&wg);
    gort_stats s = get();
    CHECK_GE(s.latency.count, 20);
    CHECK_LT(s.latency.count, 160000 / 50);
    CHECK_GT(gort_histogram_quantile(&s.latency, 0.5), 0);
    CHECK_LT(gort_histogram_quantile(&s.latency, 0.5), test_seconds(1));
}

static gort_chan *ping, *pong;

static void answers(void *unused)
{
    (void)unused;
    int64_t v;
    while (gort_chan_recv(ping, &v) == 1)
        gort_chan_send(pong, &v);
}

TEST_GO(measures_latency_of_those_that_are_woken, .procs = "1,2,4")
{
    int64_t v = 0;
    ping = gort_chan_new(8, 0);
    pong = gort_chan_new(8, 0);
    CHECK_EQ(gort_go(answers, NULL), 0);
    for (int i = 0; i < 10000; i++) {
        CHECK_EQ(gort_chan_send(ping, &v), 0);
        CHECK_EQ(gort_chan_recv(pong, &v), 1);
    }
    gort_chan_close(ping);
    gort_stats s = get();
    CHECK_GE(s.latency.count, 10);
}

static void nothing(void *unused)
{
    (void)unused;
}

TEST_GO(measures_latency_of_new_ones, .procs = "1,2,4")
{
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 256; k++)
            CHECK_EQ(gort_go(nothing, NULL), 0);
        settle();
    }
    gort_stats s = get();
    CHECK_GE(s.latency.count, 5);
    CHECK_EQ(s.created, 1 + 20 * 256);
}

/* Behind one that computes: with one P a wait of nearly a time slice. */
TEST_GO(latency_is_the_wait, .procs = "1", .serial = true)
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: emulators change how fast the processor's counter goes");
    gort_sleep(20 * GORT_MS); /* the monitor learns how fast it goes */
    gort_stats before = get(), s = before;
    for (int round = 0; round < 1000 && s.latency.count < before.latency.count + 3; round++) {
        for (int k = 0; k < 256; k++)
            CHECK_EQ(gort_go(nothing, NULL), 0);
        for (int64_t until = gort_now() + 2 * GORT_MS; gort_now() < until;)
            ; /* shorter than a time slice */
        settle();
        s = get();
    }
    uint64_t n = s.latency.count - before.latency.count, sum = s.latency.sum_ns - before.latency.sum_ns;
    CHECK_GE(n, 1);
    CHECK_GE(sum / n, 1000000);
    CHECK_LT(sum / n, (uint64_t)test_seconds(1));
}

static gort_mutex mutex;
static gort_rwmutex rwmutex;

static void locks(void *unused)
{
    (void)unused;
    gort_mutex_lock(&mutex);
    gort_mutex_unlock(&mutex);
    gort_rwmutex_lock(&rwmutex);
    gort_rwmutex_unlock(&rwmutex);
}

TEST_GO(counts_waits_for_mutexes, .procs = "1,2,4")
{
    gort_wg wg = {0};
    gort_mutex_lock(&mutex);
    gort_rwmutex_rlock(&rwmutex);
    gort_wg_go(&wg, locks, NULL);
    gort_stats s = get();
    EVENTUALLY(s, s.waiting == 1);
    int64_t from = gort_now();
    gort_sleep(20 * GORT_MS);
    gort_mutex_unlock(&mutex);
    for (s = get(); s.mutex_wait_ns < 20 * GORT_MS; s = get()) {
        CHECK(gort_now() < from + LONG_ENOUGH);
        gort_sleep(GORT_MS);
    }
    gort_sleep(20 * GORT_MS);
    gort_rwmutex_runlock(&rwmutex);
    gort_wg_wait(&wg);
    s = get();
    CHECK_GE(s.mutex_wait_ns, 30 * GORT_MS);
    CHECK_LE(s.mutex_wait_ns, (uint64_t)(2 * (gort_now() - from) + 2 * GORT_MS));
}

static void *locks_in_thread(void *unused)
{
    locks(unused);
    return NULL;
}

TEST_GO(counts_waits_of_plain_threads)
{
    pthread_t thread;
    gort_mutex_lock(&mutex);
    CHECK_EQ(pthread_create(&thread, NULL, locks_in_thread, NULL), 0);
    gort_sleep(50 * GORT_MS);
    gort_mutex_unlock(&mutex);
    gort_block_enter();
    pthread_join(thread, NULL);
    gort_block_leave();
    test_log("%lu ns", (unsigned long)get().mutex_wait_ns); /* it may have come too late to wait at all */
}

static void sleeps(void *unused)
{
    (void)unused;
    gort_sleep(GORT_MS);
}

TEST_GO(counts_timers_and_polls, .procs = "1,2,4")
{
    int ends[2];
    char c;
    CHECK_EQ(pipe(ends), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort_go(sleeps, NULL), 0);
    settle();
    gort_stats s = get();
    CHECK_GE(s.timers_fired, 100);
    CHECK_EQ(s.timers, 0);
    CHECK_EQ(s.timer_lateness.count, s.timers_fired);
    gort_timer *far = gort_timer_new(gort_in(3600 * GORT_SEC), 0, nothing, NULL);
    CHECK_EQ(get().timers, 1);
    gort_timer_free(far);
    CHECK_EQ(gort_go(blocks_unannounced, (void *)(intptr_t)ends[0]), 0);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    settle();
    CHECK_EQ(gort_write(ends[1], "x", 1), 1);
    CHECK_EQ(gort_read(ends[0], &c, 1), 1);
    CHECK_EQ(gort_read_until(ends[0], &c, 1, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_GE(get().polls, 1);
}

TEST_GO(counts_stops_of_the_world, .procs = "1,2,4")
{
    gort_stats before = get();
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_world_stop(), 0);
        for (int64_t until = gort_now() + GORT_MS; gort_now() < until;)
            ;
        CHECK_EQ(gort_world_start(), 0);
    }
    gort_stats s = get();
    CHECK_GE(s.stop_total.count, before.stop_total.count + 10);
    CHECK_EQ(s.stop_total.count, s.stop_stopping.count);
    if (!test_under_emulator() && !test_under_valgrind())
        CHECK_GE(s.stop_total.sum_ns - before.stop_total.sum_ns, 4 * GORT_MS); /* ticks may be a guess yet */
    CHECK_LE(s.stop_stopping.sum_ns, s.stop_total.sum_ns);
}

/* Retired Ps keep their counts. */
TEST_GO(keeps_counts_of_retired_ps, .procs = "4")
{
    gort_wg wg = {0};
    for (int i = 0; i < 8; i++)
        gort_wg_go(&wg, yields, NULL);
    gort_wg_wait(&wg);
    gort_stats before = get();
    gort_maxprocs(1);
    gort_stats s = get();
    CHECK_EQ(s.maxprocs, 1);
    CHECK_GE(s.switches, before.switches);
    CHECK_GE(s.latency.count, before.latency.count);
    CHECK_EQ(s.created, before.created);
}

TEST_GO(procs_add_up, .procs = "1,2,4")
{
    gort_stats_proc procs[64];
    int n = gort_stats_procs(procs, 64);
    CHECK_EQ(n, gort_maxprocs(0));
    CHECK_EQ(gort_stats_procs(NULL, 0), n);
    int held = 0;
    for (int i = 0; i < n; i++)
        held += procs[i].thread != 0;
    CHECK_GE(held, 1);
    gort_chan *never = gort_chan_new(0, 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_go(parks, never), 0);
    uint64_t created = 0;
    CHECK_EQ(gort_stats_procs(procs, 64), n);
    for (int i = 0; i < n; i++)
        created += procs[i].created;
    CHECK_EQ(created, 10);
    gort_chan_close(never);
}

TEST_GO(sizes)
{
    struct {
        gort_stats s;
        uint64_t more[8];
    } large = {.s = {.size = sizeof large}};
    gort_stats small = {.size = sizeof small - 8};
    large.more[0] = large.more[7] = 7;
    CHECK_EQ(gort_stats_get(&small), -EINVAL);
    CHECK_EQ(gort_stats_get(&large.s), 0);
    CHECK_EQ(large.s.goroutines, 1);
    CHECK_EQ(large.more[0] + large.more[7], 0);
    for (size_t i = 0; i < sizeof large.s.reserved / sizeof large.s.reserved[0]; i++)
        CHECK_EQ(large.s.reserved[i], 0);
}

TEST(histograms)
{
    gort_histogram h = {.count = 10, .bucket = {[0] = 5, [3] = 4, [GORT_HISTOGRAM_BUCKETS - 1] = 1}},
                   none = {0};
    CHECK_EQ(gort_histogram_edge(0), 128);
    CHECK_EQ(gort_histogram_edge(1), 256);
    CHECK_EQ(gort_histogram_edge(-1), 0);
    CHECK_EQ(gort_histogram_edge(GORT_HISTOGRAM_BUCKETS - 1), INT64_MAX);
    CHECK_EQ(gort_histogram_quantile(&h, 0.5), 128);
    CHECK_EQ(gort_histogram_quantile(&h, 0.51), 1024);
    CHECK_EQ(gort_histogram_quantile(&h, 0.9), 1024);
    CHECK_EQ(gort_histogram_quantile(&h, 1), INT64_MAX);
    CHECK_EQ(gort_histogram_quantile(&none, 0.5), 0);
}

TEST(outside_of_runs)
{
    gort_stats s = {.size = sizeof s};
    gort_stats_proc p;
    char text[16] = "x";
    CHECK_EQ(gort_stats_get(&s), -ESRCH);
    CHECK_EQ(gort_stats_procs(&p, 1), -ESRCH);
    CHECK_EQ(gort_stats_text(text, sizeof text, GORT_STATS_PROMETHEUS), -ESRCH);
    CHECK_EQ(gort_stats_write(1, GORT_STATS_PROMETHEUS), -ESRCH);
    CHECK_STR(text, "");
}

/* --- text --------------------------------------------------------------------------------------- */

static char text[65536];

/* The value of a line. */
static double value_of(const char *name)
{
    char start[128];
    snprintf(start, sizeof start, "\n%s ", name);
    const char *at = strstr(text, start);
    CHECK_MSG(at, "no line for %s", name);
    return strtod(at + strlen(start), NULL);
}

TEST_GO(text_is_whole, .procs = "1,2,4")
{
    gort_sleep(GORT_MS);
    int len = gort_stats_text(text, sizeof text, GORT_STATS_PROMETHEUS);
    CHECK_GT(len, 1000);
    CHECK_LT(len, 32768);
    CHECK_EQ(strlen(text), len);
    CHECK_EQ(text[len - 1], '\n');
    CHECK(value_of("gort_sched_goroutines_goroutines") == 1);
    CHECK(value_of("gort_sched_gomaxprocs_threads") == gort_maxprocs(0));
    CHECK(value_of("gort_sched_timer_lateness_seconds_count") >= 1);
    CHECK(value_of("gort_sched_timer_lateness_seconds_bucket{le=\"+Inf\"}") >= 1);
    CHECK(value_of("gort_sync_mutex_wait_total_seconds_total") == 0);
    CHECK(!strstr(text, "# EOF"));
    len = gort_stats_text(text, sizeof text, GORT_STATS_OPENMETRICS);
    CHECK_STR(text + len - 6, "# EOF\n");
    CHECK(strstr(text, "# TYPE gort_sched_switches counter\n") != NULL);
    CHECK(strstr(text, "\ngort_sched_switches_total ") != NULL);
    CHECK_EQ(gort_stats_text(text, sizeof text, 2), -EINVAL);
}

TEST_GO(text_is_cut_off)
{
    char little[40];
    memset(little, 'x', sizeof little);
    CHECK_GT(gort_stats_text(little, 30, GORT_STATS_PROMETHEUS), 1000);
    CHECK_EQ(strlen(little), 29);
    CHECK_EQ(little[30], 'x');
    CHECK_GT(gort_stats_text(NULL, 0, GORT_STATS_PROMETHEUS), 1000);
}

TEST_GO(write_writes_it_all, .procs = "1,2")
{
    int file = memfd_create("metrics", 0);
    CHECK_GE(file, 0);
    CHECK_EQ(gort_stats_write(file, GORT_STATS_OPENMETRICS), 0);
    ssize_t n = pread(file, text, sizeof text - 1, 0);
    CHECK_GT(n, 1000);
    text[n] = '\0';
    CHECK_STR(text + n - 6, "# EOF\n");
    CHECK_EQ(gort_stats_write(-1, GORT_STATS_PROMETHEUS), -EBADF);
    CHECK_EQ(gort_stats_write(file, 7), -EINVAL);
    int dev_full = open("/dev/full", O_WRONLY);
    CHECK_EQ(gort_stats_write(dev_full, GORT_STATS_PROMETHEUS), -ENOSPC);
}

/* Prometheus' own tool finds nothing to complain about. */
TEST_GO(promtool_accepts_it, .procs = "1,2", .native = TEST_FORKS)
{
    if (system("command -v promtool >/dev/null 2>&1") != 0)
        SKIP("needs promtool, which reads what Prometheus reads: install the package prometheus");
    FILE *tool = popen("promtool check metrics >&2", "w");
    CHECK(tool != NULL);
    int len = gort_stats_text(text, sizeof text, GORT_STATS_PROMETHEUS);
    CHECK_EQ(fwrite(text, 1, (size_t)len, tool), len);
    CHECK_EQ(pclose(tool), 0);
}

/* --- many at the same time ---------------------------------------------------------------------- */

static void asks(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        gort_stats_proc procs[4];
        get();
        CHECK_GE(gort_stats_procs(procs, 4), 1);
        atomic_fetch_add(&begun, 1);
        gort_yield();
    }
}

static void *asks_in_thread(void *unused)
{
    gort_stats s = {.size = sizeof s};
    (void)unused;
    while (!atomic_load(&stop))
        if (gort_stats_get(&s) == -ESRCH)
            usleep(100);
    return NULL;
}

TEST_GO(asked_while_all_goes_on, .procs = "1,2,4", .fuzz = true)
{
    gort_wg wg = {0};
    int64_t v = 0;
    ping = gort_chan_new(8, 0);
    pong = gort_chan_new(8, 0);
    CHECK_EQ(gort_go(answers, NULL), 0);
    for (int i = 0; i < 3; i++)
        gort_wg_go(&wg, asks, NULL);
    for (int i = 0; i < 300; i++) {
        CHECK_EQ(gort_chan_send(ping, &v), 0);
        CHECK_EQ(gort_chan_recv(pong, &v), 1);
        CHECK_EQ(gort_go(i % 2 ? sleeps : nothing, NULL), 0);
        if (i % 100 == 0)
            gort_maxprocs(1 + i / 100);
    }
    await(&begun, 100);
    atomic_store(&stop, true);
    gort_wg_wait(&wg);
    gort_chan_close(ping);
    settle();
}

static int short_run(void *unused)
{
    (void)unused;
    for (int i = 0; i < 10; i++)
        gort_go(nothing, NULL);
    return gort_sleep(GORT_MS);
}

/* A plain thread asks while runs begin and end. */
TEST(asked_while_runs_end, .procs = "1,4")
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, asks_in_thread, NULL), 0);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_run(short_run, NULL), 0);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* --- GORT_DEBUG=schedtrace ---------------------------------------------------------------------- */

#define SCHED_LINE                                                                                                   \
    "^SCHED [0-9]+ms: gomaxprocs=[0-9]+ idleprocs=[0-9]+ threads=[0-9]+ spinningthreads=[0-9]+ needspinning=[0-9]+ " \
    "idlethreads=[0-9]+ runqueue=[0-9]+ "

TEST_GO(schedtrace, .procs = "1,2,4", .env = "GORT_DEBUG=schedtrace=5",
        .expect = SCHED_LINE "\\[( [0-9]+)+ \\] schedticks=\\[( [0-9]+)+ \\]$")
{
    gort_sleep(100 * GORT_MS);
}

TEST_GO(
    scheddetail, .procs = "1,2,4", .env = "GORT_DEBUG=schedtrace=5,scheddetail=1",
    .expect = SCHED_LINE
    "gcwaiting=false nmidlelocked=0 stopwait=0 sysmonwait=(true|false)$\n"
    "^  P0: status=[01] schedtick=[0-9]+ syscalltick=[0-9]+ m=([0-9]+|nil) runqsize=[0-9]+ gfreecnt=0 timerslen=[0-9]+$\n"
    "^  M0: p=([0-9]+|nil) curg=([0-9]+|nil) mallocing=0 throwing=0 preemptoff= locks=0 dying=0 "
    "spinning=(true|false) blocked=(true|false) lockedg=nil$\n"
    "^  G1: status=4\\(sleep\\) m=nil lockedm=nil$")
{
    gort_sleep(100 * GORT_MS);
}

/* Standard error is a pipe that nobody reads: the run must not wait for it, and new threads still come. */
TEST_GO(schedtrace_waits_for_nobody, .procs = "1,2,4", .env = "GORT_DEBUG=schedtrace=1,scheddetail=1")
{
    int ends[2], saved = dup(2), fill[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(pipe(fill), 0);
    dup2(ends[1], 2);
    gort_sleep(100 * GORT_MS); /* the pipe is full after some 200 of them, at the latest here: */
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], "full", 4) > 0)
        ;
    fcntl(ends[1], F_SETFL, 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(gort_go(blocks, (void *)(intptr_t)fill[0]), 0);
    gort_stats s = get();
    for (int64_t until = soon(); s.blocked < 8 && gort_now() < until; s = get())
        gort_sleep(GORT_MS);
    dup2(saved, 2);
    CHECK_EQ(s.blocked, 8);
    CHECK_EQ(write(fill[1], "12345678", 8), 8);
    settle();
}
