/* SPDX-License-Identifier: MIT */
/*
 * handles.c - whatever failed to open is refused with an error by every call that takes it.
 * tests/scenario/process.c has processes.
 * Covers: src/io/fd.c src/io/rw.c src/io/listen.c src/io/addr.c src/io/file.c src/io/ready.c src/io/when.c
 * Covers: src/io/buf.c src/sync/pool.c src/sched/core/key.c
 */
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "waiting.h"

static void never(void *arg)
{
    (void)arg;
    CHECK_MSG(false, "it began");
}

static void refuses_fd(int fd)
{
    char byte[1] = "";
    struct iovec iov = {byte, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    CHECK_EQ(gort_read(fd, byte, 1), -EBADF);
    CHECK_EQ(gort_read(fd, byte, 0), -EBADF);
    CHECK_EQ(gort_read_full(fd, byte, 1), -EBADF);
    CHECK_EQ(gort_readv(fd, &iov, 1), -EBADF);
    CHECK_EQ(gort_write(fd, byte, 1), -EBADF);
    CHECK_EQ(gort_write_all(fd, byte, 1), -EBADF);
    CHECK_EQ(gort_writev(fd, &iov, 1), -EBADF);
    CHECK_EQ(gort_recvfrom(fd, byte, 1, 0, NULL, NULL), -EBADF);
    CHECK_EQ(gort_sendto(fd, byte, 1, 0, NULL, 0), -EBADF);
    CHECK_EQ(gort_recvmsg(fd, &msg, 0), -EBADF);
    CHECK_EQ(gort_sendmsg(fd, &msg, 0), -EBADF);
    CHECK_EQ(gort_sendfile(fd, 0, NULL, 1), -EBADF);
    CHECK_EQ(gort_accept(fd), -EBADF);
    CHECK_EQ(gort_close(fd), -EBADF);
    CHECK_EQ(gort_fd_forget(fd), -EBADF);
    CHECK_EQ(gort_shutdown(fd, SHUT_RDWR), -EBADF);
    CHECK_EQ(gort_set_deadline(fd, GORT_READ, GORT_FOREVER), -EBADF);
    CHECK_EQ(gort_wait_fd(fd, GORT_READ, GORT_FOREVER), -EBADF);
    CHECK_EQ(gort_go_when(fd, GORT_READ, never, NULL), -EBADF);
    char text[64];
    CHECK_EQ(gort_local_addr(fd, text, sizeof text), -EBADF);
    CHECK_EQ(gort_peer_addr(fd, text, sizeof text), -EBADF);
    CHECK_EQ(gort_set_nodelay(fd, true), -EBADF);
    CHECK_EQ(gort_set_keepalive(fd, GORT_SEC), -EBADF);
    CHECK_EQ(gort_set_buffers(fd, 1024, 1024), -EBADF);
    CHECK_EQ(gort_set_linger(fd, 1), -EBADF);
}

TEST_GO(fds)
{
    static const int fds[] = {-1, -2, -ENOENT, INT32_MIN};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        refuses_fd(fds[i]);
}

static void refuses_reader(gort_reader *r)
{
    char to[8], *at;
    size_t len;
    CHECK_EQ(gort_reader_line(r, &at, &len), -EBADF);
    CHECK_EQ(gort_reader_token(r, ';', &at, &len), -EBADF);
    CHECK_EQ(gort_reader_peek(r, 1, &at), -EBADF);
    CHECK_EQ(gort_reader_read(r, to, sizeof to), -EBADF);
    CHECK_EQ(gort_reader_read(r, to, 1), -EBADF);
    CHECK_EQ(gort_reader_read_full(r, to, sizeof to), -EBADF);
    CHECK_EQ(gort_reader_skip(r, 1), -EBADF);
}

TEST_GO(readers_and_writers)
{
    char room[16];
    int fd = gort_dial("unix", "/nonexistent/socket");
    CHECK_EQ(fd, -ENOENT);
    gort_reader in, zero = {0};
    gort_reader_init(&in, fd, room, sizeof room);
    refuses_reader(&in);
    refuses_reader(&zero);
    gort_writer out;
    gort_writer_init(&out, fd, room, sizeof room);
    CHECK_EQ(gort_writer_text(&out, "x"), -EBADF); /* it would fit in the buffer */
    CHECK_EQ(gort_writer_flush(&out), -EBADF);
}

TEST_GO(pools)
{
    gort_pool pool;
    memset(&pool, 0x5a, sizeof pool);
    CHECK_EQ(gort_pool_init(&pool, 0, 1), -EINVAL);
    CHECK_EQ(gort_pool_submit(&pool, never, NULL), -EPIPE);
    CHECK_EQ(gort_pool_close(&pool), -EPIPE);
    CHECK_EQ(gort_pool_init(&pool, 1, 1), 0);
    CHECK_EQ(gort_pool_close(&pool), 0);
    CHECK_EQ(gort_pool_close(&pool), -EPIPE);
}

TEST_GO(keys)
{
    gort_key key[GORT_KEYS_MAX], last;
    memset(&last, 0, sizeof last);
    int n = 0;
    while (n < GORT_KEYS_MAX && gort_key_create(&key[n], NULL) == 0)
        n++;
    last = key[0]; /* whoever ignores the error must not get at somebody else's value */
    CHECK_EQ(gort_key_create(&last, NULL), -EAGAIN);
    CHECK_EQ(gort_key_set(last, &n), -EINVAL);
    CHECK_EQ(gort_key_get(last), NULL);
    CHECK_EQ(gort_key_delete(last), -EINVAL);
    while (n--)
        CHECK_EQ(gort_key_delete(key[n]), 0);
}

TEST_GO(pipes)
{
    struct rlimit was, none;
    int ends[2] = {0, 1};
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = was;
    none.rlim_cur = 0;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    int err = gort_pipe(ends);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &was), 0);
    CHECK_EQ(err, -EMFILE);
    CHECK_EQ(ends[0], -1);
    CHECK_EQ(ends[1], -1);
}
