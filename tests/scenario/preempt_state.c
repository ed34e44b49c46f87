/* SPDX-License-Identifier: MIT */
/*
 * preempt_state.c - the code that is interrupted notices nothing: registers, flags, floating point and vector
 * state, the red zone, errno, the thread and all that belongs to it, and what libc computes.
 * Covers: src/sched/monitor/preempt.c
 *
 * Each case runs more goroutines than Ps for a while, with one beside them that wakes every millisecond, so
 * that each is stopped many times in the middle; what they compute is known.
 */
#include "hogs.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

static atomic_bool stop;
static atomic_long rounds;

/* Runs n times fn(i) for a while, disturbed all the time. */
static void disturb(void (*fn)(void *), int n, int64_t ns)
{
    gort_wg wg = {0};
    for (intptr_t i = 0; i < n; i++)
        CHECK_EQ(gort_wg_go(&wg, fn, (void *)i), 0);
    int64_t from = gort_now();
    int ticks = 0;
    while (gort_now() - from < ns || atomic_load(&rounds) < n || ticks < 10) {
        CHECK_EQ(gort_sleep(GORT_MS), 0);
        CHECK_LT(gort_now() - from, test_seconds(50));
        ticks++;
    }
    atomic_store(&stop, true);
    CHECK_EQ(gort_wg_wait_until(&wg, gort_in(test_seconds(50))), 0);
    test_log("%ld rounds, %d ticks", atomic_load(&rounds), ticks);
}

static bool go_on(void)
{
    atomic_fetch_add(&rounds, 1);
    return !atomic_load(&stop);
}

/* --- registers --------------------------------------------------------------------------------------------- */

/* The same work for the same n. A step is short enough for TSan, which sees atomics and libc calls only. */
static __attribute__((noinline)) uint64_t integers(uint64_t n, int steps)
{
    uint64_t a = n, b = ~n, c = n * 3, d = 1, e = 2, f = 3, g = 5, h = 7;
    for (int i = 0; i < steps; i++) {
        a += b ^ (c << 7);
        b = (b << 13 | b >> 51) + a;
        c ^= d + (uint64_t)i;
        d = d * 6364136223846793005u + e;
        e += f & g;
        f = (f ^ h) + (a > b); /* flags */
        g -= h - (c < d);
        h += a ^ e;
    }
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h;
}

static __attribute__((noinline)) double doubles(int n, int steps)
{
    double v[8];
    for (int i = 0; i < 8; i++)
        v[i] = 1.0 + n + i;
    for (int k = 0; k < steps; k++)
        for (int i = 0; i < 8; i++)
            v[i] = v[i] * 0.999 + v[(i + 1) % 8] / 3.0 - (double)(k & 3);
    double sum = 0;
    for (int i = 0; i < 8; i++)
        sum += v[i];
    return sum;
}

/* On x86 in the registers of the x87. */
static __attribute__((noinline)) long double long_doubles(int n, int steps)
{
    long double a = n + 1, b = 2, c = 3;
    for (int i = 0; i < steps; i++) {
        a = a * 0.75L + b;
        b = b / 1.5L + c;
        c = c * 0.5L + 1 / (a + 1);
    }
    return a + b + c;
}

/* Keeps its locals below the stack pointer where the ABI has a red zone. */
static __attribute__((noinline)) uint64_t leaf(uint64_t n, int steps)
{
    volatile uint64_t v[12];
    for (int i = 0; i < 12; i++)
        v[i] = n + (uint64_t)i;
    for (int k = 0; k < steps; k++)
        v[k % 12] = v[k % 12] * 31 + v[(k + 5) % 12];
    uint64_t sum = 0;
    for (int i = 0; i < 12; i++)
        sum += v[i];
    return sum;
}

