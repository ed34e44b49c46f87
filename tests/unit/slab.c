/* SPDX-License-Identifier: MIT */
/* slab.c - memory for objects of one size: adjacent and zeroed when fresh, reused last in first out, walkable; some in two halves. */
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
    c->keepers += 2;
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
    gort__chunk_drop(kept_chunk);
    CHECK_STR(kept, "still here");
    gort__chunk_drop(kept_chunk); /* the last one */
    if (!test_under_valgrind())   /* it maps and unmaps as it likes */
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

#define OBJECTS 30000 /* more than two chunks hold: the halves of a later one must be found as well */

static char *objects[OBJECTS]; /* with two halves; these are the first ones */

/* All of a half holds what no other does: whoever shares a word with it is found out. */
static void swap_words(void *half, size_t bytes, uint64_t expected, uint64_t value)
{
    CHECK_EQ((uintptr_t)half % 16, 0);
    for (uint64_t *w = half, *end = w + bytes / 8; w < end; w++) {
        CHECK_EQ(*w, expected);
        *w = value;
    }
}

static void *second(const struct gort__slab *s, int i)
{
    return gort__slab_cold(objects[i], s->object, s->cold);
}

/* Every chunk is checked by its first object: the way to a second half relies on where it begins and ends. */
static void make_all(struct gort__slab *s)
{
    size_t got;
    for (int i = 0; i < OBJECTS; i++) {
        CHECK(objects[i] = gort__slab_carve(s, 1, &got));
        CHECK_EQ(s->chunks->bytes, GORT_CHUNK_MAX);
        CHECK_EQ((uintptr_t)s->chunks->base % GORT_CHUNK_MAX, 0);
        CHECK_LE((char *)second(s, i) + s->cold, s->chunks->base + GORT_CHUNK_MAX);
        swap_words(objects[i], s->object, 0, (uint64_t)i + 1);
        swap_words(second(s, i), s->cold, 0, ~(uint64_t)i);
    }
    CHECK(s->chunks->next && s->chunks->next->next);
}

TEST(halves_share_nothing_and_stay_together)
{
    static const size_t sizes[][2] = {{16, 176}, {32, 144}, {48, 112}}; /* 48 does not divide a chunk */
    for (int k = 0; k < 3; k++) {
        struct gort__slab s = {.object = sizes[k][0], .cold = sizes[k][1]};
        make_all(&s);
        for (int i = 0; i < OBJECTS; i++) {
            swap_words(objects[i], s.object, (uint64_t)i + 1, 0);
            swap_words(second(&s, i), s.cold, ~(uint64_t)i, (uint64_t)i);
            gort__slab_put(&s, objects[i]);
        }
        for (int i = OBJECTS - 1; i >= 0; i--) { /* being free was noted in the first halves alone */
            CHECK_EQ(gort__slab_get(&s), objects[i]);
            swap_words(second(&s, i), s.cold, (uint64_t)i, 0);
        }
        gort__slab_destroy(&s, NULL);
    }
}

static size_t visited, found; /* bytes; halves that lie there as a whole */

static void count(const void *from, const void *to, void *slab)
{
    const struct gort__slab *s = slab;
    visited += (size_t)((const char *)to - (const char *)from);
    for (int i = 0; i < OBJECTS; i++) {
        char *hot = objects[i], *cold = second(s, i);
        found += hot >= (const char *)from && hot + s->object <= (const char *)to;
        found += cold >= (const char *)from && cold + s->cold <= (const char *)to;
    }
}

TEST(each_visits_both_halves)
{
    struct gort__slab s = {.object = 32, .cold = 144};
    make_all(&s);
    gort__slab_put(&s, objects[0]); /* which makes no difference */
    gort__slab_each(&s, count, &s);
    CHECK_EQ(found, 2 * OBJECTS);
    CHECK_EQ(visited, OBJECTS * (32 + 144)); /* halves share nothing, so this leaves no room for others */
    gort__slab_destroy(&s, NULL);
}

TEST(alloc_each_visits_both_halves)
{
    struct gort__slab s = {.object = GORT_SPLIT_HOT, .cold = GORT_SPLIT_COLD}; /* for the sizes alone */
    for (int i = 0; i < OBJECTS; i++) {
        CHECK(objects[i] = gort__alloc_split());
        memset(gort__alloc_cold(objects[i]), i % 251, s.cold);
    }
    gort__alloc_free_split(objects[7]);
    CHECK_EQ(gort__alloc_split(), objects[7]);
    gort__alloc_each(count, &s);
    CHECK_EQ(found, 2 * OBJECTS);
    CHECK_EQ(visited, OBJECTS * (s.object + s.cold)); /* nobody else has allocated here */
    for (int i = 0; i < OBJECTS; i++)
        swap_words(gort__alloc_cold(objects[i]), s.cold, i % 251 * 0x0101010101010101u, ~0ull);
}
