/* SPDX-License-Identifier: MIT */
/*
 * select.c - one of several: which one, just one, fairly, and nothing left behind.
 * Covers: src/sync/select.c
 */
#include "waiting.h"

static atomic_long counter, sum;

#define RECV(channel, to)   ((gort_case){.ch = (channel), .recv = (to), .op = GORT_RECV, .result = 1234})
#define SEND(channel, from) ((gort_case){.ch = (channel), .send = (from), .op = GORT_SEND, .result = 1234})

/* Nobody waits on either end. */
static void check_no_waiter(gort_chan *ch)
{
    char value[64] = {0};
    CHECK_EQ(gort_chan_len(ch), 0);
    CHECK_EQ(gort_chan_recv_until(ch, value, GORT_TRY), -EAGAIN);
    if (gort_chan_cap(ch) == 0)
        CHECK_EQ(gort_chan_send_until(ch, value, GORT_TRY), -EAGAIN);
}

/* --- which one ------------------------------------------------------------------------------------ */

static void try_forms(void)
{
    gort_chan *a = gort_chan_new(sizeof(int), 1), *b = gort_chan_new(sizeof(int), 1),
              *full = gort_chan_new(4, 1);
    int va = 0, vb = 0, v = 5;
    gort_case cases[] = {RECV(a, &va), RECV(b, &vb), SEND(full, &v), RECV(NULL, &va), SEND(NULL, &v)};
    CHECK_EQ(gort_chan_send(full, &v), 0);
    CHECK_EQ(gort_select(cases, 5, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_select(cases, 0, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_select(NULL, 0, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_select(cases + 3, 2, GORT_TRY), -EAGAIN);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(cases[i].result, 1234);
    CHECK_EQ(gort_chan_send(b, &v), 0);
    CHECK_EQ(gort_select(cases, 5, GORT_TRY), 1);
    CHECK_EQ(cases[1].result, 1);
    CHECK_EQ(vb, 5);
    CHECK_EQ(va, 0);
    CHECK_EQ(cases[0].result, 1234);
    CHECK_EQ(cases[2].result, 1234);
    CHECK_EQ(gort_chan_recv(full, &va), 1);
    CHECK_EQ(gort_select(cases, 5, GORT_TRY), 2);
    CHECK_EQ(cases[2].result, 0);
    CHECK_EQ(gort_chan_len(full), 1);
    CHECK_EQ(gort_select(cases, 5, GORT_TRY), -EAGAIN);
    gort_chan_unref(a);
    gort_chan_unref(b);
    gort_chan_unref(full);
}

TEST_GO(the_default_is_taken_if_nothing_can_happen)
{
    try_forms();
}

static int run_try_forms(void *unused)
{
    (void)unused;
    try_forms();
    return 0;
}

TEST(before_between_and_after_runs)
{
    for (int i = 0; i < 3; i++) {
        try_forms();
        CHECK_EQ(gort_run(run_try_forms, NULL), 0);
    }
    try_forms();
}

TEST_GO(what_can_happen_does_so_past_its_deadline)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    int v = 4, got = 0;
    gort_case send = SEND(ch, &v), recv = RECV(ch, &got);
    int64_t now = gort_now();
    CHECK_EQ(gort_select(&recv, 1, now), -ETIMEDOUT);
    CHECK_EQ(gort_select(&recv, 1, gort_in(-1)), -ETIMEDOUT);
    CHECK_EQ(gort_select(&send, 1, now), 0);
    CHECK_EQ(gort_select(&send, 1, now), -ETIMEDOUT);
    CHECK_EQ(gort_select(&recv, 1, now), 0);
    CHECK_EQ(got, 4);
    gort_chan_unref(ch);
}

TEST_GO(closed_channels_are_always_ready)
{
    gort_chan *closed = gort_chan_new(sizeof(int), 0), *open = gort_chan_new(sizeof(int), 0);
    CHECK_EQ(gort_chan_close(closed), 0);
    for (int i = 0; i < 100; i++) {
        int v = 9;
        gort_case cases[] = {RECV(open, &v), i % 2 ? RECV(closed, &v) : SEND(closed, &v), RECV(NULL, &v)};
        CHECK_EQ(gort_select(cases, 3, i % 3 ? GORT_FOREVER : GORT_TRY), 1);
        CHECK_EQ(cases[1].result, i % 2 ? 0 : -EPIPE);
        CHECK_EQ(v, i % 2 ? 0 : 9);
    }
    check_no_waiter(open);
    gort_chan_unref(closed);
    gort_chan_unref(open);
}

/* --- nothing can ever happen ---------------------------------------------------------------------- */

static atomic_bool past;

static void select_nothing(int kind)
{
    gort_case cases[] = {RECV(NULL, NULL), SEND(NULL, NULL)};
    gort_select(cases, kind ? 2 : 0, GORT_FOREVER);
    atomic_store(&past, true);
}

TEST_GO(no_cases_wait_for_ever, .procs = "1,2,4,64", .fuzz = true)
{
    CHECK_EQ(GORT_GO(select_nothing, 0), 0);
    CHECK_EQ(GORT_GO(select_nothing, 1), 0);
    await_waiting("select (no cases)", 2);
    for (int i = 0; i < 100; i++)
        gort_yield();
    CHECK(!atomic_load(&past));
    gort_case cases[] = {RECV(NULL, NULL), SEND(NULL, NULL)};
    int64_t until = gort_in(5 * GORT_MS);
    CHECK_EQ(gort_select(cases, 2, until), -ETIMEDOUT);
    CHECK_GE(gort_now(), until);
    until = gort_in(5 * GORT_MS);
    CHECK_EQ(gort_select(NULL, 0, until), -ETIMEDOUT);
    CHECK_GE(gort_now(), until);
}

/* --- every kind of peer --------------------------------------------------------------------------- */

enum { PLAIN, UNTIL, SELECT1, SELECT2, SELECT3, SELECT_TWICE, THREAD, KINDS };
static gort_chan *never, *never2; /* nobody sends to the first, nobody receives from the second */

static int do_recv(gort_chan *ch, void *value, int kind)
{
    gort_case cases[] = {RECV(never, NULL), RECV(ch, value), RECV(ch, value), SEND(never2, value)};
    int i;
    switch (kind) {
    case PLAIN:
        return gort_chan_recv(ch, value);
    case UNTIL:
        return gort_chan_recv_until(ch, value, soon());
    case SELECT1:
        CHECK_EQ(gort_select(cases + 1, 1, GORT_FOREVER), 0);
        return cases[1].result;
    case SELECT2:
        CHECK_EQ(gort_select(cases, 2, GORT_FOREVER), 1);
        return cases[1].result;
    case SELECT3:
        cases[2].ch = NULL;
        CHECK_EQ(gort_select(cases, 4, soon()), 1);
        return cases[1].result;
    default:
        i = gort_select(cases, 4, soon());
        CHECK(i == 1 || i == 2);
        CHECK_EQ(cases[i == 1 ? 2 : 1].result, 1234);
        return cases[i].result;
    }
}

static int do_send(gort_chan *ch, const void *value, int kind)
{
    gort_case cases[] = {RECV(never, NULL), SEND(ch, value), SEND(ch, value), SEND(never2, value)};
    int i;
    switch (kind) {
    case PLAIN:
        return gort_chan_send(ch, value);
    case UNTIL:
        return gort_chan_send_until(ch, value, soon());
    case SELECT1:
        CHECK_EQ(gort_select(cases + 1, 1, GORT_FOREVER), 0);
        return cases[1].result;
    case SELECT2:
        CHECK_EQ(gort_select(cases, 2, GORT_FOREVER), 1);
        return cases[1].result;
    case SELECT3:
        cases[2].ch = NULL;
        CHECK_EQ(gort_select(cases, 4, soon()), 1);
        return cases[1].result;
    default:
        i = gort_select(cases, 4, soon());
        CHECK(i == 1 || i == 2);
        CHECK_EQ(cases[i == 1 ? 2 : 1].result, 1234);
        return cases[i].result;
    }
}

static int rounds(void)
{
    return test_under_valgrind() ? 20 : 200;
}

static void peer_recv(gort_chan *ch, int kind)
{
    for (int i = 0, n = rounds(), v; i < n; i++) {
        v = -1;
        CHECK_EQ(do_recv(ch, &v, kind), 1);
        CHECK_EQ(v, i);
    }
    atomic_fetch_add(&counter, 1);
}

static void peer_send(gort_chan *ch, int kind)
{
    for (int i = 0, n = rounds(); i < n; i++)
        CHECK_EQ(do_send(ch, &i, kind), 0);
    atomic_fetch_add(&counter, 1);
}

struct peer {
    gort_chan *ch;
    bool sends;
};

static void *thread_peer(void *arg)
{
    struct peer *p = arg;
    if (p->sends)
        peer_send(p->ch, SELECT3);
    else
        peer_recv(p->ch, SELECT3);
    return NULL;
}

TEST_GO(every_sender_meets_every_receiver, .procs = "1,2,4,64", .fuzz = true)
{
    long done = 0;
    never = gort_chan_new(sizeof(int), 0);
    never2 = gort_chan_new(sizeof(int), 0);
    for (size_t cap = 0; cap < 2; cap++)
        for (int s = 0; s < KINDS; s++)
            for (int r = 0; r < KINDS; r++) {
                gort_chan *ch = gort_chan_new(sizeof(int), cap);
                pthread_t threads[2];
                struct peer sender = {ch, true}, receiver = {ch, false};
                if (r == THREAD)
                    CHECK_EQ(pthread_create(&threads[0], NULL, thread_peer, &receiver), 0);
                else
                    CHECK_EQ(GORT_GO(peer_recv, ch, r), 0);
                if (s == THREAD)
                    CHECK_EQ(pthread_create(&threads[1], NULL, thread_peer, &sender), 0);
                else
                    CHECK_EQ(GORT_GO(peer_send, ch, s), 0);
                await(&counter, done += 2);
                if (r == THREAD)
                    pthread_join(threads[0], NULL);
                if (s == THREAD)
                    pthread_join(threads[1], NULL);
                check_no_waiter(ch);
                check_no_waiter(never);
                check_no_waiter(never2);
                settle();
                gort_chan_unref(ch);
            }
    gort_chan_unref(never);
    gort_chan_unref(never2);
}

/* --- just one, and no trace of the others ----------------------------------------------------------- */

static gort_chan *ways[6];
static atomic_int picked;
static int landed[6];

static void select_over_ways(void *unused)
{
    gort_case cases[6];
    int from[6] = {100, 101, 102, 103, 104, 105};
    (void)unused;
    for (int i = 0; i < 6; i++) {
        landed[i] = -1;
        cases[i] = i % 2 ? SEND(ways[i], &from[i]) : RECV(ways[i], &landed[i]);
    }
    int k = gort_select(cases, 6, GORT_FOREVER);
    for (int i = 0; i < 6; i++)
        if (i != k) {
            CHECK_EQ(cases[i].result, 1234);
            CHECK_EQ(landed[i], -1);
            check_no_waiter(ways[i]);
        }
    CHECK_EQ(cases[k].result, k % 2 ? 0 : 1);
    check_no_waiter(ways[k]);
    atomic_store(&picked, k);
}

TEST_GO(one_case_happens_and_the_rest_leaves_no_trace, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 6; i++)
        ways[i] = gort_chan_new(sizeof(int), 0);
    for (int round = 0; round < 60; round++) {
        int k = round % 6, v = round;
        atomic_store(&picked, -1);
        CHECK_EQ(gort_go(select_over_ways, NULL), 0);
        await_waiting("select", 1);
        if (k % 2) {
            CHECK_EQ(gort_chan_recv_until(ways[k], &v, GORT_TRY), 1);
            CHECK_EQ(v, 100 + k);
        } else {
            CHECK_EQ(gort_chan_send_until(ways[k], &v, GORT_TRY), 0);
        }
        /* It is on its way; whoever comes now must not find it in another queue. */
        for (int i = 0; i < 6; i++)
            if (i != k)
                CHECK_EQ(i % 2 ? gort_chan_recv_until(ways[i], &v, GORT_TRY)
                               : gort_chan_send_until(ways[i], &v, GORT_TRY),
                         -EAGAIN);
        settle();
        CHECK_EQ(atomic_load(&picked), k);
        if (k % 2 == 0)
            CHECK_EQ(landed[k], round);
    }
    for (int i = 0; i < 6; i++)
        gort_chan_unref(ways[i]);
}

TEST_GO(a_timeout_is_not_early_and_leaves_no_trace, .procs = "1,2,4,64", .fuzz = true)
{
    gort_chan *a = gort_chan_new(sizeof(int), 0), *b = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < 20; i++) {
        int v = 3;
        gort_case cases[] = {RECV(a, &v), SEND(b, &v), RECV(b, &v), SEND(a, &v), RECV(a, &v)};
        int64_t until = gort_in(GORT_MS), from = gort_now();
        CHECK_EQ(gort_select(cases, 5, until), -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK_LT(gort_now() - from, test_seconds(20));
        CHECK_EQ(v, 3);
        check_no_waiter(a);
        check_no_waiter(b);
    }
    gort_chan_unref(a);
    gort_chan_unref(b);
}

static void close_it(gort_chan *ch)
{
    await_waiting("select", 1);
    CHECK_EQ(gort_chan_close(ch), 0);
}

TEST_GO(closing_one_of_them_ends_the_wait, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 10; i++) {
        gort_chan *a = gort_chan_new(sizeof(int), 0), *b = gort_chan_new(sizeof(int), 0);
        int v = 3;
        gort_case cases[] = {RECV(a, &v), i % 2 ? RECV(b, &v) : SEND(b, &v)};
        CHECK_EQ(GORT_GO(close_it, b), 0);
        CHECK_EQ(gort_select(cases, 2, GORT_FOREVER), 1);
        CHECK_EQ(cases[1].result, i % 2 ? 0 : -EPIPE);
        CHECK_EQ(v, i % 2 ? 0 : 3);
        check_no_waiter(a);
        settle();
        gort_chan_unref(a);
        gort_chan_unref(b);
    }
}

