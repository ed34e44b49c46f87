/* SPDX-License-Identifier: MIT */
/*
 * wg.c - the real wait group (sync/wg.c): nobody is let go early, nobody waits for ever, and nobody touches a
 * group after the last of those who waited has given it back, as one does that has it on its stack.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4 -DGORT_WG_SPINS=0
 * Covers: src/sync/wg.c src/sync/object.h
 *
 * What a goroutine is here: gs.h. Some are plain threads, whose waits can be ended by others, so that records
 * are claimed; one is outside of runs until a run begins, at any time, while the group still remembers
 * waiters of the one before.
 * Absent: contexts, gort_wg_go (an add, and a done that is called at the end), ends of runs.
 * Bounded: two to four threads of one to three calls each.
 */
#define TS 4

#include "model/gs.h"

#pragma weak gort__spawn_finally
#include "sync/wg.c"

static struct {
    gort_wg wg;
    uint32_t work[TS];  /* done before gort_wg_done; atomic, because only atomic operations are steps */
    uint32_t again;     /* the second round has begun; atomic */
    uint32_t expected;  /* bits: whose work a wait is for */
    int users, waiting; /* who may still wait; who does */
    bool zero;          /* somebody was told that all are done */
} book;                 /* written between steps only, but for what is atomic */

/* Whoever holds LOCK goes on some time. */
void gort__os_thread_yield(void) {}

/* A thread that is outside until a run is on. */
struct gort__m *gort__entry_plain(void)
{
    if (gort__load(&gort__sched.phase, ACQUIRE) != GORT_PHASE_ON) /* pairs with begins_a_run */
        return NULL;
    gs_outside = -1;
    return &ms[me()];
}

/* --- the threads ------------------------------------------------------------------------------- */

static void all_is_done(void)
{
    for (uint32_t i = 0; i < TS; i++)
        if (book.expected & 1u << i && !gort__load(&book.work[i], RELAXED))
            model_fail("let go before %u was done", i);
    book.zero = true;
}
/* Who waits has the group on its stack: from then on nobody may touch it. */
static void give_back(void)
{
    book.waiting--;
    if (--book.users == 0 && book.zero)
        model_gone(&book.wg, sizeof book.wg);
}
static void waits(void)
{
    MODEL_ASSERT(gort_wg_wait(&book.wg) == 0);
    all_is_done();
    give_back();
}
/* Who gives up knows nothing of the others. */
static void waits_for_a_while(void)
{
    int err = gort_wg_wait_until(&book.wg, SOON);
    MODEL_ASSERT(err == 0 || err == -ETIMEDOUT);
    if (err == 0)
        all_is_done();
    give_back();
}
static void tries_and_waits(void)
{
    int err = gort_wg_wait_until(&book.wg, GORT_TRY);
    MODEL_ASSERT(err == 0 || err == -EAGAIN);
    if (err == 0) {
        all_is_done();
        give_back();
    } else {
        waits();
    }
}
static void works(void)
{
    gort__store(&book.work[me()], 1, RELAXED);
    gort_wg_done(&book.wg);
}
/* While its own part is not done others may be added. */
static void adds_and_works(void)
{
    gort_wg_add(&book.wg, 1);
    gort_wg_done(&book.wg);
    works();
}
static void waits_twice(void)
{
    MODEL_ASSERT(gort_wg_wait(&book.wg) == 0);
    all_is_done();
    gort__store(&book.work[1], 0, RELAXED);
    gort_wg_add(&book.wg, 1);
    gort__store(&book.again, 1, RELEASE); /* pairs with the await in works_twice */
    waits();
}
static void works_twice(void)
{
    works();
    model_await(&book.again, 1);
    works();
}
static void begins_a_run(void)
{
    gort__store(&gort__sched.phase, GORT_PHASE_ON, SEQ_CST); /* pairs with gort__entry_plain */
    waits();
}
/* Twice, because a wait may begin at the last moment. */
static void alarm_twice(void)
{
    for (int i = 0; i < 2; i++) {
        model_await(&asleep.armed, 1);
        asleep.armed = 0;
        alarm_fires();
    }
}

