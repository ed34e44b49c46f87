/* SPDX-License-Identifier: MIT */
/*
 * ctx_wait.c - waiting under a context: every call that a cancel may end is ended by it, leaves no waiter
 * behind and loses no value; ctx_plain.c has those that it does not end.
 * Covers: src/sched/core/scope.c src/sched/wait/wait.c src/sync/chan.c src/sync/select.c src/sync/mutex.c src/sync/rwmutex.c
 * Covers: src/sync/cond.c src/sync/wg.c src/sync/once.c src/sync/sem.c
 */
#include "waiting.h"

static atomic_long counter;

/* --- every call that waits --------------------------------------------------------------------------- */

static struct {
    gort_chan *empty, *full;
    gort_wg wg;
    gort_sem sem;
    gort_cond cond;
    gort_mutex cond_mu, held;
    gort_rwmutex rw;
    gort_barrier barrier;
    gort_once once;
} obj;

enum {
    W_RECV,
    W_SEND,
    W_RECV_UNTIL,
    W_SEND_UNTIL,
    W_SELECT,
    W_SELECT_UNTIL,
    W_SELECT_NONE,
    W_WG,
    W_SEM,
    W_SEM_UNTIL,
    W_COND,
    W_MUTEX,
    W_RLOCK,
    W_WLOCK,
    W_BARRIER,
    W_ONCE,
    W_KINDS
};

static int value;

static void hold_the_once(void *gate)
{
    gort_chan_recv(gate, NULL);
}

static void run_the_once(gort_chan *gate)
{
    CHECK_EQ(gort_once_do(&obj.once, hold_the_once, gate), 0);
}

static gort_chan *once_gate;

static void setup(void)
{
    obj.empty = gort_chan_new(sizeof(int), 0);
    obj.full = gort_chan_new(sizeof(int), 1);
    once_gate = gort_chan_new(0, 0);
    CHECK_EQ(gort_chan_send(obj.full, &value), 0);
    gort_wg_add(&obj.wg, 1);
    CHECK_EQ(gort_mutex_lock(&obj.held), 0);
    CHECK_EQ(gort_rwmutex_lock(&obj.rw), 0);
    gort_barrier_init(&obj.barrier, 1000);
    CHECK_EQ(GORT_GO(run_the_once, once_gate), 0);
    await_waiting("chan receive", 1);
}

static void clean_up(void)
{
    CHECK_EQ(gort_chan_send(once_gate, NULL), 0);
    settle();
    gort_chan_unref(obj.empty);
    gort_chan_unref(obj.full);
    gort_chan_unref(once_gate);
}

static int wait_for(int kind)
{
    gort_case cases[] = {{.ch = obj.empty, .op = GORT_RECV},
                         {.ch = obj.full, .send = &value, .op = GORT_SEND},
                         {.ch = obj.empty, .op = GORT_RECV}};
    int err;
    switch (kind % W_KINDS) {
    case W_RECV:
        return gort_chan_recv(obj.empty, NULL);
    case W_SEND:
        return gort_chan_send(obj.full, &value);
    case W_RECV_UNTIL:
        return gort_chan_recv_until(obj.empty, NULL, soon());
    case W_SEND_UNTIL:
        return gort_chan_send_until(obj.full, &value, soon());
    case W_SELECT:
        return gort_select(cases, 3, GORT_FOREVER);
    case W_SELECT_UNTIL:
        return gort_select(cases, 3, soon());
    case W_SELECT_NONE:
        return gort_select(NULL, 0, GORT_FOREVER);
    case W_WG:
        return gort_wg_wait_until(&obj.wg, GORT_FOREVER);
    case W_SEM:
        return gort_sem_acquire_until(&obj.sem, GORT_FOREVER);
    case W_SEM_UNTIL:
        return gort_sem_acquire_until(&obj.sem, soon());
    case W_COND:
        CHECK_EQ(gort_mutex_lock(&obj.cond_mu), 0);
        err = gort_cond_wait_until(&obj.cond, &obj.cond_mu, GORT_FOREVER);
        gort_mutex_unlock(&obj.cond_mu);
        return err;
    case W_MUTEX:
        return gort_mutex_lock_until(&obj.held, GORT_FOREVER);
    case W_RLOCK:
        return gort_rwmutex_rlock_until(&obj.rw, soon());
    case W_WLOCK:
        return gort_rwmutex_lock_until(&obj.rw, GORT_FOREVER);
    case W_BARRIER:
        return gort_barrier_wait_until(&obj.barrier, GORT_FOREVER);
    default:
        return gort_once_do_until(&obj.once, hold_the_once, once_gate, GORT_FOREVER);
    }
}

