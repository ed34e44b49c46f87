/* SPDX-License-Identifier: MIT */
/*
 * scavenge_g.c - records of goroutines that nobody needs any more give their memory back.
 *
 * Why: a million goroutines leave 192 MB of records behind when they end. They lie in the shared list of free
 * batches, linked through themselves, in any order; their chunks can be given back only whole. So, when for
 * two whole ticks there were never fewer than some batches too many (a load that comes in waves needs them
 * again), and about as many (while many end hardly any chunk is free as a whole, and each pass goes through
 * all records), the scavenger takes the list into its hands, with what idle Ps keep, and
 *     MARK    marks each record in it;
 *     CHOOSE  looks for chunks all of whose records are marked, and marks those as gone;
 *     SIFT    puts all records that are not gone into batches again, and the batches back;
 *     EMPTY   gives the memory of the chosen chunks back: zeroes are idle records that were never used (slab.c).
 * Meanwhile whoever needs records carves new ones. Each step costs some nanoseconds a record and is done in
 * slices, by the supervisor; starting and ending goroutines pay nothing. Where those that live on are spread
 * over all chunks there is nothing to gain: after a pass that gave back less than an eighth, the next one is
 * a second later, then two, up to 13, unless there are clearly more free ones by then, or an eighth fewer
 * that live.
 * A mark is a value of wait_word, which means nothing in an idle record but that nobody can claim it.
 * Invariants: (1) a marked record is IDLE and in the scavenger's hands only; (2) no mark outlives SIFT, but
 * in chunks that EMPTY zeroes.
 * Threads: the supervisor; in parallel with everything. A stale pointer to a record may be followed at any
 * time and finds an idle one.
 */
#include <string.h>

#include "base/fatal.h"
#include "scavenge/scavenge.h"

#define SLACK        256 /* batches, 3 MiB: not worth the trouble below */
#define BACK_OFF_MAX 64  /* ticks, at most, after passes that were for nothing */
#define MARK         0x6d61726bu
#define GONE         0x676f6e65u

enum step { OFF, MARKING, CHOOSING, SIFTING, EMPTYING };

static struct {
    enum step step;
    uint32_t before;                  /* the least number of free batches in the tick before */
    struct gort__g *all, *batch;      /* those in our hands; the next to be looked at */
    struct gort__chunk *chunk;        /* the same for CHOOSE */
    struct gort__chunk *chosen;       /* linked by more */
    struct gort__g *part;             /* a batch that is not full yet, */
    int part_n;                       /* and how many it has */
    uint32_t seen, gone;              /* batches in the last pass; records that it gave back */
    uint64_t live;                    /* goroutines then */
    uint32_t back_off, back_off_left; /* ticks between passes that were for nothing; how many are left */
} job;

void gort__scavenge_g_reset(void)
{
    memset(&job, 0, sizeof job);
}

bool gort__scavenge_g_tick(void)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->free.lock, GORT_RANK_GFREE);
    uint32_t least = s->free.batches_least;
    s->free.batches_least = s->free.batches_n;
    gort__lock_release(&s->free.lock, GORT_RANK_GFREE);
    uint32_t change = least > job.before ? least - job.before : job.before - least;
    uint64_t live = gort__g_count();
    if (job.before &&
        least < job.seen / 2) /* they were needed again: what was for nothing before says nothing */
        job.back_off = job.back_off_left = 0;
    bool news = least > job.seen + job.seen / 8 || live + (job.live + 7) / 8 <= job.live;
    job.back_off_left = job.back_off_left && !news ? job.back_off_left - 1 : 0;
    bool many = least >= SLACK && job.before >= SLACK && change <= least / 8;
    bool start = job.step == OFF && many && !job.back_off_left;
    job.before = least;
    if (start) {
        gort__g_collect(); /* what idle Ps keep would hold many chunks */
        gort__lock_take(&s->free.lock, GORT_RANK_GFREE);
        job.all = s->free.batches;
        if (s->free.loose) { /* a batch like any other, if not of 64 */
            *gort__g_batch_link(s->free.loose) = job.all;
            job.all = s->free.loose;
            s->free.loose = NULL;
        }
        job.batch = job.all;
        job.seen = s->free.batches_n;
        job.gone = 0;
        job.live = live;
        s->free.batches = NULL;
        s->free.batches_n = s->free.batches_least = 0;
        gort__lock_release(&s->free.lock, GORT_RANK_GFREE);
        job.step = job.all ? MARKING : OFF;
    }
    return job.step != OFF;
}

