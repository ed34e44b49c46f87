/* SPDX-License-Identifier: MIT */
/*
 * io.c - pipes, files, ttys, eventfds, fds that somebody else made; gort_wait_fd; buffered reading and
 * writing.
 * Covers: src/io/fd.c src/io/rw.c src/io/file.c src/io/ready.c src/io/buf.c src/poll/fd.c
 */
#include <pty.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <termios.h>

#include "netting.h"

static atomic_long woken, result;

static void read_one(int fd)
{
    char buf[64];
    atomic_store(&result, gort_read(fd, buf, sizeof buf));
    atomic_fetch_add(&woken, 1);
}

/* --- pipes ------------------------------------------------------------------------------------ */

TEST_GO(pipes, .procs = "1,2", .fuzz = true)
{
    int ends[2];
    CHECK_EQ(gort_pipe(ends), 0);
    CHECK_EQ(GORT_GO(read_one, ends[0]), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_write_all(ends[1], "abc", 3), 3);
    await(&woken, 1);
    CHECK_EQ(result, 3);
    CHECK_EQ(GORT_GO(read_one, ends[0]), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_close(ends[1]), 0); /* the reader sees the end */
    await(&woken, 2);
    CHECK_EQ(result, 0);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_pipe(ends), 0);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_write(ends[1], "x", 1), -EPIPE); /* and no signal */
    CHECK_EQ(gort_close(ends[1]), 0);
}

static void write_until_error(int fd)
{
    static const char block[1 << 16];
    ssize_t n;
    while ((n = gort_write_all(fd, block, sizeof block)) > 0)
        ;
    atomic_store(&result, n);
    atomic_fetch_add(&woken, 1);
}

TEST_GO(a_writer_is_told_when_the_reader_goes, .procs = "1,2")
{
    int ends[2];
    CHECK_EQ(gort_pipe(ends), 0);
    CHECK_EQ(GORT_GO(write_until_error, ends[1]), 0);
    await_waiting("io write", 1);
    CHECK_EQ(gort_close(ends[0]), 0);
    await(&woken, 1);
    CHECK_EQ(result, -EPIPE);
    CHECK_EQ(gort_close(ends[1]), 0);
}

static volatile sig_atomic_t pipes_seen;

static void on_pipe(int signo)
{
    (void)signo;
    pipes_seen++;
}

static int write_to_nobody(void *unused)
{
    int ends[2];
    (void)unused;
    CHECK_EQ(gort_pipe(ends), 0);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_write(ends[1], "x", 1), -EPIPE);
    CHECK_EQ(gort_close(ends[1]), 0);
    return 0;
}

TEST(sigpipe_is_given_back)
{
    struct sigaction action;
    CHECK_EQ(gort_run(write_to_nobody, NULL), 0);
    CHECK_EQ(sigaction(SIGPIPE, NULL, &action), 0);
    CHECK(action.sa_handler == SIG_DFL);
    action.sa_handler = on_pipe; /* a handler of the program's own is left alone */
    CHECK_EQ(sigaction(SIGPIPE, &action, NULL), 0);
    CHECK_EQ(gort_run(write_to_nobody, NULL), 0);
    CHECK_EQ(pipes_seen, 1);
}

/* --- made elsewhere, blocking ----------------------------------------------------------------- */

