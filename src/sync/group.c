/* SPDX-License-Identifier: MIT */
/*
 * group.c - groups of goroutines that fail and end together.
 *
 * Why: a context, a wait group and a semaphore in the right order; nothing here knows how waiting works.
 * There is no gort_group_wait_until: members use what the caller owns, so it must not go on before they have
 * ended, and -ETIMEDOUT or -ECANCELED could be the first error of a member as well. A parent with a deadline,
 * or one that is cancelled, ends the waits of the members, and so the wait for them.
 * Threads: any.
 */
#include <errno.h>

#include <gort/group.h>

#include "base/fatal.h"
#include "sched/verbs.h"

int gort_group_init(gort_group *group, gort_ctx *parent)
{
    GORT_NEED("gort_group_init", "group", group);
    *group = (gort_group){0};
    group->gort_priv_ctx = gort_ctx_new(parent ? parent : gort_ctx_current(), GORT_FOREVER);
    return group->gort_priv_ctx ? 0 : -ENOMEM;
}

void gort_group_limit(gort_group *group, int n)
{
    GORT_NEED("gort_group_limit", "group", group);
    group->gort_priv_limited = n >= 1;
    if (n >= 1)
        gort_sem_init(&group->gort_priv_places, n);
}

gort_ctx *gort_group_ctx(gort_group *group)
{
    GORT_NEED("gort_group_ctx", "group", group);
    return group->gort_priv_ctx;
}

/* The end of a member, also by gort_exit; its context must not be the group's any more when the group
 * goes. */
static void leave(void *arg)
{
    gort_group *group = arg;
    gort_ctx_use(NULL);
    if (group->gort_priv_limited)
        gort_sem_release(&group->gort_priv_places);
    gort_wg_done(&group->gort_priv_members); /* the group may be gone now */
}

static void member(gort_group *group, int (*fn)(void *), void *arg)
{
    gort_ctx_use(group->gort_priv_ctx);
    int err = fn(arg), none = 0;
    if (err && gort__cas(&group->gort_priv_err, &none, err, RELEASE)) /* pairs with gort_group_wait */
        gort_ctx_cancel(group->gort_priv_ctx, -ECANCELED);
}

int gort_group_go(gort_group *group, int (*fn)(void *), void *arg)
{
    GORT_NEED("gort_group_go", "group", group);
    GORT_NEED("gort_group_go", "function", fn);
    if (!group->gort_priv_ctx)
        gort__fatal(
            "gort_group_go: the group was not initialized by gort_group_init, or gort_group_wait has ended it");
    if (group->gort_priv_limited) {
        /* A cancelled group must not keep its starter waiting for a place. */
        gort_ctx *former = gort_ctx_use(group->gort_priv_ctx);
        int err = gort_sem_acquire_until(&group->gort_priv_places, GORT_FOREVER);
        gort_ctx_use(former);
        if (err)
            return err;
    }
    gort_wg_add(&group->gort_priv_members, 1);
    uintptr_t args[3] = {(uintptr_t)group, (uintptr_t)fn, (uintptr_t)arg};
    struct gort__m *m = gort__enter();
    int err = m ? gort__spawn_finally(m, (void (*)(void))member, args, 3, leave, group) : -ESRCH;
    if (m)
        gort__leave(m);
    if (err) {
        if (group->gort_priv_limited)
            gort_sem_release(&group->gort_priv_places);
        gort_wg_done(&group->gort_priv_members);
    }
    return err;
}

int gort_group_wait(gort_group *group)
{
    GORT_NEED("gort_group_wait", "group", group);
    if (!group->gort_priv_ctx)
        gort__fatal(
            "gort_group_wait: the group was not initialized by gort_group_init, or gort_group_wait has ended it");
    int err = gort_wg_wait(&group->gort_priv_members);
    if (err)
        return err;                                         /* a plain thread, and the run has ended */
    int first = gort__load(&group->gort_priv_err, ACQUIRE); /* pairs with member */
    gort_ctx_cancel(group->gort_priv_ctx, -ECANCELED); /* for those whom members started and left behind */
    gort_ctx_unref(group->gort_priv_ctx);
    group->gort_priv_ctx = NULL;
    return first;
}
