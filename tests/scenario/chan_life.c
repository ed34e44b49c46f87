/* SPDX-License-Identifier: MIT */
/*
 * chan_life.c - channels that are freed while others return from them, time out, outlive runs.
 * Covers: src/sync/chan.c
 */
#include "chan_ways.h"

static atomic_long counter;
static gort_chan *ch1;

static void send_one(int v)
{
    CHECK_EQ(gort_chan_send(ch1, &v), 0);
}

static void recv_one(int expected)
{
    int v = -1;
    CHECK_EQ(gort_chan_recv(ch1, &v), 1);
    CHECK_EQ(v, expected);
}

/* --- lifetimes ------------------------------------------------------------------------------------ */

static void send_and_go(gort_chan *ch, int kind)
{
    long v = 17;
    CHECK_EQ(send(ch, &v, kind), 0);
    atomic_fetch_add(&counter, 1);
}

/* The receiver holds the only reference and drops it while the sender is still on its way out. */
TEST_GO(freed_by_the_receiver_right_after_the_last_value, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(20000, 3000);
    for (long i = 0; i < n; i++) {
        gort_chan *ch = gort_chan_new(sizeof(long), i % 3 == 2);
        CHECK_EQ(GORT_GO(send_and_go, ch, (int)i), 0);
        if (i % 5 == 1)
            gort_yield();
        long v = 0;
        CHECK_EQ(receive(ch, &v, (int)(i / KINDS)), 1);
        gort_chan_unref(ch);
        CHECK_EQ(v, 17);
    }
    await(&counter, n);
    settle();
}

static void recv_and_go(gort_chan *ch, int kind)
{
    long v = 0;
    CHECK_EQ(receive(ch, &v, kind), kind % 3 == 2 ? 0 : 1);
    CHECK_EQ(v, kind % 3 == 2 ? 0 : 17);
    atomic_fetch_add(&counter, 1);
}

/* The same the other way round: the unbuffered send has returned, so the receiver has its value. */
TEST_GO(freed_by_the_sender_while_the_receiver_returns, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(20000, 3000);
    for (long i = 0; i < n; i++) {
        gort_chan *ch = gort_chan_new(sizeof(long), 0);
        CHECK_EQ(GORT_GO(recv_and_go, ch, (int)i), 0);
        long v = 17;
        if (i % 3 == 2) {
            await_waiting("", 1); /* or it would come after the end */
            CHECK_EQ(gort_chan_close(ch), 0);
        } else {
            CHECK_EQ(send(ch, &v, (int)(i / KINDS)), 0);
        }
        gort_chan_unref(ch);
        if (i % 3 == 2 || i % 64 == 0) {
            await(&counter, i + 1);
            settle();
        }
    }
    await(&counter, n);
    settle();
}

static gort_chan *box;
static pthread_barrier_t in_step;

static void *thread_sends_to_box(void *rounds)
{
    for (long i = 0; i < (long)(intptr_t)rounds; i++) {
        long v = i;
        pthread_barrier_wait(&in_step);
        CHECK_EQ(send(box, &v, (int)i), 0);
        pthread_barrier_wait(&in_step);
    }
    return NULL;
}

static void *thread_frees_box(void *rounds)
{
    for (long i = 0; i < (long)(intptr_t)rounds; i++) {
        long v = -1;
        box = gort_chan_new(sizeof(long), i % 2);
        pthread_barrier_wait(&in_step);
        CHECK_EQ(receive(box, &v, (int)(i / KINDS)), 1);
        gort_chan_unref(box);
        CHECK_EQ(v, i);
        pthread_barrier_wait(&in_step);
    }
    atomic_store(&counter, 1);
    return NULL;
}

TEST_GO(freed_between_plain_threads, .procs = "1,2")
{
    intptr_t n = test_scaled(20000, 2000);
    pthread_t a, b;
    CHECK_EQ(pthread_barrier_init(&in_step, NULL, 2), 0);
    CHECK_EQ(pthread_create(&a, NULL, thread_sends_to_box, (void *)n), 0);
    CHECK_EQ(pthread_create(&b, NULL, thread_frees_box, (void *)n), 0);
    await(&counter, 1);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
}

static void recv_cancelled_and_count(gort_chan *ch, int kind)
{
    gort_case both[] = {{.ch = ch, .op = GORT_RECV}, {.ch = ch, .op = GORT_SEND, .send = &kind}};
    switch (kind % 3) {
    case 0:
        CHECK_EQ(gort_chan_recv(ch, NULL), -ECANCELED);
        break;
    case 1:
        CHECK_EQ(gort_chan_recv_until(ch, NULL, soon()), -ECANCELED);
        break;
    default:
        CHECK_EQ(gort_select(both, 1, GORT_FOREVER), -ECANCELED);
    }
    atomic_fetch_add(&counter, 1);
}

