/* SPDX-License-Identifier: MIT */
/*
 * sanitize.h - telling ASan, TSan, LSan and valgrind about our stacks and switches.
 *
 * Why: each of them keeps a picture of the stack a thread runs on, and calls a goroutine switch a
 * bug unless it is announced. Without a sanitizer everything here is empty.
 */
#ifndef GORT_SRC_MEM_SANITIZE_H
#define GORT_SRC_MEM_SANITIZE_H

#include "base/compiler.h"

#if GORT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#if GORT_TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__has_include) && !GORT_ASAN && !GORT_TSAN
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define GORT_VALGRIND 1
#endif
#endif
#ifndef GORT_VALGRIND
#define GORT_VALGRIND 0
#endif

/* Whether the program runs under valgrind. */
static inline bool gort__sanitize_valgrind(void)
{
#if GORT_VALGRIND
    return RUNNING_ON_VALGRIND != 0;
#endif
    return false;
}

/* A new stack [lo, hi); the result identifies it. */
static inline uint64_t gort__sanitize_stack_register(char *lo, char *hi)
{
#if GORT_ASAN
    __lsan_register_root_region(lo, (size_t)(hi - lo));
#elif GORT_VALGRIND
    return VALGRIND_STACK_REGISTER(lo, hi);
#endif
    (void)lo, (void)hi;
    return 0;
}

static inline void gort__sanitize_stack_deregister(char *lo, char *hi, uint64_t id)
{
#if GORT_ASAN
    __asan_unpoison_memory_region(lo, (size_t)(hi - lo));
    __lsan_unregister_root_region(lo, (size_t)(hi - lo));
#elif GORT_VALGRIND
    VALGRIND_STACK_DEREGISTER(id);
#endif
    (void)lo, (void)hi, (void)id;
}

/* A stack that will be used by another goroutine: forget the red zones of frames that are gone. */
static inline void gort__sanitize_stack_clean(char *lo, char *hi)
{
#if GORT_ASAN
    __asan_unpoison_memory_region(lo, (size_t)(hi - lo));
#endif
    (void)lo, (void)hi;
}

#endif
