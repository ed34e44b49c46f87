/* SPDX-License-Identifier: MIT */
/*
 * poller.c - the M that waits for fds and timers, in the real poller.c and what goes with it (see ms.h):
 * nobody sleeps past a timer.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sched/threads/poller.c src/sched/threads/idle.c
 *
 * In the end the poll owner sleeps until the first timer, or no P is left to run what it wakes: then sysmon
 * sees to timers and fds, and nobody takes the poller until a P is released (sysmon_sleep.c explores that
 * sysmon does not sleep past them).
 */
#include "model/ms.h"

/* --- the threads ------------------------------------------------------------------------------ */

/* The end of gort__timer_set, after the lock of the heap. */
static void set_timer(struct gort__m *m)
{
    gort__store(&ps[0].timers.first, EARLY, RELEASE); /* pairs with the second look of poller.c */
    gort__poller_notice(m, EARLY);
}

static void sets_timer(void)
{
    set_timer(&ms[0]);
}
/* The first one is taken back, which tells nobody, and set to a later time. */
static void deletes_and_sets_timer(void)
{
    gort__store(&ps[0].timers.first, INT64_MAX, RELEASE); /* pairs with the second look of poller.c */
    set_timer(&ms[0]);
}
/* A goroutine sets one and then computes for ever, with its P. */
static void sets_timer_and_computes(void)
{
    ms[0].g = &gs[0];
    set_timer(&ms[0]);
    book.computing++;
}
/* A thread without a P that readies one, and one that sets a timer at the same time. */
static void readies_and_sets_timer(void)
{
    publish(0);
    set_timer(&ms[0]);
}

/* The same by M 1, while M 0 gives up the other P. */
static void sets_timer_beside(void)
{
    ms[1].g = &gs[1];
    set_timer(&ms[1]);
    book.computing++;
}
/* Sysmon, which has no P: while all are busy it sees to timers. */
static void sysmon_fires(void)
{
    if (gort__load(&gort__sched.idle_count, RELAXED) == 0)
        gort__timer_run(&ms[2], LATE);
}
/* As poll/fd.c does: a goroutine waits for an fd. Then its M runs another one, which computes for ever. */
static void wait_for_fd(struct gort__m *m)
{
    m->g = &gs[0];
    gort__store(&book.pending, 1, RELAXED);
    gort__poller_notice_fd(m);
    book.computing++;
}

static void waits_for_fd(void)
{
    wait_for_fd(&ms[0]);
}

static void waits_for_fd_beside(void)
{
    wait_for_fd(&ms[1]);
}

static void computes(void)
{
    book.computing++;
}

/* --- setup and oracle ------------------------------------------------------------------------- */

static void start_timers(bool inside, int spare)
{
    start_with(2, inside, spare, WOKEN | TIMERS);
}

static void fds(void)
{
    start_with(2, true, 1, FDS);
}

static void timers_none(void)
{
    start_timers(false, 1);
}

static void timers_inside(void)
{
    start_timers(true, 1);
}

static void timers_one(void)
{
    start_timers(false, 2);
    ps[1].timers.first = LATE;
}

static void timers_two(void)
{
    start_timers(false, 1);
    ps[1].timers.first = LATE;
    ps[0].timers.first = SOON;
}

static void timers_one_for_ever(void)
{
    timers_one();
    book.for_ever[0] = true;
}
/* M 2 has no P, and owns the poller, or will. */
static void timers_spare(void)
{
    start_timers(true, 1);
    ps[1].timers.first = LATE;
}

/* --- cases ------------------------------------------------------------------------------------ */

static const struct model set_none = {
    .setup = timers_none, .threads = {sets_timer, m1, made0}, .final = all_done, .eager = true};

static const struct model set_inside = {.setup = timers_inside,
                                        .threads = {sets_timer_and_computes, m1, made0},
                                        .final = all_done,
                                        .eager = true};

static const struct model set_earlier = {
    .setup = timers_one, .threads = {sets_timer, m1, made0, made1}, .final = all_done, .eager = true};

