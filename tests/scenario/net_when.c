/* SPDX-License-Identifier: MIT */
/*
 * net_when.c - gort_go_when: goroutines that begin when an fd is ready.
 * Covers: src/io/when.c
 */
#include "netting.h"
#include "poll/poll.h"

static atomic_long begun, bytes;

static void take(void *arg)
{
    char buf[16];
    int fd = (int)(intptr_t)arg;
    ssize_t n = gort_read_until(fd, buf, sizeof buf, GORT_TRY);
    atomic_fetch_add(&bytes, n);
    atomic_fetch_add(&begun, 1);
}

static void *as_arg(int fd)
{
    return (void *)(intptr_t)fd;
}

TEST_GO(begins_with_the_data, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    tcp_pair(ends);
    for (int i = 0; i < 200; i++) {
        CHECK_EQ(gort_go_when(ends[0], GORT_READ, take, as_arg(ends[0])), 0);
        if (i % 2 == 0)
            gort_yield();
        CHECK_EQ(begun, i);
        CHECK_EQ(gort_write_all(ends[1], "xy", 2), 2);
        await(&begun, i + 1);
        CHECK_EQ(bytes, 2 * (i + 1));
    }
    settle();
    CHECK_EQ(gort__poll_pending(), 0);
    close_pair(ends);
}

/* There is something already, on an fd that is watched and on one that is not. */
TEST_GO(begins_at_once, .procs = "1,2")
{
    int ends[2];
    char byte;
    tcp_pair(ends);
    CHECK_EQ(gort_write_all(ends[1], "x", 1), 1);
    CHECK_EQ(gort_go_when(ends[0], GORT_READ, take, as_arg(ends[0])), 0);
    await(&begun, 1);
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, gort_in(1)), -ETIMEDOUT); /* from now on it is watched */
    CHECK_EQ(gort_write_all(ends[1], "yz", 2), 2);
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, soon()), 1); /* its event is spent, a byte is left */
    CHECK_EQ(gort_go_when(ends[0], GORT_READ, take, as_arg(ends[0])), 0);
    await(&begun, 2);
    CHECK_EQ(bytes, 2);
    CHECK_EQ(gort_go_when(ends[0], GORT_WRITE, take, as_arg(ends[0])), 0);
    await(&begun, 3);
    CHECK_EQ(bytes, 2 - EAGAIN);
    FILE *file = tmpfile(); /* a regular file is always ready */
    CHECK(file != NULL);
    CHECK_EQ(gort_go_when(fileno(file), GORT_READ, take, as_arg(fileno(file))), 0);
    await(&begun, 4);
    fclose(file);
    close_pair(ends);
}

TEST_GO(closing_begins_it, .procs = "1,2,4", .fuzz = true)
{
    long n = test_scaled(1000, 100);
    for (long i = 0; i < n; i++) {
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        atomic_store(&bytes, 0);
        CHECK_EQ(gort_go_when(ends[0], GORT_READ, take, as_arg(-1)), 0);
        if (i % 2)
            gort_yield();
        CHECK_EQ(gort_close(ends[i % 4 / 2]), 0); /* our end, or the peer's */
        await(&begun, i + 1);
        CHECK_EQ(bytes, -EBADF);
        CHECK_EQ(gort_close(ends[1 - i % 4 / 2]), 0);
    }
    settle();
    CHECK_EQ(gort__poll_pending(), 0);
}

TEST_GO(a_new_deadline_begins_it, .procs = "1,2")
{
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(gort_go_when(ends[0], GORT_READ, take, as_arg(ends[0])), 0);
    CHECK_EQ(gort_set_deadline(ends[0], GORT_READ, gort_now()), 0);
    await(&begun, 1);
    CHECK_EQ(bytes, -ETIMEDOUT);
    close_pair(ends);
}

