/* SPDX-License-Identifier: MIT */
/*
 * stack.c - the stacks of goroutines as a program sees them: room, memory that comes and goes, what is told
 * about them.
 * Covers: src/mem/stack.c src/mem/scavenge.c src/scavenge/scavenge_stack.c src/scavenge/scavenge_g.c src/observe/census.c
 * Covers: src/os/linux/pages.c src/os/linux/vm.c
 */
#include <netdb.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "waiting.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static atomic_long counter;
static gort_wg gate;

static void no_counting(void)
{
    if (test_under_sanitizer() || test_under_valgrind() || test_under_emulator())
        SKIP("only natively, without sanitizers: the memory of the tools would be counted too");
}

/* Uses the stack down to `low`, a KiB a call; what a tool adds to each frame counts. */
__attribute__((noinline)) static long use_down_to(const char *low)
{
    volatile char frame[1000];
    frame[0] = 2;
    frame[999] = 1;
    long below = (const char *)__builtin_frame_address(0) - 2 * KIB < low ? 0 : use_down_to(low);
    __asm__ volatile(""
                     /* Else clang keeps two bytes of it, and no recursion. */
                     : "+r"(below)
                     : "r"(frame)
                     : "memory");
    return below + frame[0] + frame[999];
}

/* Uses about `bytes` of stack. */
static long use(size_t bytes)
{
    return use_down_to((const char *)__builtin_frame_address(0) - bytes);
}

/* --- room ----------------------------------------------------------------------------------------------------- */

static void use_most(void *size)
{
    use((size_t)(uintptr_t)size / 10 * 9);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(nine_tenths_of_each_class, .procs = "1,2")
{
    long n = 0;
    size_t largest = test_under_sanitizer() ? 4 * MIB : 256 * MIB;
    for (size_t size = 64 * KIB; size <= largest; size *= 4) {
        CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = size}, use_most, (void *)(uintptr_t)size), 0);
        for (n++; atomic_load(&counter) < n;)
            gort_yield();
    }
}

/* The largest there is: it needs a GiB of memory for a moment. */
TEST_GO(nine_tenths_of_a_gib, .procs = "1", .serial = true)
{
    size_t size = 1024 * MIB;
    no_counting();
    FILE *f = fopen("/proc/meminfo", "r");
    char line[256];
    long kb = 0;
    while (f && !kb && fgets(line, sizeof line, f))
        sscanf(line, "MemAvailable: %ld", &kb);
    if (f)
        fclose(f);
    if (kb < 3 * 1024 * 1024)
        SKIP("needs 3 GiB of free memory, found %ld KiB", kb);
    long before = test_rss_kb();
    CHECK_EQ(gort_go_with(&(gort_attr){.stack_size = size}, use_most, (void *)(uintptr_t)size), 0);
    while (atomic_load(&counter) < 1)
        gort_yield();
    while (gort_count() > 1)
        gort_yield();
    CHECK_LT(test_rss_kb(), before + 64 * 1024); /* the pages of a large one go with its goroutine */
}

static void chain(const int *above, int n)
{
    int mine = n;
    CHECK(!above || *above == n + 1);
    if (n)
        chain(&mine, n - 1);
    gort_yield();
    CHECK_EQ(mine, n);
}

static void pointers_into_frames(void *unused)
{
    (void)unused;
    chain(NULL, 200);
    gort_lock_thread();
    chain(NULL, 200);
}

TEST_GO(pointers_to_locals_stay, .procs = "1,2", .fuzz = true)
{
    gort_wg wg = {0};
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_wg_go(&wg, pointers_into_frames, NULL), 0);
    CHECK_EQ(gort_wg_wait(&wg), 0);
}

static int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void call_libraries(void *unused)
{
    (void)unused;
    char local[64 * KIB], text[1200];
    memset(local, 7, sizeof local);
    snprintf(text, sizeof text, "%.300f %s %300d", 1e300, "x", local[100]);
    CHECK_GT(strlen(text), 300);
    int v[5000];
    for (int i = 0; i < 5000; i++)
        v[i] = i * 7919 % 5000;
    qsort(v, 5000, sizeof *v, compare);
    for (int i = 0; i < 5000; i++)
        CHECK_EQ(v[i], i);
    struct addrinfo *found = NULL, hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    if (getaddrinfo("localhost", "80", &hints, &found) == 0)
        freeaddrinfo(found);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(libraries_have_room, .procs = "1,2")
{
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_go(call_libraries, NULL), 0);
    while (atomic_load(&counter) < 4)
        gort_yield();
}

