/* SPDX-License-Identifier: MIT */
/*
 * net_close.c - closing while others wait: they are told, and the number's next file is never touched.
 * Covers: src/io/fd.c src/io/wait.c src/poll/fd.c
 */
#include <sys/eventfd.h>

#include "netting.h"

static atomic_long done, results[4];

static void blocked_read(int fd)
{
    char byte;
    atomic_store(&results[0], gort_read(fd, &byte, 1));
    atomic_fetch_add(&done, 1);
}

static void blocked_write(int fd)
{
    static char much[1 << 20];
    ssize_t n;
    while ((n = gort_write_all(fd, much, sizeof much)) > 0)
        ;
    atomic_store(&results[1], n);
    atomic_fetch_add(&done, 1);
}

static void blocked_accept(int fd)
{
    atomic_store(&results[2], gort_accept(fd));
    atomic_fetch_add(&done, 1);
}

static void blocked_wait(int fd)
{
    atomic_store(&results[3], gort_wait_fd(fd, GORT_READ | GORT_HUP, GORT_FOREVER));
    atomic_fetch_add(&done, 1);
}

TEST_GO(close_wakes_everyone, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    tcp_pair(ends);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(GORT_GO(blocked_read, ends[0]), 0);
        CHECK_EQ(GORT_GO(blocked_write, ends[0]), 0);
    }
    CHECK_EQ(GORT_GO(blocked_wait, ends[0]), 0);
    await_waiting("io", 6);
    await_waiting("fd", 1);
    CHECK_EQ(gort_close(ends[0]), 0);
    await(&done, 7);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(results[i], i == 2 ? 0 : -EBADF);
    CHECK_EQ(gort_close(ends[1]), 0);
    settle();
}

/* Rounds of close against blocked calls. In every other round the call has certainly begun, and a new file
 * gets the number at once, of which nothing may be touched; in the rest the close comes at any moment of the
 * call, or before it: the number is a high one then, because sysmon opens files, and one of these may get a
 * low number in that moment. */
static void rounds(void (*victim)(int), const char *what, long n)
{
    int ends[2], slot = victim == blocked_read ? 0 : victim == blocked_write ? 1 : 2;
    char addr[64], byte;
    uint64_t state = test_seed();
    for (long i = 0; i < n; i++) {
        atomic_store(&done, 0);
        if (slot == 2)
            ends[0] = listen_here(addr, sizeof addr), ends[1] = -1;
        else
            CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        if (i % 2 == 0) {
            int low = ends[0];
            ends[0] = fcntl(low, F_DUPFD_CLOEXEC, 200);
            CHECK_GE(ends[0], 200);
            CHECK_EQ(gort_close(low), 0);
        }
        CHECK_EQ(GORT_GO(victim, ends[0]), 0);
        if (i % 2) {
            while (waiting(what) == 0)
                gort_yield();
            CHECK_EQ(gort_close(ends[0]), 0);
            int again[2];
            CHECK_EQ(gort_pipe(again), 0);
            await(&done, 1);
            CHECK_EQ(gort_read_until(again[0], &byte, 1, GORT_TRY), -EAGAIN);
            close_pair(again);
        } else {
            if (test_random(&state) % 2)
                gort_yield();
            else
                gort_sleep((int64_t)(test_random(&state) % 20) * GORT_US);
            CHECK_EQ(gort_close(ends[0]), 0);
            await(&done, 1);
        }
        CHECK_EQ(results[slot], -EBADF);
        if (ends[1] >= 0)
            CHECK_EQ(gort_close(ends[1]), 0);
    }
    settle();
}

TEST_GO(close_against_read, .procs = "1,2,4", .fuzz = true)
{
    rounds(blocked_read, "io read", test_scaled(2000, 100));
}

TEST_GO(close_against_write, .procs = "1,2,4", .fuzz = true)
{
    rounds(blocked_write, "io write", test_scaled(500, 50));
}

TEST_GO(close_against_accept, .procs = "1,2,4", .fuzz = true)
{
    rounds(blocked_accept, "accept", test_scaled(1000, 100));
}

/* Data arrives, the fd is closed and its number reused, all at the same moment: an event of the old file
 * wakes nobody who waits for the new one. */
static void poke(int fd)
{
    ssize_t n = gort_write(fd, "x", 1);
    CHECK(n == 1 || n == -EPIPE || n == -ECONNRESET);
    CHECK_EQ(gort_close(fd), 0);
}

