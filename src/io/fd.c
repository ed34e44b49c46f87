/* SPDX-License-Identifier: MIT */
/*
 * fd.c - an operation on an fd from its first try to its end; adopting and closing fds.
 *
 * Why: the system call is tried first (but for a socket that was just emptied), so data that is there costs a
 * look at a table and two atomic additions beyond the call itself. The poller hears of an fd only when a try
 * was in vain for the first time. An fd made elsewhere is looked at once: what it is decides how to try
 * without blocking, and without touching its O_NONBLOCK flag, which it may share with other processes.
 *
 *     kind     try                          in vain                     when ready
 *     SOCKET   recv, send: MSG_DONTWAIT     wait for an event           try again
 *     PLAIN    read, write                  wait for an event           try again
 *     SLOW     preadv2: RWF_NOWAIT          wait for an event           try again, or a blocking call
 *     FILE     preadv2: RWF_NOWAIT          a blocking call
 *
 * A blocking call runs between gort_block_enter and leave: the P goes to others meanwhile. Closing the fd
 * does not end it; the file stays until it returns.
 * Invariants: (1) no call enters the kernel for an fd whose generation is not the one it began with, but for
 * blocking ones, which check it right before; (2) an operation that was woken passes the wake-up on at its
 * end.
 * Threads: any.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fatal.h"
#include "io/io.h"

/* --- what is behind an fd --------------------------------------------------------------------- */

static uint32_t kind_of_socket(int fd, bool nonblock)
{
    uint32_t kind = GORT__KIND_SOCKET | (nonblock ? GORT__FD_NONBLOCK : 0u);
    int value = 0;
    socklen_t len = sizeof value;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &len) == 0 && value == SOCK_DGRAM)
        kind |= GORT__FD_DGRAM;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &len) == 0 && value == AF_UNIX)
        kind |= GORT__FD_UNIX;
    if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &len) == 0 && value == IPPROTO_TCP)
        kind |= GORT__FD_TCP;
    return kind;
}

static GORT_COLD int learn(int fd, struct gort__fd *f)
{
    struct stat st;
    uint32_t unknown = 0;
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fstat(fd, &st) != 0)
        return -errno;
    bool nonblock = (flags & O_NONBLOCK) != 0;
    uint32_t kind = nonblock ? GORT__KIND_PLAIN : GORT__KIND_SLOW;
    if (S_ISSOCK(st.st_mode))
        kind = kind_of_socket(fd, nonblock);
    else if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode))
        kind = GORT__KIND_FILE;
    /* Pairs with gort__fd_begin. A close or a new file may have come first, and knows better. */
    gort__cas(&f->kind, &unknown, kind, RELEASE);
    return 0;
}

int gort__io_begin(struct gort__io *io)
{
    struct gort__fd *f = gort__table_get(io->fd);
    if (GORT_UNLIKELY(!f))
        return fcntl(io->fd, F_GETFL) < 0 ? -EBADF : -ENOMEM;
    io->f = f;
    io->generation = gort__fd_begin(f, &io->kind);
    if (GORT_UNLIKELY(!io->kind)) {
        if (!gort__fd_pin(f, io->generation))
            return -EBADF;
        int err = learn(io->fd, f);
        gort__fd_unpin(f);
        if (err)
            return err;
        io->kind = gort__load(&f->kind, ACQUIRE); /* pairs with learn */
        if (io->kind == GORT__FD_CLOSING)
            return -EBADF;
    }
    return 0;
}

int gort__io_adopt(struct gort__m *m, int fd, uint32_t kind)
{
    struct gort__poll_waiter *woken;
    struct gort__fd *f = gort__table_get(fd);
    if (!f) {
        close(fd);
        return -ENOMEM;
    }
    gort__fd_retire(f, fd, kind, &woken); /* its former life may have ended without a word to us */
    if (GORT_UNLIKELY(woken))
        gort__io_ready(m, woken);
    return fd;
}

/* --- an operation ----------------------------------------------------------------------------- */

static ssize_t blocking_call(struct gort__m **m, struct gort__io *io)
{
    ssize_t n = -EBADF;
    if (*m)
        gort__leave(*m);
    gort_block_enter();
    if (gort__fd_generation(io->f) == io->generation) {
        io->blocking = true;
        n = io->call(io);
        io->blocking = false;
    }
    gort_block_leave();
    *m = gort__enter();
    return n;
}

/* Nothing can have come since the last read, so a try would be in vain. Who does not want to wait gets the
 * try. */
static bool waits_at_once(const struct gort__m *m, const struct gort__io *io, uint32_t seq)
{
    return io->stream && gort__fd_is_drained(io->f, seq) && m &&
           (io->deadline == GORT_FOREVER || io->deadline > gort__os_now());
}

/* A call that is announced as a blocking one would not block either: nothing but an event can tell when to
 * try again. */
static bool never_blocks(const struct gort__io *io)
{
    uint32_t kind = io->kind & GORT__KIND_MASK;
    return kind == GORT__KIND_SOCKET || kind == GORT__KIND_PLAIN;
}