static void movaps(void *unused)
{
    (void)unused;
    _Alignas(16) volatile float v[4] = {1, 2, 3, 4};
    CHECK_EQ((uintptr_t)v % 16, 0);
    CHECK_EQ((uintptr_t)__builtin_frame_address(0) % 16, 0);
    atomic_fetch_add(&counter, 1);
}

TEST_GO(frames_are_aligned, .procs = "1,2")
{
    gort_wg_add(&gate, 1);
    for (int i = 0; i < 100; i++) /* all colours, and stacks that were used before */
        CHECK_EQ(gort_go(movaps, NULL), 0);
    while (atomic_load(&counter) < 100)
        gort_yield();
}

/* --- memory that comes and goes ------------------------------------------------------------------------------- */

static void go_deep_and_wait(void *size)
{
    use((size_t)(uintptr_t)size);
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(&gate);
    use((size_t)(uintptr_t)size); /* the pages come back, and nothing above was lost */
    atomic_fetch_add(&counter, 1);
}

static void start(long n, size_t deep)
{
    gort_wg_add(&gate, 1);
    atomic_store(&counter, 0);
    for (long i = 0; i < n; i++)
        CHECK_EQ(gort_go(go_deep_and_wait, (void *)(uintptr_t)deep), 0);
    while (atomic_load(&counter) < n)
        gort_yield();
}

static void finish_beside(long n, size_t others)
{
    gort_wg_done(&gate);
    while (atomic_load(&counter) < 2 * n)
        gort_yield();
    while (gort_count() > 1 + others)
        gort_yield();
}

static void finish(long n)
{
    finish_beside(n, 0);
}

static long status_kb(const char *field)
{
    char line[256];
    long kb = -1;
    FILE *f = fopen("/proc/self/status", "r");
    CHECK(f);
    while (kb < 0 && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0)
            sscanf(line + strlen(field), ": %ld", &kb);
    fclose(f);
    return kb;
}

static bool rss_below(void *kb)
{
    return test_rss_kb() < *(long *)kb;
}

/* test_eventually blocks the thread; here the others must be able to run. */
static void wait_for_rss(long kb)
{
    for (int64_t until = gort_in(test_seconds(20)); gort_now() < until && !rss_below(&kb);)
        gort_sleep(1 * GORT_MS);
    CHECK_LT(test_rss_kb(), kb);
}

#define PARKED 500
static void deep_ones_give_back(void)
{
    start(PARKED, 0);
    long floor = test_rss_kb();
    finish(PARKED);
    start(PARKED, 200 * KIB);
    long high = status_kb("VmHWM"); /* some of it may be gone already */
    CHECK_GT(high, floor + PARKED * 50);
    wait_for_rss(floor + (high - floor) / 10);
    finish(PARKED);
}

TEST_GO(parked_ones_give_back_what_they_do_not_use, .procs = "1,2", .fuzz = true)
{
    no_counting();
    deep_ones_give_back();
}

TEST_GO(the_same_by_reading_the_page_map, .env = "GORT_DEBUG=nopagescan=1,noguard=1")
{
    no_counting();
    deep_ones_give_back();
}

static void doze(int ms)
{
    for (int i = 0; i < ms; i++)
        gort_sleep(1 * GORT_MS);
}

/* The process was much larger once, for whatever reason: what it is now is what growth is measured by. */
TEST_GO(parked_ones_give_back_after_a_burst, .procs = "1,2")
{
    no_counting();
    size_t size = 2 * (size_t)PARKED * 200 * KIB;
    char *burst = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(burst != MAP_FAILED);
    memset(burst, 1, size);
    doze(500); /* long enough to be noticed, and to be missed */
    CHECK_EQ(munmap(burst, size), 0);
    doze(300);
    start(PARKED, 0);
    long floor = test_rss_kb();
    finish(PARKED);
    start(PARKED, 200 * KIB);
    wait_for_rss(floor + PARKED * 20);
    finish(PARKED);
}

/* Nothing happens for so long that nobody looks any more: who goes deep after that is seen, too. */
TEST_GO(parked_ones_give_back_after_a_rest, .procs = "1,2")
{
    no_counting();
    CHECK_EQ(gort_sleep(1500 * GORT_MS), 0);
    deep_ones_give_back();
}

