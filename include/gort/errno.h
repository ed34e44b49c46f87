/* SPDX-License-Identifier: MIT */
/*
 * gort/errno.h - an errno that stays right when a goroutine changes its thread.
 *
 * The C library declares the address of errno as a constant of the calling function, so compilers
 * compute it once and keep it across calls; after a call that parked, the goroutine may be on
 * another thread and the kept address is the old thread's. This errno is asked for anew each time.
 * Files that do not include gort.h can have it with `-include gort/errno.h`; a file that never
 * uses errno across a parking call may define GORT_NO_ERRNO to leave it alone.
 */
#ifndef GORT_ERRNO_H
#define GORT_ERRNO_H

#include <errno.h>

#include "base.h"

GORT_BEGIN_DECLS
GORT_API int *gort_priv_errno(void);
GORT_END_DECLS

#ifndef GORT_NO_ERRNO
#undef errno
#define errno (*gort_priv_errno())
#endif

#endif