/* --- itself and each other ------------------------------------------------------------------------ */

/* chan_test.go TestSelfSelect: both send and receive on one channel; nobody receives from itself. */
static void self_select(gort_chan *ch, int me, long n, bool selects_first)
{
    long sent = 0, got = 0;
    while (sent + got < n) {
        int out = me, in = -1;
        gort_case both[] = {SEND(ch, &out), RECV(ch, &in)};
        int i = selects_first ? gort_select(both, 2, GORT_FOREVER)
                              : 1 - gort_select((gort_case[]){both[1], both[0]}, 2, GORT_FOREVER);
        (void)in;
        if (i == 0)
            sent++;
        else
            got++;
    }
    atomic_fetch_add(&sum, sent - got);
    atomic_fetch_add(&counter, 1);
}

static void self_select_checked(gort_chan *ch, int me, long n)
{
    long balance = 0;
    for (long k = 0; k < n; k++) {
        int out = me, in = -1;
        gort_case both[] = {SEND(ch, &out), RECV(ch, &in)};
        int i = gort_select(both, 2, GORT_FOREVER);
        balance += i == 0 ? 1 : -1;
        if (i == 1 && gort_chan_cap(ch) == 0)
            CHECK_NE(in, me);
    }
    atomic_fetch_add(&sum, balance);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(sending_and_receiving_on_one_channel, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(10000, 500);
    for (size_t cap = 0; cap < 11; cap += 10) {
        gort_chan *ch = gort_chan_new(sizeof(int), cap);
        atomic_store(&counter, 0);
        atomic_store(&sum, 0);
        CHECK_EQ(GORT_GO(self_select_checked, ch, 0, n), 0);
        CHECK_EQ(GORT_GO(self_select_checked, ch, 1, n), 0);
        await(&counter, 2);
        CHECK_EQ(atomic_load(&sum), (long)gort_chan_len(ch)); /* what was sent and not received lies there */
        while (gort_chan_recv_until(ch, NULL, GORT_TRY) == 1)
            ;
        settle();
        check_no_waiter(ch);
        gort_chan_unref(ch);
    }
}

TEST_GO(alone_it_does_not_receive_from_itself)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 0);
    int out = 1, in = 0;
    gort_case both[] = {SEND(ch, &out), RECV(ch, &in)};
    CHECK_EQ(gort_select(both, 2, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_select(both, 2, gort_in(GORT_MS)), -ETIMEDOUT);
    check_no_waiter(ch);
    gort_chan_unref(ch);
}

