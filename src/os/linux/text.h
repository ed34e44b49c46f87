/* SPDX-License-Identifier: MIT */
/*
 * text.h - what the files share that tell where a signal met the program: text.c asks, heap.c knows the
 * allocator, unwind.c walks a stack, code.c reads instructions, object.c knows what is loaded.
 *
 * All of it runs in signal handlers, except for the functions named *_collect and *_add.
 */
#ifndef GORT_SRC_OS_LINUX_TEXT_H
#define GORT_SRC_OS_LINUX_TEXT_H

#include <link.h>

#include "os/os.h"

/* These functions read any memory that is mapped: stacks between their variables, code, tables. */
#define GORT__RAW __attribute__((no_sanitize("address"), no_sanitize("thread"), no_sanitize("undefined")))

typedef uint64_t __attribute__((aligned(1), may_alias)) gort__raw64;
typedef uint32_t __attribute__((aligned(1), may_alias)) gort__raw32;
typedef uint16_t __attribute__((aligned(1), may_alias)) gort__raw16;

struct gort__range {
    uintptr_t from, to;
};

static inline void gort__text_range_add(struct gort__range *list, int *n, int most, uintptr_t from,
                                        uintptr_t to)
{
    if (*n < most && from < to)
        list[(*n)++] = (struct gort__range){from, to};
}

static inline bool gort__text_range_has(const struct gort__range *list, int n, uintptr_t pc)
{
    for (int i = 0; i < n; i++)
        if (pc >= list[i].from && pc < list[i].to)
            return true;
    return false;
}

/* --- object.c --------------------------------------------------------------------------------- */

/* A function and its entry in the tables for unwinding. */
struct gort__sorted {
    uintptr_t from, entry;
};

/* The program or a library, and what leads to its tables for unwinding: the linker's index (eh_frame_hdr) or
 * ours; or nothing. */
struct gort__object {
    uintptr_t lo, hi;
    uintptr_t index;
    const struct gort__sorted *sorted;
    size_t sorted_count;
};

void gort__object_add(const struct dl_phdr_info *info, bool steady);
/* The loaded object that holds the address; false: none, or nobody can tell that it is still loaded. */
bool gort__object_find(uintptr_t at, struct gort__object *o);
/* size bytes at `at` can be read; at most a page. GORT__PAGE or a multiple of it is the size of a page. */
#define GORT__PAGE UINT64_C(4096)
bool gort__object_readable(uintptr_t at, size_t size);
/* Makes an index for the program if the linker made none. Reads the program's file. */
void gort__object_collect(void);

/* --- code.c ----------------------------------------------------------------------------------- */

/* pc is at or in an entry of the linkage table (PLT); its caller's address is on top of the stack, or in the
 * link register. */
bool gort__code_is_linkage(uintptr_t pc);
/* The function itself, when pc is the address of its entry in the linkage table; else pc. */
uintptr_t gort__code_behind_linkage(uintptr_t pc);
/* The instruction before pc is a call: somebody may return to pc. */
bool gort__code_after_call(uintptr_t pc);
/* What the call before pc calls, where the instruction tells; the two ways to read it, 0 for none. */
void gort__code_called(uintptr_t pc, uintptr_t called[2]);
/* The target of a jump at pc that may be another function; 0: it is none, or nobody can tell. */
uintptr_t gort__code_jump(uintptr_t pc);
#if defined(__aarch64__)
#define GORT__CODE_STEP    4
#define GORT__CODE_ADDRESS UINT64_C(0x0000ffffffffffff) /* without the signature of a return address */
#else
#define GORT__CODE_STEP    1
#define GORT__CODE_ADDRESS UINT64_MAX
#endif

/* --- unwind.c --------------------------------------------------------------------------------- */

/* The bounds of the function at pc, as the tables have them. Parts that the compiler moved away are functions
 * of their own. */
bool gort__unwind_function(uintptr_t pc, struct gort__range *function);
/* Calls fn with the return address of each frame above the place that the signal met, until fn returns true.
 * Returns true if fn did. The stack can be read up to top. *reached is how far the walk came: top when
 * nothing is left to look at. */
bool gort__unwind_walk(const struct gort__os_signal *s, uintptr_t top, bool (*fn)(uintptr_t),
                       uintptr_t *reached);
/* Writes the functions of a table without an index to `to`, sorted, at most `most`; to NULL: counts them. */
size_t gort__unwind_sort(uintptr_t table, uintptr_t end, struct gort__sorted *to, size_t most);

/* --- heap.c ----------------------------------------------------------------------------------- */

/* Finds the allocator, unless it lies in `known` or only passes on to one that does (`passing`). */
void gort__heap_collect(bool (*known)(uintptr_t), bool (*passing)(uintptr_t));
bool gort__heap_inside(const struct gort__os_signal *s);
/* fn is true for a return address on the stack, or for a word that may be one where unwinding does not
 * carry. */
bool gort__heap_caller(const struct gort__os_signal *s, bool (*fn)(uintptr_t));

#endif
