/* SPDX-License-Identifier: MIT */
/*
 * file.c - pipes, and copying a file to an fd inside the kernel.
 *
 * Why: sendfile reads from a disk and writes to a socket. The first may block whatever flags the socket has,
 * so it is always an announced blocking call, of at most a megabyte at a time, once the socket has room. On a
 * socket without O_NONBLOCK the call would last until the peer has taken all of it, whatever deadline or
 * close comes meanwhile: there the bytes pass through a buffer.
 * Threads: any.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/fatal.h"
#include "io/io.h"

#define PIECE ((size_t)1 << 20)

/* Up to n bytes, as many as the socket takes at once. Reading may last, and the socket's number may have
 * another file by then. */
static ssize_t copy_to_socket(struct gort__io *io, size_t n)
{
    char buf[4096];
    size_t done = 0;
    for (ssize_t got, put; done < n; done += (size_t)put) {
        off_t at = io->offset ? *io->offset : lseek(io->from, 0, SEEK_CUR);
        size_t part = n - done < sizeof buf ? n - done : sizeof buf;
        put = got = at < 0 ? -errno : gort__io_result(pread(io->from, buf, part, at));
        if (got > 0 && gort__fd_generation(io->f) != io->generation)
            put = -EBADF;
        else if (got > 0)
            put = gort__io_result(send(io->fd, buf, (size_t)got, MSG_DONTWAIT | MSG_NOSIGNAL));
        if (put <= 0)
            return done ? (ssize_t)done : put;
        if (io->offset)
            *io->offset += put;
        else
            lseek(io->from, put, SEEK_CUR);
    }
    return (ssize_t)done;
}

static ssize_t call_sendfile(struct gort__io *io)
{
    size_t n = io->one.iov_len < PIECE ? io->one.iov_len : PIECE;
    if (!io->blocking)
        return gort__io_slow(io);
    if ((io->kind & GORT__KIND_MASK) == GORT__KIND_SOCKET && !(io->kind & GORT__FD_NONBLOCK))
        return copy_to_socket(io, n);
    return gort__io_result(sendfile(io->fd, io->from, io->offset, n));
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
        put = gort__io_write_lock(&m, &io);
    if (!put) {
        do {
            put = io.one.iov_len ? gort__io_try(&m, &io) : 0;
            if (put > 0)
                io.one.iov_len -= (size_t)put;
        } while (put > 0 && io.one.iov_len);
        gort__io_write_unlock(m, &io);
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
    int made[2];
    GORT_NEED("gort_pipe", "place for the ends", ends);
    ends[0] = ends[1] = -1; /* whoever ignores an error gets -EBADF later, not somebody's file */
    if (pipe2(made, O_CLOEXEC | O_NONBLOCK) != 0)
        return -errno;
    struct gort__m *m = gort__enter();
    int a = gort__io_adopt(m, made[0], GORT__KIND_PLAIN), b = gort__io_adopt(m, made[1], GORT__KIND_PLAIN);
    if (m)
        gort__leave(m);
    if (a >= 0 && b >= 0) {
        ends[0] = a;
        ends[1] = b;
        return 0;
    }
    if (a >= 0)
        gort_close(a);
    if (b >= 0)
        gort_close(b);
    return -ENOMEM;
}
