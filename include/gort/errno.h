/* SPDX-License-Identifier: MIT */
/*
 * gort/errno.h - an errno that stays right when a goroutine continues on another thread.
 *
 * The C library tells the compiler that the address of errno never changes within a function, so the compiler
 * computes it once and keeps it across calls. After a call that has parked, the goroutine may be on another
 * thread, and the kept address is that of the old thread's errno. The errno of this header asks for the
 * address each time.
 *
 * For files that do not include gort.h, compile with `-include gort/errno.h`. A file that does not use errno
 * across calls that may park can define GORT_NO_ERRNO to keep the C library's errno.
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
