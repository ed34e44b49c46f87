/* SPDX-License-Identifier: MIT */
/*
 * gort/chan.h - channels, which carry values of one size from senders to receivers, and select.
 *
 * A channel with capacity 0 has no buffer: a send waits until a receiver takes the value. A channel with
 * capacity n keeps up to n values in a buffer: a send waits while it is full, a receive while it is empty.
 * Waiting senders and receivers are served in the order of their arrival. Goroutines and plain threads may
 * use either end.
 *
 * A NULL channel is fatal, except where a comment says otherwise. To send from NULL is fatal too, unless the
 * channel's values have no bytes. To use a channel after its last reference is gone is fatal as long as its
 * memory has not been used again.
 */
#ifndef GORT_CHAN_H
#define GORT_CHAN_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

typedef struct gort_chan gort_chan;

#define GORT_CHAN_ELEM_MAX ((size_t)64 << 10)

/*
 * Returns a new channel with one reference, for values of elem bytes (0 to GORT_CHAN_ELEM_MAX) and with
 * capacity cap. Returns NULL if there is no memory or elem is too large. Never parks.
 */
GORT_API gort_chan *gort_chan_new(size_t elem, size_t cap);
/*
 * Takes a reference and returns ch; drops a reference. The channel is freed with its last reference. Neither
 * parks; both do nothing with NULL.
 */
GORT_API gort_chan *gort_chan_ref(gort_chan *ch);
GORT_API void gort_chan_unref(gort_chan *ch);

/*
 * Sends a copy of *value. Returns 0; -EPIPE: the channel is closed; -EAGAIN (GORT_TRY), -ETIMEDOUT,
 * -ECANCELED. After an error nothing has been sent, and the sender keeps the value. May park.
 */
GORT_API int gort_chan_send(gort_chan *ch, const void *value);
GORT_API int gort_chan_send_until(gort_chan *ch, const void *value, int64_t deadline);

/*
 * Receives a value into *value; if value is NULL, the received value is dropped. Returns 1; 0: the channel is
 * closed and its buffer empty, and *value has been zeroed; -EAGAIN (GORT_TRY), -ETIMEDOUT, -ECANCELED:
 * nothing was received. May park.
 */
GORT_API int gort_chan_recv(gort_chan *ch, void *value);
GORT_API int gort_chan_recv_until(gort_chan *ch, void *value, int64_t deadline);

/*
 * Closes the channel, whichever end the caller uses. Receivers get the values in the buffer and then 0,
 * senders get -EPIPE; those that wait now do so at once. Returns 0, or -EPIPE if the channel was closed
 * already. Never parks.
 */
GORT_API int gort_chan_close(gort_chan *ch);

/* The number of values in the buffer; the capacity. 0 for NULL. Neither parks. */
GORT_API size_t gort_chan_len(const gort_chan *ch);
GORT_API size_t gort_chan_cap(const gort_chan *ch);
/* The size of a value in bytes. 0 for NULL. Never parks. */
GORT_API size_t gort_chan_elem(const gort_chan *ch);

enum { GORT_RECV = 1, GORT_SEND = 2 };

/* One case of a select: a send or a receive. */
typedef struct gort_case {
    union {
        gort_chan *ch; /* NULL disables the case */
        int fd;        /* reserved */
    };
    union {
        void *recv;       /* where to store the received value; NULL drops it */
        const void *send; /* the value to send */
    };
    int op;     /* GORT_RECV or GORT_SEND; anything else is fatal */
    int result; /* set in the case that happened: what gort_chan_send or gort_chan_recv would have returned */
} gort_case;

/*
 * Waits until at least one of the n cases can happen, and does exactly one, chosen at random if several can.
 * Returns its index; -EAGAIN (GORT_TRY), -ETIMEDOUT, -ECANCELED, -ENOMEM (many cases only): none happened;
 * -EINVAL: more than 65535 cases. A channel may appear in several cases and in both directions. May park.
 */
GORT_API int gort_select(gort_case *cases, size_t n, int64_t deadline);

GORT_END_DECLS

/* Make cases, for gort/select.h and gort/typed.h. */
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
