/* SPDX-License-Identifier: MIT */
/*
 * clean.c - a program without a mistake that does what sanitizers find hard to follow.
 * Covers: src/mem/sanitize.h src/sched/core/san.h
 *
 * Stacks that are used deeply, left and used again; blocks that only a goroutine's stack knows, while it
 * waits and while the leak checker looks; pointers from one stack into another; goroutines that change their
 * thread; values handed over by every kind of synchronisation; computing that is preempted, blocking calls on
 * the thread's own stack; functions that never return. tests/sanitizers/run expects no report.
 */
#include <gort.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef LEAK_CHECK
#include <sanitizer/lsan_interface.h>
#endif

#define APART    __attribute__((noinline))
#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), exit(1)))

enum { MANY = 40, ROUNDS = 50 };

static int sunk; /* atomic */

/* A use of a value that no compiler can leave out. */
static void sink(int value)
{
    __atomic_store_n(&sunk, value, __ATOMIC_RELAXED);
}

/* --- stacks -------------------------------------------------------------------------------------- */

static APART int deep(int n)
{
    char space[300];
    memset(space, n, sizeof space);
    if (n % 10 == 0)
        gort_yield();
    int sum = n ? deep(n - 1) : 0;
    return sum + space[n % 300];
}

static void dive(void *arg)
{
    (void)arg;
    sink(deep(90));
}

static APART void leap(jmp_buf *out)
{
    char space[100];
    memset(space, 1, sizeof space);
    sink(space[3]);
    gort_yield();
    longjmp(*out, 1);
}

/* Frames that are gone without their ends: by longjmp and by gort_exit. */
static void leave_early(void *arg)
{
    jmp_buf out;
    char space[100];
    memset(space, 1, sizeof space);
    if (setjmp(out) == 0)
        leap(&out);
    sink(deep(20) + space[7]);
    (void)arg;
    gort_exit();
}

static void stacks(void)
{
    for (int i = 0; i < 5; i++) {
        gort_wg wg = {0};
        for (int k = 0; k < MANY; k++) {
            CHECK(gort_wg_go(&wg, dive, NULL) == 0);
            CHECK(gort_wg_go(&wg, leave_early, NULL) == 0);
        }
        gort_wg_wait(&wg);
    }
}

/* --- blocks that only the stack of a goroutine knows --------------------------------------------------- */

struct meeting {
    gort_wg arrived, all;
    gort_chan *go_on;
};

static void holder(void *arg)
{
    struct meeting *m = arg;
    char *block = malloc(100), local[100];
    int value;
    CHECK(block != NULL);
    memset(block, 5, 100);
    memset(local, 6, 100);
    gort_wg_done(&m->arrived);
    CHECK(gort_chan_recv(m->go_on, &value) == 0);
    CHECK(block[99] == 5 && local[99] == 6);
    free(block);
}

static void held_blocks(void)
{
    struct meeting m = {.go_on = gort_chan_new(sizeof(int), 0)};
    CHECK(m.go_on != NULL);
    gort_wg_add(&m.arrived, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK(gort_wg_go(&m.all, holder, &m) == 0);
    gort_wg_wait(&m.arrived);
#ifdef LEAK_CHECK
    CHECK(__lsan_do_recoverable_leak_check() == 0);
#endif
    gort_chan_close(m.go_on);
    gort_wg_wait(&m.all);
    gort_chan_unref(m.go_on);
}

/* --- values handed over ------------------------------------------------------------------------------- */

struct parcel {
    int plain, *reply;
};

static void receive(gort_chan *in, gort_chan *out, gort_wg *wg)
{
    struct parcel *p;
    while (gort_chan_recv(in, &p) == 1) {
        *p->reply = p->plain + 1; /* on the sender's stack */
        CHECK(gort_chan_send(out, &p) == 0);
    }
    gort_wg_done(wg);
}

static void talk(size_t room)
{
    gort_chan *in = gort_chan_new(sizeof(void *), room), *out = gort_chan_new(sizeof(void *), room);
    gort_wg wg = {0};
    gort_wg_add(&wg, 1);
    CHECK(in && out && GORT_GO(receive, in, out, &wg) == 0);
    for (int i = 0; i < ROUNDS; i++) {
        int reply = 0;
        struct parcel *p = malloc(sizeof *p), *back;
        *p = (struct parcel){i, &reply};
        CHECK(gort_chan_send(in, &p) == 0 && gort_chan_recv(out, &back) == 1);
        CHECK(back == p && reply == i + 1);
        free(p);
    }
    gort_chan_close(in);
    gort_wg_wait(&wg);
    gort_chan_unref(in);
    gort_chan_unref(out);
}

static gort_mutex mutex;
static long counted, once_made;
static gort_once once;

static void make_once(void *arg)
{
    (void)arg;
    once_made = 7;
}

static void count(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        gort_mutex_lock(&mutex);
        counted++;
        if (i % 8 == 0)
            gort_yield();
        gort_mutex_unlock(&mutex);
        gort_once_do(&once, make_once, NULL);
        sink((int)once_made);
    }
}

