/* SPDX-License-Identifier: MIT */
/*
 * key.c - goroutine-local values.
 *
 * Why: thread-local variables do not follow a goroutine that changes its thread. A goroutine's
 * values hang off its record in two levels, made when first set, so that one without values pays
 * one pointer:
 *
 *     g->extra->keys -> root: 16 pointers -> leaf: 16 entries {generation, value}
 *
 * An entry counts only if its generation is the key's: deleting a key invalidates all values at
 * once without visiting any goroutine.
 * Threads: the table of keys is shared (lock; generations are atomic); values belong to their
 * goroutine.
 */
#include <gort/key.h>

#include <errno.h>

#include "base/fatal.h"
#include "sched/core/core.h"

#define LEAVES      16
#define ENTRIES     (GORT_KEYS_MAX / LEAVES)
#define DTOR_ROUNDS 4

struct entry {
    uint32_t generation;
    void *value;
};
struct leaf {
    struct entry entry[ENTRIES];
};
struct gort__keys {
    struct leaf *leaf[LEAVES];
};

static struct {
    struct gort__lock lock; /* rank GORT_RANK_KEYS */
    struct {
        uint32_t generation;  /* odd while in use; atomic, written under lock */
        void (*dtor)(void *); /* guarded by lock */
    } key[GORT_KEYS_MAX];
} table;

int gort_key_create(gort_key *key, void (*dtor)(void *))
{
    GORT_NEED("gort_key_create", "key", key);
    int err = -EAGAIN;
    GORT_ENTER_LIGHT();
    *key = (gort_key){GORT_KEYS_MAX, 0}; /* of none, if there is none left */
    gort__lock_take(&table.lock, GORT_RANK_KEYS);
    for (uint32_t i = 0; i < GORT_KEYS_MAX; i++) {
        uint32_t generation = table.key[i].generation;
        if (generation & 1)
            continue;
        table.key[i].dtor = dtor;
        gort__store(&table.key[i].generation, generation + 1, RELEASE); /* pairs with in_use */
        *key = (gort_key){i, generation + 1};
        err = 0;
        break;
    }
    gort__lock_release(&table.lock, GORT_RANK_KEYS);
    return err;
}

static bool in_use(gort_key key)
{
    return key.index < GORT_KEYS_MAX && (key.generation & 1) &&
           gort__load(&table.key[key.index].generation, ACQUIRE) == key.generation; /* pairs with create */
}

int gort_key_delete(gort_key key)
{
    int err = -EINVAL;
    GORT_ENTER_LIGHT();
    gort__lock_take(&table.lock, GORT_RANK_KEYS);
    if (in_use(key)) {
        gort__store(&table.key[key.index].generation, key.generation + 1, RELEASE); /* pairs with in_use */
        err = 0;
    }
    gort__lock_release(&table.lock, GORT_RANK_KEYS);
    return err;
}

static struct gort__keys *keys_of(const struct gort__g *g)
{
    return g->extra ? g->extra->keys : NULL;
}

static struct entry *find(struct gort__g *g, gort_key key)
{
    struct gort__keys *keys = keys_of(g);
    struct leaf *leaf = keys ? keys->leaf[key.index / ENTRIES] : NULL;
    return leaf ? &leaf->entry[key.index % ENTRIES] : NULL;
}

void *gort_key_get(gort_key key)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return NULL;
    struct entry *e = in_use(key) ? find(m->g, key) : NULL;
    void *value = e && e->generation == key.generation ? e->value : NULL;
    gort__leave(m);
    return value;
}

static void *zeroed_block(size_t size)
{
    char *block = gort__argmem_get(size);
    for (size_t i = 0; block && i < size; i++)
        block[i] = 0;
    return block;
}

static struct entry *find_or_make(struct gort__g *g, gort_key key)
{
    struct gort__extra *extra = gort__extra_get(g);
    if (!extra || (!extra->keys && !(extra->keys = zeroed_block(sizeof *extra->keys))))
        return NULL;
    struct leaf **leaf = &extra->keys->leaf[key.index / ENTRIES];
    if (!*leaf && !(*leaf = zeroed_block(sizeof **leaf)))
        return NULL;
    return &(*leaf)->entry[key.index % ENTRIES];
}

int gort_key_set(gort_key key, void *value)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return -ESRCH;
    int err = 0;
    if (!in_use(key)) {
        err = -EINVAL;
    } else {
        struct entry *e = find_or_make(m->g, key);
        if (e)
            *e = (struct entry){key.generation, value};
        else
            err = -ENOMEM;
    }
    gort__leave(m);
    return err;
}

enum { NO_DTOR, CALLED, RUN_OVER };

/* Calls the destructor of one value, if there is one to call. */
static int destroy(uint32_t index, struct entry *e)
{
    void *value = e->value;
    gort__lock_take(&table.lock, GORT_RANK_KEYS);
    bool valid = value && table.key[index].generation == e->generation;
    void (*dtor)(void *) = valid ? table.key[index].dtor : NULL;
    gort__lock_release(&table.lock, GORT_RANK_KEYS);
    e->value = NULL;
    if (!dtor)
        return NO_DTOR;
    return gort__gmain_callback(dtor, value) ? CALLED : RUN_OVER;
}

bool gort__key_destroy_all(struct gort__g *g)
{
    struct gort__keys *keys = keys_of(g);
    bool more = keys != NULL;
    for (int round = 0; more && round < DTOR_ROUNDS; round++) {
        more = false;
        for (uint32_t i = 0; i < GORT_KEYS_MAX; i++) {
            /* A plain thread's are gone when its run ended during a destructor; it may be in the next one by
             * now. */
            keys = keys_of(g);
            struct leaf *leaf = keys ? keys->leaf[i / ENTRIES] : NULL;
            int did = leaf ? destroy(i, &leaf->entry[i % ENTRIES]) : NO_DTOR;
            if (did == RUN_OVER)
                return false; /* the memory of the values went with the run */
            more |= did == CALLED;
        }
    }
    keys = keys_of(g);
    if (!keys)
        return true;
    for (int i = 0; i < LEAVES; i++)
        if (keys->leaf[i])
            gort__argmem_put(keys->leaf[i], sizeof(struct leaf));
    gort__argmem_put(keys, sizeof *keys);
    g->extra->keys = NULL;
    return true;
}