static bool blocks(int fd)
{
    return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static void check_blocking_pair(int from, int to)
{
    static char much[300000];
    atomic_store(&woken, 0);
    CHECK(blocks(from) && blocks(to));
    char byte;
    CHECK_EQ(gort_read_until(from, &byte, 1, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_read_until(from, &byte, 1, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(GORT_GO(read_one, from), 0);
    await_waiting("io read", 1); /* and not in a blocking call */
    CHECK_EQ(gort_write(to, "hello", 5), 5);
    await(&woken, 1);
    CHECK_EQ(result, 5);
    CHECK_EQ(GORT_GO(write_until_error, to), 0);
    await_waiting("io write", 1); /* full: it waits */
    CHECK_EQ(gort_read_full(from, much, sizeof much), sizeof much);
    CHECK(blocks(from) && blocks(to));
    CHECK_EQ(gort_close(from), 0);
    await(&woken, 2);
    CHECK(result == -EPIPE || result == -ECONNRESET);
    CHECK_EQ(gort_close(to), 0);
}

TEST_GO(a_blocking_pipe, .procs = "1,2", .fuzz = true)
{
    int ends[2];
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    check_blocking_pair(ends[0], ends[1]);
}

TEST_GO(a_blocking_socket, .procs = "1,2", .fuzz = true)
{
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    check_blocking_pair(ends[0], ends[1]);
}

TEST_GO(a_blocking_listener, .procs = "1,2")
{
    char addr[64];
    int listener = listen_here(addr, sizeof addr);
    int copy = fcntl(listener, F_DUPFD_CLOEXEC, 3);
    CHECK_EQ(fcntl(copy, F_SETFL, 0), 0);
    CHECK_EQ(gort_accept_until(copy, gort_in(GORT_MS)), -ETIMEDOUT);
    int a = gort_dial("tcp", addr), b = gort_accept(copy);
    CHECK_GE(b, 0);
    CHECK(blocks(copy));
    CHECK_EQ(gort_close(a), 0);
    CHECK_EQ(gort_close(b), 0);
    CHECK_EQ(gort_close(copy), 0);
    CHECK_EQ(gort_close(listener), 0);
}

TEST_GO(ttys, .procs = "1,2")
{
    int master, slave;
    char buf[64];
    struct termios raw;
    if (openpty(&master, &slave, NULL, NULL, NULL) != 0)
        SKIP("needs pseudo terminals: mount devpts on /dev/pts");
    CHECK_EQ(tcgetattr(slave, &raw), 0);
    cfmakeraw(&raw);
    CHECK_EQ(tcsetattr(slave, TCSANOW, &raw), 0);
    CHECK(blocks(slave));
    CHECK_EQ(gort_read_until(slave, buf, 1, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(GORT_GO(read_one, slave), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_write_all(master, "typed", 5), 5);
    await(&woken, 1);
    CHECK_EQ(result, 5);
    CHECK_EQ(gort_write_all(slave, "shown", 5), 5);
    CHECK_EQ(gort_read(master, buf, sizeof buf), 5);
    CHECK(blocks(slave));
    close_pair((int[]){master, slave});
}

TEST_GO(eventfds_and_timerfds, .procs = "1,2")
{
    for (int flags = 0; flags < 2; flags++) {
        int fd = eventfd(0, EFD_CLOEXEC | (flags ? EFD_NONBLOCK : 0));
        uint64_t value = 5;
        atomic_store(&woken, 0);
        CHECK_EQ(GORT_GO(read_one, fd), 0);
        await_waiting("io read", 1);
        CHECK_EQ(gort_write(fd, &value, sizeof value), 8);
        await(&woken, 1);
        CHECK_EQ(result, 8);
        CHECK_EQ(gort_close(fd), 0);
    }
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec in = {.it_value = {.tv_nsec = 2000000}};
    uint64_t times = 0;
    CHECK_EQ(timerfd_settime(fd, 0, &in, NULL), 0);
    CHECK_EQ(gort_read(fd, &times, sizeof times), 8);
    CHECK_EQ(times, 1);
    CHECK_EQ(gort_close(fd), 0);
}

/* --- files ------------------------------------------------------------------------------------ */

static int temporary(void)
{
    char name[] = "/tmp/gort-test-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    CHECK_GE(fd, 0);
    CHECK_EQ(unlink(name), 0);
    return fd;
}

TEST_GO(regular_files, .procs = "1,2", .fuzz = true)
{
    char buf[64] = "";
    int fd = temporary();
    CHECK_EQ(gort_write_all(fd, "hello, file", 11), 11);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(gort_read(fd, buf, 5), 5);
    CHECK_EQ(gort_read_full(fd, buf, sizeof buf), 6);
    CHECK_EQ(gort_read(fd, buf, 5), 0);
    CHECK_EQ(gort_wait_fd(fd, GORT_READ | GORT_WRITE, GORT_FOREVER), GORT_READ | GORT_WRITE);
    CHECK_EQ(gort_set_deadline(fd, GORT_READ, gort_now()), 0);
    CHECK_EQ(gort_read(fd, buf, 5), -ETIMEDOUT);
    CHECK_EQ(gort_close(fd), 0);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    CHECK_EQ(gort_write_all(null, buf, 64), 64);
    CHECK_EQ(gort_read(null, buf, 64), 0);
    CHECK_EQ(gort_read_full(zero, buf, 64), 64);
    close_pair((int[]){null, zero});
    int dir = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK_EQ(gort_read(dir, buf, 64), -EISDIR);
    CHECK_EQ(gort_close(dir), 0);
}

static int shared_file;

static void append(int who)
{
    char line[100];
    memset(line, 'a' + who, sizeof line);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_write_all(shared_file, line, sizeof line), sizeof line);
    atomic_fetch_add(&woken, 1);
}

/* Many blocking calls at once. */
TEST_GO(files_by_many, .procs = "1,2,4", .fuzz = true)
{
    char line[100];
    shared_file = temporary();
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(append, i), 0);
    await(&woken, 10);
    CHECK_EQ(lseek(shared_file, 0, SEEK_SET), 0);
    for (int i = 0; i < 500; i++) {
        CHECK_EQ(gort_read_full(shared_file, line, sizeof line), sizeof line);
        for (size_t k = 1; k < sizeof line; k++)
            CHECK_EQ(line[k], line[0]);
    }
    CHECK_EQ(gort_close(shared_file), 0);
}

static void count_bytes(int fd)
{
    char buf[8192];
    long total = 0;
    for (ssize_t n; (n = gort_read(fd, buf, sizeof buf)) > 0; total += n)
        for (ssize_t i = 0; i < n; i++)
            CHECK_EQ(buf[i], (char)((total + i) / 1000));
    atomic_store(&result, total);
    atomic_fetch_add(&woken, 1);
}

TEST_GO(sendfile_to_a_socket, .procs = "1,2")
{
    int ends[2], fd = temporary();
    size_t size = 3 << 20;
    char *all = malloc(size);
    for (size_t i = 0; i < size; i++)
        all[i] = (char)(i / 1000);
    CHECK_EQ(gort_write_all(fd, all, size), size);
    for (int blocking = 0; blocking < 2; blocking++) {
        off_t offset = 0;
        atomic_store(&woken, 0);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0, ends),
                 0);
        CHECK_EQ(GORT_GO(count_bytes, ends[1]), 0);
        CHECK_EQ(gort_sendfile(ends[0], fd, &offset, 2 * size), size); /* up to the end */
        CHECK_EQ(offset, size);
        CHECK_EQ(gort_sendfile(ends[0], fd, &offset, 10), 0);
        CHECK_EQ(gort_close(ends[0]), 0);
        await(&woken, 1);
        CHECK_EQ(result, size);
        CHECK_EQ(gort_close(ends[1]), 0);
    }
    CHECK_EQ(gort_sendfile(777, fd, NULL, 1), -EBADF);
    CHECK_EQ(gort_close(fd), 0);
    free(all);
}

static void send_until_closed(int fd, int from)
{
    off_t at = 0;
    ssize_t n = gort_sendfile(fd, from, &at, 8 << 20);
    CHECK(n == -EBADF || (n >= 0 && n < 8 << 20));
    atomic_fetch_add(&woken, 1);
}

/* Whatever flags the socket has: a deadline, a context and a close end the wait for a peer that does not
 * read. */
TEST_GO(sendfile_to_a_peer_that_does_not_read, .procs = "1,2")
{
    int ends[2], fd = temporary();
    size_t size = 8 << 20;
    CHECK_EQ(ftruncate(fd, (off_t)size), 0);
    for (int blocking = 0; blocking < 2; blocking++) {
        off_t at = 0;
        atomic_store(&woken, 0);
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0, ends),
                 0);
        CHECK_EQ(lseek(fd, 100, SEEK_SET), 100);
        ssize_t n = gort_sendfile_until(ends[0], fd, NULL, size, gort_in(20 * GORT_MS));
        CHECK(n > 0 && (size_t)n < size);
        CHECK_EQ(lseek(fd, 0, SEEK_CUR), 100 + n);
        CHECK_EQ(gort_sendfile_until(ends[0], fd, &at, size, GORT_TRY), -EAGAIN);
        CHECK_EQ(at, 0);
        gort_ctx *ctx = gort_ctx_new(NULL, gort_in(20 * GORT_MS)), *former = gort_ctx_use(ctx);
        CHECK_EQ(gort_sendfile(ends[0], fd, &at, size), -ETIMEDOUT);
        gort_ctx_use(former);
        gort_ctx_unref(ctx);
        CHECK_EQ(GORT_GO(send_until_closed, ends[0], fd), 0);
        await_waiting("", 1);
        CHECK_EQ(gort_close(ends[0]), 0);
        await(&woken, 1);
        CHECK_EQ(gort_close(ends[1]), 0);
    }
    CHECK_EQ(gort_close(fd), 0);
}

