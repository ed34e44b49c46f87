/* SPDX-License-Identifier: MIT */
/*
 * calls.c - goroutines, and everything by which they wait for one another and for the time, when the kernel
 * refuses.
 * Build: faults
 * Covers: src/sched/core/spawn.c src/sched/core/extra.c src/sched/core/key.c src/sched/threads/block.c src/sched/timers/timer.c src/sync/chan.c
 * Covers: src/sync/ctx.c src/sync/group.c src/sync/pool.c src/time/timer.c src/time/ticker.c
 *
 * trial.h tells what must hold.
 */
#include "trial.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* --- goroutines ------------------------------------------------------------------------------- */

static atomic_int count;

static void count_one(void *wg)
{
    atomic_fetch_add(&count, 1);
    if (wg)
        gort_wg_done(wg);
}

FAULTS(go)
{
    gort_wg wg = {0};
    gort_wg_add(&wg, 1);
    int err = gort_go(count_one, &wg);
    return err ? err : gort_wg_wait(&wg);
}

TEST(a_run_and_go, .procs = "1,2", .native = TRIALS_FORK)
{
    try_all("a_run_and_go", go, 60, true);
}

static void wait_for(void *gate)
{
    gort_wg_wait(gate);
}

FAULTS(go_many)
{
    gort_wg gate = {0}, all = {0};
    int err = 0;
    gort_wg_add(&gate, 1);
    for (int i = 0; i < 100 && !err; i++) {
        err = gort_wg_go(&all, wait_for, &gate);
        if (i % 50 == 0)
            gort_yield();
    }
    gort_wg_done(&gate);
    return both(err, gort_wg_wait(&all));
}

FAULTS(go_with)
{
    int err = 0;
    static const size_t sizes[] = {1, 64 << 10, 1 << 20, 16 << 20};
    for (int i = 0; i < 4; i++)
        err = both(err, gort_go_with(&(gort_attr){.stack_size = sizes[i], .name = "one"}, count_one, NULL));
    return err;
}

FAULTS(go_copy)
{
    char block[GORT_GO_COPY_MAX] = {0};
    int err = 0;
    for (size_t n = 1; n <= sizeof block; n *= 4)
        err = both(err, gort_go_copy(nothing, block, n));
    return err;
}

static void with_handlers(void *result)
{
    int err = 0;
    for (int i = 0; i < 100 && !err; i++)
        err = gort_on_exit(nothing, NULL);
    *(int *)result = err;
}

FAULTS(on_exit_handlers)
{
    int result = 0;
    gort_wg wg = {0};
    int err = gort_wg_go(&wg, with_handlers, &result);
    return both(err, both(gort_wg_wait(&wg), result));
}

static void with_keys(void *result)
{
    static gort_key keys[40];
    int n = 0, err = 0;
    for (; n < 40 && !err; n++) {
        err = gort_key_create(&keys[n], nothing);
        if (!err)
            err = gort_key_set(keys[n], &keys[n]);
    }
    for (int i = 0; i < n; i++)
        if (!err)
            CHECK(gort_key_get(keys[i]) == &keys[i]);
    while (n-- > 0)
        gort_key_delete(keys[n]);
    *(int *)result = err;
}

FAULTS(keys)
{
    int result = 0;
    gort_wg wg = {0};
    int err = gort_wg_go(&wg, with_keys, &result);
    return both(err, both(gort_wg_wait(&wg), result));
}

static void bound(void *unused)
{
    (void)unused;
    gort_lock_thread();
    gort_yield();
    gort_sleep(GORT_MS);
}

FAULTS_UP_TO(8, lock_thread)
{
    gort_wg wg = {0};
    int err = 0;
    for (int i = 0; i < 3; i++)
        err = both(err, gort_wg_go(&wg, bound, NULL));
    return both(err, gort_wg_wait(&wg));
}

static atomic_bool seen;

static void look_busy(void *unused)
{
    (void)unused;
    while (!atomic_load(&seen))
        ;
}

