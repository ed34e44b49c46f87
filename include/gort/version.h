/* SPDX-License-Identifier: MIT */
/* gort/version.h - the version of gort at compile time and at run time; texts for errors. */
#ifndef GORT_VERSION_H
#define GORT_VERSION_H

#include "base.h"

#define GORT_VERSION_MAJOR  0
#define GORT_VERSION_MINOR  1
#define GORT_VERSION_PATCH  0
#define GORT_VERSION_STRING "0.1.0"
/* The version as one number, to compare: GORT_VERSION >= GORT_VERSION_AT(0, 2, 0). */
#define GORT_VERSION_AT(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define GORT_VERSION                         GORT_VERSION_AT(GORT_VERSION_MAJOR, GORT_VERSION_MINOR, GORT_VERSION_PATCH)

GORT_BEGIN_DECLS

/*
 * Returns the version of the library that the program runs with, "0.1.0". Never parks. Callable from
 * anywhere.
 */
GORT_API const char *gort_version(void);

/*
 * Returns a text for an error of gort, given as -errno or errno; never NULL. Never parks. Callable from
 * anywhere.
 */
GORT_API const char *gort_strerror(int err);

GORT_END_DECLS
#endif
