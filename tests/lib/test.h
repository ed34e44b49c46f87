/* SPDX-License-Identifier: MIT */
/*
 * test.h - the test kit: a program is a subject, a TEST is a case, a case is a process.
 *
 *     TEST(adds_up) { CHECK_EQ(1 + 1, 2); }
 *     TEST(steals, .procs = "1,2,4,64", .fuzz = true) { ... }
 *     TEST(null_function, .crash = "fatal: .*NULL function") { gort_run(NULL, NULL); }
 *     TEST_GO(yields) { gort_yield(); }             // the body is the main goroutine of a run
 *
 * The program lists its cases with --list and runs the one named on its command line: exit status 0 passed,
 * 1 failed, 77 skipped. tools/test finds the programs, runs the matrix of each case and keeps the time.
 *
 * Everything here may be called from goroutines, plain threads and forked children. A failed CHECK ends the
 * whole process at once, whoever calls it.
 */
#ifndef GORT_TEST_H
#define GORT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * All zero is a plain case: one run, 60 seconds, must exit with 0. C++ wants the fields in this order.
 *
 * No case has longer than 60 seconds, or 180 under an emulator or valgrind, to pass or to be called hung.
 * Only TEST_TIMEOUT_SCALE raises that. A case that needs longer is too big: make it smaller.
 */
struct test_options {
    int timeout; /* Seconds, fewer than 60, to notice a hang earlier. Longer where programs run slower. */
    const char *procs;  /* One run for each of these values of GORT_MAXPROCS. */
    bool fuzz;          /* One run more with GORT_DEBUG=schedfuzz=SEED. */
    bool serial;        /* Nothing else runs beside it: for cases that measure time. */
    const char *env;    /* "NAME=value OTHER=value": set before the process starts. */
    const char *expect; /* Regular expressions, one a line; the output must match each of them. */
    const char *crash; /* The same, and the process must die: by SIGABRT unless the next two say otherwise. */
    int signal;        /* With .crash: the signal that ends it. */
    int status;        /* With .crash: the exit status that ends it. */
    bool soak;         /* It runs for SOAK_SECONDS, and has that much longer. */
    const char *native; /* Not under an emulator, for this reason; see TEST_FORKS. */
};

/*
 * For .native of a case that forks or spawns while the program has several threads. qemu-user has locks of
 * its own that another thread may hold at that moment. In the child nobody unlocks them, and it hangs before
 * it execs. A vfork is a fork there, so that posix_spawn and gort_spawn are no better.
 */
#define TEST_FORKS "a forked child of a program with threads can hang in qemu-user"

struct test_case {
    const char *name, *file;
    int line;
    void (*fn)(void);
    const struct test_options *options;
    struct test_case *next;
};

void test_add(struct test_case *, const char *name, const char *file, int line, void (*fn)(void),
              const struct test_options *);

