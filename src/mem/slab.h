/* SPDX-License-Identifier: MIT */
/*
 * slab.h - type-stable memory for small objects of one size.
 *
 * Why: goroutine records must stay goroutine records for the whole run, so that a dump or a stale
 * pointer always finds one; and nothing here may call malloc (DESIGN.md, preemption).
 */
#ifndef GORT_SRC_MEM_SLAB_H
#define GORT_SRC_MEM_SLAB_H

#include "mem/lock.h"

struct gort__chunk {
    struct gort__chunk *next; /* the older chunk; set before the chunk is published */
    struct gort__chunk *more; /* the next one that was emptied; guarded by the lock of the slab */
    char *base;          /* of the mapping; this struct lies there too, unless the chunk is a large one */
    size_t bytes;        /* of the whole mapping, header included */
    char *first, *limit; /* objects live in [first, limit) */
    uint32_t refs;       /* who still need it after gort__slab_destroy kept it; atomic */
    char *carved;        /* objects in [first, carved) have been handed out; atomic */
};

struct gort__slab {
    size_t object;              /* bytes an object; a multiple of 16 */
    struct gort__lock lock;     /* rank GORT_RANK_SLAB; guards free and carving */
    struct gort__chunk *chunks; /* newest first; atomic, read without the lock */
    struct gort__chunk *again;  /* those that were emptied, to be carved once more; guarded by lock */
    void *free;                 /* objects given back, linked through their first word */
};

/* Hands out up to n adjacent objects that were never used (zeroed); *got tells how many. NULL: no
 * memory. Never parks; goroutine and thread. */
void *gort__slab_carve(struct gort__slab *s, size_t n, size_t *got);
/* One object (not zeroed) or NULL; and back. Never parks; goroutine and thread. */
void *gort__slab_get(struct gort__slab *s);
void gort__slab_put(struct gort__slab *s, void *object);
/* Whether gort__slab_empty may be called for it once nobody uses its objects: it is large, not the newest,
 * and all were handed out. */
bool gort__slab_chunk_is_full(const struct gort__slab *s, const struct gort__chunk *c);
/* Gives the memory of such a chunk back; its objects are as good as never used. Others may still read
 * them. */
void gort__slab_empty(struct gort__slab *s, struct gort__chunk *c);
/* Unmaps every chunk for which keep (may be NULL) is false. Nobody else uses the slab. keep counts up refs
 * for each that will call gort__slab_chunk_drop. */
void gort__slab_destroy(struct gort__slab *s, bool (*keep)(struct gort__chunk *));
void gort__slab_chunk_drop(struct gort__chunk *c);
/* Calls visit(from, to, arg) for what was handed out of each chunk, whether it is in use or not. */
void gort__slab_each(struct gort__slab *s, void (*visit)(const void *from, const void *to, void *arg),
                     void *arg);

#endif
