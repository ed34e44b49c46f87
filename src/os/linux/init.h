/* SPDX-License-Identifier: MIT */
/* init.h - the questions that the files of linux/ ask the kernel once; init.c asks them in order. */
#ifndef GORT_SRC_OS_LINUX_INIT_H
#define GORT_SRC_OS_LINUX_INIT_H

void gort__vm_init(void);
void gort__barrier_init(void);

/* The number that a file begins with; 0: none (pages.c). */
long gort__os_number_in(const char *path);

#endif