FAULTS_UP_TO(2, hogs)
{
    gort_wg wg = {0};
    atomic_store(&seen, false);
    int err = gort_wg_go(&wg, look_busy, NULL);
    gort_yield();
    atomic_store(&seen, true);
    return both(err, gort_wg_wait(&wg));
}

FAULTS_UP_TO(8, maxprocs)
{
    int before = gort_maxprocs(0), err = 0;
    gort_wg wg = {0};
    gort_maxprocs(before + 6);
    int now = gort_maxprocs(0);
    CHECK(now == before + 6 || now == before);
    for (int i = 0; i < 20; i++)
        err = both(err, gort_wg_go(&wg, bound, NULL));
    err = both(err, gort_wg_wait(&wg));
    gort_maxprocs(before);
    CHECK_EQ(gort_maxprocs(0), before);
    return both(err, now == before ? -ENOMEM : 0);
}

FAULTS_UP_TO(2, world)
{
    gort_wg wg = {0};
    atomic_store(&seen, false);
    int err = gort_wg_go(&wg, look_busy, NULL);
    gort_yield();
    int stop = gort_world_stop();
    CHECK_EQ(stop, 0);
    CHECK_EQ(gort_world_start(), 0);
    atomic_store(&seen, true);
    return both(err, gort_wg_wait(&wg));
}

/* What the test itself does with fds must not be what is counted: poll, pipe and dprintf do not pass through
 * fault.c. */
static intptr_t block_on(void *ends)
{
    struct pollfd p = {.fd = ((int *)ends)[0], .events = POLLIN};
    int got;
    while ((got = poll(&p, 1, -1)) < 0 && errno == EINTR)
        ;
    return got;
}

static void let_go(void *ends)
{
    CHECK_EQ(dprintf(((int *)ends)[1], "x"), 1);
}

static int block_one(int way)
{
    int ends[2];
    gort_wg wg = {0};
    CHECK_EQ(pipe(ends), 0);
    int err = gort_wg_go(&wg, let_go, ends);
    if (!err && way == 0)
        CHECK_EQ(gort_block(block_on, ends), 1);
    if (!err && way == 1) {
        gort_block_enter();
        CHECK_EQ(block_on(ends), 1);
        gort_block_leave();
    }
    if (!err && way == 2)
        CHECK_EQ(block_on(ends), 1); /* unannounced */
    gort_wg_wait(&wg);
    close(ends[0]);
    close(ends[1]);
    return err;
}

FAULTS(block)
{
    return both(block_one(0), both(block_one(1), block_one(2)));
}

/* A plain thread that uses what the goroutines use. Without memory for its record it is as if there was no
 * run. */
struct plain {
    gort_chan *ch;
    int err;
};

static void *in_plain_thread(void *arg)
{
    struct plain *p = arg;
    p->err = gort_go(count_one, NULL);
    int value = 1;
    int sent = gort_chan_send_until(p->ch, &value, GORT_TRY);
    CHECK(sent == 0);
    return NULL;
}

FAULTS(plain_thread)
{
    struct plain p = {gort_chan_new(sizeof(int), 1), 0};
    if (!p.ch)
        return -ENOMEM;
    pthread_t t;
    int value = 0;
    while (pthread_create(&t, NULL, in_plain_thread, &p) != 0)
        usleep(1000); /* the fault was this one */
    CHECK_EQ(gort_chan_recv(p.ch, &value), 1);
    pthread_join(t, NULL);
    gort_chan_unref(p.ch);
    return p.err == -ESRCH ? -ENOMEM : p.err;
}

/* --- waiting for one another ------------------------------------------------------------------ */

static void send_three(void *ch)
{
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_chan_send(ch, &i), 0);
}

FAULTS(channels)
{
    int err = 0;
    static const size_t caps[] = {0, 1, 100, 100000};
    for (int c = 0; c < 4; c++) {
        gort_chan *ch = gort_chan_new(sizeof(int), caps[c]);
        if (!ch) {
            err = both(err, -ENOMEM);
            continue;
        }
        int e = gort_go(send_three, gort_chan_ref(ch));
        for (int i = 0, v; i < 3 && !e; i++) {
            CHECK_EQ(gort_chan_recv(ch, &v), 1);
            CHECK_EQ(v, i);
        }
        err = both(err, e);
        gort_chan_unref(ch);
        gort_chan_unref(ch);
    }
    return err;
}

