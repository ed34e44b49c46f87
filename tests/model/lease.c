/* SPDX-License-Identifier: MIT */
/*
 * lease.c - the real lease of the time (sched/lease.c): a timer that was set by one is never early, whenever it is moved, closed, or
 * asked for, and however long whoever moves it is kept from running.
 * Build: standalone -DGORT_MODEL
 *
 * Whoever sets a timer loads the end, as gort_timer_reset does, and the model knows at what time. Once that end has come it fires the
 * timer: the end, and what it has slipped by, must not be before that time. (The shortest time-out is 0 here instead of half a minute,
 * so there is nothing between a lease that ends and its timers.) What is not due by then fires when all is over.
 * The clock jumps between any two steps: by a part of a lease, by most of one, or past its end. To look at it is a step.
 * Not explored: a processor that loads the end before it has looked at the clock; MARGIN is for that. Forgetting and joining
 * slips: tests/unit/lease.c.
 */
#include "model/engine/explore.c"

#include "model/locks.h"
#include "sched/verbs.h"

static int64_t clock_in(const char *func);
#define gort__os_now() clock_in(__func__)

#include "sched/lease.c"

#define MS      INT64_C(1000000)
#define START   (1000 * MS)
#define SETTERS 2

static struct {
    int64_t now;
    uint32_t tick; /* a word to make steps with */
    struct {
        int64_t at;  /* when the end was loaded */
        int64_t end; /* 0: none */
    } set[SETTERS];  /* the timers */
    int timers;
    bool closed;                   /* nobody opens it any more */
    const char *stale;             /* spoilt: who looks at the clock there sees what its thread saw before */
    int64_t before[MODEL_THREADS]; /* which is this, in these cases */
} book;                            /* what the threads did; written between steps only */

static int64_t clock_in(const char *func)
{
    int self = model_self();
    if (book.stale && self >= 0 && strcmp(func, book.stale) == 0)
        return book.before[self];
    int64_t now = (int64_t)model_load(&book.now, sizeof book.now, MODEL_RELAXED, func, "the clock");
    if (book.stale && self >= 0 && strcmp(func, "sets_one") != 0)
        book.before[self] = now;
    return now;
}

/* --- the threads ------------------------------------------------------------------------------- */

static void check_fire(int64_t at, int64_t end)
{
    int64_t slip = gort__lease_slip(gort__lease_of(end));
    if (end + slip < at)
        model_fail("a timer is early by %d us: set by the lease until %d us, which slipped by %d us",
                   (int)((at - end - slip) / 1000), (int)(end / 1000), (int)(slip / 1000));
}

static void sets_one(void)
{
    int i = book.timers++;
    int64_t end = gort__load(&gort__lease.end, RELAXED), at = book.now; /* of this very step */
    if (!end)
        return;
    MODEL_ASSERT(end <= at + LEASE + 2 * UNIT);
    book.set[i].at = at;
    book.set[i].end = end;
    if (gort__os_now() >= end)
        check_fire(at, end);
}
static void sets_two(void)
{
    sets_one();
    sets_one();
}

/* What sysmon does to it. */
static void moves(void)
{
    for (int i = 0; i < 3; i++)
        gort__lease_extend();
}
static void moves_once(void)
{
    gort__lease_extend();
}
static void moves_and_closes(void)
{
    gort__lease_extend();
    gort__lease_close();
    book.closed = true;
}
static void closes_and_opens(void)
{
    gort__lease_close();
    gort__lease_extend();
}

/* Time passes, which a lease may survive, or just about, or not. */
static void passes(void)
{
    static const int64_t by[] = {8 * MS, 25 * MS, 40 * MS};
    uint32_t which = model_choose(3);
    (void)gort__load(&book.tick, RELAXED); /* a moment, any */
    book.now += by[which];
}
static void passes_twice(void)
{
    passes();
    passes();
}

/* --- setup and oracle -------------------------------------------------------------------------- */

