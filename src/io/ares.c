/* SPDX-License-Identifier: MIT */
/*
 * ares.c - host names with c-ares, when it was there at build time.
 *
 * Why: the C library's resolver holds a thread for as long as a question takes and cannot be interrupted.
 * c-ares asks through sockets that a goroutine can wait for: they are put into an epoll instance of the
 * question's own, whose fd is waited for like any other, so a thousand questions need no thread, and a
 * deadline or a context ends one. It reads /etc/hosts and resolv.conf, but not the other modules of
 * nsswitch.conf.
 * c-ares allocates, so every call of it is an announced blocking one; all of them are short.
 * Threads: any; each question has a channel of c-ares of its own.
 */
#include "io/ares.h"

#if GORT_CARES
#include <ares.h>
#include <netdb.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

#define SOCKETS 16

struct asking {
    const struct gort__ares_question *q;
    struct gort__addr *out;
    ares_channel channel;
    int poller, result; /* result: 0 while it goes on */
    int port;           /* of a service that is a number, else -1 */
    int64_t next;       /* ns until c-ares wants to be called in any case; < 0: not at all */
    bool open;
};

static int error_of(int status)
{
    switch (status) {
    case ARES_ENOMEM:
        return -ENOMEM;
    case ARES_ETIMEOUT:
    case ARES_ESERVFAIL:
    case ARES_ECONNREFUSED:
        return -EAGAIN;
    case ARES_ECANCELLED:
    case ARES_EDESTRUCTION:
        return -ECANCELED;
    default:
        return -ENOENT;
    }
}

static void on_socket(void *arg, ares_socket_t fd, int readable, int writable)
{
    struct asking *a = arg;
    struct epoll_event e = {.events = (readable ? EPOLLIN : 0u) | (writable ? EPOLLOUT : 0u), .data.fd = fd};
    if (!readable && !writable)
        epoll_ctl(a->poller, EPOLL_CTL_DEL, fd, &e);
    else if (epoll_ctl(a->poller, EPOLL_CTL_ADD, fd, &e) != 0)
        epoll_ctl(a->poller, EPOLL_CTL_MOD, fd, &e);
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
    struct asking *a = arg;
    int n = 0;
    (void)timeouts;
    if (status == ARES_SUCCESS)
        for (struct ares_addrinfo_node *at = info->nodes; at && n < a->q->n; at = at->ai_next)
            if (at->ai_addrlen <= sizeof a->out[n].any) {
                a->out[n].len = at->ai_addrlen;
                memcpy(&a->out[n].any, at->ai_addr, at->ai_addrlen);
                if (a->port >= 0)
                    gort__addr_set_port(&a->out[n].any, a->port);
                n++;
            }
    a->result = n ? n : status == ARES_SUCCESS ? -ENOENT : error_of(status);
    if (info)
        ares_freeaddrinfo(info);
}

static void note_next(struct asking *a)
{
    struct timeval tv, *left = ares_timeout(a->channel, NULL, &tv);
    a->next = left ? (int64_t)left->tv_sec * GORT_SEC + (int64_t)left->tv_usec * GORT_US : -1;
}

/* These three in blocking calls. */
static intptr_t begin(void *arg)
{
    static uint32_t once; /* 0 nobody, 1 being done, 2 done; atomic */
    struct asking *a = arg;
    uint32_t nobody = 0;
    if (gort__cas(&once, &nobody, 1, ACQ_REL)) { /* pairs with the wait below */
        ares_library_init(ARES_LIB_INIT_ALL);
        gort__store(&once, 2, RELEASE); /* pairs with the wait below */
    }
    while (gort__load(&once, ACQUIRE) != 2) /* pairs with the stores above */
        gort__os_thread_yield();
    struct ares_options options = {.sock_state_cb = on_socket, .sock_state_cb_data = a};
    a->poller = gort__os_fd_own(epoll_create1(EPOLL_CLOEXEC));
    if (a->poller < 0)
        return -errno;
    if (ares_init_options(&a->channel, &options, ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS)
        return -ENOMEM;
    a->open = true;
    struct ares_addrinfo_hints hints = {.ai_family = a->q->family, .ai_socktype = a->q->type};
    ares_getaddrinfo(a->channel, a->q->host, a->port >= 0 ? NULL : a->q->service, &hints, on_answer, a);
    note_next(a);
    return 0;
}

static intptr_t step(void *arg)
{
    struct asking *a = arg;
    struct epoll_event events[SOCKETS];
    int n = epoll_wait(a->poller, events, SOCKETS, 0);
    for (int i = 0; i < n; i++) {
        ares_socket_t fd = events[i].data.fd;
        bool in = events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR), out = events[i].events & EPOLLOUT;
        ares_process_fd(a->channel, in ? fd : ARES_SOCKET_BAD, out ? fd : ARES_SOCKET_BAD);
    }
    if (n <= 0)
        ares_process_fd(a->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD); /* its own time-outs */
    note_next(a);
    return 0;
}

static intptr_t end(void *arg)
{
    struct asking *a = arg;
    if (a->open)
        ares_destroy(a->channel);
    return 0;
}

int gort__ares_ask(const struct gort__ares_question *q, struct gort__addr *out, int64_t deadline)
{
    struct asking a = {.q = q, .out = out, .poller = -1, .port = -1};
    if (q->service)
        a.port = gort__addr_port(q->service); /* c-ares takes port 0 for no service at all */
    if (a.port == -2)
        return -EINVAL;
    int err = (int)gort_block(begin, &a);
    while (!err && !a.result) {
        int64_t wake = a.next < 0 ? GORT_FOREVER : gort_in(a.next);
        int ready = gort_wait_fd(a.poller, GORT_READ, wake < deadline ? wake : deadline);
        if (ready == -ETIMEDOUT && wake < deadline && gort_now() >= wake)
            ready = 0;
        err = ready < 0 ? ready : (int)gort_block(step, &a);
    }
    int result = a.result; /* before destroying the channel ends a question that goes on */
    gort_block(end, &a);
    if (a.poller >= 0)
        gort_close(a.poller);
    return err ? err : result;
}
#endif