TEST_GO(free_ones_give_their_memory_back, .procs = "1,2")
{
    no_counting();
    start(10, 0);
    long floor = test_rss_kb();
    finish(10);
    start(PARKED, 200 * KIB);
    long high = status_kb("VmHWM"); /* some of it may be gone already */
    CHECK_GT(high, floor + PARKED * 50);
    finish(PARKED);
    wait_for_rss(floor + (high - floor) / 5); /* a P that works keeps a few */
    start(PARKED, 100 * KIB);                 /* and they can be used again, guards and all */
    finish(PARKED);
}

/* Quiet times, in which nobody has to look for anything, end: what comes after them is given back like what
 * came before. */
static void give_back_again(long floor)
{
    start(PARKED, 200 * KIB);
    finish(PARKED);
    gort_sleep(1500 * GORT_MS); /* one sleep: nothing happens meanwhile */
    for (int i = 0; i < 10 && test_rss_kb() >= floor + PARKED * 20; i++)
        gort_sleep(1 * GORT_SEC);
    CHECK_LT(test_rss_kb(), floor + PARKED * 20);
}

TEST_GO(free_ones_give_their_memory_back_after_a_quiet_time, .procs = "1,2")
{
    no_counting();
    start(10, 0);
    long floor = test_rss_kb();
    finish(10);
    for (int round = 0; round < 3; round++)
        give_back_again(floor);
}

static void compute_until(void *end)
{
    while (!atomic_load((atomic_bool *)end))
        ;
}

/* All Ps are never idle at once again. */
TEST_GO(free_ones_give_their_memory_back_beside_a_hog, .procs = "2")
{
    static atomic_bool end;
    no_counting();
    start(10, 0);
    long floor = test_rss_kb();
    finish(10);
    gort_sleep(1500 * GORT_MS); /* nothing to do */
    CHECK_EQ(GORT_GO(compute_until, &end), 0);
    gort_yield();
    start(PARKED, 200 * KIB);
    long high = status_kb("VmHWM");
    finish_beside(PARKED, 1);
    wait_for_rss(floor + (high - floor) / 5);
    atomic_store(&end, true);
}

/* From many to few: stacks and the kernel's tables for them go. */
TEST_GO(page_tables_are_given_back_too, .procs = "1,2")
{
    no_counting();
    long n = 20000, rss = test_rss_kb(), tables = status_kb("VmPTE");
    start(n, 0);
    CHECK_GT(status_kb("VmHWM"), rss + n * 4);
    CHECK_GT(status_kb("VmPTE"), tables + n / 2 - 100);
    finish(n);
    wait_for_rss(rss + n);
    for (int64_t until = gort_in(test_seconds(20));
         gort_now() < until && status_kb("VmPTE") >= tables + n / 8;)
        gort_sleep(1 * GORT_MS);
    CHECK_LT(status_kb("VmPTE"), tables + n / 8);
    start(n, 8 * KIB); /* and all of it can be used again */
    finish(n);
}

static atomic_long ticks;

static void tick(void *unused)
{
    (void)unused;
    atomic_fetch_add(&ticks, 1);
}

/* And the records too: many that have not run cost 192 bytes each while they wait, and nothing when they are
 * gone. */
TEST_GO(records_are_given_back_too, .procs = "1,2,4", .fuzz = true)
{
    bool counts = !test_under_sanitizer() && !test_under_valgrind() && !test_under_emulator();
    long n = counts ? 200000 : 40000, rss = test_rss_kb();
    for (int round = 0; round < 3; round++) {
        atomic_store(&ticks, 0);
        start(10, 0); /* some that live through it */
        gort_preempt_off();
        for (long i = 0; i < n; i++)
            CHECK_EQ(gort_go(tick, NULL), 0);
        gort_preempt_on();
        while (atomic_load(&ticks) < n)
            gort_yield();
        if (!counts) { /* it happens all the same, and some more start meanwhile */
            for (int i = 0; i < 50; i++, gort_sleep(10 * GORT_MS))
                CHECK_EQ(gort_go(tick, NULL), 0);
        } else {
            if (gort_maxprocs(0) == 1) /* else others run them meanwhile */
                CHECK_GT(status_kb("VmHWM"), rss + n / 8);
            wait_for_rss(rss + n / 10); /* 38 MB of records were there, 20 may stay */
        }
        finish(10);
    }
}

static void wait_until_closed(void *ch)
{
    CHECK_EQ(gort_chan_recv(ch, NULL), 0);
}

/* While some live on in every chunk no record can be given back, and looking for one is done less and less
 * often. When they end all of it goes soon, though nothing else happens. */
