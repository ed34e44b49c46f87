/* SPDX-License-Identifier: MIT */
/*
 * spawn.c - starting goroutines: each runs exactly once with what it was given, from anywhere, in any number,
 * and costs what it should.
 * Covers: src/sched/core/spawn.c src/sched/core/self.c src/sched/core/extra.c src/sched/core/g.c
 * Covers: src/mem/argmem.c
 */
#include <gort.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static atomic_long counter;

static void count(void *unused)
{
    (void)unused;
    atomic_fetch_add(&counter, 1);
}

static void yield_until(long n)
{
    while (atomic_load(&counter) < n)
        gort_yield();
}

/* --- a value, a chain, a tree ------------------------------------------------------------------ */

static void write_value(void *at)
{
    *(int *)at = 42;
}

TEST_GO(the_value_is_seen, .procs = "1,2", .fuzz = true)
{
    for (int i = 0; i < 1000; i++) {
        gort_wg wg = {0};
        int value = 0; /* not atomic: waiting orders it */
        CHECK_EQ(gort_wg_go(&wg, write_value, &value), 0);
        CHECK_EQ(gort_wg_wait(&wg), 0);
        CHECK_EQ(value, 42);
    }
}

#define LINKS 10000
static struct {
    gort_wg ready;
    long value;
} chain[LINKS + 1];

static void link_of_chain(long i)
{
    CHECK_EQ(gort_wg_wait(&chain[i + 1].ready), 0);
    chain[i].value = chain[i + 1].value + 1;
    gort_wg_done(&chain[i].ready);
}

TEST_GO(a_chain_of_ten_thousand, .procs = "1,2,4", .fuzz = true)
{
    if (LINKS > test_most_goroutines())
        SKIP("only without gcc's ThreadSanitizer: it knows %ld goroutines at a time", test_most_goroutines());
    for (long i = 0; i <= LINKS; i++)
        gort_wg_add(&chain[i].ready, 1);
    for (long i = 0; i < LINKS; i++)
        CHECK_EQ(GORT_GO(link_of_chain, i), 0);
    chain[LINKS].value = 7;
    gort_wg_done(&chain[LINKS].ready);
    gort_wg_wait(&chain[0].ready);
    CHECK_EQ(chain[0].value, LINKS + 7);
    while (gort_count() > 1)
        gort_yield();
}

static gort_wg tree_done;

static void node(int depth)
{
    atomic_fetch_add(&counter, 1);
    for (int i = 0; depth && i < 2; i++) {
        gort_wg_add(&tree_done, 1);
        CHECK_EQ(GORT_GO(node, depth - 1), 0);
    }
    gort_wg_done(&tree_done);
}

TEST_GO(a_tree, .procs = "1,2,4,64", .fuzz = true)
{
    int depth = test_under_sanitizer() || test_under_emulator() ? 12 : 17;
    gort_wg_add(&tree_done, 1);
    CHECK_EQ(GORT_GO(node, depth), 0);
    gort_wg_wait(&tree_done);
    CHECK_EQ(atomic_load(&counter), (2L << depth) - 1);
}

static long depth_left;
static long rss_early;
static gort_wg last_one;

static void daisy(void *unused)
{
    (void)unused;
    if (--depth_left == 0) {
        gort_wg_done(&last_one);
        return;
    }
    if (depth_left % 100000 == 0 && !rss_early)
        rss_early = test_rss_kb();
    CHECK_EQ(gort_go(daisy, NULL), 0);
}

/* Each starts the next and ends: the record and the stack go round, nothing grows. */
TEST_GO(a_million_in_a_row_reuse_one, .procs = "1,2")
{
    depth_left = test_scaled(1000000, 200001);
    gort_wg_add(&last_one, 1);
    CHECK_EQ(gort_go(daisy, NULL), 0);
    gort_wg_wait(&last_one);
    CHECK_EQ(depth_left, 0);
    CHECK(rss_early);
    if (!test_under_valgrind() && !test_under_emulator() && !test_under_sanitizer())
        CHECK_LT(test_rss_kb(), rss_early + 4096); /* a few bytes each, of 900,000 */
}

/* --- each once -------------------------------------------------------------------------------- */

#define SPAWNERS 8
static _Atomic(uint8_t) *ran;
static long ids;
static gort_wg all_ran;

