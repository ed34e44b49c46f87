/* SPDX-License-Identifier: MIT */
/*
 * ctx_plain.c - the plain waits of gort/sync.h and gort/group.h under a context that is over: nothing cuts
 * them short, so programs that ignore their result stay right; their _until forms are cut short, with
 * GORT_FOREVER too.
 * Covers: src/sched/core/scope.c src/sync/mutex.c src/sync/rwmutex.c src/sync/cond.c src/sync/wg.c src/sync/once.c
 * Covers: src/sync/sem.c src/sync/group.c src/sync/pool.c
 */
#include "waiting.h"

enum kind {
    MUTEX,
    READ_LOCK,
    WRITE_LOCK,
    COND,
    WG,
    SEM,
    BARRIER,
    ONCE,
    GROUP, /* from here on there is no _until form, or it is another thing */
    SUBMIT,
    POOL_CLOSE,
    TIMER,
    KINDS
};

static const char *const names[KINDS] = {"mutex",   "rlock", "wlock", "cond",   "wait group", "semaphore",
                                         "barrier", "once",  "group", "submit", "pool",       "timer"};

/* How the context of the waiter ends. */
enum way { CANCELLED_BEFORE, CANCELLED_MEANWHILE, PASSED_BEFORE, PASSES_MEANWHILE, WAYS };

static struct {
    gort_mutex mu, cond_mu;
    gort_rwmutex rw;
    gort_cond cond;
    gort_wg wg;
    gort_sem sem;
    gort_barrier barrier;
    gort_once once;
    gort_group group;
    gort_pool pool;
    gort_timer *timer;
} obj;

static gort_chan *gate; /* what the others do until it is closed */
static atomic_long at_gate, returned, jobs;
static atomic_bool released;

static void pass_gate(void *unused)
{
    (void)unused;
    atomic_fetch_add(&at_gate, 1);
    CHECK_EQ(gort_chan_recv(gate, NULL), 0);
}

static int fail_at_gate(void *unused)
{
    pass_gate(unused);
    return -EIO;
}

static void count_job(void *unused)
{
    (void)unused;
    atomic_fetch_add(&jobs, 1);
}

static void do_once_at_gate(void *unused)
{
    CHECK_EQ(gort_once_do(&obj.once, pass_gate, unused), 0);
}

/* Makes one kind of wait last until release(). */
static void prepare(enum kind kind)
{
    memset(&obj, 0, sizeof obj);
    gate = gort_chan_new(0, 0);
    atomic_store(&at_gate, 0);
    atomic_store(&returned, 0);
    atomic_store(&jobs, 0);
    atomic_store(&released, false);
    gort_mutex_lock(&obj.mu);
    gort_rwmutex_lock(&obj.rw);
    gort_wg_add(&obj.wg, 1);
    gort_barrier_init(&obj.barrier, 2);
    if (kind == ONCE)
        CHECK_EQ(gort_go(do_once_at_gate, NULL), 0);
    if (kind == GROUP) {
        CHECK_EQ(gort_group_init(&obj.group, NULL), 0);
        CHECK_EQ(gort_group_go(&obj.group, fail_at_gate, NULL), 0);
    }
    if (kind == SUBMIT || kind == POOL_CLOSE) {
        CHECK_EQ(gort_pool_init(&obj.pool, 1, 0), 0);
        CHECK_EQ(gort_pool_submit(&obj.pool, pass_gate, NULL), 0);
    }
    if (kind == TIMER)
        CHECK(obj.timer = gort_timer_new(0, 0, pass_gate, NULL));
    if (kind >= ONCE)
        await(&at_gate, 1);
}

static void release(enum kind kind)
{
    atomic_store(&released, true);
    CHECK_EQ(gort_chan_close(gate), 0);
    if (kind == BARRIER)
        CHECK_EQ(gort_barrier_wait(&obj.barrier), 1);
    gort_mutex_unlock(&obj.mu);
    gort_rwmutex_unlock(&obj.rw);
    gort_mutex_lock(&obj.cond_mu);
    gort_cond_signal(&obj.cond);
    gort_mutex_unlock(&obj.cond_mu);
    gort_wg_done(&obj.wg);
    gort_sem_release(&obj.sem);
}

