/* SPDX-License-Identifier: MIT */
/*
 * soak.c - everything at once, for as long as one likes, while the kernel refuses at random; nothing may get
 * lost.
 * Build: faults
 * Covers: src/sched/core/spawn.c src/sched/threads/block.c src/sched/life/world.c src/sched/threads/p.c src/sync/chan.c src/sync/select.c
 * Covers: src/sync/ctx.c src/sync/group.c src/time/timer.c src/io/fd.c src/io/buf.c src/io/process.c
 *
 * Each kind of work is a loop of units. A unit counts itself as begun, and as done (everything it started has
 * ended and all values add up) or refused (a fault hit it; it has undone what it began). A unit that is
 * neither is lost: then a count stands still, which the watch, a plain thread, finds out, or the sums at the
 * end are wrong. Faults come in waves; in the last part there are none, and nothing may be refused that
 * begins then.
 *
 * SOAK_SECONDS says how long (10), SOAK_EVERY how often a line of progress is printed (2 seconds),
 * SOAK_FAULTS=0 leaves the faults out, SOAK_ONLY="tcp,hogs" runs just these kinds. `make soak` runs this for
 * an hour.
 */
#include <gort.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "fault.h"
#include "test.h"

#define STALL 60 /* seconds in which every kind of work must get a unit done, times TEST_TIMEOUT_SCALE */

/* One goroutine of one kind. A unit returns 0 or the error of what was refused. */
typedef int unit_fn(uint64_t *random);
struct work {
    const char *name;
    unit_fn *unit;
    int loops;
    int64_t pause; /* ns between units */
    atomic_long begun, done, refused, refused_in_peace;
};

static struct {
    atomic_bool over, peace; /* no new units; no faults from now on */
    int64_t start, seconds;
    gort_wg loops;
    char addr[64]; /* of the echo server */
    int listener;
    atomic_long bytes, stops, procs, held_still;
    uint64_t seed;
} soak;

static int below(uint64_t *random, int n)
{
    return (int)(test_random(random) % (uint64_t)n);
}

/* --- the kinds of work ------------------------------------------------------------------------ */

struct family {
    gort_wg wg;
    atomic_long n;
};

static void child(void *arg)
{
    struct family *f = arg;
    gort_yield();
    atomic_fetch_add(&f->n, 1);
}

static int unit_spawn(uint64_t *random)
{
    struct family f = {0};
    long started = 0;
    int err = 0;
    for (int i = below(random, 300); i >= 0 && !err; i--) {
        err = gort_wg_go(&f.wg, child, &f);
        started += err == 0;
    }
    gort_wg_wait(&f.wg);
    CHECK_EQ(atomic_load(&f.n), started);
    return err;
}

struct line {
    gort_chan *ch[3];
    gort_wg wg;
    int n;
    atomic_long sum;
};

static void produce(void *arg)
{
    struct line *l = arg;
    for (int i = 1; i <= l->n; i++)
        CHECK_EQ(gort_chan_send(l->ch[i % 3], &i), 0);
}

static void consume(void *arg)
{
    struct line *l = arg;
    int v;
    gort_case cases[3];
    for (int i = 0; i < 3; i++)
        cases[i] = (gort_case){.ch = l->ch[i], .recv = &v, .op = GORT_RECV};
    for (int open = 3; open;) {
        int got = gort_select(cases, 3, gort_in(GORT_SEC));
        if (got >= 0 && cases[got].result == 0) {
            cases[got].ch = NULL; /* closed */
            open--;
        } else if (got >= 0) {
            atomic_fetch_add(&l->sum, v);
        } else {
            CHECK(got == -ETIMEDOUT || got == -ENOMEM);
        }
    }
}

