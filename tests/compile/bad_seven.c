/* SPDX-License-Identifier: MIT */
/*
 * bad_seven.c - more than six arguments.
 * Covers: include/gort/typed.h
 *
 * gcc: GORT_GO takes up to six arguments
 * clang: GORT_GO takes up to six arguments
 * c++: GORT_GO takes up to six arguments
 */
#include <gort.h>

static void f(int a, int b, int c, int d, int e, int g
#ifndef GOOD
              ,
              int h
#endif
)
{
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)g;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, 1, 2, 3, 4, 5, 6);
#else
    return GORT_GO(f, 1, 2, 3, 4, 5, 6, 7);
#endif
}
