/* SPDX-License-Identifier: MIT */
/*
 * good_callback.c - a function pointer is a pointer, also for GORT_GO.
 * Covers: include/gort/typed.h
 */
#include <gort.h>

static void call(void (*fn)(int), int n)
{
    fn(n);
}
static void print(int n)
{
    (void)n;
}

int start(void);
int start(void)
{
    return GORT_GO(call, print, 3);
}
