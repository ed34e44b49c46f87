/* SPDX-License-Identifier: MIT */
/*
 * walk.h - the calls on a stack of this process, by the tables for unwinding: what linux/walk.c fulfils.
 *
 * All of it may be called from anywhere, signal handlers included, and changes no errno. A stack may move
 * while it is walked: then the answer is wrong, but nothing outside of [sp, top) is read as a stack.
 */
#ifndef GORT_SRC_OS_WALK_H
#define GORT_SRC_OS_WALK_H

#include "base/compiler.h"

/* Of a deeper stack the innermost and the outermost calls are kept. */
#define GORT__STACK_INNER 48
#define GORT__STACK_OUTER 16
#define GORT__STACK_MOST  (GORT__STACK_INNER + GORT__STACK_OUTER)

enum gort__stack_end {
    GORT__STACK_WHOLE, /* down to its first function */
    GORT__STACK_DEEP,  /* as deep as was looked: there is more */
    GORT__STACK_LOST   /* code without tables, or a stack that changed meanwhile */
};

/* The innermost call first. Each is an address inside of the calling instruction, or where the innermost
 * function stands. */
struct gort__stack_calls {
    uint32_t n;      /* of pc */
    uint32_t elided; /* calls between pc[GORT__STACK_INNER - 1] and the next one */
    uint8_t end;     /* enum gort__stack_end */
    uintptr_t pc[GORT__STACK_MOST];
};

/* Up to where the stack that sp points into can be read; 0: nobody knows. */
typedef uintptr_t gort__stack_top_fn(uintptr_t sp);

/* A suspended context: its stack pointer, frame pointer (0: unknown) and program counter. hi: what top(sp)
 * would say; 0: ask it. */
void gort__os_walk_at(uintptr_t pc, uintptr_t sp, uintptr_t fp, uintptr_t hi, gort__stack_top_fn *top,
                      struct gort__stack_calls *out);
/* What a signal met; context is the handler's third argument. */
void gort__os_walk_signal(const void *context, gort__stack_top_fn *top, struct gort__stack_calls *out);
/* The callers of this function. When it is called in a signal handler: what the signal met. */
void gort__os_walk_here(gort__stack_top_fn *top, struct gort__stack_calls *out);
/* A thread of this process that sleeps in the kernel, or is stopped. False: it runs, or nobody can tell. */
bool gort__os_walk_task(int tid, gort__stack_top_fn *top, struct gort__stack_calls *out);

/* The function that pc lies in begins at `at`, as the tables have it. */
bool gort__os_walk_in(uintptr_t pc, uintptr_t at);
/* The upper end of the memory around sp that can be read, as far as it is looked at. Asks the kernel page by
 * page. */
uintptr_t gort__os_walk_readable(uintptr_t sp);
/* That much memory can be read there, at this moment; at most a page. Asks the kernel. */
bool gort__os_walk_reads(const void *at, size_t size);
/* Reads tables from the program's file if it is linked without an index of them (-static). Before a walk;
 * once is enough. */
void gort__os_walk_prepare(void);

#endif
