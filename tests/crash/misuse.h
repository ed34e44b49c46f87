/* SPDX-License-Identifier: MIT */
/* misuse.h - a call that must not be made like this: one line that says what and who, the dump, abort. */
#ifndef GORT_TEST_MISUSE_H
#define GORT_TEST_MISUSE_H

#include <gort.h>

#include "base/compiler.h" /* GORT_ASAN */
#include "test.h"

static int (*chosen)(void);

static void call_chosen(void *unused)
{
    (void)unused;
    chosen();
}

/* In a goroutine with a name, so that the message can tell it. */
static int run_chosen(void *unused)
{
    gort_attr attr = {.name = "culprit"};
    gort_wg never = {0};
    gort_wg_add(&never, 1);
    if (gort_go_with(&attr, call_chosen, unused))
        return 1;
    return gort_wg_wait(&never);
}

/* Only then does a duration taken for a deadline lie more than a minute before the start of the run. */
static __attribute__((unused)) void await_uptime(void)
{
    gort_sleep_until(70 * GORT_SEC);
}

#define WHO "\\[goroutine [0-9]+ \\(culprit\\)\\]$\ngoroutine 1 \\(main\\)"

/* MISUSE(name, message) { the call }: dies with the message, the goroutine and the dump. */
#define MISUSE(case_name, message)                                                                           \
    static int misuse_##case_name(void);                                                                     \
    TEST(case_name, .crash = "fatal: " message ".*" WHO)                                                     \
    {                                                                                                        \
        chosen = misuse_##case_name;                                                                         \
        gort_run(run_chosen, NULL);                                                                          \
    }                                                                                                        \
    static int misuse_##case_name(void)

/* FREED(name, message) { the call }: the use of what was freed. */
#if GORT_ASAN /* it comes first, and tells where */
#define FREED(case_name, line)                                                                               \
    static int misuse_##case_name(void);                                                                     \
    TEST(case_name, .crash = "ERROR: AddressSanitizer: use-after-poison", .status = 1)                       \
    {                                                                                                        \
        chosen = misuse_##case_name;                                                                         \
        gort_run(run_chosen, NULL);                                                                          \
    }                                                                                                        \
    static int misuse_##case_name(void)
#else
#define FREED(case_name, line) MISUSE(case_name, line)
#endif

#endif
