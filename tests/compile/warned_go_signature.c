/* SPDX-License-Identifier: MIT */
/*
 * warned_go_signature.c - gort_go with a function of another type.
 * Covers: include/gort/run.h
 */
#include <gort.h>

static void f(void *a)
{
    (void)a;
}
static void g(int a, int b)
{
    (void)a, (void)b;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return (g(0, 0), gort_go(f, NULL));
#else
    return (f(NULL), gort_go(g, NULL));
#endif
}
