/* SPDX-License-Identifier: MIT */
/*
 * ctx.c - contexts: trees, deadlines, who is woken by a cancel and what it leaves behind; group K, H20.
 */
#include "waiting.h"

static atomic_long counter;

/* --- the tree ------------------------------------------------------------------------------------- */

static bool is_done(gort_ctx *ctx)
{
    int result = gort_chan_recv_until(gort_ctx_done(ctx), NULL, GORT_TRY);
    CHECK(result == 0 || result == -EAGAIN);
    return result == 0;
}

static void tree_rules(void)
{
    gort_ctx *root = gort_ctx_new(NULL, GORT_FOREVER), *a = gort_ctx_new(root, GORT_FOREVER);
    gort_ctx *b = gort_ctx_new(root, GORT_FOREVER), *aa = gort_ctx_new(a, GORT_FOREVER);
    CHECK(root && a && b && aa);
    CHECK_EQ(gort_ctx_err(NULL), 0);
    CHECK_EQ(gort_ctx_err(root), 0);
    CHECK(!is_done(aa) && !is_done(root) && !is_done(b));
    gort_ctx_cancel(a, -EIO);
    CHECK_EQ(gort_ctx_err(a), -EIO);
    CHECK_EQ(gort_ctx_err(aa), -EIO);
    CHECK(is_done(a) && is_done(aa)); /* a's channel was made after it */
    CHECK_EQ(gort_ctx_err(root), 0);
    CHECK_EQ(gort_ctx_err(b), 0);
    CHECK(!is_done(root) && !is_done(b));
    gort_ctx_cancel(a, -EPERM); /* the first one counts */
    gort_ctx_cancel(aa, 0);
    CHECK_EQ(gort_ctx_err(a), -EIO);
    CHECK_EQ(gort_ctx_err(aa), -EIO);
    gort_ctx *late = gort_ctx_new(aa, GORT_FOREVER); /* born cancelled */
    CHECK_EQ(gort_ctx_err(late), -EIO);
    CHECK(is_done(late));
    gort_ctx_cancel(root, 0);
    CHECK_EQ(gort_ctx_err(root), -ECANCELED);
    CHECK_EQ(gort_ctx_err(b), -ECANCELED);
    CHECK_EQ(gort_ctx_err(a), -EIO);
    CHECK(is_done(b) && is_done(root));
    CHECK_EQ(gort_ctx_ref(b), b);
    gort_ctx_unref(root); /* any order will do: children keep their parents */
    gort_ctx_unref(b);
    gort_ctx_unref(aa);
    gort_ctx_unref(a);
    CHECK_EQ(gort_ctx_err(late), -EIO);
    CHECK_EQ(gort_ctx_err(b), -ECANCELED);
    gort_ctx_unref(late);
    gort_ctx_unref(b);
    gort_ctx_unref(NULL);
    CHECK(gort_ctx_ref(NULL) == NULL);
}

static int run_tree_rules(void *unused)
{
    (void)unused;
    tree_rules();
    CHECK(gort_ctx_current() == NULL);
    return 0;
}

TEST(before_between_and_after_runs)
{
    for (int i = 0; i < 3; i++) {
        tree_rules();
        CHECK(gort_ctx_current() == NULL);
        CHECK_EQ(gort_run(run_tree_rules, NULL), 0);
    }
    tree_rules();
}

TEST_GO(positive_errors_and_zero)
{
    gort_ctx *a = gort_ctx_new(NULL, GORT_FOREVER), *b = gort_ctx_new(NULL, GORT_FOREVER);
    gort_ctx_cancel(a, 0);
    CHECK_EQ(gort_ctx_err(a), -ECANCELED);
    gort_ctx_cancel(b, -ETIMEDOUT);
    CHECK_EQ(gort_ctx_err(b), -ETIMEDOUT);
    gort_ctx_unref(a);
    gort_ctx_unref(b);
}

/* K1: a child that is gone leaves nothing with its parent. */
TEST_GO(children_come_and_go, .procs = "1,2")
{
    gort_ctx *root = gort_ctx_new(NULL, GORT_FOREVER), *kept[10];
    long n = test_scaled(200000, 2000), before = 0;
    for (int i = 0; i < 10; i++)
        kept[i] = gort_ctx_new(root, GORT_FOREVER);
    for (long i = 0; i < n; i++) {
        gort_ctx *child = gort_ctx_new(root, i % 2 ? GORT_FOREVER : gort_in(GORT_SEC));
        if (i % 3 == 0)
            CHECK(gort_ctx_done(child));
        if (i % 5 == 0)
            gort_ctx_cancel(child, 0);
        gort_ctx_unref(child);
        if (i == n / 10)
            before = test_rss_kb();
    }
    check_flat(before, 2048);
    gort_ctx_cancel(root, 0);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(gort_ctx_err(kept[i]), -ECANCELED);
        gort_ctx_unref(kept[i]);
    }
    gort_ctx_unref(root);
}

