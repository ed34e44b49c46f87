/* SPDX-License-Identifier: MIT */
/*
 * slab.c - type-stable memory for small objects of one size.
 *
 * Why: chunks double from 64 KiB to 2 MiB, so ten goroutines cost 64 KiB while a million of them
 * fault in 2 MiB at a time: a fresh 4 KiB page costs 3-5 us to touch, which would be 200-300 ns a
 * goroutine; a big page makes that some 20 ns.
 *
 *     chunk:  | header | object | object | ... carved | never used ... |
 *
 * Invariants: (1) a published chunk stays mapped until gort__slab_destroy; (2) objects in
 * [first, carved) may be read by anybody at any time.
 * Threads: all but destroy may run in parallel; readers walk `chunks` without the lock.
 */
#include "mem/slab.h"

#include "base/fatal.h"
#include "os/os.h"

#define CHUNK_MIN ((size_t)64 << 10)
#define CHUNK_MAX ((size_t)2 << 20)

/* A new newest chunk. Called with the lock held; NULL: no memory. */
static struct gort__chunk *grow(struct gort__slab *s)
{
    struct gort__chunk *newest = gort__load(&s->chunks, RELAXED);
    size_t bytes = !newest ? CHUNK_MIN : newest->bytes < CHUNK_MAX ? newest->bytes * 2 : CHUNK_MAX;
    struct gort__chunk *c = gort__os_vm_map(bytes, bytes);
    if (!c && bytes > CHUNK_MIN) {
        bytes = CHUNK_MIN;
        c = gort__os_vm_map(bytes, bytes);
    }
    if (!c)
        return NULL;
    if (bytes >= CHUNK_MAX)
        gort__os_vm_huge(c, bytes);
    size_t header = (sizeof *c + GORT_LINE - 1) & ~(size_t)(GORT_LINE - 1);
    c->bytes = bytes;
    c->first = c->carved = (char *)c + header;
    c->limit = c->first + (bytes - header) / s->object * s->object;
    c->next = newest;
    gort__store(&s->chunks, c, RELEASE); /* pairs with the readers of chunks (dump) */
    return c;
}

static void *carve_locked(struct gort__slab *s, size_t n, size_t *got)
{
    struct gort__chunk *c = gort__load(&s->chunks, RELAXED);
    if (!c || c->carved == c->limit)
        c = grow(s);
    if (!c)
        return NULL;
    size_t left = (size_t)(c->limit - c->carved) / s->object;
    *got = n < left ? n : left;
    char *object = c->carved;
    gort__store(&c->carved, object + *got * s->object, RELEASE); /* pairs with the readers (dump) */
    return object;
}

void *gort__slab_carve(struct gort__slab *s, size_t n, size_t *got)
{
    gort__lock_take(&s->lock, GORT_RANK_SLAB);
    void *objects = carve_locked(s, n, got);
    gort__lock_drop(&s->lock, GORT_RANK_SLAB);
    return objects;
}

void *gort__slab_get(struct gort__slab *s)
{
    size_t got;
    gort__lock_take(&s->lock, GORT_RANK_SLAB);
    void *object = s->free;
    if (object)
        s->free = *(void **)object;
    else
        object = carve_locked(s, 1, &got);
    gort__lock_drop(&s->lock, GORT_RANK_SLAB);
    return object;
}

void gort__slab_put(struct gort__slab *s, void *object)
{
    gort__lock_take(&s->lock, GORT_RANK_SLAB);
    *(void **)object = s->free;
    s->free = object;
    gort__lock_drop(&s->lock, GORT_RANK_SLAB);
}

void gort__slab_destroy(struct gort__slab *s, bool (*keep)(struct gort__chunk *))
{
    struct gort__chunk *c = s->chunks;
    gort__store(&s->chunks, NULL, RELEASE); /* pairs with the readers of chunks (dump) */
    s->free = NULL;
    while (c) {
        struct gort__chunk *next = c->next;
        if (!keep || !keep(c))
            gort__os_vm_unmap(c, c->bytes);
        c = next;
    }
}

void gort__chunk_drop(struct gort__chunk *c)
{
    if (gort__sub(&c->keepers, 1, ACQ_REL) == 1) /* pairs with the other drops */
        gort__os_vm_unmap(c, c->bytes);
}

void gort__slab_each(struct gort__slab *s, void (*visit)(const void *from, const void *to, void *arg),
                     void *arg)
{
    for (struct gort__chunk *c = gort__load(&s->chunks, ACQUIRE); c; c = c->next) /* pairs with grow */
        visit(c->first, gort__load(&c->carved, ACQUIRE), arg); /* pairs with gort__slab_carve */
}
