/* SPDX-License-Identifier: MIT */
/*
 * idle.c - the real search for work, going to sleep and waking (find, idle, m, proc, queue, runq, park; see
 * ms.h), with two or three Ms: no wake-up is lost, and no goroutine runs twice.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sched/core/sched.h src/sched/threads/find.c src/sched/threads/idle.c src/sched/threads/m.c src/sched/threads/p.c
 * Covers: src/sched/core/note.c src/sched/core/wake.h src/sched/core/ready.c
 * Covers: src/sched/core/queue.c src/sched/core/runq.c src/sched/core/park.c
 */
#include "model/ms.h"

/* --- the threads ------------------------------------------------------------------------------ */

/* M 2 gives up its P: its goroutine makes an announced blocking call that lasts. */
static void hands_off(void)
{
    gort__handoff_give(&ms[2]);
}

/* A goroutine on M 0 readies others and then computes for ever. */
static void readies_one(void)
{
    publish(0);
    book.computing++;
}

static void readies_two(void)
{
    publish(0);
    publish(1);
    book.computing++;
}

static void readies_list(void)
{
    book.published = 3;
    gs[0].link = &gs[1];
    gort__ready_list(&ms[0], (struct gort__glist){&gs[0], &gs[1], 2});
    book.computing++;
}
/* The same goroutine goes on to wait itself: its M looks for work like the others. */
static void readies_two_and_waits(void)
{
    publish(0);
    publish(1);
    loop(&ms[0]);
}

/* --- setup and oracle ------------------------------------------------------------------------- */

static void two(void)
{
    start(2, true, 1);
}

/* Whoever goes on with the first finds that no P is idle. */
static void two_for_ever(void)
{
    start(2, true, 1);
    book.for_ever[0] = book.for_ever[1] = true;
}

static void three_for_ever(void)
{
    start(3, true, 1);
    book.for_ever[0] = true;
}

/* --- cases ------------------------------------------------------------------------------------ */

static const struct model one = {
    .setup = two, .threads = {readies_one, m1, made0}, .final = all_done, .eager = true};

static const struct model both = {
    .setup = two, .threads = {readies_two, m1, made0}, .final = all_done, .eager = true};

static const struct model list = {
    .setup = two, .threads = {readies_list, m1, made0}, .final = all_done, .eager = true};

static const struct model waits = {
    .setup = two, .threads = {readies_two_and_waits, m1, made0}, .final = all_done, .eager = true};

static const struct model all_busy = {
    .setup = two_for_ever, .threads = {readies_two, m1, made0}, .final = all_done, .eager = true};

static const struct model busy = {
    .setup = three_for_ever, .threads = {readies_two, m1, m2, made0}, .final = all_done, .eager = true};

static const struct model gives_up = {.setup = three_for_ever,
                                      .threads = {readies_two, m1, hands_off, made0},
                                      .final = all_done,
                                      .eager = true};

TEST(inside_one)
{
    model_check_both(one, "one from inside", 0, 0);
}
TEST(inside_list)
{
    model_check_both(list, "a list from inside", 0, 0);
}
TEST(inside_two)
{
    model_check_both(both, "two from inside", 4, 3);
}
TEST(inside_waits)
{
    model_check_both(waits, "two from inside, then waits", 3, 2);
}
TEST(all_busy)
{
    model_check_both(all_busy, "two from inside, the first computes for ever", 4, 3);
}
TEST(three_ps)
{
    check(busy, "three Ps, one computes for ever", MODEL_TSO, 3);
}
TEST(three_ps_weak)
{
    check(busy, "three Ps, one computes for ever", MODEL_WEAK, 2);
}
TEST(handoff)
{
    check(gives_up, "three Ps, one is handed off", MODEL_TSO, 3);
}
TEST(handoff_weak)
{
    check(gives_up, "three Ps, one is handed off", MODEL_WEAK, 2);
}
/* A thread that has slept long enough ends, perhaps just when it is handed a P. */
TEST(idle_timeout)
{
    struct model m = one;
    m.timeouts = 1;
    check(m, "one from inside, time-out", MODEL_TSO, 0);
    m.setup = two_plain;
    m.threads[0] = plain_readies_one;
    m.threads[3] = made1;
    check(m, "one from a plain thread, time-out", MODEL_TSO, 3);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_publish)
{
    model_catch(&one, "no fence after publishing", "gort__runq_put_next", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_stop_spinning)
{
    model_catch(&one, "no fence after spinning", "look_again", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_publish_weak)
{
    struct model m = one;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the look at idle Ps", "gort__wake_idle", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_stop_spinning_weak)
{
    struct model m = one;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the second look", "look_again", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_found)
{
    struct model m = busy;
    m.preemptions = 3;
    model_catch(&m, "no fence after finding work", "gort__idle_spin_stop", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_found_weak)
{
    struct model m = busy;
    m.memory = MODEL_WEAK;
    m.preemptions = 3;
    model_catch(&m, "no fence before the look of one that found work", "gort__idle_spin_stop", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_publish_list)
{
    model_catch(&list, "no fence after a list", "gort__ready_list", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_sleep_torn)
{
    model_catch(&one, "torn cas in falling asleep", "gort__note_sleep_until", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_spinning_torn)
{
    model_catch(&one, "torn count of spinning Ms", "look_again", MODEL_OP_RMW, MODEL_TORN);
}
