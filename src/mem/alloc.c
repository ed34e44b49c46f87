/* SPDX-License-Identifier: MIT */
/*
 * alloc.c - memory for objects that outlive runs.
 *
 * Why: sizes are rounded up to powers of two from 64 bytes to 32 KiB, each with a slab of its own;
 * larger ones are mappings. Freed objects are kept for reuse: the memory of small ones returns to
 * the system only with the process, that of large ones at once.
 * Whoever stopped the world can walk it all: what users put there, in the buffer of a channel for
 * one, may be the only pointer to an object of a collector. So mappings are linked, by a node at their end.
 * Threads: any.
 */
#include "mem/alloc.h"

#include "mem/sanitize.h"
#include "mem/slab.h"
#include "os/os.h"

#define LOG2_MIN 6
#define LOG2_MAX 15

static struct gort__slab slabs[LOG2_MAX + 1] = {
    [6] = {.object = 64},     [7] = {.object = 128},    [8] = {.object = 256},   [9] = {.object = 512},
    [10] = {.object = 1024},  [11] = {.object = 2048},  [12] = {.object = 4096}, [13] = {.object = 8192},
    [14] = {.object = 16384}, [15] = {.object = 32768},
};

struct large {
    struct large *next, **at;
    char *base;
};

static struct large *larges;         /* guarded by large_lock */
static struct gort__lock large_lock; /* rank GORT_RANK_SLAB */

static int size_class(size_t size)
{
    return size > (size_t)1 << LOG2_MIN ? 64 - __builtin_clzll(size - 1) : LOG2_MIN;
}

static size_t in_pages(size_t size)
{
    size_t page = gort__os_page();
    return (size + page - 1) / page * page;
}

static struct large *node_of(void *object, size_t bytes)
{
    return (struct large *)(void *)((char *)object + bytes - sizeof(struct large));
}

static void *get_large(size_t size)
{
    size_t bytes = in_pages(size + sizeof(struct large));
    char *base = gort__os_vm_map(bytes, gort__os_page());
    if (!base)
        return NULL;
    struct large *node = node_of(base, bytes);
    gort__lock_take(&large_lock, GORT_RANK_SLAB);
    *node = (struct large){larges, &larges, base};
    if (larges)
        larges->at = &node->next;
    larges = node;
    gort__lock_release(&large_lock, GORT_RANK_SLAB);
    return base;
}

static void put_large(void *object, size_t size)
{
    size_t bytes = in_pages(size + sizeof(struct large));
    struct large *node = node_of(object, bytes);
    gort__lock_take(&large_lock, GORT_RANK_SLAB);
    *node->at = node->next;
    if (node->next)
        node->next->at = node->at;
    gort__lock_release(&large_lock, GORT_RANK_SLAB);
    gort__os_vm_unmap(object, bytes);
}

void *gort__alloc(size_t size)
{
    int log2 = size_class(size);
    if (log2 <= LOG2_MAX) {
        void *object = gort__slab_get(&slabs[log2]);
        if (object)
            gort__sanitize_used(object, (size_t)1 << log2);
        return object;
    }
    if (size > (size_t)1 << 46) /* no address space is that large; in_pages must not overflow */
        return NULL;
    return get_large(size);
}

void gort__alloc_free(void *object, size_t size)
{
    int log2 = size_class(size);
    if (log2 <= LOG2_MAX) { /* the first word links it with the others */
        gort__sanitize_freed((char *)object + sizeof(void *), ((size_t)1 << log2) - sizeof(void *));
        gort__slab_put(&slabs[log2], object);
    } else {
        put_large(object, size);
    }
}

void gort__alloc_each(gort__alloc_visit visit, void *arg)
{
    for (int log2 = LOG2_MIN; log2 <= LOG2_MAX; log2++)
        gort__slab_each(&slabs[log2], visit, arg);
    gort__lock_take(&large_lock, GORT_RANK_SLAB);
    for (struct large *l = larges; l; l = l->next)
        visit(l->base, l, arg);
    gort__lock_release(&large_lock, GORT_RANK_SLAB);
}
