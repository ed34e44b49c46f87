/* SPDX-License-Identifier: MIT */
/*
 * ready.c - gort_wait_fd: readiness for those who do their own I/O.
 *
 * Why: a foreign library reads and writes by itself, so nothing is known about its fds: it may have closed
 * this one and opened another with the same number since the last call. So every wait asks the kernel first
 * (poll without waiting) and registers the fd anew, which costs two system calls and makes forgotten calls of
 * gort_fd_forget harmless here. A wait for both directions stands in two queues; whoever claims one of the
 * records ends it.
 * Threads: any.
 */
#include <poll.h>

#include "base/fatal.h"
#include "io/io.h"

/* What is ready now, of what was asked for; 0: nothing; -errno. */
static int look(int fd, int what)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    if (what & GORT_READ)
        p.events |= POLLIN;
    if (what & GORT_WRITE)
        p.events |= POLLOUT;
    int n;
    while ((n = poll(&p, 1, 0)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return -errno;
    if (p.revents & POLLNVAL)
        return -EBADF;
    int all = 0, broken = p.revents & (POLLHUP | POLLERR);
    if (broken || (p.revents & (POLLIN | POLLRDHUP)))
        all |= GORT_READ;
    if (broken || (p.revents & POLLOUT))
        all |= GORT_WRITE;
    if (broken || (p.revents & POLLRDHUP))
        all |= GORT_HUP;
    return all & what ? all & (what | GORT_HUP) : 0;
}

struct both {
    struct gort__io io;
    struct gort__poll_waiter w[2];
    bool in[2];
};

static void lock_fd(void *f)
{
    gort__fd_lock(f);
}

static void unlock_fd(void *f)
{
    gort__fd_unlock(f);
}

/* With the lock held: leaves both queues. */
static void leave_queues(struct both *b)
{
    for (int d = 0; d < 2; d++)
        if (b->in[d] && b->w[d].queued)
            gort__poll_remove(&b->io.f->waiters[d], &b->w[d]);
}

static int wait_once(struct gort__m **m, struct both *b, const uint32_t seq[2])
{
    struct gort__fd *f = b->io.f;
    gort__fd_lock(f);
    int err = gort__fd_generation(f) != b->io.generation ? -EBADF : gort__fd_watch_again(f, b->io.fd);
    if (err) {
        gort__fd_unlock(f);
        return err;
    }
    bool moved = false;
    uint32_t waits = 0;
    for (int d = 0; d < 2; d++)
        if (b->in[d]) {
            b->w[d] = (struct gort__poll_waiter){.g = (*m)->g};
            gort__fd_queue(f, (enum gort__dir)d, &b->w[d], false);
            waits++;
        }
    for (int d = 0; d < 2; d++)
        moved |= b->in[d] && gort__fd_moved(f, (enum gort__dir)d, seq[d]);
    if (moved) {
        leave_queues(b);
        gort__fd_unlock(f);
    } else {
        struct gort__wait how = {f, lock_fd, unlock_fd, b->io.deadline, GORT_WAIT_FD, false};
        gort__poller_notice_fd(*m);
        err = gort__wait_shared_park(m, &how);
        const struct gort__poll_waiter *by = err ? NULL : (*m)->g->wait_slot;
        if (!err)
            gort__fd_lock(f);
        leave_queues(b);
        gort__fd_unlock(f);
        if (by && by->result < 0)
            err = by->result;
        else if (by) /* it has taken nothing: the next in line may look too */
            gort__io_wake_next(*m, f, b->io.generation, by == &b->w[0] ? GORT__DIR_READ : GORT__DIR_WRITE);
    }
    gort__poll_done(waits);
    return err;
}

int gort_wait_fd(int fd, int what, int64_t deadline)
{
    const int known = GORT_READ | GORT_WRITE | GORT_HUP;
    if (!(what & known) || (what & ~known))
        return -EINVAL;
    struct both b = {.io = {.name = "gort_wait_fd", .fd = fd, .deadline = deadline}};
    b.in[GORT__DIR_READ] = (what & (GORT_READ | GORT_HUP)) != 0;
    b.in[GORT__DIR_WRITE] = (what & GORT_WRITE) != 0;
    struct gort__fd *f = gort__table_get(fd);
    if (!f)
        return fd < 0 || look(fd, what) < 0 ? -EBADF : -ENOMEM;
    struct gort__m *m = gort__enter();
    b.io.f = f;
    b.io.generation = gort__fd_begin(f, &b.io.kind);
    int result;
    do {
        uint32_t seq[2] = {gort__load(&f->seq[0], ACQUIRE), gort__load(&f->seq[1], ACQUIRE)};
        result = gort__fd_pin(f, b.io.generation) ? 0 : -EBADF; /* and ACQUIREs pair with gort__fd_event */
        if (!result) {
            result = look(fd, what);
            gort__fd_unpin(f);
        }
        if (!result)
            result = gort__wait_refused(m, deadline, false, "gort_wait_fd");
        if (result)
            break;
        result = wait_once(&m, &b, seq);
        if (result == -EPERM && (what & (GORT_READ | GORT_WRITE)))
            result = what & (GORT_READ | GORT_WRITE); /* a regular file is always ready */
    } while (!result);
    if (m)
        gort__leave(m);
    return result;
}
