/* SPDX-License-Identifier: MIT */
/*
 * events.c - goroutines that events have woken, in the real turn.c, queue.c and what goes with them (see
 * ms.h): they are in rings of their own and in sched.woken; they are stolen, shared out, handed on with a P,
 * emptied out of one, go first, and let others go first. None is lost or runs twice, and no wake-up is lost.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sched/core/turn.c src/sched/core/queue.c src/sched/threads/find.c src/sched/core/park.c src/sched/threads/idle.c
 */
#include "model/ms.h"

/* --- the threads ------------------------------------------------------------------------------ */

static void m0(void)
{
    loop(&ms[0]);
}

static void plain_readies_two(void)
{
    publish(0);
    publish(1);
}

static struct gort__glist woken_list(int n)
{
    struct gort__glist list = {0};
    for (int i = 0; i < n; i++) {
        book.published |= 1u << i;
        gs[i].state = GORT_G_WAITING;
        gort__runq_list_add(&list, &gs[i]);
    }
    return list;
}
/* An M with a P wakes them, and then computes for ever. */
static void wakes_three(void)
{
    gort__ready_events(&ms[0], woken_list(3));
    book.computing++;
}
/* Its slice is over when it has readied one and woken another: the former must wait for the latter, which
 * never ends. */
static void slice_ends(void)
{
    publish(1);
    gort__ready_events(&ms[0], woken_list(1));
    gort__p_mode_on(&ps[0], GORT_MODE_OVER);
    loop(&ms[0]);
}

/* --- setup and oracle ------------------------------------------------------------------------- */

static void two_plain_for_ever(void)
{
    start(2, false, 2);
    book.for_ever[0] = true;
}

static void two_woken(void)
{
    start_with(2, true, 1, WOKEN);
}

static void three_woken(void)
{
    start_with(3, true, 1, WOKEN);
    book.for_ever[2] = true; /* a thief gets it first */
}

static void put_runnable(int i)
{
    book.published |= 1u << i;
    gs[i].state = GORT_G_RUNNABLE;
}
/* Two of them are in sched.woken: whoever takes them has one in its hands for a moment. */
static void two_share(void)
{
    start_with(2, true, 1, WOKEN);
    for (int i = 0; i < 2; i++) {
        put_runnable(i);
        gort__queue_put_woken_locked(&gs[i]);
    }
    book.for_ever[0] = true;
}

static void two_over(void)
{
    start_with(2, true, 1, RINGS | WOKEN);
    book.for_ever[0] = true;
}
/* P 0 has woken ones, and its M is about to give it up. */
static void two_with_events(void)
{
    start_with(2, true, 1, WOKEN);
    for (int i = 0; i < 3; i++) {
        put_runnable(i);
        gort__local_put_woken(&ps[0], &gs[i]);
    }
}
/* The same, and there are no more threads. */
static void two_without_threads(void)
{
    two_with_events();
    gort__sched.limit.tight = gort__sched.said.limit = true;
}
/* Woken ones have had P 0 for long: they wait for one in the global queue, which the other M may take. */
static void two_by_turns(void)
{
    start_with(2, true, 1, RINGS | WOKEN);
    book.ticks = 2 * WOKEN_MOST;
    put_runnable(0);
    gort__local_put_woken(&ps[0], &gs[0]);
    gort__p_mode_on(&ps[0], GORT_MODE_WOKEN);
    put_runnable(1);
    gort__queue_put_locked(&gs[1]);
}

/* --- cases ------------------------------------------------------------------------------------ */

static const struct model plain = {
    .setup = two_plain, .threads = {plain_readies_two, m1, made0, made1}, .final = all_done, .eager = true};

static const struct model events = {
    .setup = two_woken, .threads = {wakes_three, m1, made0}, .final = all_done, .eager = true};

static const struct model events_stolen = {
    .setup = three_woken, .threads = {wakes_three, m1, m2, made0}, .final = all_done, .eager = true};

static const struct model share = {
    .setup = two_share, .threads = {m0, m1, made0}, .final = all_done, .eager = true};

static const struct model over = {
    .setup = two_over, .threads = {slice_ends, m1, made0}, .final = all_done, .eager = true};

static const struct model emptied = {
    .setup = two_without_threads, .threads = {hands_off_own, m1}, .final = all_done, .eager = true};

static const struct model handed_on = {
    .setup = two_with_events, .threads = {hands_off_own, m1, made0}, .final = all_done, .eager = true};

static const struct model by_turns = {
    .setup = two_by_turns, .threads = {m0, m1, made0}, .final = all_done, .eager = true};
TEST(plain_thread)
{
    model_check_both(plain, "two from a plain thread", 3, 2);
}
TEST(plain_thread_busy)
{
    struct model m = plain;
    m.setup = two_plain_for_ever;
    model_check_both(m, "two from a plain thread, one computes for ever", 3, 3);
}

/* Events put goroutines into a ring of their own: they are stolen from there. */
TEST(events_from_inside)
{
    model_check_both(events, "three are woken from inside", 4, 3);
    model_check_both(events_stolen, "three are woken from inside, two thieves", 2, 2);
}
TEST(events_share)
{
    model_check_both(share, "a share of the woken ones", 0, 3);
}
TEST(slice_is_over)
{
    model_check_both(over, "what was to run next is put back", 3, 2);
}
TEST(events_handed_on)
{
    model_check_both(handed_on, "a P with woken ones is handed off", 4, 3);
    model_check_both(emptied, "a P with woken ones is emptied", 0, 0);
}
TEST(events_by_turns)
{
    model_check_both(by_turns, "woken ones let others go first", 4, 3);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_events)
{
    model_catch(&events, "no fence after waking", "gort__ready_events", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_events_look)
{
    model_catch_at(&plain, "no second look at the woken ones",
                   (struct model_mutation){.func = "gort__queue_has_work_but",
                                           .op = MODEL_OP_LOAD,
                                           .kind = MODEL_SKIPPED,
                                           .word = "&s->events.n"});
}
TEST(mutation_events_stolen)
{
    model_catch(&events_stolen, "a torn theft", "gort__runq_steal", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_share)
{
    model_catch(&share, "no fence after taking a share", "gort__queue_take_woken", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_put_back)
{
    struct model m = over;
    m.preemptions = 4;
    model_catch(&m, "no fence after putting it back", "put_back_next", MODEL_OP_FENCE, MODEL_SKIPPED);
}
