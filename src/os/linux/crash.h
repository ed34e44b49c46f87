/* SPDX-License-Identifier: MIT */
/* crash.h - the pieces of crash.c that fault.c uses, too. */
#ifndef GORT_SRC_OS_LINUX_CRASH_H
#define GORT_SRC_OS_LINUX_CRASH_H

/* In a handler: the default action for signo is about to follow. */
void gort__crash_report(int signo, void *info, void *context);
void gort__crash_default(int signo);

#endif