#if defined(__x86_64__)
__attribute__((target("avx2"), noinline)) static uint64_t vectors_avx2(uint64_t n, int steps)
{
    __m256i a = _mm256_set1_epi64x((long long)n), b = _mm256_set_epi64x(1, 2, 3, 4), c = b, d = a;
    for (int i = 0; i < steps; i++) {
        a = _mm256_add_epi64(a, _mm256_mul_epu32(b, c));
        b = _mm256_xor_si256(b, _mm256_slli_epi64(a, 3));
        c = _mm256_add_epi32(c, _mm256_srli_epi64(d, 11));
        d = _mm256_permute4x64_epi64(_mm256_add_epi64(d, a), 0x39);
    }
    uint64_t out[4], sum = 0;
    _mm256_storeu_si256((__m256i *)(void *)out,
                        _mm256_xor_si256(_mm256_xor_si256(a, b), _mm256_xor_si256(c, d)));
    for (int i = 0; i < 4; i++)
        sum = sum * 3 + out[i];
    return sum;
}

static uint64_t vectors(uint64_t n, int steps)
{
    return __builtin_cpu_supports("avx2") ? vectors_avx2(n, steps) : 0;
}
#else
static uint64_t vectors(uint64_t n, int steps)
{
    typedef uint64_t four __attribute__((vector_size(32)));
    four a = {n, n, n, n}, b = {1, 2, 3, 4};
    for (int i = 0; i < steps; i++) {
        a += b * 31;
        b ^= a << 3;
    }
    return a[0] ^ a[1] ^ a[2] ^ a[3] ^ b[0] ^ b[1] ^ b[2] ^ b[3];
}
#endif

enum { STEPS = 20000, WORKERS = 6 };
static struct {
    uint64_t i, l, v;
    double d;
    long double x;
} reference[WORKERS];

static int steps_now(void)
{
    return (int)test_scaled(STEPS, 1000);
}

static void compute_known(void *arg)
{
    int n = (int)(intptr_t)arg, steps = steps_now();
    do {
        CHECK_EQ(integers((uint64_t)n, steps), reference[n].i);
        CHECK_EQ(leaf((uint64_t)n, steps), reference[n].l);
        CHECK_EQ(vectors((uint64_t)n, steps), reference[n].v);
        double d = doubles(n, steps);
        CHECK_EQ(memcmp(&d, &reference[n].d, sizeof d), 0);
        CHECK(long_doubles(n, steps) == reference[n].x);
    } while (go_on());
}

TEST_GO(registers, .procs = "1,2")
{
    int steps = steps_now();
    for (int n = 0; n < WORKERS; n++) {
        reference[n].i = integers((uint64_t)n, steps);
        reference[n].l = leaf((uint64_t)n, steps);
        reference[n].v = vectors((uint64_t)n, steps);
        reference[n].d = doubles(n, steps);
        reference[n].x = long_doubles(n, steps);
    }
    disturb(compute_known, WORKERS, 400 * GORT_MS);
}

/* --- frames ------------------------------------------------------------------------------------------------ */

/* A frame of a size that valgrind has no shortcut for: that is when it looks for the stack that it belongs
 * to. */
static __attribute__((noinline)) int fill_frame(int n)
{
    volatile unsigned char frame[1000];
    int sum = 0;
    for (size_t i = 0; i < sizeof frame; i += 100)
        frame[i] = (unsigned char)n;
    for (size_t i = 0; i < sizeof frame; i += 100)
        sum += frame[i];
    return sum;
}

static void fill_frames(void *arg)
{
    int n = (int)(intptr_t)arg;
    do {
        for (int i = 0; i < 100; i++)
            CHECK_EQ(fill_frame(n), 10 * n);
    } while (go_on());
}

TEST_GO(frames, .procs = "1,2")
{
    disturb(fill_frames, WORKERS, 300 * GORT_MS);
}

/* --- the thread ---------------------------------------------------------------------------------------------- */

static __thread int thread_value;
static pthread_mutex_t recursive;

/* Nothing here calls gort, so all of it belongs to one thread. */
static void stay_on_thread(void *arg)
{
    int n = (int)(intptr_t)arg;
    bool more = true;
    while (more) {
        int tid = hog_tid();
        int *address = &thread_value, *err = &errno;
        pthread_t self = pthread_self();
        thread_value = n;
        errno = 1000 + n;
        int64_t until = hog_clock() + 5 * GORT_MS;
        while (hog_clock() < until) {
            CHECK_EQ(*address, n);
            CHECK_EQ(*err, 1000 + n);
            CHECK_EQ(&thread_value, address);
        }
        CHECK_EQ(hog_tid(), tid);
        CHECK(pthread_equal(pthread_self(), self));
        CHECK_EQ(&errno, err);
        CHECK_EQ(errno, 1000 + n);
        more = go_on();
    }
}

