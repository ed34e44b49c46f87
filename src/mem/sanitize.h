/* SPDX-License-Identifier: MIT */
/*
 * sanitize.h - telling ASan, TSan, LSan and valgrind about our stacks and switches.
 *
 * Why: each of them keeps a picture of the stack a thread runs on, and calls a goroutine switch a
 * bug unless it is announced.
 * Why also in builds without a sanitizer: programs are built with ASan or LSan and linked with the library
 * that is installed. Their runtimes are then in the program, and weak references find them (gort__asan is
 * true); without them that costs a never taken branch a switch. TSan cannot be helped that way: it would have
 * to see our atomics. What valgrind (3.19) does: it knows the stacks of threads, and ours when they are
 * registered. It notes which one is in use when it changes threads, and when the stack pointer gets a value
 * that is not the old one plus a small constant; if that lies on another stack, it leaves the memory alone.
 * Signals slip past it: a handler on a registered alternate stack begins, and what it met goes on, with the
 * wrong stack noted, and the next frame is not marked as usable. So alternate stacks are not registered, and
 * our handlers do not run on them (os/linux/signal.c).
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
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *mem, size_t size,
                             const char *why);
#endif
#if GORT_ASAN || GORT_TSAN
#define gort__asan GORT_ASAN
#else
__attribute__((weak)) void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *saved, const void **bottom, size_t *size);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *addr, size_t size);
__attribute__((weak)) void __lsan_register_root_region(const void *addr, size_t size);
__attribute__((weak)) void __lsan_unregister_root_region(const void *addr, size_t size);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
/* The program has ASan; set by gort__stack_init, before any stack is used. */
extern GORT_HIDDEN bool gort__asan;
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

/* Whether the program was built with TSan and we were not. */
static inline bool gort__sanitize_tsan_missing(void)
{
#if GORT_ASAN || GORT_TSAN
    return false;
#else
    return __tsan_create_fiber != NULL;
#endif
}

/* A stack that will be used by another goroutine: forget the red zones of frames that are gone. */
static inline void gort__sanitize_stack_clean(char *lo, char *hi)
{
#if !GORT_TSAN
    if (GORT_UNLIKELY(gort__asan))
        __asan_unpoison_memory_region(lo, (size_t)(hi - lo));
#endif
    (void)lo, (void)hi;
}

/* An object of so many bytes that nobody may use any more, and the opposite. A library that is built with
 * ASan reports uses of it. */
static inline void gort__sanitize_freed(void *object, size_t size)
{
#if GORT_ASAN
    __asan_poison_memory_region(object, size);
#endif
    (void)object, (void)size;
}

static inline void gort__sanitize_used(void *object, size_t size)
{
#if GORT_ASAN
    __asan_unpoison_memory_region(object, size);
#endif
    (void)object, (void)size;
}

/* Memory [lo, hi) that may hold the only pointer to something. */
static inline void gort__sanitize_root_register(char *lo, char *hi)
{
#if GORT_ASAN
    __lsan_register_root_region(lo, (size_t)(hi - lo));
#elif !GORT_TSAN
    if (__lsan_register_root_region)
        __lsan_register_root_region(lo, (size_t)(hi - lo));
#endif
    (void)lo, (void)hi;
}

static inline void gort__sanitize_root_deregister(char *lo, char *hi)
{
    gort__sanitize_stack_clean(lo, hi);
#if GORT_ASAN
    __lsan_unregister_root_region(lo, (size_t)(hi - lo));
#elif !GORT_TSAN
    if (__lsan_unregister_root_region)
        __lsan_unregister_root_region(lo, (size_t)(hi - lo));
#endif
    (void)lo, (void)hi;
}

/* A new stack [lo, hi) that threads change to by an instruction, not by a signal; the result identifies
 * it. */
static inline uint64_t gort__sanitize_stack_register(char *lo, char *hi)
{
    gort__sanitize_root_register(lo, hi);
#if GORT_VALGRIND
    return VALGRIND_STACK_REGISTER(lo, hi);
#endif
    return 0;
}

static inline void gort__sanitize_stack_deregister(char *lo, char *hi, uint64_t id)
{
    gort__sanitize_root_deregister(lo, hi);
#if GORT_VALGRIND
    VALGRIND_STACK_DEREGISTER(id);
#endif
    (void)id;
}

#endif