static int unit_channels(uint64_t *random)
{
    struct line l = {.n = 100 + below(random, 500)};
    long makers = 0, takers = 0;
    gort_wg making = {0};
    int err = 0;
    for (int i = 0; i < 3; i++) {
        l.ch[i] = gort_chan_new(
            sizeof(int),
            (size_t)(below(random, 8) ? i * below(random, 20) : 30000)); /* or a mapping of its own */
        err = l.ch[i] ? err : -ENOMEM;
    }
    for (int i = 0; i < 2 && !err; i++)
        takers += gort_wg_go(&l.wg, consume, &l) == 0;
    for (int i = 0; i < 2 && takers; i++)
        makers += gort_wg_go(&making, produce, &l) == 0;
    gort_wg_wait(&making);
    for (int i = 0; i < 3 && !err; i++)
        gort_chan_close(l.ch[i]);
    gort_wg_wait(&l.wg);
    CHECK_EQ(atomic_load(&l.sum), makers * l.n * (l.n + 1) / 2);
    for (int i = 0; i < 3; i++)
        gort_chan_unref(l.ch[i]);
    return err ? err : makers + takers < 4 ? -ENOMEM : 0;
}

static struct {
    gort_mutex mu;
    gort_rwmutex rw;
    gort_sem sem;
    long guarded, twin, inside;
} locks;

static int unit_locks(uint64_t *random)
{
    int err = gort_sem_acquire_until(&locks.sem, gort_in(100 * GORT_MS));
    if (!err)
        gort_sem_release(&locks.sem);
    gort_mutex_lock(&locks.mu);
    CHECK_EQ(locks.inside++, 0);
    if (below(random, 4) == 0)
        gort_yield();
    locks.inside--;
    gort_mutex_unlock(&locks.mu);
    if (below(random, 3) == 0) {
        gort_rwmutex_lock(&locks.rw);
        locks.guarded++;
        gort_yield();
        locks.twin++;
        gort_rwmutex_unlock(&locks.rw);
    } else {
        gort_rwmutex_rlock(&locks.rw);
        CHECK_EQ(locks.guarded, locks.twin);
        gort_yield();
        gort_rwmutex_runlock(&locks.rw);
    }
    return err == -ETIMEDOUT ? 0 : err;
}

static void ring(void *count)
{
    atomic_fetch_add((atomic_long *)count, 1);
}

/* A setting ends in a call, or in a stop or reset that says so. */
static int unit_timers(uint64_t *random)
{
    enum { N = 20 };
    atomic_long called = 0;
    gort_timer *t[N];
    long set = 0, prevented = 0;
    int err = 0;
    for (int i = 0; i < N; i++) {
        t[i] = gort_timer_new(below(random, 3000000), 0, ring, &called);
        set += t[i] != NULL;
        err = t[i] ? err : -ENOMEM;
    }
    int slept = gort_sleep(below(random, 2000000));
    for (int i = 0; i < N; i++)
        if (t[i] && below(random, 2)) {
            prevented += gort_timer_reset(t[i], below(random, 2000000), 0);
            set++;
        }
    for (int i = 0; i < N; i++)
        if (t[i]) {
            prevented += gort_timer_stop(t[i]);
            CHECK_EQ(gort_timer_stop_wait(t[i]), 0);
            gort_timer_free(t[i]);
        }
    CHECK_EQ(atomic_load(&called) + prevented, set);
    return err ? err : slept;
}

static int under_context(void *unused)
{
    (void)unused;
    int err = gort_sleep(1000 * GORT_SEC);
    CHECK(err == -ECANCELED || err == -ENOMEM);
    return err;
}

static int unit_contexts(uint64_t *random)
{
    gort_group g;
    int err = gort_group_init(&g, NULL), n = 1 + below(random, 20);
    if (err)
        return err;
    for (int i = 0; i < n && !err; i++)
        err = gort_group_go(&g, under_context, NULL);
    int slept = gort_sleep(below(random, 1000000));
    gort_ctx_cancel(gort_group_ctx(&g), 0);
    int got = gort_group_wait(&g);
    return err && err != -ECANCELED ? err : got == -ENOMEM ? got : slept;
}

