/* SPDX-License-Identifier: MIT */
/*
 * words.c - the small calls that tell things: errors in words, the version.
 * Covers: src/sched/core/self.c
 */
#include "scenario/waiting.h"

TEST(errors_have_words)
{
    static const int known[] = {0, EBUSY, ESRCH, ECANCELED, ETIMEDOUT, EAGAIN, EPIPE, ENOENT};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CHECK_STR(gort_strerror(-known[i]), gort_strerror(known[i]));
        for (size_t k = 0; k < i; k++)
            CHECK(strcmp(gort_strerror(known[i]), gort_strerror(known[k])) != 0);
    }
    CHECK_STR(gort_strerror(99999), "unknown error");
    CHECK_STR(gort_strerror(INT32_MIN), "unknown error");
    CHECK(strlen(gort_version()) > 0);
}
