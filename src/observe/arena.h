/* SPDX-License-Identifier: MIT */
/*
 * arena.h - memory for the time of one report.
 *
 * Why: reports are written in signal handlers and when memory is short, so what they remember comes straight
 * from the kernel, in pieces, and goes back as a whole. NULL is an answer that every caller lives with.
 * Threads: one.
 */
#ifndef GORT_SRC_OBSERVE_ARENA_H
#define GORT_SRC_OBSERVE_ARENA_H

#include "os/os.h"

#define GORT__ARENA_PIECE ((size_t)1 << 20)

struct gort__arena {
    struct gort__arena_piece {
        struct gort__arena_piece *next;
        size_t size;
    } * pieces;
    char *at, *end;
};

/* Zeroed, aligned to 8. NULL: no memory. */
static inline void *gort__arena_get(struct gort__arena *a, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    if ((size_t)(a->end - a->at) < size) {
        size_t page = gort__os_page(), need = size + sizeof *a->pieces;
        need = need < GORT__ARENA_PIECE ? GORT__ARENA_PIECE : (need + page - 1) / page * page;
        struct gort__arena_piece *piece = gort__os_vm_map(need, page);
        if (!piece)
            return NULL;
        piece->next = a->pieces;
        piece->size = need;
        a->pieces = piece;
        a->at = (char *)(piece + 1);
        a->end = (char *)piece + need;
    }
    void *p = a->at;
    a->at += size;
    return p;
}

static inline void gort__arena_end(struct gort__arena *a)
{
    for (struct gort__arena_piece *p = a->pieces, *next; p; p = next) {
        next = p->next;
        gort__os_vm_unmap(p, p->size);
    }
    *a = (struct gort__arena){0};
}

#endif
