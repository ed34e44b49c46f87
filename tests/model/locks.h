/* SPDX-License-Identifier: MIT */
/*
 * locks.h - stand-ins that all models share: the slow halves of locks, and the checks of debug builds.
 *
 * Who finds a lock taken waits until it is free, so nobody ever sleeps on one (lock.c explores how that is
 * done), and a drop is a store and nothing else. Ranks and edges are checked elsewhere.
 */
#ifndef MODEL_LOCKS_H
#define MODEL_LOCKS_H

#include "base/rank.h"
#include "mem/lock.h"
#include "model/engine/explore.h"
#include "sched/core/g.h"

void gort__lock_slow(struct gort__lock *l)
{
    uint32_t free_word;
    do {
        model_await(&l->word, 0);
        free_word = 0;
    } while (!gort__cas(&l->word, &free_word, 1, ACQUIRE)); /* pairs with gort__lock_release */
}
static inline void model_lock_drop(struct gort__lock *l)
{
    gort__store(&l->word, 0, RELEASE); /* pairs with gort__lock_take */
}
#define gort__lock_release(l, rank)      model_lock_drop(l)
#define gort__lock_release_look(l, rank) ((void)(rank), model_lock_drop(l), false)
void gort__lock_rank_take(enum gort__rank rank)
{
    (void)rank;
}
void gort__lock_rank_release(enum gort__rank rank)
{
    (void)rank;
}
void gort__state_check_edge(const struct gort__g *g, enum gort__gstate to)
{
    (void)g, (void)to;
}

#endif
