/* SPDX-License-Identifier: MIT */
/*
 * handoff.c - one P that two or three Ms want (sched/threads/handoff.c and what goes with it; see ps.h): entry and
 * exit, announced and unannounced blocking calls, the signal handler, sysmon, grants.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sched/threads/handoff.c src/sched/life/entry.c src/sched/verbs.h src/sched/threads/block.c src/sched/monitor/preempt.c
 * Covers: src/sched/core/preempted.c src/sched/core/stall.c src/sched/core/m.h src/sched/core/p.h
 * Covers: src/sched/core/enter.h
 * Covers: src/sched/monitor/sysmon.c
 *
 * M 0 runs goroutine 0 with the P; M 1 sleeps, M 2 is made on demand; goroutine 1 is queued, and runs on
 * whichever M gets the P; sysmon looks once or twice. In the end both goroutines have run to their end. Or
 * goroutine 1 was woken by an event: then goroutine 0 is preempted for it, if there is an M that could run
 * it, and gets the P back before others. Meanwhile whoever is inside with a P has it for itself (use_p), and
 * nobody comes back from a call or from the handler without one.
 * Bounded: interleavings with at most 3 preemptions (2 with signals), stores and signals at any time within
 * them.
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
/* Once it has waited in the handler it is out of it by a jump, in the middle of what the handler does
 * there. */
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

