/* SPDX-License-Identifier: MIT */
/*
 * plain.c - programs that ignore what plain waits return, under contexts that are cancelled at random: a
 * semaphore of one has one, locks exclude, conditions return after a signal only, wait groups and groups let
 * nobody touch a stack that was left.
 * Covers: src/sync/mutex.c src/sync/rwmutex.c src/sync/sem.c src/sync/cond.c src/sync/wg.c src/sync/group.c
 */
#include "scenario/waiting.h"

enum { CONTEXTS = 4, WORKERS = 12, THREADS = 2, PARTIES = 3, TOKENS = 2 };

static struct {
    gort_mutex mu;
    gort_ctx *ctx; /* guarded by mu; a reference */
} slots[CONTEXTS];

static gort_mutex mu;
static gort_rwmutex rw;
static gort_sem sem;
static gort_cond cond;
static gort_barrier barrier;
static gort_wg workers;

static int in_mutex;                  /* guarded by mu */
static long tokens, signals, returns; /* guarded by mu: what cond is about */
static atomic_long in_rw, in_sem,
    in_round[2]; /* readers + 10000 * writers; holders; arrivals at the barrier */
static atomic_long cancels, gave_up;

static gort_ctx *borrow(uint64_t *seed)
{
    size_t i = test_random(seed) % CONTEXTS;
    gort_mutex_lock(&slots[i].mu);
    gort_ctx *ctx = gort_ctx_ref(slots[i].ctx);
    gort_mutex_unlock(&slots[i].mu);
    return ctx;
}

/* Cancels one at random and puts a fresh one in its place, with a deadline now and then. */
static void replace(uint64_t *seed)
{
    size_t i = test_random(seed) % CONTEXTS;
    int64_t deadline = test_random(seed) % 2 ? GORT_FOREVER
                                             : gort_in((int64_t)(test_random(seed) % (200 * GORT_US)));
    gort_ctx *fresh = gort_ctx_new(NULL, deadline);
    CHECK(fresh);
    gort_mutex_lock(&slots[i].mu);
    gort_ctx *old = slots[i].ctx;
    slots[i].ctx = fresh;
    gort_mutex_unlock(&slots[i].mu);
    if (old)
        gort_ctx_cancel(old, 0);
    gort_ctx_unref(old);
    atomic_fetch_add(&cancels, 1);
}

static void linger(uint64_t *seed)
{
    if (test_random(seed) % 4 == 0)
        gort_yield();
}

static void with_sem(uint64_t *seed)
{
    if (test_random(seed) % 2)
        gort_sem_acquire(&sem);
    else if (gort_sem_acquire_until(&sem, GORT_FOREVER)) {
        atomic_fetch_add(&gave_up, 1);
        return;
    }
    CHECK_EQ(atomic_fetch_add(&in_sem, 1), 0);
    linger(seed);
    atomic_fetch_sub(&in_sem, 1);
    gort_sem_release(&sem);
}

static void with_locks(uint64_t *seed)
{
    bool writes = test_random(seed) % 3 == 0;
    gort_mutex_lock(&mu);
    CHECK_EQ(in_mutex++, 0);
    linger(seed);
    CHECK_EQ(--in_mutex, 0);
    gort_mutex_unlock(&mu);
    if (writes)
        gort_rwmutex_lock(&rw);
    else
        gort_rwmutex_rlock(&rw);
    long n = atomic_fetch_add(&in_rw, writes ? 10000 : 1);
    CHECK(writes ? n == 0 : n < 10000);
    linger(seed);
    atomic_fetch_sub(&in_rw, writes ? 10000 : 1);
    if (writes)
        gort_rwmutex_unlock(&rw);
    else
        gort_rwmutex_runlock(&rw);
}

/* Takes a token, of which there are few, and gives it back. */
static void with_cond(uint64_t *seed)
{
    gort_mutex_lock(&mu);
    while (tokens == 0) {
        gort_cond_wait(&cond, &mu);
        CHECK_LE(++returns, signals);
    }
    tokens--;
    gort_mutex_unlock(&mu);
    gort_yield();
    linger(seed);
    gort_mutex_lock(&mu);
    tokens++;
    signals++;
    gort_cond_signal(&cond);
    gort_mutex_unlock(&mu);
}

struct frame {
    gort_wg wg;
    atomic_int done;
    bool left;
};