/* Nobody stands in any queue any more, and nothing was taken or left. */
static void check_no_trace(void)
{
    int v = 9;
    CHECK_EQ(gort_chan_send_until(obj.empty, &v, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_chan_len(obj.full), 1);
    CHECK_EQ(gort_chan_recv_until(obj.full, &v, GORT_TRY), 1);
    CHECK_EQ(gort_chan_recv_until(obj.full, &v, GORT_TRY), -EAGAIN); /* no sender moved up */
    CHECK_EQ(gort_chan_send_until(obj.full, &value, GORT_TRY), 0);
    gort_sem_release(&obj.sem);
    CHECK_EQ(gort_sem_acquire_until(&obj.sem, GORT_TRY), 0);
    gort_rwmutex_unlock(&obj.rw);
    CHECK(gort_rwmutex_trylock(&obj.rw));
    gort_mutex_unlock(&obj.held);
    static const gort_mutex free_mutex;
    CHECK(memcmp(&obj.held, &free_mutex, sizeof free_mutex) == 0);
    CHECK(gort_mutex_trylock(&obj.held));
}

static int expected_error;

static void wait_until_cancelled(int kind)
{
    int err = wait_for(kind);
    CHECK_MSG(err == expected_error, "kind %d returned %d", kind, err);
    err = wait_for(kind); /* and again, at once */
    CHECK_MSG(err == expected_error, "kind %d returned %d the second time", kind, err);
    atomic_fetch_add(&counter, 1);
}

static void cancel_all(int cancel_with, int expect)
{
    setup();
    expected_error = expect;
    for (int round = 0; round < 10; round++) {
        atomic_store(&counter, 0);
        gort_ctx *top = gort_ctx_new(NULL, GORT_FOREVER), *ctx = gort_ctx_new(top, soon());
        gort_ctx_use(ctx);
        for (int i = 0; i < 3 * W_KINDS; i++)
            CHECK_EQ(GORT_GO(wait_until_cancelled, i), 0);
        gort_ctx_use(NULL);
        if (round % 2)
            await_waiting("", 3 * W_KINDS + 1); /* else some wait, some come later */
        int64_t from = gort_now();
        gort_ctx_cancel(top, cancel_with);
        await(&counter, 3 * W_KINDS);
        CHECK_LT(gort_now() - from, test_seconds(30));
        settle_to(2);
        check_no_trace();
        gort_ctx_unref(top);
        gort_ctx_unref(ctx);
    }
    clean_up();
}

TEST_GO(cancel_reaches_every_wait, .procs = "1,2,4,64", .fuzz = true)
{
    cancel_all(0, -ECANCELED);
}

TEST_GO(whatever_the_reason_waits_say_cancelled, .procs = "1,2,4,64", .fuzz = true)
{
    cancel_all(-EIO, -ECANCELED);
}

static void *thread_under_context(void *ctx)
{
    CHECK(gort_ctx_use(ctx) == NULL);
    for (int i = 0; i < W_KINDS; i++)
        CHECK_EQ(wait_for(i), -ECANCELED);
    CHECK(gort_ctx_use(NULL) == ctx);
    atomic_fetch_add(&counter, 1);
    return NULL;
}

TEST_GO(threads_are_cancelled_too, .procs = "1,2")
{
    pthread_t threads[4];
    setup();
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_under_context, ctx), 0);
    let_pass(2 * GORT_MS); /* some wait already, some do not; all must come back */
    gort_ctx_cancel(ctx, 0);
    await(&counter, 4);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    check_no_trace();
    gort_ctx_unref(ctx);
    clean_up();
}