/* --- deadlines ------------------------------------------------------------------------------------- */

TEST_GO(a_deadline_ends_it, .procs = "1,2,4,64", .fuzz = true)
{
    int64_t until = gort_in(10 * GORT_MS);
    gort_ctx *ctx = gort_ctx_new(NULL, until), *child = gort_ctx_new(ctx, GORT_FOREVER);
    gort_ctx *longer = gort_ctx_new(ctx, gort_in(20 * GORT_SEC));
    CHECK_EQ(gort_chan_recv_until(gort_ctx_done(child), NULL, soon()), 0);
    CHECK_GE(gort_now(), until);
    CHECK_EQ(gort_chan_recv_until(gort_ctx_done(longer), NULL, soon()), 0);
    CHECK_EQ(gort_chan_recv_until(gort_ctx_done(ctx), NULL, soon()), 0);
    CHECK_EQ(gort_ctx_err(ctx), -ETIMEDOUT);
    CHECK_EQ(gort_ctx_err(child), -ETIMEDOUT);
    CHECK_EQ(gort_ctx_err(longer), -ETIMEDOUT);
    gort_ctx_cancel(ctx, -EIO);
    CHECK_EQ(gort_ctx_err(ctx), -ETIMEDOUT);
    gort_ctx_unref(ctx);
    gort_ctx_unref(child);
    gort_ctx_unref(longer);
}

TEST_GO(the_first_end_counts)
{
    gort_ctx *late = gort_ctx_new(NULL, gort_now() - 1), *early = gort_ctx_new(NULL, gort_in(5 * GORT_MS));
    CHECK_EQ(gort_ctx_err(late), -ETIMEDOUT);
    gort_ctx_cancel(late, -EIO); /* too late */
    CHECK_EQ(gort_ctx_err(late), -ETIMEDOUT);
    gort_ctx *child = gort_ctx_new(late, GORT_FOREVER);
    CHECK_EQ(gort_ctx_err(child), -ETIMEDOUT);
    CHECK(is_done(child));
    gort_ctx_cancel(early, 0);
    CHECK_EQ(gort_ctx_err(early), -ECANCELED);
    let_pass(10 * GORT_MS);
    CHECK_EQ(gort_ctx_err(early), -ECANCELED);
    gort_ctx_unref(late);
    gort_ctx_unref(early);
    gort_ctx_unref(child);
}

TEST_GO(a_deadline_ends_the_waits_under_it, .procs = "1,2,4,64", .fuzz = true)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 0);
    for (int i = 0; i < 5; i++) {
        int64_t until = gort_in(3 * GORT_MS);
        gort_ctx *ctx = gort_ctx_new(NULL, until), *child = gort_ctx_new(ctx, soon());
        CHECK(gort_ctx_use(child) == NULL);
        CHECK_EQ(i % 2 ? gort_chan_recv(ch, NULL) : gort_chan_send_until(ch, &i, soon()), -ETIMEDOUT);
        CHECK_GE(gort_now(), until);
        CHECK_EQ(gort_chan_recv(ch, NULL), -ETIMEDOUT); /* at once from now on */
        CHECK_EQ(gort_chan_recv_until(ch, NULL, GORT_TRY), -EAGAIN);
        CHECK_EQ(gort_select(NULL, 0, GORT_FOREVER), -ETIMEDOUT);
        CHECK(gort_ctx_use(NULL) == child);
        gort_ctx_unref(ctx);
        gort_ctx_unref(child);
    }
    int64_t until = gort_in(2 * GORT_MS); /* a nearer deadline of the call's own */
    gort_ctx *ctx = gort_ctx_new(NULL, soon());
    gort_ctx_use(ctx);
    CHECK_EQ(gort_chan_recv_until(ch, NULL, until), -ETIMEDOUT);
    CHECK_GE(gort_now(), until);
    CHECK_EQ(gort_ctx_err(ctx), 0);
    gort_ctx_use(NULL);
    gort_ctx_unref(ctx);
    gort_chan_unref(ch);
}

/* --- in use ---------------------------------------------------------------------------------------- */

static gort_ctx *root;

static void grandchild(void *unused)
{
    (void)unused;
    CHECK(gort_ctx_current() == root);
    atomic_fetch_add(&counter, 1);
}

