/* SPDX-License-Identifier: MIT */
/*
 * chan.c - channels under load: every kind of send and receive at random, by goroutines and threads, with
 * deadlines, contexts and closes; what was sent is what was received.
 * Covers: src/sync/chan.c src/sync/select.c
 */
#include "scenario/waiting.h"

#define CHANS 5

static gort_chan *chans[CHANS];
static gort_ctx *ctx;
static atomic_long sent_n, sent_sum, got_n, got_sum, gave_up;
static gort_wg workers;

static int64_t some_deadline(uint64_t *seed)
{
    switch (test_random(seed) % 4) {
    case 0:
        return GORT_TRY;
    case 1:
        return gort_in((int64_t)(test_random(seed) % (20 * GORT_US)));
    case 2:
        return gort_in((int64_t)(test_random(seed) % (2 * GORT_MS)));
    default:
        return GORT_FOREVER;
    }
}

static void note(bool sent, long value, int result)
{
    if (sent ? result == 0 : result == 1) {
        atomic_fetch_add(sent ? &sent_n : &got_n, 1);
        atomic_fetch_add(sent ? &sent_sum : &got_sum, value);
    } else {
        CHECK(result == -EAGAIN || result == -ETIMEDOUT || result == -ECANCELED);
        atomic_fetch_add(&gave_up, 1);
    }
}

/* Balanced on average, so that waits without a deadline end: the cancel at the end sees to the rest. */
static void work(uint64_t seed, long n)
{
    for (long i = 1; i <= n && !gort_ctx_err(ctx); i++) {
        gort_chan *ch = chans[test_random(&seed) % CHANS];
        int64_t deadline = some_deadline(&seed);
        bool sends = test_random(&seed) % 2;
        long v = sends ? (long)(test_random(&seed) % 1000) : -1;
        if (test_random(&seed) % 3 == 0) {
            gort_chan *other = chans[test_random(&seed) % CHANS];
            long in = -1, out = (long)(test_random(&seed) % 1000);
            gort_case cases[] = {
                {.ch = ch, .op = GORT_SEND, .send = &out},
                {.ch = other, .op = GORT_RECV, .recv = &in},
                {.ch = test_random(&seed) % 2 ? other : NULL, .op = GORT_SEND, .send = &out}};
            int k = gort_select(cases, 3, deadline);
            if (k < 0)
                note(true, 0, k);
            else
                note(k != 1, k == 1 ? in : out, cases[k].result);
        } else {
            int result = sends ? gort_chan_send_until(ch, &v, deadline)
                               : gort_chan_recv_until(ch, &v, deadline);
            note(sends, v, result);
        }
    }
    gort_wg_done(&workers);
}

static void *thread_work(void *seed)
{
    gort_ctx_use(ctx);
    work((uint64_t)(uintptr_t)seed, INT32_MAX);
    gort_ctx_use(NULL);
    return NULL;
}

TEST_GO(every_kind_at_once, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[3];
    int rounds = (int)test_scaled(10, 3);
    for (int round = 0; round < rounds || !atomic_load(&got_n) || !atomic_load(&gave_up); round++) {
        ctx = gort_ctx_new(NULL, GORT_FOREVER);
        for (int i = 0; i < CHANS; i++)
            chans[i] = gort_chan_new(sizeof(long), (size_t)(i * i));
        gort_wg_add(&workers, 23);
        for (uint64_t i = 0; i < 3; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, thread_work, (void *)(uintptr_t)(test_seed() + i)), 0);
        gort_ctx_use(ctx);
        for (uint64_t i = 0; i < 20; i++)
            CHECK_EQ(GORT_GO(work, test_seed() + 100 + i, (long)INT32_MAX), 0);
        gort_ctx_use(NULL);
        let_pass(100 * GORT_MS);
        gort_ctx_cancel(ctx, 0);
        CHECK_EQ(gort_wg_wait_until(&workers, soon()), 0);
        for (int i = 0; i < 3; i++)
            pthread_join(threads[i], NULL);
        settle();
        for (int i = 0; i < CHANS; i++) {
            for (long v; gort_chan_recv_until(chans[i], &v, GORT_TRY) == 1;)
                note(false, v, 1);
            CHECK_EQ(gort_chan_close(chans[i]), 0);
            gort_chan_unref(chans[i]);
        }
        CHECK_EQ(atomic_load(&sent_n), atomic_load(&got_n));
        CHECK_EQ(atomic_load(&sent_sum), atomic_load(&got_sum));
        gort_ctx_unref(ctx);
    }
    test_log("%ld values, %ld waits given up", atomic_load(&got_n), atomic_load(&gave_up));
}

/* --- closing while others are at it ------------------------------------------------------------------ */

static void send_until_closed(gort_chan *ch)
{
    long v = 1;
    int err;
    while ((err = gort_chan_send(ch, &v)) == 0)
        atomic_fetch_add(&sent_n, 1);
    CHECK_EQ(err, -EPIPE);
    gort_chan_unref(ch);
}

static void recv_until_closed(gort_chan *ch)
{
    long v = 0;
    int got;
    while ((got = gort_chan_recv(ch, &v)) == 1) {
        CHECK_EQ(v, 1);
        atomic_fetch_add(&got_n, 1);
    }
    CHECK_EQ(got, 0);
    CHECK_EQ(v, 0);
    gort_chan_unref(ch);
}

TEST_GO(closed_in_the_middle_of_it, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(600, 60);
    for (long i = 0; i < n; i++) {
        gort_chan *ch = gort_chan_new(sizeof(long), (size_t)(i % 4));
        for (int k = 0; k < 3; k++) {
            CHECK_EQ(GORT_GO(send_until_closed, gort_chan_ref(ch)), 0);
            CHECK_EQ(GORT_GO(recv_until_closed, gort_chan_ref(ch)), 0);
        }
        for (int k = 0; k < i % 8; k++)
            gort_yield();
        CHECK_EQ(gort_chan_close(ch), 0);
        CHECK_EQ(gort_chan_close(ch), -EPIPE);
        gort_chan_unref(ch); /* the last one out frees it */
    }
    settle();
    CHECK_EQ(atomic_load(&sent_n), atomic_load(&got_n));
}