/* --- gort_wait_fd ----------------------------------------------------------------------------- */

TEST_GO(waiting_for_readiness, .procs = "1,2")
{
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(gort_wait_fd(ends[0], GORT_READ, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_wait_fd(ends[0], GORT_READ, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_wait_fd(ends[0], GORT_READ | GORT_WRITE, GORT_FOREVER), GORT_WRITE);
    CHECK_EQ(gort_wait_fd(ends[0], GORT_WRITE, GORT_FOREVER), GORT_WRITE);
    CHECK_EQ(gort_wait_fd(ends[0], 0, GORT_FOREVER), -EINVAL);
    CHECK_EQ(gort_wait_fd(ends[0], 64, GORT_FOREVER), -EINVAL);
    fill(ends[0]);
    CHECK_EQ(gort_wait_fd(ends[0], GORT_READ | GORT_WRITE, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_write_all(ends[1], "x", 1), 1);
    CHECK_EQ(gort_wait_fd(ends[0], GORT_READ | GORT_WRITE, soon()), GORT_READ);
    CHECK_EQ(gort_wait_fd(ends[1], GORT_HUP, gort_in(GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_wait_fd(ends[1], GORT_HUP, soon()), GORT_HUP);
    CHECK_EQ(gort_close(ends[1]), 0);
}

static void wait_for(int fd, int what)
{
    atomic_store(&result, gort_wait_fd(fd, what, GORT_FOREVER));
    atomic_fetch_add(&woken, 1);
}

/* One event: one who only waits and one who reads, in either order; both come back. */
TEST_GO(waiters_and_readers_share, .procs = "1,2,4", .fuzz = true)
{
    for (int first = 0; first < 2; first++) {
        int ends[2];
        tcp_pair(ends);
        atomic_store(&woken, 0);
        for (int i = 0; i < 2; i++)
            if (i == first) {
                CHECK_EQ(GORT_GO(read_one, ends[1]), 0);
                await_waiting("io read", 1);
            } else {
                CHECK_EQ(GORT_GO(wait_for, ends[1], GORT_READ | GORT_HUP), 0);
                await_waiting("fd", 1);
            }
        CHECK_EQ(gort_write_all(ends[0], "x", 1), 1);
        await(&woken, 1);
        CHECK_EQ(gort_write_all(ends[0], "y", 1),
                 1); /* the reader may have taken the first before the other looked */
        await(&woken, 2);
        close_pair(ends);
    }
}

/* A peer that is gone is news for both directions. */
TEST_GO(hang_up_wakes_both_directions, .procs = "1,2")
{
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    fill(ends[0]);
    CHECK_EQ(GORT_GO(read_one, ends[0]), 0);
    CHECK_EQ(GORT_GO(write_until_error, ends[0]), 0);
    CHECK_EQ(GORT_GO(wait_for, ends[0], GORT_READ | GORT_WRITE), 0);
    await_waiting("io", 2);
    await_waiting("fd", 1);
    CHECK_EQ(gort_close(ends[1]), 0);
    await(&woken, 3);
    CHECK_EQ(gort_close(ends[0]), 0);
}

/* A library that closes and reopens its sockets without a word: the number is the same, the file is not. */
TEST_GO(reopened_behind_our_back, .procs = "1,2")
{
    for (int i = 0; i < 100; i++) {
        int ends[2];
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
        atomic_store(&woken, 0);
        CHECK_EQ(GORT_GO(wait_for, ends[0], GORT_READ), 0);
        if (i % 4 == 0)
            await_waiting("fd", 1);
        CHECK_EQ(write(ends[1], "x", 1), 1);
        await(&woken, 1);
        CHECK_EQ(result, GORT_READ);
        close(ends[0]); /* not gort_close, no gort_fd_forget */
        close(ends[1]);
    }
}

/* --- buffers ---------------------------------------------------------------------------------- */

TEST_GO(lines)
{
    char room[16], *line;
    size_t len;
    int ends[2];
    gort_reader in;
    CHECK_EQ(gort_pipe(ends), 0);
    static const char text[] = "one\ntwo\r\n\n12345678901234\nthis one is too long\nlast";
    CHECK_EQ(gort_write_all(ends[1], text, sizeof text - 1), sizeof text - 1);
    CHECK_EQ(gort_close(ends[1]), 0);
    gort_reader_init(&in, ends[0], room, sizeof room);
    static const char *const expect[] = {"one", "two", "", "12345678901234"};
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(gort_reader_line(&in, &line, &len), 1);
        CHECK_STR(line, expect[i]);
        CHECK_EQ(len, strlen(expect[i]));
    }
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gort_reader_line(&in, &line, &len), -EMSGSIZE); /* nothing was taken */
    CHECK_EQ(gort_reader_buffered(&in), 15);
    CHECK_EQ(gort_reader_token(&in, 's', &line, &len), 1);
    CHECK_STR(line, "thi");
    CHECK_EQ(gort_reader_peek(&in, 5, &line) >= 5, 1);
    CHECK_EQ(memcmp(line, " one ", 5), 0);
    CHECK_EQ(gort_reader_peek(&in, 16, &line), -EMSGSIZE);
    CHECK_EQ(gort_reader_skip(&in, 5), 5);
    char rest[64];
    CHECK_EQ(gort_reader_read_full(&in, rest, 12), 12);
    CHECK_EQ(memcmp(rest, "is too long\n", 12), 0);
    CHECK_EQ(gort_reader_line(&in, &line, &len), 1); /* without its end */
    CHECK_STR(line, "last");
    CHECK_EQ(gort_reader_line(&in, &line, &len), 0);
    CHECK_EQ(gort_reader_read(&in, rest, 5), 0);
    CHECK_EQ(gort_reader_peek(&in, 1, &line), 0);
    CHECK_EQ(gort_close(ends[0]), 0);
}

/* The last line lacks its end and lies at the end of the buffer: it has to be moved to see that nothing
 * follows. */
TEST_GO(a_last_line_that_moves)
{
    char room[16], *line;
    size_t len;
    int ends[2];
    gort_reader in;
    CHECK_EQ(gort_pipe(ends), 0);
    CHECK_EQ(gort_write_all(ends[1], "ab\nABCDEFGHIJKL", 15), 15);
    CHECK_EQ(gort_close(ends[1]), 0);
    gort_reader_init(&in, ends[0], room, sizeof room);
    CHECK_EQ(gort_reader_line(&in, &line, &len), 1);
    CHECK_STR(line, "ab");
    CHECK_EQ(gort_reader_line(&in, &line, &len), 1);
    CHECK_STR(line, "ABCDEFGHIJKL");
    CHECK_EQ(len, 12);
    CHECK_EQ(gort_reader_line(&in, &line, &len), 0);
    CHECK_EQ(gort_close(ends[0]), 0);
}

/* Who has looked as far as the end of the file gets the same lines, and hears of it when the file grows. */
TEST_GO(lines_after_a_look_at_the_end)
{
    char room[64], path[] = "/tmp/gort-lines-XXXXXX", *line;
    size_t len;
    gort_reader in;
    int fd = mkstemp(path), out = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK(fd >= 0 && out >= 0);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(gort_write_all(out, "a\r\nb\r", 5), 5);
    gort_reader_init(&in, fd, room, sizeof room);
    CHECK_EQ(gort_reader_peek(&in, 20, &line), 5);
    CHECK_EQ(gort_reader_line(&in, &line, &len), 1);
    CHECK_STR(line, "a");
    CHECK_EQ(gort_reader_line(&in, &line, &len), 1);
    CHECK_STR(line, "b\r"); /* no end, so the byte is its own */
    CHECK_EQ(gort_reader_peek(&in, 1, &line), 0);
    CHECK_EQ(gort_write_all(out, "c", 1), 1);
    CHECK_EQ(gort_reader_peek(&in, 1, &line), 1);
    CHECK_EQ(gort_reader_skip(&in, 5), 1);
    CHECK_EQ(gort_write_all(out, "d", 1), 1);
    CHECK_EQ(gort_reader_skip(&in, 5), 1);
    CHECK_EQ(gort_close(fd), 0);
    CHECK_EQ(gort_close(out), 0);
}

/* A deadline in the middle of a line loses nothing. */
TEST_GO(a_line_in_two_parts)
{
    char room[64], *line;
    size_t len;
    int ends[2];
    gort_reader in;
    CHECK_EQ(gort_pipe(ends), 0);
    gort_reader_init(&in, ends[0], room, sizeof room);
    CHECK_EQ(gort_write_all(ends[1], "first ", 6), 6);
    in.deadline = gort_in(2 * GORT_MS);
    CHECK_EQ(gort_reader_line(&in, &line, &len), -ETIMEDOUT);
    in.deadline = GORT_FOREVER;
    CHECK_EQ(gort_write_all(ends[1], "second\n", 7), 7);
    CHECK_EQ(gort_reader_line(&in, &line, &len), 1);
    CHECK_STR(line, "first second");
    close_pair(ends);
}

static void feed(int fd, long n)
{
    uint64_t state = test_seed();
    char text[64];
    for (long i = 0; i < n; i++) {
        int len = snprintf(text, sizeof text, "line %ld\n", i),
            cut = (int)(test_random(&state) % (uint64_t)len);
        CHECK_EQ(gort_write_all(fd, text, (size_t)cut), cut);
        if (test_random(&state) % 4 == 0)
            gort_yield();
        CHECK_EQ(gort_write_all(fd, text + cut, (size_t)(len - cut)), len - cut);
    }
    CHECK_EQ(gort_close(fd), 0);
}

TEST_GO(lines_in_random_pieces, .procs = "1,2", .fuzz = true)
{
    char room[24], *line, expect[32];
    size_t len;
    int ends[2];
    long n = test_scaled(5000, 200);
    gort_reader in;
    CHECK_EQ(gort_pipe(ends), 0);
    CHECK_EQ(GORT_GO(feed, ends[1], n), 0);
    gort_reader_init(&in, ends[0], room, sizeof room);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(gort_reader_line(&in, &line, &len), 1);
        snprintf(expect, sizeof expect, "line %ld", i);
        CHECK_STR(line, expect);
    }
    CHECK_EQ(gort_reader_line(&in, &line, &len), 0);
    CHECK_EQ(gort_close(ends[0]), 0);
}

TEST_GO(buffered_writing)
{
    char room[8], got[64] = "";
    int ends[2];
    gort_writer out;
    CHECK_EQ(gort_pipe(ends), 0);
    gort_writer_init(&out, ends[1], room, sizeof room);
    CHECK_EQ(gort_writer_text(&out, "abc"), 0);
    CHECK_EQ(gort_writer_buffered(&out), 3);
    CHECK_EQ(gort_read_until(ends[0], got, 1, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_writer_text(&out, "defgh"), 0); /* exactly full */
    CHECK_EQ(gort_writer_text(&out, "i"), 0);     /* goes after those */
    CHECK_EQ(gort_writer_text(&out, "jklmnopqrstuvwxyz"), 0);
    CHECK_EQ(gort_writer_buffered(&out), 0);
    CHECK_EQ(gort_writer_write(&out, "!", 1), 0);
    CHECK_EQ(gort_writer_write(&out, NULL, 0), 0);
    CHECK_EQ(gort_writer_flush(&out), 0);
    CHECK_EQ(gort_writer_flush(&out), 0);
    CHECK_EQ(gort_read_full(ends[0], got, 27), 27);
    CHECK_STR(got, "abcdefghijklmnopqrstuvwxyz!");
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_writer_text(&out, "x"), 0);
    CHECK_EQ(gort_writer_flush(&out), -EPIPE);
    CHECK_EQ(gort_writer_text(&out, "y"), -EPIPE); /* and so on */
    CHECK_EQ(out.error, -EPIPE);
    CHECK_EQ(gort_close(ends[1]), 0);
}

/* --- a program that was started without standard input, output and error ----------------------- */

/* For long: the monitor opens files of /proc, reads and closes them. */
static int taken_of_three(void)
{
    int taken = 3;
    for (int tries = 0; taken && tries < 100; tries++, gort_sleep(GORT_MS)) {
        taken = 0;
        for (int fd = 0; fd < 3; fd++)
            taken += fcntl(fd, F_GETFD) >= 0;
    }
    return taken;
}

/* Signals, children and timers need fds of gort's own: none of those that the program takes for its
 * messages. */
static int use_own_fds(void *unused)
{
    (void)unused;
    int taken = taken_of_three(), signo = 0;
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    gort_process child;
    gort_command command = {.file = "true", .argv = (char *[]){"true", NULL}, .in = GORT_NULL};
    if (!ch || gort_signal_notify(ch, SIGUSR1) || raise(SIGUSR1) || gort_spawn(&child, &command))
        return 100;
    if (gort_chan_recv_until(ch, &signo, soon()) != 1)
        return 101;
    taken += taken_of_three();
    int devnull = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) /* a daemon */
        if (devnull != fd && dup2(devnull, fd) != fd)
            return 102;
    if (raise(SIGUSR1) || gort_chan_recv_until(ch, &signo, soon()) != 1 || gort_sleep(GORT_MS))
        return 103;
    int status = gort_wait_until(&child, NULL, soon());
    gort_chan_unref(ch);
    return status < 0 ? 104 : taken;
}

TEST(started_without_standard_fds, .procs = "1,2", .native = TEST_FORKS)
{
    int kept[3];
    for (int fd = 0; fd < 3; fd++) {
        kept[fd] = fcntl(fd, F_DUPFD_CLOEXEC, 20);
        close(fd);
    }
    int got = gort_run(use_own_fds, NULL);
    for (int fd = 0; fd < 3; fd++)
        if (kept[fd] >= 0)
            dup2(kept[fd], fd);
    CHECK_EQ(got, 0);
}
