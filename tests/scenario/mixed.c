/* SPDX-License-Identifier: MIT */
/*
 * mixed.c - plain threads in every call that waits, when the run ends; objects that outlive runs.
 * Covers: src/sched/wait/wait.c src/sched/life/entry.c src/sched/life/run.c src/sync/group.c src/sync/pool.c
 */
#include "waiting.h"

static struct {
    gort_chan *empty, *full;
    gort_wg wg;
    gort_sem sem;
    gort_cond cond;
    gort_mutex cond_mu, held;
    gort_rwmutex rw;
    gort_barrier barrier;
    gort_once once;
    gort_group group, limited;
    gort_pool pool, busy;
} obj;

enum kind {
    RECV,
    SEND,
    RECV_UNTIL,
    SEND_UNTIL,
    SELECT,
    SELECT_UNTIL,
    SELECT_NONE,
    MUTEX,
    MUTEX_UNTIL,
    RLOCK,
    WLOCK,
    RLOCK_UNTIL,
    WLOCK_UNTIL,
    WG,
    WG_UNTIL,
    SEM,
    SEM_UNTIL,
    COND,
    COND_UNTIL,
    BARRIER,
    ONCE,
    GROUP_WAIT,
    GROUP_GO,
    POOL_SUBMIT,
    POOL_CLOSE,
    KINDS
};
static const char *const names[] = {"recv",
                                    "send",
                                    "recv_until",
                                    "send_until",
                                    "select",
                                    "select_until",
                                    "select of nothing",
                                    "mutex_lock",
                                    "mutex_lock_until",
                                    "rlock",
                                    "wlock",
                                    "rlock_until",
                                    "wlock_until",
                                    "wg_wait",
                                    "wg_wait_until",
                                    "sem_acquire",
                                    "sem_acquire_until",
                                    "cond_wait",
                                    "cond_wait_until",
                                    "barrier_wait",
                                    "once_do",
                                    "group_wait",
                                    "group_go",
                                    "pool_submit",
                                    "pool_close"};

static int value;
static gort_chan *never;

static void block_here(void *unused)
{
    (void)unused;
    gort_chan_recv(never, NULL);
}

static int block_member(void *unused)
{
    block_here(unused);
    return 0;
}

static void run_once(void *unused)
{
    gort_once_do(&obj.once, block_here, unused);
}

static int wait_for(enum kind kind)
{
    gort_case cases[] = {{.ch = obj.empty, .op = GORT_RECV},
                         {.ch = obj.full, .send = &value, .op = GORT_SEND}};
    int err;
    switch (kind) {
    case RECV:
        return gort_chan_recv(obj.empty, NULL);
    case SEND:
        return gort_chan_send(obj.full, &value);
    case RECV_UNTIL:
        return gort_chan_recv_until(obj.empty, NULL, soon());
    case SEND_UNTIL:
        return gort_chan_send_until(obj.full, &value, soon());
    case SELECT:
        return gort_select(cases, 2, GORT_FOREVER);
    case SELECT_UNTIL:
        return gort_select(cases, 2, soon());
    case SELECT_NONE:
        return gort_select(NULL, 0, GORT_FOREVER);
    case MUTEX:
        return gort_mutex_lock(&obj.held);
    case MUTEX_UNTIL:
        return gort_mutex_lock_until(&obj.held, soon());
    case RLOCK:
        return gort_rwmutex_rlock(&obj.rw);
    case WLOCK:
        return gort_rwmutex_lock(&obj.rw);
    case RLOCK_UNTIL:
        return gort_rwmutex_rlock_until(&obj.rw, soon());
    case WLOCK_UNTIL:
        return gort_rwmutex_lock_until(&obj.rw, soon());
    case WG:
        return gort_wg_wait(&obj.wg);
    case WG_UNTIL:
        return gort_wg_wait_until(&obj.wg, soon());
    case SEM:
        return gort_sem_acquire(&obj.sem);
    case SEM_UNTIL:
        return gort_sem_acquire_until(&obj.sem, soon());
    case COND:
    case COND_UNTIL:
        CHECK_EQ(gort_mutex_lock(&obj.cond_mu), 0);
        err = kind == COND ? gort_cond_wait(&obj.cond, &obj.cond_mu)
                           : gort_cond_wait_until(&obj.cond, &obj.cond_mu, soon());
        CHECK(!gort_mutex_trylock(&obj.cond_mu));
        gort_mutex_unlock(&obj.cond_mu);
        return err;
    case BARRIER:
        return gort_barrier_wait(&obj.barrier);
    case ONCE:
        return gort_once_do(&obj.once, block_here, NULL);
    case GROUP_WAIT:
        return gort_group_wait(&obj.group);
    case GROUP_GO:
        return gort_group_go(&obj.limited, block_member, NULL);
    case POOL_SUBMIT:
        return gort_pool_submit(&obj.busy, block_here, NULL);
    default:
        return gort_pool_close(&obj.pool);
    }
}

