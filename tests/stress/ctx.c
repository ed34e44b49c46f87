/* SPDX-License-Identifier: MIT */
/*
 * ctx.c - contexts under load: a forest that grows, is waited under, cancelled, expires and is let go, all at
 * once.
 * Covers: src/sync/ctx.c src/sched/core/scope.c
 */
#include "scenario/waiting.h"

#define SLOTS 16

static struct {
    gort_mutex mu;
    gort_ctx *ctx; /* guarded by mu; a reference */
} slots[SLOTS];

static atomic_bool stop;
static atomic_long waits, cancelled, expired, received, sent;
static gort_wg workers;
static gort_chan *line;

static gort_ctx *borrow(uint64_t *seed)
{
    int i = (int)(test_random(seed) % SLOTS);
    gort_mutex_lock(&slots[i].mu);
    gort_ctx *ctx = gort_ctx_ref(slots[i].ctx);
    gort_mutex_unlock(&slots[i].mu);
    return ctx;
}

static void replace(uint64_t *seed)
{
    gort_ctx *parent = test_random(seed) % 4 ? borrow(seed) : NULL;
    int64_t deadline = test_random(seed) % 2 ? GORT_FOREVER
                                             : gort_in((int64_t)(test_random(seed) % (2 * GORT_MS)));
    gort_ctx *ctx = gort_ctx_new(parent && gort_ctx_err(parent) ? NULL : parent, deadline);
    CHECK(ctx);
    gort_ctx_unref(parent);
    if (test_random(seed) % 2)
        CHECK(gort_ctx_done(ctx));
    int i = (int)(test_random(seed) % SLOTS);
    gort_mutex_lock(&slots[i].mu);
    gort_ctx *former = slots[i].ctx;
    slots[i].ctx = ctx;
    gort_mutex_unlock(&slots[i].mu);
    gort_ctx_unref(former);
}

static void pass(uint64_t *seed, bool sends)
{
    long v = 1;
    int64_t deadline = test_random(seed) % 2 ? gort_in((int64_t)(test_random(seed) % (200 * GORT_US)))
                                             : gort_in(20 * GORT_MS);
    int result = sends ? gort_chan_send_until(line, &v, deadline) : gort_chan_recv_until(line, &v, deadline);
    atomic_fetch_add(&waits, 1);
    if (result == (sends ? 0 : 1))
        atomic_fetch_add(sends ? &sent : &received, 1);
    else if (result == -ECANCELED)
        atomic_fetch_add(&cancelled, 1);
    else if (result == -ETIMEDOUT)
        atomic_fetch_add(&expired, 1);
    else
        CHECK_MSG(false, "returned %d", result);
}

static void inheritor(uint64_t seed)
{
    pass(&seed, test_random(&seed) % 2);
}

static void wait_done(gort_ctx *ctx)
{
    gort_chan *done = gort_ctx_done(ctx);
    int result = gort_chan_recv_until(done, NULL, gort_in(GORT_MS));
    CHECK(result == 0 || result == -ETIMEDOUT || result == -ECANCELED);
    if (result == 0)
        CHECK_NE(gort_ctx_err(ctx), 0);
}

static void work(uint64_t seed)
{
    while (!atomic_load(&stop)) {
        gort_ctx *ctx = borrow(&seed);
        switch (test_random(&seed) % 8) {
        case 0:
            if (ctx)
                gort_ctx_cancel(ctx, test_random(&seed) % 2 ? 0 : -EIO);
            break;
        case 1:
        case 2:
            replace(&seed);
            break;
        case 3:
            if (ctx)
                wait_done(ctx);
            break;
        default: {
            gort_ctx *former = gort_ctx_use(ctx);
            pass(&seed, test_random(&seed) % 2);
            if (test_random(&seed) % 4 == 0)
                CHECK_EQ(GORT_GO(inheritor, test_random(&seed)), 0);
            gort_ctx_use(former);
        }
        }
        gort_ctx_unref(ctx);
    }
    gort_wg_done(&workers);
}

static void *thread_work(void *seed)
{
    work((uint64_t)(uintptr_t)seed);
    return NULL;
}

TEST_GO(a_forest_in_a_storm, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[2];
    long before = 0;
    line = gort_chan_new(sizeof(long), 1);
    /* Five, and until all of it has happened. */
    for (int round = 0;
         round < 5 || !atomic_load(&received) || !atomic_load(&cancelled) || !atomic_load(&expired);
         round++) {
        atomic_store(&stop, false);
        gort_wg_add(&workers, 14);
        for (uint64_t i = 0; i < 2; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, thread_work, (void *)(uintptr_t)(test_seed() + i)), 0);
        for (uint64_t i = 0; i < 12; i++)
            CHECK_EQ(GORT_GO(work, test_seed() + 30 + i), 0);
        let_pass(200 * GORT_MS);
        atomic_store(&stop, true);
        CHECK_EQ(gort_wg_wait_until(&workers, soon()), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        settle();
        for (int i = 0; i < SLOTS; i++) {
            if (slots[i].ctx)
                gort_ctx_cancel(slots[i].ctx, 0); /* meets nobody who is gone */
            gort_ctx_unref(slots[i].ctx);
            slots[i].ctx = NULL;
        }
        while (gort_chan_recv_until(line, NULL, GORT_TRY) == 1)
            atomic_fetch_add(&received, 1);
        CHECK_EQ(atomic_load(&sent), atomic_load(&received));
        CHECK_EQ(gort_chan_send_until(line, &(long){1}, GORT_TRY), 0); /* into the buffer: nobody waits */
        CHECK_EQ(gort_chan_len(line), 1);
        CHECK_EQ(gort_chan_recv(line, NULL), 1);
        if (round == 0)
            before = test_rss_kb();
    }
    check_flat(before, 4096);
    test_log("%ld waits, %ld values, %ld cancelled, %ld expired", waits, received, cancelled, expired);
    gort_chan_unref(line);
}
