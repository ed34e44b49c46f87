/* SPDX-License-Identifier: MIT */
/*
 * sysmon_sleep.c - how the real sysmon sleeps (sched/monitor/sysmon_sleep.c, with p.c, poller.c and
 * os/linux/alarm.c): while a P is taken, or memory is short, or somebody is preempted, it always has an
 * alarm; a notification is not lost; no timer that is set while no P is idle is overslept, nor is what was
 * queued, also if an M puts the alarm off (gort__sysmon_sleep_calm); and it ends when it is told to.
 * Build: standalone -DGORT_MODEL
 * Covers: src/sched/monitor/sysmon_sleep.c src/sched/core/sched.h src/os/linux/alarm.c
 *
 * Sysmon here is the sleeping half of its loop: it rests if it can, else sleeps for a long tick or a short
 * one. Others take Ps and give them back, keep one for ever, find no memory, stop the world, notify, or end
 * it all. In the end, when nobody can make a step, sysmon sleeps: without an alarm exactly if it says IDLE;
 * else until its alarm, a tick ahead at most.
 * Modelled instead of real: the kernel's timerfd, one step for each call, and none of them a fence; in cases
 * `by_futex` alarm.c does without it. The lock's slow path, as in all models. The clock: it jumps by a GORT_WATCHDOG_PAUSE
 * or to the alarm, or, by_futex, to the end of the sleep.
 * Absent: what sysmon does when it looks, timers that bring the watchdog nearer, fds that wake it, Ms.
 */
#include "model/sysmon.h"

/* --- cases ------------------------------------------------------------------------------------- */

static const struct model taken = {
    .setup = one_p, .threads = {sysmon, works_twice, time_passes}, .final = is_watched};
static const struct model kept = {
    .setup = one_p, .threads = {sysmon, works_and_keeps, time_passes}, .final = is_watched};
static const struct model two = {
    .setup = two_ps, .threads = {sysmon, works, works_and_keeps, time_passes_once}, .final = is_watched};
static const struct model starved = {
    .setup = two_ps, .threads = {sysmon, finds_no_memory, works, time_passes}, .final = is_watched};
static const struct model preempted = {
    .setup = two_ps, .threads = {sysmon, is_held, works, time_passes}, .final = is_watched};
static const struct model stopped = {
    .setup = two_ps, .threads = {sysmon, stops_the_world, works, time_passes}, .final = is_watched};
static const struct model poked_long = {
    .setup = one_is_taken, .threads = {sysmon, pokes_long, time_passes}, .final = is_watched};
static const struct model poked_rest = {
    .setup = one_p, .threads = {sysmon, pokes_rest, works, time_passes}, .final = is_watched};
static const struct model hurried_long = {
    .setup = one_is_taken, .threads = {sysmon, pokes_long}, .final = is_hurried};
static const struct model hurried_rest = {
    .setup = one_p, .threads = {sysmon, pokes_rest}, .final = is_hurried};
static const struct model poked_guard = {
    .setup = one_p, .threads = {sysmon, keeps, pokes_guard, time_passes}, .final = is_watched};
static const struct model ended = {
    .setup = one_p, .threads = {sysmon, quits, works, time_passes}, .final = is_watched};

static const struct model timer = {
    .setup = for_timers, .threads = {sysmon_with_timers, sets_timer, time_passes_once}, .final = is_in_time};
static const struct model noted = {
    .setup = for_timers,
    .threads = {sysmon_with_timers, publishes_work, sets_timer, time_passes_once},
    .final = is_in_time};
static const struct model noted_alone = {.setup = for_queue,
                                         .threads = {sysmon_with_timers, publishes_alone, time_passes_once},
                                         .final = is_in_time};
static const struct model calmed = {.setup = for_timers,
                                    .threads = {sysmon_with_timers, calms, sets_timer, time_passes_once},
                                    .final = is_in_time};
static const struct model calmed_queued = {
    .setup = for_timers, .threads = {sysmon_with_timers, calms, publishes_work}, .final = is_in_time};
static const struct model calmed_poked = {
    .setup = for_timers,
    .threads = {sysmon_with_timers, calms_and_pokes, publishes_work, time_passes_once},
    .final = is_in_time};
static const struct model fds = {
    .setup = for_fds, .threads = {sysmon_with_fds, takes_last, time_passes_once}, .final = listens};
