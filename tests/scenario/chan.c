/* SPDX-License-Identifier: MIT */
/*
 * chan.c - channels: what each call returns in each state, order, conservation. chan_life.c has their
 * lifetimes.
 * Covers: src/sync/chan.c
 */
#include "chan_ways.h"

static atomic_long counter, sum;

/* --- what the calls return ------------------------------------------------------------------------ */

static void each_state(void)
{
    for (size_t cap = 0; cap < 200; cap++) {
        gort_chan *ch = gort_chan_new(sizeof(int), cap);
        CHECK(ch);
        CHECK_EQ(gort_chan_cap(ch), cap);
        CHECK_EQ(gort_chan_elem(ch), sizeof(int));
        int v = 77;
        CHECK_EQ(gort_chan_recv_until(ch, &v, GORT_TRY), -EAGAIN);
        CHECK_EQ(v, 77);
        for (int i = 0; i < (int)cap; i++) {
            CHECK_EQ(gort_chan_len(ch), i);
            CHECK_EQ(gort_chan_send_until(ch, &i, GORT_TRY), 0);
        }
        CHECK_EQ(gort_chan_len(ch), cap);
        CHECK_EQ(gort_chan_send_until(ch, &v, GORT_TRY), -EAGAIN);
        for (int i = 0; i < (int)cap; i++) {
            CHECK_EQ(gort_chan_recv(ch, &v), 1);
            CHECK_EQ(v, i);
            CHECK_EQ(gort_chan_len(ch), cap - 1 - (size_t)i);
        }
        CHECK_EQ(gort_chan_recv_until(ch, &v, GORT_TRY), -EAGAIN);
        gort_chan_unref(ch);
    }
    CHECK_EQ(gort_chan_len(NULL), 0);
    CHECK_EQ(gort_chan_cap(NULL), 0);
    CHECK_EQ(gort_chan_elem(NULL), 0);
    CHECK(gort_chan_ref(NULL) == NULL);
    gort_chan_unref(NULL);
}

TEST_GO(each_capacity_and_fill, .procs = "1,2")
{
    each_state();
}

static int run_each_state(void *unused)
{
    (void)unused;
    each_state();
    return 7;
}

static void close_drains(void)
{
    for (size_t cap = 1; cap < 20; cap++) {
        gort_chan *ch = gort_chan_new(sizeof(int), cap);
        for (int i = 0; i < (int)cap; i++)
            CHECK_EQ(gort_chan_send(ch, &i), 0);
        CHECK_EQ(gort_chan_close(ch), 0);
        CHECK_EQ(gort_chan_close(ch), -EPIPE);
        int v = 5;
        CHECK_EQ(gort_chan_send(ch, &v), -EPIPE);
        CHECK_EQ(gort_chan_send_until(ch, &v, GORT_TRY), -EPIPE);
        CHECK_EQ(gort_chan_len(ch), cap);
        for (int i = 0; i < (int)cap; i++) {
            CHECK_EQ(gort_chan_recv(ch, &v), 1);
            CHECK_EQ(v, i);
        }
        for (int i = 0; i < 10; i++) {
            v = 99;
            CHECK_EQ(i % 2 ? gort_chan_recv(ch, &v) : gort_chan_recv_until(ch, &v, GORT_TRY), 0);
            CHECK_EQ(v, 0);
        }
        CHECK_EQ(gort_chan_recv(ch, NULL), 0);
        CHECK_EQ(gort_chan_close(ch), -EPIPE);
        gort_chan_unref(ch);
    }
}

TEST_GO(close_lets_the_rest_out_and_then_says_zero)
{
    close_drains();
}

TEST(before_between_and_after_runs)
{
    each_state();
    close_drains();
    gort_chan *kept = gort_chan_new(sizeof(int), 2);
    int v = 41;
    CHECK_EQ(gort_chan_send(kept, &v), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_run(run_each_state, NULL), 7);
        each_state();
        close_drains();
    }
    CHECK_EQ(gort_chan_recv(kept, &v), 1);
    CHECK_EQ(v, 41);
    CHECK_EQ(gort_chan_ref(kept), kept);
    gort_chan_unref(kept);
    CHECK_EQ(gort_chan_close(kept), 0);
    gort_chan_unref(kept);
}