static void child(void *unused)
{
    (void)unused;
    CHECK(gort_ctx_current() == root);
    CHECK_EQ(gort_go(grandchild, NULL), 0);
    CHECK(gort_ctx_use(NULL) == root);
    CHECK(gort_ctx_current() == NULL);
    atomic_fetch_add(&counter, 1);
}

static void no_context(void *unused)
{
    (void)unused;
    CHECK(gort_ctx_current() == NULL);
    atomic_fetch_add(&counter, 1);
}

static void child_of_none(void *unused)
{
    (void)unused;
    CHECK(gort_ctx_use(NULL) == root);
    CHECK_EQ(gort_go(no_context, NULL), 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(new_goroutines_inherit_it, .procs = "1,2,4,64", .fuzz = true)
{
    root = gort_ctx_new(NULL, GORT_FOREVER);
    CHECK(gort_ctx_use(root) == NULL);
    CHECK(gort_ctx_current() == root);
    CHECK_EQ(gort_go(grandchild, NULL), 0);
    CHECK_EQ(GORT_GO(grandchild, NULL), 0);
    CHECK_EQ(gort_go_copy(grandchild, &counter, sizeof counter), 0);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "x"}, grandchild, NULL), 0);
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_go(&wg, grandchild, NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(gort_go(child, NULL), 0);
    CHECK_EQ(gort_go(child_of_none, NULL), 0);
    CHECK(gort_ctx_use(NULL) == root);
    CHECK_EQ(gort_go(no_context, NULL), 0);
    await(&counter, 10);
    settle();
    gort_ctx_unref(root);
}

static void outlive(gort_chan *gate, gort_chan *never)
{
    CHECK_EQ(gort_chan_recv(gate, NULL), 1);
    CHECK_EQ(gort_ctx_err(gort_ctx_current()), 0);
    CHECK_EQ(gort_chan_recv_until(never, NULL, gort_in(GORT_MS)), -ETIMEDOUT);
    atomic_fetch_add(&counter, 1);
}

static gort_key key;
static gort_chan *for_destructor;

static void wait_in_handler(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_chan_recv_until(for_destructor, NULL, gort_in(100 * GORT_US)), -ETIMEDOUT);
    atomic_fetch_add(&counter, 1);
}

static void with_key(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_key_set(key, &key), 0);
    CHECK_EQ(gort_on_exit(wait_in_handler, NULL), 0);
}

/* Goroutines hold references of their own, until their very end. */
TEST_GO(goroutines_keep_what_they_inherit, .procs = "1,2,4,64", .fuzz = true)
{
    gort_chan *gate = gort_chan_new(0, 0), *never = gort_chan_new(0, 0);
    for (int i = 0; i < 50; i++) {
        gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
        gort_ctx_use(ctx);
        for (int k = 0; k < 4; k++)
            CHECK_EQ(GORT_GO(outlive, gate, never), 0);
        gort_ctx_use(NULL);
        gort_ctx_unref(ctx);
        for (int k = 0; k < 4; k++)
            CHECK_EQ(gort_chan_send(gate, NULL), 0);
    }
    await(&counter, 200);
    settle();
    gort_chan_unref(gate);
    gort_chan_unref(never);
}

static atomic_long in_destructor;

static void start_from_destructor(void *unused)
{
    (void)unused;
    atomic_fetch_add(&in_destructor, 1);
}

static void destroy_with_wait(void *unused)
{
    (void)unused;
    gort_chan_recv_until(for_destructor, NULL, gort_in(100 * GORT_US));
    CHECK_EQ(gort_go(start_from_destructor, NULL), 0);
    atomic_fetch_add(&in_destructor, 1);
}