static void start(bool open)
{
    memset(&book, 0, sizeof book);
    memset(slips, 0, sizeof slips);
    book.now = START;
    far_lock.word = 0;
    gort__lease.least = 0;
    gort__lease_init();
    if (open)
        gort__lease_extend();
    model_memory(&book, sizeof book);
    model_memory(&gort__lease, sizeof gort__lease);
    model_memory(&far_lock, sizeof far_lock);
    model_memory(slips, sizeof slips[0] * 8);
    model_memory(&slips_n, sizeof slips_n);
}
static void is_open(void)
{
    start(true);
}
static void is_closed(void)
{
    start(false);
}
static void is_stale(const char *func)
{
    start(true);
    book.stale = func;
    for (int i = 0; i < MODEL_THREADS; i++)
        book.before[i] = START;
}
static void is_stale_in_change(void)
{
    is_stale("change");
}
static void is_stale_in_slip(void)
{
    is_stale("gort__lease_slip");
}

static void none_early(void)
{
    MODEL_ASSERT(slips_n <= 8 && !far_lock.word);
    MODEL_ASSERT(!book.closed || !gort__lease.end);
    for (int i = 0; i < book.timers; i++) {
        if (!book.set[i].end)
            continue;
        if (book.now < book.set[i].end)
            book.now = book.set[i].end;
        check_fire(book.set[i].at, book.set[i].end);
    }
}

static const struct model moved = {
    .setup = is_open, .threads = {moves, sets_two, passes_twice}, .final = none_early};
static const struct model opened = {
    .setup = is_closed, .threads = {moves, sets_two, passes_twice}, .final = none_early};
static const struct model closed = {
    .setup = is_open, .threads = {moves_and_closes, sets_two, passes_twice}, .final = none_early};
static const struct model reopened = {
    .setup = is_open, .threads = {closes_and_opens, sets_two, passes_twice}, .final = none_early};
static const struct model crowded = {
    .setup = is_open, .threads = {moves_once, sets_one, sets_one, passes_twice}, .final = none_early};

TEST(moved_on)
{
    model_check_both(moved, "moved on", 0, 0);
    model_check_both(opened, "opened and moved on", 0, 0);
}
TEST(closed_at_once)
{
    model_check_both(closed, "moved on and closed", 0, 0);
    model_check_both(reopened, "closed and opened again", 0, 0);
}
TEST(two_set_timers)
{
    model_check_both(crowded, "two set timers", 0, 0);
}

/* --- mutations --------------------------------------------------------------------------------- */

TEST(mutation_exchange_is_a_store)
{
    model_catch(&moved, "the clock is read while the old end can be seen", "change", MODEL_OP_XCHG,
                MODEL_NOT_A_FENCE);
}
TEST(mutation_fence)
{
    struct model m = moved;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the look at the clock", "change", MODEL_OP_FENCE, MODEL_SKIPPED);
}
/* Not one operation of the real code: clock_in does it. */
static void catch_stale(struct model m, const char *name, void (*setup)(void))
{
    m.setup = setup;
    CHECK_MSG(timed(&m, name, false).failed, "%s: the mutation was not noticed", name);
}
TEST(mutation_stale_clock)
{
    catch_stale(moved, "the clock is read before the exchange", is_stale_in_change);
    catch_stale(crowded, "who fires does not see that the end has come", is_stale_in_slip);
}
TEST(mutation_not_noted)
{
    model_catch(&moved, "a slip is not noted", "change", MODEL_OP_LOAD, MODEL_SKIPPED);
    model_catch(&closed, "the slip of one that is closed is not noted", "change", MODEL_OP_LOAD,
                MODEL_SKIPPED);
}
TEST(mutation_not_moved)
{
    model_catch(&closed, "an end that is noted stays", "change", MODEL_OP_XCHG, MODEL_SKIPPED);
}
TEST(mutation_lock)
{
    model_catch(&crowded, "two move it at once", "gort__lock_take", MODEL_OP_CAS, MODEL_TORN);
}
