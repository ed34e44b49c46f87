/* SPDX-License-Identifier: MIT */
/*
 * stack.c - the stacks that goroutines run on.
 *
 * Why: many slots share one mapping, so a million stacks need few mappings, and a slot costs
 * nothing but address space until its pages are touched. The guard lies inside the 2^log2 bytes: so
 * the page tables of a parked goroutine are 520 bytes; a guard on top of it would make that 650.
 *
 *     slab:  | guard | usable ........ | - | guard | usable ........ | - | ...
 *            ^ base                    ^ the stack grows down from base + 2^log2; one page is left out (stack_class.h)
 *
 * A slot's record lies in an array beside its slab, so an address leads to it: for the report of an overflow,
 * and for the scavenger. Fresh slots are taken many at a time, so that their guards cost one call.
 *
 * Without a guard: where guards cost mappings there are only so many (os/linux/vm.c). Stacks beyond that have
 * a canary, the line below their lowest usable one, that the scheduler looks at before it resumes them. It
 * costs them a page.
 *
 * Invariants: (1) a slot is in exactly one place: never handed out (beyond `next`), a cache, one of the
 * class's lists, the scavenger's hands (counted in `trimming`), or a goroutine; (2) for the default class,
 * slots >= what was reserved, so a goroutine that could be started can also run; (3) a slot's guard or canary
 * is in place before its use.
 * Threads: all but init and destroy may run in parallel; a cache belongs to one caller at a time.
 */
#include "mem/stack.h"

#include <errno.h>

#include "base/fatal.h"
#include "mem/sanitize.h"
#include "mem/stack_class.h"
#include "os/os.h"

#define SLAB_BYTES  ((size_t)16 << 20) /* of address space a slab, or one slot if that is larger */
#define SLAB_GROWTH 8                  /* the default class maps up to 2^this times as much at once */
#define CACHE_MAX   64                 /* a P keeps this many; half of them leave when there are more */
#define BATCH       16                 /* fresh slots taken at once, */
#define BATCH_MANY  64                 /* and when there are many already */
#define MANY        1024
#define CANARY      UINT64_C(0x5ca1ab1e0ddba11)

struct gort__lock gort__stack_lock; /* rank GORT_RANK_STACK */
struct gort__stack_class gort__stack_classes[GORT_STACK_LOG2_MAX + 1];
static uint8_t default_log2 = 18;
#ifndef gort__asan
bool gort__asan;
#endif
static struct gort__slab slabs = {.object = sizeof(struct gort__stack_slab)};

_Static_assert(sizeof(struct gort__stack) == 32, "a million of these must stay small");
_Static_assert(sizeof(struct gort__stack_slab) % 16 == 0, "as slabs want it");

size_t gort__stack_guard_size(uint8_t log2)
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
#ifndef gort__asan
    gort__asan = __sanitizer_start_switch_fiber && __sanitizer_finish_switch_fiber &&
                 __asan_unpoison_memory_region;
#endif
}

uint8_t gort__stack_class(size_t size)
{
    return size ? round_up(size) : default_log2;
}

static size_t record_bytes(size_t slots)
{
    size_t page = gort__os_page();
    return (slots * sizeof(struct gort__stack) + page - 1) / page * page;
}