static const struct model timer_ended = {
    .setup = for_timers, .threads = {sysmon_with_timers, calms, sets_timer, quits}, .final = is_in_time};

static void check_weak(struct model m, const char *name, int weak)
{
    m.eager = true;
    model_check_both(m, name, 0, weak);
}
static void check(struct model m, const char *name)
{
    check_weak(m, name, 0);
}

TEST(ps_come_and_go)
{
    check(taken, "a P is taken twice");
    check(kept, "a P is taken, and kept");
}
TEST(two_come_and_go)
{
    check(two, "two Ps, and one is kept");
}
TEST(memory_is_short)
{
    check(starved, "no memory for an M");
}
TEST(somebody_is_held)
{
    check(preempted, "preempted");
}
TEST(world_stops)
{
    check(stopped, "the world is stopped");
}
TEST(notifies)
{
    check(hurried_long, "notified in a long tick, no time passes");
    check(poked_long, "notified in a long tick");
    check(hurried_rest, "notified while it rests, and nobody works");
    check(poked_rest, "notified while it rests");
    check(poked_guard, "notified while it has a watchdog");
}
TEST(timer_in_time)
{
    check(timer, "a timer while sysmon goes to sleep");
    check(timer_ended, "a timer while it is told to end");
}
TEST(work_is_noted)
{
    check_weak(noted, "a goroutine is queued", 3);
    model_check_both(noted_alone, "a goroutine is queued without a fence", 0, 3);
}
TEST(nobody_waits)
{
    check_weak(calmed, "nobody waits any more", 3);
    check_weak(calmed_queued, "nobody waits any more, but then one is queued", 3);
    check(calmed_poked, "nobody waits any more, and a notification");
}
TEST(fds_are_heard)
{
    check_weak(fds, "the last P is taken while somebody waits for an fd", 3);
}
TEST(ends)
{
    check(ended, "told to end");
}
/* Time passes there when a sleep ends by itself. */
static struct model by_futex(struct model m)
{
    m.setup = m.setup == one_is_taken ? one_is_taken_by_futex : one_p_by_futex;
    for (int i = 0; i < MODEL_THREADS; i++)
        if (m.threads[i] == time_passes)
            m.threads[i] = NULL;
    m.timeouts = 1;
    return m;
}
TEST(futex_ps_come_and_go)
{
    check(by_futex(taken), "a P is taken twice");
    check(by_futex(kept), "a P is taken, and kept");
}
TEST(futex_pokes)
{
    check(by_futex(poked_long), "notified in a long tick");
    check(by_futex(poked_rest), "notified while it rests");
    check(by_futex(poked_guard), "notified while it has a watchdog");
}
TEST(futex_ends)
{
    check(by_futex(ended), "told to end");
}

/* Time passes when a sleep on the futex ends by itself; the timerfd's does not come. */
static struct model in_sandbox(struct model m)
{
    for (int i = 0; i < MODEL_THREADS; i++)
        if (m.threads[i] == time_passes)
            m.threads[i] = closes_sandbox;
    m.timeouts = 1;
    return m;
}
TEST(refused)
{
    check(in_sandbox(taken), "a P is taken twice");
    check(in_sandbox(kept), "a P is taken, and kept");
    check(in_sandbox(ended), "told to end");
}

/* --- mutations --------------------------------------------------------------------------------- */