TEST_GO(sizes_and_capacities_at_the_edge)
{
    CHECK(gort_chan_new(GORT_CHAN_ELEM_MAX + 1, 0) == NULL);
    CHECK(gort_chan_new(8, SIZE_MAX) == NULL);
    CHECK(gort_chan_new(8, SIZE_MAX / 8) == NULL);
    gort_chan *tokens = gort_chan_new(0, SIZE_MAX);
    CHECK(tokens);
    CHECK_EQ(gort_chan_cap(tokens), SIZE_MAX);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(gort_chan_send(tokens, NULL), 0);
    CHECK_EQ(gort_chan_len(tokens), 1000);
    gort_chan_unref(tokens);
}

TEST_GO(what_can_happen_does_so_past_its_deadline)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    int v = 3;
    int64_t now = gort_now();
    CHECK_EQ(gort_chan_recv_until(ch, &v, now), -ETIMEDOUT);
    CHECK_EQ(gort_chan_recv_until(ch, &v, gort_in(-1)), -ETIMEDOUT);
    CHECK_EQ(gort_chan_send_until(ch, &v, now), 0);
    CHECK_EQ(gort_chan_send_until(ch, &v, now), -ETIMEDOUT);
    CHECK_EQ(gort_chan_send_until(ch, &v, GORT_TRY), -EAGAIN);
    v = 0;
    CHECK_EQ(gort_chan_recv_until(ch, &v, now), 1);
    CHECK_EQ(v, 3);
    CHECK_EQ(gort_chan_close(ch), 0);
    CHECK_EQ(gort_chan_recv_until(ch, &v, now), 0);
    CHECK_EQ(gort_chan_send_until(ch, &v, now), -EPIPE);
    gort_chan_unref(ch);
}

/* --- waiting -------------------------------------------------------------------------------------- */

static gort_chan *ch1;
static atomic_bool reached;

static void send_one(int v)
{
    CHECK_EQ(gort_chan_send(ch1, &v), 0);
    atomic_store(&reached, true);
}

static void recv_one(int expected)
{
    int v = -1;
    CHECK_EQ(gort_chan_recv(ch1, &v), 1);
    CHECK_EQ(v, expected);
    atomic_store(&reached, true);
}

TEST_GO(a_receiver_waits_for_a_value, .procs = "1,2,4,64", .fuzz = true)
{
    for (size_t cap = 0; cap < 3; cap++) {
        ch1 = gort_chan_new(sizeof(int), cap);
        atomic_store(&reached, false);
        CHECK_EQ(GORT_GO(recv_one, 9), 0);
        await_waiting("chan receive", 1);
        CHECK(!atomic_load(&reached));
        int v = 9;
        CHECK_EQ(gort_chan_send_until(ch1, &v, GORT_TRY), 0); /* somebody waits: it can happen at once */
        CHECK_EQ(gort_chan_len(ch1), 0);
        settle();
        CHECK(atomic_load(&reached));
        gort_chan_unref(ch1);
    }
}

TEST_GO(a_sender_waits_for_room, .procs = "1,2,4,64", .fuzz = true)
{
    for (int cap = 0; cap < 3; cap++) {
        ch1 = gort_chan_new(sizeof(int), (size_t)cap);
        for (int i = 0; i < cap; i++)
            CHECK_EQ(gort_chan_send(ch1, &i), 0);
        atomic_store(&reached, false);
        CHECK_EQ(GORT_GO(send_one, cap), 0);
        await_waiting("chan send", 1);
        CHECK(!atomic_load(&reached));
        CHECK_EQ(gort_chan_len(ch1), cap);
        for (int i = 0; i <= cap; i++) {
            int v = -1;
            CHECK_EQ(gort_chan_recv_until(ch1, &v, GORT_TRY), 1);
            CHECK_EQ(v, i);
            if (i == 0)
                CHECK_EQ(gort_chan_len(ch1), cap); /* the sender's value took the place */
        }
        settle();
        CHECK(atomic_load(&reached));
        gort_chan_unref(ch1);
    }
}

