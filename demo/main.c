/* SPDX-License-Identifier: MIT */
/*
 * main.c - the showcase: what gort does, in some fifteen seconds.
 *
 *     demo [--fast] [--plain]      --fast: a few seconds; --plain: text only, as without a terminal
 */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "demo.h"

static bool fast;
static struct results results;

static void greet(int procs)
{
    struct utsname u;
    colour(TITLE);
    say("\n  gort %s", gort_version());
    plain();
    say("  Go's scheduler, for C");
    colour(GREY);
    if (uname(&u) == 0)
        say("   %s, %s %s, %d Ps", u.machine, u.sysname, u.release, procs);
    plain();
    say("\n");
    show();
}

static void entry(const char *what, const char *value)
{
    int width = screen_size().cols - 28;
    width = width > 46 ? 46 : width < 10 ? 10 : width;
    colour(GREY);
    say("  %-*.*s", width, width, what);
    plain();
    say("%25s\n", value);
}

static void summary(const struct results *r, double seconds)
{
    char what[64], value[64], buf[16];
    heading("what was measured");
    snprintf(what, sizeof what, "start a goroutine (%d of them)", r->count);
    snprintf(value, sizeof value, "%.0f ns, %.0f bytes", r->spawn_ns, r->spawn_bytes);
    entry(what, value);
    snprintf(value, sizeof value, "%.0f ms", r->all_ms);
    entry("until all of them had run", value);
    snprintf(value, sizeof value, "%.0f ns", r->again_ns);
    entry("start and run one, memory warm", value);
    if (r->parked) {
        snprintf(what, sizeof what, "one of %d that wait, on its own stack", r->parked);
        snprintf(value, sizeof value, "%.0f bytes", r->parked_bytes);
        entry(what, value);
    }
    snprintf(what, sizeof what, "the picture, %d goroutines, 1 P and %d", r->pieces, r->procs);
    snprintf(value, sizeof value, "%.0f and %.0f ms, %.2f x", r->one_ms, r->many_ms, r->one_ms / r->many_ms);
    entry(what, value);
    snprintf(value, sizeof value, "%s a second", human(r->yields, buf));
    entry("yields, the most seen", value);
    snprintf(value, sizeof value, "%d on %d threads", r->goroutines, r->threads);
    entry("goroutines on the dashboard", value);
    snprintf(value, sizeof value, "%.1f s", seconds);
    entry("all of this took", value);

    heading("next");
    static const char *const next[][2] = {{"make test", "everything it promises"},
                                          {"make bench", "beside the same programs in Go"},
                                          {"examples/", "short programs, one idea each"},
                                          {"docs/ARCHITECTURE.md", "how it works"}};
    for (size_t i = 0; i < sizeof next / sizeof *next; i++) {
        colour(GREEN);
        say("  %-22s", next[i][0]);
        plain();
        say("%s\n", next[i][1]);
    }
    show();
}

static int rehearse(void *r)
{
    ((struct results *)r)->procs = gort_maxprocs(0);
    greet(((struct results *)r)->procs);
    million_rehearse(r);
    return 0;
}

static int demo(void *r)
{
    int pause = screen_live() && !fast ? 1200 : 0; /* ms, to read what is there */
    million_show(r, fast);
    wait_ms(pause);
    picture_show(r, fast);
    wait_ms(pause);
    board_show(r, fast);
    return 0;
}

int main(int argc, char **argv)
{
    bool text = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--fast") == 0) {
            fast = true;
        } else if (strcmp(argv[i], "--plain") == 0) {
            text = true;
        } else {
            fprintf(stderr, "usage: %s [--fast] [--plain]\n", argv[0]);
            return 2;
        }
    }
    screen_begin(text);
    fast = fast || !screen_live();
    int64_t from = gort_now();
    int result = gort_run(rehearse, &results);
    if (result == 0)
        result = gort_run(demo, &results);
    if (result == 0)
        summary(&results, ms_since(from) / 1000);
    screen_end();
    if (result < 0)
        fprintf(stderr, "demo: %s\n", gort_strerror(result));
    return result < 0 ? 1 : result;
}
