/* SPDX-License-Identifier: MIT */
/*
 * stack.c - the stacks that goroutines run on.
 *
 * Why: many slots share one mapping, so a million stacks need few mappings, and a slot costs
 * nothing but address space until its pages are touched. The guard lies inside the slot: with a
 * stride of 256 KiB the page tables of a parked goroutine are 512 bytes; a guard on top of it
 * would make that 640.
 *
 *     slab:  | guard | usable ........ | guard | usable ........ | ...
 *              base ^           stack grows down from base + 2^log2
 *
 * Invariants: (1) a slot is in exactly one place: never handed out (beyond `next`), a cache, the
 * class's free list, or a goroutine; (2) for the default class, slots >= what was reserved, so a
 * goroutine that could be started can also run; (3) a slot's guard is installed before its first use.
 * Threads: all but init and destroy may run in parallel; a cache belongs to one caller at a time.
 */
#include "mem/stack.h"

#include <errno.h>

#include "base/fatal.h"
#include "mem/sanitize.h"
#include "mem/slab.h"
#include "os/os.h"

#define SLAB_BYTES  ((size_t)16 << 20) /* of address space a slab, or one slot if that is larger */
#define SLAB_GROWTH 8                  /* the default class maps up to 2^this times as much at once */
#define CACHE_MAX   64                 /* a P keeps this many; half of them leave when there are more */
#define BATCH       16                 /* fresh slots taken at once */

struct slab {
    struct slab *next;
    char *base;
    size_t bytes;
};

/* One size of stacks; guarded by `lock`. */
struct size_class {
    struct gort__stack *free;
    struct slab *open;      /* where fresh slots come from, oldest first */
    char *next;             /* the first fresh slot in open */
    size_t slots, reserved; /* in all mappings; promised by gort__stack_reserve */
    struct slab **tail;     /* where the next slab is linked */
    struct slab *all;
};

static struct gort__lock lock; /* rank GORT_RANK_STACK */
static struct size_class classes[GORT_STACK_LOG2_MAX + 1];
static uint8_t default_log2 = 18;
static struct gort__slab records = {.object = sizeof(struct gort__stack)};
static struct gort__slab slabs = {.object = 32};

_Static_assert(sizeof(struct gort__stack) == 32, "a million of these must stay small");
_Static_assert(sizeof(struct slab) <= 32, "fits its slab");

size_t gort__stack_guard(uint8_t log2)
{
    size_t guard = ((size_t)1 << log2) / 16;
    return guard > ((size_t)64 << 10) ? (size_t)64 << 10 : guard;
}

static uint8_t round_up(size_t size)
{
    uint8_t log2 = GORT_STACK_LOG2_MIN;
    while (log2 <= GORT_STACK_LOG2_MAX && ((size_t)1 << log2) < size)
        log2++;
    return log2 > GORT_STACK_LOG2_MAX ? 0 : log2;
}

void gort__stack_init(size_t default_size)
{
    default_log2 = round_up(default_size);
}

uint8_t gort__stack_class(size_t size)
{
    return size ? round_up(size) : default_log2;
}

/* Maps one more slab for the class. Called with the lock held. 0 or -ENOMEM. */
static int map_slab(struct size_class *c, uint8_t log2)
{
    size_t slot = (size_t)1 << log2, want = SLAB_BYTES;
    if (log2 == default_log2) /* grow with what is there: few mappings for many stacks */
        for (int i = 0; i < SLAB_GROWTH && want < c->slots * slot; i++)
            want *= 2;
    size_t bytes = want > slot ? want : slot;
    struct slab *s = gort__slab_get(&slabs);
    if (!s)
        return -ENOMEM;
    size_t align = slot < ((size_t)2 << 20) ? slot : (size_t)2 << 20;
    s->base = gort__os_vm_map(bytes, align);
    if (!s->base && bytes > slot) { /* address space is short: ask for a little */
        bytes = slot * 4 < bytes ? slot * 4 : slot;
        s->base = gort__os_vm_map(bytes, align);
    }
    if (!s->base) {
        gort__slab_put(&slabs, s);
        return -ENOMEM;
    }
    gort__os_vm_small(s->base, bytes);
    s->bytes = bytes;
    s->next = NULL;
    if (!c->tail)
        c->tail = &c->all;
    *c->tail = s;
    c->tail = &s->next;
    if (!c->open) {
        c->open = s;
        c->next = s->base;
    }
    c->slots += bytes / slot;
    return 0;
}

int gort__stack_reserve(size_t n)
{
    struct size_class *c = &classes[default_log2];
    int err = 0;
    gort__lock_take(&lock, GORT_RANK_STACK);
    while (!err && c->slots < c->reserved + n)
        err = map_slab(c, default_log2);
    if (!err)
        c->reserved += n;
    gort__lock_drop(&lock, GORT_RANK_STACK);
    return err;
}

void gort__stack_unreserve(size_t n)
{
    gort__lock_take(&lock, GORT_RANK_STACK);
    classes[default_log2].reserved -= n;
    gort__lock_drop(&lock, GORT_RANK_STACK);
}

