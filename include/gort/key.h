/* SPDX-License-Identifier: MIT */
/*
 * gort/key.h - goroutine-local values: what pthread keys are to threads.
 *
 * Each goroutine and each plain thread has a value of its own under each key, NULL at first. When a goroutine
 * ends, the destructor of the key is called with its value, unless the value is NULL. If destructors set new
 * values, those are destroyed as well, for at most four rounds. A plain thread has values only during a run:
 * its destructors are called if it ends before the run does; the end of the run drops its values without
 * calling destructors. A deleted key calls no destructor. None of these functions parks.
 */
#ifndef GORT_KEY_H
#define GORT_KEY_H

#include "base.h"

GORT_BEGIN_DECLS

typedef struct gort_key {
    uint32_t index, generation;
} gort_key;

#define GORT_KEYS_MAX 256

/*
 * Creates a key with the destructor dtor (NULL: none). Returns 0, or -EAGAIN when GORT_KEYS_MAX keys exist.
 */
GORT_API int gort_key_create(gort_key *key, void (*dtor)(void *));
/*
 * Deletes the key and forgets its values in all goroutines. Returns 0, or -EINVAL for a key that does not
 * exist.
 */
GORT_API int gort_key_delete(gort_key key);
/* Returns the caller's value under the key; NULL if it has none, or if the key does not exist. */
GORT_API void *gort_key_get(gort_key key);
/*
 * Sets the caller's value under the key. Returns 0; -EINVAL: the key does not exist; -ENOMEM; -ESRCH: no run
 * is on.
 */
GORT_API int gort_key_set(gort_key key, void *value);

GORT_END_DECLS
#endif
