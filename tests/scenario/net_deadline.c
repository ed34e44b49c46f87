/* SPDX-License-Identifier: MIT */
/*
 * net_deadline.c - deadlines of fds and of calls; contexts.
 * Covers: src/io/fd.c src/io/wait.c src/poll/fd.c
 *
 * Lower bounds are strict, upper ones loose: the machine may be busy.
 */
#include "netting.h"

static atomic_long woken, result;

static void read_one(int fd)
{
    char byte;
    atomic_store(&result, gort_read(fd, &byte, 1));
    atomic_fetch_add(&woken, 1);
}

TEST_GO(a_passed_deadline_counts_data_or_not)
{
    char byte = 'x';
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(gort_write_all(ends[0], &byte, 1), 1);
    CHECK_EQ(gort_wait_fd(ends[1], GORT_READ, soon()), GORT_READ);
    CHECK_EQ(gort_set_deadline(ends[1], GORT_READ | GORT_WRITE, gort_now()), 0);
    CHECK_EQ(gort_read(ends[1], &byte, 1), -ETIMEDOUT);
    CHECK_EQ(gort_read_until(ends[1], &byte, 1, GORT_TRY), -ETIMEDOUT);
    CHECK_EQ(gort_write(ends[1], &byte, 1), -ETIMEDOUT);
    CHECK_EQ(gort_wait_fd(ends[1], GORT_READ | GORT_WRITE, GORT_TRY),
             GORT_READ | GORT_WRITE); /* not for this */
    CHECK_EQ(gort_set_deadline(ends[1], GORT_WRITE, GORT_FOREVER), 0);
    CHECK_EQ(gort_write(ends[1], &byte, 1), 1);
    CHECK_EQ(gort_read(ends[1], &byte, 1), -ETIMEDOUT);
    CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, GORT_FOREVER), 0);
    CHECK_EQ(gort_read(ends[1], &byte, 1), 1);
    CHECK_EQ(gort_set_deadline(ends[1], 0, GORT_FOREVER), -EINVAL);
    CHECK_EQ(gort_set_deadline(ends[1], 8, GORT_FOREVER), -EINVAL);
    close_pair(ends);
}

/* The deadline of a call is about waiting: what is there is read. */
TEST_GO(the_deadline_of_a_call_is_for_waiting)
{
    char byte = 'x';
    int ends[2];
    tcp_pair(ends);
    int64_t passed = gort_now();
    CHECK_EQ(gort_read_until(ends[1], &byte, 1, passed), -ETIMEDOUT);
    CHECK_EQ(gort_read_until(ends[1], &byte, 1, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_write_until(ends[0], &byte, 1, passed), 1);
    CHECK_EQ(gort_wait_fd(ends[1], GORT_READ, soon()), GORT_READ);
    CHECK_EQ(gort_read_until(ends[1], &byte, 1, passed), 1);
    close_pair(ends);
}

TEST_GO(a_cleared_deadline_does_not_end_a_read, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    bool in_time;
    tcp_pair(ends);
    do { /* on a busy machine the deadline may pass before it is cleared */
        int64_t deadline = gort_in(20 * GORT_MS);
        atomic_store(&woken, 0);
        CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, deadline), 0);
        CHECK_EQ(GORT_GO(read_one, ends[1]), 0);
        CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, GORT_FOREVER), 0);
        in_time = gort_now() < deadline;
        gort_sleep(40 * GORT_MS);
        CHECK_EQ(gort_write_all(ends[0], "x", 1), 1);
        await(&woken, 1);
        if (result != 1) { /* then the byte is still there */
            CHECK(!in_time && result == -ETIMEDOUT);
            CHECK_EQ(gort_read(ends[1], &(char){0}, 1), 1);
        }
    } while (!in_time);
    close_pair(ends);
}