static void mark(void)
{
    for (struct gort__g *g = job.batch; g; g = g->link)
        gort__store(&g->wait_word, MARK, RELAXED);
    job.batch = *gort__g_batch_link(job.batch);
    if (job.batch)
        return;
    job.chunk = gort__load(&gort__sched.gs.chunks, ACQUIRE); /* pairs with slab.c:grow */
    job.step = CHOOSING;
}

static void mark_chunk(const struct gort__chunk *c, uint32_t mark)
{
    for (char *at = c->first; at < c->limit; at += sizeof(struct gort__g))
        gort__store(&((struct gort__g *)(void *)at)->wait_word, mark, RELAXED);
}

static bool all_marked(const struct gort__chunk *c)
{
    for (char *at = c->first; at < c->limit; at += sizeof(struct gort__g))
        if (gort__load(&((struct gort__g *)(void *)at)->wait_word, RELAXED) != MARK)
            return false;
    return true;
}

static void choose(void)
{
    struct gort__chunk *c = job.chunk;
    job.chunk = c->next;
    if (gort__slab_chunk_is_full(&gort__sched.gs, c) && all_marked(c)) {
        mark_chunk(c, GONE);
        c->more = job.chosen; /* it is in no list of the slab: it is full */
        job.chosen = c;
    }
    if (!job.chunk) {
        job.batch = job.all;
        job.step = SIFTING;
    }
}

static void give_part(bool full)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->free.lock, GORT_RANK_GFREE);
    if (full)
        gort__g_batch_put_locked(job.part);
    for (struct gort__g *g = full ? NULL : job.part, *next; g; g = next) {
        next = g->link;
        g->link = s->free.loose;
        s->free.loose = g;
    }
    gort__lock_release(&s->free.lock, GORT_RANK_GFREE);
    job.part = NULL;
    job.part_n = 0;
}

static void sift(void)
{
    struct gort__g *next, *next_batch = *gort__g_batch_link(job.batch);
    for (struct gort__g *g = job.batch; g; g = next) {
        next = g->link;
        if (gort__load(&g->wait_word, RELAXED) == GONE)
            continue;
        gort__store(&g->wait_word, GORT_CLAIM_NONE, RELAXED);
        g->link = job.part;
        job.part = g;
        if (++job.part_n == GORT_G_BATCH)
            give_part(true);
    }
    job.batch = next_batch;
    if (next_batch)
        return;
    if (job.part)
        give_part(false);
    job.all = NULL;
    job.step = EMPTYING;
}

static void empty(void)
{
    struct gort__chunk *c = job.chosen;
    if (c) {
        job.chosen = c->more;
        size_t n = (size_t)(c->limit - c->first) / sizeof(struct gort__g);
        gort__stack_unreserve(n);
        gort__slab_empty(&gort__sched.gs, c);
        job.gone += (uint32_t)n;
        return;
    }
    bool spurious = job.gone < job.seen * GORT_G_BATCH / 8;
    job.back_off = !spurious                     ? 0
                   : !job.back_off               ? BACK_OFF_MAX / 16
                   : job.back_off < BACK_OFF_MAX ? job.back_off * 2
                                                 : BACK_OFF_MAX;
    job.back_off_left = job.back_off;
    job.step = OFF;
    job.before = 0;
}

bool gort__scavenge_g(int64_t until)
{
    static void (*const steps[])(void) = {NULL, mark, choose, sift, empty};
    while (job.step != OFF) {
        for (int i = 0; i < 16 && job.step != OFF; i++)
            steps[job.step]();
        if (gort__os_now() >= until)
            break;
    }
    return job.step != OFF;
}
