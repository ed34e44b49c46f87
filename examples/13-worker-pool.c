/* SPDX-License-Identifier: MIT */
/*
 * 13-worker-pool.c - a fixed number of workers.      cc 13-worker-pool.c -o 13-worker-pool -lgort
 *
 * A goroutine for each job is cheap; a pool is for what there is only so much of: memory, connections,
 * licences. Submitting waits while the queue is full, so whoever makes the jobs cannot run ahead.
 */
#include <gort.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORKERS = 4, QUEUE = 8, JOBS = 1000 };

static atomic_int busy;
static atomic_bool crowded;

struct job {
    int number;
    long result;
};

static void work(void *arg)
{
    struct job *job = arg;
    if (++busy > WORKERS)
        crowded = true;
    for (int i = 1; i <= job->number; i++)
        job->result += i;
    gort_yield(); /* a job may wait; its worker waits with it */
    busy--;
}

static int start(void *arg)
{
    static struct job jobs[JOBS];
    gort_pool pool;
    long sum = 0;
    (void)arg;
    if (gort_pool_init(&pool, WORKERS, QUEUE) < 0)
        return 1;
    for (int i = 0; i < JOBS; i++) {
        jobs[i].number = i;
        if (gort_pool_submit(&pool, work, &jobs[i]) < 0)
            return 1;
    }
    gort_pool_close(&pool); /* waits for the jobs that are left */
    for (int i = 0; i < JOBS; i++)
        sum += jobs[i].result;
    printf("%d jobs by %d workers: %ld\n", JOBS, WORKERS, sum);
    return sum == 166666500 && !crowded ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}