static void locks(void)
{
    gort_wg wg = {0};
    counted = 0;
    for (int i = 0; i < 8; i++)
        CHECK(gort_wg_go(&wg, count, NULL) == 0);
    gort_wg_wait(&wg);
    CHECK(counted == 8 * ROUNDS);
}

/* --- preemption ------------------------------------------------------------------------------------------ */

static void hog(void *arg)
{
    int64_t end = gort_in(25 * GORT_MS);
    (void)arg;
    while (gort_now() < end) {
        char *block = malloc(50), local[50];
        memset(block, 1, 50);
        memcpy(local, block, 50);
        sink(local[49]);
        free(block);
    }
}

static void hogs(void)
{
    gort_wg wg = {0};
    for (int i = 0; i < 3; i++)
        CHECK(gort_wg_go(&wg, hog, NULL) == 0);
    gort_wg_wait(&wg);
}

static intptr_t blocking(void *arg)
{
    int *value = arg;
    usleep(1000);
    return ++*value;
}

static void in_a_call(void *arg)
{
    int value = 6;
    (void)arg;
    CHECK(gort_block(blocking, &value) == 7 && value == 7);
}

static void calls(void)
{
    gort_wg wg = {0};
    for (int i = 0; i < MANY; i++)
        CHECK(gort_wg_go(&wg, in_a_call, NULL) == 0);
    gort_wg_wait(&wg);
}

/* --- time and the network ------------------------------------------------------------------------------- */

static int ticks; /* guarded by the timer: its calls do not overlap; read after stop_wait */

static void tick(void *arg)
{
    ticks++;
    (void)arg;
}

static void sleeper(void *arg)
{
    char space[100];
    memset(space, 1, sizeof space);
    gort_sleep(GORT_MS * (1 + (intptr_t)arg % 5));
    sink(space[9]);
}

static void times(void)
{
    gort_wg wg = {0};
    gort_timer *timer = gort_timer_new(GORT_MS, GORT_MS, tick, NULL);
    for (intptr_t i = 0; i < MANY; i++)
        CHECK(gort_wg_go(&wg, sleeper, (void *)i) == 0);
    gort_wg_wait(&wg);
    gort_timer_stop_wait(timer);
    sink(ticks);
    gort_timer_free(timer);
}

static void echo(int fd, gort_wg *wg)
{
    char buf[512];
    ssize_t n;
    while ((n = gort_read(fd, buf, sizeof buf)) > 0)
        CHECK(gort_write_all(fd, buf, (size_t)n) == n);
    gort_close(fd);
    gort_wg_done(wg);
}

static void serve(int listener, gort_wg *wg)
{
    for (int i = 0; i < 8; i++) {
        int fd = gort_accept(listener);
        CHECK(fd >= 0 && GORT_GO(echo, fd, wg) == 0);
    }
}

static void ask(const char *addr, gort_wg *wg)
{
    char buf[2000], *back = malloc(sizeof buf);
    int fd = gort_dial("tcp", addr);
    CHECK(fd >= 0);
    for (int i = 0; i < 10; i++) {
        memset(buf, i, sizeof buf);
        CHECK(gort_write_all(fd, buf, sizeof buf) == sizeof buf);
        CHECK(gort_read_full(fd, back, sizeof buf) == sizeof buf && memcmp(buf, back, sizeof buf) == 0);
    }
    free(back);
    gort_close(fd);
    gort_wg_done(wg);
}

static void network(void)
{
    char addr[64];
    gort_wg wg = {0};
    int listener = gort_listen("tcp", "127.0.0.1:0");
    CHECK(listener >= 0 && gort_local_addr(listener, addr, sizeof addr) >= 0);
    gort_wg_add(&wg, 16);
    CHECK(GORT_GO(serve, listener, &wg) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(GORT_GO(ask, addr, &wg) == 0);
    gort_wg_wait(&wg);
    gort_close(listener);
}

/* All goroutines of a thread use its errno, one after the other. */
static void convert(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        errno = 0;
        sink((int)strtol("17", NULL, 10));
        CHECK(errno == 0);
        errno = i + 1;
        gort_yield();
        CHECK(errno == i + 1);
    }
}

static void errnos(void)
{
    gort_wg wg = {0};
    for (int i = 0; i < MANY; i++)
        CHECK(gort_wg_go(&wg, convert, NULL) == 0);
    CHECK(gort_wg_wait(&wg) == 0);
}

static int start(void *arg)
{
    (void)arg;
    stacks();
    errnos();
    held_blocks();
    talk(0);
    talk(4);
    locks();
    hogs();
    calls();
    times();
    network();
    return 0;
}

int main(void)
{
    for (int run = 0; run < 2; run++) /* the second run gets the addresses of the first */
        CHECK(gort_run(start, NULL) == 0);
    puts("clean");
    return 0;
}
