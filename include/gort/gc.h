/* SPDX-License-Identifier: MIT */
/*
 * gort/gc.h - garbage-collected memory for goroutines, from the Boehm collector (libgc).
 *
 * These functions are in a library of their own, libgort-gc, which needs libgc; gort.h does not include this
 * header. An object stays alive while a pointer to it is on a stack or in a register of a goroutine, in its
 * arguments or values of keys, in the buffer of a channel, in a timer, in a global variable or in another
 * object of the collector. Pointers in malloc's memory, in thread-local variables, and on the stacks of
 * goroutines that the end of a run has left in a blocking call do not keep it alive. A collection stops the
 * world (gort_world_stop).
 */
#ifndef GORT_GC_H
#define GORT_GC_H

#include "base.h"

GORT_BEGIN_DECLS

/* Prepares the collector. Call it once, in main, before the first run and before any other call to libgc. */
GORT_API void gort_gc_init(void);

/*
 * Returns size zeroed bytes, which may hold pointers; NULL: no memory. It may run a collection and may park.
 * Callable from goroutines, and from plain threads that libgc knows: main, and threads that have called
 * GC_register_my_thread. This holds for all functions below.
 */
GORT_API void *gort_gc_malloc(size_t size);
/* The same for data without pointers, such as text or numbers. The memory is not zeroed. */
GORT_API void *gort_gc_malloc_atomic(size_t size);
/* As realloc(3); p is NULL or comes from these functions. */
GORT_API void *gort_gc_realloc(void *p, size_t size);
/* Frees p at once, if the caller knows that nothing points to it any more. Never necessary. */
GORT_API void gort_gc_free(void *p);

/*
 * Runs a collection, and then, in the caller, the finalizers that are due (GC_register_finalizer). May park.
 */
GORT_API void gort_gc_collect(void);

/* Returns the size of the collector's heap in bytes. */
GORT_API size_t gort_gc_heap_size(void);

GORT_END_DECLS
#endif
