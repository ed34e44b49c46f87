/* SPDX-License-Identifier: MIT */
/*
 * sync.c - misuse of channels, locks, contexts and groups: one line that says what and who, the dump, abort.
 * Covers: src/sync/chan.c src/sync/select.c src/sync/mutex.c src/sync/rwmutex.c src/sync/cond.c src/sync/wg.c
 * Covers: src/sync/once.c src/sync/sem.c src/sync/ctx.c src/sync/group.c src/sync/pool.c src/sched/wait/wait.c
 */
#include "misuse.h"

static int value;
static gort_mutex mu;
static gort_rwmutex rw;

/* --- channels ---------------------------------------------------------------------------------------- */

MISUSE(send_to_null, "gort_chan_send: NULL channel")
{
    return gort_chan_send(NULL, &value);
}

MISUSE(recv_from_null, "gort_chan_recv: NULL channel")
{
    return gort_chan_recv(NULL, &value);
}

MISUSE(seventeen_cases, "GORT_SELECT: more than 16 cases")
{
#define FOUR                                                                                                 \
    GORT_ON_RECV(NULL, &value) {}                                                                            \
    GORT_ON_RECV(NULL, &value) {}                                                                            \
    GORT_ON_SEND(NULL, &value) {}                                                                            \
    GORT_ON_SEND(NULL, &value) {}
    GORT_SELECT(GORT_TRY){FOUR FOUR FOUR FOUR} GORT_SELECT(GORT_TRY)
    {
        FOUR FOUR FOUR FOUR GORT_ON_RECV(NULL, &value) {}
    }
    return 0;
}

MISUSE(try_send_to_null, "gort_chan_send: NULL channel")
{
    return gort_chan_send_until(NULL, &value, GORT_TRY);
}

MISUSE(try_recv_from_null, "gort_chan_recv: NULL channel")
{
    return gort_chan_recv_until(NULL, &value, GORT_TRY);
}

MISUSE(close_null, "gort_chan_close: NULL channel")
{
    return gort_chan_close(NULL);
}

MISUSE(select_without_op, "gort_select: case 1 has op 0")
{
    gort_case cases[] = {{.op = GORT_RECV}, {.op = 0}};
    return gort_select(cases, 2, GORT_TRY);
}

/* --- locks ------------------------------------------------------------------------------------------- */

MISUSE(unlock_of_unlocked, "gort_mutex_unlock: .*not locked")
{
    gort_mutex_unlock(&mu);
    return 0;
}

MISUSE(unlock_twice, "gort_mutex_unlock: .*not locked")
{
    gort_mutex_lock(&mu);
    gort_mutex_unlock(&mu);
    gort_mutex_unlock(&mu);
    return 0;
}

MISUSE(write_unlock_of_unlocked, "gort_rwmutex_unlock: no writer")
{
    gort_rwmutex_unlock(&rw);
    return 0;
}

MISUSE(read_unlock_of_unlocked, "gort_rwmutex_runlock: no reader")
{
    gort_rwmutex_runlock(&rw);
    return 0;
}

MISUSE(write_unlock_of_read_locked, "gort_rwmutex_unlock: no writer")
{
    gort_rwmutex_rlock(&rw);
    gort_rwmutex_unlock(&rw);
    return 0;
}

MISUSE(read_unlock_of_write_locked, "gort_rwmutex_runlock: no reader")
{
    gort_rwmutex_lock(&rw);
    gort_rwmutex_runlock(&rw);
    return 0;
}

MISUSE(write_unlock_twice, "gort_rwmutex_unlock: no writer")
{
    gort_rwmutex_lock(&rw);
    gort_rwmutex_unlock(&rw);
    gort_rwmutex_unlock(&rw);
    return 0;
}

MISUSE(read_unlock_once_too_often, "gort_rwmutex_runlock: no reader")
{
    gort_rwmutex_rlock(&rw);
    gort_rwmutex_rlock(&rw);
    gort_rwmutex_runlock(&rw);
    gort_rwmutex_runlock(&rw);
    gort_rwmutex_runlock(&rw);
    return 0;
}

MISUSE(wait_without_the_mutex, "gort_cond_wait: the mutex is not locked")
{
    gort_cond cond = {0};
    return gort_cond_wait(&cond, &mu);
}

/* --- the rest ---------------------------------------------------------------------------------------- */

MISUSE(count_below_zero, "gort_wg: .*below zero")
{
    gort_wg wg = {0};
    gort_wg_add(&wg, 1);
    gort_wg_done(&wg);
    gort_wg_done(&wg);
    return 0;
}

