/* SPDX-License-Identifier: MIT */
/*
 * 11-cancel-a-tree.c - end the waits of a whole tree.      cc 11-cancel-a-tree.c -o 11-cancel-a-tree -lgort
 *
 * Goroutines inherit the context in use where they are started. Cancelling it reaches all of them, also those
 * that are parked: waits for channels, time and I/O return -ECANCELED; those for locks and their like last, but for
 * their _until forms. A deadline does the same by itself: -ETIMEDOUT.
 */
#include <errno.h>
#include <gort.h>
#include <stdatomic.h>
#include <stdio.h>

static gort_chan *silent; /* nobody sends on it */
static atomic_int waiting, cancelled;

static void branch(int depth, gort_wg *wg)
{
    for (int i = 0; i < 2 && depth > 0; i++) {
        gort_wg_add(wg, 1);
        if (GORT_GO(branch, depth - 1, wg) < 0)
            gort_wg_done(wg);
    }
    waiting++;
    if (gort_chan_recv(silent, NULL) == -ECANCELED)
        cancelled++;
    gort_wg_done(wg);
}

static int start(void *arg)
{
    gort_wg wg = {0};
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER), *brief = gort_ctx_new(ctx, gort_in(5 * GORT_MS));
    (void)arg;
    silent = gort_chan_new(0, 0);
    if (!ctx || !brief || !silent)
        return 1;
    gort_ctx *former = gort_ctx_use(brief); /* from here on this goroutine's waits end in 5 ms */
    int err = gort_chan_recv(silent, NULL);
    printf("a deadline: %s\n", err == -ETIMEDOUT ? "timed out" : "?");

    gort_ctx_use(ctx);
    gort_wg_add(&wg, 1);
    if (GORT_GO(branch, 3, &wg) < 0)
        return 1;
    gort_ctx_use(former); /* the tree has its context; waiting for it must not be cancelled */
    while (waiting < 15)
        gort_yield();
    gort_ctx_cancel(ctx, 0);
    gort_wg_wait(&wg);
    printf("a tree: %d goroutines cancelled\n", cancelled);
    gort_ctx_unref(brief);
    gort_ctx_unref(ctx);
    gort_chan_unref(silent);
    return err == -ETIMEDOUT && cancelled == 15 ? 0 : 1;
}

int main(void)
{
    return gort_run(start, NULL);
}
