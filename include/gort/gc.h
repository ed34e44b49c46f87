/* SPDX-License-Identifier: MIT */
/*
 * gort/gc.h - memory that nobody frees: the Boehm collector (libgc) for goroutines.
 *
 * In a library of its own, libgort-gc, which needs libgc; gort.h does not include it. Goroutines' stacks and registers, their
 * arguments and keys, buffers of channels and timers keep objects alive, as do global variables and other objects of the
 * collector. Memory of malloc and thread-local variables do not, nor do goroutines that the end of a run has left in a
 * blocking call. A collection stops the world (gort_world_stop).
 */
#ifndef GORT_GC_H
#define GORT_GC_H

#include "base.h"

GORT_BEGIN_DECLS

/* Once, in main, before the first run and before any other call to libgc. */
GORT_API void gort_gc_init(void);

/* size zeroed bytes that may hold pointers; NULL: no memory. May collect first or after, which may wait. From goroutines, and
 * from plain threads that libgc knows (main; those that called GC_register_my_thread). */
GORT_API void *gort_gc_malloc(size_t size);
/* The same for data without pointers, not zeroed: text, numbers. */
GORT_API void *gort_gc_malloc_atomic(size_t size);
/* As realloc; p is NULL or from these. */
GORT_API void *gort_gc_realloc(void *p, size_t size);
/* For those who know that nobody uses it any more; never necessary. */
GORT_API void gort_gc_free(void *p);

/* Collects now, then runs finalizers that are due (GC_register_finalizer), in the caller. */
GORT_API void gort_gc_collect(void);

/* How large the collector's heap is, in bytes. */
GORT_API size_t gort_gc_heap_size(void);

GORT_END_DECLS
#endif