TEST_GO(thread_locals, .procs = "1,2")
{
    disturb(stay_on_thread, 8, 400 * GORT_MS);
}

static void lock_recursively(void *arg)
{
    (void)arg;
    do {
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        CHECK_EQ(pthread_mutex_lock(&recursive), 0);
        int64_t until = hog_clock() + 3 * GORT_MS;
        while (hog_clock() < until)
            ;
        CHECK_EQ(pthread_mutex_trylock(&recursive), 0); /* still its own */
        for (int i = 0; i < 3; i++)
            CHECK_EQ(pthread_mutex_unlock(&recursive), 0);
    } while (go_on());
}

TEST_GO(owner_of_a_recursive_mutex, .procs = "1,2")
{
    pthread_mutexattr_t attr;
    CHECK_EQ(pthread_mutexattr_init(&attr), 0);
    CHECK_EQ(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE), 0);
    CHECK_EQ(pthread_mutex_init(&recursive, &attr), 0);
    disturb(lock_recursively, 4, 300 * GORT_MS);
}

/* --- what libc computes -------------------------------------------------------------------------------------- */

static FILE *null_file;

static int compare_ints(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void sort_some(uint64_t *state)
{
    int v[300];
    long sum = 0;
    for (int i = 0; i < 300; i++) {
        v[i] = (int)(test_random(state) % 1000);
        sum += v[i];
    }
    qsort(v, 300, sizeof *v, compare_ints);
    for (int i = 0; i < 300; i++) {
        sum -= v[i];
        CHECK(i == 0 || v[i - 1] <= v[i]);
    }
    CHECK_EQ(sum, 0);
}

static void allocate_some(uint64_t *state)
{
    unsigned char *p[20];
    size_t size[20];
    for (int i = 0; i < 20; i++) {
        size[i] = 1 + test_random(state) % 3000;
        p[i] = malloc(size[i]);
        CHECK(p[i]);
        memset(p[i], i + 1, size[i]);
    }
    for (int i = 0; i < 20; i++) {
        p[i] = realloc(p[i], size[i] + 100);
        CHECK(p[i]);
        CHECK_EQ(p[i][0], i + 1);
        CHECK_EQ(p[i][size[i] - 1], i + 1);
        free(p[i]);
    }
}

static void use_libc(void *arg)
{
    uint64_t state = test_seed() + (uint64_t)(uintptr_t)arg;
    do {
        char text[100];
        double x = (double)(test_random(&state) >> 11) / 1000.0;
        CHECK_GT(snprintf(text, sizeof text, "%.17g", x), 0);
        double back = strtod(text, NULL);
        CHECK_MSG(fabs(back - x) <= 0, "%s", text);
        sort_some(&state);
        allocate_some(&state);
        time_t day = (time_t)(test_random(&state) % 40000) * 86400;
        struct tm tm;
        CHECK(localtime_r(&day, &tm));
        CHECK_EQ(timegm(&tm), day); /* TZ is UTC */
        CHECK_GT(fprintf(null_file, "%s\n", text), 0);
    } while (go_on());
}

TEST_GO(results_of_libc, .procs = "1,2", .env = "TZ=UTC")
{
    null_file = fopen("/dev/null", "w");
    CHECK(null_file);
    test_seed();
    disturb(use_libc, 20, 400 * GORT_MS);
}

static void qsort_again(void *arg)
{
    uint64_t state = (uint64_t)(uintptr_t)arg;
    do
        sort_some(&state);
    while (go_on());
}

TEST_GO(results_of_qsort_on_small_stacks, .procs = "1,2", .env = "GORT_STACK=64K")
{
    disturb(qsort_again, 10, 200 * GORT_MS);
}
