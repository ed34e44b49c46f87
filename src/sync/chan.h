/* SPDX-License-Identifier: MIT */
/* chan.h - what a channel is made of, for chan.c and select.c. */
#ifndef GORT_SRC_SYNC_CHAN_H
#define GORT_SRC_SYNC_CHAN_H

#include <gort/chan.h>

#include "base/fatal.h"
#include "sched/wait/wait.h"

#define GORT_CHAN_MAGIC 0x6368616eu /* "chan": a live one */

/* A freed channel can be told as long as its memory is not used again: its magic is gone, and elem is DEAD.
 * The fast ways of send and receive are for elements of 8 bytes only, so they come to gort__chan_check then
 * without a look at magic. (The lock is part of a link of free memory: who finds it taken comes there as
 * well.) */
#define GORT_CHAN_DEAD UINT32_MAX

struct gort_chan {
    struct gort__lock lock; /* rank GORT_RANK_CHAN; guards everything below it */
    uint32_t refs;          /* atomic */
    uint32_t elem;          /* bytes an element; fixed */
    uint32_t magic;         /* fixed */
    /* Waits that may end without a peer, and then come back to it: it stays until they have,. */
    uint32_t parked;
    uint64_t parked_run; /* in this run */
    size_t cap;          /* fixed */
    size_t len;          /* atomic for gort_chan_len */
    size_t head;         /* index of the oldest element */
    struct gort__waitq receivers, senders;
    bool closed;                       /* atomic for those who look without the lock */
    bool left;                         /* is in the list of those without references (chan.c) */
    gort_chan *left_next, **left_link; /* there; guarded by its lock */
    char buffer[] GORT_ALIGNED_LINE;
};

/* Fatal unless ch is a channel that was not freed, as far as can be told. */
static inline void gort__chan_check(const gort_chan *ch, const char *call)
{
    GORT_NEED(call, "channel", ch);
    if (GORT_UNLIKELY(gort__load(&ch->magic, RELAXED) != GORT_CHAN_MAGIC))
        gort__fatal("%s: use of a freed channel, or of a pointer that is not a channel", call);
}
/* With the lock held: does the operation if it can happen now. True: *result is what the call returns, and
 * *wake (if not NULL) is to be readied after unlocking. */
bool gort__chan_try_send(gort_chan *ch, const void *value, int *result, struct gort__waiter **wake);
bool gort__chan_try_recv(gort_chan *ch, void *value, int *result, struct gort__waiter **wake);
/* Without the lock: whether it looks as if the operation could happen now. */
static inline bool gort__chan_maybe_ready(const gort_chan *ch, bool sends)
{
    size_t len = gort__load(&ch->len, RELAXED);
    return sends ? len < ch->cap || gort__load(&ch->receivers.first, RELAXED) ||
                       gort__load(&ch->closed, RELAXED)
                 : len || gort__load(&ch->senders.first, RELAXED) || gort__load(&ch->closed, RELAXED);
}

/* With the lock held: a wait that may end without a peer begins and ends. True: it was the last user, so the
 * caller unlocks and frees. */
static inline void gort__chan_pin(gort_chan *ch)
{
    uint64_t run = gort__sched_run();
    if (GORT_UNLIKELY(ch->parked_run != run)) {
        ch->parked_run = run;
        ch->parked = 0;
    }
    ch->parked++;
}

/* With the lock held: such waits are under way. Those of an ended run are gone. */
static inline bool gort__chan_pinned(const gort_chan *ch)
{
    return ch->parked && ch->parked_run == gort__sched_run();
}

static inline bool gort__chan_let_go(gort_chan *ch)
{
    return --ch->parked == 0 && gort__load(&ch->refs, ACQUIRE) == 0; /* pairs with gort_chan_unref */
}
void gort__chan_free(gort_chan *ch);
/* Closes it and adds those to be readied to *woken. 0 or -EPIPE. */
int gort__chan_close(gort_chan *ch, struct gort__glist *woken);

#endif