FAULTS(selects)
{
    enum { N = 40 };
    gort_chan *ch[N];
    gort_case cases[N];
    int err = 0, v;
    for (int i = 0; i < N; i++) {
        ch[i] = gort_chan_new(sizeof(int), 0);
        cases[i] = (gort_case){.ch = ch[i], .recv = &v, .op = GORT_RECV};
        err = both(err, ch[i] ? 0 : -ENOMEM);
    }
    int got = err ? err : gort_select(cases, N, gort_in(GORT_MS));
    CHECK(got == -ETIMEDOUT || got == -ENOMEM);
    if (!err)
        err = got == -ETIMEDOUT ? gort_go(send_three, ch[N / 2]) : got;
    int refused = 0;
    for (int i = 0; i < 3 && !err; i++) {
        while ((got = gort_select(cases, N, GORT_FOREVER)) == -ENOMEM) { /* nothing was taken: try again */
            refused = got;
            trial.fired |= fault_off();
        }
        CHECK_EQ(got, N / 2);
        CHECK_EQ(v, i);
    }
    err = both(err, refused);
    for (int i = 0; i < N; i++)
        gort_chan_unref(ch[i]);
    return err;
}

static struct {
    gort_mutex mu;
    gort_rwmutex rw;
    gort_cond cond;
    gort_sem sem;
    gort_once once;
    gort_barrier barrier;
    int turns;
} shared;

static void share(void *unused)
{
    (void)unused;
    for (int i = 0; i < 20; i++) {
        gort_mutex_lock(&shared.mu);
        shared.turns++;
        gort_yield();
        gort_cond_signal(&shared.cond);
        gort_mutex_unlock(&shared.mu);
        gort_rwmutex_rlock(&shared.rw);
        gort_yield();
        gort_rwmutex_runlock(&shared.rw);
        gort_rwmutex_lock(&shared.rw);
        gort_rwmutex_unlock(&shared.rw);
        gort_sem_acquire(&shared.sem);
        gort_yield();
        gort_sem_release(&shared.sem);
    }
    gort_once_do(&shared.once, nothing, NULL);
    CHECK_EQ(gort_once_do_until(&shared.once, nothing, NULL, GORT_TRY), 0);
}

FAULTS(locks)
{
    gort_wg wg = {0};
    int err = 0, started = 0;
    memset(&shared, 0, sizeof shared);
    gort_sem_init(&shared.sem, 1);
    for (int i = 0; i < 4; i++) {
        int e = gort_wg_go(&wg, share, NULL);
        started += e == 0;
        err = both(err, e);
    }
    gort_mutex_lock(&shared.mu);
    while (shared.turns < started * 20) {
        int e = gort_cond_wait_until(&shared.cond, &shared.mu, gort_in(GORT_MS));
        if (e != -ETIMEDOUT)
            err = both(err, e);
    }
    gort_mutex_unlock(&shared.mu);
    return both(err, gort_wg_wait(&wg));
}

FAULTS(deadlines)
{
    gort_mutex mu = {0};
    gort_sem sem = {0};
    gort_wg wg = {0};
    int e[4];
    gort_mutex_lock(&mu);
    gort_wg_add(&wg, 1);
    e[0] = gort_mutex_lock_until(&mu, gort_in(GORT_MS));
    e[1] = gort_sem_acquire_until(&sem, gort_in(GORT_MS));
    e[2] = gort_wg_wait_until(&wg, gort_in(GORT_MS));
    e[3] = gort_sleep(GORT_MS);
    gort_mutex_unlock(&mu);
    gort_wg_done(&wg);
    int err = 0;
    for (int i = 0; i < 3; i++)
        err = both(err, e[i] == -ETIMEDOUT ? 0 : e[i] ? e[i] : -EINVAL);
    return both(err, e[3]);
}

