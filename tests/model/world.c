/* SPDX-License-Identifier: MIT */
/*
 * world.c - the world is stopped (sched/life/world.c, p.c; see ps.h) while a goroutine computes, calls, blocks,
 * waits in the handler, loses its P, or is just granted one.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sched/life/world.c src/sched/threads/p.c
 *
 * M 0 runs goroutine 0 with P 0, M 1 sleeps or has P 1, goroutine 1 may be queued. A plain thread stops the
 * world with gort_world_stop: from its return to the start nobody makes a step in user code, nor uses a P. Or
 * M 1 lowers the number of Ps, as gort_maxprocs does: nobody but it is inside with a P then; and the
 * goroutine whose P is gone gets another one.
 * Bounded: interleavings with at most 2 preemptions, stores and signals at any time within them; two cases
 * with at most one, unless MODEL_DEEP is set (3 million states each).
 */
#include <stdlib.h>

#include "model/ps.h"

/* --- threads ----------------------------------------------------------------------------------- */

static void computes_and_calls(void)
{
    user();
    call();
    user();
    ends();
}
static void computes_and_ends(void)
{
    user();
    ends();
}
static void announces(void)
{
    gort_block_enter();
    user();
    gort_block_leave();
    ends();
}
/* It waits as a plain thread does, in the middle of a blocking call. */
static void waits_blocking(void)
{
    gort_block_enter();
    struct gort__m *m = gort__enter();
    gort__note_sleep(m);
    gort__leave(m);
    gort_block_leave();
    ends();
}
static void wakes(void)
{
    gort__note_wake(&ms[0]);
}

/* Its stack can be looked at, or there is nothing on it. */
static bool can_be_seen(const struct gort__m *m)
{
    return m->stack.parked_sp || (m->g == &m->g0 && !m->block_g && m->inside);
}
static void stops(void)
{
    int err = gort_world_stop();
    MODEL_ASSERT(err == 0);
    book.stopped = book.stopped_inside = true;
    book.stopper = model_self();
    MODEL_ASSERT(can_be_seen(&ms[0]) && can_be_seen(&ms[1]));
    user();
    MODEL_ASSERT(can_be_seen(&ms[0]) && can_be_seen(&ms[1]));
    book.stopped = book.stopped_inside = false;
    MODEL_ASSERT(gort_world_start() == 0);
    book.done |= 1u << model_self();
}
/* gort_maxprocs(1) */
static void lowers_procs(void)
{
    struct gort__m *m = gort__enter();
    MODEL_ASSERT(gort__world_stop(&m) && m == self_get());
    book.stopped_inside = true;
    book.stopper = model_self();
    MODEL_ASSERT(gort__p_resize(1) == 0);
    user();
    book.stopped_inside = false;
    gort__world_start();
    gort__leave(m);
    ends();
}
static void nobody(void) {}
static void takes(void)
{
    sysmon_looks(false);
}
static void asks(void)
{
    sysmon_looks(true);
}

/* --- setup and oracle -------------------------------------------------------------------------- */

#define STOPPER 2

static void start(bool full, bool with_queue, bool signals)
{
    begin_setup(1, full);
    can_be_made(4);
    is_idle(1);
    runs(0, 0, signals);
    if (with_queue)
        is_queued(1);
    is_plain(STOPPER);
    end_setup(5, true);
}
static void alone(void)
{
    start(false, false, true);
}
static void alone_full(void)
{
    start(true, false, true);
}
/* Only the stopper sends signals. */
static void alone_quiet(void)
{
    start(false, false, false);
}
static void alone_full_quiet(void)
{
    start(true, false, false);
}
static void queued(void)
{
    start(false, true, true);
}
static void queued_quiet(void)
{
    start(false, true, false);
}
/* M 1 has P 0, M 0 has P 1. */
static void two(void)
{
    begin_setup(2, false);
    runs(0, 1, true);
    runs(1, 0, true);
    end_setup(2, true);
}

/* In the ring of the P that goes away is one that an event has woken. */
static void two_with_woken(void)
{
    begin_setup(2, false);
    runs(0, 1, true);
    runs(1, 0, true);
    gs[2].state = GORT_G_RUNNABLE;
    gort__local_put_woken(&ps[1], &gs[2]);
    end_setup(3, true);
}

static void all_ended(void)
{
    ps_in_order();
    MODEL_ASSERT(book.done == (1 | 1u << STOPPER));
}
static void both_ended(void)
{
    ps_in_order();
    MODEL_ASSERT(book.done == 3);
}
static void woken_ran(void)
{
    both_ended();
    MODEL_ASSERT(book.ran == 1u << 2);
}

