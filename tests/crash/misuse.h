/* SPDX-License-Identifier: MIT */
/* misuse.h - a call that must not be made like this: one line that says what and who, the dump, abort. */
#ifndef GORT_TEST_MISUSE_H
#define GORT_TEST_MISUSE_H

#include <gort.h>

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

#endif
