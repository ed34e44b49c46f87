/* SPDX-License-Identifier: MIT */
/*
 * compiler.h - the few compiler features that all rooms use, spelled once.
 *
 * Why: gcc and clang agree on these, but their spellings are long; and the sanitizers announce
 * themselves differently in each.
 */
#ifndef GORT_SRC_BASE_COMPILER_H
#define GORT_SRC_BASE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GORT_LIKELY(x)         __builtin_expect(!!(x), 1)
#define GORT_UNLIKELY(x)       __builtin_expect(!!(x), 0)
#define GORT_NOINLINE          __attribute__((noinline))
#define GORT_ALWAYS_INLINE     inline __attribute__((always_inline))
#define GORT_COLD              __attribute__((cold, noinline))
#define GORT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* For data that other files declare: reached directly, not through the table of a shared library. */
#define GORT_HIDDEN __attribute__((visibility("hidden")))
#define GORT_UNUSED __attribute__((unused))

#define GORT_LINE         64 /* bytes in a cache line */
#define GORT_ALIGNED_LINE __attribute__((aligned(GORT_LINE)))

#define GORT_CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GORT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define GORT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(GORT_ASAN)
#define GORT_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__) && !defined(GORT_TSAN)
#define GORT_TSAN 1
#endif
#ifndef GORT_ASAN
#define GORT_ASAN 0
#endif
#ifndef GORT_TSAN
#define GORT_TSAN 0
#endif
#ifndef GORT_CHECKS
#define GORT_CHECKS 0
#endif

#if GORT_ASAN || GORT_TSAN
#define GORT_SANITIZED 1
#else
#define GORT_SANITIZED 0
#endif

/*
 * TSan for users: a switch orders nothing, so races of goroutines that share a thread are found; what does
 * order them is said where it happens (sched/core/san.h). Our own plain accesses, many of which are ordered
 * by who has the P, are not looked at then (cmake/flags.cmake). GORT_TSAN_SELF is the other way round: for
 * our own tests.
 */
#if GORT_TSAN && !defined(GORT_TSAN_SELF)
#define GORT_TSAN_EDGES 1
#else
#define GORT_TSAN_EDGES 0
#endif

/* Between ALLOW_BEGIN and ALLOW_END, accesses are none for TSan: what it takes for a race there is part of an
 * interface. What atomics order is still ordered. */
#if GORT_TSAN
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define GORT_TSAN_ALLOW_BEGIN() AnnotateIgnoreWritesBegin(__FILE__, __LINE__)
#define GORT_TSAN_ALLOW_END()   AnnotateIgnoreWritesEnd(__FILE__, __LINE__)
#else
#define GORT_TSAN_ALLOW_BEGIN() ((void)0)
#define GORT_TSAN_ALLOW_END()   ((void)0)
#endif

/* The same where only users' races are looked for: accesses to memory that nobody else can use yet or any
 * more, or in the name of somebody else. */
#if GORT_TSAN_EDGES
#define GORT_TSAN_IGNORE_BEGIN() GORT_TSAN_ALLOW_BEGIN()
#define GORT_TSAN_IGNORE_END()   GORT_TSAN_ALLOW_END()
#else
#define GORT_TSAN_IGNORE_BEGIN() ((void)0)
#define GORT_TSAN_IGNORE_END()   ((void)0)
#endif

/* Plain accesses in such a function are hints, and no races. In gcc's eyes its atomics order nothing either,
 * so it takes no pointer from an atomic to anything that TSan looks at elsewhere. */
#if GORT_TSAN
#define GORT_NO_TSAN __attribute__((no_sanitize("thread")))
#else
#define GORT_NO_TSAN
#endif

#endif
