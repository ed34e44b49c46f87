/* SPDX-License-Identifier: MIT */
/*
 * sysmon.c - the monitor thread costs little when there is little to watch, sees what it must without an fd,
 * and takes Ps from sleepers without starving anybody.
 * Covers: src/sched/monitor/sysmon.c src/sched/monitor/sysmon_sleep.c
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sys/resource.h>

#include "os/force.h"

#include "waiting.h"

static atomic_bool stop;

static void stops_it(void *unused)
{
    (void)unused;
    atomic_store(&stop, true);
}

/* How often the monitor went to sleep so far. */
static long sleeps_of_the_monitor(void)
{
    char path[300], line[256];
    long n = -1;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *d; n < 0 && (d = readdir(tasks)) != NULL;) {
        bool found = false;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", d->d_name);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) {
            found |= strcmp(line, "Name:\tgort-sysmon\n") == 0;
            if (found)
                sscanf(line, "voluntary_ctxt_switches: %ld", &n);
        }
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return n;
}

/* A program that is idle for a moment, again and again: the monitor looks now and then, not at each of
 * them. */
TEST_GO(it_rests_between_bursts, .procs = "1,2,4")
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: valgrind's and emulators' own threads would be counted too");
    for (int64_t until = soon(); sleeps_of_the_monitor() < 0; gort_sleep(GORT_MS))
        CHECK(gort_now() < until);
    long before = sleeps_of_the_monitor();
    int64_t from = gort_now();
    for (int i = 0; i < 2000; i++)
        CHECK_EQ(gort_sleep(50 * GORT_US), 0);
    long ms = (long)((gort_now() - from) / GORT_MS), sleeps = sleeps_of_the_monitor() - before;
    test_log("%ld times in %ld ms", sleeps, ms);
    CHECK_LT(sleeps, 4 * ms + 400); /* it was twice for each of them, and more */
}

/* A program that waits for long does not wake it at all, once it has come to rest. */
TEST_GO(it_sleeps_while_all_do, .procs = "1,2")
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: valgrind's and emulators' own threads would be counted too");
    long before, sleeps;
    int64_t until = soon();
    do {
        before = sleeps_of_the_monitor();
        gort_sleep(300 * GORT_MS);
        sleeps = sleeps_of_the_monitor() - before;
        CHECK_MSG(gort_now() < until, "%ld times in 300 ms", sleeps);
    } while (before < 0 || sleeps >= 20);
}

/* Nor does one that does a little now and then: what is over in no time needs no monitor. */
TEST_GO(it_is_not_woken_for_a_little, .procs = "1,2,4")
{
    enum { TIMES = 50 };
    if (test_under_emulator() || test_under_valgrind() || test_under_sanitizer())
        SKIP("only natively, without sanitizers: a little takes longer there");
    if (gort__os_force.no_timerfd)
        SKIP("not with GORT_DEBUG=notimerfd: a thread is woken to be told when to wake");
    long before, sleeps;
    int64_t until = soon();
    do { /* again if the machine was busy with something else */
        before = sleeps_of_the_monitor();
        for (int i = 0; i < TIMES; i++)
            CHECK_EQ(gort_sleep(5 * GORT_MS), 0);
        sleeps = sleeps_of_the_monitor() - before;
        test_log("%ld times", sleeps);
        CHECK_MSG(gort_now() < until, "%ld times in %d sleeps", sleeps, TIMES);
    } while (before < 0 || sleeps > TIMES / 5);
}

/* But it is there when the little becomes more: a goroutine that computes right after all were idle lets
 * others run. */
TEST_GO(it_guards_who_begins_to_compute, .procs = "1")
{
    for (int i = 0; i < 20; i++) {
        atomic_store(&stop, false);
        CHECK_EQ(gort_sleep((5 + i % 3) * GORT_MS), 0);
        CHECK_EQ(gort_go(stops_it, NULL), 0);
        while (!atomic_load(&stop)) /* without a call */
            ;
    }
}

/* One that sleeps often and briefly, without a call of ours, is never found asleep at two looks in a row. */
TEST_GO(short_sleeps_do_not_keep_a_p, .procs = "1")
{
    int64_t until = gort_in(test_seconds(15));
    for (int i = 0; i < 20; i++) {
        atomic_store(&stop, false);
        CHECK_EQ(gort_go(stops_it, NULL), 0);
        while (!atomic_load(&stop)) {
            CHECK_MSG(gort_now() < until, "%d of 20 had a turn", i);
            usleep(200 + (unsigned)i % 4 * 100);
        }
    }
}

/* --- many that compute a little and sleep a little ----------------------------------------------------------- */

static atomic_long begun;

