/* SPDX-License-Identifier: MIT */
/*
 * preempt_libc.c - the C library in the hands of 64 goroutines that are interrupted every millisecond: every
 * result is right.
 * Covers: src/sched/monitor/preempt.c src/os/linux/text.c
 *
 * Sleepers that wake all the time make slices of a millisecond out of those of ten.
 */
#include "hogs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HAMMERS = 64 };

static atomic_bool stop;
static atomic_long rounds[5];
static FILE *file;

static void wake_often(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop))
        gort_sleep(500 * GORT_US);
}

static void use_malloc(uint64_t *state)
{
    unsigned char *kept[32];
    size_t sizes[32];
    for (int i = 0; i < 32; i++) {
        uint64_t r = test_random(state);
        sizes[i] = 1 + r % (r & 0x10000 ? 20000 : 200);
        kept[i] = malloc(sizes[i]);
        CHECK(kept[i]);
        memset(kept[i], i, sizes[i]);
        if (r & 0x20000) {
            sizes[i] = sizes[i] * 2 + 1;
            kept[i] = realloc(kept[i], sizes[i]);
            CHECK(kept[i]);
            memset(kept[i], i, sizes[i]);
        }
    }
    for (int i = 0; i < 32; i++) {
        for (size_t k = 0; k < sizes[i]; k += 1 + sizes[i] / 16)
            CHECK_EQ(kept[i][k], i);
        CHECK_EQ(kept[i][sizes[i] - 1], i);
        free(kept[i]);
    }
}

enum { TEXT = 1 << 20, TEXT_ENOUGH = TEXT - 100000 };

/* Lines of one write each: nobody may get between the parts of one. No more when it is nearly full: the test,
 * which would end then, may be late. */
static void use_stdio(uint64_t *state)
{
    uint64_t r = test_random(state) % 1000000;
    char text[80];
    if (ftell(file) <= TEXT_ENOUGH)
        CHECK_GT(fprintf(file, "%lu %s %lu\n", (unsigned long)r, "between", (unsigned long)(r * 7)), 0);
    CHECK_GT(snprintf(text, sizeof text, "%08lx|%.3f|%5s", (unsigned long)r, (double)r / 8, "ab"), 0);
    char *end;
    CHECK_EQ(strtoul(text, &end, 16), r);
    CHECK_STR(strrchr(text, '|'), "|   ab");
}

static void use_strtod(uint64_t *state)
{
    char text[64];
    double x = (double)(int64_t)test_random(state) / 1e6;
    snprintf(text, sizeof text, "%.17g", x);
    double back = strtod(text, NULL);
    CHECK_MSG(!(back < x) && !(back > x), "%s became %.17g", text, back);
}

static int compare_words(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void use_qsort(uint64_t *state)
{
    uint32_t words[500], sum = 0;
    for (int i = 0; i < 500; i++)
        sum += words[i] = (uint32_t)test_random(state);
    qsort(words, 500, sizeof *words, compare_words);
    for (int i = 1; i < 500; i++)
        CHECK_LE(words[i - 1], words[i]);
    for (int i = 0; i < 500; i++)
        sum -= words[i];
    CHECK_EQ(sum, 0);
}

static void use_localtime(uint64_t *state)
{
    time_t t = (time_t)(test_random(state) % 4000000000u);
    struct tm tm;
    CHECK(localtime_r(&t, &tm));
    tm.tm_isdst = 0;
    CHECK_EQ(mktime(&tm), t); /* UTC */
}

static void hammer(void *arg)
{
    static void (*const uses[])(uint64_t *) = {use_malloc, use_stdio, use_strtod, use_qsort, use_localtime};
    uint64_t state = test_seed() + (uint64_t)(uintptr_t)arg;
    for (int kind = (int)(intptr_t)arg % 5; !atomic_load(&stop); kind = (kind + 1) % 5) {
        for (int i = 0; i < 20 && !atomic_load(&stop); i++)
            uses[kind](&state);
        atomic_fetch_add(&rounds[kind], 1);
    }
}

static void check_lines(const char *text, size_t size)
{
    const char *end = text + size;
    while (text < end) {
        unsigned long a, b;
        int n = 0;
        CHECK_EQ(sscanf(text, "%lu between %lu\n%n", &a, &b, &n), 2);
        CHECK_EQ(b, a * 7);
        const char *next = memchr(text, '\n', (size_t)(end - text));
        CHECK(next);
        text = next + 1;
    }
}

TEST_GO(hammered_by_64, .procs = "1,2,4", .env = "TZ=UTC")
{
    gort_wg wg = {0};
    static char text[TEXT];
    file = fmemopen(text, sizeof text, "w");
    CHECK(file);
    setvbuf(file, NULL, _IOLBF, 256);
    test_seed();
    for (int i = 0; i < 3; i++)
        CHECK_EQ(gort_wg_go(&wg, wake_often, NULL), 0);
    for (intptr_t i = 0; i < HAMMERS; i++)
        CHECK_EQ(gort_wg_go(&wg, hammer, (void *)i), 0);
    int64_t from = gort_now();
    for (bool all = false; !all || gort_now() - from < 400 * GORT_MS;) {
        gort_sleep(10 * GORT_MS);
        all = true;
        for (int i = 0; i < 5; i++)
            all &= atomic_load(&rounds[i]) >= 4;
        CHECK_MSG(gort_now() - from < test_seconds(50), "they stand still");
        if (ftell(file) > TEXT_ENOUGH)
            break;
    }
    atomic_store(&stop, true);
    CHECK_EQ(gort_wg_wait_until(&wg, gort_in(test_seconds(50))), 0);
    CHECK_EQ(fflush(file), 0);
    check_lines(text, strlen(text));
    fclose(file);
}
