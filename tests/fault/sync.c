/* SPDX-License-Identifier: MIT */
/*
 * sync.c - what calls.c leaves out of goroutines, locks, channels, contexts and pools: their timed and typed
 * forms.
 * Build: faults
 * Covers: src/sync/chan.c src/sync/select.c src/sync/rwmutex.c src/sync/cond.c src/sync/sem.c src/sync/pool.c
 * Covers: src/sync/ctx.c src/time/sleep.c src/sched/core/self.c
 *
 * trial.h tells what must hold. Here a call that was refused is made again at once (AGAIN), and everything is
 * as if it had not been made before.
 */
#include "trial.h"

#include <stdatomic.h>
#include <string.h>

/* --- goroutines ------------------------------------------------------------------------------- */

struct typed {
    gort_wg gate, all;
    atomic_long sum;
};

static void add_up(struct typed *t, int a, long b, unsigned c, const char *d, bool e)
{
    gort_wg_wait(&t->gate);
    atomic_fetch_add(&t->sum, a + b + c + *d + e);
    gort_wg_done(&t->all);
}

static int start_typed(struct typed *t)
{
    return GORT_GO(add_up, t, -1, 20L, 3u, "a", true);
}

FAULTS(go_typed)
{
    enum { N = 40 };
    struct typed t = {0};
    int err = 0;
    gort_wg_add(&t.gate, 1);
    gort_wg_add(&t.all, N);
    for (int i = 0; i < N; i++)
        CHECK_EQ(AGAIN(err, start_typed(&t)), 0);
    gort_wg_done(&t.gate);
    CHECK_EQ(gort_wg_wait(&t.all), 0);
    CHECK_EQ(atomic_load(&t.sum), N * (-1 + 20 + 3 + 'a' + 1));
    return err;
}

TEST(a_run_with, .procs = "1,2", .native = TRIALS_FORK)
{
    static const gort_config config = {.signal = SIGUSR2, .stack_size = 1 << 20, .max_threads = 100};
    trial.config = &config;
    try_all("a_run_with", go_typed, 60, true);
}

struct soul {
    gort_wg wg;
    uint64_t id;
    int err;
    bool handled;
};

static void make_zombie(void *arg)
{
    struct soul *s = arg;
    CHECK_STR(gort_name(), "born anew");
    s->handled = true;
    gort_wg_done(&s->wg);
}

static void live(void *arg)
{
    struct soul *s = arg;
    CHECK_STR(gort_name(), "a name");
    gort_set_name("born anew");
    s->id = gort_id();
    CHECK_EQ(AGAIN(s->err, gort_on_exit(make_zombie, s)), 0);
    gort_lock_thread();
    gort_lock_thread();
    CHECK_EQ(AGAIN(s->err, gort_sleep_until(gort_in(GORT_MS))), 0);
    gort_unlock_thread();
    gort_unlock_thread();
    gort_exit();
}

FAULTS_UP_TO(20, a_life)
{
    uint64_t before = gort_id();
    int err = 0;
    for (int i = 0; i < 3; i++) {
        struct soul s = {0};
        gort_wg_add(&s.wg, 1);
        CHECK_EQ(AGAIN(err, gort_go_with(&(gort_attr){.name = "a name"}, live, &s)), 0);
        CHECK_EQ(gort_wg_wait(&s.wg), 0);
        CHECK(s.handled);
        CHECK_NE(s.id, before);
        before = s.id;
        err = both(err, s.err);
    }
    CHECK_EQ(gort_id(), 1);
    return err;
}

static void be_named_late(void *arg)
{
    CHECK_STR(gort_name(), "");
    gort_set_name("late");
    if (!*gort_name()) /* without memory for a name it has none, and that is all */
        gort_set_name("late");
    CHECK_STR(gort_name(), "late");
    gort_wg_done(arg);
}

FAULTS_UP_TO(20, a_name)
{
    int err = 0;
    gort_wg wg = {0};
    for (int i = 0; i < 3; i++) {
        gort_wg_add(&wg, 1);
        CHECK_EQ(AGAIN(err, gort_go(be_named_late, &wg)), 0);
    }
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_STR(gort_name(), "main");
    return err;
}