static int member(void *unused)
{
    (void)unused;
    return gort_sleep(GORT_MS);
}

FAULTS(groups)
{
    gort_group g;
    int err = gort_group_init(&g, NULL);
    if (err)
        return err;
    gort_group_limit(&g, 3);
    for (int i = 0; i < 10; i++) {
        int e = gort_group_go(&g, member, NULL);
        if (e != -ECANCELED || !err) /* the others are cancelled by the first that fails */
            err = both(err, e);
    }
    int waited = gort_group_wait(&g);
    /* A start that fails fails the group only through its caller; a member that fails comes first. */
    return waited ? waited : err;
}

static void job(void *unused)
{
    (void)unused;
    gort_yield();
}

FAULTS(pools)
{
    gort_pool pool;
    int err = gort_pool_init(&pool, 4, 8);
    if (err)
        return err;
    for (int i = 0; i < 30; i++)
        err = both(err, gort_pool_submit(&pool, job, NULL));
    return both(err, gort_pool_close(&pool));
}

FAULTS(contexts)
{
    gort_ctx *root = gort_ctx_new(NULL, GORT_FOREVER);
    gort_ctx *timed = root ? gort_ctx_new(root, gort_in(2 * GORT_MS)) : NULL;
    gort_chan *done = timed ? gort_ctx_done(timed) : NULL;
    int err = done ? 0 : -ENOMEM;
    if (!err) {
        gort_ctx *former = gort_ctx_use(timed);
        int slept = gort_sleep(test_seconds(10));
        err = slept == -ETIMEDOUT ? 0 : slept;
        gort_ctx_use(former);
        if (!err)
            CHECK_EQ(gort_chan_recv(done, NULL), 0);
    }
    if (root)
        gort_ctx_cancel(root, 0);
    gort_ctx_unref(timed);
    gort_ctx_unref(root);
    return err;
}

/* Each start takes a reference on the context that is in use, and a block to remember it. */
FAULTS(inherited_contexts)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    if (!ctx)
        return -ENOMEM;
    gort_wg gate = {0}, all = {0};
    gort_ctx *former = gort_ctx_use(ctx);
    int err = 0;
    gort_wg_add(&gate, 1);
    for (int i = 0; i < 40; i++)
        err = both(err, gort_wg_go(&all, wait_for, &gate));
    gort_ctx_use(former);
    gort_wg_done(&gate);
    err = both(err, gort_wg_wait(&all));
    gort_ctx_unref(ctx);
    return err;
}

static void ring(void *ch)
{
    int one = 1;
    gort_chan_send_until(ch, &one, GORT_TRY);
}

FAULTS(timers)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 8);
    gort_timer *once = ch ? gort_timer_new(GORT_MS, 0, ring, ch) : NULL;
    gort_timer *often = ch ? gort_timer_new(GORT_MS, GORT_MS, ring, ch) : NULL;
    int err = once && often ? 0 : -ENOMEM, v;
    for (int i = 0; i < 4 && !err; i++)
        CHECK_EQ(gort_chan_recv(ch, &v), 1);
    if (!err) {
        gort_timer_reset(once, GORT_SEC, 0);
        gort_timer_reset(once, GORT_MS, 0);
        CHECK_EQ(gort_chan_recv(ch, &v), 1);
    }
    if (once)
        CHECK_EQ(gort_timer_stop_wait(once), 0);
    if (often)
        CHECK_EQ(gort_timer_stop_wait(often), 0);
    gort_timer_free(once);
    gort_timer_free(often);
    gort_chan_unref(ch);
    return err;
}

FAULTS(tickers)
{
    gort_ticker *t = gort_ticker_new(GORT_MS);
    int64_t at;
    if (!t)
        return -ENOMEM;
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_chan_recv(gort_ticker_chan(t), &at), 1);
    gort_ticker_reset(t, GORT_MS / 2);
    CHECK_EQ(gort_chan_recv(gort_ticker_chan(t), &at), 1);
    gort_ticker_free(t);
    return 0;
}

