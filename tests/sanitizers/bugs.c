/* SPDX-License-Identifier: MIT */
/*
 * bugs.c - true bugs in the code of goroutines, one for each word that the program is called with.
 * Covers: src/mem/sanitize.h src/sched/core/san.h
 *
 * tests/sanitizers/run compiles this with a sanitizer and expects its report, with the name of the function
 * that has the bug. Each bug happens after its goroutine has been switched away and back, on a stack that
 * others have used before: so what the tool knows about stacks must have survived that.
 */
#include <gort.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline))

static volatile int sink;
static char *volatile kept;
static int shared, unshared; /* plain on purpose */
static int here, gone;       /* atomic, relaxed: they tell who is where, and order nothing */

static APART void bug_heap_overflow(void)
{
    char *block = malloc(10);
    memset(block, 1, 10);
    kept = block;
    kept[10 + (sink & 0)] = 1;
    free(block);
}

static APART void bug_use_after_free(void)
{
    char *block = malloc(10);
    free(block);
    kept = block;
    kept[3] = 1;
}

static APART void bug_stack_overflow(void)
{
    char array[16];
    kept = array;
    kept[16 + (sink & 0)] = 1;
}

static APART void give_local(void)
{
    char local[32];
    memset(local, 7, sizeof local);
    kept = local;
}

static APART void bug_use_after_return(void)
{
    give_local();
    gort_yield();
    sink = kept[5];
}

static APART void bug_leak(void)
{
    kept = malloc(1234);
    memset(kept, 1, 1234);
    kept = NULL;
}

static APART void bug_undefined(void)
{
    int most = 0x7fffffff - (sink & 0);
    sink = most + 1;
}

static APART void bug_uninitialised(void)
{
    int *block = malloc(sizeof *block);
    if (*block == 42)
        puts("42");
    free(block);
}

/* Whoever used the stack before has written there. */
static APART void bug_uninitialised_local(void)
{
    volatile int local[100];
    if (local[50 + (sink & 0)] == 42)
        puts("42");
}

/* Others have used and left the stacks before; and there is a switch before each bug. */
static void shallow(void *arg)
{
    char space[200];
    memset(space, 1, sizeof space);
    sink = space[100];
    gort_yield();
    (void)arg;
}

static void with_bug(void *bug)
{
    gort_yield();
    ((void (*)(void))bug)();
    gort_yield();
}

static int plant(void *bug)
{
    gort_wg wg = {0};
    for (int i = 0; i < 20; i++)
        gort_wg_go(&wg, shallow, NULL);
    gort_wg_wait(&wg);
    for (int i = 0; i < 20; i++)
        gort_wg_go(&wg, shallow, NULL);
    gort_wg_go(&wg, with_bug, bug);
    return gort_wg_wait(&wg);
}

static int at(int *place)
{
    return __atomic_load_n(place, __ATOMIC_RELAXED);
}

/* Two goroutines, one after the other on the same P: nothing orders them but the scheduler's whim. */
static APART void race_same_p(void *arg)
{
    (void)arg;
    shared++;
}

static int same_p(void *arg)
{
    gort_wg wg = {0};
    (void)arg;
    gort_wg_go(&wg, race_same_p, NULL);
    gort_wg_go(&wg, race_same_p, NULL);
    return gort_wg_wait(&wg);
}

/* Two goroutines that are seen to be on two threads at the same time. Many times: TSan's look and its note
 * are not one step, so it can miss two accesses at the very same moment. */
static APART void race_two_ps(void *arg)
{
    (void)arg;
    __atomic_fetch_add(&here, 1, __ATOMIC_RELAXED);
    while (at(&here) < 2)
        ;
    for (int i = 0; i < 1000; i++) {
        shared++;
        __asm__ volatile("" ::: "memory"); /* each of them */
    }
}

static int two_ps(void *arg)
{
    gort_wg wg = {0};
    (void)arg;
    gort_wg_go(&wg, race_two_ps, NULL);
    gort_wg_go(&wg, race_two_ps, NULL);
    return gort_wg_wait(&wg);
}

/* The same variable under two locks: both goroutines do synchronise, but not with each other. */
static gort_mutex left, right;

static APART void race_two_locks(void *lock)
{
    for (int i = 0; i < 100; i++) {
        gort_mutex_lock(lock);
        shared++;
        gort_mutex_unlock(lock);
        gort_yield();
    }
}

static int two_locks(void *arg)
{
    gort_wg wg = {0};
    (void)arg;
    gort_wg_go(&wg, race_two_locks, &left);
    gort_wg_go(&wg, race_two_locks, &right);
    return gort_wg_wait(&wg);
}

/* What the starter of a goroutine does after it has started it is ordered with nothing in it. */
static APART void race_after_go(void *arg)
{
    (void)arg;
    unshared++;
    __atomic_store_n(&gone, 1, __ATOMIC_RELAXED);
}

static int after_go(void *arg)
{
    gort_wg wg = {0};
    (void)arg;
    gort_wg_go(&wg, race_after_go, NULL);
    while (!at(&gone))
        gort_yield();
    unshared++;
    return gort_wg_wait(&wg);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*bug)(void);
        int (*race)(void *);
    } all[] = {
        {"heap_overflow", bug_heap_overflow, NULL},
        {"use_after_free", bug_use_after_free, NULL},
        {"stack_overflow", bug_stack_overflow, NULL},
        {"use_after_return", bug_use_after_return, NULL},
        {"leak", bug_leak, NULL},
        {"undefined", bug_undefined, NULL},
        {"uninitialised", bug_uninitialised, NULL},
        {"uninitialised_local", bug_uninitialised_local, NULL},
        {"same_p", NULL, same_p},
        {"two_ps", NULL, two_ps},
        {"two_locks", NULL, two_locks},
        {"after_go", NULL, after_go},
    };
    for (size_t i = 0; argc > 1 && i < sizeof all / sizeof all[0]; i++)
        if (strcmp(argv[1], all[i].name) == 0)
            return all[i].race ? gort_run(all[i].race, NULL) : gort_run(plant, (void *)all[i].bug);
    return 2;
}
