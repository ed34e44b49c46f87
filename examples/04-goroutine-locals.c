/* SPDX-License-Identifier: MIT */
/*
 * 04-goroutine-locals.c - values of a goroutine's own.      cc 04-goroutine-locals.c -o 04-goroutine-locals -lgort
 *
 * A goroutine may change its thread whenever it parks or yields, so thread-local variables are not its
 * own. A key holds a value for each goroutine, destroyed when it ends; gort_on_exit handlers run then, too.
 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>

static gort_key current;

struct request {
    int number;
    gort_wg *wg;
};

static void destroy(void *request)
{
    gort_wg *wg = ((struct request *)request)->wg;
    free(request);
    gort_wg_done(wg);
}

static void say(void *text)
{
    struct request *request = gort_key_get(current);
    printf("request %d: %s\n", request->number, (const char *)text);
}

static void handle(int number, gort_wg *wg)
{
    struct request *request = malloc(sizeof *request);
    if (!request || gort_key_set(current, request) < 0)
        abort();
    *request = (struct request){number, wg};
    gort_on_exit(say, "handler registered first, runs last");
    gort_on_exit(say, "handler registered last, runs first");
    gort_yield(); /* perhaps on another thread afterwards: the key's value stays */
    say("works");
    gort_exit();
}

static int start(void *arg)
{
    gort_wg wg = {0};
    (void)arg;
    if (gort_key_create(&current, destroy) < 0)
        return 1;
    gort_wg_add(&wg, 2);
    if (GORT_GO(handle, 1, &wg) < 0 || GORT_GO(handle, 2, &wg) < 0)
        return 1;
    return gort_wg_wait(&wg);
}

int main(void)
{
    return gort_run(start, NULL);
}