TEST_GO(records_are_given_back_after_looks_in_vain, .procs = "2")
{
    no_counting();
    gort_chan *first = gort_chan_new(0, 0), *last = gort_chan_new(0, 0);
    long n = 100000, rss = test_rss_kb();
    for (long i = 0; i < n; i++)
        CHECK_EQ(gort_go(wait_until_closed, i % 20 ? first : last), 0);
    gort_sleep(500 * GORT_MS);
    gort_chan_close(first);
    for (int64_t until = gort_in(8 * GORT_SEC); gort_now() < until;) /* the scavenger is kept awake */
        gort_sleep(20 * GORT_MS);
    gort_chan_close(last);
    gort_sleep(test_seconds(3));
    CHECK_LT(test_rss_kb(), rss + n / 10); /* 19 MB of records were there */
    gort_chan_unref(first);
    gort_chan_unref(last);
}

/* Goroutines that go deep, park and are woken while the scavenger is at them. */
static gort_chan *work;

static void deep_worker(void *unused)
{
    (void)unused;
    uint64_t seed = test_seed() + (uint64_t)atomic_fetch_add(&counter, 1);
    volatile uint64_t above[8];
    long got;
    while (gort_chan_recv(work, &got) == 1) {
        for (int i = 0; i < 8; i++)
            above[i] = seed + (uint64_t)i;
        use(test_random(&seed) % (150 * KIB));
        seed = above[0];
        if (test_random(&seed) % 4 == 0)
            gort_sleep((int64_t)(test_random(&seed) % 2000) * GORT_US);
        for (int i = 1; i < 8; i++)
            CHECK_EQ(above[i], above[0] + (uint64_t)i);
    }
}

TEST_GO(trimmed_while_they_are_woken, .procs = "1,2,4", .fuzz = true)
{
    gort_wg wg = {0};
    work = gort_chan_new(sizeof(long), 0);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(gort_wg_go(&wg, deep_worker, NULL), 0);
    int64_t end = gort_now() + 1000 * GORT_MS;
    for (long i = 0; gort_now() < end; i++) {
        CHECK_EQ(gort_chan_send(work, &i), 0);
        if (i % 200 == 0)
            gort_sleep(5 * GORT_MS);
    }
    gort_chan_close(work);
    CHECK_EQ(gort_wg_wait(&wg), 0);
    gort_chan_unref(work);
}

/* Without mappings for guards: more goroutines than vm.max_map_count, and the program itself can still
 * map. */
TEST_GO(more_than_there_are_mappings, .env = "GORT_DEBUG=noguard=1",
        .expect = "^gort: new stacks have a canary instead of a guard")
{
    no_counting();
    start(40000, 0);
    CHECK_LT(test_vma_count(), 60000);
    void *p = malloc(8 * MIB);
    CHECK(p);
    free(p);
    finish(40000);
}

TEST_GO(canaries_all_along, .procs = "1,2", .env = "GORT_DEBUG=canary=1", .fuzz = true)
{
    start(200, 100 * KIB);
    finish(200);
    start(200, 200 * KIB);
    gort_sleep(700 * GORT_MS); /* trimmed, and the canaries survive it */
    finish(200);
}

TEST_GO(big_pages_do_not_come)
{
    no_counting();
    char *line = NULL;
    size_t size = 0;
    start(2000, 0);
    long huge = 0;
    char here;
    FILE *f = fopen("/proc/self/smaps", "r");
    CHECK(f);
    bool mine = false, seen = false;
    while (getline(&line, &size, f) > 0) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2 && strchr(line, '-') < strchr(line, ' '))
            mine = (uintptr_t)&here >= from && (uintptr_t)&here < to;
        if (mine && sscanf(line, "AnonHugePages: %ld kB", &huge) == 1)
            CHECK_EQ(huge, 0);
        if (mine && strncmp(line, "VmFlags:", 8) == 0) {
            CHECK_MSG(strstr(line, " nh"), "the stack's mapping may get big pages: %s", line);
            seen = true;
        }
    }
    fclose(f);
    free(line);
    CHECK(seen);
    finish(2000);
}

/* --- what is told ---------------------------------------------------------------------------------------------- */

TEST_GO(the_census_tells_by_function, .procs = "1,2", .env = "GORT_DEBUG=stackcensus=1",
        .expect = "^gort: stack census: deepest   average  goroutines  function$\n"
                  "^gort: +(9|1[0-9])[0-9] KiB +(9|1[0-9])[0-9] KiB +50  use_100_kib\\+0x0 \\(stack\\+0x\n"
                  "^gort: +(4|8|12) KiB +[0-9]+ KiB +50  movaps\\+0x0")
{
    no_counting();
    extern void use_100_kib(void *);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_go(use_100_kib, NULL), 0);
        CHECK_EQ(gort_go(movaps, NULL), 0);
    }
    while (gort_count() > 1) /* one that is just ending is counted when it has ended */
        gort_yield();
    CHECK_EQ(atomic_load(&counter), 100);
}

