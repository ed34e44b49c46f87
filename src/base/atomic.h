/* SPDX-License-Identifier: MIT */
/*
 * atomic.h - every atomic operation of gort, with its memory order always written out.
 *
 * Why: one spelling (`gort__load(&x, ACQUIRE)`) keeps the order visible at the place where it
 * matters, and gives the model checker one place to stand in: built with GORT_MODEL each operation
 * below becomes a step that tests/model/ interleaves, store buffers included.
 *
 * A non-relaxed order at a call says in a comment which other place it pairs with.
 */
#ifndef GORT_SRC_BASE_ATOMIC_H
#define GORT_SRC_BASE_ATOMIC_H

#include "base/compiler.h"

#ifndef GORT_MODEL

#define gort__load(p, order)     __atomic_load_n((p), __ATOMIC_##order)
#define gort__store(p, v, order) __atomic_store_n((p), (v), __ATOMIC_##order)
#define gort__xchg(p, v, order)  __atomic_exchange_n((p), (v), __ATOMIC_##order)
#define gort__add(p, v, order)   __atomic_fetch_add((p), (v), __ATOMIC_##order)
#define gort__sub(p, v, order)   __atomic_fetch_sub((p), (v), __ATOMIC_##order)
#define gort__or(p, v, order)    __atomic_fetch_or((p), (v), __ATOMIC_##order)
#define gort__and(p, v, order)   __atomic_fetch_and((p), (v), __ATOMIC_##order)
/* True when *p was *expected and is now v; else *expected tells what it was. Never fails for nothing. */
#define gort__cas(p, expected, v, order)                                                                     \
    __atomic_compare_exchange_n((p), (expected), (v), false, __ATOMIC_##order, __ATOMIC_RELAXED)
#if GORT_TSAN && !defined(__clang__)
/* gcc's thread sanitizer does not know fences; an exchange on a private word is one for the processor. */
#define gort__fence(order)                                                                                   \
    do {                                                                                                     \
        uint32_t fence_word = 0;                                                                             \
        (void)__atomic_exchange_n(&fence_word, 1, __ATOMIC_SEQ_CST);                                         \
    } while (0)
#else
#define gort__fence(order) __atomic_thread_fence(__ATOMIC_##order)
#endif
/* Orders what the compiler does, and what a signal handler on this thread sees; no instruction. */
#define gort__compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

#else
#include "model/shim.h"
#endif

/* Counts n more. One writer at a time, readers at any time; tests/model takes no notice of it. */
static inline void gort__count(uint64_t *counter, uint64_t n)
{
    __atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

/* The same by anybody. */
static inline void gort__count_shared(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

/* memset to zero of whole words that others may still look at: by hints, or in a call that outlives its
 * run. */
static inline void gort__clear(void *from, size_t size)
{
    for (uint64_t *word = from; size; word++, size -= sizeof *word)
        __atomic_store_n(word, 0, __ATOMIC_RELAXED);
}

#endif
