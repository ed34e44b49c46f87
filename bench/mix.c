/* SPDX-License-Identifier: MIT */
/*
 * mix.c - several kinds of goroutines at once, and what each of them gets.
 *
 *     mix -procs 2 -ms 2000 -hogs 2 -ticker 5        two that compute, one that sleeps for 5 ms in a loop
 *     mix -client PORT -ms 2000                      the client of a mix with -echo, in a process of its own
 *
 * Why: a row of bench/run has one kind of load. Who runs when is decided where kinds meet, so bench/mixes runs this
 * program and its Go twin (go-mix/mix.go) in many combinations. All of it stops after -ms milliseconds, or
 * when the hogs have done their part (-each). A plain thread stops it, so that it ends without preemption, too.
 *
 * It prints one line of name=value pairs:
 *     work        computing done by all hogs, in CPUs that do nothing else
 *     batch_ms    with -each: until all hogs had computed their part
 *     tick_*      lateness of the sleeps of -ticker: p50, p99, worst, in microseconds
 *     pair_*      for each of -pair and -pair2: rounds, and microseconds of work done, a second
 *     calls       returns from the blocking calls of -blockers, a second
 *     cpu         CPU time of the process, in CPUs; sysmon: of the monitor thread, in per cent of a CPU
 *     switches    context switches of the process, a second (voluntary and not)
 *     threads     at most
 */
#include <gort.h>

#include "monitor.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 1000000, UNIT_LOOPS = 20000 };

/* What to do: all from the command line. Times in milliseconds, but for the work of pairs, in microseconds. */
static struct {
    int procs, ms, hogs, each, ticker, pair, pair2, blockers, sleep, echo, client;
} want = {.procs = 2, .ms = 2000, .sleep = 20};

static atomic_bool stop;
static atomic_long units, calls, pair_rounds[2];
static atomic_int threads_most;
static int64_t *late; /* of the ticker, or of the client's pings, ns */
static int late_n;
static double unit_us;

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int64_t now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static __attribute__((noinline)) void compute_unit(void)
{
    for (volatile int i = 0; i < UNIT_LOOPS; i++)
        ;
}

static void compute(double us)
{
    for (volatile int i = (int)(us / unit_us * UNIT_LOOPS); i > 0; i--)
        ;
}

/* How long a unit takes when nothing disturbs it. */
static void calibrate(void)
{
    double best = 1e9;
    for (int i = 0; i < 200; i++) {
        int64_t from = now();
        compute_unit();
        double us = (double)(now() - from) / 1000;
        best = us < best ? us : best;
    }
    unit_us = best;
}

/* --- the kinds of goroutines ------------------------------------------------------------------ */

static void hog(void *wg)
{
    long mine = 0, end = want.each ? (long)(want.each * 1000 / unit_us) : -1;
    while (!atomic_load_explicit(&stop, memory_order_relaxed) && mine != end) {
        compute_unit();
        mine++;
    }
    atomic_fetch_add(&units, mine);
    gort_wg_done(wg);
}

static void note_late(int64_t ns)
{
    if (late_n < SAMPLES)
        late[late_n++] = ns;
}

static void ticker(void *wg)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        int64_t due = now() + want.ticker * GORT_MS;
        gort_sleep(want.ticker * GORT_MS);
        note_late(now() - due);
    }
    gort_wg_done(wg);
}

struct pair {
    gort_chan *there, *back;
    int us;
    atomic_long *rounds;
    gort_wg *wg;
};

static void pong(void *arg)
{
    struct pair *p = arg;
    int v;
    while (gort_chan_recv(p->there, &v) == 1) {
        compute(p->us);
        gort_chan_send(p->back, &v);
    }
    gort_wg_done(p->wg);
}

static void ping(void *arg)
{
    struct pair *p = arg;
    int v = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        compute(p->us);
        gort_chan_send(p->there, &v);
        gort_chan_recv(p->back, &v);
        atomic_fetch_add_explicit(p->rounds, 1, memory_order_relaxed);
    }
    gort_chan_close(p->there);
    gort_wg_done(p->wg);
}

/* A call of a library that knows nothing of gort. */
static void blocker(void *wg)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        poll(NULL, 0, want.sleep);
        atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    }
    gort_wg_done(wg);
}

static void serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buf[64];
    ssize_t n;
    while ((n = gort_read(fd, buf, sizeof buf)) > 0 && gort_write_all(fd, buf, (size_t)n) == n)
        ;
    gort_close(fd);
}

static void accept_all(void *arg)
{
    int listener = (int)(intptr_t)arg, fd;
    while ((fd = gort_accept(listener)) >= 0)
        if (gort_go(serve, (void *)(intptr_t)fd))
            gort_close(fd);
}

/* --- the client, a plain program -------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_late(const char *name)
{
    if (!late_n)
        return;
    qsort(late, (size_t)late_n, sizeof *late, compare);
    printf("%s_n=%d %s_p50=%.0f %s_p99=%.0f %s_worst=%.0f ", name, late_n, name, late[late_n / 2] / 1e3, name,
           late[(int)(late_n * 0.99)] / 1e3, name, late[late_n - 1] / 1e3);
}

static int client(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)want.client)};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        perror("mix: connect");
        return 1;
    }
    int64_t end = now() + want.ms * GORT_MS;
    for (char c = 'x'; now() < end;) {
        int64_t from = now();
        if (write(fd, &c, 1) != 1 || read(fd, &c, 1) != 1)
            break;
        note_late(now() - from);
        poll(NULL, 0, 5);
    }
    if (getenv("MIX_SHOW")) /* when the worst ones happened */
        for (int i = 0; i < late_n; i++)
            if (late[i] > 20 * GORT_MS)
                fprintf(stderr, "ping %d took %.1f ms\n", i, (double)late[i] / 1e6);
    print_late("ping");
    putchar('\n');
    return 0;
}

