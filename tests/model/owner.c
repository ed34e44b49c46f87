/* SPDX-License-Identifier: MIT */
/*
 * owner.c - one P that two or three Ms want (sched/owner.c and what goes with it; see ps.h): entry and exit, announced and
 * unannounced blocking calls, the signal handler, sysmon, grants.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 *
 * M 0 runs goroutine 0 with the P; M 1 sleeps, M 2 is made on demand; goroutine 1 is queued, and runs on whichever M gets the
 * P; sysmon looks once or twice. In the end both goroutines have run to their end. Meanwhile whoever is inside
 * with a P has it for itself (use_p), and nobody comes back from a call or from the handler without one.
 * Bounded: interleavings with at most 3 preemptions (2 with signals), stores and signals at any time within them.
 */
#include "model/ps.h"

/* --- goroutine 0 ------------------------------------------------------------------------------- */

static void sleeps_and_calls(void)
{
    user();
    call();
    ends();
}
static void announces(void)
{
    gort_block_enter();
    user();
    gort_block_leave();
    ends();
}
/* It calls gort in the middle: then it counts as a plain thread, without a P. */
static void announces_and_calls(void)
{
    gort_block_enter();
    struct gort__m *m = gort__enter();
    MODEL_ASSERT(m == &ms[0] && m->g == &m->g0 && !m->p);
    gort__leave(m);
    gort_block_leave();
    ends();
}
static void computes(void)
{
    user();
    ends();
}
/* Once it has waited in the handler it is out of it by a jump, in the middle of what the handler does there. */
static void computes_and_jumps(void)
{
    if (_setjmp(jumps[0]) == 0) {
        book.catches[0] = true;
        user();
    }
    book.catches[0] = false;
    user();
    ends();
}

/* --- sysmon ------------------------------------------------------------------------------------ */

static void takes(void)
{
    sysmon_looks(false);
}
static void takes_twice(void)
{
    sysmon_looks(false);
    sysmon_looks(false);
}
static void asks(void)
{
    sysmon_looks(true);
}
static void asks_and_takes(void)
{
    sysmon_looks(true);
    sysmon_looks(false);
}

/* --- setup and oracle -------------------------------------------------------------------------- */

static void start(bool full, bool signals)
{
    begin_setup(1, full);
    can_be_made(2);
    is_idle(1);
    runs(0, 0, signals);
    is_queued(1);
    end_setup(3, false);
}
static void light(void)
{
    start(false, false);
}
static void full(void)
{
    start(true, false);
}
static void signals(void)
{
    start(false, true);
}
/* The last announced calls were long. */
static void long_calls(void)
{
    start(false, false);
    ps[0].long_blocks = GORT_LONG_BLOCKS;
}

static void both_ran(void)
{
    ps_in_order();
    MODEL_ASSERT(book.done == 1 && book.ran == 2);
}

#define CASE(prepares, script, sysmon)                                                                       \
    {                                                                                                        \
        .setup = prepares, .threads = {script, sleeps_idle, made, sysmon}, .final = both_ran,                \
        .handler = on_model_signal                                                                           \
    }
static const struct model unannounced = CASE(light, sleeps_and_calls, takes);
static const struct model unannounced_full = CASE(full, sleeps_and_calls, takes);
static const struct model announced = CASE(light, announces, takes);
static const struct model surfaced = CASE(light, announces_and_calls, takes);
static const struct model handed_off = CASE(long_calls, announces, takes);
static const struct model preempted = CASE(signals, computes, asks);
static const struct model preempted_taken = CASE(signals, computes, asks_and_takes);
static const struct model left_by_jump = CASE(signals, computes_and_jumps, asks);