TEST_GO(arguments_of_go_when)
{
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(gort_go_when(ends[0], GORT_READ | GORT_WRITE, take, NULL), -EINVAL);
    CHECK_EQ(gort_go_when(ends[0], 0, take, NULL), -EINVAL);
    CHECK_EQ(gort_go_when(-1, GORT_READ, take, NULL), -EBADF);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_go_when(ends[0], GORT_READ, take, NULL), -EBADF);
    CHECK_EQ(gort_close(ends[1]), 0);
}

static int starts_from_a_thread(void *arg)
{
    return gort_go_when((int)(intptr_t)arg, GORT_READ, take, arg);
}

static void *thread_main(void *arg)
{
    return as_arg(starts_from_a_thread(arg));
}

TEST_GO(threads_may_start_it, .procs = "1,2")
{
    int ends[2];
    pthread_t thread;
    void *result;
    tcp_pair(ends);
    CHECK_EQ(pthread_create(&thread, NULL, thread_main, as_arg(ends[0])), 0);
    gort_block_enter();
    CHECK_EQ(pthread_join(thread, &result), 0);
    gort_block_leave();
    CHECK_EQ((intptr_t)result, 0);
    gort_yield();
    CHECK_EQ(begun, 0);
    CHECK_EQ(gort_write_all(ends[1], "x", 1), 1);
    await(&begun, 1);
    CHECK_EQ(bytes, 1);
    close_pair(ends);
}

TEST(no_run_no_start)
{
    CHECK_EQ(gort_go_when(0, GORT_READ, take, NULL), -ESRCH);
}

/* --- many ----------------------------------------------------------------------------------------- */

/* The server of example 22: a goroutine lives while there is data. */
static void echo_some(void *arg)
{
    char buf[64];
    int fd = (int)(intptr_t)arg;
    ssize_t n;
    while ((n = gort_read_until(fd, buf, sizeof buf, GORT_TRY)) > 0)
        CHECK_EQ(gort_write_all(fd, buf, (size_t)n), n);
    if (n == -EAGAIN) {
        CHECK_EQ(gort_go_when(fd, GORT_READ, echo_some, arg), 0);
        return;
    }
    CHECK_EQ(n, 0);
    CHECK_EQ(gort_close(fd), 0);
    atomic_fetch_add(&begun, 1);
}

static void ask_often(int fd)
{
    char in[8];
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(gort_write_all(fd, "question", 8), 8);
        CHECK_EQ(gort_read_full(fd, in, 8), 8);
        CHECK_EQ(memcmp(in, "question", 8), 0);
        if (i % 3 == 0)
            gort_yield();
    }
    CHECK_EQ(gort_close(fd), 0);
}

TEST_GO(a_server_without_stacks, .procs = "1,2,4", .fuzz = true)
{
    long n = test_scaled(300, 50);
    for (long i = 0; i < n; i++) {
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        CHECK_EQ(gort_go_when(ends[0], GORT_READ, echo_some, as_arg(ends[0])), 0);
        CHECK_EQ(GORT_GO(ask_often, ends[1]), 0);
    }
    await(&begun, n);
    settle();
    CHECK_EQ(gort__poll_pending(), 0);
}

/* One that waits has no stack: a thousand of them cost less than a page each by far. */
TEST_GO(idle_ones_are_small)
{
    enum { N = 400 };
    int ends[N][2];
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    for (int i = 0; i < N; i++)
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends[i]), 0);
    CHECK_EQ(gort_go_when(ends[0][0], GORT_READ, take, as_arg(ends[0][0])), 0);
    long before = test_rss_kb();
    for (int i = 1; i < N; i++)
        CHECK_EQ(gort_go_when(ends[i][0], GORT_READ, take, as_arg(ends[i][0])), 0);
    gort_yield();
    long used = test_rss_kb() - before;
    test_log("%ld KiB for %d", used, N);
    CHECK_LT(used, N * 2);
    CHECK_EQ(begun, 0);
    for (int i = 0; i < N; i++)
        close_pair(ends[i]);
    await(&begun, N);
}
