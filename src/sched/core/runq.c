/* SPDX-License-Identifier: MIT */
/*
 * runq.c - the queue of runnable goroutines that each P owns.
 *
 * Why: the M that holds a P puts and takes goroutines all the time, thieves come rarely. So the
 * owner's put is a plain store behind an index check, its get one compare-and-swap, and a thief
 * takes half of the ring with a single one. A lock would cost two atomics an operation; a deque
 * that the owner works from the same end as it fills (Chase-Lev) would make the newest run first.
 * `next` is a slot beside the ring for the goroutine that should run as soon as the current one
 * stops: producer and consumer then follow each other with warm caches.
 *
 *     head -> | oldest | ... | newest | <- tail          head, tail: free-running 32-bit counters,
 *                                                        slot = counter mod size
 *
 * Invariants: (1) 0 <= tail - head <= size, modulo 2^32; (2) slots in [head, tail) hold goroutines
 * that are in no other queue; (3) only the owner writes slots and tail; (4) head only grows, and
 * only by a compare-and-swap whose winner owns the slots it passed.
 *
 * Proof that each goroutine is taken once: a taker reads slots and then advances head from the
 * value under which it read. Head only grows, so success means that nobody took those slots in
 * between, and that the owner did not write them in between, because it writes a slot again only
 * after head has passed it (put checks tail - head with a head that is never too large). A 32-bit
 * counter would have to wrap exactly during one steal to fool the comparison.
 * A thief can read head and tail at different moments and see more than half a ring to take; it
 * looks again. tests/model/runq.c explores all interleavings of a ring of 4.
 *
 * Threads: owner functions by the M that holds the P, in parallel with steal, steal_next, empty and
 * length by anybody.
 */
#include "sched/core/runq.h"

#include "base/fatal.h"
#include "sched/core/g.h"

#define SIZE GORT_RUNQ_SIZE
_Static_assert((SIZE & (SIZE - 1)) == 0, "slot = counter mod size must survive the wrap");

bool gort__runq_put_slow(struct gort__runq *q, struct gort__g *g, uint32_t h, struct gort__glist *overflow)
{
    uint32_t n = SIZE / 2;
    struct gort__g *batch[SIZE / 2];
    for (uint32_t i = 0; i < n; i++)
        batch[i] = gort__load(&q->ring[(h + i) % SIZE], RELAXED);
    if (!gort__cas(&q->head, &h, h + n, RELEASE)) /* pairs with the loads of head in put and steal */
        return false;
    for (uint32_t i = 0; i + 1 < n; i++) {
        batch[i]->link = batch[i + 1];
        if (!batch[i]->ctx.pc)
            batch[i]->ctx.sp = i + GORT_G_PREFETCH < n ? batch[i + GORT_G_PREFETCH] : NULL;
    }
    batch[n - 1]->link = g;
    g->link = NULL;
    *overflow = (struct gort__glist){batch[0], g, n + 1};
    return true;
}

struct gort__g *gort__runq_steal(struct gort__runq *q, struct gort__runq *victim)
{
    uint32_t t = q->tail;
    for (;;) {
        uint32_t vh = gort__load(&victim->head, ACQUIRE); /* pairs with the takers' advance of head */
        uint32_t vt = gort__load(&victim->tail, ACQUIRE); /* pairs with gort__runq_put */
        uint32_t n = vt - vh;
        n -= n / 2;
        if (n == 0)
            return NULL;
        if (n > SIZE / 2)
            continue; /* head and tail were read at different moments */
        for (uint32_t i = 0; i < n; i++)
            gort__store(&q->ring[(t + i) % SIZE], gort__load(&victim->ring[(vh + i) % SIZE], RELAXED),
                        RELAXED);
        if (!gort__cas(&victim->head, &vh, vh + n, RELEASE)) /* pairs with gort__runq_put */
            continue;
        gort__check(t - gort__load(&q->head, RELAXED) <= SIZE / 2);
        if (n > 1)
            gort__store(&q->tail, t + n - 1, RELEASE); /* pairs with gort__runq_steal */
        return gort__load(&q->ring[(t + n - 1) % SIZE], RELAXED);
    }
}

bool gort__runq_steal_next(struct gort__runq *victim, struct gort__g *seen)
{
    return gort__cas(&victim->next, &seen, NULL, ACQUIRE); /* pairs with gort__runq_put_next */
}

bool gort__runq_empty(const struct gort__runq *q)
{
    /* The owner moves goroutines from next into the ring: reading head, tail and next one after the
     * other could miss one on its way. An unchanged tail means that nothing was put meanwhile. */
    for (;;) {
        uint32_t h = gort__load(&q->head, ACQUIRE);           /* pairs with the takers' advance of head */
        uint32_t t = gort__load(&q->tail, ACQUIRE);           /* pairs with gort__runq_put */
        struct gort__g *next = gort__load(&q->next, ACQUIRE); /* pairs with gort__runq_put_next */
        if (t == gort__load(&q->tail, ACQUIRE))               /* pairs with gort__runq_put */
            return h == t && next == NULL;
    }
}

uint32_t gort__runq_length(const struct gort__runq *q)
{
    uint32_t h = gort__load(&q->head, RELAXED), t = gort__load(&q->tail, RELAXED);
    uint32_t n = t - h > SIZE ? 0 : t - h;
    return n + (gort__load(&q->next, RELAXED) != NULL);
}