TEST(unannounced_call, .timeout = 180)
{
    model_check_both(unannounced, "an unannounced call", 3, 2);
}
TEST(unannounced_call_twice, .timeout = 180)
{
    struct model m = unannounced;
    m.threads[3] = takes_twice;
    model_check_both(m, "an unannounced call, two looks", 2, 2);
}
TEST(no_membarrier, .timeout = 180)
{
    model_check_both(unannounced_full, "an unannounced call, no membarrier", 3, 2);
}
TEST(announced_call, .timeout = 180)
{
    model_check_both(announced, "an announced call", 3, 2);
}
TEST(announced_call_surfaces, .timeout = 180)
{
    model_check_both(surfaced, "a call in an announced call", 3, 2);
}
TEST(announced_call_hands_off, .timeout = 180)
{
    model_check_both(handed_off, "an announced call gives the P up", 3, 2);
}
TEST(preempted_by_signal, .timeout = 180)
{
    model_check_both(preempted, "preempted", 2, 2);
}
TEST(preempted_and_taken, .timeout = 180)
{
    model_check_both(preempted_taken, "asked to stop, then asleep", 2, 1);
}
TEST(handler_left, .timeout = 180)
{
    struct model m = left_by_jump;
    m.timeouts = 1;
    model_check_both(m, "preempted, and leaves the handler by a jump", 2, 2);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_barrier)
{
    mutant(unannounced, "no membarrier", MODEL_TSO, 3,
           (struct model_mutation){.func = "membarrier", .op = MODEL_OP_BARRIER, .kind = MODEL_SKIPPED});
}
TEST(mutation_light_fence)
{
    mutant(
        unannounced_full, "no fence in an entry", MODEL_TSO, 3,
        (struct model_mutation){.func = "gort__os_fence_light", .op = MODEL_OP_FENCE, .kind = MODEL_SKIPPED});
}
TEST(mutation_heavy_fence)
{
    mutant(
        unannounced_full, "no fence between mark and look", MODEL_WEAK, 3,
        (struct model_mutation){.func = "gort__os_fence_heavy", .op = MODEL_OP_FENCE, .kind = MODEL_SKIPPED});
}
TEST(mutation_mark)
{
    mutant(unannounced, "no mark", MODEL_TSO, 2,
           (struct model_mutation){.func = "gort__p_take_away", .op = MODEL_OP_OR, .kind = MODEL_SKIPPED});
}
TEST(mutation_look)
{
    mutant(
        unannounced, "no look at inside", MODEL_TSO, 2,
        (struct model_mutation){
            .func = "gort__p_take_away", .op = MODEL_OP_LOAD, .kind = MODEL_SKIPPED, .word = "&m->inside"});
}
TEST(mutation_leave)
{
    mutant(
        unannounced_full, "an exit without order", MODEL_WEAK, 2,
        (struct model_mutation){.func = "gort__leave_looks", .op = MODEL_OP_STORE, .kind = MODEL_UNORDERED});
}
TEST(mutation_sleep)
{
    mutant(unannounced, "a torn cas in falling asleep", MODEL_TSO, 3,
           (struct model_mutation){.func = "gort__m_sleep_until", .op = MODEL_OP_CAS, .kind = MODEL_TORN});
}
TEST(mutation_sleep_blindly)
{
    mutant(unannounced, "falling asleep without a look", MODEL_TSO, 3,
           (struct model_mutation){.func = "gort__m_sleep_until", .op = MODEL_OP_CAS, .kind = MODEL_SKIPPED});
}
TEST(mutation_wake)
{
    mutant(unannounced, "a torn wake", MODEL_TSO, 3,
           (struct model_mutation){.func = "gort__m_wake", .op = MODEL_OP_XCHG, .kind = MODEL_TORN});
}
TEST(mutation_handler_inside)
{
    mutant(preempted, "the handler does not look at inside", MODEL_TSO, 2,
           (struct model_mutation){
               .func = "handle", .op = MODEL_OP_LOAD, .kind = MODEL_SKIPPED, .word = "&m->inside"});
}
TEST(mutation_grant_after_jump)
{
    struct model m = left_by_jump;
    m.timeouts = 1;
    mutant(m, "a wake that a jump left behind is forgotten", MODEL_TSO, 2,
           (struct model_mutation){.func = "gort__m_sleep_again", .op = MODEL_OP_CAS, .kind = MODEL_SKIPPED});
}
