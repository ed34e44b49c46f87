/* SPDX-License-Identifier: MIT */
/*
 * steal.c - the order in which a thief visits the other Ps: each once a round, from any of them first.
 * Covers: src/sched/threads/find.c
 *
 * The order is static in find.c, so the file is included; its one global symbol is defined here then and
 * the library's copy is not linked.
 */
#include "sched/threads/find.c" /* NOLINT(bugprone-suspicious-include) */

#include "test.h"

TEST(visits_each_once)
{
    struct gort__rand r;
    gort__rand_seed(&r, test_seed());
    for (uint32_t n = 1; n <= 64; n++) {
        uint64_t first = 0;
        uint32_t steps[64] = {0};
        for (int round = 0; round < 2000; round++) {
            uint32_t start, step;
            uint64_t seen = 0;
            steal_order(&r, n, &start, &step);
            CHECK_LT(start, n);
            first |= UINT64_C(1) << start;
            steps[step]++;
            for (uint32_t k = 0, i = start; k < n; k++, i = (i + step) % n) {
                CHECK_MSG(!(seen >> i & 1), "%u Ps, start %u, step %u: P %u comes twice", n, start, step, i);
                seen |= UINT64_C(1) << i;
            }
        }
        CHECK_EQ(first, n == 64 ? UINT64_MAX : (UINT64_C(1) << n) - 1);
        for (uint32_t step = 1; step < n; step++)
            CHECK_MSG(gcd(step, n) != 1 || steps[step], "%u Ps: step %u never comes", n, step);
    }
}

TEST(works_for_the_most_procs)
{
    struct gort__rand r;
    gort__rand_seed(&r, test_seed());
    static uint8_t seen[GORT_MAXPROCS_MAX];
    for (uint8_t round = 1; round <= 100; round++) {
        uint32_t start, step;
        steal_order(&r, GORT_MAXPROCS_MAX, &start, &step);
        for (uint32_t k = 0, i = start; k < GORT_MAXPROCS_MAX; k++, i = (i + step) % GORT_MAXPROCS_MAX) {
            CHECK_NE(seen[i], round);
            seen[i] = round;
        }
    }
}
