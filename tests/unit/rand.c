/* SPDX-License-Identifier: MIT */
/*
 * rand.c - the small generator: the same for the same seed, within bounds, and spread over them.
 * Covers: src/base/rand.h
 */
#include "base/rand.h"
#include "test.h"

TEST(replays)
{
    struct gort__rand a, b, c;
    int same = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        gort__rand_seed(&a, seed);
        gort__rand_seed(&b, seed);
        gort__rand_seed(&c, seed + 1);
        CHECK(a.state);
        for (int i = 0; i < 10; i++) {
            uint32_t x = gort__rand_next(&a);
            CHECK_EQ(x, gort__rand_next(&b));
            same += x == gort__rand_next(&c);
        }
    }
    CHECK_LT(same, 3); /* of 10,000 */
}

/* The one seed that splitmix64 turns into zero, on which xorshift would stay for ever. */
TEST(no_seed_is_stuck)
{
    struct gort__rand r;
    gort__rand_seed(&r, UINT64_C(0) - UINT64_C(0x9e3779b97f4a7c15));
    CHECK_NE(r.state, 0);
    uint32_t first = gort__rand_next(&r);
    CHECK(gort__rand_next(&r) != first || gort__rand_next(&r) != first);
}

TEST(below_is_below_and_reaches_all)
{
    struct gort__rand r;
    gort__rand_seed(&r, test_seed());
    for (uint32_t n = 1; n <= 64; n++) {
        uint32_t count[64] = {0};
        for (uint32_t i = 0; i < n * 1000; i++) {
            uint32_t x = gort__rand_below(&r, n);
            CHECK_LT(x, n);
            count[x]++;
        }
        for (uint32_t i = 0; i < n; i++)
            CHECK_MSG(count[i] > 700 && count[i] < 1300, "%u below %u came %u times in 1000", i, n, count[i]);
    }
    for (int i = 0; i < 1000; i++)
        CHECK_LT(gort__rand_below(&r, UINT32_MAX), UINT32_MAX);
}