/* Two orders of the same channels, senders and receivers alike: no deadlock, nothing lost. */
static void cross(gort_chan *a, gort_chan *b, bool sends, long n)
{
    for (long i = 1; i <= n; i++) {
        long in = 0, out = i;
        gort_case cases[] = {sends ? SEND(a, &out) : RECV(a, &in), sends ? SEND(b, &out) : RECV(b, &in)};
        int k = gort_select(cases, 2, GORT_FOREVER);
        CHECK_EQ(cases[k].result, sends ? 0 : 1);
        atomic_fetch_add(&sum, sends ? out : -in);
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(select_against_select_in_either_order, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(10000, 500);
    for (size_t cap = 0; cap < 2; cap++) {
        gort_chan *a = gort_chan_new(sizeof(long), cap), *b = gort_chan_new(sizeof(long), cap);
        atomic_store(&counter, 0);
        for (int i = 0; i < 2; i++) {
            CHECK_EQ(GORT_GO(cross, a, b, true, n), 0);
            CHECK_EQ(GORT_GO(cross, b, a, false, n), 0);
            CHECK_EQ(GORT_GO(cross, b, a, true, n), 0);
            CHECK_EQ(GORT_GO(cross, a, b, false, n), 0);
        }
        await(&counter, 8);
        CHECK_EQ(atomic_load(&sum), 0);
        settle();
        check_no_waiter(a);
        check_no_waiter(b);
        gort_chan_unref(a);
        gort_chan_unref(b);
    }
}

/* --- fairness ------------------------------------------------------------------------------------- */

/* Which of the cases are ready, as bits; the shares of the ready ones must be equal within 10 sigma. */
static void check_shares(gort_chan **order, int n, unsigned ready)
{
    enum { TRIALS = 12000 };
    long share[8] = {0};
    gort_case cases[8];
    int k = __builtin_popcount(ready);
    for (int i = 0; i < n; i++)
        cases[i] = RECV(order[i], NULL);
    for (int t = 0; t < TRIALS; t++) {
        int i = gort_select(cases, (size_t)n, GORT_FOREVER);
        CHECK(i >= 0 && i < n && (ready >> i & 1));
        share[i]++;
    }
    double p = 1.0 / k, variance = TRIALS * p * (1 - p);
    for (int i = 0; i < n; i++) {
        double off = (double)share[i] - TRIALS * p;
        if (ready >> i & 1)
            CHECK_MSG(off * off <= 100 * variance, "ready ones %x of %d: case %d was chosen %ld times of %d",
                      ready, n, i, share[i], TRIALS);
    }
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (gort_chan *const *)a, y = (uintptr_t) * (gort_chan *const *)b;
    return x < y ? -1 : x > y;
}

TEST_GO(ready_cases_have_equal_chances)
{
    enum { N = 6 };
    for (unsigned ready = 1; ready < 1u << N; ready += 2) {
        gort_chan *order[N];
        for (int i = 0; i < N; i++)
            order[i] = gort_chan_new(0, 0);
        qsort(order, N, sizeof *order, by_address); /* the place in memory must not matter */
        for (int i = 0; i < N; i++)
            if (ready >> i & 1)
                gort_chan_close(order[i]);
        check_shares(order, N, ready);
        for (int i = 0; i < N; i++)
            gort_chan_unref(order[i]);
    }
}

/* proc_test.go TestSelectFairness: two tickers that are always ready, two channels that never are. */
static void feed(gort_chan *ch)
{
    char c = 0;
    while (gort_chan_send(ch, &c) == 0)
        ;
}

TEST_GO(two_ready_ones_and_two_that_never_are, .procs = "1,2,4,64", .fuzz = true)
{
    int trials = (int)test_scaled(10000, 2000), first = 0;
    gort_chan *c1 = gort_chan_new(1, (size_t)trials + 1), *c2 = gort_chan_new(1, (size_t)trials + 1);
    gort_chan *out1 = gort_chan_new(1, 0), *out2 = gort_chan_new(1, 0);
    CHECK_EQ(GORT_GO(feed, c1), 0);
    CHECK_EQ(GORT_GO(feed, c2), 0);
    await_waiting("chan send", 2);
    char c = 0;
    for (int i = 0; i < trials; i++) {
        gort_case cases[] = {SEND(out1, &c), RECV(c1, &c), SEND(out2, &c), RECV(c2, &c)};
        int k = gort_select(cases, 4, GORT_FOREVER);
        CHECK(k == 1 || k == 3);
        first += k == 1;
    }
    double off = first - trials / 2.0;
    CHECK_MSG(off * off <= 100 * trials * 0.25, "%d of %d", first, trials);
    gort_chan_close(c1);
    gort_chan_close(c2);
    settle();
    gort_chan_unref(c1), gort_chan_unref(c2), gort_chan_unref(out1), gort_chan_unref(out2);
}

static void send_zeros_and_ones(gort_chan *ch, int n)
{
    static const int zero = 0, one = 1;
    for (int i = 0; i < n; i++) {
        gort_case cases[] = {SEND(ch, &zero), SEND(ch, &one)};
        int k = gort_select(cases, 2, GORT_FOREVER);
        CHECK(k == 0 || k == 1);
    }
}

/* TestPseudoRandomSend. */
TEST_GO(the_same_channel_twice_gets_both_values, .procs = "1,2,4,64", .fuzz = true)
{
    int n = 1000;
    for (size_t cap = 0; cap <= (size_t)n; cap += (size_t)n) {
        gort_chan *ch = gort_chan_new(sizeof(int), cap);
        CHECK_EQ(GORT_GO(send_zeros_and_ones, ch, n), 0);
        int ones = 0;
        for (int i = 0, v; i < n; i++) {
            gort_yield(); /* lets the sender come first, so that it is its choice */
            CHECK_EQ(gort_chan_recv(ch, &v), 1);
            ones += v;
        }
        settle();
        if (cap || gort_maxprocs(0) == 1)
            CHECK_MSG(ones >= n / 10 && ones <= n - n / 10, "%d ones of %d", ones, n);
        gort_chan_unref(ch);
    }
}

/* --- many ----------------------------------------------------------------------------------------- */

static gort_chan *answer;

static void wait_for_one_of(gort_chan **chans, int n)
{
    gort_case *cases = calloc((size_t)n, sizeof *cases);
    int v = -1;
    for (int i = 0; i < n; i++)
        cases[i] = RECV(chans[i], &v);
    int k = gort_select(cases, (size_t)n, GORT_FOREVER);
    CHECK_EQ(cases[k].result, 1);
    CHECK_EQ(v, k);
    free(cases);
    CHECK_EQ(gort_chan_send(answer, &k), 0);
}

TEST_GO(two_hundred_and_fifty_six_cases, .procs = "1,2,4,64", .fuzz = true)
{
    enum { N = 256 };
    static gort_chan *chans[N];
    answer = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < N; i++)
        chans[i] = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < N; i += 1 + (int)(test_scaled(10, 1) == 1) * 4) {
        int k;
        CHECK_EQ(GORT_GO(wait_for_one_of, chans, (int)N), 0);
        CHECK_EQ(gort_chan_send(chans[i], &i), 0);
        CHECK_EQ(gort_chan_recv(answer, &k), 1);
        CHECK_EQ(k, i);
    }
    settle();
    for (int i = 0; i < N; i++) {
        check_no_waiter(chans[i]);
        gort_chan_unref(chans[i]);
    }
    gort_chan_unref(answer);
}

