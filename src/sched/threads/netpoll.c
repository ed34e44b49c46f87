/* SPDX-License-Identifier: MIT */
/*
 * netpoll.c - what the poller finds becomes runnable.
 *
 * Why: the room of the poller knows fds and who waits for them, not goroutines. It asks here whether it may
 * end a wait (claim), and hands out those it has claimed; here they are made runnable.
 * No deadlock is seen while somebody holds goroutines that are in no queue: an M with a P is not idle, and
 * one without counts in sched.ms.without_p for the while.
 * Threads: any.
 */
#include "base/fatal.h"
#include "poll/poll.h"
#include "sched/threads/threads.h"

/* The same as gort__waitq_take does for the queue of an object. */
static bool claim(struct gort__poll_waiter *w)
{
    struct gort__g *g = w->g;
    if (!gort__g_claim(g))
        return false;
    g->wait_slot = w;
    gort__g_edge(g);
    return true;
}

int gort__netpoll_open(void)
{
    gort__poll_claim = claim;
    return gort__poll_open();
}

struct gort__glist gort__netpoll_look(int64_t deadline)
{
    struct gort__glist list = {0};
    struct gort__poll_waiter *next;
    for (struct gort__poll_waiter *w = gort__poll_look(deadline); w; w = next) {
        next = w->next; /* the record is on the stack of its goroutine */
        gort__runq_list_add(&list, w->g);
    }
    struct gort__sched *s = &gort__sched;
    int64_t now = gort__os_now();
    gort__count_shared(&s->counts.polls, 1);
    if (list.n) {
        gort__count_shared(&s->counts.polled, list.n);
        int64_t before = deadline == INT64_MIN ? gort__load(&s->poll.at, RELAXED) : 0;
        if (before) /* else somebody slept until they were ready */
            gort__hist_add_shared(&s->counts.poll_late, now - before);
    }
    gort__store(&s->poll.at, now, RELAXED);
    return list;
}

uint32_t gort__netpoll(struct gort__m *m, int64_t deadline)
{
    struct gort__sched *s = &gort__sched;
    bool homeless = !m || !m->p;
    if (homeless) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        s->ms.without_p++;
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
    }
    struct gort__glist list = gort__netpoll_look(deadline);
    if (list.n)
        gort__ready_events(m, list);
    if (homeless) {
        gort__lock_take(&s->lock, GORT_RANK_SCHED);
        s->ms.without_p--;
        gort__hooks.life.deadlock_locked(); /* somebody may have left it to us */
        gort__lock_release(&s->lock, GORT_RANK_SCHED);
    }
    return list.n;
}
