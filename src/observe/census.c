/* SPDX-License-Identifier: MIT */
/*
 * census.c - how deep goroutines really went, by the function they ran (GORT_DEBUG=stackcensus=1).
 *
 * Why: the size of a stack is a guess until somebody counts. With the census on, every goroutine starts on a
 * stack without memory, and when it ends (or the run does) its pages are counted: exact to a page, at the
 * price of some microseconds and page faults a goroutine. A goroutine that was trimmed while it was parked
 * (scavenge_stack.c) counts what it used since.
 *
 *     gort: stack census: deepest  average  goroutines  function
 *     gort:                 36 KiB    8 KiB        1000  worker+0x0 (program+0x1234)
 *
 * Threads: take by any M, guarded by the lock; print by the supervisor when nobody runs any more.
 */
#include <string.h>

#include "base/fatal.h"
#include "base/fmt.h"
#include "observe/observe.h"

#define ROWS 256 /* functions; the others are counted as one */

static struct {
    void (*fn)(void);
    uint64_t n, sum;
    size_t deepest;
} rows[ROWS + 1]; /* guarded by lock; the last one is for all that found no place */

static struct gort__lock lock; /* rank GORT_RANK_NONE */

static void count(struct gort__g *g)
{
    size_t depth = gort__stack_depth(g->stack);
    size_t i = ((uintptr_t)g->fn >> 4) * 31 % ROWS, tries = 0;
    gort__lock_take(&lock, GORT_RANK_NONE);
    while (rows[i].n && rows[i].fn != g->fn && ++tries < ROWS)
        i = (i + 1) % ROWS;
    if (tries == ROWS)
        i = ROWS;
    rows[i].fn = i == ROWS ? NULL : g->fn;
    rows[i].n++;
    rows[i].sum += depth;
    if (depth > rows[i].deepest)
        rows[i].deepest = depth;
    gort__lock_release(&lock, GORT_RANK_NONE);
}

void gort__census_take(struct gort__g *g)
{
    gort__overflow_check(g);
    if (!gort__sched.conf.stackcensus)
        return;
    count(g);
    char *lo = gort__stack_lo(g->stack);
    gort__os_vm_discard(lo, (size_t)(gort__stack_hi(g->stack) - lo));
}

static void print_row(size_t i)
{
    char name[256] = "(others)";
    if (rows[i].fn)
        gort__os_symbol((uintptr_t)rows[i].fn, name, sizeof name);
    gort__fmt_print(2, "gort: %16zu KiB %5zu KiB %11lu  %s\n", rows[i].deepest >> 10,
                    (size_t)(rows[i].sum / rows[i].n) >> 10, (unsigned long)rows[i].n, name);
}

/* Those that have not ended. */
static void count_alive(void)
{
    for (struct gort__chunk *c = gort__sched.gs.chunks; c; c = c->next)
        for (char *at = c->first; at < c->carved; at += sizeof(struct gort__g)) {
            struct gort__g *g = (struct gort__g *)(void *)at;
            uint8_t state = gort__load(&g->state, RELAXED);
            if (state != GORT_G_IDLE && state != GORT_G_DEAD && g->stack && g->ctx.pc)
                count(g);
        }
}

void gort__census_print(void)
{
    if (!gort__sched.conf.stackcensus)
        return;
    count_alive();
    gort__fmt_print(2, "gort: stack census: deepest   average  goroutines  function\n");
    for (;;) { /* the deepest first */
        size_t best = ROWS + 1;
        for (size_t i = 0; i <= ROWS; i++)
            if (rows[i].n && (best > ROWS || rows[i].deepest > rows[best].deepest))
                best = i;
        if (best > ROWS)
            break;
        print_row(best);
        rows[best].n = 0;
    }
    memset(rows, 0, sizeof rows);
}
