/* SPDX-License-Identifier: MIT */
/*
 * object.c - what a parked goroutine waits for, and since when.
 *
 * How: who waits leaves the address of what it waits for in its record (sched/core/g.h: gort__g_waits_for),
 * and the time that sysmon saw last. What the address leads to is read without its lock, because that may be
 * what everybody hangs on. So it can change meanwhile, and an object on somebody's stack may even be gone: it
 * is looked at only if the kernel says that it can be read, and numbers that make no sense do no harm. A
 * mutex does not know who holds it: that would cost each lock a store.
 * Threads: any, signal handlers included; takes no lock.
 */
#include "observe/object.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/fmt.h"
#include "os/walk.h"
#include "poll/fd.h"
#include "poll/table.h"
#include "sync/chan.h"
#include "sync/object.h"

#define WAITERS 10000 /* that are counted in a queue */
#define FDS     (1 << 20)

GORT_NO_TSAN int64_t gort__object_since(const struct gort__g *g)
{
    int64_t at = (int64_t)(intptr_t) * (struct gort__g *const volatile *)&g->link;
    return at >= gort__sched.main.started_at && at <= gort__os_now() ? at : 0;
}

GORT_NO_TSAN const void *gort__object_of(const struct gort__g *g)
{
    return (const void *)*(const volatile uintptr_t *)&g->arg[2];
}

size_t gort__object_time(int64_t ns, char *to, size_t size)
{
    long ms = (long)(ns / 1000000), s = ms / 1000;
    if (s < 10)
        return gort__fmt(to, size, "%ld.%c s", s, (int)('0' + ms / 100 % 10));
    if (s < 600)
        return gort__fmt(to, size, "%ld s", s);
    return s < 36000 ? gort__fmt(to, size, "%ld min", s / 60) : gort__fmt(to, size, "%ld h", s / 3600);
}

static bool readable(const void *at)
{
    return (uintptr_t)at % 4 == 0 && gort__os_walk_reads(at, 128);
}

/* Records lie on the stacks of those who wait; of plain threads too, which nobody can follow safely. */
static GORT_NO_TSAN unsigned long count_waiters(const struct gort__waitq *q)
{
    unsigned long n = 0;
    const struct gort__waiter *w = *(struct gort__waiter *const volatile *)&q->first;
    while (w && n < WAITERS && (uintptr_t)w % 8 == 0) {
        const struct gort__stack *s = gort__stack_at(w);
        n++;
        if (!s || !gort__stack_holds(s, w))
            break;
        w = *(struct gort__waiter *const volatile *)&w->next;
    }
    return n;
}

static size_t describe_chan(const struct gort_chan *ch, char *to, size_t size)
{
    size_t n = gort__fmt(to, size, "channel %p", (const void *)ch);
    if (!readable(ch) || gort__load(&ch->magic, RELAXED) != GORT_CHAN_MAGIC)
        return n;
    unsigned long receive = count_waiters(&ch->receivers), send = count_waiters(&ch->senders);
    n += gort__fmt(to + n, size - n, " (%zu of %zu elements", gort__load(&ch->len, RELAXED), ch->cap);
    if (receive)
        n += gort__fmt(to + n, size - n, ", %lu wait to receive", receive);
    if (send)
        n += gort__fmt(to + n, size - n, ", %lu wait to send", send);
    return n + gort__fmt(to + n, size - n, "%s)", gort__load(&ch->closed, RELAXED) ? ", closed" : "");
}

/* "10.0.0.1:80" */
static size_t describe_peer(int fd, char *to, size_t size)
{
    struct sockaddr_storage a;
    socklen_t length = sizeof a;
    memset(&a, 0, sizeof a);
    if (getpeername(fd, (struct sockaddr *)(void *)&a, &length) != 0)
        return 0;
    if (a.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&a;
        const uint8_t *b = (const uint8_t *)&in->sin_addr;
        return gort__fmt(to, size, " to %d.%d.%d.%d:%d", b[0], b[1], b[2], b[3], ntohs(in->sin_port));
    }
    if (a.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)&a;
        size_t n = gort__fmt(to, size, " to [");
        for (int i = 0; i < 16; i += 2)
            n += gort__fmt(to + n, size - n, "%s%x", i ? ":" : "",
                           (unsigned)(in->sin6_addr.s6_addr[i] << 8 | in->sin6_addr.s6_addr[i + 1]));
        return n + gort__fmt(to + n, size - n, "]:%d", ntohs(in->sin6_port));
    }
    return 0;
}

static const char *kind_of(int fd)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return "closed";
    switch (st.st_mode & S_IFMT) {
    case S_IFSOCK: {
        int type = 0, listens = 0;
        socklen_t length = sizeof type;
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length);
        length = sizeof listens;
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length);
        return listens ? "listening socket" : type == SOCK_DGRAM ? "datagram socket" : "socket";
    }
    case S_IFIFO:
        return "pipe";
    case S_IFCHR:
        return "device";
    case S_IFREG:
        return "file";
    default:
        return "fd of another kind";
    }
}

static size_t describe_fd(const struct gort__fd *f, char *to, size_t size)
{
    for (uint32_t fd = 0; fd < FDS; fd++) {
        const struct gort__fd *at = gort__table_find(fd);
        if (at != f)
            continue;
        size_t n = gort__fmt(to, size, "fd %u (%s", fd, kind_of((int)fd));
        n += describe_peer((int)fd, to + n, size - n);
        return n + gort__fmt(to + n, size - n, ")");
    }
    return 0;
}

size_t gort__object_describe(enum gort__reason reason, const void *object, char *to, size_t size)
{
    int saved = errno;
    size_t n = 0;
    bool there = object && readable(object);
    switch (reason) {
    case GORT_WAIT_CHAN_RECV:
    case GORT_WAIT_CHAN_SEND:
        n = object ? describe_chan(object, to, size) : 0;
        break;
    case GORT_WAIT_MUTEX: /* sync/mutex.c: an attempt, whose first word is the mutex */
    case GORT_WAIT_COND:  /* sync/cond.c: the same */
        if (there)
            n = gort__fmt(to, size, "%s %p", reason == GORT_WAIT_MUTEX ? "mutex" : "condition",
                          *(void *const *)object);
        break;
    case GORT_WAIT_WG:
        n = gort__fmt(to, size, "wait group %p", object);
        if (there)
            n += gort__fmt(to + n, size - n, " (count %d)",
                           (int)(uint32_t)gort__load(&((const gort_wg *)object)->gort_priv_state, RELAXED));
        break;
    case GORT_WAIT_RWMUTEX_R:
    case GORT_WAIT_RWMUTEX_W:
    case GORT_WAIT_SEM:
    case GORT_WAIT_ONCE:
    case GORT_WAIT_BARRIER: /* all begin with their lock word, which is what they wait with */
        n = object ? gort__fmt(to, size, "%p", object) : 0;
        break;
    case GORT_WAIT_SLEEP: {
        int64_t left = (int64_t)(intptr_t)object - gort__os_now();
        if (left > 0 && left < INT64_C(1000000000) * 86400 * 366) {
            n = gort__object_time(left, to, size);
            n += gort__fmt(to + n, size - n, " left");
        }
        break;
    }
    case GORT_WAIT_IO_READ:
    case GORT_WAIT_IO_WRITE:
    case GORT_WAIT_IO_WRITE_LOCK:
    case GORT_WAIT_IO_ACCEPT:
    case GORT_WAIT_IO_CONNECT:
    case GORT_WAIT_FD:
        n = object ? describe_fd(object, to, size) : 0;
        break;
    default:
        break;
    }
    errno = saved;
    return n;
}
