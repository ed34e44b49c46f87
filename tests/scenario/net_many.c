/* SPDX-License-Identifier: MIT */
/*
 * net_many.c - many connections; I/O beside goroutines that never wait; the count of those who wait.
 * Covers: src/poll/poll.c src/poll/table.c src/sched/threads/netpoll.c src/os/linux/epoll.c
 */
#include <limits.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "netting.h"
#include "poll/poll.h"
#include "sched/life/life.h"

static atomic_long served, asked;

static void echo(int fd)
{
    char buf[64];
    for (ssize_t n; (n = gort_read(fd, buf, sizeof buf)) > 0;)
        CHECK_EQ(gort_write_all(fd, buf, (size_t)n), n);
    gort_close(fd);
    atomic_fetch_add(&served, 1);
}

static void serve(int listener)
{
    for (int fd; (fd = gort_accept(listener)) >= 0;)
        CHECK_EQ(GORT_GO(echo, fd), 0);
}

/* How many connections fit: two fds each. */
static long may_have(long wanted)
{
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    long fit = ((long)limit.rlim_cur - 64) / 2;
    return fit < wanted ? fit : wanted;
}

static int *fds;

static void ask(long i)
{
    char out[16], in[16];
    snprintf(out, sizeof out, "%ld", i);
    CHECK_EQ(gort_write_all(fds[i], out, sizeof out), sizeof out);
    CHECK_EQ(gort_read_full(fds[i], in, sizeof in), sizeof in);
    CHECK_STR(in, out);
    atomic_fetch_add(&asked, 1);
}

/* n connections, all idle; then `active` of them are used `rounds` times, at once; then all are closed. */
static void many(long wanted, long active, int rounds)
{
    char addr[64];
    int listener = listen_here(addr, sizeof addr);
    long n = may_have(wanted);
    fds = malloc((size_t)n * sizeof *fds);
    CHECK_EQ(GORT_GO(serve, listener), 0);
    long before = test_rss_kb();
    for (long i = 0; i < n; i++) {
        fds[i] = gort_dial("tcp", addr);
        CHECK_MSG(fds[i] >= 0, "connection %ld: %s", i, gort_strerror(fds[i]));
    }
    test_log("%ld connections, %ld KiB", n, test_rss_kb() - before);
    for (int r = 0; r < rounds; r++) {
        long step = n / active ? n / active : 1, used = 0;
        atomic_store(&asked, 0);
        for (long i = 0; i < n; i += step, used++)
            CHECK_EQ(GORT_GO(ask, i), 0);
        await(&asked, used);
    }
    for (long i = 0; i < n; i++)
        CHECK_EQ(gort_close(fds[i]), 0);
    await(&served, n);
    CHECK_EQ(gort_close(listener), 0);
    settle();
    CHECK_EQ(gort__poll_pending(), 0);
    free(fds);
}

TEST_GO(a_thousand_connections, .procs = "1,2,4", .fuzz = true)
{
    many(test_scaled(1000, 100), test_scaled(1000, 100), 3);
}