MISUSE(count_too_large, "gort_wg: .*too large")
{
    gort_wg wg = {0};
    gort_wg_add(&wg, INT32_MAX);
    gort_wg_add(&wg, 1);
    return 0;
}

MISUSE(wait_group_without_function, "gort_wg_go: NULL function")
{
    gort_wg wg = {0};
    return gort_wg_go(&wg, NULL, NULL);
}

MISUSE(once_without_function, "gort_once_do: NULL function")
{
    gort_once once = {0};
    return gort_once_do(&once, NULL, NULL);
}

MISUSE(too_many_permits, "gort_sem_release: more than 4294967295 permits")
{
    gort_sem sem = {.gort_priv_permits = UINT32_MAX - 1};
    gort_sem_release(&sem);
    gort_sem_release(&sem);
    return 0;
}

MISUSE(roots_for_nobody, "gort_world_roots: NULL function")
{
    return gort_world_roots(NULL, NULL);
}

MISUSE(negative_permits, "gort_sem_init: the number of permits must not be negative, but is -1")
{
    gort_sem sem;
    gort_sem_init(&sem, -1);
    return 0;
}

MISUSE(barrier_for_nobody, "gort_barrier_init: the number of goroutines must be at least 1, but is 0")
{
    gort_barrier barrier;
    gort_barrier_init(&barrier, 0);
    return 0;
}

MISUSE(barrier_without_init, "gort_barrier_wait: the barrier was not initialized by gort_barrier_init")
{
    gort_barrier barrier = {0};
    return gort_barrier_wait(&barrier);
}

MISUSE(cancel_null, "gort_ctx_cancel: NULL context")
{
    gort_ctx_cancel(NULL, 0);
    return 0;
}

static int succeed(void *unused)
{
    (void)unused;
    return 0;
}

MISUSE(group_without_init, "gort_group_go: the group was not initialized by gort_group_init")
{
    gort_group group = {0};
    return gort_group_go(&group, succeed, NULL);
}

MISUSE(group_without_function, "gort_group_go: NULL function")
{
    gort_group group;
    return gort_group_init(&group, NULL) || gort_group_go(&group, NULL, NULL);
}

MISUSE(pool_without_function, "gort_pool_submit: NULL function")
{
    gort_pool pool;
    return gort_pool_init(&pool, 1, 1) || gort_pool_submit(&pool, NULL, NULL);
}

/* --- waiting where nobody can wait --------------------------------------------------------------------- */

TEST(recv_outside_of_runs, .crash = "fatal: gort_chan_recv: the call would have to wait, but no run is on")
{
    gort_chan_recv(gort_chan_new(0, 0), NULL);
}

TEST(timed_recv_outside_of_runs,
     .crash = "fatal: gort_chan_recv: the call would have to wait, but no run is on")
{
    gort_chan_recv_until(gort_chan_new(0, 0), NULL, gort_in(GORT_MS));
}

TEST(select_outside_of_runs, .crash = "fatal: gort_select: the call would have to wait, but no run is on")
{
    gort_select(NULL, 0, GORT_FOREVER);
}

TEST(lock_outside_of_runs, .crash = "fatal: gort_mutex_lock: the call would have to wait, but no run is on")
{
    gort_mutex_lock(&mu);
    gort_mutex_lock(&mu);
}

TEST(acquire_outside_of_runs,
     .crash = "fatal: gort_sem_acquire: the call would have to wait, but no run is on")
{
    gort_sem sem = {0};
    gort_sem_acquire(&sem);
}

TEST(unlock_outside_of_runs, .crash = "fatal: gort_mutex_unlock: .*not locked")
{
    gort_mutex_unlock(&mu);
}

TEST(null_channel_outside_of_runs, .crash = "fatal: gort_chan_send: NULL channel")
{
    gort_chan_send(NULL, &value);
}

/* --- alone ------------------------------------------------------------------------------------------- */

TEST_GO(nothing_to_select_and_nobody_else,
        .crash = "fatal: all goroutines are asleep - deadlock!\nselect \\(no cases\\)")
{
    gort_select(NULL, 0, GORT_FOREVER);
}

TEST_GO(nobody_sends, .crash = "fatal: all goroutines are asleep - deadlock!\nchan receive")
{
    gort_chan_recv(gort_chan_new(0, 0), NULL);
}

TEST_GO(locked_twice, .crash = "fatal: all goroutines are asleep - deadlock!\nwaiting: mutex")
{
    gort_mutex_lock(&mu);
    gort_mutex_lock(&mu);
}

/* --- what only debug builds see ------------------------------------------------------------------------ */

