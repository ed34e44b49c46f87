/* SPDX-License-Identifier: MIT */
/* gort/version.h - which gort this is, at compile time and at run time. */
#ifndef GORT_VERSION_H
#define GORT_VERSION_H

#include "base.h"

#define GORT_VERSION_MAJOR  0
#define GORT_VERSION_MINOR  1
#define GORT_VERSION_PATCH  0
#define GORT_VERSION_STRING "0.1.0"
/* One number to compare with: GORT_VERSION >= GORT_VERSION_AT(0, 2, 0). */
#define GORT_VERSION_AT(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define GORT_VERSION                         GORT_VERSION_AT(GORT_VERSION_MAJOR, GORT_VERSION_MINOR, GORT_VERSION_PATCH)

GORT_BEGIN_DECLS

/* The version of the library in use, "0.1.0". Callable from anywhere. */
GORT_API const char *gort_version(void);

/* What a result of gort means; takes -errno or errno, never returns NULL. Callable from anywhere. */
GORT_API const char *gort_strerror(int err);

GORT_END_DECLS
#endif