TEST_GO(late_events_wake_nobody, .procs = "1,2,4", .fuzz = true)
{
    long n = test_scaled(2000, 100);
    for (long i = 0; i < n; i++) {
        int old[2], fresh[2];
        char byte;
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, old), 0);
        CHECK_EQ(gort_read_until(old[0], &byte, 1, gort_in(1)), -ETIMEDOUT);
        CHECK_EQ(gort_wait_fd(old[0], GORT_READ, gort_in(10 * GORT_US)), -ETIMEDOUT); /* now it is watched */
        CHECK_EQ(GORT_GO(poke, old[1]), 0);
        if (i % 2)
            gort_yield();
        CHECK_EQ(gort_close(old[0]), 0);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fresh), 0);
        CHECK_EQ(gort_wait_fd(fresh[0], GORT_READ, gort_in(20 * GORT_US)), -ETIMEDOUT);
        CHECK_EQ(gort_read_until(fresh[0], &byte, 1, GORT_TRY), -EAGAIN);
        close_pair(fresh);
    }
    settle();
}

/* A copy of the fd keeps the file open: the closed number is silent all the same, the copy works. */
TEST_GO(a_duplicate_lives_on, .procs = "1,2")
{
    int ends[2];
    char byte;
    tcp_pair(ends);
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, gort_in(1)), -ETIMEDOUT);
    int copy = fcntl(ends[0], F_DUPFD_CLOEXEC, 100);
    CHECK_GE(copy, 100);
    CHECK_EQ(GORT_GO(blocked_read, ends[0]), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_close(ends[0]), 0);
    await(&done, 1);
    CHECK_EQ(results[0], -EBADF);
    CHECK_EQ(gort_write_all(ends[1], "x", 1), 1);
    CHECK_EQ(gort_read_until(copy, &byte, 1, soon()), 1);
    CHECK_EQ(GORT_GO(blocked_read, copy), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_write_all(ends[1], "y", 1), 1);
    await(&done, 2);
    CHECK_EQ(results[0], 1);
    CHECK_EQ(gort_close(copy), 0);
    CHECK_EQ(gort_close(ends[1]), 0);
}

/* Somebody else closes it: with gort_fd_forget first those who wait are told. */
TEST_GO(forgetting, .procs = "1,2")
{
    int ends[2];
    char byte;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(GORT_GO(blocked_read, ends[0]), 0);
    CHECK_EQ(GORT_GO(blocked_wait, ends[0]), 0);
    await_waiting("io read", 1);
    await_waiting("fd", 1);
    CHECK_EQ(gort_fd_forget(ends[0]), 0);
    await(&done, 2);
    CHECK_EQ(results[0], -EBADF);
    CHECK_EQ(results[3], -EBADF);
    CHECK_EQ(gort_write_all(ends[1], "x", 1), 1);
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, soon()), 1); /* it is still open */
    CHECK_EQ(gort_fd_forget(ends[0]), 0);
    CHECK_EQ(close(ends[0]), 0);
    CHECK_EQ(gort_close(ends[1]), 0);
}

static atomic_long beats;

static void beat(void)
{
    for (;; atomic_fetch_add(&beats, 1))
        gort_sleep(GORT_MS);
}

/* A close that waits for its data to be sent keeps nobody else waiting. */
TEST_GO(a_close_that_lingers, .procs = "1,2")
{
    int ends[2];
    tcp_pair(ends);
    fill(ends[0]);
    CHECK_EQ(gort_set_linger(ends[0], 1), 0);
    CHECK_EQ(GORT_GO(beat), 0);
    await(&beats, 1);
    long before = atomic_load(&beats);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_GE(atomic_load(&beats), before + 3);
    CHECK_EQ(gort_close(ends[1]), 0);
}

/* The poller's own fds do not reach a child. */
TEST_GO(no_fd_is_inherited)
{
    int ends[2], found = 0;
    char byte, path[64], name[128];
    tcp_pair(ends);
    CHECK_EQ(gort_read_until(ends[0], &byte, 1, gort_in(1)), -ETIMEDOUT);
    for (int fd = 3; fd < 64; fd++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, name, sizeof name - 1);
        if (n < 0)
            continue;
        name[n] = '\0';
        found += strstr(name, "eventpoll") != NULL;
        if (strstr(name, "eventpoll") || strstr(name, "eventfd") || strstr(name, "socket"))
            CHECK_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    if (!test_under_emulator())
        CHECK_GE(found, 1);
    close_pair(ends);
}

static atomic_int shown = -1;
static atomic_bool enough;

static void look_at_new_fds(int end)
{
    char byte;
    while (!atomic_load(&enough)) {
        int fd = fcntl(end, F_DUPFD_CLOEXEC, 100); /* a number that is nobody else's when it was closed */
        CHECK_EQ(gort_fd_forget(fd), 0);           /* so that the next call learns what it is */
        atomic_store(&shown, fd);
        ssize_t n = gort_read(fd, &byte, 0);
        CHECK(n == 0 || n == -EBADF);
        fd = atomic_exchange(&shown, -1);
        if (fd >= 0)
            CHECK_EQ(gort_close(fd), 0);
    }
}

