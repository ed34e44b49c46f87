/* SPDX-License-Identifier: MIT */
/*
 * init.c - finds out what this kernel can do.
 *
 * Why: features are probed by trying them, never by the kernel's version: distributions backport,
 * sandboxes forbid, and emulators accept a call and do nothing.
 * Threads: one caller at a time, while no run is on; everybody else only reads the answers.
 */
#include "os/linux/init.h"

#include <errno.h>

#include "os/force.h"
#include "os/os.h"

struct gort__os_force gort__os_force;

void gort__os_init(void)
{
    int saved = errno;
    gort__vm_init();
    gort__barrier_init();
    errno = saved;
}
