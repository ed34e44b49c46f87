/* SPDX-License-Identifier: MIT */
/*
 * fmt.c - formatting without stdio says what snprintf says, stops at the end of the buffer, and writes all.
 * Covers: src/base/fmt.c
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fmt.h"
#include "test.h"

#define SAME(...)                                                                                            \
    do {                                                                                                     \
        char ours[256], theirs[256];                                                                         \
        size_t n = gort__fmt(ours, sizeof ours, __VA_ARGS__);                                                \
        CHECK_EQ(n, snprintf(theirs, sizeof theirs, __VA_ARGS__));                                           \
        CHECK_STR(ours, theirs);                                                                             \
    } while (0)

TEST(says_what_snprintf_says)
{
    SAME("plain");
    SAME("%s|%s", "", "text");
    SAME("%c%c", 'a', '\n');
    SAME("%d %d %d %d", 0, -1, INT_MAX, INT_MIN);
    SAME("%u %u", 0u, UINT_MAX);
    SAME("%ld %ld %lu", LONG_MAX, LONG_MIN, ULONG_MAX);
    SAME("%lld %lld %llu", LLONG_MAX, LLONG_MIN, ULLONG_MAX);
    SAME("%zu", SIZE_MAX);
    SAME("%x %lx", 0xdeadbeefu, 0x123456789abcdefUL);
    SAME("%p", (void *)&errno);
    SAME("100%%");
    SAME("[%5d] [%-5d] [%1d] [%12u] [%-12lu]", -42, -42, 12345, 7u, 7UL);
    SAME("[%6s] [%-6s] [%2s]", "abc", "abc", "abc");
}

TEST(knows_null_and_leaves_the_unknown)
{
    char buf[64];
    const char *volatile none = NULL;
    gort__fmt(buf, sizeof buf, "%s", none);
    CHECK_STR(buf, "(null)");
    const char *volatile format = "a%"; /* volatile: the compiler would refuse it */
    size_t (*fmt)(char *, size_t, const char *, ...) = gort__fmt;
    CHECK_EQ(fmt(buf, sizeof buf, format), 1);
    CHECK_STR(buf, "a");
    format = "%q";
    CHECK_EQ(fmt(buf, sizeof buf, format), 1);
    CHECK_STR(buf, "q");
}

TEST(stops_at_the_end)
{
    for (size_t size = 0; size < 20; size++) {
        char buf[24];
        memset(buf, '#', sizeof buf);
        size_t n = gort__fmt(buf, size, "%s %d", "0123456789", 123456);
        size_t want = size == 0 ? 0 : size - 1 < 17 ? size - 1 : 17;
        CHECK_EQ(n, want);
        if (size)
            CHECK_EQ(buf[n], '\0');
        for (size_t i = size ? n + 1 : 0; i < sizeof buf; i++)
            CHECK_EQ(buf[i], '#');
        CHECK(!size || strncmp(buf, "0123456789 123456", n) == 0);
    }
}

static int pipe_fd[2];

static void *reader(void *arg)
{
    char buf[1000];
    long sum = 0;
    for (ssize_t n; (n = read(pipe_fd[0], buf, sizeof buf)) > 0;)
        sum += n;
    *(long *)arg = sum;
    return NULL;
}

TEST(writes_all_of_it)
{
    static char big[1 << 20]; /* far more than a pipe holds */
    pthread_t thread;
    long sum = 0;
    CHECK_EQ(pipe(pipe_fd), 0);
    CHECK_EQ(pthread_create(&thread, NULL, reader, &sum), 0);
    errno = 4711;
    gort__fmt_write(pipe_fd[1], big, sizeof big);
    gort__fmt_print(pipe_fd[1], "%d", 123);
    close(pipe_fd[1]);
    pthread_join(thread, NULL);
    CHECK_EQ(sum, (long)sizeof big + 3);
    gort__fmt_write(-1, "nowhere", 7);
    CHECK_EQ(errno, 4711);
}