static int wait_plainly(enum kind kind)
{
    int err;
    switch (kind) {
    case MUTEX:
        return gort_mutex_lock(&obj.mu);
    case READ_LOCK:
        return gort_rwmutex_rlock(&obj.rw);
    case WRITE_LOCK:
        return gort_rwmutex_lock(&obj.rw);
    case COND:
        gort_mutex_lock(&obj.cond_mu);
        err = gort_cond_wait(&obj.cond, &obj.cond_mu);
        CHECK(!gort_mutex_trylock(&obj.cond_mu));
        gort_mutex_unlock(&obj.cond_mu);
        return err;
    case WG:
        return gort_wg_wait(&obj.wg);
    case SEM:
        return gort_sem_acquire(&obj.sem);
    case BARRIER:
        return gort_barrier_wait(&obj.barrier);
    case ONCE:
        return gort_once_do(&obj.once, count_job, NULL);
    case GROUP:
        return gort_group_wait(&obj.group);
    case SUBMIT:
        return gort_pool_submit(&obj.pool, count_job, NULL);
    case POOL_CLOSE:
        return gort_pool_close(&obj.pool);
    default:
        return gort_timer_stop_wait(obj.timer);
    }
}

/* What the wait was for has happened. */
static void check_granted(enum kind kind, int err)
{
    CHECK_MSG(atomic_load(&released), "%s: the wait was cut short: %d", names[kind], err);
    CHECK_MSG(err == (kind == GROUP ? -EIO : 0), "%s: %d", names[kind], err);
    if (kind == MUTEX) {
        CHECK(!gort_mutex_trylock(&obj.mu));
        gort_mutex_unlock(&obj.mu);
    }
    if (kind == READ_LOCK) {
        CHECK(!gort_rwmutex_trylock(&obj.rw));
        gort_rwmutex_runlock(&obj.rw);
    }
    if (kind == WRITE_LOCK) {
        CHECK(!gort_rwmutex_tryrlock(&obj.rw));
        gort_rwmutex_unlock(&obj.rw);
    }
    if (kind == SEM)
        CHECK_EQ(gort_sem_acquire_until(&obj.sem, GORT_TRY), -EAGAIN);
    if (kind == ONCE)
        CHECK_EQ(atomic_load(&jobs), 0); /* somebody else's function was run */
}

static void clean_up(enum kind kind)
{
    if (kind == SUBMIT) {
        CHECK_EQ(gort_pool_close(&obj.pool), 0);
        CHECK_EQ(atomic_load(&jobs), 1);
    }
    gort_timer_free(obj.timer);
    settle();
    gort_chan_unref(gate);
}

/* --- the callers ------------------------------------------------------------------------------------- */

struct caller {
    enum kind kind;
    enum way way;
    gort_ctx *ctx;
    bool blocks; /* a goroutine inside gort_block, which counts as a plain thread */
    atomic_int tid;
};

static void *wait_as(void *arg)
{
    struct caller *c = arg;
    gort_ctx *former = gort_ctx_use(c->ctx);
    atomic_store(&c->tid, thread_id());
    check_granted(c->kind, wait_plainly(c->kind));
    gort_ctx_use(former);
    atomic_fetch_add(&returned, 1);
    return NULL;
}

static intptr_t wait_blocking(void *c)
{
    wait_as(c);
    return 0;
}

static void wait_in_goroutine(void *arg)
{
    struct caller *c = arg;
    if (c->blocks)
        CHECK_EQ(gort_block(wait_blocking, c), 0);
    else
        wait_as(c);
}