TEST_GO(a_new_deadline_ends_a_read_now, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    tcp_pair(ends);
    for (int i = 0; i < 50; i++) {
        atomic_store(&woken, 0);
        CHECK_EQ(GORT_GO(read_one, ends[1]), 0);
        if (i % 2)
            await_waiting("io read", 1);
        CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, gort_now()), 0);
        await(&woken, 1);
        CHECK_EQ(result, -ETIMEDOUT);
        CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, GORT_FOREVER), 0);
    }
    close_pair(ends);
}

static void write_much(int fd)
{
    static char much[1 << 16];
    ssize_t n;
    while ((n = gort_write(fd, much, sizeof much)) > 0)
        ;
    atomic_store(&result, n);
    atomic_fetch_add(&woken, 1);
}

static void read_until(int fd, int64_t deadline, int want)
{
    char byte;
    CHECK_EQ(gort_read_until(fd, &byte, 1, deadline), want);
    atomic_fetch_add(&woken, 1);
}

/* Several wait for the same, and give up from anywhere in the queue: the others keep their place. */
TEST_GO(some_of_several_give_up, .procs = "1,2,4", .fuzz = true)
{
    enum { N = 5 };
    static const bool stays[][N] = {
        {1, 0, 1, 0, 1}, {0, 1, 0, 1, 0}, {1, 0, 0, 0, 0}, {0, 0, 0, 0, 1}, {1, 1, 0, 0, 1}};
    int ends[2];
    tcp_pair(ends);
    for (size_t i = 0; i < sizeof stays / sizeof *stays; i++) {
        int64_t deadline = gort_in(20 * GORT_MS);
        int left = 0;
        atomic_store(&woken, 0);
        for (int k = 0; k < N; k++) {
            CHECK_EQ(GORT_GO(read_until, ends[1], stays[i][k] ? GORT_FOREVER : deadline + k % 2 * GORT_MS,
                             stays[i][k] ? 1 : -ETIMEDOUT),
                     0);
            left += stays[i][k];
            gort_yield();
        }
        await(&woken, N - left);
        for (int k = 0; k < left; k++) {
            CHECK_EQ(atomic_load(&woken), N - left + k);
            CHECK_EQ(gort_write_all(ends[0], "x", 1), 1);
            await(&woken, N - left + k + 1);
        }
    }
    close_pair(ends);
}

TEST_GO(writers_and_acceptors_too, .procs = "1,2")
{
    char addr[64];
    int ends[2], listener = listen_here(addr, sizeof addr);
    tcp_pair(ends);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(GORT_GO(write_much, ends[0]), 0);
    await_waiting("io write", 3); /* one for room, two for their turn */
    CHECK_EQ(gort_set_deadline(ends[0], GORT_WRITE, gort_in(5 * GORT_MS)), 0);
    await(&woken, 3);
    CHECK_EQ(result, -ETIMEDOUT);
    CHECK_EQ(gort_set_deadline(listener, GORT_READ, gort_in(5 * GORT_MS)), 0);
    CHECK_EQ(gort_accept(listener), -ETIMEDOUT);
    CHECK_EQ(gort_set_deadline(listener, GORT_READ, GORT_FOREVER), 0);
    CHECK_EQ(gort_accept_until(listener, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_accept_until(listener, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_close(listener), 0);
    close_pair(ends);
}

TEST_GO(never_too_early, .procs = "1,4")
{
    static const int64_t lengths[] = {1,       1000,        50 * GORT_US, 300 * GORT_US,
                                      GORT_MS, 5 * GORT_MS, 30 * GORT_MS};
    char byte;
    int ends[2];
    tcp_pair(ends);
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++) {
        int64_t from = gort_now(), length = lengths[i / 2], until = gort_in(length);
        if (i % 2) {
            CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, until), 0);
            CHECK_EQ(gort_read(ends[1], &byte, 1), -ETIMEDOUT);
        } else {
            CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, GORT_FOREVER), 0);
            CHECK_EQ(gort_read_until(ends[1], &byte, 1, until), -ETIMEDOUT);
        }
        CHECK_GE(gort_now() - from, length);
        CHECK_LT(gort_now() - from, LONG_ENOUGH);
    }
    close_pair(ends);
}

