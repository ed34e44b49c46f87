// SPDX-License-Identifier: MIT
//
// go.cc - GORT_GO from C++: arguments arrive with their signs and types; captureless lambdas are functions; exceptions.
// (What must not compile is in tests/compile.)
// Covers: include/gort/typed.h src/sched/core/spawn.c src/sched/core/gmain.c src/sched/core/schedule.c
#include <gort.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>

#include "test.h"

static std::atomic<int> ran;

enum plain { RED = 7 };
enum class scoped : short { deep = -3 };

static void take0()
{
    ran++;
}
static void take2(int a, const char *b)
{
    CHECK_EQ(a, -5);
    CHECK_STR(b, "text");
    ran++;
}
static int take4(signed char a, plain b, scoped c, unsigned short d)
{
    CHECK_EQ(a, -128);
    CHECK(b == RED && c == scoped::deep);
    CHECK_EQ(d, 65535);
    ran++;
    return 1;
}
static void take6(int a, int64_t b, bool c, void *d, size_t e, void (*f)())
{
    CHECK_EQ(a, INT32_MIN);
    CHECK_EQ(b, -1); // widened with its sign
    CHECK(c && d == nullptr && e == SIZE_MAX && f == take0);
    ran++;
}
namespace
{
template <typename T> void take_template(T a)
{
    CHECK_EQ(a, 9);
    ran++;
}
} // namespace

TEST_GO(typed_arguments_arrive, 0, "1,4")
{
    const char *text = "text";
    CHECK_EQ(GORT_GO(take0), 0);
    CHECK_EQ(GORT_GO(take2, -5, text), 0);
    CHECK_EQ(
        GORT_GO(take4, static_cast<signed char>(-128), RED, scoped::deep, static_cast<unsigned short>(65535)),
        0);
    CHECK_EQ(GORT_GO(take6, INT32_MIN, -1, true, nullptr, SIZE_MAX, take0), 0);
    CHECK_EQ(GORT_GO(take_template<long>, 9), 0);
    auto lambda = [](int a) {
        CHECK_EQ(a, 3);
        ran++;
    };
    CHECK_EQ(GORT_GO(+lambda, 3), 0);
    while (ran < 6)
        gort_yield();
}

struct job {
    char name[40];
    long number;
};

TEST_GO(copies_arrive)
{
    job j = {"a job", 42};
    auto check = [](void *arg) {
        const job *copy = static_cast<job *>(arg);
        CHECK_STR(copy->name, "a job");
        CHECK_EQ(copy->number, 42);
        ran++;
    };
    CHECK_EQ(gort_go_copy(check, &j, sizeof j), 0);
    std::memset(&j, 0xee, sizeof j);
    while (ran < 1)
        gort_yield();
}

// C++ keeps exceptions that are being handled in thread-local data; but a goroutine may wait in a catch block, or in a destructor that
// runs because of one, and go on on another thread.
struct slow_guard {
    int *uncaught;
    ~slow_guard()
    {
        gort_yield();
        *uncaught = std::uncaught_exceptions();
        gort_yield();
    }
};

static void handler(int n)
{
    for (int i = 0; i < 100; i++) {
        int uncaught = -1;
        try {
            slow_guard g{&uncaught};
            throw n;
        } catch (int first) {
            gort_yield();
            CHECK_EQ(first, n);
            CHECK_EQ(uncaught, 1);
            CHECK_EQ(std::uncaught_exceptions(), 0);
            try {
                throw std::runtime_error(std::to_string(n));
            } catch (std::exception &second) {
                gort_sleep(n % 3 * GORT_US);
                CHECK_EQ(std::stoi(second.what()), n);
            }
            try {
                gort_yield();
                throw; // the first one
            } catch (int again) {
                CHECK_EQ(again, n);
            }
        }
        CHECK(!std::current_exception());
    }
    ran++;
}

static std::atomic<int> left;
static std::exception_ptr lost[20]; // gort_exit runs no destructors: else the leak checker finds them

static void leave_in_a_catch_block()
{
    try {
        throw 1;
    } catch (int) {
        lost[left++] = std::current_exception();
        gort_exit();
    }
}

static void find_no_exception()
{
    CHECK(!std::current_exception());
    ran++;
}

TEST_GO(catch_blocks_may_wait, 0, "1,2,4")
{
    for (int i = 0; i < 20; i++)
        CHECK_EQ(GORT_GO(handler, i), 0);
    while (gort_count() > 1)
        gort_yield();
    CHECK_EQ(ran.load(), 20);
}

TEST_GO(an_exception_ends_with_its_goroutine, 0, "1,2")
{
    for (int i = 0; i < 20; i++)
        CHECK_EQ(i % 2 ? GORT_GO(leave_in_a_catch_block) : GORT_GO(find_no_exception), 0);
    while (gort_count() > 1)
        gort_yield();
    CHECK_EQ(ran.load(), 10);
}

// Exceptions and destructors stay within their goroutine, with yields around them.
struct guard {
    ~guard()
    {
        ran++;
    }
};

static void thrower(int n)
{
    guard g;
    gort_yield();
    try {
        guard inner;
        gort_yield();
        if (n % 2)
            throw n;
    } catch (int caught) {
        CHECK_EQ(caught, n);
        ran++;
    }
}

TEST_GO(exceptions_stay_in_their_goroutine, 0, "1")
{
    for (int i = 0; i < 20; i++)
        CHECK_EQ(GORT_GO(thrower, i), 0);
    while (gort_count() > 1)
        gort_yield();
    CHECK_EQ(ran.load(), 50);
}