ssize_t gort__io_try(struct gort__m **m, struct gort__io *io)
{
    struct gort__fd *f = io->f;
    ssize_t n;
    for (;;) {
        int64_t until = gort__load(&f->until[io->dir], RELAXED);
        if (GORT_UNLIKELY(until) && until <= gort__os_now()) {
            n = gort__io_too_late(io);
            break;
        }
        uint32_t seq = gort__load(&f->seq[io->dir], ACQUIRE); /* before the try; pairs with gort__fd_event */
        if (waits_at_once(*m, io, seq)) {
            n = -EAGAIN;
        } else {
            if (GORT_UNLIKELY(!gort__fd_pin(f, io->generation))) {
                n = -EBADF;
                break;
            }
            n = io->call(io);
            gort__fd_unpin(f);
            if (io->stream && n > 0 && (size_t)n < io->one.iov_len && (io->kind & GORT__FD_TCP))
                gort__fd_set_drained(f, seq);
        }
        if (n == -EAGAIN) {
            int err = gort__io_wait(m, io, seq);
            if (!err)
                continue;
            if (err != -EPERM || never_blocks(io)) { /* a sandbox has refused epoll_ctl */
                n = err;
                break;
            }
            n = GORT__IO_BLOCKS;
        }
        if (GORT_UNLIKELY(n == GORT__IO_BLOCKS)) {
            n = blocking_call(m, io);
            if (n == -EAGAIN && (io->kind & GORT__KIND_MASK) != GORT__KIND_FILE)
                continue;
        }
        if (n != -EINTR)
            break;
    }
    if (io->woken)
        gort__io_wake_next(*m, f, io->generation, io->dir);
    io->woken = false;
    return n;
}

ssize_t gort__io_run(struct gort__io *io, bool locks)
{
    struct gort__m *m = gort__enter();
    ssize_t n = gort__io_begin(io);
    if (GORT_LIKELY(!n) && locks)
        n = gort__io_write_lock(&m, io);
    if (GORT_LIKELY(!n)) {
        n = gort__io_try(&m, io);
        if (locks)
            gort__io_write_unlock(m, io);
    }
    if (m)
        gort__leave(m);
    return n;
}

/* --- closing, deadlines ----------------------------------------------------------------------- */

void gort__io_ready(struct gort__m *m, struct gort__poll_waiter *list)
{
    struct gort__glist woken = {0};
    for (struct gort__poll_waiter *w = list; w; w = w->next)
        gort__runq_list_add(&woken, w->g);
    if (woken.n)
        gort__ready_list(m, woken);
}

/*
 * The last close of a socket with SO_LINGER waits in the kernel until all is sent. A second fd makes that a
 * matter of its own: the number is free and the others know of it before the wait, which is an announced one.
 */
static int second_fd(int fd, const struct gort__fd *f)
{
    struct linger l = {0};
    socklen_t len = sizeof l;
    uint32_t kind = gort__load(&f->kind, RELAXED);
    if ((kind && !(kind & GORT__FD_TCP)) || getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len) != 0 ||
        !l.l_onoff || l.l_linger <= 0)
        return -1;
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static void close_last(int fd)
{
    gort_block_enter();
    close(fd);
    gort_block_leave();
}

/* For TSan a close and a call with the same fd are a race. Here a call that blocks may go on (see above), and
 * the others are ordered by their hold on f. 0 or -errno; Linux has closed it also when it says EINTR. */
static int close_number(int fd)
{
    GORT_TSAN_ALLOW_BEGIN();
    int err = close(fd) == 0 || errno == EINTR ? 0 : -errno;
    GORT_TSAN_ALLOW_END();
    return err;
}

static int retire(int fd, bool closes)
{
    struct gort__poll_waiter *woken = NULL;
    struct gort__m *m = gort__enter();
    struct gort__fd *f = gort__table_get(fd);
    int err = f || closes || fd >= 0 ? 0 : -EBADF, second = f && closes ? second_fd(fd, f) : -1;
    if (f)
        gort__fd_retire(f, fd, closes ? GORT__FD_CLOSING : 0, &woken);
    if (closes)
        err = close_number(fd);
    if (f && closes)
        gort__fd_closed(f);
    if (woken)
        gort__io_ready(m, woken); /* now whoever is woken may rely on it being closed */
    if (m)
        gort__leave(m);
    if (GORT_UNLIKELY(second >= 0))
        close_last(second);
    return err;
}

int gort_close(int fd)
{
    return retire(fd, true);
}

int gort_fd_forget(int fd)
{
    return retire(fd, false);
}

int gort_shutdown(int fd, int how)
{
    return shutdown(fd, how) == 0 ? 0 : -errno;
}

/* 0 or -EBADF: another file has the number by now. *list: those who have to look again. */
static int set_until(const struct gort__io *io, enum gort__dir d, int64_t until,
                     struct gort__poll_waiter **list)
{
    struct gort__fd *f = io->f;
    struct gort__poll_waiter **tail = list, *w;
    *list = NULL;
    gort__fd_lock(f);
    if (gort__fd_generation(f) != io->generation) {
        gort__fd_unlock(f);
        return -EBADF;
    }
    gort__store(&f->until[d], until, RELAXED);
    while ((w = gort__poll_take(&f->waiters[d], GORT__POLL_AGAIN)) != NULL)
        *tail = w, tail = &w->next;
    while (d == GORT__DIR_WRITE && (w = gort__poll_take(&f->writers, GORT__POLL_AGAIN)) != NULL)
        *tail = w, tail = &w->next;
    gort__fd_unlock(f);
    return 0;
}

int gort_set_deadline(int fd, int what, int64_t deadline)
{
    struct gort__io io = {.name = "gort_set_deadline", .fd = fd};
    if (!what || (what & ~(GORT_READ | GORT_WRITE)))
        return -EINVAL;
    struct gort__m *m = gort__enter();
    int err = gort__io_begin(&io);
    if (m)
        gort__wait_deadline_check(deadline, io.name);
    int64_t until = deadline == GORT_FOREVER ? 0 : deadline < 1 ? 1 : deadline;
    for (int d = 0; !err && d < 2; d++)
        if (what & (d == GORT__DIR_READ ? GORT_READ : GORT_WRITE)) {
            struct gort__poll_waiter *again;
            err = set_until(&io, (enum gort__dir)d, until, &again);
            gort__io_ready(m, again);
        }
    if (m)
        gort__leave(m);
    return err;
}
