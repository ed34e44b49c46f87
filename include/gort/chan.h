/* SPDX-License-Identifier: MIT */
/*
 * gort/chan.h - channels: values of one size handed from goroutine to goroutine, and select.
 *
 * With capacity 0 a send waits for its receiver; else values wait in a buffer of that many. Senders
 * and receivers that wait are served in the order of their arrival. Goroutines and plain threads may
 * use both ends. The plain form waits for ever, `_until` until a deadline (gort_in), GORT_TRY not at
 * all (-EAGAIN). A NULL channel is fatal, but in gort_select it disables its case.
 */
#ifndef GORT_CHAN_H
#define GORT_CHAN_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

typedef struct gort_chan gort_chan;

#define GORT_CHAN_ELEM_MAX ((size_t)64 << 10)

/* A channel of cap elements of elem bytes (0 .. GORT_CHAN_ELEM_MAX), with one reference. NULL: no memory, or elem too large. */
GORT_API gort_chan *gort_chan_new(size_t elem, size_t cap);
/* One reference more, and one less; the last frees it. Never park. NULL is fine. */
GORT_API gort_chan *gort_chan_ref(gort_chan *ch);
GORT_API void gort_chan_unref(gort_chan *ch);

/* 0: sent. -EPIPE: closed, the sender keeps the value. -EAGAIN, -ETIMEDOUT, -ECANCELED: not sent. */
GORT_API int gort_chan_send(gort_chan *ch, const void *value);
GORT_API int gort_chan_send_until(gort_chan *ch, const void *value, int64_t deadline);

/* 1: received. 0: closed and drained, *value is zeroed. -EAGAIN, -ETIMEDOUT, -ECANCELED: nothing received.
 * value may be NULL: the value is dropped. */
GORT_API int gort_chan_recv(gort_chan *ch, void *value);
GORT_API int gort_chan_recv_until(gort_chan *ch, void *value, int64_t deadline);

/* Receivers get what is left and then 0, senders -EPIPE. 0, or -EPIPE when it was closed already. Never parks. */
GORT_API int gort_chan_close(gort_chan *ch);

/* How many values wait in the buffer; how many fit. NULL: 0. */
GORT_API size_t gort_chan_len(const gort_chan *ch);
GORT_API size_t gort_chan_cap(const gort_chan *ch);
/* Bytes an element. NULL: 0. Never parks. */
GORT_API size_t gort_chan_elem(const gort_chan *ch);

enum { GORT_RECV = 1, GORT_SEND = 2 };

/* One thing that a select may do. result: what the plain call would have returned, set for the case that happened. */
typedef struct gort_case {
    union {
        gort_chan *ch; /* NULL: never happens */
        int fd;        /* reserved */
    };
    union {
        void *recv; /* where a received value goes; NULL: dropped */
        const void *send;
    };
    int op; /* GORT_RECV, GORT_SEND */
    int result;
} gort_case;

/*
 * Waits until one of the cases can happen, and does just that one; chosen at random when several can.
 * Its index; -EAGAIN (GORT_TRY), -ETIMEDOUT, -ECANCELED: none happened; -EINVAL: more than 65535 cases. A channel may be listed several
 * times and in both directions.
 */
GORT_API int gort_select(gort_case *cases, size_t n, int64_t deadline);

GORT_END_DECLS

/* Cases as values, for gort/select.h and gort/typed.h. */
static inline gort_case gort_priv_case_recv(gort_chan *ch, void *address)
{
    gort_case c;
    c.ch = ch;
    c.recv = address;
    c.op = GORT_RECV;
    c.result = 0;
    return c;
}

static inline gort_case gort_priv_case_send(gort_chan *ch, const void *address)
{
    gort_case c;
    c.ch = ch;
    c.send = address;
    c.op = GORT_SEND;
    c.result = 0;
    return c;
}

#endif