/* "A parked operation holds a reference on its channel": it may be let go while somebody still waits. */
TEST_GO(a_wait_keeps_its_channel, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 20; i++) {
        gort_chan *ch = gort_chan_new(sizeof(int), 0);
        gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
        gort_ctx_use(ctx);
        for (int k = 0; k < 12; k++)
            CHECK_EQ(GORT_GO(recv_cancelled_and_count, ch, k), 0);
        gort_ctx_use(NULL);
        await_waiting("", 12);
        gort_chan_unref(ch);
        gort_ctx_cancel(ctx, 0);
        await(&counter, (i + 1) * 12);
        settle();
        gort_ctx_unref(ctx);
    }
}

/* --- deadlines ------------------------------------------------------------------------------------ */

TEST_GO(a_deadline_is_not_early, .procs = "1,2,4,64", .fuzz = true)
{
    gort_chan *ch = gort_chan_new(8, 0);
    for (int i = 0; i < 10; i++) {
        int64_t from = gort_now(), until = gort_in((1 + i * 2) * GORT_MS);
        CHECK_EQ(i % 2 ? gort_chan_recv_until(ch, NULL, until) : gort_chan_send_until(ch, &from, until),
                 -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK_LT(gort_now() - from, test_seconds(20));
    }
    gort_chan_unref(ch);
}

TEST_GO(who_timed_out_is_out_of_the_queue, .procs = "1,2,4,64", .fuzz = true)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 0);
    int v = 8;
    CHECK_EQ(gort_chan_recv_until(ch, &v, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_chan_send_until(ch, &v, GORT_TRY), -EAGAIN); /* nobody there to take it */
    CHECK_EQ(gort_chan_send_until(ch, &v, gort_in(GORT_MS)), -ETIMEDOUT);
    v = 9;
    CHECK_EQ(gort_chan_recv_until(ch, &v, GORT_TRY), -EAGAIN); /* nothing of it is left */
    CHECK_EQ(v, 9);
    ch1 = ch;
    CHECK_EQ(GORT_GO(recv_one, 8), 0);
    await_waiting("chan receive", 1);
    v = 8;
    CHECK_EQ(gort_chan_send(ch, &v), 0);
    settle();
    gort_chan_unref(ch);
}

static atomic_long sent_n, sent_sum, got_n, got_sum;

static void sender_near_deadline(uint64_t seed, int rounds)
{
    for (int i = 1; i <= rounds; i++) {
        long v = i;
        int err = gort_chan_send_until(ch1, &v, gort_in((int64_t)(test_random(&seed) % (60 * GORT_US))));
        CHECK(err == 0 || err == -ETIMEDOUT);
        if (err == 0) {
            atomic_fetch_add(&sent_n, 1);
            atomic_fetch_add(&sent_sum, v);
        }
    }
    atomic_fetch_add(&counter, 1);
}