TEST(mutation_no_guard)
{
    model_catch_at(&kept, "who takes a P does not see that it rests",
                   (struct model_mutation){.func = "gort__p_idle_get_locked",
                                           .op = MODEL_OP_LOAD,
                                           .kind = MODEL_SKIPPED,
                                           .word = "&s->sysmon.state"});
}
TEST(mutation_guard_stays)
{
    model_catch(&taken, "who gives back the last P does not see the watchdog", "gort__wake_sysmon_armed",
                MODEL_OP_LOAD, MODEL_SKIPPED);
}
TEST(mutation_alarm_alone)
{
    model_catch(&kept, "the alarm changes, but not the state", "change", MODEL_OP_STORE, MODEL_SKIPPED);
}
TEST(mutation_drop)
{
    struct model m = kept;
    m.memory = MODEL_WEAK;
    model_catch(&m, "a drop that overtakes the state", "model_lock_drop", MODEL_OP_STORE, MODEL_UNORDERED);
}
TEST(mutation_timer_set)
{
    model_catch(&timer, "no fence after setting a timer", "gort__poller_notice", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_timer_sleeps)
{
    model_catch(&timer, "no fence before the second look at timers", "look_back", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_timer_calm)
{
    model_catch(&calmed, "no fence before the look of one that puts the alarm off", "look_back",
                MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_noted)
{
    model_catch(&noted, "no fence after queueing", "queue_one", MODEL_OP_FENCE, MODEL_SKIPPED);
    model_catch(&noted, "who queues one does not see that sysmon sleeps for long", "gort__wake_note_work",
                MODEL_OP_LOAD, MODEL_SKIPPED);
}
TEST(mutation_membarrier)
{
    struct model m = noted_alone;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no membarrier before the second look", "membarrier", MODEL_OP_BARRIER, MODEL_SKIPPED);
}
/* Between the state and the look lie more stores than the model lets wait on x86; towards ARM the fence is
 * all there is. */
TEST(mutation_look_back)
{
    struct model m = noted;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the second look", "look_back", MODEL_OP_FENCE, MODEL_SKIPPED);
    m = calmed_queued;
    m.memory = MODEL_WEAK;
    model_catch(&m, "the same in an M that puts the alarm off", "look_back", MODEL_OP_FENCE, MODEL_SKIPPED);
    model_catch(&m, "an M that puts the alarm off takes no second look", "gort__queue_has_work",
                MODEL_OP_LOAD, MODEL_SKIPPED);
}
TEST(mutation_fds)
{
    struct model m = fds;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the look for idle Ps", "look_back", MODEL_OP_FENCE, MODEL_SKIPPED);
    model_catch(&m, "no fence before the look whether sysmon listens", "gort__sysmon_sleep_events",
                MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_futex_word)
{
    struct model m = by_futex(kept);
    model_catch(&m, "an earlier alarm does not change the word", "gort__os_alarm_set", MODEL_OP_ADD,
                MODEL_SKIPPED);
    m.memory = MODEL_WEAK;
    model_catch(&m, "the word is there before the alarm", "gort__os_alarm_set", MODEL_OP_ADD,
                MODEL_UNORDERED);
}
TEST(mutation_refused)
{
    struct model m = in_sandbox(kept);
    model_catch_at(
        &m, "the time that could not be set is not stored",
        (struct model_mutation){
            .func = "gort__os_alarm_set", .op = MODEL_OP_STORE, .kind = MODEL_SKIPPED, .word = "&a->when"});
}
TEST(mutation_futex_alarm)
{
    struct model m = by_futex(kept);
    model_catch(&m, "the alarm stays as it was", "gort__os_alarm_set", MODEL_OP_STORE, MODEL_SKIPPED);
}

/* Not one operation of the real code: a thread does without a lock. */
static int careless;
static enum gort__rank carelessly;
static void (*careful)(void);
static void set_up_careless(void)
{
    careful();
    book.careless = careless;
    book.carelessly = carelessly;
}
static void catch_careless(struct model m, const char *name, void (*thread)(void), enum gort__rank rank)
{
    careful = m.setup;
    carelessly = rank;
    for (careless = 0; m.threads[careless] != thread; careless++) {
    }
    m.setup = set_up_careless;
    CHECK_MSG(timed(&m, name, false).failed, "%s: the mutation was not noticed", name);
}
TEST(mutation_rests_without_sched_lock)
{
    catch_careless(kept, "a P is taken when it has seen that all are idle", sysmon, GORT_RANK_SCHED);
}
TEST(mutation_sysmon_without_lock)
{
    catch_careless(ended, "sysmon sleeps without the lock", sysmon, GORT_RANK_SYSMON);
}
TEST(mutation_guard_without_lock)
{
    catch_careless(poked_rest, "the watchdog is set without the lock", works, GORT_RANK_SYSMON);
}
TEST(mutation_poke_without_lock)
{
    catch_careless(poked_rest, "a notification without the lock", pokes_rest, GORT_RANK_SYSMON);
}
TEST(mutation_end_without_lock)
{
    catch_careless(ended, "told to end without the lock", quits, GORT_RANK_SYSMON);
}
