/* SPDX-License-Identifier: MIT */
/*
 * world_roots.c - gort_world_roots finds what every goroutine holds, wherever it was stopped.
 * Covers: src/observe/roots.c
 *
 * Each holds a number that nobody else has, in a register or on its stack; or it lies in what the runtime
 * keeps for it.
 */
#include "hogs.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static atomic_bool stop;
static int fds[2];

enum { IN_REGISTER, IN_CALL, IN_ANNOUNCED, IN_SURFACED, IN_BLOCK, IN_CHAN, IN_SLEEP, IN_YIELD, DEEP, PLACES };
enum { UNSTARTED = PLACES, COPIED, IN_BUFFER, IN_LARGE_BUFFER, IN_KEY, OWN, NUMBERS };
static const char *const place_names[NUMBERS] = {
    "register",   "read",        "announced read", "plain wait", "gort_block",   "channel", "sleep", "yield",
    "deep stack", "not started", "copied",         "buffer",     "large buffer", "key",     "own"};

#define NUMBER(i) ((uintptr_t)0x5ec7e70000000000 + (uintptr_t)(i))

static atomic_int found[NUMBERS], holding;
static gort_chan *never;

static void look_for_numbers(const void *from, const void *to, void *arg)
{
    (void)arg;
    CHECK(from < to);
    for (const uintptr_t *at = from; (const void *)(at + 1) <= to; at++)
        if (*at - NUMBER(0) < NUMBERS)
            atomic_fetch_add(&found[*at - NUMBER(0)], 1);
}

/* The number lives in a register that a call preserves, or on the stack. */
static __attribute__((noinline)) void hold_number(uintptr_t number, void (*wait)(void))
{
    atomic_fetch_add(&holding, 1);
    __asm__ volatile("" : "+r"(number));
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        if (wait)
            wait();
        __asm__ volatile("" : "+r"(number));
    }
}

static void wait_in_read(void)
{
    char c;
    CHECK_EQ(read(fds[0], &c, 1), 1);
}

static void wait_in_announced(void)
{
    gort_block_enter();
    wait_in_read();
    gort_block_leave();
}

static void wait_in_chan(void)
{
    int v;
    gort_chan_recv(never, &v);
}

static void wait_in_surfaced(void)
{
    gort_block_enter();
    wait_in_chan();
    gort_block_leave();
}

static void wait_in_sleep(void)
{
    gort_sleep(20 * GORT_MS);
}

static void wait_in_yield(void)
{
    gort_yield();
}

static intptr_t hold_in_block(void *number)
{
    hold_number(~(uintptr_t)number, wait_in_read);
    return 0;
}

static __attribute__((noinline)) int go_deep(int depth, uintptr_t number)
{
    volatile char frame[1000];
    frame[0] = (char)depth;
    if (depth == 0)
        hold_number(number, NULL);
    else
        go_deep(depth - 1, number);
    return frame[0];
}

static void hold_somewhere(void *where)
{
    int place = (int)(intptr_t)where;
    void (*const waits[])(void) = {NULL, wait_in_read, wait_in_announced, wait_in_surfaced,
                                   NULL, wait_in_chan, wait_in_sleep,     wait_in_yield};
    if (place == IN_BLOCK)
        gort_block(hold_in_block, (void *)~NUMBER(place));
    else if (place == DEEP)
        go_deep(100, NUMBER(place));
    else
        hold_number(NUMBER(place), waits[place]);
}

static void ignore(void *unused)
{
    (void)unused;
}

static void set_key(void *key)
{
    CHECK_GE(gort_key_set(*(gort_key *)key, (void *)NUMBER(IN_KEY)), 0);
    hold_number(0, wait_in_sleep);
}

static __attribute__((noinline)) void put_numbers(gort_chan *small, gort_chan *large)
{
    uintptr_t number = NUMBER(IN_BUFFER), many[100] = {0};
    CHECK_GE(gort_chan_send(small, &number), 0);
    many[50] = NUMBER(IN_LARGE_BUFFER);
    CHECK_GE(gort_chan_send(large, many), 0);
    memset(many, 0, sizeof many);
    __asm__ volatile("" : : "r"(many) : "memory");
}

static __attribute__((noinline)) void start_with_numbers(void)
{
    uintptr_t words[20] = {0};
    words[19] = NUMBER(COPIED);
    CHECK_EQ(gort_go(ignore, (void *)NUMBER(UNSTARTED)), 0);
    CHECK_EQ(gort_go_copy(ignore, words, sizeof words), 0);
    memset(words, 0, sizeof words);
    __asm__ volatile("" : : "r"(words) : "memory");
}