static pthread_t threads[KINDS];
static atomic_int tids[KINDS];
static int results[KINDS];
static unsigned wanted; /* which kinds, as bits */

static void *thread_waits(void *arg)
{
    enum kind kind = (enum kind)(intptr_t)arg;
    CHECK_GE(gort_count(), 1); /* attached */
    atomic_store(&tids[kind], thread_id());
    results[kind] = wait_for(kind);
    return NULL;
}

static void make_everything_wait(void)
{
    gort_wg_add(&obj.wg, 1);
    CHECK_EQ(gort_chan_send(obj.full, &value), 0);
    CHECK_EQ(gort_mutex_lock(&obj.held), 0);
    CHECK_EQ(gort_rwmutex_lock(&obj.rw), 0);
    gort_barrier_init(&obj.barrier, 100);
    obj.once = (gort_once){0};
    CHECK_EQ(gort_go(run_once, NULL), 0);
    CHECK_EQ(gort_group_init(&obj.group, NULL), 0);
    CHECK_EQ(gort_group_go(&obj.group, block_member, NULL), 0);
    CHECK_EQ(gort_group_init(&obj.limited, NULL), 0);
    gort_group_limit(&obj.limited, 1);
    CHECK_EQ(gort_group_go(&obj.limited, block_member, NULL), 0);
    CHECK_EQ(gort_pool_init(&obj.pool, 1, 0), 0);
    CHECK_EQ(gort_pool_submit(&obj.pool, block_here, NULL), 0);
    CHECK_EQ(gort_pool_init(&obj.busy, 1, 0), 0);
    CHECK_EQ(gort_pool_submit(&obj.busy, block_here, NULL), 0);
    await_waiting("chan receive", 5);
}

static int leave_threads_waiting(void *unused)
{
    (void)unused;
    make_everything_wait();
    for (intptr_t k = 0; k < KINDS; k++)
        if (wanted >> k & 1)
            CHECK_EQ(pthread_create(&threads[k], NULL, thread_waits, (void *)k), 0);
    for (int k = 0; k < KINDS; k++)
        if (wanted >> k & 1)
            await_thread(&tids[k]);
    return 4;
}