static void run_id(long id)
{
    CHECK_MSG(atomic_fetch_add(&ran[id], 1) == 0, "number %ld ran twice", id);
    if (id % 7 == 0)
        gort_yield();
    gort_wg_done(&all_ran);
}

static void burst(long from, long to, uint64_t seed)
{
    while (from < to) {
        long n = 1 + (long)(test_random(&seed) % 1500); /* a ring holds 256 */
        for (; n && from < to; n--, from++)
            CHECK_EQ(GORT_GO(run_id, from), 0);
        gort_yield();
    }
}

TEST_GO(each_of_a_million_runs_once, .procs = "1,2,4,64", .fuzz = true)
{
    ids = test_scaled(1000000, 50000);
    CHECK(ran = calloc((size_t)ids, 1));
    gort_wg_add(&all_ran, (int)ids);
    for (long i = 0; i < SPAWNERS; i++)
        CHECK_EQ(GORT_GO(burst, ids * i / SPAWNERS, ids * (i + 1) / SPAWNERS, test_seed() + (uint64_t)i), 0);
    gort_wg_wait(&all_ran);
    for (long i = 0; i < ids; i++)
        CHECK_MSG(ran[i] == 1, "number %ld ran %d times", i, ran[i]);
}

/* --- how many there are, and who --------------------------------------------------------------- */

static long dumped_goroutines(void)
{
    int fds[2];
    static char text[1 << 16];
    CHECK_EQ(pipe(fds), 0);
    gort_dump(fds[1]);
    close(fds[1]);
    size_t n = 0;
    for (ssize_t r; (r = read(fds[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)r;
    text[n] = '\0';
    close(fds[0]);
    long lines = 0;
    for (char *at = text; (at = strstr(at, "goroutine ")) != NULL; at++)
        lines += at == text || at[-1] == '\n';
    return lines;
}

static gort_wg gate;

static void wait_at_gate(void *unused)
{
    (void)unused;
    gort_wg_wait(&gate);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(count_says_how_many, .procs = "1,4")
{
    CHECK_EQ(gort_count(), 1);
    CHECK_EQ(dumped_goroutines(), 1);
    gort_wg_add(&gate, 1);
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(gort_go(wait_at_gate, NULL), 0);
        CHECK_EQ(gort_count(), 2 + i);
    }
    CHECK_EQ(dumped_goroutines(), 101);
    for (int i = 0; i < 1000; i++)
        gort_yield();
    CHECK_EQ(gort_count(), 101);
    CHECK_EQ(dumped_goroutines(), 101);
    gort_wg_done(&gate);
    yield_until(100);
    while (gort_count() > 1)
        gort_yield();
    CHECK_EQ(dumped_goroutines(), 1);
}

TEST_GO(count_comes_back_down, .procs = "1,2,4", .fuzz = true)
{
    long n = test_scaled(100000, 10000);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(gort_go(count, NULL), 0);
        if (i % 1000 == 0) {
            size_t c = gort_count();
            CHECK(c >= 1 && c <= (size_t)i + 2);
            gort_yield();
        }
    }
    yield_until(n);
    while (gort_count() != 1)
        gort_yield();
}

static _Atomic(uint64_t) *ids_seen;

static void note_id(long slot)
{
    uint64_t id = gort_id();
    atomic_store(&ids_seen[slot], id);
    gort_yield();
    CHECK_EQ(gort_id(), id); /* also on another thread */
    atomic_fetch_add(&counter, 1);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void *note_from_thread(void *arg)
{
    CHECK_EQ(gort_id(), 0);
    for (long i = 0; i < 1000; i++)
        CHECK_EQ(GORT_GO(note_id, (long)(intptr_t)arg + i), 0);
    return NULL;
}

TEST_GO(ids_are_unique_and_main_is_1, .procs = "1,2,4", .fuzz = true)
{
    long n = test_scaled(100000, 10000);
    pthread_t thread;
    CHECK_EQ(gort_id(), 1);
    CHECK_STR(gort_name(), "main");
    CHECK(ids_seen = calloc((size_t)n + 1000, sizeof *ids_seen));
    CHECK_EQ(pthread_create(&thread, NULL, note_from_thread, (void *)(intptr_t)n), 0);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(GORT_GO(note_id, i), 0);
        if (i % 500 == 0)
            gort_yield();
    }
    yield_until(n + 1000);
    pthread_join(thread, NULL);
    uint64_t *sorted = malloc(((size_t)n + 1000) * sizeof *sorted);
    for (long i = 0; i < n + 1000; i++)
        sorted[i] = atomic_load(&ids_seen[i]);
    qsort(sorted, (size_t)n + 1000, sizeof *sorted, by_value);
    CHECK_GT(sorted[0], 1);
    for (long i = 1; i < n + 1000; i++)
        CHECK_NE(sorted[i], sorted[i - 1]);
    free(sorted);
}

/* --- from plain threads ------------------------------------------------------------------------ */

static gort_wg round_done;
static atomic_int thread_round, main_round;

static void finish_round(void *unused)
{
    (void)unused;
    gort_wg_done(&round_done);
}

static void *spawn_rounds(void *unused)
{
    (void)unused;
    uint64_t random = test_seed();
    CHECK_GE(gort_count(), 1); /* attached from here on: waiting for this thread is no deadlock */
    for (int i = 1; i <= 200; i++) {
        atomic_store(&thread_round, i);
        while (atomic_load(&main_round) < i)
            usleep(10);
        /* By now main waits, or is about to: vary how far the runtime has gone to sleep. */
        if (i % 2)
            usleep((useconds_t)(test_random(&random) % 1000));
        CHECK_EQ(gort_go(finish_round, NULL), 0);
    }
    return NULL;
}

TEST_GO(a_thread_starts_one_while_all_sleep, .procs = "1,2,4", .fuzz = true)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, spawn_rounds, NULL), 0);
    for (int i = 1; i <= 200; i++) {
        while (atomic_load(&thread_round) < i)
            gort_yield();
        gort_wg_add(&round_done, 1);
        atomic_store(&main_round, i);
        gort_wg_wait(&round_done);
    }
    pthread_join(thread, NULL);
}

