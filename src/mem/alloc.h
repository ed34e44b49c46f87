/* SPDX-License-Identifier: MIT */
/*
 * alloc.h - memory for objects that outlive runs: channels, contexts, pools.
 *
 * Why not malloc: a goroutine may be stopped while it holds malloc's lock, and the runtime must not
 * wait for it. Why not the run's blocks: objects may be made before a run and freed after it.
 */
#ifndef GORT_SRC_MEM_ALLOC_H
#define GORT_SRC_MEM_ALLOC_H

#include "base/compiler.h"

/* Aligned to a cache line, not zeroed; NULL: no memory. Never parks; goroutine and thread. */
void *gort__alloc(size_t size);
void gort__alloc_free(void *object, size_t size);

typedef void (*gort__alloc_visit)(const void *from, const void *to, void *arg);
/* Calls visit(from, to, arg) for all memory that holds objects, or has held some. */
void gort__alloc_each(gort__alloc_visit visit, void *arg);

#endif
