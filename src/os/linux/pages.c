/* SPDX-License-Identifier: MIT */
/*
 * pages.c - which pages have memory, and how much of it there is.
 *
 * Why: a goroutine's stack grows without anybody noticing: the kernel gives it pages as it touches them. Only
 * the page tables know how deep it went. PAGEMAP_SCAN (Linux 6.7) returns the runs of a large range at some 2
 * ns a page; before it, the page map is read, one word a page, some six times slower. mincore would be slower
 * still.
 * Threads: all functions from any thread and from signal handlers. errno is never changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "os/force.h"
#include "os/linux/init.h"
#include "os/os.h"

/* Younger than the headers that we may be built with. */
struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
struct region {
    uint64_t start, end, categories;
};
#define SCAN         _IOWR('f', 16, struct scan)
#define PAGE_PRESENT ((uint64_t)1 << 3)
#define AT_ONCE      64

/* The runs by one call. The number of them; -1: the kernel does not know how. */
static int scan(int fd, char *from, char *to, struct gort__os_range *runs, int n, char **next)
{
    struct region regions[AT_ONCE];
    struct scan s = {.size = sizeof s,
                     .start = (uintptr_t)from,
                     .end = (uintptr_t)to,
                     .vec = (uintptr_t)regions,
                     .vec_len = (uint64_t)(n < AT_ONCE ? n : AT_ONCE),
                     .category_mask = PAGE_PRESENT, /* guard marks count as swapped */
                     .return_mask = PAGE_PRESENT};
    int got = ioctl(fd, SCAN, &s);
    if (got < 0)
        return -1;
    for (int i = 0; i < got; i++)
        runs[i] = (struct gort__os_range){(void *)(uintptr_t)regions[i].start,
                                          (size_t)(regions[i].end - regions[i].start)};
    *next = (char *)(uintptr_t)s.walk_end;
    return got;
}

/* The runs from a piece of the page map: the top bit of a word says "present". */
static int read_map(int fd, char *from, char *to, struct gort__os_range *runs, int n, char **next)
{
    uint64_t words[512];
    size_t page = gort__os_page();
    int got = 0;
    char *at = from;
    while (at < to && got < n) {
        size_t want = (size_t)(to - at) / page;
        if (want > sizeof words / sizeof *words)
            want = sizeof words / sizeof *words;
        ssize_t bytes = pread(fd, words, want * 8, (off_t)((uintptr_t)at / page * 8));
        if (bytes < 8)
            return -EIO;
        for (size_t i = 0; i < (size_t)bytes / 8 && got < n; i++, at += page) {
            if (!(words[i] >> 63))
                continue;
            struct gort__os_range *last = got ? &runs[got - 1] : NULL;
            if (last && (char *)last->addr + last->size == at)
                last->size += page;
            else
                runs[got++] = (struct gort__os_range){at, page};
        }
    }
    *next = at;
    return got;
}

int gort__os_vm_resident(char *from, char *to, struct gort__os_range *runs, int n, char **next)
{
    int saved = errno;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    int got = fd < 0 ? -errno : gort__os_force.no_pagemap_scan ? -1 : scan(fd, from, to, runs, n, next);
    if (fd >= 0 && got == -1)
        got = read_map(fd, from, to, runs, n, next);
    if (fd >= 0)
        close(fd);
    errno = saved;
    return got;
}

/* The beginning of a file as a string; its length, 0: it cannot be read. */
static size_t read_text(const char *path, char *buf, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
    if (fd >= 0)
        close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0 ? (size_t)n : 0;
}

static long number(const char *text)
{
    long v = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        v = v * 10 + (*text - '0');
    return v;
}

long gort__os_number_in(const char *path)
{
    char text[32];
    int saved = errno;
    read_text(path, text, sizeof text);
    errno = saved;
    return number(text);
}

bool gort__os_clock_is(const char *name)
{
    char text[32];
    int saved = errno;
    size_t n = read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource", text,
                         sizeof text);
    errno = saved;
    return n == strlen(name) + 1 && strncmp(text, name, n - 1) == 0;
}

size_t gort__os_rss(void)
{
    char text[128];
    int saved = errno;
    read_text("/proc/self/statm", text, sizeof text);
    errno = saved;
    const char *second = strchr(text, ' ');
    return second ? (size_t)number(second + 1) * gort__os_page() : 0;
}

/* "some avg10=1.23 ...": the part of the last ten seconds in which somebody waited for memory, in percent. */
bool gort__os_memory_pressure(void)
{
    char text[128];
    int saved = errno;
    read_text("/proc/pressure/memory", text, sizeof text);
    errno = saved;
    const char *avg = strstr(text, "avg10=");
    return avg && number(avg + 6) >= 5;
}
