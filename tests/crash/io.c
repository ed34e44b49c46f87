/* SPDX-License-Identifier: MIT */
/*
 * io.c - misuse of fds, readers and signals: one line that says what and who, the dump, abort.
 * Covers: src/io/when.c src/io/buf.c src/io/signal.c src/io/fd.c
 */
#include "misuse.h"

#include <signal.h>

MISUSE(nothing_to_go_when, "gort_go_when: NULL function")
{
    int ends[2];
    CHECK_EQ(gort_pipe(ends), 0);
    return gort_go_when(ends[0], GORT_READ, NULL, NULL);
}

/* A line needs room for its end, too. */
MISUSE(a_reader_of_one_byte, "gort_reader_init: the buffer must have at least 2 bytes, but has 1")
{
    gort_reader r;
    char c;
    gort_reader_init(&r, 0, &c, 1);
    return 0;
}

MISUSE(signals_to_nobody, "gort_signal_notify: NULL channel")
{
    return gort_signal_notify(NULL, SIGUSR1);
}

#if GORT_CHECKS
MISUSE(a_duration_for_a_deadline_of_an_fd,
       "gort_set_deadline: the deadline 5000000 lies more than a minute before the start of the run")
{
    await_uptime();
    int ends[2];
    CHECK_EQ(gort_pipe(ends), 0);
    return gort_set_deadline(ends[0], GORT_READ, 5 * GORT_MS);
}
#endif
