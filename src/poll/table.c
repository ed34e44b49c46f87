/* SPDX-License-Identifier: MIT */
/*
 * table.c - the entries of all fds.
 *
 * Why: an array of pieces of 512 entries; 10,000 connections need 20 of them. Pieces are never unmapped, so
 * an entry can be looked at without a lock at any time, also by a late event of a file long closed.
 * Threads: any; reset alone.
 */
#include "poll/table.h"

#include "base/fatal.h"
#include "os/os.h"

#define PIECE  512u
#define PIECES 32768u /* 16 million fds: more than Linux lets a process have without special settings */

static struct gort__fd *pieces[PIECES]; /* atomic; set once */
static uint32_t used;                   /* pieces below this one may be there; atomic, only grows */

_Static_assert(sizeof(struct gort__fd) == 128, "two lines an fd");

struct gort__fd *gort__table_find(uint32_t fd)
{
    if (GORT_UNLIKELY(fd >= PIECE * PIECES))
        return NULL;
    struct gort__fd *piece = gort__load(&pieces[fd / PIECE], ACQUIRE); /* pairs with make */
    return GORT_LIKELY(piece) ? &piece[fd % PIECE] : NULL;
}

static GORT_COLD struct gort__fd *make(uint32_t at)
{
    struct gort__fd *piece = gort__os_vm_map(PIECE * sizeof *piece, gort__os_page()), *none = NULL;
    if (!piece)
        return NULL;
    if (!gort__cas(&pieces[at], &none, piece, ACQ_REL)) { /* somebody was faster; pairs with itself */
        gort__os_vm_unmap(piece, PIECE * sizeof *piece);
        return gort__load(&pieces[at], ACQUIRE); /* pairs with make */
    }
    uint32_t n = gort__load(&used, RELAXED);
    while (n <= at && !gort__cas(&used, &n, at + 1, RELAXED))
        ;
    return piece;
}

struct gort__fd *gort__table_get(int fd)
{
    struct gort__fd *f = gort__table_find((uint32_t)fd);
    if (GORT_LIKELY(f))
        return f;
    if ((uint32_t)fd >= PIECE * PIECES)
        return NULL;
    struct gort__fd *piece = make((uint32_t)fd / PIECE);
    return piece ? &piece[(uint32_t)fd % PIECE] : NULL;
}

void gort__table_reset(void)
{
    for (uint32_t i = 0; i < used; i++)
        for (uint32_t k = 0; pieces[i] && k < PIECE; k++) {
            struct gort__fd *f = &pieces[i][k];
            f->epoch = 0;
            f->write_lock = gort__fd_write_lock_word(gort__fd_generation(f), GORT__WRITE_LOCK_FREE);
            f->waiters[0] = f->waiters[1] = f->writers = (struct gort__poll_queue){NULL, NULL};
        }
}