#define TEST(case_name, ...)                                                                                 \
    static void test_run_##case_name(void);                                                                  \
    __attribute__((constructor)) static void test_add_##case_name(void)                                      \
    {                                                                                                        \
        static const struct test_options options = {__VA_ARGS__};                                            \
        static struct test_case entry;                                                                       \
        test_add(&entry, #case_name, __FILE__, __LINE__, test_run_##case_name, &options);                    \
    }                                                                                                        \
    static void test_run_##case_name(void)

/* A case whose body runs as the main goroutine. The file includes <gort.h>. */
#define TEST_GO(case_name, ...)                                                                              \
    static void test_go_##case_name(void);                                                                   \
    static int test_main_##case_name(void *unused)                                                           \
    {                                                                                                        \
        (void)unused;                                                                                        \
        test_go_##case_name();                                                                               \
        return 0;                                                                                            \
    }                                                                                                        \
    TEST(case_name, __VA_ARGS__)                                                                             \
    {                                                                                                        \
        CHECK_EQ(gort_run(test_main_##case_name, NULL), 0);                                                  \
    }                                                                                                        \
    static void test_go_##case_name(void)

/*
 * Checks. The comparing ones take integers and pointers, as 64-bit signed values, and print both sides;
 * floating point is refused, because it would be truncated: use CHECK, or CHECK_MSG to show the numbers.
 */
#define CHECK(cond)                                                                                          \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            test_fail(__FILE__, __LINE__, "CHECK(%s)", #cond);                                               \
    } while (0)
#define CHECK_MSG(cond, ...)                                                                                 \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            test_fail(__FILE__, __LINE__, __VA_ARGS__);                                                      \
    } while (0)
#define CHECK_EQ(a, b)  TEST_COMPARE(a, ==, b)
#define CHECK_NE(a, b)  TEST_COMPARE(a, !=, b)
#define CHECK_LT(a, b)  TEST_COMPARE(a, <, b)
#define CHECK_LE(a, b)  TEST_COMPARE(a, <=, b)
#define CHECK_GT(a, b)  TEST_COMPARE(a, >, b)
#define CHECK_GE(a, b)  TEST_COMPARE(a, >=, b)
#define CHECK_STR(a, b) test_check_str(__FILE__, __LINE__, #a, (a), #b, (b))

/*
 * Ends the process as skipped. The reason is for somebody who does not know gort: what is missing, and if it
 * can be had, how ("install libgc-dev and build again", "needs two CPUs").
 */
#define SKIP(...) test_skip(__FILE__, __LINE__, __VA_ARGS__)

__attribute__((noreturn, format(printf, 3, 4))) void test_fail(const char *file, int line, const char *fmt,
                                                               ...);
__attribute__((noreturn, format(printf, 3, 4))) void test_skip(const char *file, int line, const char *fmt,
                                                               ...);
/* A line on standard error, in one write. */
__attribute__((format(printf, 1, 2))) void test_log(const char *fmt, ...);

/* The seed of this process: TEST_SEED if set, else from the kernel; printed at its first use. */
uint64_t test_seed(void);
/* The next number of a generator; any starting state will do, test_seed() + i for the i-th worker. */
uint64_t test_random(uint64_t *state);

/* What this process has now, from /proc/self. Under an emulator they speak of the emulator. */
int test_thread_count(void);
int test_fd_count(void); /* Without the one that counting needs. */
int test_vma_count(void);
long test_rss_kb(void);

/* An option of a socket that is an int. */
int test_socket_option(int fd, int level, int name);

/*
 * n seconds in ns, longer where programs run slower: for bounds that only a bug exceeds. At most 5/6 of what
 * tools/test gives the case, so that the message of the check comes before the time-out.
 */
int64_t test_seconds(int n);

/* Polls until fn(arg) is true, with 1 ms of usleep between; false after about `seconds`. */
bool test_eventually(bool (*fn)(void *), void *arg, int seconds);

/* Where are we? For sizes that should shrink and facts that do not hold there. */
bool test_under_sanitizer(void);
bool test_under_valgrind(void);
bool test_under_emulator(void);
/* How many goroutines there can be at a time; a case that needs more is skipped. */
long test_most_goroutines(void);
/* n, divided where programs run slower (TEST_DIVISOR says by how much), but at least `least`. */
long test_scaled(long n, long least);
/* One more setting in GORT_DEBUG, for runs that start from now on. */
void test_debug(const char *setting);

/* The rest serves the macros above. */
void test_check_str(const char *file, int line, const char *a_text, const char *a, const char *b_text,
                    const char *b);

#ifdef __cplusplus
#define TEST_REFUSE_FLOAT(x) (void)0
#else
#define TEST_REFUSE_FLOAT(x)                                                                                 \
    _Static_assert(_Generic((x), float : 0, double : 0, long double : 0, default : 1),                       \
                   "this check takes integers and pointers; use CHECK for floating point")
#endif
#define TEST_COMPARE(a, op, b)                                                                               \
    do {                                                                                                     \
        TEST_REFUSE_FLOAT(a);                                                                                \
        TEST_REFUSE_FLOAT(b);                                                                                \
        long long test_a_ = (long long)(a), test_b_ = (long long)(b);                                        \
        if (!(test_a_ op test_b_))                                                                           \
            test_fail(__FILE__, __LINE__, "CHECK(%s %s %s): %lld (0x%llx) against %lld (0x%llx)", #a, #op,   \
                      #b, test_a_, (unsigned long long)test_a_, test_b_, (unsigned long long)test_b_);       \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
