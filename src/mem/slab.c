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
 * The header of a large chunk lies elsewhere, in pages that many share: so a chunk whose objects are all
 * unused can be given back as one big page, while whoever walks the list of chunks still finds it.
 *
 * Invariants: (1) a published chunk stays mapped until gort__slab_destroy; (2) objects in
 * [first, carved) may be read by anybody at any time; (3) `again` holds chunks that were emptied and are
 * not full again; the newest is never among them.
 * Threads: all but destroy may run in parallel; readers walk `chunks` without the lock.
 */
#include "mem/slab.h"

#include <string.h>

#include "base/fatal.h"
#include "os/os.h"

#define CHUNK_MIN ((size_t)64 << 10)
#define CHUNK_MAX ((size_t)2 << 20)

/* --- headers of large chunks ------------------------------------------------------------------ */

static struct gort__lock heads_lock;      /* rank GORT_RANK_CHUNK */
static struct gort__chunk *heads;         /* unused ones, linked by next; guarded by heads_lock */
static struct gort__chunk first_heads[8]; /* enough for most programs */
static bool heads_begun;                  /* guarded by heads_lock */

static void add_heads(struct gort__chunk *array, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        array[i].next = heads;
        heads = &array[i];
    }
}

/* NULL: no memory. Pages of headers stay with the process. */
static struct gort__chunk *head_get(void)
{
    gort__lock_take(&heads_lock, GORT_RANK_CHUNK);
    if (!heads_begun)
        add_heads(first_heads, sizeof first_heads / sizeof first_heads[0]);
    heads_begun = true;
    if (!heads) {
        size_t page = gort__os_page();
        struct gort__chunk *more = gort__os_vm_map(page, page);
        if (more)
            add_heads(more, page / sizeof *more);
    }
    struct gort__chunk *c = heads;
    if (c) {
        heads = c->next;
        *c = (struct gort__chunk){0};
    }
    gort__lock_release(&heads_lock, GORT_RANK_CHUNK);
    return c;
}

static void head_put(struct gort__chunk *c)
{
    gort__lock_take(&heads_lock, GORT_RANK_CHUNK);
    c->next = heads;
    heads = c;
    gort__lock_release(&heads_lock, GORT_RANK_CHUNK);
}

static bool is_large(const struct gort__chunk *c)
{
    return c->base != (const char *)c;
}

static void unmap(struct gort__chunk *c)
{
    char *base = c->base;
    size_t bytes = c->bytes;
    if (is_large(c))
        head_put(c);
    gort__os_vm_unmap(base, bytes);
}

/* --- chunks ----------------------------------------------------------------------------------- */

/* Maps a chunk of so many bytes. NULL: no memory. */
static struct gort__chunk *map(size_t bytes, size_t object)
{
    char *base = gort__os_vm_map(bytes, bytes);
    if (!base)
        return NULL;
    struct gort__chunk *c = (struct gort__chunk *)(void *)base;
    size_t header = (sizeof *c + GORT_LINE - 1) & ~(size_t)(GORT_LINE - 1);
    if (bytes >= CHUNK_MAX) {
        c = head_get();
        header = 0;
        if (!c) {
            gort__os_vm_unmap(base, bytes);
            return NULL;
        }
        gort__os_vm_huge(base, bytes);
    }
    c->base = base;
    c->bytes = bytes;
    c->first = c->carved = base + header;
    c->limit = c->first + (bytes - header) / object * object;
    return c;
}

/* A new newest chunk. Called with the lock held; NULL: no memory. */
static struct gort__chunk *grow(struct gort__slab *s)
{
    struct gort__chunk *newest = gort__load(&s->chunks, RELAXED);
    size_t bytes = !newest ? CHUNK_MIN : newest->bytes < CHUNK_MAX ? newest->bytes * 2 : CHUNK_MAX;
    struct gort__chunk *c = map(bytes, s->object);
    if (!c && bytes > CHUNK_MIN)
        c = map(CHUNK_MIN, s->object);
    if (!c)
        return NULL;
    c->next = newest;
    gort__store(&s->chunks, c, RELEASE); /* pairs with the readers of chunks (dump) */
    return c;
}

/* Up to n objects side by side, from a chunk that has room or a new one. Called with the lock held. */
static void *carve_locked(struct gort__slab *s, size_t n, size_t *got)
{
    struct gort__chunk *c = gort__load(&s->chunks, RELAXED);
    if (!c || c->carved == c->limit) {
        c = s->again;
        if (!c)
            c = grow(s);
        if (!c)
            return NULL;
    }
    size_t left = (size_t)(c->limit - c->carved) / s->object;
    *got = n < left ? n : left;
    char *object = c->carved;
    gort__store(&c->carved, object + *got * s->object, RELEASE); /* pairs with the readers (dump) */
    if (c == s->again && c->carved == c->limit)
        s->again = c->more;
    return object;
}

bool gort__slab_chunk_is_full(const struct gort__slab *s, const struct gort__chunk *c)
{
    return is_large(c) && c != gort__load(&s->chunks, RELAXED) && gort__load(&c->carved, RELAXED) == c->limit;
}

void gort__slab_empty(struct gort__slab *s, struct gort__chunk *c)
{
    gort__check(gort__slab_chunk_is_full(s, c));
    gort__store(&c->carved, c->first, RELEASE); /* pairs with the readers (dump) */
    if (!gort__os_vm_discard(c->base, c->bytes))
        memset(c->base, 0, c->bytes); /* as those who carve expect it */
    gort__lock_take(&s->lock, GORT_RANK_SLAB);
    c->more = s->again;
    s->again = c;
    gort__lock_release(&s->lock, GORT_RANK_SLAB);
}

void *gort__slab_carve(struct gort__slab *s, size_t n, size_t *got)
{
    gort__lock_take(&s->lock, GORT_RANK_SLAB);
    void *objects = carve_locked(s, n, got);
    gort__lock_release(&s->lock, GORT_RANK_SLAB);
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
    gort__lock_release(&s->lock, GORT_RANK_SLAB);
    return object;
}

void gort__slab_put(struct gort__slab *s, void *object)
{
    gort__lock_take(&s->lock, GORT_RANK_SLAB);
    *(void **)object = s->free;
    s->free = object;
    gort__lock_release(&s->lock, GORT_RANK_SLAB);
}

void gort__slab_destroy(struct gort__slab *s, bool (*keep)(struct gort__chunk *))
{
    struct gort__chunk *c = s->chunks;
    gort__store(&s->chunks, NULL, RELEASE); /* pairs with the readers of chunks (dump) */
    s->free = NULL;
    s->again = NULL;
    while (c) {
        struct gort__chunk *next = c->next;
        if (!keep || !keep(c))
            unmap(c);
        c = next;
    }
}

void gort__slab_chunk_drop(struct gort__chunk *c)
{
    if (gort__sub(&c->refs, 1, ACQ_REL) == 1) /* pairs with the other drops */
        unmap(c);
}

void gort__slab_each(struct gort__slab *s, void (*visit)(const void *from, const void *to, void *arg),
                     void *arg)
{
    for (struct gort__chunk *c = gort__load(&s->chunks, ACQUIRE); c; c = c->next) /* pairs with grow */
        visit(c->first, gort__load(&c->carved, ACQUIRE), arg); /* pairs with gort__slab_carve */
}