TEST_GO(what_can_happen_still_does_under_a_cancelled_one)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    gort_ctx_cancel(ctx, 0);
    gort_ctx_use(ctx);
    int v = 5;
    CHECK_EQ(gort_chan_send(ch, &v), 0);
    CHECK_EQ(gort_chan_send(ch, &v), -ECANCELED);
    CHECK_EQ(gort_chan_send_until(ch, &v, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_chan_recv(ch, &v), 1);
    CHECK_EQ(gort_chan_recv(ch, &v), -ECANCELED);
    gort_sem sem = {0};
    CHECK_EQ(gort_sem_acquire_until(&sem, GORT_FOREVER), -ECANCELED);
    gort_sem_release(&sem);
    CHECK_EQ(gort_sem_acquire_until(&sem, GORT_FOREVER), 0);
    gort_mutex mu = {0};
    CHECK_EQ(gort_mutex_lock_until(&mu, gort_in(GORT_SEC)), 0);
    CHECK_EQ(gort_mutex_lock_until(&mu, gort_in(GORT_SEC)), -ECANCELED);
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_wait_until(&wg, GORT_FOREVER), 0);
    CHECK_EQ(gort_yield(), 0);
    gort_ctx_use(NULL);
    gort_chan_unref(ch);
    gort_ctx_unref(ctx);
}

/* --- nothing is lost -------------------------------------------------------------------------------- */

static atomic_long sent, received, cancelled;
static gort_chan *line;

static void send_until_cancelled(void *unused)
{
    (void)unused;
    for (;;) {
        long v = 1;
        int err = gort_chan_send(line, &v);
        if (err) {
            CHECK_EQ(err, -ECANCELED);
            atomic_fetch_add(&cancelled, 1);
            return;
        }
        atomic_fetch_add(&sent, 1);
    }
}

static void recv_until_cancelled(void *unused)
{
    (void)unused;
    for (;;) {
        long v = 0;
        int err = gort_chan_recv(line, &v);
        if (err != 1) {
            CHECK_EQ(err, -ECANCELED);
            CHECK_EQ(v, 0);
            atomic_fetch_add(&cancelled, 1);
            return;
        }
        CHECK_EQ(v, 1);
        atomic_fetch_add(&received, 1);
    }
}

TEST_GO(values_are_conserved_when_either_end_is_cancelled, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(1000, 60);
    for (long round = 0; round < n; round++) {
        line = gort_chan_new(sizeof(long), (size_t)(round % 3));
        gort_ctx *senders = gort_ctx_new(NULL, GORT_FOREVER), *receivers = gort_ctx_new(NULL, GORT_FOREVER);
        atomic_store(&sent, 0);
        atomic_store(&received, 0);
        atomic_store(&cancelled, 0);
        for (int i = 0; i < 3; i++) {
            gort_ctx_use(senders);
            CHECK_EQ(gort_go(send_until_cancelled, NULL), 0);
            gort_ctx_use(receivers);
            CHECK_EQ(gort_go(recv_until_cancelled, NULL), 0);
        }
        gort_ctx_use(NULL);
        await(&received, round % 7);
        gort_ctx_cancel(round % 2 ? senders : receivers, 0);
        await(&cancelled, 3);
        gort_ctx_cancel(round % 2 ? receivers : senders, 0);
        await(&cancelled, 6);
        settle();
        while (gort_chan_recv_until(line, NULL, GORT_TRY) == 1)
            atomic_fetch_add(&received, 1);
        CHECK_EQ(atomic_load(&sent), atomic_load(&received));
        gort_chan_unref(line);
        gort_ctx_unref(senders);
        gort_ctx_unref(receivers);
    }
}

