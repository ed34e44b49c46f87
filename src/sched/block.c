/* SPDX-License-Identifier: MIT */
/*
 * block.c - calls that block, announced by the caller.
 *
 * Between enter and leave the caller counts as a plain thread: its M has no P, and m->g is g0, which can wait on
 * the thread's own note like the stand-in of any plain thread.
 * Threads: the calling goroutine for itself; plain threads and threads outside of runs need not announce anything.
 */
#include "base/fatal.h"
#include "sched/verbs.h"

void gort_block_enter(void)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return;
    if (!m->p) {
        m->block_depth++;
        gort__leave(m);
        return;
    }
    struct gort__g *g = m->g;
    m->block_g = g;
    gort__g_set(g, GORT_G_SYSCALL);
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    if (!m->owed) { /* it comes back: no deadlock meanwhile */
        m->owed = true;
        gort__sched.without_p++;
    }
    gort__lock_drop(&gort__sched.lock, GORT_RANK_SCHED);
    gort__p_handoff(m);
    gort__store(&m->g, &m->g0, RELEASE); /* pairs with run.c:bury */
    gort__leave(m);
}

void gort_block_leave(void)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return;
    if (m->block_depth || !m->block_g) {
        if (m->block_depth)
            m->block_depth--;
        gort__leave(m);
        return;
    }
    struct gort__g *g = m->block_g;
    m->block_g = NULL;
    gort__store(&m->g, g, RELEASE); /* pairs with run.c:bury */
    gort__p_regain(m);
    gort__leave(m);
}

intptr_t gort_block(intptr_t (*fn)(void *), void *arg)
{
    gort_block_enter();
    intptr_t result = fn(arg);
    gort_block_leave();
    return result;
}