/* Outside of runs: nobody is left in a queue, and everything works. */
static void check_and_reset(void)
{
    int v;
    CHECK_EQ(gort_chan_send_until(obj.empty, &value, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_chan_len(obj.full), 1);
    CHECK_EQ(gort_chan_recv_until(obj.full, &v, GORT_TRY), 1);
    CHECK_EQ(gort_chan_recv_until(obj.full, &v, GORT_TRY), -EAGAIN);
    gort_sem_release(&obj.sem);
    CHECK_EQ(gort_sem_acquire_until(&obj.sem, GORT_TRY), 0);
    gort_mutex_unlock(&obj.held);
    CHECK(gort_mutex_trylock(&obj.held));
    gort_mutex_unlock(&obj.held);
    gort_rwmutex_unlock(&obj.rw);
    CHECK(gort_rwmutex_trylock(&obj.rw));
    gort_rwmutex_unlock(&obj.rw);
    gort_wg_done(&obj.wg);
    CHECK_EQ(gort_wg_wait(&obj.wg), 0);
    gort_cond_broadcast(&obj.cond);
    CHECK(gort_mutex_trylock(&obj.cond_mu));
    gort_mutex_unlock(&obj.cond_mu);
}

static void end_with(unsigned kinds)
{
    wanted = kinds;
    for (int k = 0; k < KINDS; k++) {
        atomic_store(&tids[k], 0);
        results[k] = 99;
    }
    CHECK_EQ(gort_run(leave_threads_waiting, NULL), 4);
    for (int k = 0; k < KINDS; k++)
        if (kinds >> k & 1) {
            pthread_join(threads[k], NULL);
            CHECK_MSG(results[k] == -ECANCELED, "%s returned %d when the run ended", names[k], results[k]);
        }
    check_and_reset();
}

static void make_objects(void)
{
    never = gort_chan_new(0, 0);
    obj.empty = gort_chan_new(sizeof(int), 0);
    obj.full = gort_chan_new(sizeof(int), 1);
}

#define SYNC_KINDS ((1u << GROUP_WAIT) - 1)

TEST(threads_that_wait_are_sent_away_in_fifty_runs, .procs = "1,2,4,64")
{
    make_objects();
    for (int i = 0; i < 50; i++)
        end_with(SYNC_KINDS);
}

TEST(threads_in_group_wait, .procs = "1,2")
{
    make_objects();
    for (int i = 0; i < 10; i++)
        end_with(1u << GROUP_WAIT);
}

TEST(threads_in_group_go, .procs = "1,2")
{
    make_objects();
    for (int i = 0; i < 10; i++)
        end_with(1u << GROUP_GO);
}

TEST(threads_in_pool_submit, .procs = "1,2")
{
    make_objects();
    for (int i = 0; i < 10; i++)
        end_with(1u << POOL_SUBMIT);
}

TEST(threads_in_pool_close, .procs = "1,2")
{
    make_objects();
    for (int i = 0; i < 10; i++)
        end_with(1u << POOL_CLOSE);
}

/* --- a thread that lives through many runs ---------------------------------------------------------- */

static gort_chan *questions, *answers;
static atomic_long rounds;
static pthread_barrier_t in_step;

static void *long_lived(void *unused)
{
    for (;;) {
        pthread_barrier_wait(&in_step); /* a run is on */
        if (atomic_load(&rounds) < 0)
            return unused;
        for (int v; gort_chan_recv_until(questions, &v, soon()) == 1;) {
            v = -v;
            CHECK_EQ(gort_chan_send(answers, &v), 0);
            if (v == -100)
                break;
        }
        pthread_barrier_wait(&in_step);
    }
}

static int ask(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&in_step);
    for (int i = 1; i <= 100; i++) {
        int v = 0;
        CHECK_EQ(gort_chan_send(questions, &i), 0);
        CHECK_EQ(gort_chan_recv(answers, &v), 1);
        CHECK_EQ(v, -i);
    }
    return 0;
}

TEST(a_thread_serves_run_after_run, .procs = "1,2,4,64")
{
    pthread_t thread;
    questions = gort_chan_new(sizeof(int), 0);
    answers = gort_chan_new(sizeof(int), 0);
    CHECK_EQ(pthread_barrier_init(&in_step, NULL, 2), 0);
    CHECK_EQ(pthread_create(&thread, NULL, long_lived, NULL), 0);
    for (int i = 0; i < 30; i++) {
        CHECK_EQ(gort_run(ask, NULL), 0);
        pthread_barrier_wait(&in_step);
    }
    atomic_store(&rounds, -1);
    pthread_barrier_wait(&in_step);
    pthread_join(thread, NULL);
    gort_chan_unref(questions);
    gort_chan_unref(answers);
}