/* Takes up to `want` fresh slots as a chain. Called with the lock held; the guards are still missing. */
static struct gort__stack *take_fresh(struct size_class *c, uint8_t log2, int want)
{
    struct gort__stack *chain = NULL;
    size_t slot = (size_t)1 << log2;
    while (want-- > 0) {
        if (!c->open && (chain || map_slab(c, log2)))
            break;
        struct gort__stack *s = gort__slab_get(&records);
        if (!s)
            break;
        s->base = c->next;
        s->log2 = log2;
        s->link = chain;
        chain = s;
        c->next += slot;
        if (c->next == c->open->base + c->open->bytes) {
            c->open = c->open->next;
            c->next = c->open ? c->open->base : NULL;
        }
    }
    return chain;
}

static void prepare(struct gort__stack *s)
{
    static bool said; /* a race only says it twice */
    int err = gort__os_vm_guard(s->base, gort__stack_guard(s->log2));
    if (err && !gort__load(&said, RELAXED)) {
        gort__store(&said, true, RELAXED);
        gort__warn("stacks have no guard from here on (error %d): raise vm.max_map_count", -err);
    }
    gort__sanitize_stack_clean(gort__stack_lo(s),
                               gort__stack_hi(s)); /* an earlier mapping may have left marks */
    s->sanitizer = gort__sanitize_stack_register(gort__stack_lo(s), gort__stack_hi(s));
}

static GORT_NOINLINE struct gort__stack *get_slow(struct gort__stack_cache *cache, uint8_t log2)
{
    struct size_class *c = &classes[log2];
    bool cached = cache && log2 == default_log2;
    gort__lock_take(&lock, GORT_RANK_STACK);
    struct gort__stack *s = c->free, *fresh = NULL;
    if (s) {
        c->free = s->link;
        for (int i = 1; cached && i < CACHE_MAX / 2 && c->free; i++) {
            struct gort__stack *more = c->free;
            c->free = more->link;
            more->link = cache->top;
            cache->top = more;
            cache->n++;
        }
    } else {
        fresh = take_fresh(c, log2, cached ? BATCH : 1);
    }
    gort__lock_drop(&lock, GORT_RANK_STACK);
    while (fresh) {
        struct gort__stack *next = fresh->link;
        prepare(fresh);
        if (!s) {
            s = fresh;
        } else {
            fresh->link = cache->top;
            cache->top = fresh;
            cache->n++;
        }
        fresh = next;
    }
    return s;
}

struct gort__stack *gort__stack_get(struct gort__stack_cache *cache, uint8_t log2)
{
    struct gort__stack *s = cache ? cache->top : NULL;
    if (GORT_UNLIKELY(!s || log2 != default_log2))
        return get_slow(cache, log2);
    cache->top = s->link;
    cache->n--;
    return s;
}

/* Moves all but `keep` stacks of the cache to the free list of the default class. */
static void flush_to(struct gort__stack_cache *cache, uint32_t keep)
{
    gort__lock_take(&lock, GORT_RANK_STACK);
    struct size_class *c = &classes[default_log2];
    while (cache->n > keep) {
        struct gort__stack *s = cache->top;
        cache->top = s->link;
        cache->n--;
        s->link = c->free;
        c->free = s;
    }
    gort__lock_drop(&lock, GORT_RANK_STACK);
}

void gort__stack_put(struct gort__stack_cache *cache, struct gort__stack *s)
{
    gort__sanitize_stack_clean(gort__stack_lo(s), gort__stack_hi(s));
    if (GORT_LIKELY(cache && s->log2 == default_log2)) {
        s->link = cache->top;
        cache->top = s;
        if (GORT_UNLIKELY(++cache->n > CACHE_MAX))
            flush_to(cache, CACHE_MAX / 2);
        return;
    }
    if (s->log2 > default_log2) /* rarely asked for again: the address space stays, its pages go */
        gort__os_vm_discard(gort__stack_lo(s), (size_t)(gort__stack_hi(s) - gort__stack_lo(s)));
    gort__lock_take(&lock, GORT_RANK_STACK);
    s->link = classes[s->log2].free;
    classes[s->log2].free = s;
    gort__lock_drop(&lock, GORT_RANK_STACK);
}

void gort__stack_cache_flush(struct gort__stack_cache *cache)
{
    flush_to(cache, 0);
}

/* Unmaps a slab but for the slots to keep. */
static void unmap(struct slab *s, uint8_t log2, bool (*keep)(const char *base, size_t size))
{
    size_t slot = (size_t)1 << log2;
    char *from = s->base, *end = s->base + s->bytes;
    for (char *p = s->base; p < end; p += slot) {
        if (!keep || !keep(p, slot))
            continue;
        if (p > from)
            gort__os_vm_unmap(from, (size_t)(p - from));
        from = p + slot;
    }
    if (end > from)
        gort__os_vm_unmap(from, (size_t)(end - from));
}

static void deregister_all(void)
{
    for (struct gort__chunk *c = records.chunks; c; c = c->next)
        for (char *p = c->first; p < c->carved; p += sizeof(struct gort__stack)) {
            struct gort__stack *s = (struct gort__stack *)(void *)p;
            if (s->base)
                gort__sanitize_stack_deregister(gort__stack_lo(s), gort__stack_hi(s), s->sanitizer);
        }
}

void gort__stack_destroy(bool (*keep)(const char *base, size_t size))
{
    deregister_all();
    for (int log2 = GORT_STACK_LOG2_MIN; log2 <= GORT_STACK_LOG2_MAX; log2++) {
        for (struct slab *s = classes[log2].all; s; s = s->next)
            unmap(s, (uint8_t)log2, keep);
        classes[log2] = (struct size_class){0};
    }
    gort__slab_destroy(&records, NULL);
    gort__slab_destroy(&slabs, NULL);
}
