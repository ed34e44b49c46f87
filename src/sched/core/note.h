/* SPDX-License-Identifier: MIT */
/*
 * note.h - the futex on which an M sleeps; see note.c.
 */
#ifndef GORT_SRC_SCHED_CORE_NOTE_H
#define GORT_SRC_SCHED_CORE_NOTE_H

#include "sched/core/hooks.h"

void gort__note_sleep(struct gort__m *m);
void gort__note_sleep_again(struct gort__m *m); /* the same when it may have been left before its end */
bool gort__note_sleep_until(struct gort__m *m, int64_t deadline);
void gort__note_wake(struct gort__m *m);
bool gort__note_doze(struct gort__m *m); /* before a sleep in the poller; false: woken already */
/* After it; false: it was woken, and gort__note_sleep says so once more. */
bool gort__note_undoze(struct gort__m *m);

/* Its thread is about to sleep: from here on whoever stops the world may look at its stack; and wakes up. */
#define GORT_PUBLISH_SP(m)                                                                                   \
    do {                                                                                                     \
        __builtin_unwind_init(); /* what registers hold is in this frame */                                  \
        gort__hooks.life.publish_sp(m, gort__arch_sp());                                                     \
    } while (0)

#endif
