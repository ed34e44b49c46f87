/* SPDX-License-Identifier: MIT */
/*
 * picture.c - the Mandelbrot set, drawn by goroutines on one P and then on all of them.
 *
 * A goroutine draws a piece of a line (a cell of the terminal is two pixels); the map at the left edge shows
 * in colours which thread drew which piece. There are many more pieces than Ps, and some take a hundred
 * times as long as others: stealing is what keeps all Ps busy to the end.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "demo.h"

#define ROWS_MAX   24
#define COLS_MAX   96
#define CHUNKS_MAX 48
#define LIMIT      400 /* iterations that a point inside the set takes */
#define MAP        4   /* cells of the map at the left edge */

static struct {
    int rows, cols, chunks, samples; /* cells; pieces a line; points a pixel is the average of, squared */
    int procs;
    int64_t from;
    double took[2]; /* ms on one P, on all; 0: not yet */
    unsigned pixel[ROWS_MAX][COLS_MAX][2];
    atomic_int owner[ROWS_MAX][CHUNKS_MAX]; /* the thread that drew the piece, -1 before that */
} pic;

/* The logarithm to base 2 of x >= 1, to some two digits: exponent and mantissa. */
static double log_2(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    double mantissa = (double)(bits << 12 >> 12) / (double)(UINT64_C(1) << 52);
    return (double)(int)((bits >> 52) - 1023) + mantissa * (1.34 - 0.34 * mantissa);
}

/* How long the point takes to escape, without steps; LIMIT: it does not. */
static double escape(double cx, double cy)
{
    double x = 0, y = 0;
    for (int i = 0; i < LIMIT; i++) {
        double xx = x * x, yy = y * y;
        if (xx + yy > 256)
            return i + 1 - log_2(log_2(xx + yy) / 2);
        y = 2 * x * y + cy;
        x = xx - yy + cx;
    }
    return LIMIT;
}

/* Adds the colour of a point: night, blue, white, gold, brown, by the logarithm of its time. */
static void shade(double n, double rgb[3])
{
    static const double stops[][3] = {{0, 7, 60},      {12, 44, 138},  {24, 100, 190}, {70, 160, 220},
                                      {210, 235, 250}, {248, 201, 95}, {255, 150, 0},  {204, 90, 20},
                                      {130, 50, 30},   {80, 20, 60},   {40, 10, 80}};
    if (n >= LIMIT)
        return;
    double at = log_2(n < 1 ? 1 : n) * 1.4;
    int i = (int)at;
    if (i > 9) {
        i = 9;
        at = 10;
    }
    for (int c = 0; c < 3; c++)
        rgb[c] += stops[i][c] + (stops[i + 1][c] - stops[i][c]) * (at - i);
}

static unsigned draw_pixel(int px, int py, int samples)
{
    double rgb[3] = {0}, scale = 2.4 / (2 * pic.rows);
    for (int sy = 0; sy < samples; sy++)
        for (int sx = 0; sx < samples; sx++)
            shade(escape(-0.72 + scale * (px + (sx + 0.5) / samples - pic.cols / 2.0),
                         scale * (py + (sy + 0.5) / samples - pic.rows)),
                  rgb);
    double n = samples * samples;
    return (unsigned)(rgb[0] / n) << 16 | (unsigned)(rgb[1] / n) << 8 | (unsigned)(rgb[2] / n);
}

/* A goroutine. */
static void draw_piece(int row, int chunk, gort_wg *wg)
{
    int to = pic.cols * (chunk + 1) / pic.chunks;
    for (int col = pic.cols * chunk / pic.chunks; col < to; col++)
        for (int half = 0; half < 2; half++)
            pic.pixel[row][col][half] = draw_pixel(col, 2 * row + half, pic.samples);
    atomic_store_explicit(&pic.owner[row][chunk], thread_here(), memory_order_release);
    gort_wg_done(wg);
}

