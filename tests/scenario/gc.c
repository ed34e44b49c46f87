/* SPDX-License-Identifier: MIT */
/*
 * gc.c - the module gort-gc: what goroutines can reach stays, what they cannot is used again.
 * Build: gc
 * Covers: src/gc/gc.c
 */
#include "hogs.h"

#ifdef HAVE_GORT_GC
#include <gort/gc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static atomic_bool stop;
static atomic_long counter;

/* A list with a checksum: each node says what the next must be. */
struct node {
    struct node *next;
    uint64_t value, check;
    char text[40];
};

static struct node *push(struct node *list, uint64_t value)
{
    struct node *n = gort_gc_malloc(sizeof *n);
    CHECK(n);
    CHECK_EQ(n->value, 0); /* zeroed */
    *n = (struct node){list, value, ~value, ""};
    memset(n->text, (int)value & 0x7f, sizeof n->text);
    return n;
}

static void check_list(const struct node *list, uint64_t n)
{
    for (; n; n--, list = list->next) {
        CHECK(list);
        CHECK_EQ(list->value, n);
        CHECK_EQ(list->check, ~n);
        for (size_t i = 0; i < sizeof list->text; i++)
            CHECK_EQ(list->text[i], (char)(n & 0x7f));
    }
    CHECK(!list);
}

static void begin(void)
{
    if (test_under_valgrind())
        SKIP("only without valgrind: the collector reads memory that was never written");
    gort_gc_init();
}

static void drop_garbage(int n)
{
    for (int i = 0; i < n; i++) {
        char *p = gort_gc_malloc_atomic(1000);
        CHECK(p);
        memset(p, 0xee, 1000);
    }
}

/* --- 1,000 goroutines ------------------------------------------------------------------------------------------- */

enum {
    LIVE = 20,
    DEAD = 12 /* KB of garbage for each that lives: several times what the collector lets its heap grow to */
};

static void work(void *unused)
{
    struct node *list = NULL;
    (void)unused;
    for (uint64_t i = 1; i <= LIVE; i++) {
        list = push(list, i);
        drop_garbage(DEAD);
        if (i % 8 == 0)
            gort_yield();
        else if (i % 8 == 4)
            gort_sleep(GORT_US * 50);
    }
    check_list(list, LIVE);
    atomic_fetch_add(&counter, 1);
}

static void hog(void *unused)
{
    struct node *volatile list = NULL;
    (void)unused;
    for (uint64_t i = 1; i <= LIVE; i++)
        list = push(list, i);
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        ;
    check_list(list, LIVE);
}

static int run_garbage(void *unused)
{
    long n = test_scaled(1000, 100);
    size_t most = 0;
    gort_wg wg = {0}, hogs = {0};
    (void)unused;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gort_wg_go(&hogs, hog, NULL), 0);
    for (long i = 0; i < n; i++)
        CHECK_EQ(gort_wg_go(&wg, work, NULL), 0);
    while (gort_wg_wait_until(&wg, gort_in(5 * GORT_MS)) != 0) {
        size_t heap = gort_gc_heap_size();
        most = heap > most ? heap : most;
    }
    atomic_store(&stop, true);
    gort_wg_wait(&hogs);
    CHECK_EQ(atomic_load(&counter), n);
    test_log("%ld KiB of garbage, the heap had at most %ld KiB", n * LIVE * DEAD, (long)(most >> 10));
    if (n == 1000)
        CHECK_LT(most, (size_t)n * LIVE * DEAD * 1000 / 2); /* without a collector: twice this and more */
    return 0;
}

TEST(garbage_of_many_goroutines, .procs = "1,2,4")
{
    begin();
    CHECK_EQ(gort_run(run_garbage, NULL), 0);
}

/* --- every place where a pointer may be ---------------------------------------------------------------------------- */

static int fds[2];
static gort_key key;
static gort_chan *ready;