static intptr_t nap(void *us)
{
    usleep((unsigned)(intptr_t)us);
    return 1;
}

static int unit_blocking(uint64_t *random)
{
    intptr_t us = below(random, 3000);
    switch (below(random, 3)) {
    case 0:
        CHECK_EQ(gort_block(nap, (void *)us), 1);
        break;
    case 1:
        gort_block_enter();
        nap((void *)us);
        gort_block_leave();
        break;
    default:
        nap((void *)(us * 10)); /* unannounced */
    }
    return 0;
}

/* Takes its thread with it: there must be a new one each time. */
static void bound(void *arg)
{
    struct family *f = arg;
    gort_lock_thread();
    gort_yield();
    atomic_fetch_add(&f->n, 1);
}

static int unit_threads(uint64_t *random)
{
    struct family f = {0};
    long started = 0;
    int err = 0;
    for (int i = below(random, 4); i >= 0 && !err; i--) {
        err = gort_wg_go(&f.wg, bound, &f);
        started += err == 0;
    }
    gort_wg_wait(&f.wg);
    CHECK_EQ(atomic_load(&f.n), started);
    return err;
}

static atomic_long turns; /* of those who compute: stands still while the world does */

static int unit_hogs(uint64_t *random)
{
    int64_t until = gort_now() + (5 + below(random, 20)) * GORT_MS;
    while (gort_now() < until)
        for (int i = 0; i < 1000; i++)
            atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
    return 0;
}

static int unit_world(uint64_t *random)
{
    int err = gort_world_stop();
    CHECK_EQ(err, 0);
    long before = atomic_load(&turns);
    int64_t until = gort_now() + below(random, 500000);
    while (gort_now() < until)
        ;
    CHECK_EQ(atomic_load(&turns), before);
    CHECK_EQ(gort_world_start(), 0);
    atomic_fetch_add(&soak.stops, 1);
    return 0;
}

static int unit_maxprocs(uint64_t *random)
{
    int n = 1 + below(random, 8);
    gort_maxprocs(n);
    atomic_fetch_add(&soak.procs, 1);
    return 0; /* no memory: it stays as it was, with a warning */
}

static void serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buf[4096];
    ssize_t n;
    while ((n = gort_read(fd, buf, sizeof buf)) > 0 && gort_write_all(fd, buf, (size_t)n) == n)
        ;
    gort_close(fd);
}

static void accept_all(void *unused)
{
    (void)unused;
    for (;;) {
        int fd = gort_accept(soak.listener);
        if (fd == -EBADF)
            return;
        if (fd >= 0 && gort_go(serve, (void *)(intptr_t)fd))
            gort_close(fd);
        if (fd < 0 && gort_sleep(GORT_MS))
            gort_yield();
    }
}

static int unit_tcp(uint64_t *random)
{
    char out[4096], in[4096];
    int fd = gort_dial("tcp", soak.addr);
    if (fd < 0)
        return fd;
    ssize_t n = 0;
    for (int i = below(random, 10); i >= 0 && n >= 0; i--) {
        size_t len = (size_t)(1 + below(random, sizeof out));
        memset(out, below(random, 256), len);
        n = gort_write_all(fd, out, len);
        if (n >= 0)
            n = gort_read_full(fd, in, len);
        if (n >= 0 && n < (ssize_t)len)
            n = -EPIPE; /* the server was refused something */
        if (n >= 0) {
            CHECK_EQ(memcmp(in, out, len), 0);
            atomic_fetch_add(&soak.bytes, (long)len);
        }
    }
    gort_close(fd);
    return n < 0 ? (int)n : 0;
}

struct pipe_end {
    int fd, n, err;
};