static void receiver_near_deadline(uint64_t seed, int rounds)
{
    for (int i = 0; i < rounds; i++) {
        long v = -1;
        int err = gort_chan_recv_until(ch1, &v, gort_in((int64_t)(test_random(&seed) % (60 * GORT_US))));
        CHECK(err == 1 || err == -ETIMEDOUT);
        if (err == 1) {
            CHECK_GT(v, 0);
            atomic_fetch_add(&got_n, 1);
            atomic_fetch_add(&got_sum, v);
        } else {
            CHECK_EQ(v, -1); /* nothing came, nothing was written */
        }
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(nothing_is_lost_at_the_deadline, .procs = "1,2,4,64", .fuzz = true)
{
    int rounds = (int)test_scaled(10000, 1000);
    for (size_t cap = 0; cap < 2; cap++) {
        atomic_store(&counter, 0);
        ch1 = gort_chan_new(sizeof(long), cap);
        for (uint64_t i = 0; i < 3; i++) {
            CHECK_EQ(GORT_GO(sender_near_deadline, test_seed() + i, rounds), 0);
            CHECK_EQ(GORT_GO(receiver_near_deadline, test_seed() + 10 + i, rounds), 0);
        }
        await(&counter, 6);
        for (long v; gort_chan_recv_until(ch1, &v, GORT_TRY) == 1;) {
            atomic_fetch_add(&got_n, 1);
            atomic_fetch_add(&got_sum, v);
        }
        CHECK_EQ(atomic_load(&sent_n), atomic_load(&got_n));
        CHECK_EQ(atomic_load(&sent_sum), atomic_load(&got_sum));
        CHECK_GT(atomic_load(&got_n), 0);
        settle();
        gort_chan_unref(ch1);
    }
}

/* --- over several runs ---------------------------------------------------------------------------- */

static gort_chan *kept_recv, *kept_send;

static void wait_on_kept(int kind)
{
    long v = 12345;
    if (kind & 1)
        send(kept_send, &v, kind / 2);
    else
        receive(kept_recv, &v, kind / 2);
    CHECK_MSG(false, "was woken");
}

static int leave_waiters(void *n)
{
    for (int i = 0; i < (int)(intptr_t)n; i++)
        CHECK_EQ(GORT_GO(wait_on_kept, i), 0);
    await_waiting("", (int)(intptr_t)n);
    return 0;
}

static int use_kept(void *unused)
{
    (void)unused;
    ch1 = kept_recv;
    CHECK_EQ(GORT_GO(recv_one, 5), 0);
    await_waiting("chan receive", 1);
    int v = 5;
    CHECK_EQ(gort_chan_send(kept_recv, &v), 0);
    ch1 = kept_send;
    CHECK_EQ(GORT_GO(send_one, 6), 0);
    CHECK_EQ(gort_chan_recv(kept_send, &v), 1);
    CHECK_EQ(v, 6);
    settle();
    return 0;
}

TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    kept_recv = gort_chan_new(sizeof(int), 0);
    kept_send = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(gort_run(leave_waiters, (void *)16), 0);
        if (i % 2) { /* the first to meet them may be a thread between the runs, or the next run */
            int v = 1;
            CHECK_EQ(gort_chan_send_until(kept_recv, &v, GORT_TRY), -EAGAIN);
            CHECK_EQ(gort_chan_recv_until(kept_send, &v, GORT_TRY), -EAGAIN);
        }
        CHECK_EQ(gort_run(use_kept, NULL), 0);
    }
    CHECK_EQ(gort_run(leave_waiters, (void *)16), 0);
    CHECK_EQ(gort_chan_close(kept_recv), 0);
    CHECK_EQ(gort_chan_close(kept_send), 0);
    gort_chan_unref(kept_recv);
    gort_chan_unref(kept_send);
}

/* --- memory --------------------------------------------------------------------------------------- */

/* Their last reference is dropped while somebody waits, and the run ends first. */
#define BIG ((size_t)1 << 20)

static long mapped_kb(void)
{
    char text[64] = "";
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    return atol(text) * (sysconf(_SC_PAGESIZE) / 1024);
}

static void wait_for_long(gort_chan *ch, int kind)
{
    gort_case both[] = {{.ch = ch, .op = GORT_RECV}, {.ch = ch1, .op = GORT_RECV}};
    if (kind == 0)
        gort_chan_recv_until(ch, NULL, gort_in(3600 * GORT_SEC));
    else
        gort_select(both, 2, GORT_FOREVER);
    test_fail(__FILE__, __LINE__, "nobody sends");
}

static int drop_under_waiters(void *unused)
{
    gort_chan *big[8];
    (void)unused;
    ch1 = gort_chan_new(0, 0);
    for (int i = 0; i < 8; i++) {
        big[i] = gort_chan_new(1, BIG);
        CHECK_EQ(GORT_GO(wait_for_long, big[i], i % 2), 0);
    }
    await_waiting("", 8);
    for (int i = 0; i < 8; i++)
        gort_chan_unref(big[i]);
    gort_chan_unref(ch1);
    return 0;
}

TEST(dropped_under_waiters_that_never_return, .procs = "1,2,4", .fuzz = true)
{
    long before = 0;
    for (int i = 0; i < 40; i++) {
        CHECK_EQ(gort_run(drop_under_waiters, NULL), 0);
        if (i == 4)
            before = mapped_kb();
    }
    CHECK_LT(mapped_kb(), before + 64L * 1024);
}

TEST_GO(channels_that_come_and_go_need_no_more_memory, .procs = "1,2", .fuzz = true)
{
    long n = test_scaled(100000, 2000), before = 0;
    for (long i = 0; i < n; i++) {
        gort_chan *ch = gort_chan_new((size_t)(i % 100), (size_t)(i % 50));
        CHECK(ch);
        if (i % 4 == 0) {
            gort_chan *small = gort_chan_new(sizeof(long), 0);
            CHECK_EQ(GORT_GO(send_and_go, small, (int)(i / 4)), 0);
            CHECK_EQ(receive(small, &(long){0}, (int)(i / 16)), 1);
            gort_chan_unref(small);
        }
        gort_chan_unref(ch);
        if (i == n / 10)
            before = test_rss_kb();
    }
    settle();
    check_flat(before, 4096);
}
