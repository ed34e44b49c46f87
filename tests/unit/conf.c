/* SPDX-License-Identifier: MIT */
/*
 * conf.c - defaults, gort_config and the environment: what counts, what is refused, what is said.
 * Covers: src/sched/core/conf.c
 */
#include "sched/core/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/force.h"
#include "os/os.h"
#include "test.h"

static char said[4096]; /* what the last load wrote to standard error */

static void forget_environment(void)
{
    unsetenv("GORT_MAXPROCS");
    unsetenv("GORT_STACK");
    unsetenv("GORT_SIGNAL");
    unsetenv("GORT_DEBUG");
}

static int load(struct gort__conf *c, const gort_config *user)
{
    int ends[2], keep = dup(2);
    CHECK_EQ(pipe(ends), 0);
    dup2(ends[1], 2);
    close(ends[1]);
    errno = 4711;
    int result = gort__conf_load(c, user), error = errno;
    dup2(keep, 2);
    close(keep);
    size_t n = 0;
    for (ssize_t got; (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0;)
        n += (size_t)got;
    said[n] = 0;
    close(ends[0]);
    CHECK_EQ(error, 4711);
    return result;
}

/* Loads with one variable set; NULL unsets it. */
static struct gort__conf with(const char *name, const char *value)
{
    struct gort__conf c;
    forget_environment();
    if (value)
        setenv(name, value, 1);
    CHECK_EQ(load(&c, NULL), 0);
    return c;
}

TEST(defaults)
{
    struct gort__conf c = with("GORT_DEBUG", NULL);
    int cpus = gort__os_cpus();
    CHECK_EQ(c.maxprocs, cpus < GORT_MAXPROCS_MAX ? cpus : GORT_MAXPROCS_MAX);
    CHECK(!c.maxprocs_set);
    CHECK_EQ(c.stack_size, 256 * 1024);
    CHECK_EQ(c.signal, SIGURG);
    CHECK_EQ(c.max_threads, 10000);
    CHECK_EQ(c.idle_ms, 5000);
    CHECK_EQ(c.schedtrace_ms, 0);
    CHECK(!c.threads_fatal && !c.fuzz && !c.preempt_off && !c.scheddetail && !c.stackcensus && !c.noguard &&
          !c.nomembarrier);
    CHECK_STR(said, "");
}

TEST(user_values)
{
    struct gort__conf c;
    gort_config user = {.maxprocs = 3, .signal = SIGUSR1, .max_threads = 50, .stack_size = 64 * 1024};
    forget_environment();
    CHECK_EQ(load(&c, &user), 0);
    CHECK_EQ(c.maxprocs, 3);
    CHECK(c.maxprocs_set);
    CHECK_EQ(c.signal, SIGUSR1);
    CHECK_EQ(c.max_threads, 50);
    CHECK_EQ(c.stack_size, 64 * 1024);
    user.maxprocs = INT_MAX;
    CHECK_EQ(load(&c, &user), 0);
    CHECK_EQ(c.maxprocs, GORT_MAXPROCS_MAX);
}

TEST(bad_user_values)
{
    const gort_config bad[] = {
        {.maxprocs = -1},         {.max_threads = -1}, {.stack_size = ((size_t)1 << 30) + 1},
        {.stack_size = SIZE_MAX}, {.signal = -1},      {.signal = INT_MAX},
        {.signal = SIGKILL},      {.signal = SIGSTOP}, {.signal = SIGSEGV},
        {.signal = SIGABRT},      {.signal = 32}, /* libc's own */
        {.signal = 65},           {.reserved_int = 1}, {.reserved = {[11] = 1}},
    };
    forget_environment();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct gort__conf c = {.maxprocs = 77};
        CHECK_MSG(load(&c, &bad[i]) == -EINVAL, "bad value %zu was taken", i);
        CHECK_EQ(c.maxprocs, 77);
        CHECK_STR(said, "");
    }
    struct gort__conf c;
    gort_config edge = {.stack_size = 1}; /* as in gort_attr: the smallest that there is */
    CHECK_EQ(load(&c, &edge), 0);
    CHECK_EQ(c.stack_size, 64 * 1024);
    edge.stack_size = 64 * 1024 + 1;
    CHECK_EQ(load(&c, &edge), 0);
    CHECK_EQ(c.stack_size, 64 * 1024 + 1);
    edge.stack_size = (size_t)1 << 30;
    CHECK_EQ(load(&c, &edge), 0);
}