static atomic_bool stop;

static void be_busy(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop))
        gort_yield();
}

static void *spawn_and_wait(void *worst)
{
    for (long i = 1; i <= 100; i++) {
        int64_t from = gort_now();
        CHECK_EQ(gort_go(count, NULL), 0);
        while (atomic_load(&counter) < i)
            usleep(10);
        int64_t took = gort_now() - from;
        if (took > *(int64_t *)worst)
            *(int64_t *)worst = took;
    }
    atomic_store(&stop, true);
    return NULL;
}

TEST_GO(a_thread_starts_one_under_load, .procs = "1,2,4", .fuzz = true)
{
    pthread_t thread;
    int64_t worst = 0;
    for (int i = 0; i < 500; i++) /* more than a ring holds */
        CHECK_EQ(gort_go(be_busy, NULL), 0);
    CHECK_EQ(pthread_create(&thread, NULL, spawn_and_wait, &worst), 0);
    be_busy(NULL);
    pthread_join(thread, NULL);
    CHECK_LT(worst, test_seconds(30));
}

/* --- arguments --------------------------------------------------------------------------------- */

struct sized {
    uint16_t len;
    unsigned char byte[GORT_GO_COPY_MAX - 2];
};

static void check_copy(void *arg)
{
    CHECK_EQ((uintptr_t)arg % _Alignof(max_align_t), 0);
    struct sized *s = arg;
    size_t len = s->len;
    for (int round = 0; round < 3; round++) { /* alive until the end, and ours to change */
        for (size_t i = 0; i + 2 < len; i++) {
            CHECK_EQ(s->byte[i], (unsigned char)(len * 7 + i + (size_t)round));
            s->byte[i]++;
        }
        gort_yield();
    }
    atomic_fetch_add(&counter, 1);
}

TEST_GO(copies_any_size, .procs = "1,4", .fuzz = true)
{
    static struct sized s[2];
    for (size_t len = 2; len <= GORT_GO_COPY_MAX; len++) {
        /* From an odd address; reused for the next one at once. */
        struct sized *at = (struct sized *)(void *)((char *)s + len % 2 * 3);
        uint16_t n = (uint16_t)len;
        memcpy(at, &n, 2);
        for (size_t i = 0; i + 2 < len; i++)
            ((unsigned char *)at)[2 + i] = (unsigned char)(len * 7 + i);
        CHECK_EQ(gort_go_copy(check_copy, at, len), 0);
    }
    memset(s, 0xee, sizeof s);
    yield_until(GORT_GO_COPY_MAX - 1);
    CHECK_EQ(gort_go_copy(count, s, GORT_GO_COPY_MAX + 1), -EINVAL);
    CHECK_EQ(gort_go_copy(count, s, SIZE_MAX), -EINVAL);
    CHECK_EQ(gort_go_copy(count, NULL, 0), 0);
    CHECK_EQ(gort_go_copy(count, s, 1), 0);
    yield_until(GORT_GO_COPY_MAX + 1);
}

