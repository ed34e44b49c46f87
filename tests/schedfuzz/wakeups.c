/* SPDX-License-Identifier: MIT */
/*
 * wakeups.c - a program that stands still when one wake-up is lost.
 * Covers: src/sched/core/fuzz.c src/sched/threads/idle.c
 *
 * The main goroutine starts another and then computes, without a call, until that one has run: it must have
 * been run by the other P, which was about to sleep, or had been asleep, or was looking around. With
 * preemption off nobody else comes to help. The pauses between the rounds move the start over the other P's
 * way into sleep.
 * Exit status 0: all rounds done, or the time is up; 1: a goroutine was not run while main computed for two
 * seconds of CPU time. The clock would not do: a machine that stands still for a while has lost nothing.
 */
#include <gort.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int done; /* atomic */
static double seconds;

static void answer(void *round)
{
    __atomic_store_n(&done, (int)(intptr_t)round, __ATOMIC_RELEASE);
}

static void compute(unsigned n)
{
    for (volatile unsigned i = 0; i < n; i++)
        ;
}

/* CPU time that this thread has used, in ns. */
static int64_t used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * GORT_SEC + t.tv_nsec;
}

static int start(void *arg)
{
    uint64_t seed = (uint64_t)(uintptr_t)arg * 2 + 1;
    int64_t begin = gort_now(), end = begin + (int64_t)(seconds * 1e9);
    int round = 0;
    while (gort_now() < end) {
        round++;
        if (gort_go(answer, (void *)(intptr_t)round) != 0)
            return 2;
        unsigned turns = 0;
        int64_t since = 0;
        while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) != round) {
            if (++turns % 65536 != 0)
                continue;
            since = since ? since : used(); /* never parks: nobody gets this P */
            if (used() - since > 2 * GORT_SEC) {
                printf("lost: round %d after %.1f s\n", round, (double)(gort_now() - begin) / 1e9);
                return 1;
            }
        }
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        compute((unsigned)(seed >> 33) % 4096);
    }
    printf("%d rounds\n", round);
    return 0;
}

int main(int argc, char **argv)
{
    seconds = argc > 1 ? atof(argv[1]) : 1;
    return gort_run(start, (void *)(uintptr_t)(argc > 2 ? strtoull(argv[2], NULL, 0) : 1));
}