TEST(environment_wins)
{
    struct gort__conf c;
    gort_config user = {.maxprocs = 3, .signal = SIGUSR1, .stack_size = 64 * 1024};
    forget_environment();
    setenv("GORT_MAXPROCS", "7", 1);
    setenv("GORT_SIGNAL", "USR2", 1);
    setenv("GORT_STACK", "1M", 1);
    CHECK_EQ(load(&c, &user), 0);
    CHECK_EQ(c.maxprocs, 7);
    CHECK(c.maxprocs_set);
    CHECK_EQ(c.signal, SIGUSR2);
    CHECK_EQ(c.stack_size, 1 << 20);
    user.maxprocs = -1; /* still a bug of the program */
    CHECK_EQ(load(&c, &user), -EINVAL);
}

TEST(maxprocs)
{
    const char *good[] = {"1", "2", "1024", "0064"},
               *bad[] = {"0", "1025", "-1", "+1", " 1", "1 ", "abc", "1.5", "0x10", "18446744073709551617"};
    const int values[] = {1, 2, 1024, 64};
    for (size_t i = 0; i < 4; i++) {
        struct gort__conf c = with("GORT_MAXPROCS", good[i]);
        CHECK_EQ(c.maxprocs, values[i]);
        CHECK(c.maxprocs_set);
        CHECK_STR(said, "");
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "gort: GORT_MAXPROCS=%s is not a number from 1 to 1024: ignored\n",
                 bad[i]);
        CHECK(!with("GORT_MAXPROCS", bad[i]).maxprocs_set);
        CHECK_STR(said, text);
    }
    CHECK(!with("GORT_MAXPROCS", "").maxprocs_set);
    CHECK_STR(said, "");
}

TEST(stack)
{
    const char *bad[] = {"65535", "63K", "16K", "1025M", "2G",   "17179869185G", "18446744073709551616",
                         "K",     "1KB", "1T",  "0",     "-64K", "64 K",         "6.5M"};
    CHECK_EQ(with("GORT_STACK", "65536").stack_size, 65536);
    CHECK_EQ(with("GORT_STACK", "64K").stack_size, 65536);
    CHECK_EQ(with("GORT_STACK", "100000").stack_size, 100000);
    CHECK_EQ(with("GORT_STACK", "8m").stack_size, 8 << 20);
    CHECK_EQ(with("GORT_STACK", "1G").stack_size, 1 << 30);
    CHECK_STR(said, "");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "gort: GORT_STACK=%s is not a size from 64K to 1G: ignored\n", bad[i]);
        CHECK_EQ(with("GORT_STACK", bad[i]).stack_size, 256 * 1024);
        CHECK_STR(said, text);
    }
}

TEST(signals)
{
    const char *bad[] = {"0",
                         "9",
                         "KILL",
                         "SIGSEGV",
                         "11",
                         "19",
                         "32",
                         "33",
                         "65",
                         "SIG",
                         "SIGSIGURG",
                         "urg",
                         "URGENT",
                         "RTMIN+31",
                         "RTMIN-1",
                         "RTMAX+1",
                         "RTMIN+",
                         "RTMINX",
                         "99999999999999999999",
                         "-1"};
    char number[16];
    snprintf(number, sizeof number, "%d", SIGUSR1);
    CHECK_EQ(with("GORT_SIGNAL", number).signal, SIGUSR1);
    CHECK_EQ(with("GORT_SIGNAL", "URG").signal, SIGURG);
    CHECK_EQ(with("GORT_SIGNAL", "SIGURG").signal, SIGURG);
    CHECK_EQ(with("GORT_SIGNAL", "SIGVTALRM").signal, SIGVTALRM);
    CHECK_EQ(with("GORT_SIGNAL", "RTMIN").signal, SIGRTMIN);
    CHECK_EQ(with("GORT_SIGNAL", "SIGRTMIN+3").signal, SIGRTMIN + 3);
    CHECK_EQ(with("GORT_SIGNAL", "RTMAX-1").signal, SIGRTMAX - 1);
    CHECK_EQ(with("GORT_SIGNAL", "64").signal, 64);
    CHECK_STR(said, "");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_MSG(with("GORT_SIGNAL", bad[i]).signal == SIGURG, "%s was taken", bad[i]);
        CHECK_MSG(strstr(said, "is not a signal that gort can use: ignored\n"), "%s: said %s", bad[i], said);
    }
}

