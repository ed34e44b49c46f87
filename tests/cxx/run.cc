// SPDX-License-Identifier: MIT
//
// run.cc - gort from C++: the headers compile, a run works, lambdas without captures are functions.
// (That each header compiles alone and without a warning is the build target header_check.)
// Covers: include/gort.h include/gort/run.h include/gort/version.h
#include <gort.h>

#include <atomic>

#include "test.h"

TEST(runs)
{
    int seven = 7;
    CHECK_EQ(gort_run([](void *arg) { return *static_cast<int *>(arg); }, &seven), 7);
}

static std::atomic<int> ran;

TEST(spawns)
{
    int result = gort_run(
        [](void *) {
            for (int i = 0; i < 100; i++)
                CHECK_EQ(gort_go([](void *) { ran++; }, nullptr), 0);
            while (ran < 100)
                (void)!gort_yield();
            return 0;
        },
        nullptr);
    CHECK_EQ(result, 0);
    CHECK_EQ(ran.load(), 100);
}

TEST(version)
{
    CHECK_STR(gort_version(), GORT_VERSION_STRING);
}
