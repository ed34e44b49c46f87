/* SPDX-License-Identifier: MIT */
/*
 * file.c - pipes, and copying a file to an fd inside the kernel.
 *
 * Why: sendfile reads from a disk and writes to a socket. The first may block whatever flags the socket has, so
 * it is always an announced blocking call, of at most a megabyte at a time, once the socket has room.
 * Threads: any.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "io/io.h"

#define PIECE ((size_t)1 << 20)

static ssize_t call_sendfile(struct gort__io *io)
{
    if (!io->blocking)
        return gort__io_slow(io);
    return gort__io_result(
        sendfile(io->fd, io->from, io->offset, io->one.iov_len < PIECE ? io->one.iov_len : PIECE));
}

ssize_t gort_sendfile_until(int fd, int from, off_t *offset, size_t n, int64_t deadline)
{
    struct gort__io io = {.name = "gort_sendfile",
                          .call = call_sendfile,
                          .deadline = deadline,
                          .fd = fd,
                          .dir = GORT__DIR_WRITE,
                          .reason = GORT_WAIT_IO_WRITE,
                          .one = {NULL, n},
                          .from = from,
                          .offset = offset};
    struct gort__m *m = gort__enter();
    ssize_t put = gort__io_begin(&io);
    if (!put)
        put = gort__io_turn_take(&m, &io);
    if (!put) {
        do {
            put = io.one.iov_len ? gort__io_try(&m, &io) : 0;
            if (put > 0)
                io.one.iov_len -= (size_t)put;
        } while (put > 0 && io.one.iov_len);
        gort__io_turn_give(m, &io);
    }
    if (m)
        gort__leave(m);
    size_t done = n - io.one.iov_len;
    return put < 0 && !done ? put : (ssize_t)done;
}

ssize_t gort_sendfile(int fd, int from, off_t *offset, size_t n)
{
    return gort_sendfile_until(fd, from, offset, n, GORT_FOREVER);
}

int gort_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    struct gort__m *m = gort__enter();
    int a = gort__io_adopt(m, ends[0], GORT__KIND_PLAIN), b = gort__io_adopt(m, ends[1], GORT__KIND_PLAIN);
    if (m)
        gort__leave(m);
    if (a >= 0 && b >= 0)
        return 0;
    if (a >= 0)
        gort_close(a);
    if (b >= 0)
        gort_close(b);
    return -ENOMEM;
}