TEST_GO(copies_are_freed, .procs = "1", .env = "GORT_DEBUG=preempt=off")
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    char block[GORT_GO_COPY_MAX] = {0};
    long early = 0, n = test_scaled(200000, 20000);
    for (long i = 0; i < n; i++) {
        CHECK_EQ(gort_go_copy(count, block, sizeof block), 0);
        if (i % 100 == 99)
            yield_until(i - 10);
        if (i == n / 10)
            early = test_rss_kb();
    }
    yield_until(n);
    CHECK_LT(test_rss_kb(), early + 4096);
}

static int zero_calls;

static void take0(void)
{
    zero_calls++;
    atomic_fetch_add(&counter, 1);
}
static void take1(int a)
{
    CHECK_EQ(a, -5);
    atomic_fetch_add(&counter, 1);
}
static void take2(const char *a, signed char b)
{
    CHECK_STR(a, "text");
    CHECK_EQ(b, -128);
    atomic_fetch_add(&counter, 1);
}
static void take3(unsigned short a, int64_t b, bool c)
{
    CHECK_EQ(a, 65535);
    CHECK_EQ(b, INT64_MIN);
    CHECK_EQ(c, true);
    atomic_fetch_add(&counter, 1);
}
static void take4(char a, unsigned b, void *c, short d)
{
    CHECK_EQ(a, 'a');
    CHECK_EQ(b, UINT32_MAX);
    CHECK_EQ(c, &counter);
    CHECK_EQ(d, -32768);
    atomic_fetch_add(&counter, 1);
}
static void take5(long a, int b, int c, size_t d, void (*e)(void))
{
    CHECK(a == -1 && b == -2 && c == INT32_MIN && d == SIZE_MAX && e == take0);
    atomic_fetch_add(&counter, 1);
}
static void take6(int a, int b, int c, int d, int e, int f)
{
    CHECK(a == -1 && b == 2 && c == -3 && d == 4 && e == -5 && f == 6);
    atomic_fetch_add(&counter, 1);
}
static void widen(int64_t a, uint64_t b, long c)
{
    CHECK_EQ(a, -9); /* from an int */
    CHECK_EQ(b, 3000000000u);
    CHECK_EQ(c, -1);
    atomic_fetch_add(&counter, 1);
}

static int evaluated;

static int once(void)
{
    evaluated++;
    return -5;
}

TEST_GO(typed_arguments_arrive, .procs = "1,4")
{
    signed char small = -1;
    CHECK_EQ(GORT_GO(take0), 0);
    CHECK_EQ(GORT_GO(take1, once()), 0);
    CHECK_EQ(GORT_GO(take2, "text", (signed char)-128), 0);
    CHECK_EQ(GORT_GO(take3, (unsigned short)65535, INT64_MIN, true), 0);
    CHECK_EQ(GORT_GO(take4, 'a', UINT32_MAX, &counter, (short)-32768), 0);
    CHECK_EQ(GORT_GO(take5, -1, -2, INT32_MIN, SIZE_MAX, take0), 0);
    CHECK_EQ(GORT_GO(take6, -1, 2, -3, 4, -5, 6), 0);
    CHECK_EQ(GORT_GO(&widen, -9, 3000000000u, small), 0);
    yield_until(8);
    CHECK_EQ(evaluated, 1);
    CHECK_EQ(zero_calls, 1);
}

/* --- names and stacks -------------------------------------------------------------------------- */

static void check_name(const char *want)
{
    CHECK_STR(gort_name(), want);
    gort_set_name("renamed");
    gort_yield();
    CHECK_STR(gort_name(), "renamed");
    atomic_fetch_add(&counter, 1);
}

