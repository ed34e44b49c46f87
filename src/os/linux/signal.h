/* SPDX-License-Identifier: MIT */
/* signal.h - what signal.c and caught.c share. */
#ifndef GORT_SRC_OS_LINUX_SIGNAL_H
#define GORT_SRC_OS_LINUX_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* What our handlers are installed with (signal.c). */
int gort__os_signal_flags(void);
/* Does what the kernel would have done with the disposition f. In a handler (signal.c). */
void gort__os_signal_act(const struct sigaction *f, int signo, siginfo_t *info, void *context);
/* The signal is caught, and is noted now. False: it is not, and *former (if not NULL) is what it did before.
 * In a handler (caught.c). */
bool gort__os_signal_note(int signo, struct sigaction *former);

#endif
