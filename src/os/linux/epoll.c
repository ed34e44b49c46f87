/* SPDX-License-Identifier: MIT */
/*
 * epoll.c - readiness of fds.
 *
 * Why: epoll_pwait2 sleeps to the nanosecond (a thread's timer slack aside), where epoll_wait counts
 * milliseconds; on kernels before 5.11 a ppoll on the epoll fd does the same in two calls. An eventfd
 * wakes the sleeper. It is level-triggered and read by who meant to sleep only: a look that does not sleep,
 * on another thread, must not swallow the kick of a sleeper.
 * Threads: any; open and close alone. errno is never changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/force.h"
#include "os/os.h"

#define SECOND INT64_C(1000000000)
#define KICK   UINT64_MAX /* the tag of the eventfd */
#define MOST   128

static int kick_fd = -1; /* of the one poller; written by open and close */
static bool no_pwait2;   /* the kernel lacks it; atomic, found out at the first use */

int gort__os_fd_own(int fd)
{
    int high = fd >= 0 && fd <= STDERR_FILENO ? fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

bool gort__os_fd_writable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int saved = errno;
    bool writable = poll(&p, 1, 0) == 1 && (p.revents & POLLOUT);
    errno = saved;
    return writable;
}

int gort__os_poll_open(void)
{
    int saved = errno, err = 0;
    int poller = gort__os_fd_own(epoll_create1(EPOLL_CLOEXEC));
    if (poller < 0)
        err = -errno;
    kick_fd = err ? -1 : gort__os_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    struct epoll_event kick = {.events = EPOLLIN, .data.u64 = KICK};
    if (!err && (kick_fd < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, kick_fd, &kick) != 0)) {
        err = -errno;
        gort__os_poll_close(poller);
    }
    errno = saved;
    return err ? err : poller;
}

void gort__os_poll_close(int poller)
{
    int saved = errno;
    close(poller);
    if (kick_fd >= 0)
        close(kick_fd);
    kick_fd = -1;
    errno = saved;
}

int gort__os_poll_add(int poller, int fd, uint64_t tag)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET, .data.u64 = tag};
    int saved = errno, err = 0;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &e) != 0)
        err = errno == EEXIST && epoll_ctl(poller, EPOLL_CTL_MOD, fd, &e) == 0 ? 0 : -errno;
    errno = saved;
    return err;
}

int gort__os_poll_del(int poller, int fd)
{
    struct epoll_event unused = {0};
    int saved = errno, err = 0;
    if (epoll_ctl(poller, EPOLL_CTL_DEL, fd, &unused) != 0)
        err = -errno;
    errno = saved;
    return err;
}

/* Sleeps without fetching: > 0 when there is something. Where ppoll is refused as well, to the
 * millisecond. */
static int sleep_by_poll(int poller, const struct timespec *timeout)
{
    struct pollfd p = {.fd = poller, .events = POLLIN};
    int ready = ppoll(&p, 1, timeout, NULL);
    if (ready >= 0 || !gort__os_refused(errno))
        return ready;
    int64_t ms = (int64_t)timeout->tv_sec * 1000 + (timeout->tv_nsec + 999999) / 1000000;
    return poll(&p, 1, ms < INT32_MAX ? (int)ms : INT32_MAX);
}

static int fetch(int poller, struct epoll_event *raw, int n, int64_t deadline)
{
    struct timespec ts = {0}, *timeout = NULL;
    if (deadline != INT64_MAX) {
        int64_t ns = deadline == INT64_MIN ? 0 : deadline - gort__os_now();
        if (ns > 0)
            ts = (struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)};
        timeout = &ts;
    }
    if (!timeout || (ts.tv_sec == 0 && ts.tv_nsec == 0))
        return epoll_wait(poller, raw, n, timeout ? 0 : -1);
#ifdef SYS_epoll_pwait2
    if (!gort__load(&no_pwait2, RELAXED) && !gort__os_force.no_epoll_pwait2) {
        int got = (int)syscall(SYS_epoll_pwait2, poller, raw, n, timeout, NULL, 0);
        if (got >= 0 || !gort__os_refused(errno))
            return got;
        gort__store(&no_pwait2, true, RELAXED);
    }
#endif
    int ready = sleep_by_poll(poller, timeout);
    return ready > 0 ? epoll_wait(poller, raw, n, 0) : ready;
}

int gort__os_poll_wait(int poller, struct gort__os_event *events, int n, int64_t deadline)
{
    struct epoll_event raw[MOST];
    int saved = errno, kept = 0;
    int got = fetch(poller, raw, n < MOST ? n : MOST, deadline);
    if (got < 0 && errno != EINTR)
        gort__os_needs("epoll_wait", errno);
    for (int i = 0; i < got; i++) {
        if (raw[i].data.u64 == KICK) {
            uint64_t count;
            if (deadline != INT64_MIN && read(kick_fd, &count, sizeof count) < 0 && errno != EAGAIN)
                gort__os_needs("read of an eventfd", errno);
            continue;
        }
        uint32_t in = raw[i].events, what = 0;
        if (in & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
            what |= GORT__OS_READABLE;
        if (in & (EPOLLOUT | EPOLLHUP | EPOLLERR))
            what |= GORT__OS_WRITABLE;
        if (in & (EPOLLHUP | EPOLLRDHUP))
            what |= GORT__OS_HANGUP;
        if (in & EPOLLERR)
            what |= GORT__OS_ERROR;
        if (in & EPOLLPRI)
            what |= GORT__OS_URGENT;
        events[kept++] = (struct gort__os_event){raw[i].data.u64, what};
    }
    errno = saved;
    return kept;
}

void gort__os_poll_kick(int poller)
{
    int saved = errno;
    uint64_t one = 1;
    (void)poller;
    if (write(kick_fd, &one, sizeof one) < 0 && errno != EAGAIN)
        gort__os_needs("write to an eventfd", errno);
    errno = saved;
}