static void expect_closed(int kind)
{
    long v = 55;
    CHECK_EQ(receive(ch1, &v, kind), 0);
    CHECK_EQ(v, 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(close_wakes_every_receiver, .procs = "1,2,4,64", .fuzz = true)
{
    ch1 = gort_chan_new(sizeof(long), 3);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(GORT_GO(expect_closed, i), 0);
    await_waiting("", 100);
    CHECK_EQ(gort_chan_close(ch1), 0);
    await(&counter, 100);
    settle();
    gort_chan_unref(ch1);
}

static void expect_pipe(int kind)
{
    long v = kind;
    CHECK_EQ(send(ch1, &v, kind), -EPIPE);
    CHECK_EQ(v, kind);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(close_wakes_every_sender, .procs = "1,2,4,64", .fuzz = true)
{
    ch1 = gort_chan_new(sizeof(long), 2);
    long v = -1;
    CHECK_EQ(gort_chan_send(ch1, &v), 0);
    CHECK_EQ(gort_chan_send(ch1, &v), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(GORT_GO(expect_pipe, i), 0);
    await_waiting("", 100);
    CHECK_EQ(gort_chan_close(ch1), 0);
    await(&counter, 100);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(gort_chan_recv(ch1, &v), 1);
        CHECK_EQ(v, -1);
    }
    CHECK_EQ(gort_chan_recv(ch1, &v), 0);
    settle();
    gort_chan_unref(ch1);
}

/* --- order ---------------------------------------------------------------------------------------- */

#define QUEUE 40

static void take_turn(int me)
{
    int v = -1;
    CHECK_EQ(receive(ch1, &v, me), 1);
    CHECK_EQ(v, me);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(receivers_are_served_in_order, .procs = "1,2,4,64", .fuzz = true)
{
    ch1 = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < QUEUE; i++) {
        CHECK_EQ(GORT_GO(take_turn, i), 0);
        await_waiting("", i + 1);
    }
    for (int i = 0; i < QUEUE; i++)
        CHECK_EQ(gort_chan_send_until(ch1, &i, GORT_TRY), 0);
    await(&counter, QUEUE);
    CHECK_EQ(gort_chan_send_until(ch1, &(int){0}, GORT_TRY), -EAGAIN);
    settle();
    gort_chan_unref(ch1);
}

static void give_turn(int me)
{
    CHECK_EQ(send(ch1, &me, me), 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(senders_are_served_in_order, .procs = "1,2,4,64", .fuzz = true)
{
    for (int cap = 0; cap < 4; cap++) {
        atomic_store(&counter, 0);
        ch1 = gort_chan_new(sizeof(int), (size_t)cap);
        for (int i = 0; i < QUEUE; i++) {
            CHECK_EQ(GORT_GO(give_turn, i), 0);
            if (i < cap)
                settle();
            else
                await_waiting("", i - cap + 1);
        }
        for (int i = 0; i < QUEUE; i++) {
            int v = -1;
            CHECK_EQ(gort_chan_recv_until(ch1, &v, GORT_TRY), 1);
            CHECK_EQ(v, i);
        }
        await(&counter, QUEUE);
        settle();
        CHECK_EQ(gort_chan_recv_until(ch1, NULL, GORT_TRY), -EAGAIN);
        gort_chan_unref(ch1);
    }
}

static void send_all(gort_chan *ch, int n)
{
    for (int i = 0; i < n; i++)
        CHECK_EQ(gort_chan_send(ch, &i), 0);
    gort_chan_close(ch);
}

TEST_GO(one_to_one_keeps_the_order, .procs = "1,2,4,64", .fuzz = true)
{
    int n = (int)test_scaled(20000, 1000);
    for (size_t cap = 0; cap < 12; cap += 1 + cap) {
        gort_chan *ch = gort_chan_new(sizeof(int), cap);
        CHECK_EQ(GORT_GO(send_all, ch, n), 0);
        for (int i = 0, v; i < n; i++) {
            CHECK_EQ(gort_chan_recv(ch, &v), 1);
            CHECK_EQ(v, i);
        }
        CHECK_EQ(gort_chan_recv(ch, NULL), 0);
        settle();
        gort_chan_unref(ch);
    }
}

/* test/chan/fifo.go: link i waits for its predecessor, takes the value i and tells its successor. */
static void chain_link(gort_chan *values, int me, gort_chan *in, gort_chan *out)
{
    int v;
    CHECK_EQ(gort_chan_recv(in, NULL), 1);
    CHECK_EQ(gort_chan_recv(values, &v), 1);
    CHECK_EQ(v, me);
    CHECK_EQ(gort_chan_send(out, NULL), 0);
}

TEST_GO(a_chain_of_receivers_keeps_the_order, .procs = "1,2,4,64", .fuzz = true)
{
    enum { LINKS = 200 };
    gort_chan *values = gort_chan_new(sizeof(int), 0), *turn[LINKS + 1];
    for (int i = 0; i <= LINKS; i++)
        turn[i] = gort_chan_new(0, 0);
    for (int i = 0; i < LINKS; i++)
        CHECK_EQ(GORT_GO(chain_link, values, i, turn[i], turn[i + 1]), 0);
    CHECK_EQ(gort_chan_send(turn[0], NULL), 0);
    for (int i = 0; i < LINKS; i++)
        CHECK_EQ(gort_chan_send(values, &i), 0);
    CHECK_EQ(gort_chan_recv(turn[LINKS], NULL), 1);
    settle();
    for (int i = 0; i <= LINKS; i++)
        gort_chan_unref(turn[i]);
    gort_chan_unref(values);
}

/* --- conservation --------------------------------------------------------------------------------- */

#define VALUES 1000
static atomic_int seen[VALUES];

static void send_each(int kind)
{
    for (int i = 0; i < VALUES; i++)
        CHECK_EQ(send(ch1, &i, kind), 0);
}

static void recv_each(int kind)
{
    for (int i = 0, v; i < VALUES; i++) {
        CHECK_EQ(receive(ch1, &v, kind), 1);
        CHECK_LT((unsigned)v, VALUES);
        atomic_fetch_add(&seen[v], 1);
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(four_to_four_each_value_four_times, .procs = "1,2,4,64", .fuzz = true)
{
    static const size_t caps[] = {0, 1, 10, 200};
    for (int c = 0; c < 4; c++) {
        ch1 = gort_chan_new(sizeof(int), caps[c]);
        atomic_store(&counter, 0);
        for (int i = 0; i < VALUES; i++)
            atomic_store(&seen[i], 0);
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(GORT_GO(send_each, i), 0);
            CHECK_EQ(GORT_GO(recv_each, i + c), 0);
        }
        await(&counter, 4);
        for (int i = 0; i < VALUES; i++)
            CHECK_EQ(atomic_load(&seen[i]), 4);
        CHECK_EQ(gort_chan_len(ch1), 0);
        settle();
        gort_chan_unref(ch1);
    }
}

/* chan_test.go TestMultiConsumer: doubling stages, closed one after the other. */
static void multi_worker(gort_chan *in, gort_chan *out, gort_wg *wg)
{
    long v;
    while (gort_chan_recv(in, &v) == 1) {
        if (v % 7 == 0)
            gort_yield();
        CHECK_EQ(gort_chan_send(out, &v), 0);
    }
    gort_wg_done(wg);
}

static void multi_feed(gort_chan *in, long n)
{
    for (long i = 0; i < n; i++) {
        long v = i % 13 + 1;
        atomic_fetch_add(&sum, v);
        CHECK_EQ(gort_chan_send(in, &v), 0);
    }
    CHECK_EQ(gort_chan_close(in), 0);
}

static void multi_close(gort_wg *wg, gort_chan *out)
{
    CHECK_EQ(gort_wg_wait(wg), 0);
    CHECK_EQ(gort_chan_close(out), 0);
}

TEST_GO(many_consumers_two_stages, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(271828, 5000), got = 0, total = 0, v;
    gort_chan *in = gort_chan_new(sizeof(long), 46), *out = gort_chan_new(sizeof(long), 46);
    static gort_wg wg;
    gort_wg_add(&wg, 23);
    for (int i = 0; i < 23; i++)
        CHECK_EQ(GORT_GO(multi_worker, in, out, &wg), 0);
    CHECK_EQ(GORT_GO(multi_feed, in, n), 0);
    CHECK_EQ(GORT_GO(multi_close, &wg, out), 0);
    while (gort_chan_recv(out, &v) == 1) {
        got++;
        total += v;
    }
    CHECK_EQ(got, n);
    CHECK_EQ(total, atomic_load(&sum));
    settle();
    gort_chan_unref(in);
    gort_chan_unref(out);
}

/* test/chan/sieve1.go */
static void generate(gort_chan *out)
{
    for (int i = 2;; i++)
        if (gort_chan_send(out, &i))
            return;
}

static void filter(gort_chan *in, gort_chan *out, int prime)
{
    int v;
    while (gort_chan_recv(in, &v) == 1)
        if (v % prime && gort_chan_send(out, &v))
            return;
}

TEST_GO(prime_sieve, .procs = "1,2,4,64", .fuzz = true)
{
    int n = (int)test_scaled(300, 60), prime = 0, count = 0;
    gort_chan *chans[301];
    chans[0] = gort_chan_new(sizeof(int), 0);
    CHECK_EQ(GORT_GO(generate, chans[0]), 0);
    for (int candidate = 2; count < n; candidate++) {
        bool is_prime = true;
        for (int d = 2; d * d <= candidate; d++)
            is_prime &= candidate % d != 0;
        if (!is_prime)
            continue;
        CHECK_EQ(gort_chan_recv(chans[count], &prime), 1);
        CHECK_EQ(prime, candidate);
        chans[count + 1] = gort_chan_new(sizeof(int), count % 3 == 0);
        CHECK_EQ(GORT_GO(filter, chans[count], chans[count + 1], prime), 0);
        count++;
    }
    for (int i = 0; i <= n; i++)
        gort_chan_close(chans[i]); /* everybody ends: senders by -EPIPE, receivers by 0 */
    settle();
    for (int i = 0; i <= n; i++)
        gort_chan_unref(chans[i]);
}

/* --- elements of any size ------------------------------------------------------------------------- */

static void tokens_back(gort_chan *in, gort_chan *out)
{
    while (gort_chan_recv(in, NULL) == 1)
        CHECK_EQ(gort_chan_send(out, NULL), 0);
    gort_chan_close(out);
}

TEST_GO(elements_without_size, .procs = "1,2,4,64", .fuzz = true)
{
    for (size_t cap = 0; cap < 6; cap += 5) {
        gort_chan *in = gort_chan_new(0, cap), *out = gort_chan_new(0, cap);
        CHECK_EQ(GORT_GO(tokens_back, in, out), 0);
        for (int i = 0; i < 1000; i++) {
            CHECK_EQ(gort_chan_send(in, NULL), 0);
            CHECK_EQ(gort_chan_recv(out, NULL), 1);
        }
        CHECK_EQ(gort_chan_close(in), 0);
        CHECK_EQ(gort_chan_recv(out, NULL), 0);
        settle();
        gort_chan_unref(in);
        gort_chan_unref(out);
    }
}

static void fill(unsigned char *at, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        at[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static void send_patterns(gort_chan *ch, size_t elem, int n)
{
    unsigned char *value = malloc(elem);
    for (int i = 0; i < n; i++) {
        fill(value, elem, (unsigned)i);
        CHECK_EQ(send(ch, value, i), 0);
        memset(value, 0xee, elem);
    }
    free(value);
}

TEST_GO(elements_of_every_size_arrive_whole, .procs = "1,2,4,64", .fuzz = true)
{
    static const size_t sizes[] = {1, 2, 3, 4, 7, 8, 9, 12, 16, 17, 100, 1000, 4096, GORT_CHAN_ELEM_MAX};
    int n = (int)test_scaled(60, 12);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (size_t cap = 0; cap < 4; cap += 3) {
            size_t elem = sizes[s];
            unsigned char *got = malloc(elem + 8), *want = malloc(elem);
            gort_chan *ch = gort_chan_new(elem, cap);
            CHECK_EQ(GORT_GO(send_patterns, ch, elem, n), 0);
            for (int i = 0; i < n; i++) {
                if (i % 4 == 1)
                    gort_yield(); /* sometimes the sender waits first, sometimes the receiver */
                memset(got, 0xdd, elem + 8);
                CHECK_EQ(receive(ch, got, i / 4), 1);
                fill(want, elem, (unsigned)i);
                CHECK(memcmp(got, want, elem) == 0);
                for (int k = 0; k < 8; k++)
                    CHECK_EQ(got[elem + (size_t)k], 0xdd);
            }
            CHECK_EQ(gort_chan_close(ch), 0);
            memset(got, 0xdd, elem + 8);
            CHECK_EQ(gort_chan_recv(ch, got), 0);
            for (size_t k = 0; k < elem + 8; k++)
                CHECK_EQ(got[k], k < elem ? 0 : 0xdd);
            settle();
            gort_chan_unref(ch);
            free(got);
            free(want);
        }
}

/* --- threads -------------------------------------------------------------------------------------- */

static long per_thread(void)
{
    return test_under_valgrind() ? 200 : 2000;
}

static void produce(int kind)
{
    for (long i = 1, n = per_thread(); i <= n; i++) {
        CHECK_EQ(send(ch1, &i, kind), 0);
        atomic_fetch_add(&sum, i);
    }
}

static void consume(int kind)
{
    long v;
    while (receive(ch1, &v, kind) == 1) {
        atomic_fetch_sub(&sum, v);
        atomic_fetch_add(&counter, 1);
    }
}

static void *thread_produce(void *kind)
{
    produce((int)(intptr_t)kind);
    return NULL;
}

static void *thread_consume(void *kind)
{
    consume((int)(intptr_t)kind);
    return NULL;
}

TEST_GO(threads_and_goroutines_on_both_ends, .procs = "1,2,4,64", .fuzz = true)
{
    for (size_t cap = 0; cap < 9; cap += 4) {
        pthread_t producers[4], consumers[4];
        atomic_store(&counter, 0);
        atomic_store(&sum, 0);
        ch1 = gort_chan_new(sizeof(long), cap);
        for (intptr_t i = 0; i < 4; i++) {
            CHECK_EQ(GORT_GO(produce, (int)i), 0);
            CHECK_EQ(GORT_GO(consume, (int)i), 0);
            CHECK_EQ(pthread_create(&producers[i], NULL, thread_produce, (void *)i), 0);
            CHECK_EQ(pthread_create(&consumers[i], NULL, thread_consume, (void *)i), 0);
        }
        await(&counter, 8 * per_thread());
        for (int i = 0; i < 4; i++)
            pthread_join(producers[i], NULL);
        CHECK_EQ(gort_chan_close(ch1), 0);
        for (int i = 0; i < 4; i++)
            pthread_join(consumers[i], NULL);
        settle(); /* a producer counts what it has sent, after it was received */
        CHECK_EQ(atomic_load(&counter), 8 * per_thread());
        CHECK_EQ(atomic_load(&sum), 0);
        gort_chan_unref(ch1);
    }
}