TEST_GO(sixteen_and_seventeen_cases, .procs = "1,2")
{
    gort_chan *chans[20];
    for (int i = 0; i < 20; i++)
        chans[i] = gort_chan_new(sizeof(int), 0);
    answer = gort_chan_new(sizeof(int), 0);
    for (int n = 14; n < 20; n++)
        for (int i = 0; i < n; i++) {
            int k;
            CHECK_EQ(GORT_GO(wait_for_one_of, chans, n), 0);
            CHECK_EQ(gort_chan_send(chans[i], &i), 0);
            CHECK_EQ(gort_chan_recv(answer, &k), 1);
            CHECK_EQ(k, i);
        }
    settle();
    for (int i = 0; i < 20; i++)
        gort_chan_unref(chans[i]);
    gort_chan_unref(answer);
}

/* --- memory --------------------------------------------------------------------------------------- */

/* test/fixedbugs/issue9110.go: the same channels several times in one select, whose records must come
 * back. */
static void dup_select(gort_chan *a, gort_chan *b, gort_chan *c)
{
    gort_case cases[] = {RECV(a, NULL), RECV(a, NULL), RECV(b, NULL),
                         RECV(b, NULL), RECV(c, NULL), RECV(c, NULL)};
    int k = gort_select(cases, 6, GORT_FOREVER);
    CHECK_GE(k, 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(records_come_back, .procs = "1,2,4,64", .fuzz = true)
{
    gort_chan *a = gort_chan_new(0, 0), *b = gort_chan_new(0, 0), *c = gort_chan_new(0, 0);
    long before = 0;
    for (int round = 0; round < 200; round++) {
        atomic_store(&counter, 0);
        for (int i = 0; i < 10; i++)
            CHECK_EQ(GORT_GO(dup_select, a, b, c), 0);
        await_waiting("select", 10);
        for (int i = 0; i < 10; i++)
            CHECK_EQ(gort_chan_send_until(i % 3 == 0 ? a : i % 3 == 1 ? b : c, NULL, GORT_TRY), 0);
        await(&counter, 10);
        check_no_waiter(a);
        check_no_waiter(b);
        check_no_waiter(c);
        if (round == 20)
            before = test_rss_kb();
    }
    if (gort_maxprocs(0) == 1) /* others keep stacks for themselves, and it takes long until each has some */
        check_flat(before, 512);
    settle();
    gort_chan_unref(a), gort_chan_unref(b), gort_chan_unref(c);
}

static void ping(gort_chan *in, gort_chan *out, gort_chan *idle, long n)
{
    for (long i = 0; i < n; i++) {
        long v = i, got = -1;
        gort_case give[] = {RECV(idle, NULL), SEND(out, &v), RECV(idle, NULL)};
        gort_case take[] = {RECV(idle, NULL), RECV(in, &got), RECV(idle, NULL)};
        CHECK_EQ(gort_select(give, 3, GORT_FOREVER), 1);
        CHECK_EQ(gort_select(take, 3, GORT_FOREVER), 1);
        CHECK_EQ(got, i);
    }
    atomic_fetch_add(&counter, 1);
}

static void pong(gort_chan *in, gort_chan *out, gort_chan *idle, long n)
{
    for (long i = 0; i < n; i++) {
        long got = -1;
        gort_case take[] = {RECV(in, &got), RECV(idle, NULL)};
        CHECK_EQ(gort_select(take, 2, GORT_FOREVER), 0);
        gort_case give[] = {RECV(idle, NULL), SEND(out, &got)};
        CHECK_EQ(gort_select(give, 2, GORT_FOREVER), 1);
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(a_million_selects_use_no_memory, .procs = "1,2")
{
    gort_chan *a = gort_chan_new(sizeof(long), 0), *b = gort_chan_new(sizeof(long), 0),
              *idle = gort_chan_new(8, 0);
    long before = 0;
    for (int part = 0; part < 10; part++) { /* 4 selects a round trip */
        long n = test_scaled(25000, 1000);
        atomic_store(&counter, 0);
        CHECK_EQ(GORT_GO(ping, a, b, idle, n), 0);
        CHECK_EQ(GORT_GO(pong, b, a, idle, n), 0);
        await(&counter, 2);
        settle();
        check_no_waiter(a);
        check_no_waiter(b);
        check_no_waiter(idle);
        if (part == 0)
            before = test_rss_kb();
    }
    check_flat(before, 512);
    gort_chan_unref(a), gort_chan_unref(b), gort_chan_unref(idle);
}

/* --- lifetimes ------------------------------------------------------------------------------------ */

static void select_last_user(gort_chan *a, gort_chan *b, gort_chan *c)
{
    long v = 0;
    gort_case cases[] = {RECV(a, &v), RECV(b, &v), SEND(c, &v), RECV(a, &v)};
    int k = gort_select(cases, 4, GORT_FOREVER);
    CHECK_EQ(k, 1);
    CHECK_EQ(v, 7);
    atomic_fetch_add(&counter, 1);
}

/* The others are let go while it waits, the one that happens right after. */
TEST_GO(channels_may_be_freed_under_it, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(5000, 500);
    for (long i = 0; i < n; i++) {
        gort_chan *a = gort_chan_new(8, 0), *b = gort_chan_new(8, 0), *c = gort_chan_new(8, 0);
        CHECK_EQ(GORT_GO(select_last_user, a, b, c), 0);
        await_waiting("select", 1);
        gort_chan_unref(a);
        if (i % 2)
            gort_chan_unref(c);
        long v = 7;
        CHECK_EQ(gort_chan_send(b, &v), 0);
        gort_chan_unref(b);
        if (!(i % 2))
            gort_chan_unref(c);
        await(&counter, i + 1);
        settle();
    }
}

/* Fields of the self test above, with the cases given in the other order. */
TEST_GO(the_order_of_the_cases_does_not_matter, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(5000, 500);
    gort_chan *ch = gort_chan_new(sizeof(int), 0);
    CHECK_EQ(GORT_GO(self_select, ch, 0, n, true), 0);
    CHECK_EQ(GORT_GO(self_select, ch, 1, n, false), 0);
    await(&counter, 2);
    CHECK_EQ(atomic_load(&sum), 0);
    settle();
    check_no_waiter(ch);
    gort_chan_unref(ch);
}

TEST_GO(more_cases_than_there_can_be)
{
    gort_case one = RECV(NULL, NULL);
    CHECK_EQ(gort_select(&one, UINT16_MAX + 1, GORT_TRY), -EINVAL);
    CHECK_EQ(one.result, 1234);
}