/* It computes until goroutine 1 has run: somebody must make it go first. */
static void computes_until_1(void)
{
    model_await(&book.ran, 1u << 1);
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

static void makes_room(void)
{
    sysmon_makes_room();
}
static void makes_room_twice(void)
{
    sysmon_makes_room();
    book.now += GORT_ASK_AGAIN;
    sysmon_makes_room();
}
static void makes_room_for_two(void)
{
    sysmon_makes_room();
}
/* As makes_room would, if it were about what is to run next there. */
static void asks_for_next(void)
{
    ask_to_stop(&ps[0], &ms[0], ++book.now, GORT_WHY_NEXT, false);
}
/* A mutation: nobody owes the P to the one that was preempted. */
static void makes_room_and_forgets(void)
{
    sysmon_makes_room();
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__p_mode_off(&ps[0], GORT_MODE_OWES);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}
static void runs_another(void)
{
    ends();
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
/* Goroutine 0 was woken by an event itself. */
static void was_woken(void)
{
    start(false, true);
    gort__p_mode_on(&ps[0], GORT_MODE_WOKEN);
}
/* The last announced calls were long. */
static void long_calls(void)
{
    start(false, false);
    ps[0].long_blocks = GORT_LONG_BLOCKS;
}

/* Goroutine 1 was woken while goroutine 0 computes. */
static void woken(void)
{
    begin_setup(1, false);
    can_be_made(2);
    is_idle(1);
    runs(0, 0, true);
    is_woken(1);
    end_setup(3, false);
}
/* There is also one that waits its turn, after goroutine 0: that has some of its slice left. */
static void woken_and_queued(void)
{
    woken();
    is_queued(2);
    book.patient = 1u << 2;
    ps[0].watch.since = -1;
}
/* Goroutine 0 has readied goroutine 1, and computes. */
static void has_next(void)
{
    begin_setup(1, false);
    can_be_made(2);
    is_idle(1);
    runs(0, 0, true);
    gs[1].state = GORT_G_RUNNABLE;
    ps[0].runq.next = &gs[1];
    ps[0].watch.since = -1;
    is_queued(2);
    book.patient = 1u << 2;
    end_setup(3, false);
}
/* There is no other thread, and none can be made: nobody could use the P, so nobody is preempted. */
static void woken_without_thread(void)
{
    begin_setup(1, false);
    runs(0, 0, true);
    is_woken(1);
    gort__sched.limit.tight = gort__sched.said.hogs = true;
    book.last = 1u << 1;
    end_setup(2, false);
}
/* There is no other thread yet. */
static void woken_with_spare(void)
{
    begin_setup(1, false);
    can_be_made(1);
    runs(0, 0, true);
    is_woken(1);
    end_setup(2, false);
}
/* Two Ps, whose goroutines compute, and two were woken. */
static void two_woken(void)
{
    begin_setup(2, false);
    is_idle(3);
    is_idle(2);
    runs(1, 1, true);
    runs(0, 0, true);
    is_woken(2);
    is_woken(3);
    end_setup(4, false);
}
/* The one with P 1 is about to end: whoever was woken may run there instead. */
static void one_woken(void)
{
    begin_setup(2, false);
    is_idle(2);
    runs(1, 1, true);
    runs(0, 0, true);
    is_woken(2);
    end_setup(3, false);
}

static void both_ran(void)
{
    ps_in_order();
    MODEL_ASSERT(book.done == 1 && book.ran == 2);
}

static void three_ran(void)
{
    ps_in_order();
    MODEL_ASSERT(book.done == 1 && book.ran == 6);
}
static void four_ran(void)
{
    ps_in_order();
    MODEL_ASSERT(book.done == 3 && book.ran == 12);
}
static void two_and_one_ran(void)
{
    ps_in_order();
    MODEL_ASSERT(book.done == 3 && book.ran == 4);
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
static const struct model for_woken = CASE(woken, computes_until_1, makes_room);
static const struct model for_next = CASE(has_next, computes, asks_for_next);
static const struct model for_spare = {.setup = woken_with_spare,
                                       .threads = {computes, made, makes_room_twice},
                                       .final = both_ran,
                                       .handler = on_model_signal};
static const struct model for_nobody = {.setup = woken_without_thread,
                                        .threads = {computes, makes_room},
                                        .final = both_ran,
                                        .handler = on_model_signal};
static const struct model for_two = {
    .setup = two_woken,
    .threads = {computes, computes, sleeps_idle, sleeps_idle, makes_room_for_two},
    .final = four_ran,
    .handler = on_model_signal};
static const struct model for_one_of_two = {.setup = one_woken,
                                            .threads = {computes, runs_another, sleeps_idle, makes_room},
                                            .final = two_and_one_ran,
                                            .handler = on_model_signal};
static const struct model left_by_jump = CASE(signals, computes_and_jumps, asks);

TEST(unannounced_call)
{
    model_check_both(unannounced, "an unannounced call", 3, 2);
}
TEST(unannounced_call_twice)
{
    struct model m = unannounced;
    m.threads[3] = takes_twice;
    model_check_both(m, "an unannounced call, two looks", 2, 2);
}
TEST(no_membarrier)
{
    model_check_both(unannounced_full, "an unannounced call, no membarrier", 3, 2);
}
TEST(announced_call)
{
    model_check_both(announced, "an announced call", 3, 2);
}
TEST(announced_call_surfaces)
{
    model_check_both(surfaced, "a call in an announced call", 3, 2);
}
TEST(announced_call_hands_off)
{
    model_check_both(handed_off, "an announced call gives the P up", 3, 2);
}
TEST(preempted_by_signal)
{
    model_check_both(preempted, "preempted", 2, 2);
    struct model m = preempted;
    m.setup = was_woken;
    model_check_both(m, "a woken one is preempted", 2, 1);
}
TEST(preempted_and_taken)
{
    model_check_both(preempted_taken, "asked to stop, then asleep", 2, 1);
}
TEST(preempted_for_woken)
{
    model_check_both(for_woken, "preempted for a woken one that it waits for", 2, 2);
    struct model m = for_woken;
    m.setup = woken_and_queued;
    m.threads[0] = computes;
    m.final = three_ran;
    model_check_both(m, "preempted for a woken one, and goes on before others", 2, 1);
}
TEST(preempted_for_next)
{
    struct model m = for_next;
    m.final = three_ran;
    model_check_both(m, "preempted for the next one", 2, 1);
}
TEST(preempted_for_nobody)
{
    model_check_both(for_nobody, "nobody could run woken ones", 0, 0);
    model_check_both(for_spare, "a thread for woken ones has to be made", 2, 2);
}
TEST(preempted_by_two)
{
    model_check_both(for_two, "two Ps owe", 1, 1);
}
TEST(reason_is_gone)
{
    model_check_both(for_one_of_two, "asked to stop for one that runs elsewhere", 2, 1);
}
TEST(handler_left)
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
           (struct model_mutation){.func = "gort__handoff_retake", .op = MODEL_OP_OR, .kind = MODEL_SKIPPED});
}
TEST(mutation_look)
{
    mutant(unannounced, "no look at inside", MODEL_TSO, 2,
           (struct model_mutation){.func = "gort__handoff_retake",
                                   .op = MODEL_OP_LOAD,
                                   .kind = MODEL_SKIPPED,
                                   .word = "&m->inside"});
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
           (struct model_mutation){.func = "gort__note_sleep_until", .op = MODEL_OP_CAS, .kind = MODEL_TORN});
}
TEST(mutation_sleep_blindly)
{
    mutant(
        unannounced, "falling asleep without a look", MODEL_TSO, 3,
        (struct model_mutation){.func = "gort__note_sleep_until", .op = MODEL_OP_CAS, .kind = MODEL_SKIPPED});
}
TEST(mutation_wake)
{
    mutant(unannounced, "a torn wake", MODEL_TSO, 3,
           (struct model_mutation){.func = "gort__note_wake", .op = MODEL_OP_XCHG, .kind = MODEL_TORN});
}
TEST(mutation_handler_inside)
{
    mutant(preempted, "the handler does not look at inside", MODEL_TSO, 2,
           (struct model_mutation){
               .func = "handle", .op = MODEL_OP_LOAD, .kind = MODEL_SKIPPED, .word = "&m->inside"});
}
TEST(mutation_ask_for_woken)
{
    mutant(for_woken, "it is not asked to stop", MODEL_TSO, 2,
           (struct model_mutation){.func = "ask_to_stop", .op = MODEL_OP_OR, .kind = MODEL_SKIPPED});
}
TEST(mutation_woken_wake)
{
    mutant(for_woken, "a torn wake of the one that gets the P", MODEL_TSO, 3,
           (struct model_mutation){.func = "gort__note_wake", .op = MODEL_OP_XCHG, .kind = MODEL_TORN});
}
TEST(mutation_woken_grant)
{
    mutant(for_two, "a P that is granted without a word", MODEL_TSO, 1,
           (struct model_mutation){.func = "gort__handoff_grant_locked",
                                   .op = MODEL_OP_STORE,
                                   .kind = MODEL_SKIPPED,
                                   .word = "&p->m"});
}
/* Not one operation of the real code: P 0 forgets what it owes. */
TEST(mutation_owes)
{
    struct model m = for_woken;
    m.setup = woken_and_queued;
    m.threads[0] = computes;
    m.threads[3] = makes_room_and_forgets;
    m.final = three_ran;
    m.preemptions = 2;
    CHECK_MSG(timed(&m, "it does not go on before others", false).failed, "the mutation was not noticed");
}
TEST(mutation_grant_after_jump)
{
    struct model m = left_by_jump;
    m.timeouts = 1;
    mutant(
        m, "a wake that a jump left behind is forgotten", MODEL_TSO, 2,
        (struct model_mutation){.func = "gort__note_sleep_again", .op = MODEL_OP_CAS, .kind = MODEL_SKIPPED});
}
