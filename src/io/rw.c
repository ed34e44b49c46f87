/* SPDX-License-Identifier: MIT */
/*
 * rw.c - reading and writing.
 *
 * Why: each public call fills in a gort__io and names the function that makes one try; fd.c does the rest.
 * Threads: any.
 */
#include <limits.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fatal.h"
#include "io/io.h"

/* A file that cannot be tried without blocking: -EAGAIN unless it is ready. */
ssize_t gort__io_slow(const struct gort__io *io)
{
    struct pollfd p = {.fd = io->fd, .events = io->dir == GORT__DIR_READ ? POLLIN : POLLOUT};
    if ((io->kind & GORT__KIND_MASK) == GORT__KIND_FILE)
        return GORT__IO_BLOCKS;
    return poll(&p, 1, 0) == 0 ? -EAGAIN : GORT__IO_BLOCKS;
}

/*
 * Was it the file that does not know how, or is the call refused altogether, perhaps since a moment ago? A
 * file is not asked for an fd that is none. The raw call, because libc answers an old kernel's ENOSYS as if
 * it were the file's word.
 */
static GORT_COLD void say_no_nowait(enum gort__dir dir)
{
    static uint32_t said[2];
    if (gort__load(&said[dir], RELAXED))
        return;
    bool reads = dir == GORT__DIR_READ;
    if (syscall(reads ? SYS_preadv2 : SYS_pwritev2, -1, NULL, 0, -1, -1, RWF_NOWAIT) < 0 &&
        gort__os_refused(errno))
        gort__os_say_refused(
            &said[dir], reads ? "preadv2" : "pwritev2", errno,
            "files, and pipes without O_NONBLOCK, are read and written by calls that block a thread");
}

/* For all who come after, unless it is another file by now. */
static void note_no_nowait(struct gort__io *io)
{
    uint32_t same = io->kind;
    io->kind |= GORT__FD_NO_NOWAIT;
    gort__cas(&io->f->kind, &same, io->kind, RELAXED);
    say_no_nowait(io->dir);
}

/* --- reading ---------------------------------------------------------------------------------- */

static ssize_t read_nowait(struct gort__io *io)
{
    if (!(io->kind & GORT__FD_NO_NOWAIT)) {
        ssize_t n = gort__io_result(preadv2(io->fd, io->iov, io->count, -1, RWF_NOWAIT));
        if (n == -EAGAIN && (io->kind & GORT__KIND_MASK) == GORT__KIND_FILE)
            return GORT__IO_BLOCKS; /* it is on the disk */
        if (n != -EOPNOTSUPP && n != -EINVAL && !(n < 0 && gort__os_refused((int)-n)))
            return n;
        note_no_nowait(io);
    }
    return gort__io_slow(io);
}

static ssize_t call_read(struct gort__io *io)
{
    if (GORT_LIKELY((io->kind & GORT__KIND_MASK) == GORT__KIND_SOCKET)) {
        if (GORT_LIKELY(io->count == 1))
            return gort__io_result(recv(io->fd, io->iov->iov_base, io->iov->iov_len, MSG_DONTWAIT));
        struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)io->iov, .msg_iovlen = (size_t)io->count};
        return gort__io_result(recvmsg(io->fd, &msg, MSG_DONTWAIT));
    }
    if (io->blocking || (io->kind & GORT__KIND_MASK) == GORT__KIND_PLAIN)
        return gort__io_result(readv(io->fd, io->iov, io->count));
    return read_nowait(io);
}

/* Reads nothing: only whether there is such an fd. Inside, because a close waits for whoever has a look at
 * it. */
static ssize_t read_nothing(struct gort__io *io)
{
    struct gort__m *m = gort__enter();
    int err = gort__io_begin(io);
    if (m)
        gort__leave(m);
    return err;
}

ssize_t gort_read_until(int fd, void *buf, size_t n, int64_t deadline)
{
    GORT_NEED("gort_read", "buffer", buf || !n);
    struct gort__io io = {.name = "gort_read",
                          .call = call_read,
                          .deadline = deadline,
                          .fd = fd,
                          .dir = GORT__DIR_READ,
                          .reason = GORT_WAIT_IO_READ,
                          .stream = true,
                          .one = {buf, n},
                          .count = 1};
    io.iov = &io.one;
    if (GORT_UNLIKELY(n == 0))
        return read_nothing(&io);
    return gort__io_run(&io, false);
}

ssize_t gort_read(int fd, void *buf, size_t n)
{
    return gort_read_until(fd, buf, n, GORT_FOREVER);
}