/* Deadline of the call, deadline of the context and the cancel, all at about the same time. */
static void many_ends(uint64_t seed, gort_ctx *parent, long n)
{
    gort_chan *never = gort_chan_new(0, 0);
    for (long i = 0; i < n; i++) {
        gort_ctx *ctx = gort_ctx_new(parent, gort_in((int64_t)(test_random(&seed) % (30 * GORT_US))));
        gort_ctx *former = gort_ctx_use(ctx);
        int err = gort_chan_recv_until(never, NULL, gort_in((int64_t)(test_random(&seed) % (30 * GORT_US))));
        CHECK(err == -ETIMEDOUT || err == -ECANCELED);
        gort_ctx_use(parent);
        if (i % 4 == 0)
            err = gort_chan_recv_until(never, NULL, gort_in((int64_t)(test_random(&seed) % (5 * GORT_US))));
        CHECK(err == -ETIMEDOUT || err == -ECANCELED);
        gort_ctx_use(former);
        gort_ctx_unref(ctx);
    }
    gort_chan_unref(never);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(all_ends_at_once, .procs = "1,2,4,64", .fuzz = true)
{
    long n = test_scaled(2000, 200);
    for (int round = 0; round < 5; round++) {
        gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
        atomic_store(&counter, 0);
        for (uint64_t i = 0; i < 8; i++)
            CHECK_EQ(GORT_GO(many_ends, test_seed() + i, ctx, n), 0);
        if (round % 2) {
            let_pass(2 * GORT_MS);
            gort_ctx_cancel(ctx, 0);
        }
        await(&counter, 8);
        gort_ctx_cancel(ctx, 0); /* meets nobody who is gone */
        settle();
        gort_ctx_unref(ctx);
    }
}

/* --- over several runs ---------------------------------------------------------------------------- */

static gort_ctx *kept;

static void wait_under_kept(int kind)
{
    wait_for(kind);
    CHECK_MSG(false, "was woken");
}

static int leave_waiters(void *unused)
{
    (void)unused;
    obj.empty = obj.empty ? obj.empty : gort_chan_new(sizeof(int), 0);
    gort_ctx_use(kept);
    CHECK_EQ(GORT_GO(wait_under_kept, W_RECV), 0);
    CHECK_EQ(GORT_GO(wait_under_kept, W_RECV_UNTIL), 0);
    CHECK_EQ(GORT_GO(wait_under_kept, W_SELECT_NONE), 0);
    gort_ctx_use(NULL);
    await_waiting("", 3);
    return 0;
}

static void recv_cancelled(gort_chan *ch)
{
    CHECK_EQ(gort_chan_recv(ch, NULL), -ECANCELED);
    atomic_fetch_add(&counter, 1);
}

static int cancel_in_run(void *unused)
{
    (void)unused;
    atomic_store(&counter, 0);
    gort_ctx_use(kept);
    CHECK_EQ(GORT_GO(recv_cancelled, obj.empty), 0);
    gort_ctx_use(NULL);
    await_waiting("", 1);
    gort_ctx_cancel(kept, 0);
    await(&counter, 1);
    settle();
    return 0;
}

TEST(waiters_of_an_ended_run_are_forgotten, .procs = "1,2,4,64")
{
    for (int i = 0; i < 20; i++) {
        kept = gort_ctx_new(NULL, i % 2 ? GORT_FOREVER : soon());
        CHECK_EQ(gort_run(leave_waiters, NULL), 0);
        if (i % 3 == 0)
            gort_ctx_cancel(kept, 0);
        else
            CHECK_EQ(gort_run(cancel_in_run, NULL), 0);
        gort_ctx_unref(kept);
    }
    gort_chan_unref(obj.empty);
}