static gort_ctx *make_context(enum way way)
{
    int64_t deadline = way == PASSED_BEFORE      ? gort_in(-1)
                       : way == PASSES_MEANWHILE ? gort_in(GORT_MS)
                                                 : GORT_FOREVER;
    gort_ctx *ctx = gort_ctx_new(NULL, deadline);
    CHECK(ctx);
    if (way == CANCELLED_BEFORE)
        gort_ctx_cancel(ctx, 0);
    return ctx;
}

static void end_context(gort_ctx *ctx)
{
    gort_ctx_cancel(ctx, 0);
    while (gort_ctx_err(ctx) == 0)
        gort_yield();
    let_pass(GORT_MS); /* whoever was let go by mistake gets a chance to be seen */
}

/* The reason that the dump gives; the locks that a wait is made of have their own. */
static const char *reason_of(enum kind kind)
{
    static const char *const reasons[KINDS] = {"mutex",      "rwmutex",   "rwmutex",    "cond wait",
                                               "wait group", "sem",       "barrier",    "once",
                                               "wait group", "chan send", "wait group", "timer"};
    return reasons[kind];
}

static void try_all_ways(bool thread, bool blocks)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int way = 0; way < WAYS; way++) {
            pthread_t id;
            prepare((enum kind)kind);
            struct caller c = {(enum kind)kind, (enum way)way, make_context((enum way)way), blocks, 0};
            if (thread)
                CHECK_EQ(pthread_create(&id, NULL, wait_as, &c), 0);
            else
                CHECK_EQ(gort_go(wait_in_goroutine, &c), 0);
            while ((thread || blocks) && !atomic_load(&c.tid))
                gort_yield();
            if (thread || blocks)
                await_thread(&c.tid);
            else
                await_waiting(reason_of((enum kind)kind), 1);
            end_context(c.ctx);
            CHECK_EQ(atomic_load(&returned), 0);
            release((enum kind)kind);
            await(&returned, 1);
            if (thread)
                CHECK_EQ(pthread_join(id, NULL), 0);
            clean_up((enum kind)kind);
            gort_ctx_unref(c.ctx);
        }
}

TEST_GO(plain_waits_of_goroutines_last, .procs = "1,2,4,64", .fuzz = true)
{
    try_all_ways(false, false);
}

TEST_GO(plain_waits_of_threads_last, .procs = "1,2,4")
{
    try_all_ways(true, false);
}

TEST_GO(plain_waits_in_a_block_last, .procs = "1,2,4")
{
    try_all_ways(false, true);
}

/* --- the _until forms are cut short ------------------------------------------------------------------ */

static int wait_until(enum kind kind, int64_t deadline)
{
    int err;
    switch (kind) {
    case MUTEX:
        return gort_mutex_lock_until(&obj.mu, deadline);
    case READ_LOCK:
        return gort_rwmutex_rlock_until(&obj.rw, deadline);
    case WRITE_LOCK:
        return gort_rwmutex_lock_until(&obj.rw, deadline);
    case COND:
        gort_mutex_lock(&obj.cond_mu);
        err = gort_cond_wait_until(&obj.cond, &obj.cond_mu, deadline);
        CHECK(!gort_mutex_trylock(&obj.cond_mu));
        gort_mutex_unlock(&obj.cond_mu);
        return err;
    case WG:
        return gort_wg_wait_until(&obj.wg, deadline);
    case SEM:
        return gort_sem_acquire_until(&obj.sem, deadline);
    case BARRIER:
        return gort_barrier_wait_until(&obj.barrier, deadline);
    case ONCE:
        return gort_once_do_until(&obj.once, count_job, NULL, deadline);
    default:
        return gort_pool_submit_until(&obj.pool, count_job, NULL, deadline);
    }
}

static void wait_until_cut_short(struct caller *c)
{
    gort_ctx_use(c->ctx);
    int err = wait_until(c->kind, GORT_FOREVER);
    int wanted = c->way == CANCELLED_BEFORE || c->way == CANCELLED_MEANWHILE ? -ECANCELED : -ETIMEDOUT;
    CHECK_MSG(err == wanted, "%s, way %d: %d, not %d", names[c->kind], c->way, err, wanted);
    CHECK(!atomic_load(&released));
    CHECK_EQ(wait_until(c->kind, GORT_TRY), -EAGAIN);
    gort_ctx_use(NULL);
    CHECK_EQ(wait_until(c->kind, gort_in(1)),
             -ETIMEDOUT); /* without a context only its own deadline counts */
    atomic_fetch_add(&returned, 1);
}

