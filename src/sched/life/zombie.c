/* SPDX-License-Identifier: MIT */
/*
 * zombie.c - what threads that outlive their run leave behind, and who frees it.
 *
 * Why: a thread that computes or blocks when its run ends cannot be ended. It keeps what it stands on: its stack, its
 * goroutine's record, its P. The last one to let go, the thread or a later run, frees that.
 * Threads: the thread itself, or the supervisor, never both (m->end.reaper decides).
 */
#include "sched/core/san.h"
#include "sched/life/life.h"

int gort__zombie_count; /* threads that ended runs have left behind; atomic */

void gort__zombie_free(struct gort__zombie *e)
{
    gort__san_zombie(e->fiber);
    if (e->p)
        gort__p_free(e->p);
    if (e->stack)
        gort__os_vm_unmap(e->stack, e->stack_size);
    for (int i = 0; i < 3; i++)
        if (e->chunk[i])
            gort__slab_chunk_drop(e->chunk[i]);
}
