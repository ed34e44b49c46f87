/* SPDX-License-Identifier: MIT */
/*
 * bad_sign.c - a pointer to unsigned for a pointer to int, second of three.
 * Covers: include/gort/typed.h
 *
 * gcc: argument 2 of .GORT_GO_function. differ in signedness
 * clang: passing 'GORT_GO_argument_2' (aka 'unsigned int \*') to parameter of type 'int \*'
 * c++: GORT_GO: an argument does not convert
 */
#include <gort.h>

static void f(int a, int *b, int *c)
{
    (void)a, (void)b, (void)c;
}
static int n;
static unsigned m;

int start(void);
int start(void)
{
#ifdef GOOD
    return (m = 0, GORT_GO(f, 1, &n, &n));
#else
    return GORT_GO(f, 1, &m, &n);
#endif
}