/* Data and deadline at the same moment: whichever wins, no byte is lost and none comes twice. */
static void send_bytes(int fd, long n)
{
    uint64_t state = test_seed();
    for (long i = 0; i < n; i++) {
        char byte = (char)i;
        gort_sleep((int64_t)(test_random(&state) % 200) * GORT_US);
        CHECK_EQ(gort_write_all(fd, &byte, 1), 1);
    }
}

TEST_GO(data_and_deadline_race, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    long n = test_scaled(1000, 100), timeouts = 0;
    tcp_pair(ends);
    CHECK_EQ(GORT_GO(send_bytes, ends[0], n), 0);
    for (long i = 0; i < n;) {
        char byte;
        ssize_t got = i % 2 ? gort_read_until(ends[1], &byte, 1, gort_in(100 * GORT_US)) : -EAGAIN;
        if (got == -EAGAIN) {
            CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, gort_in(100 * GORT_US)), 0);
            got = gort_read(ends[1], &byte, 1);
            CHECK_EQ(gort_set_deadline(ends[1], GORT_READ, GORT_FOREVER), 0);
        }
        if (got == -ETIMEDOUT) {
            timeouts++;
            continue;
        }
        CHECK_EQ(got, 1);
        CHECK_EQ(byte, (char)i);
        i++;
    }
    test_log("%ld bytes, %ld timeouts", n, timeouts);
    close_pair(ends);
}

/* --- contexts --------------------------------------------------------------------------------- */

TEST_GO(a_context_ends_waits, .procs = "1,2,4", .fuzz = true)
{
    char addr[64];
    int ends[2], listener = listen_here(addr, sizeof addr);
    tcp_pair(ends);
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER), *former = gort_ctx_use(ctx);
    CHECK_EQ(GORT_GO(read_one, ends[1]), 0);
    gort_ctx_use(former);
    await_waiting("io read", 1);
    gort_ctx_cancel(ctx, 0);
    await(&woken, 1);
    CHECK_EQ(result, -ECANCELED);
    gort_ctx_use(ctx);
    CHECK_EQ(gort_accept(listener), -ECANCELED);
    CHECK_EQ(gort_wait_fd(listener, GORT_READ, GORT_FOREVER), -ECANCELED);
    CHECK_EQ(gort_write(ends[0], "x", 1), 1); /* what can proceed at once does */
    gort_ctx_use(former);
    gort_ctx_unref(ctx);
    CHECK_EQ(gort_close(listener), 0);
    close_pair(ends);
}

/* --- plain threads ---------------------------------------------------------------------------- */

static int thread_ends[2];
static atomic_int thread_tid; /* right before a read that the test waits for */

static void *thread_reads(void *unused)
{
    char byte;
    CHECK_EQ(gort_read_until(thread_ends[1], &byte, 1, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    atomic_store(&thread_tid, thread_id());
    CHECK_EQ(gort_read(thread_ends[1], &byte, 1), 1);
    atomic_fetch_add(&woken, 1);
    atomic_store(&thread_tid, thread_id());
    CHECK_EQ(gort_read(thread_ends[1], &byte, 1), -EBADF);
    return unused;
}

TEST_GO(threads_wait_too, .procs = "1,2")
{
    pthread_t thread;
    tcp_pair(thread_ends);
    CHECK_EQ(pthread_create(&thread, NULL, thread_reads, NULL), 0);
    await_thread(&thread_tid);
    atomic_store(&thread_tid, 0);
    CHECK_EQ(gort_write_all(thread_ends[0], "x", 1), 1);
    await(&woken, 1);
    await_thread(&thread_tid);
    CHECK_EQ(gort_close(thread_ends[1]), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(gort_close(thread_ends[0]), 0);
}