TEST_GO(handlers_and_destructors_may_wait, .procs = "1,2,4,64", .fuzz = true)
{
    for_destructor = gort_chan_new(0, 0);
    CHECK_EQ(gort_key_create(&key, destroy_with_wait), 0);
    for (int i = 0; i < 100; i++) {
        gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
        gort_ctx_use(ctx);
        CHECK_EQ(gort_go(with_key, NULL), 0);
        gort_ctx_use(NULL);
        gort_ctx_unref(ctx); /* the goroutine's is the last reference */
    }
    await(&counter, 100);
    await(&in_destructor, 200);
    settle();
    gort_chan_unref(for_destructor);
}

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
        return gort_wg_wait(&obj.wg);
    case W_SEM:
        return gort_sem_acquire(&obj.sem);
    case W_SEM_UNTIL:
        return gort_sem_acquire_until(&obj.sem, soon());
    case W_COND:
        CHECK_EQ(gort_mutex_lock(&obj.cond_mu), 0);
        err = gort_cond_wait(&obj.cond, &obj.cond_mu);
        gort_mutex_unlock(&obj.cond_mu);
        return err;
    case W_MUTEX:
        return gort_mutex_lock_until(&obj.held, GORT_FOREVER);
    case W_RLOCK:
        return gort_rwmutex_rlock_until(&obj.rw, soon());
    case W_WLOCK:
        return gort_rwmutex_lock_until(&obj.rw, soon());
    case W_BARRIER:
        return gort_barrier_wait(&obj.barrier);
    default:
        return gort_once_do(&obj.once, hold_the_once, once_gate);
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
        CHECK_LT(gort_now() - from, 10 * GORT_SEC);
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
    CHECK_EQ(gort_sem_acquire(&sem), -ECANCELED);
    gort_sem_release(&sem);
    CHECK_EQ(gort_sem_acquire(&sem), 0);
    gort_mutex mu = {0};
    CHECK_EQ(gort_mutex_lock_until(&mu, gort_in(GORT_SEC)), 0);
    CHECK_EQ(gort_mutex_lock_until(&mu, gort_in(GORT_SEC)), -ECANCELED);
    gort_wg wg = {0};
    CHECK_EQ(gort_wg_wait(&wg), 0);
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

/* --- all at once ------------------------------------------------------------------------------------ */

#define NODES 100
static gort_ctx *nodes[NODES];

static void await_done(int i)
{
    CHECK_EQ(gort_chan_recv_until(gort_ctx_done(nodes[i]), NULL, soon()), 0);
    CHECK_NE(gort_ctx_err(nodes[i]), 0); /* K8: done means that there is an error */
    atomic_fetch_add(&counter, 1);
}

static void cancel_node(int i)
{
    gort_ctx_cancel(nodes[i], 0);
}

/* K3: a tree, all cancelled at the same time in any order. */
TEST_GO(a_hundred_cancelled_in_random_order, .procs = "1,2,4,64", .fuzz = true)
{
    uint64_t seed = test_seed();
    for (int round = 0; round < 20; round++) {
        int order[NODES];
        atomic_store(&counter, 0);
        for (int i = 0; i < NODES; i++) {
            nodes[i] = gort_ctx_new(i ? nodes[test_random(&seed) % (uint64_t)i] : NULL, GORT_FOREVER);
            order[i] = i;
            CHECK_EQ(GORT_GO(await_done, i), 0);
        }
        for (int i = NODES - 1; i > 0; i--) {
            int k = (int)(test_random(&seed) % (uint64_t)(i + 1)), t = order[i];
            order[i] = order[k];
            order[k] = t;
        }
        for (int i = 0; i < NODES; i++)
            CHECK_EQ(GORT_GO(cancel_node, order[i]), 0);
        await(&counter, NODES);
        settle();
        for (int i = 0; i < NODES; i++) {
            CHECK_EQ(gort_ctx_err(nodes[order[i]]), -ECANCELED);
            gort_ctx_unref(nodes[order[i]]);
        }
    }
}

/* K4: the woken cancels and drops the child while the parent is still at it. */
static void interlock(gort_ctx *parent, gort_ctx *below)
{
    CHECK_EQ(gort_chan_recv(gort_ctx_done(parent), NULL), 0);
    gort_ctx_cancel(below, -EIO);
    gort_ctx_unref(below);
    gort_ctx_unref(parent);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(woken_ones_cancel_on, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 500; i++) {
        gort_ctx *parent = gort_ctx_new(NULL, GORT_FOREVER), *below = gort_ctx_new(parent, GORT_FOREVER);
        CHECK(gort_ctx_done(parent));
        for (int k = 0; k < 4; k++)
            CHECK_EQ(GORT_GO(interlock, gort_ctx_ref(parent), gort_ctx_ref(below)), 0);
        gort_ctx_cancel(parent, 0);
        gort_ctx_unref(parent);
        CHECK_EQ(gort_ctx_err(below), -ECANCELED);
        gort_ctx_unref(below);
    }
    await(&counter, 2000);
    settle();
}