static const struct model set_again = {.setup = timers_two,
                                       .threads = {deletes_and_sets_timer, m1, made0},
                                       .final = all_done,
                                       .eager = true,
                                       .timeouts = 1};

static const struct model set_spare = {.setup = timers_spare,
                                       .threads = {sets_timer_and_computes, m1, m2, made0},
                                       .final = all_done,
                                       .eager = true};

static const struct model duty_wake = {
    .setup = timers_one, .threads = {plain_readies_one, m1, made0, made1}, .final = all_done, .eager = true};

static const struct model duty_refused = {.setup = timers_inside,
                                          .threads = {hands_off_own, sets_timer_beside, m2, made0},
                                          .final = all_done,
                                          .eager = true};

static const struct model fd_waits = {
    .setup = fds, .threads = {waits_for_fd, m1, made0}, .final = all_done, .eager = true};

static const struct model fd_refused = {.setup = fds,
                                        .threads = {hands_off_own, waits_for_fd_beside, m2, made0},
                                        .final = all_done,
                                        .eager = true};

static const struct model by_sysmon = {.setup = timers_spare,
                                       .threads = {computes, m1, sysmon_fires, made0},
                                       .final = all_done,
                                       .eager = true,
                                       .timeouts = 1};

static const struct model duty_change = {.setup = timers_one_for_ever,
                                         .threads = {readies_and_sets_timer, m1, made0, made1},
                                         .final = all_done,
                                         .eager = true};

/* Nobody owns the poller when the timer is set: somebody takes it. */
TEST(timer_nobody)
{
    model_check_both(set_none, "a timer from a plain thread", 4, 3);
    model_check_both(set_inside, "a timer from inside", 4, 3);
}
/* The poll owner sleeps until a later one. */
TEST(timer_earlier)
{
    model_check_both(set_earlier, "an earlier timer", 4, 2);
    model_check_both(set_again, "another one than before", 3, 2);
}
TEST(timer_spare)
{
    model_check_both(set_spare, "an earlier timer, a spare M owns the poller", 3, 2);
}
/* The poll owner is needed for work. */
TEST(duty_is_woken)
{
    model_check_both(duty_wake, "work for the poll owner", 4, 3);
}
TEST(duty_changes)
{
    model_check_both(duty_change, "the poll owner computes for ever", 3, 2);
}
/* No P is idle when the timer is set, so nobody owns the poller; then the last but one is given up. */
TEST(duty_is_refused)
{
    model_check_both(duty_refused, "a timer while a P is handed off", 3, 3);
}
TEST(fd_is_waited_for)
{
    model_check_both(fd_waits, "an fd from inside", 4, 3);
    model_check_both(fd_refused, "an fd while a P is handed off", 3, 2);
}
TEST(timer_by_sysmon)
{
    model_check_both(by_sysmon, "sysmon fires it", 3, 2);
}
TEST(timer_fires)
{
    struct model m = set_earlier;
    m.timeouts = 2;
    check(m, "an earlier timer, both fire", MODEL_TSO, 2);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_timer_set)
{
    model_catch(&set_earlier, "no fence after setting a timer", "gort__poller_notice", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_timer_refused)
{
    model_catch(&duty_refused, "no fence after setting a timer beside", "gort__poller_notice", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_fd)
{
    model_catch(&fd_waits, "no fence after waiting for an fd", "gort__poller_notice_fd", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_timer_publish)
{
    struct model m = set_again;
    m.preemptions = 3;
    model_catch(&m, "no fence after telling until when", "announce", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_timer_publish_weak)
{
    struct model m = set_again;
    m.memory = MODEL_WEAK;
    m.preemptions = 3;
    model_catch(&m, "no fence before the second look at timers", "announce", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_doze_torn)
{
    model_catch(&duty_wake, "torn cas before the poller", "gort__note_doze", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_undoze_torn)
{
    struct model m = duty_wake;
    m.timeouts = 1;
    m.preemptions = 3;
    model_catch(&m, "torn cas after the poller", "gort__note_undoze", MODEL_OP_CAS, MODEL_TORN);
}
