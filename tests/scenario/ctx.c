/* SPDX-License-Identifier: MIT */
/*
 * ctx.c - contexts: trees, deadlines, inheritance, all cancelled at once. ctx_wait.c has those who wait.
 * Covers: src/sync/ctx.c src/sched/core/scope.c src/base/ref.h
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
    CHECK(!gort_ctx_done(NULL));
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

/* A child that is gone leaves nothing with its parent. */
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
    gort_ctx *longer = gort_ctx_new(ctx, gort_in(test_seconds(20)));
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
    gort_ctx *late = gort_ctx_new(NULL, gort_now() - 1), *early;
    CHECK_EQ(gort_ctx_err(late), -ETIMEDOUT);
    gort_ctx_cancel(late, -EIO); /* too late */
    CHECK_EQ(gort_ctx_err(late), -ETIMEDOUT);
    gort_ctx *child = gort_ctx_new(late, GORT_FOREVER);
    CHECK_EQ(gort_ctx_err(child), -ETIMEDOUT);
    CHECK(is_done(child));
    int64_t deadline;
    for (int64_t wait = 50 * GORT_MS;; wait *= 2) { /* a busy machine may be late itself */
        early = gort_ctx_new(NULL, deadline = gort_in(wait));
        gort_ctx_cancel(early, 0);
        if (gort_now() < deadline)
            break;
        gort_ctx_unref(early);
    }
    CHECK_EQ(gort_ctx_err(early), -ECANCELED);
    let_pass(deadline + 10 * GORT_MS - gort_now());
    CHECK_EQ(gort_ctx_err(early), -ECANCELED);
    gort_ctx_unref(late);
    gort_ctx_unref(early);
    gort_ctx_unref(child);
    gort_ctx *parent = gort_ctx_new(NULL, GORT_FOREVER), *sibling = gort_ctx_new(parent, GORT_FOREVER);
    late = gort_ctx_new(parent, gort_now() - 1);
    gort_ctx_cancel(parent, 0); /* comes too late for one of its children */
    CHECK_EQ(gort_ctx_err(late), -ETIMEDOUT);
    CHECK_EQ(gort_ctx_err(sibling), -ECANCELED);
    CHECK(is_done(late) && is_done(sibling));
    gort_ctx_unref(late);
    gort_ctx_unref(sibling);
    gort_ctx_unref(parent);
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
    CHECK_EQ(gort_go_copy(grandchild, &(int){1}, sizeof(int)), 0);
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

/* --- all at once ------------------------------------------------------------------------------------ */

#define NODES 100
static gort_ctx *nodes[NODES];

static void await_done(int i)
{
    CHECK_EQ(gort_chan_recv_until(gort_ctx_done(nodes[i]), NULL, soon()), 0);
    CHECK_NE(gort_ctx_err(nodes[i]), 0); /* done means that there is an error */
    atomic_fetch_add(&counter, 1);
}

static void cancel_node(int i)
{
    gort_ctx_cancel(nodes[i], 0);
}

/* A tree, all cancelled at the same time in any order. */
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

/* The woken cancels and drops the child while the parent is still at it. */
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

/* Cancelled while children are made: each of them is cancelled, with the parent's reason. */
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

/* Thirty layers of either kind. */
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

static void make_and_drop_a_chain(void *wg)
{
    gort_ctx *top = gort_ctx_new(NULL, GORT_FOREVER), *last = gort_ctx_ref(top);
    for (int i = 0; i < 100000; i++) {
        gort_ctx *next = gort_ctx_new(last, GORT_FOREVER);
        CHECK(next);
        gort_ctx_unref(last); /* its child keeps it */
        last = next;
    }
    gort_ctx_cancel(top, -EIO);
    gort_ctx_unref(top);
    CHECK_EQ(gort_ctx_err(last), -EIO);
    gort_ctx_unref(last); /* all of them, on a stack of 64 KiB */
    gort_wg_done(wg);
}

TEST_GO(a_chain_of_a_hundred_thousand)
{
    gort_wg wg = {0};
    gort_attr attr = {.stack_size = 64 << 10};
    gort_wg_add(&wg, 1);
    CHECK_EQ(gort_go_with(&attr, make_and_drop_a_chain, &wg), 0);
    gort_wg_wait(&wg);
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
        kept = gort_ctx_new(NULL, gort_in(i % 2 ? 20 * GORT_MS : test_seconds(20)));
        CHECK_EQ(gort_run(use_kept, NULL), 0);
        if (i % 2)
            CHECK_EQ(gort_run(wait_for_kept, NULL), 0); /* the next run looks after it */
        gort_ctx_unref(kept);
    }
    kept = gort_ctx_new(NULL, gort_in(test_seconds(20)));
    CHECK_EQ(gort_run(use_kept, NULL), 0);
    CHECK_EQ(gort_run(use_kept, NULL), 0);
    gort_ctx_cancel(kept, 0);
    CHECK_EQ(gort_ctx_err(kept), -ECANCELED);
    gort_ctx_unref(kept);
}
