/* SPDX-License-Identifier: MIT */
/*
 * atomic.c - each atomic operation does what it is called and returns what was there before; counted
 * references go away once.
 * Covers: src/base/atomic.h src/base/ref.h
 */
#include "base/atomic.h"
#include "base/ref.h"

#include <pthread.h>

#include "test.h"

#define THREADS 4

TEST(each_says_what_was_there)
{
    uint32_t word = 5, expected = 4;
    CHECK_EQ(gort__load(&word, ACQUIRE), 5);
    gort__store(&word, 6, RELEASE);
    CHECK_EQ(gort__xchg(&word, 12, ACQ_REL), 6);
    CHECK_EQ(gort__add(&word, 3, RELAXED), 12);
    CHECK_EQ(gort__sub(&word, 1, RELAXED), 15);
    CHECK_EQ(gort__or(&word, 1, RELAXED), 14);
    CHECK_EQ(gort__and(&word, 3, RELAXED), 15);
    CHECK_EQ(word, 3);
    CHECK(!gort__cas(&word, &expected, 9, SEQ_CST));
    CHECK_EQ(expected, 3);
    CHECK_EQ(word, 3);
    CHECK(gort__cas(&word, &expected, 9, SEQ_CST));
    CHECK_EQ(expected, 3);
    CHECK_EQ(word, 9);
}

TEST(clear_stays_within_its_words)
{
    uint64_t words[] = {1, 2, 3, 4};
    gort__clear(&words[1], 2 * sizeof *words);
    CHECK(words[0] == 1 && !words[1] && !words[2] && words[3] == 4);
    gort__clear(words, 0);
    CHECK_EQ(words[0], 1);
}

static void in_threads(void *(*fn)(void *))
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, fn, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static uint64_t sum, swapped;
static uint32_t bits;
static long rounds;

static void *work(void *number)
{
    uint32_t mine = 1u << (uintptr_t)number;
    for (long i = 0; i < rounds; i++) {
        gort__add(&sum, 3, RELAXED);
        gort__sub(&sum, 1, RELAXED);
        for (uint64_t was = gort__load(&swapped, RELAXED); !gort__cas(&swapped, &was, was + 1, RELAXED);)
            ;
        CHECK(!(gort__or(&bits, mine, RELAXED) & mine));
        CHECK(gort__and(&bits, ~mine, RELAXED) & mine);
    }
    return NULL;
}

TEST(nothing_is_lost_between_threads)
{
    rounds = test_scaled(200000, 2000);
    in_threads(work);
    CHECK_EQ(sum, 2 * THREADS * rounds);
    CHECK_EQ(swapped, THREADS * rounds);
    CHECK_EQ(bits, 0);
}

struct object {
    struct gort__ref ref;
    int destroyed;
};

static struct object object;

static void destroy(struct gort__ref *ref)
{
    CHECK(ref == &object.ref);
    object.destroyed++;
}

static void *use(void *unused)
{
    for (long i = 0; i < rounds; i++) {
        gort__ref_take(&object.ref);
        gort__ref_drop(&object.ref);
    }
    gort__ref_drop(&object.ref);
    return unused;
}

TEST(the_last_reference_destroys)
{
    rounds = test_scaled(200000, 2000);
    object.ref = (struct gort__ref){THREADS, destroy};
    in_threads(use);
    CHECK_EQ(object.destroyed, 1);
    CHECK_EQ(object.ref.n, 0);
}

TEST(the_last_reference_may_be_given_by_hand)
{
    object.ref = (struct gort__ref){1, destroy};
    gort__ref_take(&object.ref);
    CHECK(!gort__ref_give(&object.ref));
    CHECK(gort__ref_give(&object.ref));
    CHECK_EQ(object.destroyed, 0);
}