TEST_GO(roots_show_every_number, .procs = "1,2,4")
{
    NEEDS_NATIVE_SPEED();
    if (test_under_sanitizer())
        SKIP("only without sanitizers: they may keep variables off the stack");
    char bytes[64] = {0};
    gort_key key;
    uintptr_t own = NUMBER(OWN);
    gort_chan *small = gort_chan_new(sizeof(uintptr_t), 4), *large = gort_chan_new(800, 100);
    never = gort_chan_new(sizeof(int), 0);
    CHECK(small && large && never);
    CHECK_EQ(pipe(fds), 0);
    CHECK_GE(gort_key_create(&key, NULL), 0);
    put_numbers(small, large);
    CHECK_EQ(gort_world_roots(look_for_numbers, NULL), -EPERM);
    CHECK_EQ(gort_go(set_key, &key), 0);
    for (intptr_t i = 0; i < PLACES; i++)
        CHECK_EQ(gort_go(hold_somewhere, (void *)i), 0);
    for (int64_t until = gort_in(test_seconds(40)); atomic_load(&holding) < PLACES + 1; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "only %d of them started", atomic_load(&holding));
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < NUMBERS; i++)
            atomic_store(&found[i], 0);
        gort_sleep(round * 100 * GORT_US);
        gort_preempt_off(); /* at one P they do not run before the stop */
        start_with_numbers();
        __asm__ volatile("" : "+r"(own));
        CHECK_EQ(gort_world_stop(), 0);
        CHECK_EQ(gort_world_roots(look_for_numbers, NULL), 0);
        CHECK_EQ(gort_world_start(), 0);
        gort_preempt_on();
        __asm__ volatile("" : "+r"(own));
        for (int i = 0; i < NUMBERS; i++)
            if (i < UNSTARTED || i > COPIED || gort_maxprocs(0) == 1) /* else another P may have run them */
                CHECK_MSG(atomic_load(&found[i]) > 0, "round %d: the number in %s is not seen", round,
                          place_names[i]);
    }
    atomic_store(&stop, true);
    CHECK_GE(gort_chan_close(never), 0);
    CHECK_EQ(write(fds[1], bytes, sizeof bytes), sizeof bytes);
    gort_chan_unref(small);
    gort_chan_unref(large);
}

/* --- all of them move ------------------------------------------------------------------------------------------------- */

enum { MOVERS = 60 };
static atomic_int seen[MOVERS];

static void look_for_movers(const void *from, const void *to, void *arg)
{
    (void)arg;
    for (const uintptr_t *at = from; (const void *)(at + 1) <= to; at++)
        if (*at - NUMBER(1000) < MOVERS)
            atomic_fetch_add(&seen[*at - NUMBER(1000)], 1);
}

static intptr_t nothing(void *arg)
{
    return (intptr_t)arg;
}

static pthread_mutex_t contended = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noinline)) void move_about(int kind, unsigned i)
{
    switch (kind % 6) {
    case 0:
        gort_yield();
        break;
    case 1:
        gort_sleep(50 * GORT_US);
        break;
    case 2:
        CHECK_EQ(gort_block(nothing, (void *)5), 5);
        break;
    case 3:
        gort_preempt_off();
        pthread_mutex_lock(&contended);
        for (volatile int k = 0; k < 100; k++)
            ;
        pthread_mutex_unlock(&contended);
        gort_preempt_on();
        break;
    case 4:
        gort_block_enter();
        if (i % 64 == 0)
            usleep(20);
        gort_block_leave();
        break;
    default:
        for (volatile int k = 0; k < 500; k++)
            ;
    }
}

static void mover(void *arg)
{
    int i = (int)(intptr_t)arg;
    uintptr_t number = NUMBER(1000 + i);
    atomic_fetch_add(&holding, 1);
    for (unsigned n = 0; !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
        __asm__ volatile("" : "+r"(number));
        move_about(i % 7 == 6 ? (int)n : i, n);
        __asm__ volatile("" : "+r"(number));
    }
}

static intptr_t stop_and_look(void *unused)
{
    (void)unused;
    CHECK_EQ(gort_world_stop(), 0);
    CHECK_EQ(gort_world_roots(look_for_movers, NULL), 0);
    CHECK_EQ(gort_world_start(), 0);
    return 0;
}

TEST_GO(roots_show_who_moves, .procs = "1,2,4", .fuzz = true)
{
    NEEDS_NATIVE_SPEED();
    if (test_under_sanitizer())
        SKIP("only without sanitizers: they may keep variables off the stack");
    gort_wg wg = {0};
    int round = 0;
    for (intptr_t i = 0; i < MOVERS; i++)
        CHECK_EQ(gort_wg_go(&wg, mover, (void *)i), 0);
    for (int64_t until = gort_in(test_seconds(40)); atomic_load(&holding) < MOVERS; gort_sleep(GORT_MS))
        CHECK_MSG(gort_now() < until, "only %d of them started", atomic_load(&holding));
    for (int64_t until = gort_in(300 * GORT_MS); gort_now() < until;) {
        for (int i = 0; i < MOVERS; i++)
            atomic_store(&seen[i], 0);
        if (round++ % 2)
            stop_and_look(NULL);
        else
            gort_block(stop_and_look, NULL);
        for (int i = 0; i < MOVERS; i++)
            CHECK_MSG(atomic_load(&seen[i]) > 0, "mover %d, kind %d, is not seen", i, i % 7 == 6 ? 6 : i % 6);
        gort_sleep(100 * GORT_US);
    }
    atomic_store(&stop, true);
    gort_wg_wait(&wg);
}
