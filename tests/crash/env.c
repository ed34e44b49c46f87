/* SPDX-License-Identifier: MIT */
/*
 * env.c - bad values in the environment are said once in a process and ignored.
 * Covers: src/sched/core/conf.c
 */
#include <gort.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

static int ask(void *unused)
{
    (void)unused;
    return gort_maxprocs(0);
}

/* Two runs, and what they wrote to standard error: each of the words once. */
static void check_said_once(const char *a, const char *b)
{
    static char text[8192];
    int saved = dup(2), file = memfd_create("stderr", 0);
    CHECK(saved >= 0 && file >= 0);
    dup2(file, 2);
    int first = gort_run(ask, NULL), second = gort_run(ask, NULL);
    dup2(saved, 2);
    ssize_t n = pread(file, text, sizeof text - 1, 0);
    CHECK_GE(n, 0);
    text[n] = '\0';
    CHECK_GE(first, 1);
    CHECK_EQ(first, second);
    const char *words[] = {a, b};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(text, words[i]);
        CHECK_MSG(at, "nothing about %s in: %s", words[i], text);
        CHECK_MSG(!strstr(at + 1, words[i]), "%s is said twice: %s", words[i], text);
    }
    CHECK_MSG(strstr(text, "ignored"), "%s", text);
}

TEST(maxprocs, .env = "GORT_MAXPROCS=many")
{
    check_said_once("GORT_MAXPROCS", "many");
}

TEST(maxprocs_zero, .env = "GORT_MAXPROCS=0")
{
    check_said_once("GORT_MAXPROCS", "gort: ");
}

TEST(maxprocs_with_a_tail, .env = "GORT_MAXPROCS=2x")
{
    check_said_once("GORT_MAXPROCS", "2x");
}

TEST(debug, .env = "GORT_DEBUG=idle=50,nonsense=1,preempt=maybe")
{
    check_said_once("nonsense", "maybe");
}

TEST(stack, .env = "GORT_STACK=huge GORT_SIGNAL=KILL")
{
    check_said_once("GORT_STACK", "GORT_SIGNAL");
}