static void touch(void *arg)
{
    struct frame *f = arg;
    gort_yield();
    CHECK(!f->left);
    atomic_fetch_add(&f->done, 1);
    gort_wg_done(&f->wg);
}

static void with_wg(uint64_t *seed)
{
    struct frame f = {.left = false};
    int n = 1 + (int)(test_random(seed) % 3);
    gort_wg_add(&f.wg, n);
    for (int i = 0; i < n; i++)
        CHECK_EQ(gort_go(touch, &f), 0);
    gort_wg_wait(&f.wg);
    f.left = true;
    CHECK_EQ(atomic_load(&f.done), n);
}

static int touch_and_fail(void *arg)
{
    struct frame *f = arg;
    gort_yield();
    CHECK(!f->left);
    return atomic_fetch_add(&f->done, 1) == 0 ? -EIO : 0;
}

static void with_group(uint64_t *seed)
{
    struct frame f = {.left = false};
    gort_group group;
    int n = 1 + (int)(test_random(seed) % 3);
    CHECK_EQ(gort_group_init(&group, NULL), 0);
    for (int i = 0; i < n; i++)
        CHECK_EQ(gort_group_go(&group, touch_and_fail, &f), 0);
    CHECK_EQ(gort_group_wait(&group), -EIO);
    f.left = true;
    CHECK_EQ(atomic_load(&f.done), n);
}

static void work(uint64_t seed, long n)
{
    for (long i = 0; i < n; i++) {
        gort_ctx *ctx = borrow(&seed), *former = gort_ctx_use(ctx);
        switch (test_random(&seed) % 6) {
        case 0:
            with_sem(&seed);
            break;
        case 1:
            with_locks(&seed);
            break;
        case 2:
            with_cond(&seed);
            break;
        case 3:
            with_wg(&seed);
            break;
        case 4:
            with_group(&seed);
            break;
        default:
            replace(&seed);
        }
        gort_ctx_use(former);
        gort_ctx_unref(ctx);
    }
    gort_wg_done(&workers);
}

static void *thread_work(void *seed)
{
    work((uint64_t)(uintptr_t)seed, test_scaled(2000, 200));
    return NULL;
}

/* Round after round; nobody is in the next one while somebody is still in this one. */
static void meet(uint64_t seed, long n)
{
    for (long i = 0; i < n; i++) {
        gort_ctx *ctx = borrow(&seed), *former = gort_ctx_use(ctx);
        atomic_fetch_add(&in_round[i % 2], 1);
        gort_barrier_wait(&barrier);
        CHECK_EQ(atomic_load(&in_round[i % 2]), PARTIES);
        gort_barrier_wait(&barrier);
        atomic_store(&in_round[i % 2], 0);
        if (test_random(&seed) % 4 == 0)
            replace(&seed);
        gort_ctx_use(former);
        gort_ctx_unref(ctx);
    }
    gort_wg_done(&workers);
}

TEST_GO(results_ignored_under_cancelled_contexts, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[THREADS];
    long n = test_scaled(2000, 200);
    uint64_t seed = test_seed();
    test_log("seed %lu", (unsigned long)seed);
    gort_sem_init(&sem, 1);
    tokens = TOKENS;
    gort_barrier_init(&barrier, PARTIES);
    gort_wg_add(&workers, WORKERS + THREADS + PARTIES);
    for (int i = 0; i < CONTEXTS; i++)
        replace(&seed);
    for (uint64_t i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_work, (void *)(uintptr_t)(test_seed() + i)), 0);
    for (uint64_t i = 0; i < WORKERS; i++)
        CHECK_EQ(GORT_GO(work, test_seed() + 50 + i, n), 0);
    for (uint64_t i = 0; i < PARTIES; i++)
        CHECK_EQ(GORT_GO(meet, test_seed() + 100 + i, n), 0);
    CHECK_EQ(gort_wg_wait_until(&workers, gort_in(test_seconds(100))), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    settle();
    CHECK_EQ(tokens, TOKENS);
    CHECK_EQ(gort_sem_acquire_until(&sem, GORT_TRY), 0);
    for (int i = 0; i < CONTEXTS; i++)
        gort_ctx_unref(slots[i].ctx);
    test_log("%ld cancels, %ld returns of %ld signals, %ld gave up", atomic_load(&cancels), returns, signals,
             atomic_load(&gave_up));
}