static int owner_of(int row, int chunk)
{
    return atomic_load_explicit(&pic.owner[row][chunk], memory_order_acquire);
}

/* --- what is shown ---------------------------------------------------------------------------- */

static void draw_cells(int row)
{
    unsigned fg = ~0u, bg = ~0u;
    for (int i = 0; i < MAP; i++) {
        int owner = owner_of(row, i * pic.chunks / MAP);
        colour(owner < 0 ? 0x303030 : hue(owner));
        say("▐");
    }
    say(" ");
    for (int chunk = 0; chunk < pic.chunks; chunk++) {
        bool done = owner_of(row, chunk) >= 0;
        for (int col = pic.cols * chunk / pic.chunks; col < pic.cols * (chunk + 1) / pic.chunks; col++) {
            unsigned top = done ? pic.pixel[row][col][0] : 0x181818,
                     bottom = done ? pic.pixel[row][col][1] : 0x181818;
            if (top != fg)
                colour(fg = top);
            if (bottom != bg)
                background(bg = bottom);
            say("▀");
        }
    }
    plain();
}

/* Pieces by thread, the threads that drew any first; returns how many did. */
static int tally(int threads[THREADS_MAX], int pieces[THREADS_MAX], int *done)
{
    static int by_thread[THREADS_MAX];
    int n = 0;
    *done = 0;
    memset(by_thread, 0, sizeof by_thread);
    for (int row = 0; row < pic.rows; row++)
        for (int chunk = 0; chunk < pic.chunks; chunk++)
            if (owner_of(row, chunk) >= 0) {
                by_thread[owner_of(row, chunk)]++;
                ++*done;
            }
    for (int i = 0; i < thread_known(); i++)
        if (by_thread[i]) {
            threads[n] = i;
            pieces[n++] = by_thread[i];
        }
    return n;
}

/* One line of the panel beside the picture. */
static void draw_panel(int line, int n, const int *threads, const int *pieces, int done)
{
    int total = pic.rows * pic.chunks, first = 6;
    say("  ");
    if (line == 0) {
        say("%d goroutines", total);
    } else if (line == 1 || line == 2) {
        bool now = line == 1 ? !pic.took[0] : pic.took[0] && !pic.took[1];
        double ms = now ? ms_since(pic.from) : pic.took[line - 1];
        say("on %4d P%s", line == 1 ? 1 : pic.procs, (line == 1 ? 1 : pic.procs) > 1 ? "s" : " ");
        colour(now ? AMBER : GREEN);
        if (ms > 0)
            say("%8.0f ms", ms);
    } else if (line == 3 && pic.took[1]) {
        say("speed-up  ");
        colour(GREEN);
        say("%8.2f x", pic.took[0] / pic.took[1]);
    } else if (line == 4) {
        bar((double)done / total, 20, TITLE);
    } else if (line >= first && line - first < n) {
        int i = line - first;
        if (line == pic.rows - 1 && n > i + 1) {
            say("and %d more", n - i);
        } else {
            colour(hue(threads[i]));
            say("▐▌");
            plain();
            say(" thread %-3d", threads[i]);
            bar((double)pieces[i] / total, 5, hue(threads[i]));
            say("%3d", pieces[i]);
        }
    }
    plain();
}

static void draw(void *again)
{
    static int threads[THREADS_MAX], pieces[THREADS_MAX];
    bool *drawn = again;
    int done, n = tally(threads, pieces, &done);
    bool panel = screen_size().cols >= 70;
    if (!screen_live())
        return;
    up(*drawn ? pic.rows : 0);
    *drawn = true;
    for (int row = 0; row < pic.rows; row++) {
        say(" ");
        draw_cells(row);
        if (panel)
            draw_panel(row, n, threads, pieces, done);
        erase_rest();
        say("\n");
    }
    show();
}