void use_100_kib(void *unused);
void use_100_kib(void *unused)
{
    (void)unused;
    use(100 * KIB);
    atomic_fetch_add(&counter, 1);
}

static gort_wg never;

static void wait_till_the_end(void *unused)
{
    (void)unused;
    use(100 * KIB);
    atomic_fetch_add(&counter, 1);
    gort_wg_wait(&never);
}

/* They are counted when the run ends. */
TEST_GO(the_census_tells_of_those_who_never_end, .procs = "1,2", .env = "GORT_DEBUG=stackcensus=1",
        .expect = "^gort: +(9|1[0-9])[0-9] KiB +(9|1[0-9])[0-9] KiB +2  ")
{
    no_counting();
    gort_wg_add(&never, 1);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(gort_go(wait_till_the_end, NULL), 0);
    await_waiting("wait group", 2);
}

/* 320 functions. */
#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define SIXTY_FOUR(X, n)                                                                                     \
    EIGHT(X, n##0)                                                                                           \
    EIGHT(X, n##1) EIGHT(X, n##2) EIGHT(X, n##3) EIGHT(X, n##4) EIGHT(X, n##5) EIGHT(X, n##6) EIGHT(X, n##7)
#define MANY(X) SIXTY_FOUR(X, 0) SIXTY_FOUR(X, 1) SIXTY_FOUR(X, 2) SIXTY_FOUR(X, 3) SIXTY_FOUR(X, 4)
static const char *_Atomic where; /* so that no two are alike */
#define FUNCTION(n)                                                                                          \
    static void function_##n(void *unused)                                                                   \
    {                                                                                                        \
        (void)unused;                                                                                        \
        atomic_store(&where, #n);                                                                            \
        atomic_fetch_add(&counter, 1);                                                                       \
    }
#define NAME(n) function_##n,
MANY(FUNCTION)

/* The table has 256 rows; what finds no place is one more. */
TEST_GO(the_census_of_many_functions, .procs = "1,2", .env = "GORT_DEBUG=stackcensus=1",
        .expect = "KiB +6[45]  \\(others\\)$")
{
    static void (*const functions[])(void *) = {MANY(NAME)};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        CHECK_EQ(gort_go(functions[i], NULL), 0);
    while (gort_count() > 1)
        gort_yield();
    CHECK_EQ(atomic_load(&counter), 320);
}

TEST_GO(
    the_dump_tells,
    .expect =
        "^goroutine [0-9]+ \\(deep\\) \\[waiting: wait group\\] created by goroutine 1, stack (9|1[0-9])[0-9]K of 256K, runs go_deep_and_wait\\+0x0 ")
{
    no_counting();
    gort_wg_add(&gate, 1);
    CHECK_EQ(gort_go_with(&(gort_attr){.name = "deep"}, go_deep_and_wait, (void *)(uintptr_t)(100 * KIB)), 0);
    await_waiting("wait group", 1);
    gort_dump(2);
    finish(1);
}

static long parked_rss;
static int main_parks_many(void *unused)
{
    (void)unused;
    start(2000, 0);
    parked_rss = status_kb("VmRSS");
    finish(2000);
    start(500, 100 * KIB); /* and can be used, given back and used again */
    gort_sleep(600 * GORT_MS);
    finish(500);
    return 0;
}

/* --- locked memory ------------------------------------------------------------------------------------------------- */

/* Stacks are locked as they are used: not all of their address space, which would be half a GiB for these. */
TEST(locked_memory_only_where_it_is_used, .procs = "1,2")
{
    no_counting();
    size_t room = 2048 * MIB; /* of address space, which counts although it is not used */
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &limit);
    int err = mlockall(MCL_CURRENT | MCL_FUTURE);
    void *p = err ? MAP_FAILED
                  : mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        SKIP("RLIMIT_MEMLOCK refuses: needs CAP_IPC_LOCK, or ulimit -l unlimited");
    CHECK_EQ(munmap(p, room), 0);
    long before = status_kb("VmRSS"), locked = status_kb("VmLck");
    CHECK_EQ(gort_run(main_parks_many, NULL), 0);
    CHECK_LT(parked_rss - before,
             2000 * 40 + 100 * 1024); /* and the stacks of some threads, which are libc's */
    CHECK_GT(locked, 0);
}
