/* SPDX-License-Identifier: MIT */
/*
 * fd.c - what is known about one fd.
 *
 * Why: fd numbers are small and dense, so a table of two levels finds an entry with two loads and no lock;
 * its pieces are mapped when a number in them is first used and stay. One lock an fd is enough: it is taken
 * when somebody has to wait or to be woken, never by calls that find data.
 *
 * A lost wake-up would need a reader that misses the event and an event that misses the reader:
 *
 *     reader:  note seq; try; nothing           event:  seq += 1
 *              queue itself                             full fence
 *              full fence                               anybody queued? -> wake the first
 *              seq changed? -> try again
 *
 * In the single order of the two fences one comes first: then either the event sees the queue, or the reader
 * the counter. One waiter is woken an event, not all. Whoever was woken and did not find the fd empty passes
 * the wake-up on to the next (io/wait.c), which is enough: one that found it empty did so after the event, so
 * more data is a new event; and one that tried before the event and queues after it sees the counter.
 *
 * Invariants: (1) queues are changed under the lock; (2) the generation changes under the lock; (3) who is
 * claimed is in no queue; (4) under the lock the write lock is of the fd's generation. tests/model/fd.c
 * explores readers, writers, event and close.
 * Threads: any.
 */
#include "poll/fd.h"

#include <errno.h>

#include "arch/arch.h"
#include "os/os.h"
#include "poll/table.h"

/* --- queues ----------------------------------------------------------------------------------- */

void gort__poll_push(struct gort__poll_queue *q, struct gort__poll_waiter *w, bool front)
{
    struct gort__poll_waiter *first = gort__load(&q->first, RELAXED);
    w->prev = front ? NULL : q->last;
    w->next = front ? first : NULL;
    if (w->next)
        w->next->prev = w;
    else
        q->last = w;
    if (w->prev)
        w->prev->next = w;
    else
        gort__store(&q->first, w, RELAXED);
    w->queued = true;
}

void gort__poll_remove(struct gort__poll_queue *q, struct gort__poll_waiter *w)
{
    if (w->next)
        w->next->prev = w->prev;
    else
        q->last = w->prev;
    if (w->prev)
        w->prev->next = w->next;
    else
        gort__store(&q->first, w->next, RELAXED);
    w->queued = false;
}

struct gort__poll_waiter *gort__poll_take(struct gort__poll_queue *q, int result)
{
    struct gort__poll_waiter *w;
    while ((w = gort__load(&q->first, RELAXED)) != NULL) {
        gort__poll_remove(q, w);
        if (gort__poll_claim(w)) {
            w->result = result;
            w->next = NULL;
            return w;
        }
    }
    return NULL;
}

/* --- waiting ---------------------------------------------------------------------------------- */

void gort__fd_queue(struct gort__fd *f, enum gort__dir d, struct gort__poll_waiter *w, bool front)
{
    gort__add(&gort__poll_waits, 1, RELAXED);
    gort__poll_push(&f->waiters[d], w, front);
}

bool gort__fd_moved(struct gort__fd *f, enum gort__dir d, uint32_t seq)
{
    gort__fence(SEQ_CST); /* pairs with gort__fd_event */
    return gort__load(&f->seq[d], RELAXED) != seq;
}

void gort__poll_done(uint32_t waits)
{
    gort__sub(&gort__poll_waits, waits, RELEASE); /* pairs with gort__poll_pending */
}

bool gort__fd_watched(const struct gort__fd *f)
{
    return gort__load(&f->epoch, RELAXED) == gort__poll_epoch;
}

bool gort__fd_is_drained(const struct gort__fd *f, uint32_t seq)
{
    /* seq was read with ACQUIRE before: who sees an event in it sees what is odd about it. */
    return gort__load(&f->drained, RELAXED) == (GORT__DRAINED | seq) &&
           !gort__load(&f->no_drain_hint, RELAXED) && gort__load(&f->epoch, RELAXED) == gort__poll_epoch;
}

/* --- events ----------------------------------------------------------------------------------- */

static void link_to(struct gort__poll_waiter ***tail, struct gort__poll_waiter *w)
{
    **tail = w;
    *tail = &w->next;
}