/* --- the world -------------------------------------------------------------------------------- */

struct search {
    const void *what;
    bool found;
};

static void look_into(const void *from, const void *to, void *arg)
{
    struct search *s = arg;
    s->found |= (const char *)from <= (const char *)s->what && (const char *)s->what < (const char *)to;
}

struct parked {
    gort_wg here, gate;
    const void *local;
};

static void park_with_local(void *arg)
{
    struct parked *p = arg;
    int local = 1;
    p->local = &local;
    gort_wg_done(&p->here);
    gort_wg_wait(&p->gate);
    CHECK(p->local == &local);
}

FAULTS_UP_TO(8, world_roots)
{
    struct parked p = {0};
    gort_wg wg = {0};
    gort_wg_add(&p.here, 1);
    gort_wg_add(&p.gate, 1);
    int err = surely_go(&wg, park_with_local, &p);
    CHECK_EQ(gort_wg_wait(&p.here), 0);
    struct search s = {p.local, false};
    CHECK_EQ(gort_world_roots(look_into, &s), -EPERM);
    CHECK_EQ(AGAIN(err, gort_world_stop()), 0);
    int got = gort_world_roots(look_into, &s);
    CHECK_EQ(gort_world_start(), 0);
    CHECK_EQ(got, 0);
    CHECK(s.found);
    gort_wg_done(&p.gate);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    return err;
}

/* --- locks ------------------------------------------------------------------------------------ */

enum { MEMBERS = 4, ROUNDS = 10 };

static struct {
    gort_barrier barrier;
    gort_mutex mu;
    gort_cond cond;
    int waiting, passed;
    bool open;
    atomic_int last, err;
} meeting;

static void meet(void *unused)
{
    (void)unused;
    int err = 0;
    for (int i = 0; i < ROUNDS; i++) {
        long got = i % 2 ? gort_barrier_wait(&meeting.barrier)
                         : AGAIN(err, gort_barrier_wait_until(&meeting.barrier, gort_in(LONG)));
        CHECK(got == 0 || got == 1);
        atomic_fetch_add(&meeting.last, (int)got);
    }
    if (err)
        atomic_store(&meeting.err, err);
}

FAULTS(barriers)
{
    gort_wg wg = {0};
    int err = 0;
    memset(&meeting, 0, sizeof meeting);
    gort_barrier_init(&meeting.barrier, MEMBERS);
    CHECK_TIMES_OUT(err, gort_barrier_wait_until(&meeting.barrier, gort_in(GORT_MS)));
    for (int i = 0; i < MEMBERS; i++) /* one that still counted as arrived would end a round too early */
        err = both(err, surely_go(&wg, meet, NULL));
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(atomic_load(&meeting.last), ROUNDS);
    return both(err, atomic_load(&meeting.err));
}

static void wait_for_all(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_mutex_lock(&meeting.mu), 0);
    meeting.waiting++;
    while (!meeting.open)
        CHECK_EQ(gort_cond_wait(&meeting.cond, &meeting.mu), 0);
    meeting.passed++;
    gort_mutex_unlock(&meeting.mu);
}

FAULTS(broadcasts)
{
    gort_wg wg = {0};
    int err = 0;
    memset(&meeting, 0, sizeof meeting);
    for (int i = 0; i < MEMBERS; i++)
        err = both(err, surely_go(&wg, wait_for_all, NULL));
    for (bool all = false; !all;) {
        while (!gort_mutex_trylock(&meeting.mu))
            gort_yield();
        CHECK(!gort_mutex_trylock(&meeting.mu));
        all = meeting.waiting == MEMBERS;
        meeting.open = all;
        gort_mutex_unlock(&meeting.mu);
        gort_yield();
    }
    gort_cond_broadcast(&meeting.cond);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    CHECK_EQ(meeting.passed, MEMBERS);
    return err;
}

