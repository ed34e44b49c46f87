/* SPDX-License-Identifier: MIT */
/*
 * lease.c - what time it is, for time-outs of half a minute and more: without asking.
 *
 * Why: rough.c reads the processor's counter, which takes 10 ns and waits until all that was asked of memory before is there. A server
 * that moves the time-outs of many connections waits for memory most of the time, and could do so for several of them at once: that
 * costs 30 to 60 ns a reset. So here the time is taken to be `end`, a time that has not come yet: one load. What is set by it is late by
 * LEASE and two UNITs at most, and by one and a millisecond more if it is moved (time/move.h): a thousandth or two.
 *
 * Somebody must move the end on before it has come. Sysmon does, at each look, and while it rests there is no lease (rest.c).
 * But it may get no CPU, or the whole process may be stopped, and time-outs set by an end that has passed would be early: the lease has
 * slipped. That cannot be seen by those who set them, but when it is moved, or closed: so it is noted then by how much, and
 * whoever fires such a timer asks (gort__lease_slip), and if it has slipped waits for so long in addition. A time-out
 * counts from the end of a stop of the process then, if it was set just before it.
 *
 * Proof that none is early. A reset loads the end E at a time x. If E was moved at a time a (read from the clock after the store), then
 * x <= a, or the load would have seen the new one, give or take what processors do out of order: MARGIN is a thousand times that. So
 * E >= x, or E + slip >= a + MARGIN >= x. Who fires it finds E moved and noted, or E is still the end, and it moves and notes it itself.
 *
 * Ends are some 4 ms apart, and numbered: the number is what they have in their lowest 22 bits, and so does a time that lies whole units
 * after one. It comes again after 4.9 hours, but no timer is set by a lease for longer than half of that, and a slip does not count any more
 * when it makes no timer due in the future. (A process that was stopped for hours may be late with timers that are set within the same 4 ms
 * hours later.) When there are too many slips, the smallest neighbours become one, which makes some timers between them late, and none early.
 * tests/model/lease.c explores moving, closing, setting and firing.
 * Threads: any.
 */
#include "sched/verbs.h"

#define UNIT   (INT64_C(1) << GORT_LEASE_LOG2) /* ns */
#define MARGIN INT64_C(1000000)                /* ns */
#define LEASE  INT64_C(30000000)               /* ns; sysmon looks every 10 ms at least */
#define ENOUGH INT64_C(20000000)               /* ns left: need not be moved */
#define SLIPS  64

struct gort__lease gort__lease = {.least = INT64_C(30000000000)};

/* Timers set by leases with ends from `from` to `to` have to wait for so long in addition. */
struct slip {
    int64_t from, to, by;
};

static struct gort__lock far_lock; /* rank GORT_RANK_LEASE; guards the rest, and writing gort__lease.end */
static struct slip slips[SLIPS];   /* by age; they do not overlap */
static int slips_n;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void remove_slip(int at)
{
    slips_n--;
    for (int i = at; i < slips_n; i++)
        slips[i] = slips[i + 1];
}

static void join_neighbours(void)
{
    int best = 0;
    for (int i = 1; i + 1 < slips_n; i++)
        if (larger(slips[i].by, slips[i + 1].by) < larger(slips[best].by, slips[best + 1].by))
            best = i;
    slips[best].to = slips[best + 1].to;
    slips[best].by = larger(slips[best].by, slips[best + 1].by);
    remove_slip(best + 1);
}

/* None of the timers set by these leases is due in the future any more. */
static bool slip_is_over(const struct slip *s, int64_t now)
{
    return now - s->to > GORT_LEASE_MOST + gort__load(&gort__lease.least, RELAXED) + s->by;
}

static void note(int64_t end, int64_t by, int64_t now)
{
    while (slips_n && slip_is_over(&slips[0], now))
        remove_slip(0);
    if (slips_n == SLIPS)
        join_neighbours();
    slips[slips_n++] = (struct slip){end, end, by};
}

/* The end is another one from now on; 0: there is none. Called with the lock held. */
static void change(int64_t end)
{
    int64_t old = gort__lease.end;
    gort__xchg(&gort__lease.end, end,
               SEQ_CST); /* whoever loads the old one has done so before the clock is read: */
    gort__arch_fence_after_rmw();
    if (!old)
        return;
    int64_t now = gort__os_now();
    if (old < now + MARGIN)
        note(old, now + MARGIN - old, now);
}

/* The first end of a lease that is not before a time. */
static int64_t end_after(int64_t time)
{
    int64_t unit = (time + UNIT - 1) >> GORT_LEASE_LOG2;
    if (!gort__lease_of(unit)) /* the number of none */
        unit++;
    return unit << GORT_LEASE_LOG2 | gort__lease_of(unit);
}

/* Called with the lock held. */
static void extend(int64_t now, int64_t enough)
{
    if (gort__lease.end - now < enough)
        change(end_after(now + LEASE));
}

void gort__lease_extend(void)
{
    gort__lock_take(&far_lock, GORT_RANK_LEASE);
    extend(gort__os_now(), ENOUGH); /* sysmon's own time may be old when it has seen to many timers */
    gort__lock_drop(&far_lock, GORT_RANK_LEASE);
}

void gort__lease_close(void)
{
    gort__lock_take(&far_lock, GORT_RANK_LEASE);
    if (gort__lease.end)
        change(0);
    gort__lock_drop(&far_lock, GORT_RANK_LEASE);
}

/* One of the leases that have slipped has that number. */
static bool has_number(const struct slip *s, uint32_t lease)
{
    uint32_t before_last = gort__lease_of(gort__lease_of(s->to) - (int64_t)lease);
    return before_last <= (uint64_t)((s->to >> GORT_LEASE_LOG2) - (s->from >> GORT_LEASE_LOG2));
}

int64_t gort__lease_slip(uint32_t lease)
{
    int64_t by = 0, now = gort__os_now();
    gort__lock_take(&far_lock, GORT_RANK_LEASE);
    if (gort__lease.end)
        extend(now, MARGIN);
    for (int i = 0; i < slips_n; i++)
        if (has_number(&slips[i], lease) && !slip_is_over(&slips[i], now))
            by = larger(by, slips[i].by);
    gort__lock_drop(&far_lock, GORT_RANK_LEASE);
    return by;
}

void gort__lease_init(void)
{
    gort__store(&gort__lease.end, 0, RELAXED);
    gort__store(&gort__lease.run_tag, (gort__lease.run_tag + 2) | 1, RELAXED);
    slips_n = 0;
}
