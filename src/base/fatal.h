/* SPDX-License-Identifier: MIT */
/*
 * fatal.h - how gort gives up: `fatal` for a broken contract of the caller, `throw` for a broken
 * invariant of our own, `warn` for something that the user should know and the run survives.
 */
#ifndef GORT_SRC_BASE_FATAL_H
#define GORT_SRC_BASE_FATAL_H

#include "base/compiler.h"

/* One line with the goroutine's id and name, the dump of all goroutines, abort. Only the first of
 * several threads that arrive prints; the others wait for the end. Callable from anywhere. */
__attribute__((noreturn)) void gort__fatal(const char *fmt, ...) GORT_PRINTF(1, 2) GORT_COLD;
__attribute__((noreturn)) void gort__throw(const char *fmt, ...) GORT_PRINTF(1, 2) GORT_COLD;
/* "gort: ..." on standard error. */
void gort__warn(const char *fmt, ...) GORT_PRINTF(1, 2) GORT_COLD;

/* At the top of a public call: a pointer that the caller must give (or a condition on one). `call` is what
 * the program calls, `what` is what should have been given. A compare and a branch that is never taken. */
#define GORT_NEED(call, what, p)                                                                             \
    do {                                                                                                     \
        if (GORT_UNLIKELY(!(p)))                                                                             \
            gort__fatal("%s: NULL %s", call, what);                                                          \
    } while (0)

/* What upper rooms know about the caller and about all goroutines; either may be NULL. */
struct gort__fatal_hooks {
    size_t (*who)(char *buf, size_t size); /* "goroutine 7 (worker)" or 0 for a plain thread */
    void (*dump)(int fd);
};
extern struct gort__fatal_hooks gort__fatal_hooks;

/* A condition that our own code must keep: checked in builds with GORT_CHECKS. */
#if GORT_CHECKS
#define gort__check(cond)                                                                                    \
    do {                                                                                                     \
        if (GORT_UNLIKELY(!(cond)))                                                                          \
            gort__throw("check failed: %s (%s:%d)", #cond, __FILE__, __LINE__);                              \
    } while (0)
#else
#define gort__check(cond) ((void)sizeof((cond) ? 1 : 0))
#endif

#endif
