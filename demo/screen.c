/* SPDX-License-Identifier: MIT */
/*
 * screen.c - what the terminal needs: colours, bars, redrawing in place, and leaving it tidy.
 *
 * Why: parts are drawn where the cursor is and redrawn by going up again, not on an alternate
 * screen, so that everything stays in the scroll-back for later. Output is collected and written at
 * once, which keeps it from flickering. Without a terminal (or with TERM=dumb, NO_COLOR, --plain)
 * nothing but text comes out.
 * Threads: the main goroutine, or the ticker's thread while it draws; never both.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "demo.h"

static char *buffer;
static size_t used, room;
static bool live;

static const char tidy_up[] = "\033[0m\033[?25h\033[?7h";

static void on_signal(int signo)
{
    if (write(STDOUT_FILENO, tidy_up, sizeof tidy_up - 1) < 0 || write(STDOUT_FILENO, "\r\n", 2) < 0) {
        /* There is nothing more to try. */
    }
    signal(signo, SIG_DFL);
    raise(signo);
}

void screen_begin(bool want_plain)
{
    const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
    live = !want_plain && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0 &&
           !(no_colour && *no_colour);
    if (live && (screen_size().cols < 40 || screen_size().rows < 12))
        live = false; /* too small for anything but lines */
    if (!live)
        return;
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGABRT};
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_NODEFER};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &act, NULL);
    say("\033[?25l\033[?7l"); /* no cursor; lines that are too long are cut, not wrapped */
}

void screen_end(void)
{
    if (live)
        say("%s", tidy_up);
    show();
}

bool screen_live(void)
{
    return live;
}

struct size screen_size(void)
{
    struct winsize w;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 && w.ws_row > 0)
        return (struct size){w.ws_row, w.ws_col};
    return (struct size){24, 80};
}

void say(const char *format, ...)
{
    va_list list;
    if (room - used < 4096) {
        room = room * 2 + 65536;
        buffer = realloc(buffer, room);
        if (!buffer)
            abort();
    }
    va_start(list, format);
    int n = vsnprintf(buffer + used, room - used, format, list);
    va_end(list);
    if (n > 0)
        used += (size_t)n < room - used ? (size_t)n : room - used - 1;
}

size_t said(void)
{
    return used;
}

void unsay(size_t mark)
{
    used = mark;
}

void show(void)
{
    for (size_t at = 0; at < used;) {
        ssize_t n = write(STDOUT_FILENO, buffer + at, used - at);
        if (n < 0)
            break;
        at += (size_t)n;
    }
    used = 0;
}

void colour(unsigned rgb)
{
    if (live)
        say("\033[38;2;%u;%u;%um", rgb >> 16, rgb >> 8 & 255, rgb & 255);
}

void background(unsigned rgb)
{
    if (live)
        say("\033[48;2;%u;%u;%um", rgb >> 16, rgb >> 8 & 255, rgb & 255);
}

void plain(void)
{
    if (live)
        say("\033[0m");
}

void erase_rest(void)
{
    if (live)
        say("\033[K");
}

void up(int lines)
{
    if (live && lines > 0)
        say("\r\033[%dA", lines);
}

void heading(const char *text)
{
    if (!live) {
        say("\n== %s\n", text);
        return;
    }
    int cols = screen_size().cols, width = (cols < 100 ? cols : 100) - (int)strlen(text) - 5;
    colour(TITLE);
    say("\n── \033[1m%s\033[22m ", text);
    for (int i = 0; i < width; i++)
        say("─");
    plain();
    say("\n");
    show();
}

void bar(double part, int width, unsigned rgb)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int filled = (int)((part < 0 ? 0 : part > 1 ? 1 : part) * width * 8 + 0.5);
    if (part > 0 && filled == 0)
        filled = 1;
    colour(rgb);
    int cells = 0;
    for (; cells < filled / 8; cells++)
        say("█");
    if (filled % 8) {
        say("%s", eighths[filled % 8]);
        cells++;
    }
    plain();
    say("%*s", width - cells, "");
}

unsigned hue(int i)
{
    static const unsigned colours[] = {0x00add8, 0xffaf5f, 0x5fd787, 0xff5f87, 0xaf87ff, 0xffd75f,
                                       0x5fafff, 0xd787af, 0x87d7af, 0xd7875f, 0xafd75f, 0x8787d7};
    return i < 0 ? GREY : colours[(size_t)i % (sizeof colours / sizeof *colours)];
}

const char *human(double n, char buf[16])
{
    const char *unit = n >= 1e9 ? " G" : n >= 1e6 ? " M" : n >= 1e4 ? " k" : "";
    double shown = n / (n >= 1e9 ? 1e9 : n >= 1e6 ? 1e6 : n >= 1e4 ? 1e3 : 1);
    snprintf(buf, 16, "%.*f%s", *unit && shown < 100 ? 1 : 0, shown, unit);
    return buf;
}
