/* SPDX-License-Identifier: MIT */
/*
 * fatal.c - how gort gives up.
 *
 * Why: a program that broke a contract is told what, who and where everybody else was, once, even
 * if several threads break it at the same moment or the dump itself fails.
 * Invariants: (1) exactly one thread prints; (2) a failure while printing still ends in abort.
 * Threads: callable from anywhere; uses only write, nanosleep and abort.
 */
#include "base/fatal.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fmt.h"

struct gort__fatal_hooks gort__fatal_hooks;

static int dying; /* 0, then 1 while the first thread prints; 2 once the dump began */

static void say(const char *kind, const char *fmt, va_list args)
{
    char text[512], who[96];
    size_t n = gort__fmt(text, sizeof text, "gort: %s", kind);
    n += gort__fmt_v(text + n, sizeof text - n - 2, fmt, args);
    if (gort__fatal_hooks.who && gort__fatal_hooks.who(who, sizeof who))
        n += gort__fmt(text + n, sizeof text - n - 1, " [%s]", who);
    text[n++] = '\n';
    gort__fmt_write(STDERR_FILENO, text, n);
}

__attribute__((noreturn)) static void die(const char *kind, const char *fmt, va_list args)
{
    int first = 0;
    if (!gort__cas(&dying, &first, 1, ACQ_REL)) { /* pairs with itself: one winner */
        /* Somebody else is at it; if it is this very thread (a fault in the dump), stop now. */
        struct timespec second = {1, 0};
        if (gort__load(&dying, RELAXED) == 2)
            nanosleep(&second, NULL);
        else
            nanosleep(&second, NULL), nanosleep(&second, NULL);
        abort();
    }
    say(kind, fmt, args);
    gort__store(&dying, 2, RELAXED);
    if (gort__fatal_hooks.dump)
        gort__fatal_hooks.dump(STDERR_FILENO);
    abort();
}

void gort__fatal(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    die("fatal: ", fmt, args);
}

void gort__throw(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    die("internal error: ", fmt, args);
}

void gort__warn(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("", fmt, args);
    va_end(args);
}
