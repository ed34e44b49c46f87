/* SPDX-License-Identifier: MIT */
/*
 * argmem.c - small blocks of a run: copied arguments, keys, exit handlers.
 *
 * Why: four slabs by size, so that what one goroutine has given back fits the next one. All of it goes with the run.
 * Threads: any, but for init and destroy: while nobody uses them.
 */
#include "mem/argmem.h"

static struct gort__slab slabs[GORT_ARGMEM_CLASSES];

static const size_t block_sizes[] = {128, 256, 512, 1024};

void gort__argmem_init(void)
{
    for (int i = 0; i < 4; i++)
        slabs[i].object = block_sizes[i];
}

void *gort__argmem_get(size_t size)
{
    int i = 0;
    while (block_sizes[i] < size)
        i++;
    return gort__slab_get(&slabs[i]);
}

void gort__argmem_put(void *block, size_t size)
{
    int i = 0;
    while (block_sizes[i] < size)
        i++;
    gort__slab_put(&slabs[i], block);
}

void gort__argmem_each(void (*visit)(const void *from, const void *to, void *arg), void *arg)
{
    for (int i = 0; i < GORT_ARGMEM_CLASSES; i++)
        gort__slab_each(&slabs[i], visit, arg);
}

void gort__argmem_destroy(bool (*keep)(struct gort__chunk *c))
{
    for (int i = 0; i < GORT_ARGMEM_CLASSES; i++) {
        gort__slab_destroy(&slabs[i], keep);
        slabs[i] = (struct gort__slab){0};
    }
}
