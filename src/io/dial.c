/* SPDX-License-Identifier: MIT */
/*
 * dial.c - connecting.
 *
 * Why: a name often has an IPv6 and an IPv4 address of which one does not work from here, and finding that
 * out can take minutes. So addresses are tried side by side (RFC 8305): the next one starts when the one
 * before has failed or 250 ms have passed, each in a goroutine of its own; the first that connects wins, and
 * the context of the others is cancelled. With one address there are no goroutines.
 * Invariants: (1) a race is freed by the last of its goroutines and the caller; (2) fds that come too late
 * are closed by those who made them, or with the race.
 * Threads: any.
 */
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include <gort/chan.h>
#include <gort/ctx.h>

#include "base/fatal.h"
#include "io/net.h"
#include "mem/alloc.h"

#define HEAD_START (250 * GORT_MS)
#define LOCAL      300

struct dial {
    const gort_net_options *options;
    struct gort__net net;
    int64_t deadline;
};

/* --- one address ------------------------------------------------------------------------------ */

static ssize_t call_connect(struct gort__io *io)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    int err = 0;
    if (!io->flags) { /* the first try */
        if (connect(io->fd, io->addr, io->to_len) == 0)
            return 0;
        if (errno != EINPROGRESS && errno != EINTR)
            return -errno;
        io->flags = 1;
        return -EAGAIN;
    }
    socklen_t err_len = sizeof err;
    if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &err, &err_len) != 0)
        return -errno;
    if (err)
        return -err;
    if (getpeername(io->fd, (struct sockaddr *)(void *)&peer, &len) == 0)
        return 0;
    return errno == ENOTCONN ? -EAGAIN : -errno; /* woken for nothing */
}

/* A unix socket whose backlog is full says -EAGAIN and no event will tell: look again, soon at first. */
static int unix_pause(int64_t deadline, uint32_t *tries)
{
    struct gort__m *m = gort__enter();
    int err = gort__wait_refused(m, deadline, false, "gort_dial");
    int64_t soon = gort__os_now() + gort__io_pause(tries);
    if (!err)
        err = gort__wait_alone(&m, soon < deadline ? soon : deadline, GORT_WAIT_IO_CONNECT);
    if (m)
        gort__leave(m);
    return err == -ETIMEDOUT && gort__os_now() < deadline ? 0 : err;
}

static int connect_to(int fd, const struct gort__addr *addr, bool is_unix, int64_t deadline)
{
    struct gort__io io = {.name = "gort_dial",
                          .call = call_connect,
                          .deadline = deadline,
                          .fd = fd,
                          .dir = GORT__DIR_WRITE,
                          .reason = GORT_WAIT_IO_CONNECT,
                          .addr = (struct sockaddr *)(uintptr_t)(const void *)&addr->any,
                          .to_len = addr->len};
    for (;;) {
        if (is_unix) {
            int err = connect(fd, io.addr, io.to_len) == 0 ? 0 : -errno;
            if (err == -EAGAIN)
                err = unix_pause(deadline, &io.tries);
            else if (err != -EINTR)
                return err;
            if (err && err != -EINTR)
                return err;
            continue;
        }
        return (int)gort__io_run(&io, false);
    }
}

/* A port of our own that was just free may connect to itself. */
static bool is_self(int fd, const struct gort__addr *addr)
{
    union {
        struct sockaddr_storage any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } own, other;
    socklen_t len = sizeof own;
    memset(&own, 0, sizeof own);
    memcpy(&other, &addr->any, sizeof other);
    if (getsockname(fd, (struct sockaddr *)(void *)&own, &len) != 0 ||
        own.any.ss_family != other.any.ss_family)
        return false;
    if (own.any.ss_family == AF_INET)
        return own.v4.sin_port == other.v4.sin_port && own.v4.sin_addr.s_addr == other.v4.sin_addr.s_addr;
    return own.v6.sin6_port == other.v6.sin6_port &&
           memcmp(&own.v6.sin6_addr, &other.v6.sin6_addr, sizeof own.v6.sin6_addr) == 0;
}

static int bind_local(int fd, const struct dial *d)
{
    struct gort__addr local;
    int got = d->options->local ? gort__addr_numeric(&d->net, d->options->local, &local) : 0;
    if (!d->options->local)
        return 0;
    if (got <= 0)
        return got ? got : -EINVAL;
    return bind(fd, (struct sockaddr *)(void *)&local.any, local.len) == 0 ? 0 : -errno;
}

/* An unconnected socket for the address, adopted. */
static int open_for(const struct dial *d, const struct gort__addr *addr)
{
    int fd = gort__listen_socket_make(&d->net, addr->any.ss_family, d->options, false);
    if (fd < 0)
        return fd;
    int err = bind_local(fd, d);
    if (err) {
        close(fd);
        return err;
    }
    struct gort__m *m = gort__enter();
    fd = gort__io_adopt(m, fd, gort__listen_socket_kind(&d->net));
    if (m)
        gort__leave(m);
    return fd;
}

static int dial_one(const struct dial *d, const struct gort__addr *addr)
{
    for (int tries = 0; tries < 3; tries++) {
        int fd = open_for(d, addr);
        if (fd < 0)
            return fd;
        int err = connect_to(fd, addr, d->net.family == AF_UNIX, d->deadline);
        bool self = !err && d->net.family != AF_UNIX && d->net.type == SOCK_STREAM && is_self(fd, addr);
        if (!err && !self)
            return fd;
        gort_close(fd);
        if (err)
            return err;
    }
    return -ECONNREFUSED;
}

