/* SPDX-License-Identifier: MIT */
/*
 * scavenge.c - stacks that nobody uses give their memory back; and a look at how deep the others are.
 *
 * Why by age: a program that starts and ends goroutines all the time finds warm stacks in `free` and pays
 * nothing. What lay in `old` for a whole tick was not needed by anybody, and loses its pages (`trim`). Two
 * ticks after the last goroutine of a burst has ended, its memory is gone. If cold ones are wanted soon after
 * that, giving them back was a mistake: bursts come and go. Then they are kept for twice as long, and while
 * the burst is still ending (a sixteenth fewer in use at each tick) for up to HOLD, until nobody misses those
 * that went; a few that even the largest burst leaves over, because Ps keep some for themselves, prove
 * nothing. So the memory is back a second after the last one has ended in any case.
 * What is given back: the pages, some hundred stacks a call, neighbours as one range; and, where all slots of
 * a stretch of 2 MiB are cold, the stretch is mapped anew, which also frees the kernel's page table for it (4
 * KiB, as much as the stacks themselves when they are shallow). Such slots get their guards again when they
 * are next used.
 * Invariants: (1) a slot whose pages are discarded or that is mapped anew is in the scavenger's hands or in
 * `cold` with the lock held: nobody runs on it. (2) `cold` is set exactly for the members of that list.
 * Threads: one scavenger at a time, in parallel with everything in stack.c but init and destroy.
 */
#include "mem/stack_class.h"
#include "os/os.h"

#define CHUNK   256                /* stacks in the scavenger's hands */
#define RUNS    64                 /* runs of pages asked for at once */
#define STRETCH ((size_t)2 << 20)  /* what one page table covers */
#define RENEW   ((size_t)32 << 20) /* mapped anew at once, with the lock held */
#define FEW     16                 /* one part in so many goroutines */
#define MS      INT64_C(1000000)
#define SOON    (2000 * MS) /* if stacks are wanted in that time it was a mistake to have given them back */
#define KEEP    (300 * MS)  /* after a mistake: how long lists stay, in between two ticks; */
#define HOLD    (1600 * MS) /* while many are still coming */

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
        size_t size = gort__stack_stride(a[i]->log2);
        if (a[i]->guard == GORT_STACK_CANARY)
            a[i]->guard = GORT_STACK_BARE;
        if (m && (char *)ranges[m - 1].addr + ranges[m - 1].size == a[i]->base)
            ranges[m - 1].size += size;
        else
            ranges[m++] = (struct gort__os_range){a[i]->base, size};
    }
    gort__os_vm_discard_many(ranges, m);
}

/* Discards a chunk of what is to be trimmed. False: there is none. */
static bool cool(struct gort__stack_class *c)
{
    struct gort__stack *chunk[CHUNK];
    int n = 0;
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    for (; c->trim && n < CHUNK; c->trim = c->trim->link)
        chunk[n++] = c->trim;
    c->trimming = n != 0;
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
    if (!n)
        return false;
    discard(chunk, n);
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    for (int i = n - 1; i >= 0; i--) { /* the lowest is taken first */
        chunk[i]->cold = true;
        chunk[i]->link = c->cold;
        c->cold = chunk[i];
    }
    c->trimming = false;
    c->gone += (size_t)n;
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
    c->renew = gort__load(&c->all, ACQUIRE); /* pairs with stack.c:map_slab */
    c->renew_slot = 0;
    return true;
}

/* The guard of a slot lies in [from, to), at least in part. */
static bool is_guarded(const struct gort__stack *s, const char *from, const char *to)
{
    return s->guard == GORT_STACK_GUARDED && s->base < to && gort__stack_lo(s) > from;
}

/* Maps the whole stretches among n slots anew, which are all cold. Called with the lock held. Where the last
 * of them ends; NULL: there is none. */
static char *renew(struct gort__stack *s, size_t n, uint8_t log2)
{
    char *base = s->base, *from = base + (-(uintptr_t)base & (STRETCH - 1));
    char *to = base + n * gort__stack_stride(log2);
    to -= (uintptr_t)to & (STRETCH - 1);
    int guards = 0;
    if (from >= to)
        return NULL;
    for (size_t i = 0; i < n; i++)
        guards += is_guarded(&s[i], from, to);
    if (guards && gort__os_vm_renew(from, (size_t)(to - from), guards))
        for (size_t i = 0; i < n; i++)
            if (is_guarded(&s[i], from, to))
                s[i].guard = GORT_STACK_BARE;
    return to;
}

/* Goes on with the search for whole stretches of cold slots. False: it is done. */
static bool renew_some(struct gort__stack_class *c, uint8_t log2)
{
    struct gort__stack_slab *slab = c->renew;
    if (!slab)
        return false;
    size_t most = RENEW / gort__stack_stride(log2) + 1, i = c->renew_slot, n = 0;
    if (i >= slab->slots ||
        !gort__load(&slab->records[i].base, ACQUIRE)) { /* pairs with stack.c:take_fresh */
        c->renew = gort__load(&slab->next, ACQUIRE);    /* pairs with stack.c:map_slab */
        c->renew_slot = 0;
        return true;
    }
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    while (i + n < slab->slots && n < most && slab->records[i + n].cold)
        n++;
    char *end = n ? renew(&slab->records[i], n, log2) : NULL;
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
    c->renew_slot = i + n + !n;
    if (end && n == most) {
        /* The stretch that ends in the next slots begins in one of these; perhaps in this one, a large one:
         * it is left then. */
        size_t again = (size_t)(gort__stack_slab_at(slab, log2, end) - slab->records);
        c->renew_slot = again > i ? again : c->renew_slot;
    }
    return true;
}