TEST_GO(ten_thousand_connections)
{
    if (test_under_sanitizer() || test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: too slow with the tools");
    many(10000, 100, 5);
}

/* --- beside others ---------------------------------------------------------------------------- */

static atomic_long stop;

static void yields(void)
{
    while (!atomic_load(&stop)) {
        for (volatile int i = 0; i < 2000; i++)
            ;
        gort_yield();
    }
}

/* Those who wait for fds get their share although the Ps are never idle. */
TEST_GO(io_beside_yielding_goroutines, .procs = "1,2")
{
    char byte = 'x';
    int ends[2], rounds = (int)test_scaled(200, 20);
    tcp_pair(ends);
    CHECK_EQ(GORT_GO(echo, ends[1]), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(GORT_GO(yields), 0);
    int64_t from = gort_now();
    for (int i = 0; i < rounds; i++) {
        CHECK_EQ(gort_write_all(ends[0], &byte, 1), 1);
        CHECK_EQ(gort_read(ends[0], &byte, 1), 1);
    }
    test_log("%d round trips in %ld us", rounds, (long)((gort_now() - from) / 1000));
    CHECK_LT(gort_now() - from, test_seconds(30));
    atomic_store(&stop, 1);
    CHECK_EQ(gort_close(ends[0]), 0);
    settle();
}

static atomic_long hogs;

static void hog(void)
{
    atomic_fetch_add(&hogs, 1);
    while (!atomic_load(&stop))
        for (volatile int i = 0; i < 1000; i++)
            ;
    atomic_fetch_sub(&hogs, 1);
}

/* The same beside goroutines that compute and never call: more of them than Ps. */
TEST_GO(io_beside_hogs, .procs = "1,2,4")
{
    char byte = 'x';
    int ends[2], rounds = (int)test_scaled(20, 5);
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: too slow under valgrind and emulators");
    tcp_pair(ends);
    CHECK_EQ(GORT_GO(echo, ends[1]), 0);
    for (int i = 0; i < 2 * gort_maxprocs(0); i++)
        CHECK_EQ(GORT_GO(hog), 0);
    await(&hogs, gort_maxprocs(0));
    for (int i = 0; i < rounds; i++) {
        CHECK_EQ(gort_write_all(ends[0], &byte, 1), 1);
        CHECK_EQ(gort_read_until(ends[0], &byte, 1, soon()), 1);
    }
    CHECK_GT(hogs, 0);
    atomic_store(&stop, 1);
    CHECK_EQ(gort_close(ends[0]), 0);
    settle();
}

/* --- a burst ---------------------------------------------------------------------------------------- */

enum { BURST = 64 };
static int burst_ends[BURST][2];
static atomic_long burst_ps[BURST], burst_done;

static void read_and_compute(long i)
{
    char byte;
    CHECK_EQ(gort_read(burst_ends[i][0], &byte, 1), 1);
    atomic_store(&burst_ps[i], (long)(uintptr_t)gort__load(&gort__m_self()->p, RELAXED));
    struct timespec t;
    for (int64_t from = -1, now = 0; now - from < 3 * GORT_MS;) { /* of CPU time */
        CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
        now = t.tv_sec * GORT_SEC + t.tv_nsec;
        from = from < 0 ? now : from;
    }
    atomic_fetch_add(&burst_done, 1);
}

static void *poke_all(void *unused)
{
    for (int i = 0; i < BURST; i++)
        CHECK_EQ(write(burst_ends[i][1], "x", 1), 1);
    return unused;
}

/* Many become ready at once, found by one P: others take their part of the work. */
TEST_GO(a_burst_is_shared, .procs = "2,4")
{
    pthread_t thread;
    int ps = 0;
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively: valgrind and emulators run threads one at a time");
    for (long i = 0; i < BURST; i++) {
        CHECK_EQ(gort_pipe(burst_ends[i]), 0);
        CHECK_EQ(GORT_GO(read_and_compute, i), 0);
    }
    await_waiting("io read", BURST);
    CHECK_EQ(pthread_create(&thread, NULL, poke_all, NULL), 0);
    gort_block_enter();
    CHECK_EQ(pthread_join(thread, NULL), 0);
    gort_block_leave();
    while (atomic_load(&burst_done) < BURST)
        gort_sleep(GORT_MS);
    for (int i = 0; i < BURST; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++)
            seen |= burst_ps[k] == burst_ps[i];
        ps += !seen;
        close_pair(burst_ends[i]);
    }
    CHECK_GE(ps, 2);
}

/* --- in turn ------------------------------------------------------------------------------------------ */

enum { PLAYERS = 1000 };
static struct {
    int fds[PLAYERS];
    atomic_long turns[PLAYERS];
} game;

/* Two neighbours send a byte to and fro. */
static void play(long i)
{
    char ball = 0;
    if (i % 2 == 0)
        CHECK_EQ(gort_write(game.fds[i], &ball, 1), 1);
    while (gort_read(game.fds[i], &ball, 1) == 1 && gort_write(game.fds[i], &ball, 1) == 1)
        atomic_fetch_add(&game.turns[i], 1);
}

static void start_game(void)
{
    CHECK_GE(may_have(PLAYERS), PLAYERS / 2);
    for (int i = 0; i < PLAYERS; i += 2)
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, &game.fds[i]), 0);
    for (long i = 0; i < PLAYERS; i++)
        CHECK_EQ(GORT_GO(play, i), 0);
}