static gort_rwmutex rw;

static void hold_a_while(void *result)
{
    int err = 0;
    CHECK_EQ(gort_rwmutex_lock(&rw), 0);
    CHECK_EQ(AGAIN(err, gort_sleep(GORT_MS)), 0);
    gort_rwmutex_unlock(&rw);
    *(int *)result = err;
}

FAULTS(timed_rwmutex)
{
    gort_wg wg = {0};
    int err = 0, slept = 0;
    CHECK(gort_rwmutex_tryrlock(&rw));
    CHECK(!gort_rwmutex_trylock(&rw));
    CHECK_TIMES_OUT(err, gort_rwmutex_lock_until(&rw, gort_in(GORT_MS)));
    CHECK(gort_rwmutex_tryrlock(&rw)); /* no writer waits any more */
    gort_rwmutex_runlock(&rw);
    gort_rwmutex_runlock(&rw);
    CHECK(gort_rwmutex_trylock(&rw));
    CHECK(!gort_rwmutex_tryrlock(&rw));
    CHECK_TIMES_OUT(err, gort_rwmutex_rlock_until(&rw, gort_in(GORT_MS)));
    gort_rwmutex_unlock(&rw);
    err = both(err, surely_go(&wg, hold_a_while, &slept));
    gort_yield();
    CHECK_EQ(AGAIN(err, gort_rwmutex_rlock_until(&rw, gort_in(LONG))), 0);
    gort_rwmutex_runlock(&rw);
    CHECK_EQ(AGAIN(err, gort_rwmutex_lock_until(&rw, gort_in(LONG))), 0);
    gort_rwmutex_unlock(&rw);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    return both(err, slept);
}

/* --- channels --------------------------------------------------------------------------------- */

FAULTS(timed_channels)
{
    int err = 0, v = 7;
    gort_chan *ch = gort_chan_new(sizeof v, 2);
    if (!ch)
        return -ENOMEM;
    CHECK_EQ(gort_chan_cap(ch), 2);
    CHECK_EQ(gort_chan_elem(ch), sizeof v);
    CHECK_TIMES_OUT(err, gort_chan_recv_until(ch, &v, gort_in(GORT_MS)));
    CHECK_EQ(v, 7);
    for (v = 1; v <= 2; v++)
        CHECK_EQ(gort_chan_send_until(ch, &v, GORT_TRY), 0);
    CHECK_TIMES_OUT(err, gort_chan_send_until(ch, &v, gort_in(GORT_MS)));
    CHECK_EQ(gort_chan_len(ch), 2);
    for (int i = 1; i <= 2; i++) {
        CHECK_EQ(gort_chan_recv_until(ch, &v, gort_in(LONG)), 1);
        CHECK_EQ(v, i);
    }
    CHECK_EQ(gort_chan_len(ch), 0);
    gort_chan_unref(ch);
    return err;
}

/* 0: received; 1: sent; -errno. */
static int select_one(gort_chan *from, int *in, gort_chan *to, const int *out, int64_t deadline)
{
    int got = -EINVAL;
    GORT_SELECT(deadline)
    {
        GORT_ON_RECV(from, in) got = GORT_SELECTED == 1 ? 0 : -EPIPE;
        GORT_ON_SEND(to, out) got = GORT_SELECTED == 0 ? 1 : -EPIPE;
        GORT_ON_ERROR got = GORT_SELECTED;
    }
    return got;
}

static void receive_late(void *ch)
{
    int v = 0;
    gort_yield();
    CHECK_EQ(gort_chan_recv(ch, &v), 1);
    CHECK_EQ(v, 5);
}