static void write_lines(void *arg)
{
    struct pipe_end *p = arg;
    char room[512], text[32];
    gort_writer w;
    gort_writer_init(&w, p->fd, room, sizeof room);
    for (int i = 0; i < p->n && !p->err; i++) {
        snprintf(text, sizeof text, "line %d\n", i);
        p->err = gort_writer_text(&w, text);
    }
    int err = gort_writer_flush(&w);
    p->err = p->err ? p->err : err;
    gort_close(p->fd);
}

static int unit_pipes(uint64_t *random)
{
    int ends[2], err = gort_pipe(ends), n = 0, got;
    if (err)
        return err;
    gort_wg wg = {0};
    struct pipe_end p = {ends[1], 1 + below(random, 2000), 0};
    char room[256], *text;
    size_t len;
    gort_reader r;
    gort_reader_init(&r, ends[0], room, sizeof room);
    err = gort_wg_go(&wg, write_lines, &p);
    if (err)
        gort_close(ends[1]);
    while (!err && (got = gort_reader_line(&r, &text, &len)) != 0) {
        if (got < 0 || p.err) {
            err = got < 0 ? got : p.err;
            break;
        }
        CHECK_MSG(atoi(text + 5) == n || p.err, "line %d is '%s'", n, text);
        n++;
    }
    gort_close(ends[0]);
    gort_wg_wait(&wg);
    if (!err && !p.err)
        CHECK_EQ(n, p.n);
    return err ? err : p.err;
}

static int unit_children(uint64_t *random)
{
    char word[] = "true", *argv[] = {word, NULL};
    gort_process p;
    (void)random;
    int err = gort_spawn(&p, &(gort_command){.file = word, .argv = argv, .out = GORT_NULL});
    if (err)
        return err;
    while ((err = gort_wait(&p, NULL)) < 0) /* refused: it can be waited for again */
        gort_yield();
    CHECK_EQ(err, 0);
    return 0;
}

/* --- coroutines of the program's: goroutines that wait on stacks that are not gort's --- */

struct routine {
    ucontext_t caller, self;
    gort_chan *ch;
    char *stack;
    int n, kind, slept;
};

static void routine_main(unsigned high, unsigned low)
{
    struct routine *r = (struct routine *)((uintptr_t)high << 32 | low);
    char frame[4096];
    memset(frame, r->n, sizeof frame);
    for (int i = 1, v; i <= r->n; i++) {
        int slept = r->kind == 1 ? gort_sleep(100 * GORT_US * i) : 0;
        r->slept = slept ? slept : r->slept;
        if (r->kind == 2)
            CHECK_EQ(gort_block(nap, (void *)(intptr_t)100), 1);
        v = i;
        while (gort_chan_send_until(r->ch, &v, gort_in(GORT_SEC)) != 0)
            gort_yield(); /* refused, or late */
        gort_mutex_lock(&locks.mu);
        CHECK_EQ(locks.inside++, 0);
        locks.inside--;
        gort_mutex_unlock(&locks.mu);
    }
    for (size_t i = 0; i < sizeof frame; i++)
        CHECK_EQ(frame[i], (char)r->n);
    setcontext(&r->caller);
}

static void run_routine(void *arg)
{
    struct routine *r = arg;
    CHECK_EQ(swapcontext(&r->caller, &r->self), 0);
}

static __attribute__((noinline)) void make_routine(struct routine *r, size_t size)
{
    CHECK(getcontext(&r->self) == 0);
    r->self.uc_stack.ss_sp = r->stack;
    r->self.uc_stack.ss_size = size;
    makecontext(&r->self, (void (*)(void))routine_main, 2, (unsigned)((uintptr_t)r >> 32),
                (unsigned)(uintptr_t)r);
}