#define CASE(prepares, script, sysmon)                                                                       \
    {                                                                                                        \
        .setup = prepares, .threads = {script, sleeps_idle, stops, sysmon}, .final = all_ended,              \
        .handler = on_model_signal                                                                           \
    }
static const struct model calling = CASE(alone, computes_and_calls, nobody);
static const struct model calling_full = CASE(alone_full, computes_and_calls, nobody);
static const struct model blocking = CASE(alone, announces, nobody);
static const struct model woken = CASE(alone_quiet, waits_blocking, wakes);
static const struct model woken_full = CASE(alone_full_quiet, waits_blocking, wakes);
static const struct model taken = CASE(queued_quiet, computes_and_ends, takes);
static const struct model taken_blocking = CASE(queued_quiet, announces, takes);
static const struct model preempted = CASE(queued, computes_and_ends, asks);
static const struct model fewer = {.setup = two,
                                   .threads = {computes_and_calls, lowers_procs},
                                   .final = both_ended,
                                   .handler = on_model_signal};

/* A third M may be needed: without it (made) those executions are cut. */
static void check_made(struct model m, const char *name, int tso)
{
    model_check_both(m, name, getenv("MODEL_DEEP") ? 2 : tso, 1);
    m.threads[4] = made;
    model_check_both(m, name, 1, 1);
}

TEST(stop_calling)
{
    model_check_both(calling, "one that calls", 2, 1);
}
TEST(stop_no_membarrier)
{
    model_check_both(calling_full, "one that calls, no membarrier", 2, 1);
}
TEST(stop_blocking)
{
    model_check_both(blocking, "one in an announced call", 2, 1);
}
TEST(stop_waking)
{
    model_check_both(woken, "one that is woken in an announced call", 2, 1);
    model_check_both(woken_full, "one that is woken in an announced call, no membarrier", 2, 1);
}
TEST(stop_taken)
{
    check_made(taken, "one whose P is taken", 2);
}
TEST(stop_taken_blocking)
{
    check_made(taken_blocking, "one whose P is taken in an announced call", 1);
}
TEST(stop_preempted)
{
    check_made(preempted, "one that is asked to stop", 1);
}
TEST(fewer_procs)
{
    model_check_both(fewer, "fewer procs", 2, 2);
    struct model m = fewer;
    m.setup = two_with_woken;
    m.final = woken_ran;
    model_check_both(m, "fewer procs, and a woken one", 2, 1);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_barrier)
{
    mutant(fewer, "no membarrier", MODEL_TSO, 3,
           (struct model_mutation){.func = "membarrier", .op = MODEL_OP_BARRIER, .kind = MODEL_SKIPPED});
}
TEST(mutation_mark)
{
    mutant(fewer, "nobody is told", MODEL_TSO, 2,
           (struct model_mutation){.func = "gort__world_stop_now", .op = MODEL_OP_OR, .kind = MODEL_SKIPPED});
}
TEST(mutation_look)
{
    mutant(fewer, "no look at inside", MODEL_TSO, 2,
           (struct model_mutation){
               .func = "all_stopped", .op = MODEL_OP_LOAD, .kind = MODEL_SKIPPED, .word = "&m->inside"});
}
TEST(mutation_evict)
{
    mutant(fewer, "its P is gone, and it is not told", MODEL_TSO, 2,
           (struct model_mutation){.func = "evict", .op = MODEL_OP_OR, .kind = MODEL_SKIPPED});
}
TEST(mutation_event)
{
    mutant(fewer, "the stopper is not told", MODEL_TSO, 3,
           (struct model_mutation){.func = "gort__world_event", .op = MODEL_OP_ADD, .kind = MODEL_SKIPPED});
}
TEST(mutation_users)
{
    mutant(calling, "user code is not waited for", MODEL_TSO, 2,
           (struct model_mutation){.func = "user_stopped_locked",
                                   .op = MODEL_OP_LOAD,
                                   .kind = MODEL_SKIPPED,
                                   .word = "&m->life.started"});
}
TEST(mutation_still)
{
    mutant(woken, "who is woken goes on", MODEL_TSO, 2,
           (struct model_mutation){.func = "gort__world_retract_sp",
                                   .op = MODEL_OP_LOAD,
                                   .kind = MODEL_SKIPPED,
                                   .word = "&s->world.stay_asleep"});
}
TEST(mutation_rise)
{
    mutant(woken_full, "no fence before the look whether it may go on", MODEL_TSO, 2,
           (struct model_mutation){
               .func = "gort__world_retract_sp", .op = MODEL_OP_FENCE, .kind = MODEL_SKIPPED});
}
