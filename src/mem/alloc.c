/* SPDX-License-Identifier: MIT */
/*
 * alloc.c - memory for objects that outlive runs.
 *
 * Why: sizes are rounded up to powers of two from 64 bytes to 32 KiB, each with a slab of its own;
 * larger ones are mappings. Freed objects are kept for reuse: the memory of small ones returns to
 * the system only with the process, that of large ones at once.
 * Threads: any.
 */
#include "mem/alloc.h"

#include "mem/slab.h"
#include "os/os.h"

#define LOG2_MIN 6
#define LOG2_MAX 15

static struct gort__slab slabs[LOG2_MAX + 1] = {
    [6] = {.object = 64},     [7] = {.object = 128},    [8] = {.object = 256},   [9] = {.object = 512},
    [10] = {.object = 1024},  [11] = {.object = 2048},  [12] = {.object = 4096}, [13] = {.object = 8192},
    [14] = {.object = 16384}, [15] = {.object = 32768},
};

static int size_class(size_t size)
{
    int log2 = LOG2_MIN;
    while (log2 <= LOG2_MAX && ((size_t)1 << log2) < size)
        log2++;
    return log2;
}

static size_t in_pages(size_t size)
{
    size_t page = gort__os_page();
    return (size + page - 1) / page * page;
}

void *gort__alloc(size_t size)
{
    int log2 = size_class(size);
    if (log2 <= LOG2_MAX)
        return gort__slab_get(&slabs[log2]);
    if (size > (size_t)1 << 46) /* no address space is that large; in_pages must not overflow */
        return NULL;
    return gort__os_vm_map(in_pages(size), gort__os_page());
}

void gort__alloc_free(void *object, size_t size)
{
    int log2 = size_class(size);
    if (log2 <= LOG2_MAX)
        gort__slab_put(&slabs[log2], object);
    else
        gort__os_vm_unmap(object, in_pages(size));
}
