/* SPDX-License-Identifier: MIT */
/*
 * note.c - the futex on which an M sleeps, and how it is woken.
 *
 * Why: one word for each M, so that exactly the one that is meant wakes. An M that sleeps in the poller is woken by a kick.
 * Invariants: each wake ends one sleep, also one that has not begun yet.
 * Threads: sleep by the M for itself; wake by any.
 */
#include "base/fatal.h"
#include "poll/poll.h"
#include "sched/core/core.h"

enum { NOTE_NONE, NOTE_WOKEN, NOTE_ASLEEP, NOTE_POLLING };

bool gort__note_sleep_until(struct gort__m *m, int64_t deadline)
{
    uint32_t none = NOTE_NONE;
    bool woken = true;
    GORT_PUBLISH_SP(m);
    bool asleep = gort__cas(&m->note, &none, NOTE_ASLEEP, ACQUIRE); /* pairs with gort__note_wake */
    while (asleep && gort__load(&m->note, ACQUIRE) == NOTE_ASLEEP)  /* pairs with gort__note_wake */
        if (gort__os_futex_wait(&m->note, NOTE_ASLEEP, deadline) < 0 && deadline != INT64_MAX &&
            gort__os_now() >= deadline) {
            uint32_t sleeping = NOTE_ASLEEP;
            if (gort__cas(&m->note, &sleeping, NOTE_NONE, ACQUIRE)) { /* pairs with gort__note_wake */
                woken = false;
                break;
            }
        }
    if (woken)
        gort__xchg(&m->note, NOTE_NONE, ACQUIRE); /* pairs with gort__note_wake */
    gort__hooks.life.retract_sp(m);
    return woken;
}

void gort__note_sleep(struct gort__m *m)
{
    gort__note_sleep_until(m, INT64_MAX);
}

void gort__note_sleep_again(struct gort__m *m)
{
    uint32_t asleep = NOTE_ASLEEP; /* a signal handler's siglongjmp may have left an earlier sleep */
    gort__cas(&m->note, &asleep, NOTE_NONE, RELAXED);
    gort__note_sleep(m);
}

void gort__note_wake(struct gort__m *m)
{
    uint32_t *note = &m->note;
    /* Pairs with gort__note_sleep_until. The record may be gone right after it, but for a futex
     * call on an address that nobody waits on any more, which does nothing. */
    uint32_t was = gort__xchg(note, NOTE_WOKEN, RELEASE);
    if (was == NOTE_ASLEEP)
        gort__os_futex_wake(note, 1);
    else if (was == NOTE_POLLING)
        gort__poll_kick();
}

bool gort__note_doze(struct gort__m *m)
{
    uint32_t none = NOTE_NONE;
    return gort__cas(&m->note, &none, NOTE_POLLING, ACQUIRE); /* pairs with gort__note_wake */
}

bool gort__note_undoze(struct gort__m *m)
{
    uint32_t polling = NOTE_POLLING;
    return gort__cas(&m->note, &polling, NOTE_NONE, ACQUIRE); /* pairs with gort__note_wake */
}