ssize_t gort_read_full_until(int fd, void *buf, size_t n, int64_t deadline)
{
    GORT_NEED("gort_read_full", "buffer", buf || !n);
    size_t done = 0;
    while (done < n) {
        ssize_t got = gort_read_until(fd, (char *)buf + done, n - done, deadline);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

ssize_t gort_read_full(int fd, void *buf, size_t n)
{
    return gort_read_full_until(fd, buf, n, GORT_FOREVER);
}

ssize_t gort_readv_until(int fd, const struct iovec *iov, int count, int64_t deadline)
{
    GORT_NEED("gort_readv", "vector", iov || count <= 0);
    struct gort__io io = {.name = "gort_readv",
                          .call = call_read,
                          .deadline = deadline,
                          .fd = fd,
                          .dir = GORT__DIR_READ,
                          .reason = GORT_WAIT_IO_READ,
                          .iov = iov,
                          .count = count};
    size_t n = 0;
    if (count < 0 || count > IOV_MAX)
        return -EINVAL;
    for (int i = 0; i < count; i++)
        n += iov[i].iov_len;
    return n == 0 ? read_nothing(&io) : gort__io_run(&io, false);
}

ssize_t gort_readv(int fd, const struct iovec *iov, int count)
{
    return gort_readv_until(fd, iov, count, GORT_FOREVER);
}

/* --- writing ---------------------------------------------------------------------------------- */

static ssize_t write_nowait(struct gort__io *io)
{
    if ((io->kind & GORT__KIND_MASK) == GORT__KIND_SLOW && !(io->kind & GORT__FD_NO_NOWAIT)) {
        ssize_t n = gort__io_result(pwritev2(io->fd, io->iov, io->count, -1, RWF_NOWAIT));
        if (n != -EOPNOTSUPP && n != -EINVAL && !(n < 0 && gort__os_refused((int)-n)))
            return n;
        note_no_nowait(io);
    }
    return gort__io_slow(io);
}

/* A ready pipe has room for this much; more could block for long, with others waiting for the write lock. */
static ssize_t write_a_piece(const struct gort__io *io)
{
    if (io->iov->iov_len <= PIPE_BUF || (io->kind & GORT__KIND_MASK) != GORT__KIND_SLOW)
        return gort__io_result(writev(io->fd, io->iov, io->count));
    return gort__io_result(write(io->fd, io->iov->iov_base, PIPE_BUF));
}

static ssize_t call_write(struct gort__io *io)
{
    if (GORT_LIKELY((io->kind & GORT__KIND_MASK) == GORT__KIND_SOCKET)) {
        const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
        if (GORT_LIKELY(io->count == 1))
            return gort__io_result(send(io->fd, io->iov->iov_base, io->iov->iov_len, flags));
        struct msghdr msg = {.msg_iov = (struct iovec *)(uintptr_t)io->iov, .msg_iovlen = (size_t)io->count};
        return gort__io_result(sendmsg(io->fd, &msg, flags));
    }
    if (io->blocking)
        return write_a_piece(io);
    if ((io->kind & GORT__KIND_MASK) == GORT__KIND_PLAIN)
        return gort__io_result(writev(io->fd, io->iov, io->count));
    return write_nowait(io);
}

static struct gort__io writing(const char *name, int fd, const void *buf, size_t n, int64_t deadline)
{
    return (struct gort__io){.name = name,
                             .call = call_write,
                             .deadline = deadline,
                             .fd = fd,
                             .dir = GORT__DIR_WRITE,
                             .reason = GORT_WAIT_IO_WRITE,
                             .one = {(void *)(uintptr_t)buf, n},
                             .count = 1};
}

ssize_t gort_write_until(int fd, const void *buf, size_t n, int64_t deadline)
{
    GORT_NEED("gort_write", "buffer", buf || !n);
    struct gort__io io = writing("gort_write", fd, buf, n, deadline);
    io.iov = &io.one;
    return gort__io_run(&io, true);
}

ssize_t gort_write(int fd, const void *buf, size_t n)
{
    return gort_write_until(fd, buf, n, GORT_FOREVER);
}

ssize_t gort_write_all_until(int fd, const void *buf, size_t n, int64_t deadline)
{
    GORT_NEED("gort_write_all", "buffer", buf || !n);
    struct gort__io io = writing("gort_write_all", fd, buf, n, deadline);
    struct gort__m *m = gort__enter();
    io.iov = &io.one;
    ssize_t put = gort__io_begin(&io);
    if (!put)
        put = gort__io_write_lock(&m, &io);
    if (!put) {
        do {
            put = gort__io_try(&m, &io);
            if (put > 0) {
                io.one.iov_base = (char *)io.one.iov_base + put;
                io.one.iov_len -= (size_t)put;
            }
        } while (put > 0 && io.one.iov_len);
        gort__io_write_unlock(m, &io);
    }
    if (m)
        gort__leave(m);
    if (put < 0)
        return put;
    return io.one.iov_len ? -EIO : (ssize_t)n; /* a file that takes nothing and says no error */
}

ssize_t gort_write_all(int fd, const void *buf, size_t n)
{
    return gort_write_all_until(fd, buf, n, GORT_FOREVER);
}

ssize_t gort_writev_until(int fd, const struct iovec *iov, int count, int64_t deadline)
{
    GORT_NEED("gort_writev", "vector", iov || count <= 0);
    struct gort__io io = writing("gort_writev", fd, NULL, 0, deadline);
    if (count < 0 || count > IOV_MAX)
        return -EINVAL;
    io.iov = count ? iov : &io.one;
    io.count = count ? count : 1;
    return gort__io_run(&io, true);
}

ssize_t gort_writev(int fd, const struct iovec *iov, int count)
{
    return gort_writev_until(fd, iov, count, GORT_FOREVER);
}

/* --- messages --------------------------------------------------------------------------------- */

/* Who says so in the flags does not want to wait either. */
static int64_t unless_dontwait(int flags, int64_t deadline)
{
    return flags & MSG_DONTWAIT ? GORT_TRY : deadline;
}

static ssize_t call_recvfrom(struct gort__io *io)
{
    return gort__io_result(recvfrom(io->fd, io->one.iov_base, io->one.iov_len, io->flags | MSG_DONTWAIT,
                                    io->addr, io->addr_len));
}

ssize_t gort_recvfrom_until(int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len,
                            int64_t deadline)
{
    GORT_NEED("gort_recvfrom", "buffer", buf || !n);
    struct gort__io io = {.name = "gort_recvfrom",
                          .call = call_recvfrom,
                          .deadline = unless_dontwait(flags, deadline),
                          .fd = fd,
                          .dir = GORT__DIR_READ,
                          .reason = GORT_WAIT_IO_READ,
                          .one = {buf, n},
                          .flags = flags,
                          .addr = from,
                          .addr_len = len};
    return gort__io_run(&io, false);
}

ssize_t gort_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len)
{
    return gort_recvfrom_until(fd, buf, n, flags, from, len, GORT_FOREVER);
}

static ssize_t call_sendto(struct gort__io *io)
{
    return gort__io_result(sendto(io->fd, io->one.iov_base, io->one.iov_len,
                                  io->flags | MSG_DONTWAIT | MSG_NOSIGNAL, io->addr, io->to_len));
}

ssize_t gort_sendto_until(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
                          socklen_t len, int64_t deadline)
{
    GORT_NEED("gort_sendto", "buffer", buf || !n);
    struct gort__io io = writing("gort_sendto", fd, buf, n, unless_dontwait(flags, deadline));
    io.call = call_sendto;
    io.flags = flags;
    io.addr = (struct sockaddr *)(uintptr_t)to;
    io.to_len = len;
    return gort__io_run(&io, true);
}

ssize_t gort_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
    return gort_sendto_until(fd, buf, n, flags, to, len, GORT_FOREVER);
}