static int unit_coroutines(uint64_t *random)
{
    enum { N = 8, SIZE = 256 << 10 };
    struct routine *r = calloc(N, sizeof *r);
    gort_chan *ch = gort_chan_new(sizeof(int), 4);
    gort_wg wg = {0};
    long want = 0, sum = 0, values = 0;
    int err = r && ch ? 0 : -ENOMEM, got = 0, v;
    for (int i = 0; i < N && !err; i++) {
        r[i].stack = malloc(SIZE);
        r[i].n = 1 + below(random, 20);
        r[i].kind = below(random, 3);
        r[i].ch = ch;
        err = r[i].stack ? 0 : -ENOMEM;
        if (err)
            break;
        make_routine(&r[i], SIZE);
        err = gort_wg_go(&wg, run_routine, &r[i]);
        if (!err) {
            values += r[i].n;
            want += (long)r[i].n * (r[i].n + 1) / 2;
        }
    }
    while (values && (got = gort_chan_recv_until(ch, &v, gort_in(GORT_SEC))) != 0)
        if (got == 1) {
            sum += v;
            values--;
        }
    gort_wg_wait(&wg);
    CHECK_EQ(sum, want);
    for (int i = 0; i < N && r; i++) {
        err = err ? err : r[i].slept;
        free(r[i].stack);
    }
    free(r);
    gort_chan_unref(ch);
    return err;
}

/* --- masks: goroutines that block all signals, as ported thread code does; the mask is theirs alone --- */

static bool is_blocked(int signo)
{
    sigset_t now;
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
    return sigismember(&now, signo);
}

static void masked(void *arg)
{
    struct family *f = arg;
    sigset_t all;
    sigfillset(&all);
    CHECK(!is_blocked(SIGUSR2)); /* whoever ran here before has left nothing */
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, &all, NULL), 0);
    for (int i = 0; i < 3; i++) {
        if (gort_sleep(50 * GORT_US))
            gort_yield(); /* refused */
        CHECK(is_blocked(SIGUSR2));
    }
    atomic_fetch_add(&f->n, 1); /* and ends with it */
}

static int unit_masks(uint64_t *random)
{
    struct family f = {0};
    long started = 0;
    int err = 0;
    for (int i = below(random, 10); i >= 0 && !err; i--) {
        err = gort_wg_go(&f.wg, masked, &f);
        started += err == 0;
    }
    gort_wg_wait(&f.wg);
    CHECK_EQ(atomic_load(&f.n), started);
    CHECK(!is_blocked(SIGUSR2));
    return err;
}

static struct work works[] = {
    {.name = "spawn", .unit = unit_spawn, .loops = 2},
    {.name = "channels", .unit = unit_channels, .loops = 2},
    {.name = "locks", .unit = unit_locks, .loops = 6, .pause = 20 * GORT_US},
    {.name = "timers", .unit = unit_timers, .loops = 2},
    {.name = "contexts", .unit = unit_contexts, .loops = 2, .pause = GORT_MS},
    {.name = "blocking", .unit = unit_blocking, .loops = 3, .pause = GORT_MS},
    {.name = "threads", .unit = unit_threads, .loops = 1, .pause = 5 * GORT_MS},
    {.name = "hogs", .unit = unit_hogs, .loops = 1, .pause = 50 * GORT_MS},
    {.name = "world", .unit = unit_world, .loops = 1, .pause = 100 * GORT_MS},
    {.name = "maxprocs", .unit = unit_maxprocs, .loops = 1, .pause = 70 * GORT_MS},
    {.name = "tcp", .unit = unit_tcp, .loops = 4, .pause = GORT_MS},
    {.name = "pipes", .unit = unit_pipes, .loops = 2, .pause = GORT_MS},
    {.name = "coroutines", .unit = unit_coroutines, .loops = 2, .pause = GORT_MS},
    {.name = "masks", .unit = unit_masks, .loops = 2, .pause = GORT_MS},
    {.name = "children", .unit = unit_children, .loops = 1, .pause = 100 * GORT_MS},
};
#define WORKS (sizeof works / sizeof *works)

/* --- keeping it going ------------------------------------------------------------------------- */

struct loop {
    struct work *work;
    uint64_t random;
};