static void sleep_a_little(void *result)
{
    int err = gort_sleep(2 * GORT_MS);
    if (err)
        *(int *)result = err;
}

FAULTS(sleepers)
{
    gort_wg wg = {0};
    int err = 0, slept = 0;
    for (long i = test_scaled(300, 40); i; i--)
        err = both(err, gort_wg_go(&wg, sleep_a_little, &slept));
    err = both(err, gort_wg_wait(&wg));
    return both(err, slept);
}

NOTHING_LEAKS({"go_copy", go_copy, 300}, {"keys", keys, 100}, {"on_exit", on_exit_handlers, 100},
              {"channels", channels, 300}, {"selects", selects, 50}, {"groups", groups, 15},
              {"pools", pools, 100}, {"contexts", contexts, 15}, {"sleepers", sleepers, 2},
              {"tickers", tickers, 5}, {"inherited", inherited_contexts, 100})

/* What the free lists of a P held when it went out of use is used again. */
static void grow_and_shrink(int rounds)
{
    for (int i = 0; i < rounds; i++) {
        gort_wg wg = {0};
        gort_maxprocs(4);
        for (int k = 0; k < 200; k++)
            CHECK_EQ(gort_wg_go(&wg, job, NULL), 0);
        gort_wg_wait(&wg);
        gort_maxprocs(1);
    }
}

TEST_GO(maxprocs_up_and_down_is_flat, .env = "GORT_MAXPROCS=1")
{
    long more = 1;
    for (int i = 0; i < 5 && more > 0;
         i++) { /* how many each P needs at the most is a matter of luck, but soon known */
        long mapped = fault_mapped();
        grow_and_shrink((int)test_scaled(300, 100));
        more = fault_mapped() - mapped;
        more = is_records(more) ? 0 : more;
    }
    CHECK_MSG(more <= 0, "%ld bytes more", more);
}

/* --- timers without memory ---------------------------------------------------------------------- */

enum {
    TIMERS = 400,
    /* A heap has room for so many at first: timer.c:SKEW places are left out. */
    ROOM = 253
};
static gort_timer *timer[TIMERS];

static void set_again(int from, int to)
{
    for (int i = from; i < to; i++)
        gort_timer_reset(timer[i], 3600 * GORT_SEC, 0);
}

static void make_timers(int n)
{
    for (int i = 0; i < n; i++) {
        timer[i] = gort_timer_new(3600 * GORT_SEC, 0, nothing, NULL);
        CHECK(timer[i]);
        CHECK(gort_timer_stop(timer[i]));
    }
}

static void drop_timers(int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_MSG(gort_timer_stop(timer[i]), "timer %d is not set", i);
        gort_timer_free(timer[i]);
    }
}

/* Those that were taken back are still in the heap, which is full: their places are used. */
TEST_GO(timers_take_the_places_of_dead_ones, .env = "GORT_MAXPROCS=1")
{
    make_timers(ROOM);
    set_again(0, ROOM);
    fault_from(FAULT_MAP, 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++)
            CHECK(gort_timer_stop(timer[i * 5]));
        for (int i = 0; i < 50; i++)
            set_again(i * 5, i * 5 + 1);
    }
    CHECK_MSG(fault_off(), "nobody asked for memory");
    drop_timers(ROOM);
}

static atomic_int both_run;

/* On two Ps at the same time: each gets a heap. */
static void sleep_on_own_p(void *unused)
{
    (void)unused;
    gort_preempt_off();
    atomic_fetch_add(&both_run, 1);
    while (atomic_load(&both_run) < 2)
        ;
    CHECK_EQ(gort_sleep(GORT_MS), 0);
    gort_preempt_on();
}

TEST_GO(timers_find_room_in_the_heap_of_another_p, .env = "GORT_MAXPROCS=2")
{
    gort_wg wg = {0};
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gort_wg_go(&wg, sleep_on_own_p, NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    make_timers(TIMERS);
    fault_from(FAULT_MAP, 1);
    set_again(0, TIMERS);
    CHECK_MSG(fault_off(), "nobody asked for memory");
    drop_timers(TIMERS);
}
