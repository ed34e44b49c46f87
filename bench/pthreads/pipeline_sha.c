/* SPDX-License-Identifier: MIT */
/*
 * pipeline_sha.c - SHA3-256 of 200 chunks of 1 MiB: a reader, two workers and an ordered printer as threads,
 * connected by queues of a mutex and two condition variables. The twin of bench/pipeline_sha.c; -procs means
 * nothing here.
 */
#include "../pipeline_sha.h"

#include <pthread.h>

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t not_empty, not_full;
    struct chunk *items[CHUNKS];
    unsigned first, n; /* guarded by mutex */
};

static void put(struct queue *q, struct chunk *c)
{
    pthread_mutex_lock(&q->mutex);
    while (q->n == CHUNKS)
        pthread_cond_wait(&q->not_full, &q->mutex);
    q->items[(q->first + q->n++) % CHUNKS] = c;
    pthread_cond_signal(&q->not_empty);
    pthread_mutex_unlock(&q->mutex);
}

static struct chunk *take(struct queue *q)
{
    pthread_mutex_lock(&q->mutex);
    while (q->n == 0)
        pthread_cond_wait(&q->not_empty, &q->mutex);
    struct chunk *c = q->items[q->first++ % CHUNKS];
    q->n--;
    pthread_cond_signal(&q->not_full);
    pthread_mutex_unlock(&q->mutex);
    return c;
}

static void *reads(void *arg)
{
    reader();
    return arg;
}

static void *works(void *arg)
{
    worker();
    return arg;
}

static void *prints(void *arg)
{
    printer();
    return arg;
}

static struct queue *new_queue(void)
{
    struct queue *q = must_have(calloc(1, sizeof *q));
    pthread_mutex_init(&q->mutex, NULL);
    pthread_cond_init(&q->not_empty, NULL);
    pthread_cond_init(&q->not_full, NULL);
    return q;
}

static double work(long n)
{
    void *(*const all[])(void *) = {reads, works, works, prints};
    pthread_t threads[WORKERS + 2];
    if (!source) {
        todo = new_queue();
        done = new_queue();
        empty = new_queue();
        pipeline_open();
    }
    wanted = n;
    for (int i = 0; i < WORKERS + 2; i++)
        if (pthread_create(&threads[i], NULL, all[i], NULL))
            bench_die("no thread", 0);
    for (int i = 0; i < WORKERS + 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = {.name = "pipeline_sha", .unit = 200, .work = work};
    return bench_options(&b, argc, argv) ? bench_measure(&b) : 2;
}
