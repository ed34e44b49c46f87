/* SPDX-License-Identifier: MIT */
/*
 * bad_integer_for_pointer.c - an integer where a pointer is wanted.
 * Covers: include/gort/typed.h
 *
 * gcc: passing argument 1 of .GORT_GO_function. makes pointer from integer
 * clang: passing 'GORT_GO_argument_1' (aka 'int') to parameter of type 'int \*'
 * c++: GORT_GO: an argument does not convert
 */
#include <gort.h>

static void f(int *a)
{
    (void)a;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, (int *)0);
#else
    return GORT_GO(f, 7);
#endif
}
