/* SPDX-License-Identifier: MIT */
/*
 * slab.c - memory for objects of one size: adjacent and zeroed when fresh, reused last in first out,
 * walkable.
 * Covers: src/mem/slab.c src/mem/alloc.c
 */
#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "mem/alloc.h"
#include "mem/slab.h"
#include "test.h"

TEST(carves_adjacent_zeroed_objects)
{
    struct gort__slab s = {.object = 256};
    char *last = NULL;
    size_t sum = 0;
    for (int i = 0; i < 2000; i++) {
        size_t got = 4711;
        char *p = gort__slab_carve(&s, 64, &got);
        CHECK(p);
        CHECK(got >= 1 && got <= 64);
        CHECK_EQ((uintptr_t)p % 64, 0);
        if (last && got == 64 && p < (char *)s.chunks->limit && p != s.chunks->first)
            CHECK_EQ(p, last);
        for (size_t b = 0; b < got * 256; b++)
            CHECK_EQ(p[b], 0);
        memset(p, 0xaa, got * 256);
        last = p + got * 256;
        sum += got;
    }
    size_t walked = 0;
    for (struct gort__chunk *c = s.chunks; c; c = c->next)
        walked += (size_t)(c->carved - c->first) / 256;
    CHECK_EQ(walked, sum);
    gort__slab_destroy(&s, NULL);
    CHECK_EQ(s.chunks, NULL);
}

TEST(chunks_grow_and_are_used_up)
{
    struct gort__slab s = {.object = 1024};
    size_t got, bytes = 0;
    for (int i = 0; i < 20000; i++) /* 20 MiB */
        CHECK(gort__slab_carve(&s, 1, &got));
    size_t next = INT64_MAX;
    for (struct gort__chunk *c = s.chunks; c; c = c->next) {
        CHECK_LE(c->bytes, next); /* newest first, the older are not larger */
        CHECK_GE(c->bytes, 64 << 10);
        CHECK_LE(c->bytes, 2 << 20);
        if (c != s.chunks)
            CHECK_EQ(c->carved, c->limit);
        next = c->bytes;
        bytes += c->bytes;
    }
    CHECK_LT(bytes, 25 << 20);
    int vmas = test_vma_count();
    gort__slab_destroy(&s, NULL);
    CHECK_LT(test_vma_count(), vmas);
}

TEST(reuses_the_last_first)
{
    struct gort__slab s = {.object = 128};
    void *a = gort__slab_get(&s), *b = gort__slab_get(&s), *c = gort__slab_get(&s);
    CHECK(a && b && c && a != b && b != c);
    gort__slab_put(&s, a);
    gort__slab_put(&s, c);
    gort__slab_put(&s, b);
    CHECK_EQ(gort__slab_get(&s), b);
    CHECK_EQ(gort__slab_get(&s), c);
    CHECK_EQ(gort__slab_get(&s), a);
    gort__slab_destroy(&s, NULL);
}

static char *kept;

static struct gort__chunk *kept_chunk;

static bool keep(struct gort__chunk *c)
{
    if (kept < c->first || kept >= c->limit)
        return false;
    kept_chunk = c;
    c->refs += 2;
    return true;
}

TEST(keeps_what_it_is_told_to)
{
    struct gort__slab s = {.object = 128};
    size_t got;
    for (int i = 0; i < 10000; i++) {
        char *p = gort__slab_carve(&s, 1, &got);
        if (i == 3000)
            kept = p;
    }
    strcpy(kept, "still here");
    gort__slab_destroy(&s, keep);
    CHECK_STR(kept, "still here");
    CHECK_EQ(s.chunks, NULL);
    CHECK_EQ(s.free, NULL);
    CHECK(gort__slab_get(&s)); /* starts over */
    gort__slab_destroy(&s, NULL);
    int vmas = test_vma_count();
    gort__slab_chunk_drop(kept_chunk);
    CHECK_STR(kept, "still here");
    gort__slab_chunk_drop(kept_chunk); /* the last one */
    if (!test_under_valgrind())        /* it maps and unmaps as it likes */
        CHECK_LT(test_vma_count(), vmas);
}

static struct gort__slab shared = {.object = 64};

static void *worker(void *arg)
{
    uint64_t *mine[16] = {0}, random = test_seed() + (uint64_t)(uintptr_t)arg;
    for (long i = test_scaled(200000, 20000); i; i--) {
        unsigned k = (unsigned)test_random(&random) % 16;
        if (mine[k]) {
            CHECK_EQ(mine[k][1], (uintptr_t)arg); /* nobody else was given it */
            gort__slab_put(&shared, mine[k]);
            mine[k] = NULL;
        } else {
            mine[k] = gort__slab_get(&shared);
            CHECK(mine[k]);
            mine[k][1] = (uintptr_t)arg;
        }
    }
    return NULL;
}

TEST(serves_several_threads)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, worker, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    size_t n = 0;
    for (struct gort__chunk *c = shared.chunks; c; c = c->next)
        n += (size_t)(c->carved - c->first) / 64;
    CHECK_LE(n, 64); /* no more than were out at once */
    gort__slab_destroy(&shared, NULL);
}

enum { OBJECTS = 30000, OBJECT = 192 }; /* more than two of the largest chunks hold */

static char *objects[OBJECTS];
static size_t size, visited, found; /* bytes; objects that lie there as a whole */

static void count(const void *from, const void *to, void *unused)
{
    (void)unused;
    visited += (size_t)((const char *)to - (const char *)from);
    for (int i = 0; i < OBJECTS; i++)
        found += objects[i] >= (const char *)from && objects[i] + size <= (const char *)to;
}

TEST(each_visits_all)
{
    struct gort__slab s = {.object = size = OBJECT};
    size_t got;
    for (int i = 0; i < OBJECTS; i++)
        CHECK(objects[i] = gort__slab_carve(&s, 1, &got));
    gort__slab_put(&s, objects[0]); /* which makes no difference */
    gort__slab_each(&s, count, NULL);
    CHECK_EQ(found, OBJECTS);
    CHECK_EQ(visited, OBJECTS * OBJECT);
    gort__slab_destroy(&s, NULL);
}

TEST(alloc_each_visits_all)
{
    size = 256; /* what OBJECT is rounded up to */
    for (int i = 0; i < OBJECTS; i++)
        CHECK(objects[i] = gort__alloc(OBJECT));
    gort__alloc_free(objects[7], OBJECT);
    gort__alloc_each(count, NULL);
    CHECK_EQ(found, OBJECTS);
    CHECK_EQ(visited, OBJECTS * size); /* nobody else has allocated here */
}