/* A read of nothing may be preempted, but not where a close would wait for it. */
TEST_GO(close_against_reading_nothing, .procs = "1,2", .timeout = 30)
{
    int ends[2];
    tcp_pair(ends); /* to learn what a socket is takes longest */
    CHECK_EQ(GORT_GO(look_at_new_fds, ends[0]), 0);
    for (int64_t until = gort_in(2 * GORT_SEC); gort_now() < until;) {
        int fd = atomic_exchange(&shown, -1);
        if (fd >= 0)
            CHECK_EQ(gort_close(fd), 0);
        CHECK_EQ(gort_sleep(100 * GORT_US), 0);
    }
    atomic_store(&enough, true);
    settle();
    close_pair(ends);
}

/* --- a writer stuck in a blocking call -------------------------------------------------------------
 *
 * An eventfd that is nearly full says that it can be written to, and blocks a write of more than is left.
 * Whoever is in that call has the turn of a file that is closed by then.
 */

static atomic_int stuck_tid;
static atomic_long stuck_result;

static void stuck_write(int fd)
{
    uint64_t too_much = 5;
    gort_lock_thread();
    atomic_store(&stuck_tid, thread_id());
    atomic_store(&stuck_result, gort_write(fd, &too_much, sizeof too_much));
    gort_unlock_thread();
    atomic_fetch_add(&done, 1);
}

/* Its number, with a writer stuck in it; *other is a second fd of the same file. */
static int stuck_file(int *other)
{
    uint64_t nearly = UINT64_MAX - 2;
    int fd = eventfd(0, EFD_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(gort_write(fd, &nearly, sizeof nearly), 8);
    CHECK_GE(*other = fcntl(fd, F_DUPFD_CLOEXEC, 0), 0);
    atomic_store(&stuck_tid, 0);
    CHECK_EQ(GORT_GO(stuck_write, fd), 0);
    await_thread(&stuck_tid);
    return fd;
}

static void unstick(int other)
{
    uint64_t value;
    CHECK_EQ(read(other, &value, sizeof value), 8);
    await(&done, 1);
    CHECK_EQ(stuck_result, 8);
    CHECK_EQ(close(other), 0);
    atomic_store(&done, 0);
}

static void write_and_count(int fd)
{
    CHECK_EQ(gort_write_all_until(fd, "1234567", 8, soon()), 8);
    atomic_fetch_add(&results[0], 1);
}

TEST_GO(a_closed_files_turn_is_not_the_next_files, .procs = "1,2,4", .fuzz = true)
{
    if (test_under_emulator())
        SKIP("only natively: an emulator tells the state of its own threads");
    for (int i = 0; i < 10; i++) {
        int other, ends[2], fd = stuck_file(&other);
        char text[8];
        CHECK_EQ(gort_write_until(fd, "1234567", 8, gort_in(GORT_MS)), -ETIMEDOUT); /* it has the turn */
        CHECK_EQ(gort_close(fd), 0);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        int same = ends[0] == fd ? 0 : 1;
        if (ends[same] != fd)
            CHECK_EQ(fcntl(ends[same = 0], F_DUPFD_CLOEXEC, fd), fd);
        /* While the former file's writer is stuck, and while it ends. */
        atomic_store(&results[0], 0);
        CHECK_EQ(gort_write_until(fd, "1234567", 8, soon()), 8);
        for (int k = 0; k < 4; k++)
            CHECK_EQ(GORT_GO(write_and_count, fd), 0);
        unstick(other);
        await(&results[0], 4);
        for (int k = 0; k < 5; k++)
            CHECK_EQ(gort_read_full_until(ends[!same], text, 8, soon()), 8);
        CHECK_EQ(gort_close(fd), 0);
        if (ends[same] != fd)
            CHECK_EQ(close(ends[same]), 0);
        CHECK_EQ(gort_close(ends[!same]), 0);
    }
    settle();
}

/* A deadline that was set for the file before counts for nobody after a close, nor does one that comes
 * late. */
TEST_GO(a_closed_files_deadline_is_not_the_next_files)
{
    if (test_under_emulator())
        SKIP("only natively: an emulator tells the state of its own threads");
    int other, ends[2], fd = stuck_file(&other);
    CHECK_EQ(gort_set_deadline(fd, GORT_WRITE, gort_in(0)), 0);
    CHECK_EQ(gort_write(fd, "1234567", 8), -ETIMEDOUT);
    CHECK_EQ(gort_close(fd), 0);
    CHECK_EQ(gort_set_deadline(fd, GORT_WRITE, gort_in(0)), -EBADF);
    CHECK_EQ(gort_pipe(ends), 0);
    int w = fcntl(ends[1], F_DUPFD_CLOEXEC, fd);
    CHECK_GE(w, fd);
    CHECK_EQ(gort_write_until(w, "x", 1, soon()), 1);
    unstick(other);
    settle();
}