static __attribute__((noinline)) void tell_ready(void)
{
    int one = 1;
    CHECK_GE(gort_chan_send(ready, &one), 0);
}

static __attribute__((noinline)) struct node *make_list(void)
{
    struct node *list = NULL;
    for (uint64_t i = 1; i <= LIVE; i++)
        list = push(list, i);
    return list;
}

static void in_sleep(void *list)
{
    if (!list)
        list = make_list();
    tell_ready();
    while (!atomic_load(&stop))
        gort_sleep(GORT_MS);
    check_list(list, LIVE);
    atomic_fetch_add(&counter, 1);
}

static void in_read(void *announce)
{
    char c;
    struct node *list = make_list();
    tell_ready();
    if (announce)
        gort_block_enter();
    CHECK_EQ(read(fds[0], &c, 1), 1);
    if (announce)
        gort_block_leave();
    check_list(list, LIVE);
    atomic_fetch_add(&counter, 1);
}

static intptr_t blocked(void *unused)
{
    char c;
    struct node *list = make_list();
    (void)unused;
    tell_ready();
    CHECK_EQ(read(fds[0], &c, 1), 1);
    drop_garbage(100);
    check_list(list, LIVE);
    return 1;
}

static void in_block(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_block(blocked, NULL), 1);
    atomic_fetch_add(&counter, 1);
}

static __attribute__((noinline)) int deep(int depth, struct node *list)
{
    volatile char frame[500];
    frame[0] = (char)depth;
    if (!depth)
        in_sleep(NULL);
    else
        deep(depth - 1, push(NULL, 1));
    check_list(list, 1);
    return frame[0];
}

static void in_deep(void *unused)
{
    (void)unused;
    deep(200, push(NULL, 1));
}

static void in_key(void *unused)
{
    (void)unused;
    CHECK_GE(gort_key_set(key, make_list()), 0);
    tell_ready();
    while (!atomic_load(&stop))
        gort_sleep(GORT_MS);
    check_list(gort_key_get(key), LIVE);
    atomic_fetch_add(&counter, 1);
}

static void in_copy(void *arg)
{
    struct node **lists = arg;
    tell_ready();
    while (!atomic_load(&stop))
        gort_sleep(GORT_MS);
    check_list(lists[3], LIVE);
    atomic_fetch_add(&counter, 1);
}

static __attribute__((noinline)) void start_all(gort_chan *small, gort_chan *large)
{
    struct node *lists[100] = {NULL};
    void (*const fns[])(void *) = {in_sleep, in_read, in_block, in_deep, in_key};
    for (size_t i = 0; i < sizeof fns / sizeof *fns; i++)
        CHECK_EQ(gort_go(fns[i], NULL), 0);
    CHECK_EQ(gort_go(in_read, &fds), 0);
    CHECK_EQ(gort_go(in_sleep, make_list()), 0);
    lists[3] = make_list();
    CHECK_EQ(gort_go_copy(in_copy, lists, sizeof lists), 0);
    lists[3] = make_list();
    CHECK_GE(gort_chan_send(small, &lists[3]), 0);
    lists[3] = make_list();
    CHECK_GE(gort_chan_send(large, lists), 0);
    memset(lists, 0, sizeof lists);
    __asm__ volatile("" : : "r"(lists) : "memory");
}

static int run_places(void *unused)
{
    enum { N = 8 };
    struct node *lists[100];
    char bytes[3] = {0};
    int one;
    gort_chan *small = gort_chan_new(sizeof(void *), 1), *large = gort_chan_new(sizeof lists, 100);
    (void)unused;
    ready = gort_chan_new(sizeof(int), N);
    CHECK(small && large && ready);
    CHECK_EQ(pipe(fds), 0);
    CHECK_GE(gort_key_create(&key, NULL), 0);
    start_all(small, large);
    gort_gc_collect(); /* some have not even started */
    for (int i = 0; i < N; i++)
        CHECK_EQ(gort_chan_recv(ready, &one), 1);
    for (int i = 0; i < 5; i++) {
        gort_sleep(GORT_MS);
        drop_garbage(2000); /* in place of what was lost */
        for (int k = 0; k < 200; k++)
            push(NULL, 77);
        gort_gc_collect();
    }
    atomic_store(&stop, true);
    CHECK_EQ(write(fds[1], bytes, 3), 3);
    for (int64_t until = gort_in(test_seconds(40)); atomic_load(&counter) < N; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "only %ld are back", atomic_load(&counter));
    CHECK_EQ(gort_chan_recv(small, &lists[0]), 1);
    check_list(lists[0], LIVE);
    CHECK_EQ(gort_chan_recv(large, lists), 1);
    check_list(lists[3], LIVE);
    return 0;
}

