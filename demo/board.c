/* SPDX-License-Identifier: MIT */
/*
 * board.c - states and queues, live: a dashboard over changing loads.
 *
 * Everything on it comes from public calls: gort_dump, written to a file in memory and read back, tells
 * goroutines, states, idle Ps, the global queue and who runs on which thread; the goroutines themselves count
 * their yields by thread. Each load runs until `over` is set and must then end on its own.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "demo.h"

#define FLOOD   900 /* below the thousand lines that a dump has at most */
#define HISTORY 256

static atomic_bool over;

/* Yields by thread, each on a line of its own so that they do not slow one another down. */
static struct {
    _Alignas(64) atomic_ulong yields;
} by_thread[THREADS_MAX];

/* --- loads ------------------------------------------------------------------------------------ */

static void count_and_yield(void)
{
    atomic_ulong *n = &by_thread[thread_here()].yields;
    atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
    gort_yield();
}

static void yielder(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&over, memory_order_relaxed))
        count_and_yield();
}

static void bound(void *unused)
{
    gort_lock_thread();
    yielder(unused);
    gort_unlock_thread();
}

static void compute(void)
{
    for (int i = 0; i < 20000; i++)
        __asm__ volatile("" : : : "memory");
}

/* Forks in two until depth is used up, and waits for both. */
static void fork_join(void *depth)
{
    gort_wg wg = {0};
    compute();
    count_and_yield();
    if (!depth || atomic_load_explicit(&over, memory_order_relaxed))
        return;
    for (int i = 0; i < 2; i++)
        if (gort_wg_go(&wg, fork_join, (void *)((uintptr_t)depth - 1)) < 0)
            abort();
    gort_wg_wait(&wg);
}

static void forker(void *unused)
{
    (void)unused;
    while (!atomic_load_explicit(&over, memory_order_relaxed))
        fork_join((void *)(uintptr_t)6);
}

static void start(gort_wg *wg, int n, void (*fn)(void *))
{
    for (int i = 0; i < n; i++)
        if (gort_wg_go(wg, fn, NULL) < 0)
            abort();
}

struct scene {
    const char *text, *more;
    void (*fn)(void *);
    int count, per_p; /* goroutines: count + per_p * maxprocs */
    int procs;        /* maxprocs; 0: all */
};

static const struct scene scenes[] = {
    {"A few goroutines that yield all the time:", "each P runs its own, nobody shares anything.", yielder, 0,
     4, 0},
    {"A flood: one goroutine starts 900 others.",
     "A P's ring holds 256; what does not fit goes to the global queue.", yielder, FLOOD, 0, 0},
    {"The same flood, maxprocs now 1:", "changed while running; the other threads rest.", yielder, FLOOD, 0,
     1},
    {"Fork and join: each splits in two and waits for both.",
     "Most wait for their wait groups, the others get stolen.", forker, 4, 2, 0},
    {"Goroutines locked to threads of their own:",
     "the P goes from thread to thread, each turn is a futex wake.", bound, 2, 2, 0},
};
#define SCENES ((int)(sizeof scenes / sizeof *scenes))

/* --- what is seen ----------------------------------------------------------------------------- */

struct view {
    unsigned goroutines, procs, idle, looking, queued;
    unsigned running, runnable, waiting, locked;
    int threads;
    double yields;            /* a second, smoothed */
    double rate[THREADS_MAX]; /* the same by thread */
    bool runs[THREADS_MAX];   /* a goroutine runs there */
};

