/* SPDX-License-Identifier: MIT */
/*
 * fd.h - what is known about one fd: who waits for it, which life it is in, what came to pass.
 *
 * An entry belongs to an fd number for ever; the file behind the number changes, and its generation with it.
 * The word of an entry holds both the generation and the number of calls that are in the kernel for it right
 * now:
 *
 *     63            32 31             0
 *     |  generation   |     busy      |
 *
 * A call counts itself in and sees with the same instruction whether the file is still the one it began with;
 * a close raises the generation and then waits until nobody is in the kernel. So a call never touches a
 * reused number. Waiters, deadlines and the write lock belong to a generation as well: a writer that is stuck
 * in a blocking call when its fd is closed keeps nobody from writing to the next file, and what it does at
 * its end does not concern that file.
 *
 * Readiness is a counter a direction, not a flag. A reader notes it, tries, and when there is nothing it
 * queues itself and looks at the counter again: if an event came in between it tries once more instead of
 * waiting. An event counts first and looks for waiters then. One of the two sees the other (poll.c has the
 * proof).
 */
#ifndef GORT_SRC_POLL_FD_H
#define GORT_SRC_POLL_FD_H

#include "mem/lock.h"
#include "poll/poll.h"

enum gort__dir { GORT__DIR_READ, GORT__DIR_WRITE };

/* Results of a wait beside what is ready (enum of os.h) and -errno. */
#define GORT__POLL_AGAIN      0x100 /* something about the fd has changed (its deadline): look again */
#define GORT__POLL_WRITE_LOCK 0x200 /* the write lock is the waiter's */

/* Whether a writer has the file of that generation. WANTED is set only under the lock. */
enum gort__write_lock { GORT__WRITE_LOCK_FREE, GORT__WRITE_LOCK_TAKEN, GORT__WRITE_LOCK_WANTED };

/* Served in order. first is atomic, written under the lock of the fd; all else is guarded by it. */
struct gort__poll_queue {
    struct gort__poll_waiter *first, *last;
};

struct gort__fd {
    uint64_t word;          /* generation and busy; atomic */
    uint64_t write_lock;    /* to write: generation, and enum gort__write_lock; atomic */
    struct gort__lock lock; /* rank GORT_RANK_FD */
    uint32_t epoch;         /* of the poller that watches it; another or 0: nobody does; guarded by lock */
    uint32_t kind;          /* of file, as io sees it; 0: not known yet; atomic */
    uint32_t seq[2];        /* events seen, a direction; atomic */
    int64_t until[2];       /* the fd's own deadlines; 0: none; atomic, written under lock */
    struct gort__poll_queue waiters[2];
    struct gort__poll_queue writers; /* for the write lock */
    /* GORT__DRAINED + seq[0] as it was before a read that emptied the file; 0: not known; atomic. */
    uint64_t drained;
    uint32_t no_drain_hint; /* an end, an error or urgent data was seen: short reads say nothing; atomic */
} GORT_ALIGNED_LINE;

#define GORT__DRAINED (UINT64_C(1) << 32)

/* The kind of an fd between gort__fd_retire and the close of its file: calls that begin then must wait a
 * moment, for the file is still open and nobody would tell them when it is not. */
#define GORT__FD_CLOSING UINT32_MAX

/* The entry of an fd number, made at its first use. NULL: no such number, or no memory. Never freed. */
struct gort__fd *gort__table_get(int fd);

void gort__fd_pause(void); /* somebody else is about to finish */

static inline uint32_t gort__fd_generation(const struct gort__fd *f)
{
    return (uint32_t)(gort__load(&f->word, ACQUIRE) >> 32); /* pairs with gort__fd_retire */
}

/* Around a system call that does not block. False: the file of that generation was closed; then no drop. */
static inline bool gort__fd_pin(struct gort__fd *f, uint32_t generation)
{
    /* Pairs with gort__fd_retire: it is one word, so either that sees this call, or this call the new
     * generation. */
    if (GORT_LIKELY((uint32_t)(gort__add(&f->word, 1, ACQUIRE) >> 32) == generation))
        return true;
    gort__sub(&f->word, 1, RELEASE); /* pairs with gort__fd_retire */
    return false;
}

