/* SPDX-License-Identifier: MIT */
/*
 * mutex.c - the real mutex (sync/mutex.c): one owner at a time, nobody waits for ever, and nobody touches a
 * mutex that whoever locked it last has given back.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4 -DGORT_MUTEX_SPINS=0
 * Covers: src/sync/mutex.c
 *
 * Explored are lock_fast and unlock_fast of mutex.c; those in gort/sync.h do the same. What a goroutine is
 * here: gs.h. Some are plain threads, whose waits can be ended by others, so that records are claimed. The
 * clock jumps once, at any time, past the deadline of a timed lock and past the millisecond after which a
 * mutex is handed over.
 * Absent: spinning before the wait (one P), contexts, ends of runs.
 * Bounded: two or three threads of one or two locks each; where three lock twice, and where one of three has
 * a deadline, at most 5 preemptions (4 towards ARM) unless MODEL_DEEP is set (20 million states and more).
 */
#define TS 4
#define MODEL_CLOCK

#include "model/gs.h"

#include "sync/mutex.c"

#define LATER (2 * GORT_MS)

static struct {
    gort_mutex mu;
    uint32_t guarded; /* how often it was taken; atomic, because only atomic operations are steps */
    uint32_t takes;   /* the same, as the oracle has counted it */
    int owners, users, wanting;
    int64_t now;
} book; /* written between steps only, but for what is atomic */

int64_t gort__os_now(void)
{
    return book.now;
}
/* Whoever holds QUEUE goes on some time. */
void gort__os_thread_yield(void) {}

/* --- the threads ------------------------------------------------------------------------------- */

static void own(void)
{
    MODEL_ASSERT(!book.owners++);
    uint32_t n = gort__load(&book.guarded, RELAXED);
    MODEL_ASSERT(n == book.takes++);
    gort__store(&book.guarded, n + 1, RELAXED);
    book.owners--;
}
static void lock_and_unlock(void)
{
    MODEL_ASSERT(gort_mutex_lock(&book.mu) == 0);
    own();
    gort_mutex_unlock(&book.mu);
}
/* The last one that uses it gives it back: from then on nobody may touch it. */
static void own_last(void)
{
    own();
    bool last = --book.users == 0;
    gort_mutex_unlock(&book.mu);
    if (last)
        model_gone(&book.mu, sizeof book.mu);
}
static void lock_last(void)
{
    MODEL_ASSERT(gort_mutex_lock(&book.mu) == 0);
    own_last();
    book.wanting--;
}
static void once(void)
{
    lock_last();
}
static void twice(void)
{
    lock_and_unlock();
    lock_last();
}
static void tries(void)
{
    if (gort_mutex_trylock(&book.mu)) {
        own();
        gort_mutex_unlock(&book.mu);
    }
    lock_last();
}
/* Who gives up has not had the lock, and does not know whether another one is done with it: it gives nothing
 * back. */
static void for_a_while(void)
{
    int err = gort_mutex_lock_until(&book.mu, SOON);
    if (err == 0) {
        own_last();
    } else {
        MODEL_ASSERT(err == -ETIMEDOUT && book.now > SOON);
        book.users--;
    }
    book.wanting--;
}
static void time_passes(void)
{
    (void)gort__load(&asleep.armed, RELAXED); /* a moment, any */
    book.now = LATER;
}
/* Twice, because a wait may begin at the last moment. */
static void alarm_twice(void)
{
    for (int i = 0; i < 2; i++) {
        model_await(&asleep.armed, 1);
        asleep.armed = 0;
        book.now = LATER;
        alarm_fires();
    }
}

/* --- setup and oracles ------------------------------------------------------------------------- */

static void start(int users)
{
    gs_start();
    gort__sched.procs = 1; /* no spinning */
    memset(&book, 0, sizeof book);
    book.users = book.wanting = users;
    book.now = 1;
    model_memory(&book, sizeof book);
}
static void two_users(void)
{
    start(2);
}
static void two_plain_threads(void)
{
    start(2);
    gs[0].flags = gs[1].flags = GORT_G_THREAD;
}
static void three_users(void)
{
    start(3);
}

static void all_had_it(void)
{
    if (book.wanting)
        model_fail("lost wake-up: %d wait for a mutex that nobody owns", book.wanting);
    gs_all_awake();
    MODEL_ASSERT(!(book.mu.gort_priv_state & (OWNED | QUEUE | WOKEN | POINTER)));
}

