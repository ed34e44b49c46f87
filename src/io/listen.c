/* SPDX-License-Identifier: MIT */
/*
 * listen.c - sockets that others come to, and options of sockets.
 *
 * Why: options that connections inherit (TCP_NODELAY, keepalive, buffers) are set once on the listening
 * socket, so accepting is one system call.
 * Errors of accept: a connection that has ended while it waited, and the network errors that Linux passes on
 * from it, are skipped. -EMFILE and -ENFILE are the caller's: it knows what it can close, or waits a little.
 * Threads: any.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "base/fatal.h"
#include "io/net.h"

/* --- options ---------------------------------------------------------------------------------- */

static int set(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : -errno;
}

int gort_set_nodelay(int fd, bool on)
{
    return set(fd, IPPROTO_TCP, TCP_NODELAY, on);
}

int gort_set_keepalive(int fd, int64_t idle)
{
    int64_t seconds = (idle + GORT_SEC - 1) / GORT_SEC;
    if (idle < 0 || seconds > 32767)
        return -EINVAL;
    int err = 0;
    if (idle) { /* first, so that an error turns nothing on */
        err = set(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)seconds);
        if (!err)
            err = set(fd, IPPROTO_TCP, TCP_KEEPINTVL, seconds > 15 ? 15 : (int)seconds);
    }
    return err ? err : set(fd, SOL_SOCKET, SO_KEEPALIVE, idle > 0);
}

int gort_set_buffers(int fd, int receive, int send)
{
    int err = receive ? set(fd, SOL_SOCKET, SO_RCVBUF, receive) : 0;
    return err || !send ? err : set(fd, SOL_SOCKET, SO_SNDBUF, send);
}

int gort_set_linger(int fd, int seconds)
{
    struct linger l = {.l_onoff = seconds >= 0, .l_linger = seconds};
    return setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l) == 0 ? 0 : -errno;
}

/* --- making sockets --------------------------------------------------------------------------- */

uint32_t gort__listen_socket_kind(const struct gort__net *net)
{
    return GORT__KIND_SOCKET | GORT__FD_NONBLOCK | (net->type == SOCK_DGRAM ? GORT__FD_DGRAM : 0u) |
           (net->family == AF_UNIX     ? (uint32_t)GORT__FD_UNIX
            : net->type == SOCK_STREAM ? (uint32_t)GORT__FD_TCP
                                       : 0u);
}

static int set_options(int fd, const struct gort__net *net, const gort_net_options *o)
{
    bool tcp = net->family != AF_UNIX && net->type == SOCK_STREAM;
    int err = 0;
    if (tcp && !o->delay)
        err = gort_set_nodelay(fd, true);
    if (!err && tcp && o->keepalive)
        err = gort_set_keepalive(fd, o->keepalive);
    return err ? err : gort_set_buffers(fd, o->recv_buffer, o->send_buffer);
}

int gort__listen_socket_make(const struct gort__net *net, int family, const gort_net_options *o, bool listens)
{
    if (o->reserved[0] || o->reserved[1] || o->reserved[2] || o->reserved[3])
        return -EINVAL;
    int fd = socket(family, net->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int err = set_options(fd, net, o);
    bool ip = family != AF_UNIX;
    if (!err && listens && ip && net->type == SOCK_STREAM)
        err = set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (!err && listens && ip && o->reuse_port)
        err = set(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    if (!err && listens && family == AF_INET6)
        err = set(fd, IPPROTO_IPV6, IPV6_V6ONLY, o->v6_only || net->family == AF_INET6);
    if (err) {
        close(fd);
        return err;
    }
    return fd;
}

static int listen_at(const struct gort__net *net, const struct gort__addr *addr, const gort_net_options *o)
{
    int fd = gort__listen_socket_make(net, addr->any.ss_family, o, true), err = 0;
    if (fd < 0)
        return fd;
    if (bind(fd, (const struct sockaddr *)(const void *)&addr->any, addr->len) != 0)
        err = -errno;
    if (!err && net->type != SOCK_DGRAM && listen(fd, o->backlog > 0 ? o->backlog : SOMAXCONN) != 0)
        err = -errno;
    if (err) {
        close(fd);
        return err;
    }
    struct gort__m *m = gort__enter();
    fd = gort__io_adopt(m, fd, gort__listen_socket_kind(net) | GORT__FD_NODELAY);
    if (m)
        gort__leave(m);
    return fd;
}

int gort_listen_with(const gort_net_options *options, const char *name, const char *text, int64_t deadline)
{
    GORT_NEED("gort_listen", "network", name);
    GORT_NEED("gort_listen", "address", text);
    static const gort_net_options defaults;
    const gort_net_options *o = options ? options : &defaults;
    struct gort__net net;
    struct gort__addr addrs[GORT__ADDRS];
    int err = gort__addr_parse(name, &net);
    if (err)
        return -EINVAL;
    int n = gort__dns_find(&net, text, addrs, GORT__ADDRS, deadline), fd = -EINVAL;
    if (n < 0)
        return n;
    for (int i = 0; i < n; i++) {
        fd = listen_at(&net, &addrs[i], o);
        if (fd == -EAFNOSUPPORT && net.family == AF_UNSPEC && *text == ':') { /* without IPv6 that of IPv4 */
            struct gort__addr any = gort__addr_any_v4(&addrs[i]);
            fd = listen_at(&net, &any, o);
        }
        if (fd >= 0)
            break;
    }
    return fd;
}

int gort_listen_until(const char *net, const char *addr, int64_t deadline)
{
    return gort_listen_with(NULL, net, addr, deadline);
}

int gort_listen(const char *net, const char *addr)
{
    return gort_listen_with(NULL, net, addr, GORT_FOREVER);
}

/* --- accepting -------------------------------------------------------------------------------- */

/* Errors of a connection that came and went, not of the listening socket: accept(2) says to try again. */
static bool of_the_connection(int err)
{
    switch (err) {
    case ECONNABORTED:
    case EPROTO:
    case ENETDOWN:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case ENETUNREACH:
        return true;
    default:
        return false;
    }
}

static ssize_t call_accept(struct gort__io *io)
{
    if (GORT_UNLIKELY(!(io->kind & GORT__FD_NONBLOCK)) && !io->blocking)
        return gort__io_slow(io); /* somebody else's: accept has no flag for it */
    for (;;) {
        int fd = accept4(io->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (GORT_LIKELY(fd >= 0) || !of_the_connection(errno))
            return gort__io_result(fd);
    }
}

int gort_accept_until(int fd, int64_t deadline)
{
    struct gort__io io = {.name = "gort_accept",
                          .call = call_accept,
                          .deadline = deadline,
                          .fd = fd,
                          .dir = GORT__DIR_READ,
                          .reason = GORT_WAIT_IO_ACCEPT};
    ssize_t got = gort__io_run(&io, false);
    if (got < 0)
        return (int)got;
    if (!(io.kind & (GORT__FD_NODELAY | GORT__FD_UNIX)))
        gort_set_nodelay((int)got, true);
    struct gort__m *m = gort__enter();
    got = gort__io_adopt(m, (int)got,
                         GORT__KIND_SOCKET | GORT__FD_NONBLOCK | (io.kind & (GORT__FD_UNIX | GORT__FD_TCP)));
    if (m)
        gort__leave(m);
    return (int)got;
}

int gort_accept(int fd)
{
    return gort_accept_until(fd, GORT_FOREVER);
}
