/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the runtime's own lock: threads exclude each other, sleepers are woken, and in builds with checks
 * a lock of a lower rank, or one that a signal could leave taken, ends the program.
 * Covers: src/mem/lock.c src/base/rank.h
 */
#include "mem/lock.h"

#include <pthread.h>
#include <unistd.h>

#include "test.h"

#define THREADS 4

static struct gort__lock lock, other;
static long count, rounds;

static void *work(void *unused)
{
    for (long i = 0; i < rounds; i++) {
        gort__lock_take(&lock, GORT_RANK_SCHED);
        count++;
        gort__lock_release(&lock, GORT_RANK_SCHED);
    }
    return unused;
}

static void hammered(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(count, THREADS * rounds);
    CHECK_EQ(lock.word, 0);
}

TEST(threads_exclude_each_other)
{
    rounds = test_scaled(200000, 2000);
    gort__lock_init(false);
    hammered();
}

TEST(a_sleeper_is_woken)
{
    pthread_t thread;
    rounds = 1;
    gort__lock_init(false);
    gort__lock_take(&lock, GORT_RANK_SCHED);
    CHECK_EQ(pthread_create(&thread, NULL, work, NULL), 0);
    while (!(gort__load(&gort__lock_slow_mask, RELAXED) & ~(GORT_LOCK_FENCE | GORT_LOCK_FUZZ)))
        usleep(1000); /* until it sleeps */
    CHECK_EQ(count, 0);
    gort__lock_release(&lock, GORT_RANK_SCHED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(count, 1);
}

TEST(try_takes_what_is_free)
{
    CHECK(gort__lock_try(&lock, GORT_RANK_SCHED));
    CHECK(!gort__lock_try(&lock, GORT_RANK_SCHED));
    gort__lock_release(&lock, GORT_RANK_SCHED);
    CHECK_EQ(lock.word, 0);
}

TEST(ranks_go_up)
{
    gort__lock_take(&lock, GORT_RANK_CHAN);
    gort__lock_take(&other, GORT_RANK_CHAN); /* channels, in the order of their addresses */
    gort__lock_release(&other, GORT_RANK_CHAN);
    gort__lock_release(&lock, GORT_RANK_CHAN);
    gort__lock_take(&lock, GORT_RANK_TIMER);
    gort__lock_take(&other, GORT_RANK_SCHED);
    gort__lock_release(&lock, GORT_RANK_TIMER); /* in any order */
    gort__lock_release(&other, GORT_RANK_SCHED);
    gort__lock_take(&lock, GORT_RANK_TREE);
    gort__lock_release(&lock, GORT_RANK_TREE);
}

#if GORT_CHECKS
TEST(a_lower_rank_is_reported, .crash = "lock of rank [0-9]+ taken while ranks [0-9a-f]+ are held")
{
    gort__lock_take(&lock, GORT_RANK_SCHED);
    gort__lock_take(&other, GORT_RANK_TIMER);
}

TEST(the_same_rank_twice_is_reported, .crash = "lock of rank [0-9]+ taken while ranks [0-9a-f]+ are held")
{
    gort__lock_take(&lock, GORT_RANK_SLAB);
    gort__lock_take(&other, GORT_RANK_SLAB);
}

static bool always(void)
{
    return true;
}

TEST(one_that_a_signal_could_leave_taken_is_reported,
     .crash = "lock of rank [0-9]+ taken where a signal may stop its holder")
{
    gort__lock_exposed = always;
    gort__lock_take(&lock, GORT_RANK_SCHED);
}
#endif