static const struct model two = {.setup = two_users, .threads = {twice, twice}, .final = all_had_it};
static const struct model plain = {
    .setup = two_plain_threads, .threads = {twice, twice}, .final = all_had_it};
static const struct model trying = {.setup = two_users, .threads = {tries, tries}, .final = all_had_it};
static const struct model three = {.setup = three_users, .threads = {once, once, once}, .final = all_had_it};
static const struct model three_more = {
    .setup = three_users, .threads = {twice, once, once}, .final = all_had_it};
static const struct model three_twice = {
    .setup = three_users, .threads = {twice, twice, twice}, .final = all_had_it};
static const struct model handed = {
    .setup = two_users, .threads = {twice, twice, time_passes}, .final = all_had_it};
static const struct model handed_three = {
    .setup = three_users, .threads = {once, once, once, time_passes}, .final = all_had_it};
/* own_stack: of the copies of the queue that mutex.c works on. */
static const struct model timed_two = {
    .setup = two_users, .threads = {twice, for_a_while, alarm_twice}, .final = all_had_it, .own_stack = true};
static const struct model timed_three = {.setup = three_users,
                                         .threads = {twice, for_a_while, once, alarm_twice},
                                         .final = all_had_it,
                                         .own_stack = true};

TEST(two_threads)
{
    model_check_both(two, "two, twice each", 0, 0);
    model_check_both(plain, "two plain threads, twice each", 0, 0);
    model_check_both(trying, "two that try first", 0, 0);
}
TEST(three_threads)
{
    model_check_both(three, "three", 0, 0);
    model_check_both(three_more, "three, one of them twice", 0, 0);
}
TEST(three_threads_twice)
{
    bool deep = getenv("MODEL_DEEP");
    model_check_both(three_twice, "three, twice each", deep ? 7 : 5, deep ? 6 : 4);
}
TEST(handed_over)
{
    model_check_both(handed, "two and the clock", 0, 0);
    model_check_both(handed_three, "three and the clock", 0, 0);
}
TEST(deadline)
{
    model_check_both(timed_two, "one and one with a deadline", 0, 0);
}
/* One case a memory: each takes longer than most others. */
static void check_timed_three(int memory, int preemptions)
{
    struct model m = timed_three;
    m.memory = memory;
    m.preemptions = preemptions;
    model_check(&m, "two and one with a deadline");
}
TEST(deadline_with_others)
{
    check_timed_three(MODEL_TSO, getenv("MODEL_DEEP") ? 0 : 5);
}
TEST(deadline_with_others_weak)
{
    check_timed_three(MODEL_WEAK, getenv("MODEL_DEEP") ? 6 : 4);
}

/* --- mutations --------------------------------------------------------------------------------- */

TEST(mutation_lock_torn)
{
    model_catch(&two, "two take it at once", "lock_fast", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_unlock_torn)
{
    model_catch(&two, "a torn unlock", "unlock_fast", MODEL_OP_SUB, MODEL_TORN);
}
TEST(mutation_unlock_unordered)
{
    struct model m = two;
    m.memory = MODEL_WEAK;
    model_catch(&m, "an unlock that lets stores overtake it", "unlock_fast", MODEL_OP_SUB, MODEL_UNORDERED);
}
TEST(mutation_queue_without_slow)
{
    model_catch_kept(&two, "a waiter that the owner overlooks", "lock_slow", MODEL_OP_CAS, SLOW);
}
TEST(mutation_queue_torn)
{
    model_catch(&three, "two change the queue", "lock_slow", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_put_back_torn)
{
    model_catch(&timed_two, "a torn end of a change of the queue", "unlock_queue", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_woken_stays)
{
    model_catch_kept(&two, "a woken one leaves its mark", "lock_woken", MODEL_OP_CAS, WOKEN);
}
TEST(mutation_mark_stays_queued)
{
    model_catch_kept(&timed_three, "who gives up or waits again leaves its mark", "unlock_queue",
                     MODEL_OP_CAS, WOKEN);
}
TEST(mutation_woken_without_slow)
{
    model_catch_kept(&three, "a woken one wakes nobody", "lock_woken", MODEL_OP_CAS, SLOW);
}
TEST(mutation_hand_over)
{
    model_catch_kept(&handed, "handed over and free", "unlock_slow", MODEL_OP_STORE, LOCKED);
}
TEST(mutation_pass_on)
{
    model_catch_kept(&timed_three, "who gives up tells nobody", "pass_on", MODEL_OP_CAS, SLOW);
}