/* --- setup and oracles ------------------------------------------------------------------------- */

static void start(int users, uint32_t workers)
{
    gs_start();
    memset(&book, 0, sizeof book);
    gs_outside = -1;
    gort__sched.phase = GORT_PHASE_ON;
    book.users = book.waiting = users;
    book.expected = workers;
    gort_wg_add(&book.wg, __builtin_popcount(workers));
    model_memory(&book, sizeof book);
    model_memory(&gs_outside, sizeof gs_outside);
    model_memory(&gort__sched.phase, sizeof gort__sched.phase);
}
static void one_worker(void)
{
    start(1, 1u << 1);
}
static void two_workers(void)
{
    start(1, 1u << 1 | 1u << 2);
}
static void two_waiters(void)
{
    start(2, 1u << 2);
}
static void two_plain_waiters(void)
{
    start(2, 1u << 2);
    gs[0].flags = gs[1].flags = GORT_G_THREAD;
}
static void one_plain_waiter(void)
{
    start(2, 1u << 2);
    gs[1].flags = GORT_G_THREAD;
}
static void hasty(void)
{
    start(2, 1u << 2);
    asleep.hasty = true;
}
static void two_waiters_two_workers(void)
{
    start(2, 1u << 2 | 1u << 3);
}
static void three_waiters(void)
{
    start(3, 1u << 3);
}
static void one_late_thread(void)
{
    start(2, 1u << 2);
    gs[0].flags = GORT_G_THREAD;
}
/* What is left of a run that has ended while one waited. */
static void outside_of_runs(void)
{
    static struct gort__waiter gone; /* with its stack; nobody may look at it */
    start(1, 1u << 1);
    book.wg.gort_priv_state |= WAITED;
    struct gort__waitq *q = gort__object_queue(&book.wg.gort_priv_waiters);
    *q = (struct gort__waitq){&gone, &gone, gort__sched.run - 1};
    gs_outside = 1;
    gort__sched.phase = GORT_PHASE_NONE;
}

static void all_went_on(void)
{
    if (book.waiting)
        model_fail("lost wake-up: %d wait for nothing", book.waiting);
    gs_all_awake();
    MODEL_ASSERT(book.wg.gort_priv_state == 0 && !gort__object_queue(&book.wg.gort_priv_waiters)->first);
}

static const struct model one = {.setup = one_worker, .threads = {waits, works}, .final = all_went_on};
static const struct model trying = {
    .setup = one_worker, .threads = {tries_and_waits, works}, .final = all_went_on};
static const struct model trying_two = {
    .setup = two_workers, .threads = {tries_and_waits, works, works}, .final = all_went_on};
static const struct model rounds = {
    .setup = one_worker, .threads = {waits_twice, works_twice}, .final = all_went_on};
static const struct model workers = {
    .setup = two_workers, .threads = {waits, works, works}, .final = all_went_on};
static const struct model adding = {
    .setup = two_workers, .threads = {waits, adds_and_works, works}, .final = all_went_on};
static const struct model waiters = {
    .setup = two_waiters, .threads = {waits, waits, works}, .final = all_went_on};
static const struct model plain = {
    .setup = two_plain_waiters, .threads = {waits, waits, works}, .final = all_went_on};
static const struct model mixed = {
    .setup = one_plain_waiter, .threads = {waits, tries_and_waits, works}, .final = all_went_on};
static const struct model both = {
    .setup = two_waiters_two_workers, .threads = {waits, waits, works, works}, .final = all_went_on};
static const struct model three = {
    .setup = three_waiters, .threads = {waits, waits, waits, works}, .final = all_went_on};
static const struct model timed_one = {
    .setup = one_worker, .threads = {waits_for_a_while, works, alarm_twice}, .final = all_went_on};
static const struct model timed_two = {
    .setup = two_waiters, .threads = {waits_for_a_while, waits, works, alarm_twice}, .final = all_went_on};
