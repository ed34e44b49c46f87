/* SPDX-License-Identifier: MIT */
/*
 * scavenge.c - stacks that nobody uses give their memory back; and a look at how deep the others are.
 *
 * Why by age: a program that starts and ends goroutines all the time finds warm stacks in `free` and pays nothing. What
 * lay in `old` for a whole tick was not needed by anybody, and loses its pages. Two ticks after the last goroutine of
 * a burst has ended, its memory is gone.
 * What is given back: the pages, some hundred stacks a call, neighbours as one range; and, where all slots of
 * a stretch of 2 MiB are cold, the stretch is mapped anew, which also frees the kernel's page table for it (4 KiB,
 * as much as the stacks themselves when they are shallow). Such slots get their guards again when they are next used.
 * Invariants: (1) a slot whose pages are discarded or that is mapped anew is in the scavenger's hands or in `cold` with
 * the lock held: nobody runs on it. (2) `cold` is set exactly for the members of that list.
 * Threads: one scavenger at a time, in parallel with everything in stack.c but init and destroy.
 */
#include "mem/stack_class.h"
#include "os/os.h"

#define CHUNK   256                /* stacks in the scavenger's hands */
#define RUNS    64                 /* runs of pages asked for at once */
#define STRETCH ((size_t)2 << 20)  /* what one page table covers */
#define RENEW   ((size_t)32 << 20) /* mapped anew at once, with the lock held */

static void sort(struct gort__stack **a, int n)
{
    for (int gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11)
        for (int i = gap; i < n; i++) {
            struct gort__stack *s = a[i];
            int k = i;
            for (; k >= gap && a[k - gap]->base > s->base; k -= gap)
                a[k] = a[k - gap];
            a[k] = s;
        }
}

/* Discards the pages of n stacks; guards stay, a canary would not: the slot counts as bare then. */
static void discard(struct gort__stack **a, int n)
{
    struct gort__os_range ranges[CHUNK];
    int m = 0;
    sort(a, n);
    for (int i = 0; i < n; i++) {
        size_t size = (size_t)1 << a[i]->log2;
        if (a[i]->guard == GORT_STACK_CANARY)
            a[i]->guard = GORT_STACK_BARE;
        if (m && (char *)ranges[m - 1].addr + ranges[m - 1].size == a[i]->base)
            ranges[m - 1].size += size;
        else
            ranges[m++] = (struct gort__os_range){a[i]->base, size};
    }
    gort__os_vm_discard_many(ranges, m);
}

/* Discards what `take` links, a chunk at a time, into the list of cold ones. */
static void cool(struct gort__stack_class *c, struct gort__stack *take)
{
    struct gort__stack *chunk[CHUNK];
    while (take) {
        int n = 0;
        for (; take && n < CHUNK; take = take->link)
            chunk[n++] = take;
        discard(chunk, n);
        gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
        for (int i = n - 1; i >= 0; i--) { /* the lowest first: it is taken first */
            chunk[i]->cold = true;
            chunk[i]->link = c->cold;
            c->cold = chunk[i];
        }
        gort__lock_drop(&gort__stack_lock, GORT_RANK_STACK);
    }
}

/* Maps [from, to) anew, whose slots are all cold. Called with the lock held. */
static void renew(struct gort__stack_slab *slab, uint8_t log2, size_t from, size_t to)
{
    int guards = 0;
    for (size_t i = from; i < to; i++)
        guards += slab->records[i].guard == GORT_STACK_GUARDED;
    char *at = slab->base + (from << log2);
    if (!guards || !gort__os_vm_renew(at, (to - from) << log2, guards))
        return;
    for (size_t i = from; i < to; i++)
        slab->records[i].guard = GORT_STACK_BARE;
}

/* Finds whole stretches of cold slots. */
static void renew_stretches(struct gort__stack_slab *slab, uint8_t log2)
{
    size_t slots = slab->bytes >> log2;
    size_t step = (STRETCH >> log2) ? STRETCH >> log2 : 1, most = (RENEW >> log2) ? RENEW >> log2 : 1;
    for (size_t i = 0; i + step <= slots && slab->records[i].base;) {
        size_t n = 0;
        gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
        while (i + n < slots && n < most && slab->records[i + n].cold)
            n++;
        n -= n % step;
        if (n)
            renew(slab, log2, i, i + n);
        gort__lock_drop(&gort__stack_lock, GORT_RANK_STACK);
        i += n ? n : step;
    }
}