static inline void gort__fd_unpin(struct gort__fd *f)
{
    gort__sub(&f->word, 1, RELEASE); /* pairs with gort__fd_retire */
}

static inline uint64_t gort__fd_write_lock_word(uint32_t generation, enum gort__write_lock state)
{
    return (uint64_t)generation << 32 | state;
}

static inline void gort__fd_lock(struct gort__fd *f)
{
    gort__lock_take(&f->lock, GORT_RANK_FD);
}

static inline void gort__fd_unlock(struct gort__fd *f)
{
    gort__lock_release(&f->lock, GORT_RANK_FD);
}

/*
 * A TCP socket that gave less than was asked for is empty, and whatever comes later is an event: the next
 * read need not try, it can wait at once. Not so when the end of the stream came with the data, for that was
 * the same event; nor with urgent data, at which reads stop: `no_drain_hint` says so, and is set before the
 * event counts.
 */
static inline void gort__fd_set_drained(struct gort__fd *f, uint32_t seq)
{
    gort__store(&f->drained, GORT__DRAINED | seq, RELAXED);
}

bool gort__fd_is_drained(const struct gort__fd *f, uint32_t seq);
/* Whether the poller watches it already. Without the lock: it may have begun or ended to do so right now. */
bool gort__fd_watched(const struct gort__fd *f);

/* All of these with the lock held. */

/* Sees to it that the poller watches the fd. 0; -EPERM: it never waits (a regular file); -errno. */
int gort__fd_watch(struct gort__fd *f, int fd);
/* The same when the file behind the number may have changed without a word. */
int gort__fd_watch_again(struct gort__fd *f, int fd);
/* Joins a queue of those who wait for events. front: it has waited for its place already. */
void gort__fd_queue(struct gort__fd *f, enum gort__dir d, struct gort__poll_waiter *w, bool front);
/* Whether an event came since seq was read. After gort__fd_queue: then nobody will wake the waiter for it. */
bool gort__fd_moved(struct gort__fd *f, enum gort__dir d, uint32_t seq);
void gort__poll_push(struct gort__poll_queue *q, struct gort__poll_waiter *w, bool front);
void gort__poll_remove(struct gort__poll_queue *q, struct gort__poll_waiter *w);
/* The first that still waits, claimed, with its result; NULL: nobody. */
struct gort__poll_waiter *gort__poll_take(struct gort__poll_queue *q, int result);

/* A wait that began with gort__fd_queue is over: by the waiter itself, so that one who is being woken still
 * counts. */
void gort__poll_done(uint32_t waits);

/*
 * The file is about to be closed, or is a new one behind the same number. All who wait are claimed with
 * -EBADF and linked to *woken (the caller readies them after this); when it returns no call for the file is
 * in the kernel. kind: that of the new file; 0: not known yet; GORT__FD_CLOSING: until gort__fd_closed.
 */
void gort__fd_retire(struct gort__fd *f, int fd, uint32_t kind, struct gort__poll_waiter **woken);

/* After the close: whoever opens a file with this number finds an unknown one, unless it has said already
 * what it is. */
void gort__fd_closed(struct gort__fd *f);

/* Begins a call: the generation and kind of the file. 0 for a kind that is not known yet. */
static inline uint32_t gort__fd_begin(const struct gort__fd *f, uint32_t *kind)
{
    for (;;) {
        uint32_t generation = gort__fd_generation(f); /* first: retire changes the kind before it */
        *kind = gort__load(&f->kind, ACQUIRE);        /* pairs with io/fd.c:learn and gort__fd_retire */
        if (GORT_LIKELY(*kind != GORT__FD_CLOSING))
            return generation;
        gort__fd_pause();
    }
}

/* An event of that generation; those whose wait is over are appended to the list. */
void gort__fd_event(struct gort__fd *f, uint32_t generation, uint32_t what, struct gort__poll_waiter ***tail);

#endif