/* --- measuring -------------------------------------------------------------------------------- */

static int monitor;
static int64_t began, monitor_cpu;
static double seconds; /* measured */
static struct rusage before, after;

static void measure_end(void)
{
    seconds = (double)(now() - began) / 1e9;
    getrusage(RUSAGE_SELF, &after);
    monitor_cpu = thread_cpu(monitor) - monitor_cpu;
    atomic_store(&stop, true);
}

/* In a plain thread, which the runtime does not see. */
static void *watch(void *arg)
{
    (void)arg;
    while (!atomic_load(&stop)) {
        int n = count_threads(&monitor) - 1;
        if (n > atomic_load(&threads_most))
            atomic_store(&threads_most, n);
        int64_t left = began ? began + want.ms * GORT_MS - now() : GORT_FOREVER;
        if (!want.each && left <= 0)
            measure_end();
        poll(NULL, 0, left < 100 * GORT_MS && left > 0 ? (int)(left / GORT_MS) + 1 : 100);
    }
    return NULL;
}

static long switches(const struct rusage *u)
{
    return u->ru_nvcsw + u->ru_nivcsw;
}

static double cpu(const struct rusage *u)
{
    return (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) +
           (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e6;
}

static void start_pair(struct pair *p, int us, int which, gort_wg *wg)
{
    *p = (struct pair){gort_chan_new(sizeof(int), 0), gort_chan_new(sizeof(int), 0), us, &pair_rounds[which],
                       wg};
    gort_wg_add(wg, 2);
    gort_go(pong, p);
    gort_go(ping, p);
}

static void print_pair(int which, int us, double s)
{
    double rounds = (double)atomic_load(&pair_rounds[which]) / s;
    if (us)
        printf("pair%d_rounds=%.0f pair%d_us=%.0f ", which, rounds, which, rounds * 2 * us);
}

static int mix(void *arg)
{
    gort_wg wg = {0}, batch = {0};
    struct pair pairs[2];
    (void)arg;
    if (want.echo) {
        char addr[64];
        int listener = gort_listen("tcp", "127.0.0.1:0");
        gort_local_addr(listener, addr, sizeof addr);
        printf("port=%s\n", strrchr(addr, ':') + 1);
        fflush(stdout);
        gort_go(accept_all, (void *)(intptr_t)listener);
        gort_sleep(100 * GORT_MS);
    }
    getrusage(RUSAGE_SELF, &before);
    monitor_cpu = thread_cpu(monitor);
    began = now();
    if (want.ticker) {
        gort_wg_add(&wg, 1);
        gort_go(ticker, &wg);
        gort_sleep(GORT_MS); /* it is to have begun before there are thousands of others */
    }
    gort_wg_add(&batch, want.hogs);
    for (int i = 0; i < want.hogs; i++)
        gort_go(hog, &batch);
    if (want.pair)
        start_pair(&pairs[0], want.pair, 0, &wg);
    if (want.pair2)
        start_pair(&pairs[1], want.pair2, 1, &wg);
    gort_wg_add(&wg, want.blockers);
    for (int i = 0; i < want.blockers; i++)
        gort_go(blocker, &wg);
    gort_wg_wait(&batch);
    if (want.each)
        measure_end();
    gort_wg_wait(&wg);
    while (!atomic_load(&stop)) /* nothing was asked for: the cost of being idle */
        gort_sleep(want.ms * GORT_MS);
    if (want.hogs)
        printf("work=%.3f ", (double)atomic_load(&units) * unit_us / 1e6 / seconds);
    if (want.each)
        printf("batch_ms=%.0f ", seconds * 1e3);
    print_late("tick");
    print_pair(0, want.pair, seconds);
    print_pair(1, want.pair2, seconds);
    if (want.blockers)
        printf("calls=%.0f ", (double)atomic_load(&calls) / seconds);
    printf("cpu=%.3f sysmon=%.3f switches=%.0f threads=%d\n", (cpu(&after) - cpu(&before)) / seconds,
           (double)monitor_cpu / seconds / 1e7, (double)(switches(&after) - switches(&before)) / seconds,
           atomic_load(&threads_most));
    return 0;
}

int main(int argc, char **argv)
{
    const struct {
        const char *name;
        int *where;
    } options[] = {{"-procs", &want.procs}, {"-ms", &want.ms},         {"-hogs", &want.hogs},
                   {"-each", &want.each},   {"-ticker", &want.ticker}, {"-pair", &want.pair},
                   {"-pair2", &want.pair2}, {"-sleep", &want.sleep},   {"-blockers", &want.blockers},
                   {"-echo", &want.echo},   {"-client", &want.client}};
    for (int i = 1; i + 1 < argc; i += 2) {
        bool known = false;
        for (size_t k = 0; k < sizeof options / sizeof *options; k++)
            if (!strcmp(argv[i], options[k].name)) {
                *options[k].where = atoi(argv[i + 1]);
                known = true;
            }
        if (!known) {
            fprintf(stderr, "mix: no option %s\n", argv[i]);
            return 2;
        }
    }
    late = calloc(SAMPLES, sizeof *late);
    if (!late)
        return 1;
    if (want.client)
        return client();
    calibrate();
    pthread_t watcher;
    if (pthread_create(&watcher, NULL, watch, NULL))
        return 1;
    gort_config config = {.maxprocs = want.procs};
    int result = gort_run_with(&config, mix, NULL);
    pthread_join(watcher, NULL);
    return result < 0;
}
