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

#include "base/atomic.h"
#include "base/fatal.h"
#include "os/force.h"
#include "os/os.h"

struct gort__os_force gort__os_force;

void gort__os_say_refused(uint32_t *said, const char *call, int err, const char *lost)
{
    if (!gort__load(said, RELAXED) && !gort__xchg(said, 1, RELAXED))
        gort__warn("%s is refused (errno %d), by a sandbox or an old kernel: %s", call, err, lost);
}

void gort__os_needs(const char *call, int err)
{
    if (gort__os_refused(err))
        gort__fatal("%s is refused (errno %d), and gort needs it: allow it in the sandbox (docs/SANDBOX.md)",
                    call, err);
    gort__throw("%s failed: errno %d", call, err);
}

void gort__os_init(void)
{
    int saved = errno;
    gort__vm_init();
    gort__barrier_init();
    gort__thread_init();
    errno = saved;
}