/* --- several addresses ------------------------------------------------------------------------ */

struct race {
    struct dial dial;
    gort_net_options options;
    uint32_t refs;    /* the caller and those under way; atomic */
    gort_chan *ended; /* of struct outcome; room for all */
    gort_ctx *ctx;    /* of those under way */
    int n;
    char local[LOCAL];
    struct gort__addr addrs[GORT__ADDRS];
};

struct outcome {
    int who, fd; /* fd or -errno */
};

static void race_let_go(struct race *r)
{
    struct outcome late;
    if (gort__sub(&r->refs, 1, ACQ_REL) != 1) /* pairs with itself: the last one sees all */
        return;
    while (r->ended && gort_chan_recv_until(r->ended, &late, GORT_TRY) == 1)
        if (late.fd >= 0)
            gort_close(late.fd);
    gort_chan_unref(r->ended);
    gort_ctx_unref(r->ctx);
    gort__enter_light_free(r, sizeof *r);
}

static void run_in_race(void *arg, long who)
{
    struct race *r = arg;
    gort_ctx_use(r->ctx);
    struct outcome out = {(int)who, dial_one(&r->dial, &r->addrs[who])};
    gort_ctx_use(NULL);
    gort_chan_send_until(r->ended, &out, GORT_TRY); /* it has room for all */
    race_let_go(r);
}

static void enter_race(struct race *r, int who)
{
    uintptr_t args[2] = {(uintptr_t)r, (uintptr_t)who};
    gort__add(&r->refs, 1, RELAXED);
    struct gort__m *m = gort__enter();
    int err = m ? gort__spawn(m, NULL, (void (*)(void))run_in_race, args, 2) : -ESRCH;
    if (m)
        gort__leave(m);
    if (err) {
        struct outcome out = {who, err};
        gort_chan_send_until(r->ended, &out, GORT_TRY);
        race_let_go(r);
    }
}

/* fd, or the error of the first address, or that which ended the caller's wait. */
static int watch_race(struct race *r, int64_t deadline)
{
    int begun = 0, ended = 0, first_err = -ECONNREFUSED;
    while (ended < r->n) {
        if (begun < r->n && begun == ended)
            enter_race(r, begun++);
        int64_t next = begun < r->n ? gort_in(HEAD_START) : GORT_FOREVER;
        struct outcome out;
        int got = gort_chan_recv_until(r->ended, &out, next < deadline ? next : deadline);
        if (got == 1 && out.fd >= 0)
            return out.fd;
        if (got == 1) {
            ended++;
            if (out.who == 0)
                first_err = out.fd;
        } else if (got == -ETIMEDOUT && next < deadline && gort_now() >= next) {
            enter_race(r, begun++);
        } else {
            return got;
        }
    }
    return first_err;
}

static int dial_several(const struct dial *d, const struct gort__addr *addrs, int n)
{
    struct race *r = gort__enter_light_alloc(sizeof *r);
    if (!r)
        return -ENOMEM;
    memset(r, 0, sizeof *r);
    r->dial = *d;
    r->options = *d->options;
    r->dial.options = &r->options;
    if (r->options.local) /* those who are late may outlive the caller's */
        r->options.local = memcpy(r->local, r->options.local, strlen(r->options.local) + 1);
    r->refs = 1;
    r->n = n;
    memcpy(r->addrs, addrs, (size_t)n * sizeof *addrs);
    r->ended = gort_chan_new(sizeof(struct outcome), (size_t)n);
    r->ctx = gort_ctx_new(NULL, GORT_FOREVER);
    int fd = -ENOMEM;
    if (r->ended && r->ctx)
        fd = watch_race(r, d->deadline);
    if (r->ctx)
        gort_ctx_cancel(r->ctx, 0);
    race_let_go(r);
    return fd;
}

/* Datagrams: nobody answers, so there is nothing to wait for and to be tried side by side. */
static int dial_in_turn(const struct dial *d, const struct gort__addr *addrs, int n)
{
    int fd = dial_one(d, &addrs[0]), first = fd;
    for (int i = 1; fd < 0 && i < n; i++)
        fd = dial_one(d, &addrs[i]);
    return fd < 0 ? first : fd;
}

int gort_dial_with(const gort_net_options *options, const char *name, const char *text, int64_t deadline)
{
    GORT_NEED("gort_dial", "network", name);
    GORT_NEED("gort_dial", "address", text);
    static const gort_net_options defaults;
    struct dial d = {.options = options ? options : &defaults, .deadline = deadline};
    struct gort__addr addrs[GORT__ADDRS];
    if (gort__addr_parse(name, &d.net))
        return -EINVAL;
    if (d.options->local && strlen(d.options->local) >= LOCAL)
        return -EINVAL;
    int n = gort__dns_find(&d.net, text, addrs, GORT__ADDRS, deadline);
    if (n < 0)
        return n;
    if (n == 1 && d.net.family == AF_UNSPEC &&
        *text == ':') { /* this machine, whichever family somebody listens with */
        addrs[1] = addrs[0];
        addrs[0] = gort__addr_any_v4(&addrs[1]);
        n = 2;
    }
    if (n == 1 || d.net.type != SOCK_STREAM)
        return dial_in_turn(&d, addrs, n);
    return dial_several(&d, addrs, n);
}

int gort_dial_until(const char *net, const char *addr, int64_t deadline)
{
    return gort_dial_with(NULL, net, addr, deadline);
}

int gort_dial(const char *net, const char *addr)
{
    return gort_dial_with(NULL, net, addr, GORT_FOREVER);
}
