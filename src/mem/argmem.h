/* SPDX-License-Identifier: MIT */
/* argmem.h - small blocks of a run: copied arguments, keys, exit handlers. */
#ifndef GORT_SRC_MEM_ARGMEM_H
#define GORT_SRC_MEM_ARGMEM_H

#include "mem/slab.h"

#define GORT_ARGMEM_CLASSES 4 /* 128, 256, 512, 1024 bytes */

void gort__argmem_init(void);
void *gort__argmem_get(size_t size); /* up to 1024 bytes, 16-byte aligned; NULL: no memory */
void gort__argmem_put(void *block, size_t size);
/* Calls visit(from, to, arg) for all memory that holds blocks, or has held some. */
void gort__argmem_each(void (*visit)(const void *from, const void *to, void *arg), void *arg);
/* The end of a run; keep as in gort__slab_destroy. */
void gort__argmem_destroy(bool (*keep)(struct gort__chunk *c));

#endif