TEST(everything_that_is_reachable_stays, .procs = "1,2,4")
{
    begin();
    CHECK_EQ(gort_run(run_places, NULL), 0);
}

/* --- collections from everywhere ---------------------------------------------------------------------------------- */

static void collect_often(void *how)
{
    struct node *list = make_list();
    for (int i = 0; i < 8; i++) {
        if (how)
            gort_block_enter();
        gort_gc_collect();
        if (how)
            gort_block_leave();
        drop_garbage(50);
    }
    check_list(list, LIVE);
}

static int run_collectors(void *unused)
{
    gort_wg wg = {0};
    (void)unused;
    CHECK_EQ(gort_go(hog, NULL), 0);
    for (intptr_t i = 0; i < 6; i++)
        CHECK_EQ(gort_wg_go(&wg, collect_often, (void *)(i % 2)), 0);
    gort_wg_wait(&wg);
    atomic_store(&stop, true);
    return 0;
}

TEST(collections_take_turns, .procs = "1,2,4")
{
    begin();
    for (int i = 0; i < 2; i++) {
        atomic_store(&stop, false);
        struct node *list = make_list(); /* no run is on */
        gort_gc_collect();
        CHECK_EQ(gort_run(run_collectors, NULL), 0);
        drop_garbage(5000);
        gort_gc_collect();
        check_list(list, LIVE);
    }
}

/* --- the end of a run ------------------------------------------------------------------------------------------------ */

static void allocate(void *unused)
{
    (void)unused;
    for (;;)
        drop_garbage(10);
}

static int leave_allocating(void *unused)
{
    (void)unused;
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(allocate, NULL), 0);
    gort_sleep(5 * GORT_MS);
    return 9;
}

TEST(runs_end_while_all_allocate, .procs = "1,2,4")
{
    begin();
    for (long i = test_scaled(10, 3); i; i--) {
        CHECK_EQ(gort_run(leave_allocating, NULL), 9);
        struct node *list = make_list(); /* nobody has taken the collector's lock along */
        gort_gc_collect();
        check_list(list, LIVE);
    }
}

static atomic_long finalized;

static void finalize(void *object, void *data)
{
    (void)object;
    (void)data;
    gort_yield(); /* it is a goroutine */
    atomic_fetch_add(&finalized, 1);
}

void GC_register_finalizer(void *, void (*)(void *, void *), void *, void (**)(void *, void *), void **);

static __attribute__((noinline)) void make_finalizable(void)
{
    for (int i = 0; i < 100; i++)
        GC_register_finalizer(push(NULL, 3), finalize, NULL, NULL, NULL);
}

static int run_finalizers(void *unused)
{
    (void)unused;
    make_finalizable();
    gort_gc_collect();
    gort_gc_collect();
    return 0;
}

TEST(finalizers_run_in_the_goroutine_that_collects, .procs = "1,2")
{
    begin();
    CHECK_EQ(gort_run(run_finalizers, NULL), 0);
    CHECK_GE(atomic_load(&finalized), 90); /* a stale word on a stack may keep some */
}

#else
TEST(the_module_is_built)
{
    SKIP(
        "install libgc-dev and pkg-config and build again; not in builds with sanitizers, static or cross builds");
}
#endif