/* Maps one more slab for the class. Called with the lock held. 0 or -ENOMEM. */
static int map_slab(struct gort__stack_class *c, uint8_t log2)
{
    size_t slot = gort__stack_stride(log2), want = SLAB_BYTES >> log2;
    if (log2 == default_log2) /* grow with what is there: few mappings for many stacks */
        for (int i = 0; i < SLAB_GROWTH && want < c->slots; i++)
            want *= 2;
    struct gort__stack_slab *s = gort__slab_get(&slabs);
    if (!s)
        return -ENOMEM;
    s->slots = want ? want : 1;
    s->base = gort__os_vm_map_sparse(s->slots * slot);
    if (!s->base && s->slots > 1) { /* address space is short: ask for a little */
        s->slots = s->slots > 4 ? 4 : 1;
        s->base = gort__os_vm_map_sparse(s->slots * slot);
    }
    if (!s->base) {
        gort__slab_put(&slabs, s);
        return -ENOMEM;
    }
    s->records = gort__os_vm_map(record_bytes(s->slots), gort__os_page());
    if (!s->records) {
        gort__os_vm_unmap(s->base, s->slots * slot);
        gort__slab_put(&slabs, s);
        return -ENOMEM;
    }
    gort__os_vm_small(s->base, s->slots * slot);
    s->next = NULL;
    if (!c->tail)
        c->tail = &c->all;
    gort__store(c->tail, s, RELEASE); /* pairs with gort__stack_at */
    c->tail = &s->next;
    if (!c->open) {
        c->open = s;
        c->next = s->base;
    }
    c->slots += s->slots;
    return 0;
}

int gort__stack_reserve(size_t n)
{
    struct gort__stack_class *c = &gort__stack_classes[default_log2];
    int err = 0;
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    while (!err && c->slots < c->reserved + n)
        err = map_slab(c, default_log2);
    if (!err)
        c->reserved += n;
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
    return err;
}

void gort__stack_unreserve(size_t n)
{
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    gort__stack_classes[default_log2].reserved -= n;
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
}

/* Takes up to `want` fresh slots as a chain. Called with the lock held; the guards are still missing. */
static struct gort__stack *take_fresh(struct gort__stack_class *c, uint8_t log2, int want)
{
    struct gort__stack *chain = NULL;
    while (want-- > 0) {
        if (!c->open && (chain || map_slab(c, log2)))
            break;
        struct gort__stack *s = gort__stack_slab_at(c->open, log2, c->next);
        s->log2 = log2;
        gort__store(&s->base, c->next, RELEASE); /* pairs with gort__stack_at */
        s->link = chain;
        chain = s;
        c->next += gort__stack_stride(log2);
        if (c->next == gort__stack_slab_end(c->open, log2)) {
            c->open = c->open->next;
            c->next = c->open ? c->open->base : NULL;
        }
    }
    return chain;
}

static uint64_t *canary_of(const struct gort__stack *s)
{
    return (uint64_t *)(void *)(gort__stack_lo(s) - GORT_LINE);
}

static void set_canary(struct gort__stack *s, int err)
{
    static bool said; /* a race only says it twice */
    if (!gort__xchg(&said, true, RELAXED))
        gort__warn(
            "new stacks have a canary instead of a guard (error %d), so that overflows are noticed late: "
            "raise vm.max_map_count",
            -err);
    for (int i = 0; i < GORT_LINE / 8; i++)
        canary_of(s)[i] = CANARY;
}

bool gort__stack_intact(const struct gort__stack *s)
{
    for (int i = 0; s->guard == GORT_STACK_CANARY && i < GORT_LINE / 8; i++)
        if (canary_of(s)[i] != CANARY)
            return false;
    return true;
}

/* Guards for those of a chain that have none yet; returns the chain. */
static struct gort__stack *prepare(struct gort__stack *chain)
{
    struct gort__os_range ranges[BATCH_MANY];
    struct gort__stack *bare[BATCH_MANY];
    int n = 0;
    for (struct gort__stack *s = chain; s; s = s->link)
        if (s->guard == GORT_STACK_BARE && n < BATCH_MANY) {
            bare[n] = s;
            ranges[n++] = (struct gort__os_range){s->base, gort__stack_guard_size(s->log2)};
        }
    int done = n ? gort__os_vm_guard_many(ranges, n) : 0;
    for (int i = 0; i < n; i++) {
        struct gort__stack *s = bare[i];
        s->guard = i < done ? GORT_STACK_GUARDED : GORT_STACK_CANARY;
        if (i >= done)
            set_canary(s, -ENOMEM);
        gort__sanitize_stack_clean(gort__stack_lo(s),
                                   gort__stack_hi(s)); /* an earlier mapping may have left marks */
        if (!s->sanitizer)
            s->sanitizer = (uint32_t)gort__sanitize_stack_register(gort__stack_lo(s), gort__stack_hi(s));
    }
    return chain;
}

