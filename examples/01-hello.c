/* SPDX-License-Identifier: MIT */
/*
 * 01-hello.c - start goroutines, and let them run.         cc 01-hello.c -o 01-hello -lgort
 *
 * gort_run turns the calling thread's function into the main goroutine. When it returns, the run is
 * over and the other goroutines are gone; so it waits for them.
 */
#include <gort.h>
#include <stdio.h>

static void hello(void *who)
{
    printf("hello, %s\n", (const char *)who);
}

static int start(void *arg)
{
    gort_wg wg = {0};
    (void)arg;
    gort_wg_go(&wg, hello, "gophers");
    gort_wg_go(&wg, hello, "world");
    return gort_wg_wait(&wg);
}

int main(void)
{
    return gort_run(start, NULL);
}
