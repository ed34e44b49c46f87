/* SPDX-License-Identifier: MIT */
/*
 * source.h - from an address to function, file and line, functions that were inlined included: what
 * linux/source.c fulfils.
 *
 * For reports. All of it may be called from anywhere, signal handlers included: it opens and maps files,
 * takes no lock, allocates nothing but mappings, and changes no errno. What a file lacks (symbols, line
 * tables) is missing in the answer, and no more.
 */
#ifndef GORT_SRC_OS_SOURCE_H
#define GORT_SRC_OS_SOURCE_H

#include "base/compiler.h"

#define GORT__SOURCE_CALLS 12 /* functions inlined into each other that are shown */

/* One function at an address. The texts lie in mapped files, until gort__os_source_end. */
struct gort__os_source_call {
    const char *function;   /* NULL: unknown */
    size_t length;          /* of its name */
    const char *dir, *file; /* file NULL: unknown; dir NULL: none needed */
    uint32_t line;          /* 0: unknown */
};

struct gort__os_source_place {
    const char *module; /* the file's name without its path; NULL: no file is mapped there */
    uint64_t address;   /* in the module, as addr2line wants it */
    uint64_t offset;    /* in the function, if it is known by its symbol */
    int n;              /* the innermost first; the last one is not inlined */
    struct gort__os_source_call call[GORT__SOURCE_CALLS];
};

struct gort__os_source;            /* remembers what was opened */
size_t gort__os_source_size(void); /* of one; memory that is zero is ready for use */
void gort__os_source_find(struct gort__os_source *s, uintptr_t pc, struct gort__os_source_place *out);
void gort__os_source_end(struct gort__os_source *s);

#endif