static void loop(void *arg)
{
    struct loop l = *(struct loop *)arg;
    while (!atomic_load(&soak.over)) {
        bool peace = atomic_load(&soak.peace);
        atomic_fetch_add(&l.work->begun, 1);
        int err = l.work->unit(&l.random);
        atomic_fetch_add(err ? &l.work->refused : &l.work->done, 1);
        if (err && peace) {
            atomic_fetch_add(&l.work->refused_in_peace, 1);
            test_log("%s: refused with %d although nothing fails any more", l.work->name, err);
        }
        if (l.work->pause && gort_sleep(l.work->pause))
            gort_yield();
    }
    gort_wg_done(&soak.loops);
}

/* Faults in waves of random strength and kinds; the last part of the time is quiet. */
static void make_waves(uint64_t *random)
{
    const uint32_t all = (1u << FAULT_COUNT) - 1;
    int64_t end = soak.start + soak.seconds * GORT_SEC, quiet = end - soak.seconds * GORT_SEC / 5;
    bool faults = !getenv("SOAK_FAULTS") || atoi(getenv("SOAK_FAULTS"));
    while (faults && gort_now() < quiet) {
        uint32_t kinds = below(random, 3) ? (uint32_t)test_random(random) & all : all;
        fault_random(kinds, (uint32_t)(10 + below(random, 200)), test_random(random));
        usleep((unsigned)(10000 + below(random, 200000)));
        fault_off();
        usleep((unsigned)(10000 + below(random, 100000)));
    }
    while (gort_now() < quiet)
        usleep(10000);
    /* What has begun under faults ends first. */
    usleep(1000);
    atomic_store(&soak.peace, true);
    while (gort_now() < end)
        usleep(10000);
}

static void *waves(void *unused)
{
    uint64_t random = soak.seed ^ 0x5eed;
    make_waves(&random);
    atomic_store(&soak.over, true);
    return unused;
}

static long all_faults(void)
{
    long n = 0;
    for (int i = 0; i < FAULT_COUNT; i++)
        n += fault_fired(i);
    return n;
}

static bool wanted(const char *name)
{
    const char *only = getenv("SOAK_ONLY"), *at = only ? strstr(only, name) : NULL;
    size_t n = strlen(name);
    return !only || (at && (at == only || at[-1] == ',') && (at[n] == ',' || !at[n]));
}

static void progress(int64_t second)
{
    char text[512];
    int n = snprintf(text, sizeof text, "%5ld s:", (long)second);
    for (size_t i = 0; i < WORKS; i++)
        if (works[i].begun)
            n += snprintf(text + n, sizeof text - (size_t)n, " %s %ld", works[i].name, works[i].done);
    snprintf(text + n, sizeof text - (size_t)n, " | %ld faults, %ld MiB, %d threads, %d fds", all_faults(),
             test_rss_kb() >> 10, test_thread_count(), test_fd_count());
    test_log("%s", text);
}

static long rss_early, rss_late; /* the most in the second quarter of the time, and in the last */

/* Everybody gets on; memory is watched; a line now and then. A plain thread, so that it sees a runtime that
 * stands still. */