TEST_GO(until_forms_are_cut_short_also_with_forever, .procs = "1,2,4,64", .fuzz = true)
{
    for (int kind = 0; kind < KINDS; kind++)
        for (int way = 0; way < WAYS; way++) {
            if (kind == GROUP || kind == POOL_CLOSE || kind == TIMER)
                continue;
            prepare((enum kind)kind);
            struct caller c = {(enum kind)kind, (enum way)way, make_context((enum way)way), false, 0};
            CHECK_EQ(GORT_GO(wait_until_cut_short, &c), 0);
            if (way == CANCELLED_MEANWHILE)
                await_waiting(reason_of((enum kind)kind), 1);
            if (way == CANCELLED_MEANWHILE)
                gort_ctx_cancel(c.ctx, 0);
            await(&returned, 1);
            atomic_store(&released, true);
            CHECK_EQ(gort_chan_close(gate), 0);
            if (kind == SUBMIT)
                CHECK_EQ(gort_pool_close(&obj.pool), 0);
            settle();
            CHECK_EQ(atomic_load(&jobs), 0);
            gort_chan_unref(gate);
            gort_ctx_unref(c.ctx);
        }
}

/* What users saw before: members inside a semaphore of one, and conditions that were told by nobody. */
static atomic_long inside;

static void be_the_only_one(void *unused)
{
    (void)unused;
    gort_sem_acquire(&obj.sem);
    CHECK_EQ(atomic_fetch_add(&inside, 1), 0);
    gort_yield();
    atomic_fetch_sub(&inside, 1);
    gort_sem_release(&obj.sem);
    atomic_fetch_add(&returned, 1);
}

TEST_GO(a_semaphore_of_one_never_has_two, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_sem_init(&obj.sem, 1);
    gort_ctx_use(ctx);
    for (int i = 0; i < 50; i++)
        CHECK_EQ(gort_go(be_the_only_one, NULL), 0);
    gort_ctx_use(NULL);
    gort_yield();
    gort_ctx_cancel(ctx, 0);
    await(&returned, 50);
    settle();
    CHECK_EQ(gort_sem_acquire_until(&obj.sem, GORT_TRY), 0);
    CHECK_EQ(gort_sem_acquire_until(&obj.sem, GORT_TRY), -EAGAIN);
    gort_ctx_unref(ctx);
}

static bool told; /* guarded by obj.cond_mu */
static atomic_long rounds;

static void wait_to_be_told(void *unused)
{
    (void)unused;
    gort_mutex_lock(&obj.cond_mu);
    while (!told) {
        atomic_fetch_add(&rounds, 1);
        gort_cond_wait(&obj.cond, &obj.cond_mu);
    }
    gort_mutex_unlock(&obj.cond_mu);
    atomic_fetch_add(&returned, 1);
}

TEST_GO(a_condition_returns_only_after_a_signal, .procs = "1,2,4,64", .fuzz = true)
{
    gort_ctx *ctx = gort_ctx_new(NULL, gort_in(GORT_MS));
    gort_ctx_use(ctx);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_go(wait_to_be_told, NULL), 0);
    gort_ctx_use(NULL);
    await_waiting("cond wait", 10);
    gort_ctx_cancel(ctx, 0);
    let_pass(2 * GORT_MS);
    CHECK_EQ(atomic_load(&rounds), 10);
    gort_mutex_lock(&obj.cond_mu);
    told = true;
    gort_cond_broadcast(&obj.cond);
    gort_mutex_unlock(&obj.cond_mu);
    await(&returned, 10);
    settle();
    CHECK_EQ(atomic_load(&rounds), 10);
    gort_ctx_unref(ctx);
}