void gort__fd_event(struct gort__fd *f, uint32_t generation, uint32_t what, struct gort__poll_waiter ***tail)
{
    static const uint32_t bit[2] = {GORT__OS_READABLE, GORT__OS_WRITABLE};
    bool anybody = false;
    if (GORT_UNLIKELY(what & (GORT__OS_HANGUP | GORT__OS_ERROR | GORT__OS_URGENT)))
        gort__store(&f->no_drain_hint, 1, RELAXED); /* before the counter: gort__fd_is_drained */
    for (int d = 0; d < 2; d++)
        if (what & bit[d])
            gort__add(&f->seq[d], 1, SEQ_CST); /* pairs with gort__fd_moved */
    gort__arch_fence_after_rmw();              /* pairs with gort__fd_moved */
    for (int d = 0; d < 2; d++)
        anybody |= (what & bit[d]) && gort__load(&f->waiters[d].first, RELAXED) != NULL;
    if (!anybody)
        return;
    gort__fd_lock(f);
    /* A late event of a former file has only counted, which costs a waiter a futile try. */
    if (gort__fd_generation(f) == generation)
        for (int d = 0; d < 2; d++)
            if (what & bit[d]) {
                struct gort__poll_waiter *w = gort__poll_take(&f->waiters[d], (int)what);
                if (w)
                    link_to(tail, w);
            }
    gort__fd_unlock(f);
}

/* --- the life of a file ----------------------------------------------------------------------- */

void gort__fd_pause(void)
{
    gort__os_thread_yield();
}

void gort__fd_closed(struct gort__fd *f)
{
    uint32_t closing = GORT__FD_CLOSING;
    gort__cas(&f->kind, &closing, 0, RELEASE); /* pairs with gort__fd_begin */
}

static uint64_t tag_of(const struct gort__fd *f, int fd)
{
    return (uint64_t)gort__fd_generation(f) << 32 | (uint32_t)fd;
}

int gort__fd_watch(struct gort__fd *f, int fd)
{
    if (GORT_LIKELY(f->epoch == gort__poll_epoch))
        return 0;
    return gort__fd_watch_again(f, fd);
}

int gort__fd_watch_again(struct gort__fd *f, int fd)
{
    int err = gort__os_poll_add(gort__poll_fd, fd, tag_of(f, fd));
    if (!err)
        gort__store(&f->epoch, gort__poll_epoch, RELAXED);
    return err;
}

/* Those who wait in q, claimed. Claims may fail: such a waiter comes for its record itself. */
static void wake_all(struct gort__poll_queue *q, int result, struct gort__poll_waiter ***tail)
{
    for (struct gort__poll_waiter *w; (w = gort__poll_take(q, result)) != NULL;)
        link_to(tail, w);
}

void gort__fd_retire(struct gort__fd *f, int fd, uint32_t kind, struct gort__poll_waiter **woken)
{
    struct gort__poll_waiter **tail = woken;
    *woken = NULL;
    gort__fd_lock(f);
    gort__store(&f->kind, kind, RELEASE);            /* before the generation; pairs with gort__fd_begin */
    gort__add(&f->word, UINT64_C(1) << 32, ACQ_REL); /* pairs with gort__fd_pin and gort__fd_begin */
    /* A writer that has the former file's write lock keeps it, and need not release it. Pairs with
     * gort__io_write_lock. */
    gort__store(&f->write_lock, gort__fd_write_lock_word(gort__fd_generation(f), GORT__WRITE_LOCK_FREE),
                RELEASE);
    bool watched = f->epoch && f->epoch == gort__poll_epoch;
    gort__store(&f->epoch, 0, RELAXED);
    gort__store(&f->drained, 0, RELAXED);
    gort__store(&f->no_drain_hint, 0, RELAXED);
    for (int d = 0; d < 2; d++) {
        gort__store(&f->until[d], 0, RELAXED);
        wake_all(&f->waiters[d], -EBADF, &tail);
    }
    wake_all(&f->writers, -EBADF, &tail);
    gort__fd_unlock(f);
    if (watched && (!kind || kind == GORT__FD_CLOSING))
        gort__os_poll_del(gort__poll_fd, fd);
    /* They are in calls that do not block: a matter of microseconds. Pairs with gort__fd_unpin. */
    while (GORT_UNLIKELY((uint32_t)gort__load(&f->word, ACQUIRE) != 0))
        gort__os_thread_yield();
    if (!kind)                             /* one of them may have learned what the former file is */
        gort__store(&f->kind, 0, RELEASE); /* pairs with gort__fd_begin */
}