static ssize_t call_recvmsg(struct gort__io *io)
{
    return gort__io_result(recvmsg(io->fd, io->msg, io->flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC));
}

ssize_t gort_recvmsg_until(int fd, struct msghdr *msg, int flags, int64_t deadline)
{
    GORT_NEED("gort_recvmsg", "message", msg);
    struct gort__io io = {.name = "gort_recvmsg",
                          .call = call_recvmsg,
                          .deadline = unless_dontwait(flags, deadline),
                          .fd = fd,
                          .dir = GORT__DIR_READ,
                          .reason = GORT_WAIT_IO_READ,
                          .flags = flags,
                          .msg = msg};
    return gort__io_run(&io, false);
}

ssize_t gort_recvmsg(int fd, struct msghdr *msg, int flags)
{
    return gort_recvmsg_until(fd, msg, flags, GORT_FOREVER);
}

static ssize_t call_sendmsg(struct gort__io *io)
{
    return gort__io_result(sendmsg(io->fd, io->msg, io->flags | MSG_DONTWAIT | MSG_NOSIGNAL));
}

ssize_t gort_sendmsg_until(int fd, const struct msghdr *msg, int flags, int64_t deadline)
{
    GORT_NEED("gort_sendmsg", "message", msg);
    struct gort__io io = writing("gort_sendmsg", fd, NULL, 0, unless_dontwait(flags, deadline));
    io.call = call_sendmsg;
    io.flags = flags;
    io.msg = (struct msghdr *)(uintptr_t)msg;
    return gort__io_run(&io, true);
}

ssize_t gort_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return gort_sendmsg_until(fd, msg, flags, GORT_FOREVER);
}