/* Without a terminal: characters for brightness, a letter for the thread. */
static void print_lines(void)
{
    static const char ramp[] = " .:-=+*#%@";
    for (int row = 0; row < pic.rows; row++) {
        say("  ");
        for (int i = 0; i < MAP; i++)
            say("%c", 'a' + owner_of(row, i * pic.chunks / MAP) % 26);
        say(" ");
        for (int col = 0; col < pic.cols; col++) {
            unsigned p = pic.pixel[row][col][0];
            say("%c", ramp[((p >> 16) * 3 + (p >> 8 & 255) * 6 + (p & 255)) * 9 / 2550]);
        }
        say("\n");
    }
}

/* --- the race --------------------------------------------------------------------------------- */

static double race(int procs)
{
    gort_wg wg = {0};
    for (int row = 0; row < pic.rows; row++)
        for (int chunk = 0; chunk < pic.chunks; chunk++)
            atomic_store(&pic.owner[row][chunk], -1);
    gort_maxprocs(procs);
    gort_wg_add(&wg, pic.rows * pic.chunks);
    pic.from = gort_now();
    for (int row = 0; row < pic.rows; row++)
        for (int chunk = 0; chunk < pic.chunks; chunk++)
            if (GORT_GO(draw_piece, row, chunk, &wg) < 0)
                abort();
    gort_wg_wait(&wg);
    return ms_since(pic.from);
}

/* Sizes the picture for the terminal, and the work for a race of about so many ms on one P. */
static void prepare(int ms)
{
    struct size s = screen_live() ? screen_size() : (struct size){21, 80};
    pic.rows = s.rows - 5 < 6 ? 6 : s.rows - 5 > ROWS_MAX ? ROWS_MAX : s.rows - 5;
    int wide = s.cols - MAP - 3, best = pic.rows * 3;
    if (s.cols >= 70)
        wide -= 24; /* the panel */
    pic.cols = wide < best ? wide : best;
    if (pic.cols > COLS_MAX)
        pic.cols = COLS_MAX;
    pic.chunks = (32 * pic.procs + pic.rows - 1) / pic.rows;
    if (pic.chunks < MAP)
        pic.chunks = MAP;
    if (pic.chunks > CHUNKS_MAX || pic.chunks > pic.cols)
        pic.chunks = pic.cols < CHUNKS_MAX ? pic.cols : CHUNKS_MAX;
    int64_t from = gort_now();
    for (int y = 0; y < 2 * pic.rows; y++)
        for (int x = 0; x < pic.cols; x++)
            pic.pixel[y / 2][x][y % 2] = draw_pixel(x, y, 2);
    double each = ms_since(from) / 4;
    for (pic.samples = 2; (pic.samples + 1) * (pic.samples + 1) * each < ms && pic.samples < 200;)
        pic.samples++;
}

void picture_show(struct results *r, bool fast)
{
    bool drawn = false;
    memset(&pic, 0, sizeof pic);
    pic.procs = r->procs;
    heading("work on all cores");
    prepare(fast ? 500 : 2400);
    if (screen_live())
        ticker_start(draw, &drawn, 20);
    pic.took[0] = race(1);
    wait_ms(screen_live() ? 400 : 0);
    pic.took[1] = race(r->procs);
    if (screen_live())
        ticker_stop();
    else
        print_lines();
    r->one_ms = pic.took[0];
    r->many_ms = pic.took[1];
    r->pieces = pic.rows * pic.chunks;
    colour(GREY);
    if (screen_live())
        say("  the map at the left: which thread drew which piece of the line\n");
    else
        say("  %d goroutines: %.0f ms on 1 P, %.0f ms on %d, speed-up %.2f\n", r->pieces, r->one_ms,
            r->many_ms, r->procs, r->one_ms / r->many_ms);
    if (r->procs > 1 && r->one_ms < 0.6 * r->procs * r->many_ms)
        say("  less than %d times as fast: perhaps the CPUs are shared or busy with something else\n",
            r->procs);
    plain();
    show();
}