static void *watch(void *unused)
{
    int64_t every = getenv("SOAK_EVERY") ? atoi(getenv("SOAK_EVERY")) : 2, spoken = 0;
    double scale = getenv("TEST_TIMEOUT_SCALE") ? atof(getenv("TEST_TIMEOUT_SCALE")) : 1;
    long last[WORKS] = {0};
    int64_t moved[WORKS];
    for (size_t i = 0; i < WORKS; i++)
        moved[i] = gort_now();
    for (;;) {
        usleep(100000);
        int64_t now = gort_now(), second = (now - soak.start) / GORT_SEC;
        if (gort_count() <= 1 && atomic_load(&soak.over))
            return unused;
        long rss = test_rss_kb();
        if (now - soak.start > soak.seconds * GORT_SEC / 4 * 3)
            rss_late = rss > rss_late ? rss : rss_late;
        else if (now - soak.start > soak.seconds * GORT_SEC / 4 &&
                 now - soak.start < soak.seconds * GORT_SEC / 2)
            rss_early = rss > rss_early ? rss : rss_early;
        if (second >= spoken + every) {
            spoken = second;
            progress(second);
        }
        for (size_t i = 0; i < WORKS; i++) {
            long ended = works[i].done + works[i].refused;
            if (ended != last[i] || !works[i].begun)
                moved[i] = now;
            last[i] = ended;
            if (now - moved[i] > (int64_t)(STALL * scale) * GORT_SEC) {
                fault_off();
                test_log("%s stands still: %ld begun, %ld done, %ld refused", works[i].name, works[i].begun,
                         works[i].done, works[i].refused);
                gort_dump(2);
                _exit(1);
            }
        }
    }
}

static void report(int fds, int fds_left)
{
    bool lost = false;
    test_log("%-10s %12s %12s %10s", "work", "begun", "done", "refused");
    for (size_t i = 0; i < WORKS; i++) {
        struct work *w = &works[i];
        if (!w->begun)
            continue;
        test_log("%-10s %12ld %12ld %10ld", w->name, w->begun, w->done, w->refused);
        lost |= w->begun != w->done + w->refused || w->refused_in_peace || !w->done;
    }
    for (int i = 0; i < FAULT_COUNT; i++)
        if (fault_fired(i))
            test_log("%-10s %9ld of %ld calls failed", fault_name(i), fault_fired(i), fault_calls(i));
    test_log("%ld bytes echoed, %ld stops of the world, %ld changes of maxprocs, %ld faults survived",
             soak.bytes, soak.stops, soak.procs, all_faults());
    test_log("memory: %ld MiB in the second quarter, %ld MiB in the last; fds: %d before, %d after",
             rss_early >> 10, rss_late >> 10, fds, fds_left);
    CHECK_EQ(fds_left, fds);
    CHECK(!lost);
    if (!test_under_sanitizer() && soak.seconds >= 10)
        CHECK_MSG(rss_late <= rss_early + rss_early / 4 + (32 << 10), "memory has grown");
    test_log("load held, nothing lost");
}

static int soak_main(void *unused)
{
    (void)unused;
    struct loop l = {.random = soak.seed};
    gort_sem_init(&locks.sem, 2);
    soak.listener = gort_listen("tcp", "127.0.0.1:0");
    CHECK_GE(soak.listener, 0);
    CHECK_GT(gort_local_addr(soak.listener, soak.addr, sizeof soak.addr), 0);
    CHECK_EQ(gort_go(accept_all, NULL), 0);
    for (size_t i = 0; i < WORKS; i++)
        for (int k = 0; wanted(works[i].name) && k < works[i].loops; k++) {
            l.work = &works[i];
            l.random++;
            gort_wg_add(&soak.loops, 1);
            CHECK_EQ(gort_go_copy(loop, &l, sizeof l), 0);
        }
    pthread_t t[2];
    CHECK_EQ(pthread_create(&t[0], NULL, watch, NULL), 0);
    CHECK_EQ(pthread_create(&t[1], NULL, waves, NULL), 0);
    gort_wg_wait(&soak.loops);
    gort_close(soak.listener);
    while (gort_count() > 1)
        gort_sleep(GORT_MS);
    pthread_join(t[0], NULL);
    pthread_join(t[1], NULL);
    return 0;
}

TEST(mixed_load, .procs = "4", .soak = true, .native = TEST_FORKS)
{
    const char *seconds = getenv("SOAK_SECONDS");
    soak.seconds = seconds ? atol(seconds) : 10;
    soak.seed = test_seed();
    soak.start = gort_now();
    int fds = test_fd_count();
    CHECK_EQ(gort_run(soak_main, NULL), 0);
    report(fds, test_fd_count());
}