/* Takes up to `want` from a list as a chain. Called with the lock held. */
static struct gort__stack *take_listed(struct gort__stack **list, int want)
{
    struct gort__stack *first = *list, *last = first;
    if (!first)
        return NULL;
    for (first->cold = false; --want > 0 && last->link; last->cold = false) {
        last = last->link;
        __builtin_prefetch(gort__load(&last->owner, RELAXED), 1);
    }
    *list = last->link;
    last->link = NULL;
    return first;
}

/* Up to `want` stacks as a chain; NULL: no memory. */
static struct gort__stack *take(uint8_t log2, int want)
{
    struct gort__stack_class *c = &gort__stack_classes[log2];
    for (;;) {
        gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
        struct gort__stack *chain = take_listed(&c->free, want);
        if (!chain)
            chain = take_listed(&c->old, want);
        struct gort__stack *warm = chain;
        if (!chain)
            chain = take_listed(&c->trim, want);
        if (!chain) {
            chain = take_listed(&c->cold, want);
            c->missed |= chain != NULL;
        }
        if (!chain)
            chain = take_fresh(c, log2, want > 1 && c->slots > MANY ? BATCH_MANY : want);
        for (struct gort__stack *s = chain; s; s = s->link)
            c->out++;
        bool wait = !chain && c->trimming;
        gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
        for (
            ; warm;
            warm =
                warm->link) /* at once: finding their pages takes longest, and several walks go on together */
            __builtin_prefetch(gort__stack_top(warm) - GORT_LINE, 1);
        if (!wait)
            return prepare(chain);
        gort__os_nap(50000); /* the scavenger has some in its hands, and will have returned them soon */
    }
}

static GORT_NOINLINE struct gort__stack *get_slow(struct gort__stack_cache *cache, uint8_t log2)
{
    bool cached = cache && log2 == default_log2;
    struct gort__stack *s = take(log2, cached ? BATCH : 1);
    if (cached && s && s->link) {
        cache->top = s->link; /* it was empty */
        for (struct gort__stack *more = s->link; more; more = more->link)
            cache->n++;
    }
    return s;
}

/* For TSan the next owner of a stack comes after the former one. The oldest of the cache is taken, so that
 * this orders goroutines that are far apart only: races of others could not be seen. */
static struct gort__stack *get_oldest(struct gort__stack_cache *cache)
{
    struct gort__stack **at = &cache->top, *s;
    while ((*at)->link)
        at = &(*at)->link;
    s = *at;
    *at = NULL;
    cache->n--;
    return s;
}

struct gort__stack *gort__stack_get(struct gort__stack_cache *cache, uint8_t log2)
{
    struct gort__stack *s = cache ? cache->top : NULL;
    if (GORT_UNLIKELY(!s || log2 != default_log2))
        return get_slow(cache, log2);
    if (GORT_TSAN_EDGES)
        return get_oldest(cache);
    struct gort__stack *next = cache->top = s->link;
    cache->n--;
    if (next) { /* asked for in time: it may have been given back long ago */
        __builtin_prefetch(gort__stack_top(next) - GORT_LINE, 1);
        __builtin_prefetch(gort__stack_top(next) - 2 * GORT_LINE, 1);
        __builtin_prefetch(next->link, 1);
    }
    return s;
}

/* Moves all but `keep` stacks of the cache to the free list of the default class. */
static void flush_to(struct gort__stack_cache *cache, uint32_t keep)
{
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    struct gort__stack_class *c = &gort__stack_classes[default_log2];
    struct gort__stack *first = cache->top, **end = &cache->top;
    c->out -= cache->n > keep ? cache->n - keep : 0;
    for (; cache->n > keep; cache->n--)
        end = &(*end)->link;
    if (end != &cache->top) {
        cache->top = *end;
        *end = c->free;
        c->free = first;
    }
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
}

