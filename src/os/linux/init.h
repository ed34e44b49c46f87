/* SPDX-License-Identifier: MIT */
/* init.h - the questions that the files of linux/ ask the kernel once; init.c asks them in order. */
#ifndef GORT_SRC_OS_LINUX_INIT_H
#define GORT_SRC_OS_LINUX_INIT_H

#include <stdbool.h>

void gort__vm_init(void);
void gort__barrier_init(void);
void gort__thread_init(void);

/* Threads are signalled by tgkill, which carries no value (task.c). */
bool gort__os_signals_blank(void);

/* The number that a file begins with; 0: none (pages.c). */
long gort__os_number_in(const char *path);

#endif
