/* SPDX-License-Identifier: MIT */
/* symbol.h - the pieces of symbol.c that source.c uses, too. */
#ifndef GORT_SRC_OS_LINUX_SYMBOL_H
#define GORT_SRC_OS_LINUX_SYMBOL_H

#include "base/compiler.h"

struct gort__mapping {
    uintptr_t start, end, offset; /* a mapping, and where in the file it begins */
    char path[512];
};

/* The mapping of a file that holds pc. Reads /proc/self/maps. */
bool gort__symbol_mapping(uintptr_t pc, struct gort__mapping *m);
/* What the file calls the address of its byte `at`. */
uint64_t gort__symbol_address(const char *file, size_t size, uint64_t at);
/* The function at an address of the file; NULL: unknown. */
const char *gort__symbol_name(const char *file, size_t size, uint64_t address, uint64_t *offset);
/* The length of a function's name as the source has it. */
size_t gort__symbol_length(const char *name);

#endif