TEST_GO(names_are_copied, .procs = "1,2")
{
    char name[64] = "worker";
    gort_attr attr = {.name = name};
    CHECK_EQ(gort_go_with(&attr, (void (*)(void *))check_name, "worker"), 0);
    strcpy(name, "0123456789012345678901234567890123456789");
    CHECK_EQ(gort_go_with(&attr, (void (*)(void *))check_name, "0123456789012345678901234567890"), 0);
    strcpy(name, "gone");
    CHECK_EQ(gort_go_with(NULL, (void (*)(void *))check_name, ""), 0);
    CHECK_EQ(gort_go_with(&(gort_attr){0}, (void (*)(void *))check_name, ""), 0);
    yield_until(4);
    for (int i = 0; i < 100; i++) /* records come round: no old name sticks */
        CHECK_EQ(gort_go((void (*)(void *))check_name, ""), 0);
    yield_until(104);
    CHECK_STR(gort_name(), "main");
    gort_set_name(NULL);
    CHECK_STR(gort_name(), "");
}

/* Goes down until `bytes` of stack are in use, a yield at the deepest point, and up again. */
static __attribute__((noinline)) int dig(const char *top, size_t bytes, int level)
{
    volatile char here[1500];
    memset((void *)(uintptr_t)here, level, sizeof here);
    size_t used = (size_t)((uintptr_t)top - (uintptr_t)here);
    int below = 0;
    if (used < bytes)
        below = dig(top, bytes, level + 1);
    else
        gort_yield();
    for (size_t i = 0; i < sizeof here; i += 100)
        CHECK_EQ((unsigned char)here[i], (unsigned char)level);
    return below + 1;
}

static void dig_80_percent(void *size)
{
    char top = 0;
    CHECK_GT(dig(&top, (size_t)(uintptr_t)size / 10 * 8, 0), 5);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(stacks_are_as_large_as_asked, .procs = "1,2")
{
    static const size_t sizes[] = {65536, (size_t)256 << 10, (size_t)1 << 20, (size_t)4 << 20,
                                   (size_t)64 << 20};
    long n = 0;
    for (int round = 0; round < 4; round++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++, n++) {
            gort_attr attr = {.stack_size = sizes[i]};
            CHECK_EQ(gort_go_with(&attr, dig_80_percent, (void *)sizes[i]), 0);
        }
    yield_until(n);
    CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = ((size_t)1 << 30) + 1}, count, NULL), -EINVAL);
    CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = SIZE_MAX}, count, NULL), -EINVAL);
    for (size_t i = 0; i < sizeof((gort_attr *)NULL)->reserved / sizeof(uintptr_t); i++) {
        gort_attr attr = {.name = "of a later version"};
        attr.reserved[i] = 1;
        CHECK_EQ(gort_go_with(&attr, count, NULL), -EINVAL);
    }
    CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = 1}, count, NULL), 0);
    yield_until(n + 1);
    while (gort_count() > 1)
        gort_yield();
}

TEST_GO(main_has_eight_megabytes)
{
    char top = 0;
    CHECK_GT(dig(&top, ((size_t)8 << 20) / 10 * 8, 0), 1000);
}

static int dig_by_config(void *size)
{
    CHECK_EQ(gort_go(dig_80_percent, size), 0);
    yield_until(1);
    return 5;
}

TEST(the_default_size_can_be_set)
{
    gort_config config = {.stack_size = (size_t)2 << 20};
    CHECK_EQ(gort_run_with(&config, dig_by_config, (void *)((size_t)2 << 20)), 5);
}

TEST(the_default_size_from_the_environment, .env = "GORT_STACK=2097152")
{
    CHECK_EQ(gort_run(dig_by_config, (void *)((size_t)2 << 20)), 5);
}

/* --- what a goroutine costs before it runs ------------------------------------------------------ */

TEST_GO(not_run_yet_costs_its_record, .procs = "1", .serial = true)
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
    const long n = 200000;
    CHECK_EQ(gort_go(count, NULL), 0);
    yield_until(1);
    long before = test_rss_kb();
    gort_preempt_off();
    for (long i = 0; i < n; i++)
        CHECK_EQ(gort_go(count, NULL), 0);
    long bytes = (test_rss_kb() - before) * 1024 / n;
    CHECK_EQ(atomic_load(&counter), 1); /* none has run: there is one P, and it is ours */
    gort_preempt_on();
    CHECK_MSG(bytes >= 100 && bytes <= 240, "a goroutine that has not run costs %ld bytes", bytes);
    yield_until(n + 1);
}