void gort__stack_put(struct gort__stack_cache *cache, struct gort__stack *s)
{
    struct gort__stack **ahead = cache ? &cache->recent[cache->n % GORT_STACK_AHEAD] : NULL;
    gort__store(&s->owner, cache ? (void *)((uintptr_t)*ahead + 1) : NULL, RELAXED);
    gort__store(&s->sight, 0, RELAXED);
    gort__sanitize_stack_clean(gort__stack_lo(s), gort__stack_hi(s));
    if (GORT_LIKELY(cache && s->log2 == default_log2)) {
        *ahead = s;
        s->link = cache->top;
        cache->top = s;
        if (GORT_UNLIKELY(++cache->n > CACHE_MAX))
            flush_to(cache, CACHE_MAX / 2);
        return;
    }
    if (s->log2 > default_log2) /* rarely asked for again: the address space stays, its pages go */
        gort__os_vm_discard(gort__stack_lo(s), (size_t)(gort__stack_hi(s) - gort__stack_lo(s)));
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    struct gort__stack_class *c = &gort__stack_classes[s->log2];
    s->link = c->free;
    c->free = s;
    c->out--;
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
}

void gort__stack_cache_flush(struct gort__stack_cache *cache)
{
    flush_to(cache, 0);
}

/* Unmaps a slab but for the slots to keep. */
static void unmap(struct gort__stack_slab *s, uint8_t log2, bool (*keep)(const char *base, size_t size))
{
    size_t slot = gort__stack_stride(log2);
    char *from = s->base, *end = gort__stack_slab_end(s, log2);
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

static void deregister_all(struct gort__stack_slab *slab)
{
    for (size_t i = 0; i < slab->slots && slab->records[i].base; i++) {
        struct gort__stack *s = &slab->records[i];
        if (GORT_TSAN_EDGES)
            (void)gort__load(&s->owner,
                             ACQUIRE); /* all who ran on it are gone; pairs with sched/core/san.h */
        gort__sanitize_stack_deregister(gort__stack_lo(s), gort__stack_hi(s), s->sanitizer);
    }
}

void gort__stack_destroy(bool (*keep)(const char *base, size_t size))
{
    for (int log2 = GORT_STACK_LOG2_MIN; log2 <= GORT_STACK_LOG2_MAX; log2++) {
        struct gort__stack_slab *all = gort__stack_classes[log2].all;
        gort__stack_classes[log2] = (struct gort__stack_class){0};
        for (struct gort__stack_slab *s = all; s; s = s->next) {
            deregister_all(s);
            unmap(s, (uint8_t)log2, keep);
            gort__os_vm_unmap(s->records, record_bytes(s->slots));
        }
    }
    gort__slab_destroy(&slabs, NULL);
}

struct gort__stack *gort__stack_at(const void *addr)
{
    const char *at = addr;
    for (int log2 = GORT_STACK_LOG2_MIN; log2 <= GORT_STACK_LOG2_MAX; log2++) {
        /* Pairs with map_slab. */
        struct gort__stack_slab *s = gort__load(&gort__stack_classes[log2].all, ACQUIRE);
        for (; s; s = gort__load(&s->next, ACQUIRE)) { /* pairs with map_slab */
            if (at < s->base || at >= gort__stack_slab_end(s, log2))
                continue;
            struct gort__stack *r = gort__stack_slab_at(s, log2, at);
            return gort__load(&r->base, ACQUIRE) ? r : NULL; /* pairs with take_fresh */
        }
    }
    return NULL;
}

size_t gort__stack_depth(const struct gort__stack *s)
{
    struct gort__os_range lowest;
    char *next, *hi = gort__stack_hi(s);
    if (gort__os_vm_resident(gort__stack_lo(s), hi, &lowest, 1, &next) != 1)
        return 0;
    return (size_t)(hi - (char *)lowest.addr);
}