/* Moves all of one list to the front of another; whoever made `from` long pays for the walk. */
static void splice(struct gort__stack **to, struct gort__stack **from)
{
    struct gort__stack **end = from;
    if (!*to) {
        *to = *from;
        *from = NULL;
        return;
    }
    for (int i = 0; *end && i < CHUNK; i++)
        end = &(*end)->link;
    struct gort__stack *rest = *end;
    *end = *to;
    *to = *from;
    *from = rest;
}

/* Do the lists move on at this tick? Called with the lock held. */
static bool moves_on(struct gort__stack_class *c, int64_t now)
{
    bool ending = c->out + c->out / FEW < c->out_before, soon = now - c->trimmed <= SOON;
    int64_t age = now - c->aged;
    if (c->trimmed && (c->missed || !soon)) {
        if (c->missed && soon)
            c->patient = true;
        else if (c->gone >= c->reserved / FEW)
            c->patient = false;
        c->trimmed = 0;
        c->gone = 0;
    }
    c->missed = false;
    c->out_before = c->out;
    return !c->patient || age >= (ending ? HOLD : KEEP);
}

bool gort__scavenge_age(int64_t now, bool all)
{
    bool left = false;
    gort__lock_take(&gort__stack_lock, GORT_RANK_STACK);
    for (int log2 = GORT_STACK_LOG2_MIN; log2 <= GORT_STACK_LOG2_MAX; log2++) {
        struct gort__stack_class *c = &gort__stack_classes[log2];
        if (moves_on(c, now) || all) {
            c->aged = now;
            c->trimmed = c->old || (all && c->free) ? now : c->trimmed;
            splice(&c->trim, &c->old);
            splice(&c->old, &c->free);
            if (all)
                splice(&c->trim, &c->old);
        }
        left |= c->free || c->old;
    }
    gort__lock_release(&gort__stack_lock, GORT_RANK_STACK);
    return left;
}

bool gort__scavenge_trim(int64_t until)
{
    for (int log2 = GORT_STACK_LOG2_MIN; log2 <= GORT_STACK_LOG2_MAX; log2++) {
        struct gort__stack_class *c = &gort__stack_classes[log2];
        for (unsigned n = 1; cool(c) || renew_some(c, (uint8_t)log2); n++)
            if (n % 8 == 0 && gort__os_now() >= until) /* asking takes as long as a step */
                return false;
    }
    return true;
}

/* --- how deep they are ------------------------------------------------------------------------- */

struct looking {
    bool (*deep)(struct gort__stack *s, char *lowest, void *arg);
    void *arg;
    bool enough; /* deep said so */
    size_t last; /* the slot that was told last, plus one */
};

/* A run of pages with memory: tells each slot that it begins or lies deep in. */
static void tell(struct gort__stack_slab *slab, uint8_t log2, const struct gort__os_range *run,
                 struct looking *l)
{
    char *from = run->addr, *to = from + run->size;
    for (char *at = from; at < to;) {
        struct gort__stack *s = gort__stack_slab_at(slab, log2, at);
        size_t i = (size_t)(s - slab->records), slot = gort__stack_stride(log2);
        char *base = slab->base + i * slot, *lo = base + gort__stack_guard_size(log2);
        char *end = base + ((size_t)1 << log2);
        char *lowest = at > lo ? at : lo;                   /* a canary lies below */
        bool known = gort__load(&s->base, ACQUIRE) != NULL; /* pairs with stack.c:take_fresh */
        if (known && i + 1 != l->last && lowest < to && lowest < end - 2 * gort__os_page()) {
            l->last = i + 1;
            l->enough |= !l->deep(s, lowest, l->arg);
        }
        at = base + slot;
    }
}

/* Looks at one more piece of a slab: the kernel would also look through all that was never used. False: the
 * end. */
static bool scan_piece(struct gort__stack_cursor *c, struct looking *l)
{
    struct gort__os_range runs[RUNS];
    struct gort__stack_slab *slab = c->slab;
    char *end = gort__stack_slab_end(slab, c->log2), *next;
    if (c->at >= end ||
        !gort__load(&gort__stack_slab_at(slab, c->log2, c->at)->base, ACQUIRE)) /* pairs with take_fresh */
        return false;
    char *to = (size_t)(end - c->at) > RENEW ? c->at + RENEW : end;
    int n = gort__os_vm_resident(c->at, to, runs, RUNS, &next);
    if (n < 0 || next <= c->at)
        return false;
    for (int i = 0; i < n; i++)
        tell(slab, (uint8_t)c->log2, &runs[i], l);
    c->at = next;
    return true;
}

bool gort__scavenge_scan(struct gort__stack_cursor *c, int64_t until,
                         bool (*deep)(struct gort__stack *s, char *lowest, void *arg), void *arg)
{
    struct looking l = {deep, arg, false, 0};
    if (!c->log2)
        c->log2 = GORT_STACK_LOG2_MIN - 1;
    for (;;) {
        while (c->slab && scan_piece(c, &l))
            if (l.enough || gort__os_now() >= until)
                return false;
        l.last = 0;
        c->slab = c->slab ? gort__load(&c->slab->next, ACQUIRE) : NULL; /* pairs with stack.c:map_slab */
        while (!c->slab) {
            if (++c->log2 > GORT_STACK_LOG2_MAX)
                return true;
            c->slab = gort__load(&gort__stack_classes[c->log2].all,
                                 ACQUIRE); /* pairs with stack.c:map_slab */
        }
        c->at = c->slab->base;
    }
}