static const struct model timed_plain = {.setup = one_late_thread,
                                         .threads = {waits_for_a_while, waits, works, alarm_twice},
                                         .final = all_went_on};
static const struct model beginning = {
    .setup = outside_of_runs, .threads = {begins_a_run, works}, .final = all_went_on};

TEST(one_waiter)
{
    model_check_both(one, "one that waits", 0, 0);
    model_check_both(trying, "one that tries first", 0, 0);
    model_check_both(rounds, "two rounds", 0, 0);
}
TEST(two_workers)
{
    model_check_both(workers, "two that work", 0, 0);
    model_check_both(adding, "two that work, one adds", 0, 0);
    model_check_both(trying_two, "two that work, and one that tries first", 0, 0);
}
TEST(more_waiters)
{
    model_check_both(waiters, "two that wait", 0, 0);
    model_check_both(plain, "two plain threads that wait", 0, 0);
    model_check_both(mixed, "a goroutine and a plain thread that wait", 0, 0);
    model_check_both(three, "three that wait", 0, 0);
}
TEST(two_and_two)
{
    model_check_both(both, "two that wait and two that work", 0, 0);
}
TEST(deadline)
{
    model_check_both(timed_one, "one with a deadline", 0, 0);
    model_check_both(timed_two, "one with a deadline, and one without", 0, 0);
    model_check_both(timed_plain, "a plain thread with a deadline, and one without", 0, 0);
}
TEST(a_run_begins)
{
    model_check_both(beginning, "a run begins while the last one is done", 0, 0);
}

/* --- mutations --------------------------------------------------------------------------------- */

TEST(mutation_commit)
{
    struct model m = waiters;
    m.setup = hasty;
    struct model_result r = model_explore(&m);
    CHECK_MSG(r.failed, "a goroutine that can be found while it is on its stack was not noticed");
}
TEST(mutation_count_torn)
{
    model_catch(&workers, "two count down at once", "add", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_count_unordered)
{
    struct model m = one;
    m.memory = MODEL_WEAK;
    model_catch(&m, "work that is seen after the count", "add", MODEL_OP_CAS, MODEL_UNORDERED);
}
TEST(mutation_last_without_lock)
{
    model_catch_kept(&timed_two, "the last one does not keep others out", "add", MODEL_OP_CAS, LOCK);
}
TEST(mutation_look)
{
    model_catch(&one, "a look that sees nobody", "wait_for_zero", MODEL_OP_LOAD, MODEL_SKIPPED);
}
TEST(mutation_lock_torn)
{
    model_catch(&waiters, "two change the queue", "take_lock", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_unlock_torn)
{
    model_catch(&trying_two, "an unlock that forgets a count", "unlock", MODEL_OP_AND, MODEL_TORN);
}
TEST(mutation_commit_torn)
{
    model_catch(&workers, "a commit that forgets a count", "commit_unlock", MODEL_OP_ADD, MODEL_TORN);
}
TEST(mutation_waiter_overlooked)
{
    model_catch_kept(&one, "a waiter that the last one overlooks", "commit_unlock", MODEL_OP_ADD, WAITED);
}
TEST(mutation_shared_waiter_overlooked)
{
    model_catch(&plain, "a plain thread that the last one overlooks", "wait_claimed", MODEL_OP_OR,
                MODEL_SKIPPED);
}
TEST(mutation_wake_keeps_lock)
{
    model_catch_kept(&one, "a lock that stays", "wake_all", MODEL_OP_AND, LOCK);
}
TEST(mutation_claim_torn)
{
    model_catch(&timed_one, "torn claim", "gort__g_claim", MODEL_OP_CAS, MODEL_TORN);
}
/* What was once so: the count stayed at zero while the last one came in, and who found that took the group
 * along. */
TEST(mutation_zero_while_entering)
{
    model_catch_kept(&beginning, "a count of zero while the last one comes in", "add_inside", MODEL_OP_SUB,
                     UINT32_MAX);
}
