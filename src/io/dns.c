/* SPDX-License-Identifier: MIT */
/*
 * dns.c - host names.
 *
 * Why: with c-ares (ares.c) a goroutine can wait for the answer; it is used when it was there at build time.
 * Without it, and outside of runs: the C library's resolver reads /etc/hosts, nsswitch.conf and whatever else
 * the system is set up with, so its answers are those of every other program; but it blocks. It runs in an
 * announced blocking call. It cannot be interrupted: a caller with a deadline or a context lets a goroutine
 * of its own ask, and leaves when its time is up; the question is then answered to nobody.
 * It allocates and takes locks, which is legal only there: between gort_block_enter and leave the caller is a
 * plain thread that nobody preempts.
 * Threads: any.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>

#include <gort/chan.h>

#include "base/fatal.h"
#include "io/ares.h"
#include "mem/alloc.h"

#define NAME 256

struct question {
    uint32_t refs; /* the asker and the goroutine that asks for it; atomic */
    int family, type, n;
    int result; /* how many, or -errno; valid once `done` has a value */
    gort_chan *done;
    char host[NAME], service[64];
    struct gort__addr answer[GORT__ADDRS];
};

static int error_of(int code)
{
    switch (code) {
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_SYSTEM:
        return errno ? -errno : -EIO;
    case EAI_FAMILY:
    case EAI_SOCKTYPE:
    case EAI_BADFLAGS:
        return -EINVAL;
    default:
        return -ENOENT;
    }
}

/* In a blocking call. */
static intptr_t ask(void *arg)
{
    struct question *q = arg;
    struct addrinfo hints = {.ai_family = q->family, .ai_socktype = q->type}, *list = NULL;
    if (!q->host[0])
        hints.ai_flags = AI_PASSIVE;
    const char *service = q->service[0] ? q->service : q->host[0] ? NULL : "0"; /* one of the two it wants */
    int code = getaddrinfo(q->host[0] ? q->host : NULL, service, &hints, &list);
    if (code)
        return error_of(code);
    int n = 0;
    for (struct addrinfo *a = list; a && n < q->n; a = a->ai_next)
        if (a->ai_addrlen <= sizeof q->answer[n].any) {
            q->answer[n].len = a->ai_addrlen;
            memcpy(&q->answer[n++].any, a->ai_addr, a->ai_addrlen);
        }
    freeaddrinfo(list);
    return n ? n : -ENOENT;
}

static void let_go(struct question *q)
{
    if (gort__sub(&q->refs, 1, ACQ_REL) == 1) { /* pairs with itself: the last one sees all */
        gort_chan_unref(q->done);
        gort__enter_light_free(q, sizeof *q);
    }
}

static void ask_for(void *arg)
{
    struct question *q = arg;
    q->result = (int)gort_block(ask, q);
    gort_chan_send_until(q->done, NULL, GORT_TRY); /* it has room for one */
    let_go(q);
}

/* Whether the asker may have to leave before the answer is there. */
static bool may_end_early(int64_t deadline)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return false;
    bool early = gort__wait_needs_claim(m->g, deadline, false) && !(m->g->flags & GORT_G_THREAD);
    early |= deadline != GORT_FOREVER;
    gort__leave(m);
    return early;
}

static bool in_a_run(void)
{
    struct gort__m *m = gort__enter();
    if (m)
        gort__leave(m);
    return m != NULL;
}

/* A number or a name: resolvers take " 5", "-1" and "0x50" for numbers, and 99999 for a port. */
static bool is_service(const char *s)
{
    if (!*s || gort__addr_port(s) >= 0)
        return true;
    bool hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
    return gort__addr_port(s) == -1 && !hex &&
           ((*s >= '0' && *s <= '9') || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z'));
}

static int resolve(struct question *q, int64_t deadline)
{
    if (q->n < 1 || !is_service(q->service))
        return -EINVAL;
#if GORT_CARES
    if (q->host[0] && in_a_run()) {
        struct gort__ares_question ask_ares = {q->host, q->service[0] ? q->service : NULL, q->family, q->type,
                                               q->n};
        return gort__ares_ask(&ask_ares, q->answer, deadline);
    }
#else
    (void)in_a_run;
#endif
    if (!may_end_early(deadline))
        return (int)gort_block(ask, q);
    q->done = gort_chan_new(0, 1);
    if (!q->done)
        return -ENOMEM;
    q->refs = 2;
    int err = gort_go(ask_for, q);
    if (err) {
        q->refs = 1;
        return err;
    }
    err = gort_chan_recv_until(q->done, NULL, deadline);
    return err < 0 ? err : q->result;
}

static struct question *question(const char *host, const char *service, int family, int type, int n)
{
    struct question *q = gort__enter_light_alloc(sizeof *q);
    if (!q)
        return NULL;
    memset(q, 0, sizeof *q);
    q->refs = 1;
    q->family = family;
    q->type = type;
    q->n = n < GORT__ADDRS ? n : GORT__ADDRS;
    strncpy(q->host, host ? host : "", sizeof q->host - 1);
    strncpy(q->service, service ? service : "", sizeof q->service - 1);
    return q;
}

int gort_resolve_until(const char *host, const char *service, struct sockaddr_storage *out, size_t n,
                       int64_t deadline)
{
    GORT_NEED("gort_resolve", "place for addresses", out || !n);
    if ((host && strlen(host) >= NAME) || (service && strlen(service) >= 64))
        return -EINVAL;
    struct question *q = question(host, service, AF_UNSPEC, SOCK_STREAM,
                                  n < GORT__ADDRS ? (int)n : GORT__ADDRS);
    if (!q)
        return -ENOMEM;
    int got = resolve(q, deadline);
    for (int i = 0; i < got; i++)
        out[i] = q->answer[i].any;
    let_go(q);
    return got;
}

int gort_resolve(const char *host, const char *service, struct sockaddr_storage *out, size_t n)
{
    return gort_resolve_until(host, service, out, n, GORT_FOREVER);
}

/* IPv6 and IPv4 in turns, beginning with the family that the resolver prefers (RFC 8305). */
static int in_turns(const struct gort__addr *in, int n, struct gort__addr *out)
{
    int at[2] = {0, 0}, got = 0;
    if (n <= 0)
        return n;
    sa_family_t first = in[0].any.ss_family;
    for (int side = 0; got < n; side = !side) {
        int *i = &at[side];
        while (*i < n && (in[*i].any.ss_family == first) != (side == 0))
            ++*i;
        if (*i < n)
            out[got++] = in[(*i)++];
    }
    return got;
}

int gort__dns_find(const struct gort__net *net, const char *text, struct gort__addr *out, int n,
                   int64_t deadline)
{
    char buf[NAME + 64];
    const char *host, *port;
    int got = gort__addr_numeric(net, text, &out[0]);
    if (got)
        return got;
    int err = gort__addr_split(text, buf, sizeof buf, &host, &port);
    if (err || !*port || strlen(host) >= NAME || strlen(port) >= 64)
        return -EINVAL;
    struct question *q = question(host, port, net->family, net->type, n);
    if (!q)
        return -ENOMEM;
    got = resolve(q, deadline);
    got = in_turns(q->answer, got, out);
    let_go(q);
    return got;
}