FAULTS(typed_select)
{
    gort_wg wg = {0};
    gort_chan *from = gort_chan_new(sizeof(int), 1), *to = gort_chan_new(sizeof(int), 0);
    int err = from && to ? 0 : -ENOMEM, in = 0, out = 5, six = 6;
    if (!err) {
        CHECK_TIMES_OUT(err, select_one(from, &in, to, &out, gort_in(GORT_MS)));
        CHECK_EQ(in, 0);
        err = both(err, surely_go(&wg, receive_late, to));
        CHECK_EQ(AGAIN(err, select_one(from, &in, to, &out, gort_in(LONG))), 1);
        CHECK_EQ(gort_wg_wait(&wg), 0);
        CHECK_EQ(gort_chan_send(from, &six), 0);
        CHECK_EQ(AGAIN(err, select_one(from, &in, to, &out, GORT_FOREVER)), 0);
        CHECK_EQ(in, 6);
    }
    gort_chan_unref(from);
    gort_chan_unref(to);
    return err;
}

/* --- contexts, pools -------------------------------------------------------------------------- */

struct heir {
    gort_ctx *ctx;
    gort_wg here;
    int err;
};

static void sleep_under(void *arg)
{
    struct heir *h = arg;
    CHECK(gort_ctx_current() == h->ctx);
    gort_wg_done(&h->here);
    CHECK_EQ(AGAIN(h->err, gort_sleep_until(gort_in(LONG))), -ECANCELED);
}

FAULTS(cancelled_sleep)
{
    struct heir h = {gort_ctx_new(NULL, GORT_FOREVER), {0}, 0};
    gort_wg wg = {0};
    if (!h.ctx)
        return -ENOMEM;
    gort_ctx_unref(gort_ctx_ref(h.ctx));
    gort_wg_add(&h.here, 1);
    CHECK(gort_ctx_use(h.ctx) == NULL);
    int err = surely_go(&wg, sleep_under, &h);
    CHECK(gort_ctx_current() == h.ctx);
    CHECK(gort_ctx_use(NULL) == h.ctx);
    CHECK(gort_ctx_current() == NULL);
    CHECK_EQ(gort_wg_wait(&h.here), 0);
    CHECK_EQ(gort_ctx_err(h.ctx), 0);
    gort_ctx_cancel(h.ctx, -EIO);
    CHECK_EQ(gort_ctx_err(h.ctx), -EIO);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    gort_ctx_unref(h.ctx);
    return both(err, h.err);
}

struct jobs {
    gort_wg begun, gate;
    atomic_int done;
};

static void first_job(void *arg)
{
    struct jobs *j = arg;
    gort_wg_done(&j->begun);
    gort_wg_wait(&j->gate);
    atomic_fetch_add(&j->done, 1);
}

static void later_job(void *arg)
{
    atomic_fetch_add(&((struct jobs *)arg)->done, 1);
}

FAULTS(timed_pool)
{
    struct jobs j = {0};
    gort_pool pool;
    int err = 0;
    gort_wg_add(&j.begun, 1);
    gort_wg_add(&j.gate, 1);
    CHECK_EQ(AGAIN(err, gort_pool_init(&pool, 1, 1)), 0);
    CHECK_EQ(gort_pool_submit_until(&pool, first_job, &j, gort_in(LONG)), 0);
    CHECK_EQ(gort_wg_wait(&j.begun), 0);
    CHECK_EQ(gort_pool_submit_until(&pool, later_job, &j, GORT_TRY), 0);
    CHECK_EQ(gort_pool_submit_until(&pool, later_job, &j, GORT_TRY), -EAGAIN);
    CHECK_TIMES_OUT(err, gort_pool_submit_until(&pool, later_job, &j, gort_in(GORT_MS)));
    gort_wg_done(&j.gate);
    CHECK_EQ(AGAIN(err, gort_pool_submit_until(&pool, later_job, &j, gort_in(LONG))), 0);
    CHECK_EQ(gort_pool_close(&pool), 0);
    CHECK_EQ(atomic_load(&j.done), 3);
    return err;
}

NOTHING_LEAKS({"go_typed", go_typed, 50}, {"barriers", barriers, 15}, {"timed_rwmutex", timed_rwmutex, 10},
              {"timed_channels", timed_channels, 15}, {"typed_select", typed_select, 20},
              {"cancelled_sleep", cancelled_sleep, 100}, {"timed_pool", timed_pool, 15})
