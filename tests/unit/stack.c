/* SPDX-License-Identifier: MIT */
/*
 * stack.c - the stacks of goroutines: size classes, guards that fault, reuse, reserving, taking all of it
 * down.
 * Covers: src/mem/stack.c src/mem/stack_class.h src/mem/scavenge.c
 */
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mem/sanitize.h"
#include "mem/stack.h"
#include "os/os.h"
#include "test.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

TEST(classes_are_powers_of_two)
{
    gort__stack_init(256 * KIB);
    CHECK_EQ(gort__stack_class(0), 18);
    CHECK_EQ(gort__stack_class(1), GORT_STACK_LOG2_MIN);
    CHECK_EQ(gort__stack_class(64 * KIB), 16);
    CHECK_EQ(gort__stack_class(64 * KIB + 1), 17);
    CHECK_EQ(gort__stack_class(MIB), 20);
    CHECK_EQ(gort__stack_class(MIB - 1), 20);
    CHECK_EQ(gort__stack_class(1024 * MIB), GORT_STACK_LOG2_MAX);
    CHECK_EQ(gort__stack_class(1024 * MIB + 1), 0);
    CHECK_EQ(gort__stack_class(SIZE_MAX), 0);
    gort__stack_init(100 * KIB);
    CHECK_EQ(gort__stack_class(0), 17);
    gort__stack_init(16 * KIB);
    CHECK_EQ(gort__stack_class(0), 16);
}

