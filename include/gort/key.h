/* SPDX-License-Identifier: MIT */
/*
 * gort/key.h - goroutine-local values, the goroutine's form of pthread keys.
 *
 * Every goroutine (and every plain thread) has its own value under a key, NULL at first. When it
 * ends, the destructor is called with each value that is not NULL; values set by destructors are
 * destroyed in turn, for at most four rounds. A deleted key calls no destructors any more.
 */
#ifndef GORT_KEY_H
#define GORT_KEY_H

#include "base.h"

GORT_BEGIN_DECLS

typedef struct gort_key {
    uint32_t index, generation;
} gort_key;

#define GORT_KEYS_MAX 256

/* 0, or -EAGAIN when GORT_KEYS_MAX keys exist. dtor may be NULL. Never parks. */
GORT_API int gort_key_create(gort_key *key, void (*dtor)(void *));
/* 0, or -EINVAL for a key that is not (or no more) in use. */
GORT_API int gort_key_delete(gort_key key);
/* The value, or NULL. */
GORT_API void *gort_key_get(gort_key key);
/* 0, -EINVAL for a key that is not in use, -ENOMEM; -ESRCH: a plain thread, which has values during a run only. */
GORT_API int gort_key_set(gort_key key, void *value);

GORT_END_DECLS
#endif