static void compute_and_sleep(void *unused)
{
    struct timespec t;
    (void)unused;
    while (!atomic_load(&stop)) {
        for (int64_t from = -1, now = 0; now - from < 300 * GORT_US; from = from < 0 ? now : from) {
            clock_gettime(CLOCK_MONOTONIC, &t);
            now = t.tv_sec * GORT_SEC + t.tv_nsec;
        }
        usleep(500);
    }
}

static void begin(void *unused)
{
    (void)unused;
    atomic_fetch_add(&begun, 1);
}

/* Ps are lost to sleepers all the time, and those who came back are held: they must not go before all others
 * for ever. */
TEST_GO(sleepers_that_compute_starve_nobody, .procs = "1,2")
{
    enum { N = 32, NEW = 3 };
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: valgrind and emulators run threads one at a time, or too slowly");
    for (int i = 0; i < N; i++)
        CHECK_EQ(gort_go(compute_and_sleep, NULL), 0);
    int64_t from = gort_now();
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort_sleep(GORT_MS), 0);
    int64_t woken = gort_now();
    for (int i = 0; i < NEW; i++)
        CHECK_EQ(gort_go(begin, NULL), 0);
    for (int64_t until = soon(); atomic_load(&begun) < NEW; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "new goroutines do not start");
    test_log("a hundred sleeps took %ld ms, new ones began after %ld ms", (long)((woken - from) / GORT_MS),
             (long)((gort_now() - woken) / GORT_MS));
    atomic_store(&stop, true);
}

/* --- without an fd to look at threads with ------------------------------------------------------------------ */

static int ends[2];
static int taken[64], taken_n;

static void take_all_fds(void)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 48;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
        taken[taken_n++] = fd;
    CHECK_EQ(errno, EMFILE);
}

static void give_all_back(void)
{
    while (taken_n)
        CHECK_EQ(close(taken[--taken_n]), 0);
}

/* Each byte comes only after this goroutine has had its turns beside the one that waits for it. */
static void write_slowly(void *unused)
{
    (void)unused;
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++)
            CHECK_EQ(gort_sleep(GORT_MS), 0);
        CHECK_EQ(write(ends[1], &"hello"[i], 1), 1);
    }
}

TEST_GO(a_call_is_noticed_when_no_fd_is_left, .procs = "1,2")
{
    char text[6] = "", more[6] = "";
    CHECK_EQ(pipe(ends), 0);
    take_all_fds();
    CHECK_EQ(gort_go(write_slowly, NULL), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(read(ends[0], text + i, 1), 1);
    CHECK_STR(text, "hello");
    CHECK_EQ(usleep(20000), 0); /* nobody cuts it short */
    CHECK(open("/dev/null", O_RDONLY) < 0);
    give_all_back();
    CHECK_EQ(gort_go(write_slowly, NULL), 0);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(read(ends[0], more + i, 1), 1);
    CHECK_STR(more, "hello");
}

static atomic_bool polling, cut_short;

static void wait_in_poll(void *unused)
{
    struct pollfd fd = {ends[0], POLLIN, 0};
    (void)unused;
    atomic_store(&polling, true);
    if (poll(&fd, 1, -1) < 0)
        atomic_store(&cut_short, true);
}

static int end_beside_a_call(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_go(wait_in_poll, NULL), 0);
    for (int64_t until = soon(); !atomic_load(&polling); gort_sleep(GORT_MS))
        CHECK(gort_now() < until);
    take_all_fds();
    return 3;
}

static int do_nothing(void *unused)
{
    return unused != NULL;
}

static bool alone(void *before)
{
    return test_thread_count() <= *(int *)before;
}

/* The threads of this process, once those that have been joined are gone: the kernel counts them a moment
 * longer. */
static int threads_left(void)
{
    int most = test_under_sanitizer() || test_under_emulator() ? 2 : 1;
    CHECK(test_eventually(alone, &most, 30));
    int least = test_thread_count();
    for (int i = 0; i < 50; i++) {
        int now = test_thread_count();
        least = now < least ? now : least;
        usleep(1000);
    }
    return least;
}

/* One in a call at the end of a run is not disturbed: its thread ends with the call. */
TEST(a_call_at_the_end_when_no_fd_is_left, .procs = "1,2")
{
    CHECK_EQ(gort_run(do_nothing, NULL), 0); /* a sanitizer may need a thread of its own from now on */
    int before = threads_left();
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(gort_run(end_beside_a_call, NULL), 3);
    give_all_back();
    CHECK(test_thread_count() > before);
    CHECK_EQ(write(ends[1], "x", 1), 1);
    CHECK(test_eventually(alone, &before, 30));
    CHECK(!atomic_load(&cut_short));
}