/* K5: cancelled while children are made: each of them is cancelled, with the parent's reason. */
static void make_children(gort_ctx *parent)
{
    for (int i = 0; i < 20; i++) {
        gort_ctx *c = gort_ctx_new(parent, i % 2 ? GORT_FOREVER : soon());
        gort_chan *done = gort_ctx_done(c);
        CHECK_EQ(gort_chan_recv_until(done, NULL, i % 4 ? soon() : GORT_FOREVER), 0);
        CHECK_EQ(gort_ctx_err(c), -EIO);
        gort_ctx_unref(c);
        gort_yield();
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(cancelled_while_children_are_made, .procs = "1,2,4,64", .fuzz = true)
{
    for (int i = 0; i < 200; i++) {
        gort_ctx *parent = gort_ctx_new(NULL, GORT_FOREVER);
        for (int k = 0; k < 4; k++)
            CHECK_EQ(GORT_GO(make_children, parent), 0);
        for (int k = 0; k < i % 10; k++)
            gort_yield();
        gort_ctx_cancel(parent, -EIO);
        await(&counter, 4 * (i + 1));
        gort_ctx_unref(parent);
    }
    settle();
}

/* K6: thirty layers of either kind. */
TEST_GO(thirty_layers, .procs = "1,2,4,64", .fuzz = true)
{
    uint64_t seed = test_seed();
    for (int round = 0; round < 20; round++) {
        gort_ctx *layer[30];
        bool timed = round % 2;
        int64_t nearest = GORT_FOREVER;
        for (int i = 0; i < 30; i++) {
            int64_t deadline = GORT_FOREVER;
            if (timed && test_random(&seed) % 2)
                deadline = gort_in(5 * GORT_MS + (int64_t)(test_random(&seed) % (5 * GORT_MS)));
            else if (test_random(&seed) % 3 == 0)
                deadline = soon();
            nearest = deadline < nearest ? deadline : nearest;
            layer[i] = gort_ctx_new(i ? layer[i - 1] : NULL, deadline);
        }
        if (!timed || nearest > gort_in(GORT_SEC)) {
            gort_ctx_cancel(layer[10], 0);
            CHECK_EQ(gort_ctx_err(layer[9]), 0);
            CHECK_EQ(gort_ctx_err(layer[29]), -ECANCELED);
            CHECK(is_done(layer[29]));
        } else {
            CHECK_EQ(gort_chan_recv_until(gort_ctx_done(layer[29]), NULL, soon()), 0);
            CHECK_GE(gort_now(), nearest);
            CHECK_EQ(gort_ctx_err(layer[29]), -ETIMEDOUT);
        }
        for (int i = 0; i < 30; i++)
            gort_ctx_unref(layer[round % 3 ? i : 29 - i]);
    }
}

TEST_GO(done_in_a_select, .procs = "1,2,4,64", .fuzz = true)
{
    gort_chan *never = gort_chan_new(0, 0);
    for (int i = 0; i < 100; i++) {
        gort_ctx *ctx = gort_ctx_new(NULL, i % 2 ? GORT_FOREVER : gort_in(GORT_MS));
        gort_case cases[] = {{.ch = never, .op = GORT_RECV}, {.ch = gort_ctx_done(ctx), .op = GORT_RECV}};
        nodes[0] = ctx;
        if (i % 2)
            CHECK_EQ(GORT_GO(cancel_node, 0), 0);
        CHECK_EQ(gort_select(cases, 2, GORT_FOREVER), 1);
        CHECK_EQ(cases[1].result, 0);
        CHECK_EQ(gort_ctx_err(ctx), i % 2 ? -ECANCELED : -ETIMEDOUT);
        settle();
        gort_ctx_unref(ctx);
    }
    gort_chan_unref(never);
}

/* --- over several runs ---------------------------------------------------------------------------- */

static gort_ctx *kept;

static int use_kept(void *unused)
{
    (void)unused;
    CHECK(gort_ctx_done(kept));
    let_pass(GORT_MS); /* its timer is one of several */
    return 0;
}

static int wait_for_kept(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_chan_recv_until(gort_ctx_done(kept), NULL, soon()), 0);
    CHECK_EQ(gort_ctx_err(kept), -ETIMEDOUT);
    return 0;
}

TEST(with_a_deadline_over_the_end_of_a_run, .procs = "1,2")
{
    for (int i = 0; i < 10; i++) {
        kept = gort_ctx_new(NULL, gort_in(i % 2 ? 20 * GORT_MS : 20 * GORT_SEC));
        CHECK_EQ(gort_run(use_kept, NULL), 0);
        if (i % 2)
            CHECK_EQ(gort_run(wait_for_kept, NULL), 0); /* the next run looks after it */
        gort_ctx_unref(kept);
    }
    kept = gort_ctx_new(NULL, gort_in(20 * GORT_SEC));
    CHECK_EQ(gort_run(use_kept, NULL), 0);
    CHECK_EQ(gort_run(use_kept, NULL), 0);
    gort_ctx_cancel(kept, 0);
    CHECK_EQ(gort_ctx_err(kept), -ECANCELED);
    gort_ctx_unref(kept);
}

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