bool gort__stack_trim(bool all)
{
    bool more = false;
    for (int log2 = GORT_STACK_LOG2_MIN; log2 <= GORT_STACK_LOG2_MAX; log2++) {
        struct gort__stack_class *c = &gort__stack_classes[log2];
        bool cooled = false;
        for (int round = 0; round < (all ? 2 : 1); round++) {
            gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
            struct gort__stack *take = c->old;
            c->old = c->free;
            c->free = NULL;
            more |= c->old != NULL;
            c->trimming = take != NULL;
            gort__lock_drop(&gort__stack_lock, GORT_RANK_STACK);
            cooled |= take != NULL;
            cool(c, take);
            gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
            c->trimming = false;
            gort__lock_drop(&gort__stack_lock, GORT_RANK_STACK);
        }
        for (struct gort__stack_slab *s = cooled ? gort__load(&c->all, ACQUIRE) : NULL; s;
             s = gort__load(&s->next, ACQUIRE)) /* pairs with stack.c:map_slab */
            renew_stretches(s, (uint8_t)log2);
    }
    return more && !all;
}

/* --- how deep they are ------------------------------------------------------------------------- */

struct looking {
    void (*deep)(struct gort__stack *s, char *lowest, void *arg);
    void *arg;
    size_t last; /* the slot that was told last, plus one */
};

/* A run of pages with memory: tells each slot that it begins or lies deep in. */
static void tell(struct gort__stack_slab *slab, uint8_t log2, const struct gort__os_range *run,
                 struct looking *l)
{
    char *from = run->addr, *to = from + run->size;
    for (char *at = from; at < to;) {
        size_t i = (size_t)(at - slab->base) >> log2;
        struct gort__stack *s = &slab->records[i];
        char *lo = slab->base + (i << log2) + gort__stack_guard_size(log2),
             *end = slab->base + ((i + 1) << log2);
        char *lowest = at > lo ? at : lo;                   /* a canary lies below */
        bool known = gort__load(&s->base, ACQUIRE) != NULL; /* pairs with stack.c:take_fresh */
        if (known && i + 1 != l->last && lowest < to && lowest < end - 2 * gort__os_page()) {
            l->last = i + 1;
            l->deep(s, lowest, l->arg);
        }
        at = end;
    }
}

static size_t scan_slab(struct gort__stack_slab *slab, uint8_t log2, struct looking *l)
{
    struct gort__os_range runs[RUNS];
    char *at = slab->base, *end = slab->base + slab->bytes, *next;
    l->last = 0;
    while (at < end) {
        if (!gort__load(&slab->records[(size_t)(at - slab->base) >> log2].base,
                        ACQUIRE)) /* pairs with take_fresh */
            break;
        /* A piece at a time: the kernel would look through all that was never used. */
        char *to = (size_t)(end - at) > RENEW ? at + RENEW : end;
        int n = gort__os_vm_resident(at, to, runs, RUNS, &next);
        if (n < 0 || next <= at)
            break;
        for (int i = 0; i < n; i++)
            tell(slab, log2, &runs[i], l);
        at = next;
    }
    return (size_t)(at - slab->base) >> log2;
}

size_t gort__stack_scan(void (*deep)(struct gort__stack *s, char *lowest, void *arg), void *arg)
{
    struct looking l = {deep, arg, 0};
    size_t slots = 0;
    for (int log2 = GORT_STACK_LOG2_MIN; log2 <= GORT_STACK_LOG2_MAX; log2++)
        for (struct gort__stack_slab *s = gort__load(&gort__stack_classes[log2].all, ACQUIRE); s;
             s = gort__load(&s->next, ACQUIRE)) /* pairs with stack.c:map_slab */
            slots += scan_slab(s, (uint8_t)log2, &l);
    return slots;
}