static bool dies_writing(volatile char *at)
{
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *at = 1;
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static void check_one(uint8_t log2, struct gort__stack_cache *cache)
{
    struct gort__stack *s = gort__stack_get(cache, log2);
    CHECK(s);
    char *lo = gort__stack_lo(s), *hi = gort__stack_hi(s);
    CHECK_EQ(s->log2, log2);
    CHECK_EQ((uintptr_t)hi % 16, 0);
    CHECK_EQ(hi - s->base, (size_t)1 << log2);
    CHECK_GE(lo - s->base, 4096);
    CHECK_LE(lo - s->base, 64 * KIB);
    CHECK_GE(hi - lo, ((size_t)1 << log2) / 16 * 15);
    lo[0] = hi[-1] = 1;
    CHECK(dies_writing(lo - 1));
    CHECK(dies_writing(s->base));
    CHECK(!dies_writing(lo));
    gort__stack_put(cache, s);
}

TEST(a_guard_lies_below_each)
{
    struct gort__stack_cache cache = {0};
    gort__os_init();
    gort__stack_init(256 * KIB);
    for (uint8_t log2 = GORT_STACK_LOG2_MIN; log2 <= 24; log2++) {
        check_one(log2, NULL);
        check_one(log2, &cache);
    }
    gort__stack_destroy(NULL);
}

TEST(the_last_is_reused_first)
{
    struct gort__stack_cache cache = {0};
    struct gort__stack *s[200];
    gort__os_init();
    gort__stack_init(64 * KIB);
    uint8_t log2 = gort__stack_class(0);
    for (int i = 0; i < 200; i++)
        CHECK(s[i] = gort__stack_get(&cache, log2));
    for (int i = 0; i < 20; i++)
        gort__stack_put(&cache, s[i]);
    for (int i = 19; i >= 0; i--)
        CHECK_EQ(gort__stack_get(&cache, log2), s[i]);

    /* The cache gives some of many away; another one finds them and nothing is mapped anew. */
    for (int i = 0; i < 200; i++)
        gort__stack_put(&cache, s[i]);
    CHECK_LE(cache.n, 64);
    CHECK_EQ(cache.top, s[199]);
    struct gort__stack_cache other = {0};
    gort__stack_cache_flush(&cache);
    CHECK_EQ(cache.n, 0);
    CHECK_EQ(cache.top, NULL);
    int known = 0;
    for (int i = 0; i < 200 + 16; i++) { /* and some that were prepared, but never used */
        struct gort__stack *again = gort__stack_get(&other, log2);
        for (int k = 0; k < 200; k++)
            if (s[k] == again) {
                known++;
                s[k] = NULL; /* each comes once */
            }
    }
    CHECK_EQ(known, 200);
    gort__stack_destroy(NULL);
}

/* Goroutines begin on pages that fall into different sets of a TLB, and on lines that fall into different
 * sets of a cache. */
TEST(neighbours_do_not_compete)
{
    enum { N = 64, LINES = 32 /* of a page, two at a time */ };
    gort__os_init();
    gort__stack_init(256 * KIB);
    for (uint8_t log2 = GORT_STACK_LOG2_MIN; log2 <= 20; log2++) {
        int pages[N] = {0}, lines[LINES] = {0}, most_pages = 0, most_lines = 0;
        for (int i = 0; i < N; i++) {
            struct gort__stack *s = gort__stack_get(NULL, log2);
            CHECK(s);
            uintptr_t top = (uintptr_t)gort__stack_top(s) - 1;
            int in_page = ++pages[top / gort__os_page() % N], in_line = ++lines[top / 128 % LINES];
            most_pages = in_page > most_pages ? in_page : most_pages;
            most_lines = in_line > most_lines ? in_line : most_lines;
        }
        CHECK_LE(most_pages, 4); /* 64 slots of 1 MiB are mapped in pieces, wherever there is room */
        CHECK_LE(most_lines, 16);
    }
    gort__stack_destroy(NULL);
}

TEST(what_was_reserved_can_be_had)
{
    gort__os_init();
    gort__stack_init(64 * KIB);
    int vmas = test_vma_count();
    CHECK_EQ(gort__stack_reserve(10000), 0);
    for (int i = 0; i < 10000; i++) {
        struct gort__stack *s = gort__stack_get(NULL, gort__stack_class(0));
        CHECK_MSG(s, "only %d of 10,000 reserved stacks could be had", i);
    }
    if (!test_under_emulator())
        CHECK_LT(test_vma_count(), vmas + 200); /* many slots share a mapping */
    gort__stack_unreserve(10000);
    gort__stack_destroy(NULL);
}

TEST(too_much_is_refused)
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the tools need more address space than the limit leaves");
    gort__os_init();
    gort__stack_init(256 * KIB);
    struct rlimit limit = {512 * MIB, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK_LT(gort__stack_reserve(1000000), 0);
    size_t n = 0;
    while (n < 100000 && gort__stack_reserve(1) == 0)
        n++;
    CHECK_GT(n, 500); /* of some 2000 that fit */
    CHECK_LT(n, 100000);
    CHECK_EQ(gort__stack_get(NULL, 30), NULL);
    for (size_t i = 0; i < n; i++)
        CHECK_MSG(gort__stack_get(NULL, gort__stack_class(0)), "only %zu of %zu reserved stacks could be had",
                  i, n);
    gort__stack_destroy(NULL);
    CHECK_EQ(gort__stack_reserve(100), 0); /* starts over */
    gort__stack_destroy(NULL);
}

static const char *kept;

static bool keep(const char *base, size_t size)
{
    return kept >= base && kept < base + size;
}

TEST(keeps_what_it_is_told_to)
{
    gort__os_init();
    gort__stack_init(64 * KIB);
    int before = test_vma_count();
    char *middle = NULL;
    for (int i = 0; i < 500; i++) {
        struct gort__stack *s = gort__stack_get(NULL, gort__stack_class(0));
        if (i == 250)
            middle = gort__stack_lo(s);
    }
    kept = middle;
    strcpy(middle, "still here");
    gort__stack_destroy(keep);
    CHECK_STR(middle, "still here");
    CHECK(dies_writing(middle + 64 * KIB));
    if (!test_under_sanitizer())
        CHECK_LE(test_vma_count(), before + 3); /* the slot and its guard */
}

TEST(large_stacks_give_their_pages_back)
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    gort__os_init();
    gort__stack_init(64 * KIB);
    long before = test_rss_kb();
    for (int i = 0; i < 8; i++) {
        struct gort__stack *s = gort__stack_get(NULL, gort__stack_class(16 * MIB));
        CHECK(s);
        memset(gort__stack_lo(s), 1, (size_t)(gort__stack_hi(s) - gort__stack_lo(s)));
        CHECK_GT(test_rss_kb(), before + 15000);
        gort__stack_put(NULL, s);
    }
    CHECK_LT(test_rss_kb(), before + 8000);
    gort__stack_destroy(NULL);
}

enum { MANY = 100, FEW = 5 };

/* A burst of stacks that are written to and given back. How many had kept what the last burst wrote. */
static int burst_of(int n)
{
    struct gort__stack *s[MANY + FEW];
    int warm = 0;
    for (int i = 0; i < n; i++) {
        CHECK(s[i] = gort__stack_get(NULL, gort__stack_class(0)));
        warm += gort__stack_hi(s[i])[-1] == 1;
        gort__stack_hi(s[i])[-1] = 1;
    }
    for (int i = 0; i < n; i++)
        gort__stack_put(NULL, s[i]);
    return warm;
}