/* More are ready than a P's ring holds, all the time: nobody falls behind. */
TEST_GO(a_full_ring_leaves_nobody_behind, .procs = "1,2")
{
    start_game();
    long all, least;
    bool behind,
        alone = gort_maxprocs(0) == 1; /* else a P whose thread gets no CPU may be behind for a while */
    int64_t until = gort_in(test_seconds(20));
    do {
        gort_sleep(100 * GORT_MS);
        all = 0;
        least = LONG_MAX;
        for (int i = 0; i < PLAYERS; i++) {
            long turns = atomic_load(&game.turns[i]);
            all += turns;
            least = turns < least ? turns : least;
        }
        behind = least < all / PLAYERS / 4;
    } while ((all < 40L * PLAYERS || (behind && !alone)) && gort_now() < until);
    test_log("turns: %ld, the least %ld", all, least);
    CHECK(!behind);
}

static atomic_long stops, most; /* of the one that computes, and what the others did in the longest of them */

static void compute_and_look(void *unused)
{
    (void)unused;
    for (long last = 0; !atomic_load(&stop);) {
        long all = 0;
        for (int i = 0; i < PLAYERS; i++)
            all += atomic_load(&game.turns[i]);
        if (all == last)
            continue;
        if (atomic_fetch_add(&stops, 1) > 0 &&
            all - last > atomic_load(&most)) /* at first they begin, one by one */
            atomic_store(&most, all - last);
        last = all;
    }
}

/* Nor one that was stopped in the middle of its code, which waits in no ring. With one P the turns of the
 * others tell how long, whoever gets a CPU when. */
TEST_GO(nor_one_that_computes, .procs = "1")
{
    if (test_under_emulator())
        SKIP("only natively: in an emulator it may have all of its time slice and get nowhere");
    start_game();
    CHECK_EQ(gort_go(compute_and_look, NULL), 0);
    await(&stops, 80);
    atomic_store(&stop, 1);
    test_log("others had %ld turns while it was stopped, at the most", atomic_load(&most));
    /* It goes on within 122 of them; on a busy machine some of the others may be held as well, and go before
     * it. */
    CHECK_LT(atomic_load(&most), 5 * PLAYERS);
}

/* --- the count ------------------------------------------------------------------------------------ */

static void read_one(int fd)
{
    char byte;
    gort_read(fd, &byte, 1);
}

/* However a wait ends, it is not counted any more: the deadlock detector relies on it. */
TEST_GO(the_count_returns_to_zero, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    tcp_pair(ends);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(GORT_GO(read_one, ends[0]), 0);
        CHECK_EQ(gort_read_until(ends[1], &(char){0}, 1, gort_in(i % 3 * 10 * GORT_US)), -ETIMEDOUT);
        CHECK_EQ(gort_wait_fd(ends[1], GORT_READ | GORT_HUP, gort_in(10 * GORT_US)), -ETIMEDOUT);
        CHECK_EQ(gort_set_deadline(ends[0], GORT_READ, gort_now()), 0);
        settle();
        CHECK_EQ(gort_set_deadline(ends[0], GORT_READ, GORT_FOREVER), 0);
        CHECK_EQ(gort__poll_pending(), 0);
    }
    CHECK_EQ(GORT_GO(read_one, ends[0]), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort__poll_pending(), 1);
    CHECK_EQ(gort_close(ends[0]), 0);
    settle();
    CHECK_EQ(gort__poll_pending(), 0);
    CHECK_EQ(gort_close(ends[1]), 0);
}

/* With nobody waiting for an fd any more, a deadlock is one. */
TEST_GO(deadlock_after_io, .crash = "all goroutines are asleep")
{
    int ends[2];
    char byte;
    if (test_under_emulator())
        SKIP(
            "only natively: the emulator has a thread of its own, so nobody can be sure that all are asleep");
    tcp_pair(ends);
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, gort_in(GORT_MS)), -ETIMEDOUT);
    close_pair(ends);
    gort_chan *never = gort_chan_new(0, 0);
    gort_chan_recv(never, NULL);
}