TEST(debug_switches)
{
    struct gort__conf c = with("GORT_DEBUG", "schedtrace=1000,scheddetail=1,preempt=off,schedfuzz=42,idle=7,"
                                             "stackcensus=1,noguard=1,nomembarrier=1");
    CHECK_STR(said, "");
    CHECK_EQ(c.schedtrace_ms, 1000);
    CHECK(c.scheddetail && c.preempt_off && c.fuzz && c.stackcensus && c.noguard && c.nomembarrier);
    CHECK_EQ(c.fuzz_seed, 42);
    CHECK_EQ(c.idle_ms, 7);
    CHECK(gort__os_force.no_guard_install && gort__os_force.no_membarrier);
    c = with("GORT_DEBUG", "preempt=on,scheddetail=0,,idle=0,");
    CHECK_STR(said, "");
    CHECK(!c.preempt_off && !c.scheddetail && !c.fuzz);
    CHECK_EQ(c.idle_ms, 0);
    CHECK(gort__os_force.no_guard_install == test_under_valgrind() && !gort__os_force.no_membarrier);
    CHECK(gort__os_force.no_altstack == test_under_valgrind());
    CHECK(with("GORT_DEBUG", "threads=fatal").threads_fatal);
    CHECK(!with("GORT_DEBUG", "threads=fatal,threads=wait").threads_fatal);
    CHECK(with("GORT_DEBUG", "preempt=off,preempt=on").preempt_off == false); /* the last one counts */
}

TEST(seeds)
{
    CHECK(with("GORT_DEBUG", "schedfuzz=0").fuzz);
    CHECK_EQ(with("GORT_DEBUG", "schedfuzz=0").fuzz_seed, 0);
    CHECK_EQ(with("GORT_DEBUG", "schedfuzz=0xDeadBeef").fuzz_seed, 0xdeadbeef);
    CHECK(with("GORT_DEBUG", "schedfuzz=18446744073709551615").fuzz_seed == UINT64_MAX);
    CHECK(with("GORT_DEBUG", "schedfuzz=0xffffffffffffffff").fuzz_seed == UINT64_MAX);
    CHECK_STR(said, "");
    const char *bad[] = {"schedfuzz=18446744073709551616",
                         "schedfuzz=0x10000000000000000",
                         "schedfuzz=0x",
                         "schedfuzz=",
                         "schedfuzz",
                         "schedfuzz=-1",
                         "schedfuzz=ff"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "gort: GORT_DEBUG: %s is not a number of 64 bits: ignored\n", bad[i]);
        CHECK(!with("GORT_DEBUG", bad[i]).fuzz);
        CHECK_STR(said, text);
    }
}

TEST(bad_switches)
{
    struct gort__conf c = with(
        "GORT_DEBUG", "idle=-1,foo=1,scheddetail=2,preempt=1,threads=1,=,idle,schedtrace=86400001,noguard=1");
    CHECK(c.noguard && !c.scheddetail && !c.preempt_off);
    CHECK_EQ(c.idle_ms, 5000);
    CHECK_STR(said,
              "gort: GORT_DEBUG: idle=-1 is not a number of milliseconds from 0 to 86400000: ignored\n"
              "gort: GORT_DEBUG: foo=1 is not known: ignored\n"
              "gort: GORT_DEBUG: scheddetail=2 is not 0 or 1: ignored\n"
              "gort: GORT_DEBUG: preempt=1 is not on or off: ignored\n"
              "gort: GORT_DEBUG: threads=1 is not fatal or wait: ignored\n"
              "gort: GORT_DEBUG: = is not known: ignored\n"
              "gort: GORT_DEBUG: idle is not a number of milliseconds from 0 to 86400000: ignored\n"
              "gort: GORT_DEBUG: schedtrace=86400001 is not a number of milliseconds from 0 to 86400000: "
              "ignored\n");
}

TEST(said_once)
{
    with("GORT_DEBUG", "foo=1,foo=1");
    CHECK_STR(said, "gort: GORT_DEBUG: foo=1 is not known: ignored\n");
    with("GORT_DEBUG", "foo=1");
    CHECK_STR(said, "");
    with("GORT_DEBUG", "foo=2");
    CHECK_STR(said, "gort: GORT_DEBUG: foo=2 is not known: ignored\n");
    for (int i = 0; i < 200; i++) { /* no end of different mistakes: it falls silent at some point */
        char text[32];
        snprintf(text, sizeof text, "bar=%d", i);
        with("GORT_DEBUG", text);
    }
    CHECK_STR(said, "");
}

TEST(long_values)
{
    static char text[100000];
    memset(text, '9', sizeof text - 1);
    CHECK(!with("GORT_MAXPROCS", text).maxprocs_set);
    CHECK_LT(strlen(said), 300);
    CHECK(strstr(said, "999... is not a number from 1 to 1024: ignored\n"));
    with("GORT_DEBUG", text);
    CHECK_LT(strlen(said), 300);
}