/* All of them had, or none. */
static bool burst(void)
{
    int warm = burst_of(MANY);
    CHECK(warm == 0 || warm == MANY);
    return warm != 0;
}

/* So much time passes with nothing to do. True: some are left that will give their pages back. */
static bool pause_for(int ticks)
{
    static int64_t now = 1;
    bool left = true;
    while (ticks--) {
        now += INT64_C(200000000);
        left = gort__scavenge_age(now, false);
        while (!gort__scavenge_trim(INT64_MAX))
            ;
    }
    return left;
}

/* A look for what can be mapped anew comes to its end, however large a slot is, and all that was used can be
 * used again. */
TEST(trimming_ends_whatever_the_size)
{
    gort__os_init();
    gort__stack_init(256 * KIB);
    for (uint8_t log2 = GORT_STACK_LOG2_MIN; log2 <= 28; log2++) {
        struct gort__stack *s[40];
        int n = log2 < 22 ? 40 : 3;
        for (int turn = 0; turn < 2; turn++) {
            for (int i = 0; i < n; i++) {
                CHECK(s[i] = gort__stack_get(NULL, log2));
                memset(gort__stack_hi(s[i]) - 4096, 1, 4096);
                *gort__stack_lo(s[i]) = 1;
            }
            CHECK(dies_writing(gort__stack_lo(s[0]) - 1));
            CHECK(dies_writing(gort__stack_lo(s[n - 1]) - 1));
            for (int i = 0; i < n; i++)
                gort__stack_put(NULL, s[i]);
            gort__scavenge_age(gort__os_now(), true);
            CHECK(gort__scavenge_trim(gort__os_now() + test_seconds(20)));
            for (int i = 0; i < n; i++)
                CHECK_EQ(s[i]->cold, true);
        }
    }
    gort__stack_destroy(NULL);
}

TEST(bursts_that_come_again_keep_their_pages)
{
    gort__os_init();
    gort__stack_init(64 * KIB);
    CHECK(!burst());
    CHECK(pause_for(1));
    CHECK(burst()); /* fast enough */
    CHECK(!pause_for(2));
    CHECK(!burst()); /* that was a mistake */
    for (int i = 0; i < 20; i++) {
        CHECK(pause_for(2));
        CHECK(burst());
    }
    CHECK(!pause_for(4));  /* but its memory is back soon, too */
    CHECK(!pause_for(20)); /* none comes any more: patience ends, the next one is new */
    CHECK(!burst());
    CHECK(!pause_for(2));
    gort__stack_destroy(NULL);
}

/* One that is still ending may take its time: the next one may begin when it is over. */
TEST(bursts_that_end_slowly_keep_their_pages)
{
    enum { EACH = MANY / 8 };
    static struct gort__stack *s[MANY];
    gort__os_init();
    gort__stack_init(64 * KIB);
    CHECK(!burst());
    CHECK(!pause_for(2));
    CHECK(!burst()); /* that was a mistake */
    for (int round = 0; round < 5; round++) {
        int warm = 0;
        for (int i = 0; i < MANY; i++) {
            CHECK(s[i] = gort__stack_get(NULL, gort__stack_class(0)));
            warm += gort__stack_hi(s[i])[-1] == 1;
            gort__stack_hi(s[i])[-1] = 1;
        }
        CHECK_EQ(warm, MANY);
        for (int i = 0; i < MANY; i++) {
            gort__stack_put(NULL, s[i]);
            if (i % EACH == EACH - 1)
                pause_for(1);
        }
    }
    CHECK(!pause_for(4));
    gort__stack_destroy(NULL);
}

/* Those that even the largest burst leaves over lose their pages and are not missed: that proves nothing. */
TEST(a_few_too_many_do_not_end_the_patience)
{
    gort__os_init();
    gort__stack_init(64 * KIB);
    CHECK_EQ(gort__stack_reserve(MANY), 0);
    CHECK_EQ(burst_of(MANY + FEW), 0);
    CHECK(!pause_for(2));
    CHECK_EQ(burst_of(MANY + FEW), 0); /* that was a mistake */
    for (int i = 0; i < 20; i++) {
        pause_for(2);
        CHECK_EQ(burst_of(MANY), MANY);
    }
    CHECK(!pause_for(20)); /* but many that are not missed do */
    CHECK_EQ(burst_of(MANY), 0);
    CHECK(!pause_for(2));
    gort__stack_destroy(NULL);
}
