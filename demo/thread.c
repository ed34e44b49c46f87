/* SPDX-License-Identifier: MIT */
/*
 * thread.c - what the demo asks of the system: which thread is this, how much memory, a drawing thread.
 *
 * Why a thread draws: it is a plain one, outside the scheduler it shows, so it draws on time even when all
 * goroutines compute. It may call gort all the same, as any thread may.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "demo.h"

static atomic_int known;
static atomic_int tids[THREADS_MAX];

/* Thread-local data in a goroutine: fine as long as nobody keeps its address across a call that may park. This
 * function is never inlined, so each call looks it up anew. */
__attribute__((noinline)) int thread_here(void)
{
    static _Thread_local int number = -1;
    if (number < 0) {
        number = atomic_fetch_add(&known, 1) % THREADS_MAX;
        atomic_store(&tids[number], gettid());
    }
    __asm__ volatile("" : : : "memory");
    return number;
}

int thread_tid(int i)
{
    return atomic_load(&tids[i]);
}

int thread_known(void)
{
    int n = atomic_load(&known);
    return n < THREADS_MAX ? n : THREADS_MAX;
}

static struct {
    pthread_t thread;
    void (*draw)(void *);
    void *arg;
    int hz;
    atomic_bool stop;
} ticker;

void wait_ms(int ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void *tick(void *unused)
{
    (void)unused;
    while (!atomic_load(&ticker.stop)) {
        ticker.draw(ticker.arg);
        wait_ms(1000 / ticker.hz);
    }
    ticker.draw(ticker.arg);
    return NULL;
}

void ticker_start(void (*draw)(void *), void *arg, int hz)
{
    ticker.draw = draw;
    ticker.arg = arg;
    ticker.hz = hz;
    atomic_store(&ticker.stop, false);
    if (pthread_create(&ticker.thread, NULL, tick, NULL) != 0)
        ticker.draw = NULL;
}

void ticker_stop(void)
{
    atomic_store(&ticker.stop, true);
    if (ticker.draw)
        pthread_join(ticker.thread, NULL);
}

double ms_since(int64_t then)
{
    return (double)(gort_now() - then) / GORT_MS;
}

/* The number behind `key` in a file of /proc; 0: not found. */
static size_t look_up(const char *path, const char *key)
{
    char line[256];
    size_t value = 0;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, key, strlen(key)) == 0 && sscanf(line + strlen(key), "%zu", &value) == 1)
            break;
    if (f)
        fclose(f);
    return value;
}

size_t memory_used(void)
{
    return (look_up("/proc/self/status", "VmRSS:") + look_up("/proc/self/status", "VmPTE:")) * 1024;
}

size_t memory_free(void)
{
    return look_up("/proc/meminfo", "MemAvailable:") * 1024;
}

int threads_now(void)
{
    return (int)look_up("/proc/self/status", "Threads:");
}