#if GORT_CHECKS
MISUSE(
    a_duration_for_a_deadline,
    "gort_chan_recv: the deadline 5000000 lies more than a minute before the start of the run: is it a duration\\?")
{
    await_uptime();
    return gort_chan_recv_until(gort_chan_new(0, 0), NULL, 5 * GORT_MS);
}

MISUSE(a_duration_for_a_deadline_of_a_lock, "gort_mutex_lock: the deadline 0 lies more")
{
    await_uptime();
    gort_mutex_lock(&mu);
    return gort_mutex_lock_until(&mu, 0);
}

MISUSE(a_duration_for_a_deadline_of_a_select, "gort_select: the deadline 1000 lies more")
{
    await_uptime();
    return gort_select(NULL, 0, 1000);
}

MISUSE(minus_one_for_no_deadline, "gort_sem_acquire: the deadline -1 lies more")
{
    await_uptime();
    gort_sem sem = {0};
    return gort_sem_acquire_until(&sem, -1);
}
#endif

/* --- what was freed, as long as its memory is not used again -------------------------------------------- */

/* Others are free beside it, or none. */
static gort_chan *freed(size_t elem, int others)
{
    gort_chan *ch = gort_chan_new(elem, 1), *more[8];
    for (int i = 0; i < others; i++)
        more[i] = gort_chan_new(elem, 1);
    for (int i = 0; i < others; i++)
        gort_chan_unref(more[i]);
    gort_chan_unref(ch);
    return ch;
}

static uint64_t word;

FREED(send_to_a_freed_channel, "gort_chan_send: use of a freed channel")
{
    return gort_chan_send(freed(sizeof(int), 0), &value);
}

FREED(send_to_a_freed_channel_of_words, "gort_chan_send: use of a freed channel")
{
    return gort_chan_send(freed(sizeof word, 0), &word);
}

FREED(send_to_one_of_many_freed_channels, "gort_chan_send: use of a freed channel")
{
    return gort_chan_send_until(freed(sizeof word, 8), &word, GORT_TRY);
}

FREED(recv_from_a_freed_channel, "gort_chan_recv: use of a freed channel")
{
    return gort_chan_recv(freed(sizeof(int), 0), &value);
}

FREED(recv_from_a_freed_channel_of_words, "gort_chan_recv: use of a freed channel")
{
    return gort_chan_recv(freed(sizeof word, 0), &word);
}

FREED(recv_from_one_of_many_freed_channels, "gort_chan_recv: use of a freed channel")
{
    return gort_chan_recv_until(freed(sizeof word, 8), &word, GORT_TRY);
}

FREED(close_a_freed_channel, "gort_chan_close: use of a freed channel")
{
    return gort_chan_close(freed(sizeof word, 1));
}

FREED(refer_to_a_freed_channel, "gort_chan_ref: use of a freed channel")
{
    return gort_chan_ref(freed(sizeof word, 1)) != NULL;
}

FREED(free_a_channel_twice, "gort_chan_unref: use of a freed channel")
{
    gort_chan_unref(freed(sizeof word, 1));
    return 0;
}

FREED(length_of_a_freed_channel, "gort_chan_len: use of a freed channel")
{
    return (int)gort_chan_len(freed(sizeof word, 1));
}

FREED(select_on_a_freed_channel, "gort_select: use of a freed channel")
{
    gort_case c = {.ch = freed(sizeof word, 1), .recv = &word, .op = GORT_RECV};
    return gort_select(&c, 1, GORT_TRY);
}

static gort_ctx *freed_context(void)
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_ctx_unref(ctx);
    return ctx;
}

FREED(cancel_a_freed_context, "gort_ctx_cancel: use of a freed context")
{
    gort_ctx_cancel(freed_context(), 0);
    return 0;
}

FREED(free_a_context_twice, "gort_ctx_unref: use of a freed context")
{
    gort_ctx_unref(freed_context());
    return 0;
}

FREED(use_a_freed_context, "gort_ctx_use: use of a freed context")
{
    return gort_ctx_use(freed_context()) != NULL;
}

FREED(a_context_below_a_freed_one, "gort_ctx_new: use of a freed context")
{
    return gort_ctx_new(freed_context(), GORT_FOREVER) != NULL;
}

FREED(wait_under_a_freed_context, "gort_chan_recv: the context in use was freed")
{
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER);
    gort_chan *ch = gort_chan_new(0, 0);
    gort_ctx_use(ctx);
    gort_ctx_unref(ctx);
    return gort_chan_recv(ch, NULL);
}

MISUSE(wait_for_a_group_twice, "gort_group_wait: .*gort_group_wait has ended it")
{
    gort_group group;
    return gort_group_init(&group, NULL) || gort_group_wait(&group) || gort_group_wait(&group);
}