static struct {
    const struct scene *scene;
    int number, file;
    bool drawn;
    int lines;                       /* drawn; to go up again */
    size_t mark;                     /* where the current line begins in the buffer */
    pthread_mutex_t lock;            /* view: the ticker's thread writes, the main goroutine reads */
    int64_t then;                    /* when it was drawn last */
    unsigned long seen[THREADS_MAX]; /* yields by then */
    double history[HISTORY];
    int samples;
    struct view view;
    double most_yields;
    unsigned most_goroutines;
    int most_threads;
} board = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void read_line(struct view *v, const char *line)
{
    const char *state = strrchr(line, '['), *thread = strstr(line, ", thread ");
    if (!state)
        return;
    v->running += strncmp(state, "[running", 8) == 0;
    v->runnable += strncmp(state, "[runnable", 9) == 0;
    v->waiting += strncmp(state, "[waiting", 8) == 0;
    v->locked += strstr(state, "locked to thread") != NULL;
    int tid = thread ? atoi(thread + 9) : 0;
    for (int i = 0; tid && i < thread_known(); i++)
        if (thread_tid(i) == tid)
            v->runs[i] = true;
}

/* Reads a dump back. */
static void read_dump(struct view *v)
{
    static char text[1 << 18];
    if (ftruncate(board.file, 0) != 0 || lseek(board.file, 0, SEEK_SET) != 0)
        return;
    gort_dump(board.file);
    ssize_t n = pread(board.file, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    sscanf(text,
           "gort: %u goroutines, maxprocs %u, %u Ps idle, %u threads looking for work, %u goroutines in",
           &v->goroutines, &v->procs, &v->idle, &v->looking, &v->queued);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        if (strncmp(line, "goroutine ", 10) == 0)
            read_line(v, line);
}

static void look(void)
{
    static struct view next;
    struct view *v = &next;
    double before = v->yields;
    memset(v, 0, sizeof *v);
    read_dump(v);
    v->threads = threads_now();
    int64_t now = gort_now();
    double seconds = (double)(now - board.then) / GORT_SEC, sum = 0;
    for (int i = 0; i < thread_known(); i++) {
        unsigned long n = atomic_load_explicit(&by_thread[i].yields, memory_order_relaxed);
        v->rate[i] = (double)(n - board.seen[i]) / seconds;
        board.seen[i] = n;
        sum += v->rate[i];
    }
    board.then = now;
    v->yields = board.samples % 1000 ? (before + sum) / 2 : sum;
    board.history[board.samples++ % HISTORY] = sum;
    if (v->yields > board.most_yields)
        board.most_yields = v->yields;
    if (v->goroutines > board.most_goroutines)
        board.most_goroutines = v->goroutines;
    if (v->threads > board.most_threads)
        board.most_threads = v->threads;
    pthread_mutex_lock(&board.lock);
    board.view = next;
    pthread_mutex_unlock(&board.lock);
}

/* --- drawing ---------------------------------------------------------------------------------- */

/* Ends a line; leaves it out when the terminal is too small for it. */
static void end_line(void)
{
    plain();
    erase_rest();
    say("\n");
    if (board.lines >= screen_size().rows - 1)
        unsay(board.mark);
    else
        board.lines++;
    board.mark = said();
}

static void row(const char *name, double value, double whole, unsigned rgb, const char *note)
{
    char buf[16];
    int cols = screen_size().cols, width = cols - 46 < 10 ? 10 : cols - 46 > 50 ? 50 : cols - 46;
    colour(GREY);
    say("  %-14s", name);
    plain();
    bar(whole > 0 ? value / whole : 0, width, rgb);
    say("%8s", human(value, buf));
    colour(GREY);
    say("  %s", note);
    end_line();
}

static void sparkline(void)
{
    static const char *const eighths[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int cols = screen_size().cols, n = cols - 46 < 10 ? 10 : cols - 46 > 50 ? 50 : cols - 46;
    char buf[16];
    double most = 1;
    for (int i = 0; i < n && i < board.samples; i++)
        if (board.history[(board.samples - 1 - i) % HISTORY] > most)
            most = board.history[(board.samples - 1 - i) % HISTORY];
    colour(GREY);
    say("  %-14s", "yields/s");
    colour(GREEN);
    for (int i = n - 1; i >= 0; i--) {
        double h = i < board.samples ? board.history[(board.samples - 1 - i) % HISTORY] / most : 0;
        say("%s", eighths[(int)(h * 7.99)]);
    }
    plain();
    say("%8s", human(board.view.yields, buf));
    end_line();
}

static void draw_threads(const struct view *v, int room)
{
    static int order[THREADS_MAX];
    double most = 1;
    int n = 0;
    for (int i = 0; i < thread_known(); i++) {
        if (v->runs[i] || v->rate[i] > 0)
            order[n++] = i;
        if (v->rate[i] > most)
            most = v->rate[i];
    }
    for (int i = 0; i < room; i++) {
        char name[24];
        if (i >= n) {
            end_line();
            continue;
        }
        snprintf(name, sizeof name, "thread %d", order[i]);
        bool last = i == room - 1 && n > room;
        row(name, v->rate[order[i]], most, hue(order[i]),
            last                ? "and more"
            : v->runs[order[i]] ? "yields/s, runs"
                                : "yields/s");
    }
}

static void draw(void *unused)
{
    (void)unused;
    struct view *v = &board.view;
    look();
    if (!screen_live())
        return;
    int room = screen_size().rows - 17; /* lines for threads */
    room = room < 2 ? 2 : room > 10 ? 10 : room;
    unsigned own = v->runnable > v->queued ? v->runnable - v->queued : 0;
    double whole = v->goroutines > 0 ? v->goroutines : 1;
    up(board.drawn ? board.lines : 0);
    board.drawn = true;
    board.lines = 0;
    board.mark = said();
    say("  \033[1m%d/%d %s\033[0m", board.number + 1, SCENES, board.scene->text);
    end_line();
    say("      %s", board.scene->more);
    end_line();
    say("  ");
    colour(AMBER);
    say("goroutines %u   maxprocs %u   idle Ps %u   searching %u   threads %d", v->goroutines, v->procs,
        v->idle, v->looking, v->threads);
    end_line();
    row("running", v->running, whole, GREEN, "");
    row("runnable", v->runnable, whole, BLUE, "");
    row("waiting", v->waiting, whole, ROSE, "wait group");
    row("locked", v->locked, whole, AMBER, "to a thread");
    end_line();
    row("global queue", v->queued, whole, BLUE, "any P takes some");
    row("queues of Ps", own, whole, TITLE, "");
    end_line();
    sparkline();
    draw_threads(v, room);
    show();
}

static void play(const struct scene *scene, int procs, int ms)
{
    gort_wg wg = {0};
    board.scene = scene;
    board.number = (int)(scene - scenes);
    gort_maxprocs(scene->procs ? scene->procs : procs);
    atomic_store(&over, false);
    start(&wg, scene->count + scene->per_p * procs, scene->fn);
    int64_t until = gort_in(ms * GORT_MS);
    while (gort_now() < until)
        gort_yield();
    static struct view v; /* the last picture of this load */
    char buf[16];
    pthread_mutex_lock(&board.lock); /* nothing parks before the unlock */
    v = board.view;
    pthread_mutex_unlock(&board.lock);
    atomic_store(&over, true);
    gort_wg_wait(&wg);
    if (!screen_live()) {
        say("  %s\n    goroutines %u, maxprocs %u, idle %u, running %u, runnable %u (%u global), waiting %u, locked %u\n"
            "    threads %d, yields/s %s\n",
            scene->text, v.goroutines, v.procs, v.idle, v.running, v.runnable, v.queued, v.waiting, v.locked,
            v.threads, human(v.yields, buf));
        show();
    }
}

void board_show(struct results *r, bool fast)
{
    heading("states and queues, live");
    board.file = memfd_create("gort-dump", MFD_CLOEXEC);
    board.scene = scenes;
    board.then = gort_now();
    ticker_start(draw, NULL, fast && !screen_live() ? 20 : 10);
    for (int i = 0; i < SCENES; i++)
        play(&scenes[i], r->procs, fast ? 400 : 1700);
    ticker_stop();
    gort_maxprocs(r->procs);
    close(board.file);
    r->yields = board.most_yields;
    r->goroutines = (int)board.most_goroutines;
    r->threads = board.most_threads;
}
