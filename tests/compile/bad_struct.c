/* SPDX-License-Identifier: MIT */
/*
 * bad_struct.c - a struct by value.
 * Covers: include/gort/typed.h
 *
 * gcc: incompatible type for argument 1 of .GORT_GO_function.
 * clang: GORT_GO_
 * c++: GORT_GO takes pointers and integers
 */
#include <gort.h>

struct s {
    int a;
};
#ifdef GOOD
static void f(const struct s *a)
#else
static void f(struct s a)
#endif
{
    (void)a;
}
static struct s v;

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, &v);
#else
    return GORT_GO(f, v);
#endif
}
