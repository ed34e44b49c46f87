/* SPDX-License-Identifier: MIT */
/*
 * conf.c - the environment: the four variables, separated by lines. Whatever stands there, the settings are
 * usable.
 * Covers: src/sched/core/conf.c
 */
#include <gort.h>

#include <signal.h>

#include "fuzz.h"
#include "sched/core/conf.h"

FUZZ("conf")
{
    static const char *const names[] = {"GORT_MAXPROCS", "GORT_STACK", "GORT_SIGNAL", "GORT_DEBUG"};
    char text[FUZZ_MOST + 1];
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char *at = text;
    for (int i = 0; i < 4; i++) {
        char *end = at ? strchr(at, '\n') : NULL;
        if (end)
            *end = '\0';
        if (at)
            setenv(names[i], at, 1);
        else
            unsetenv(names[i]);
        at = end ? end + 1 : NULL;
    }
    struct gort__conf c;
    CHECK_EQ(gort__conf_load(&c, NULL), 0);
    CHECK(c.maxprocs >= 1 && c.maxprocs <= GORT_MAXPROCS_MAX);
    CHECK(c.stack_size >= GORT_CONF_STACK_MIN && c.stack_size <= GORT_CONF_STACK_MAX);
    CHECK(c.signal > 0 && c.signal <= SIGRTMAX && c.signal != SIGKILL && c.signal != SIGSEGV);
    CHECK(c.idle_ms >= 0 && c.schedtrace_ms >= 0);
    for (int i = 0; i < 4; i++)
        unsetenv(names[i]);
    return 0;
}
