/* SPDX-License-Identifier: MIT */
/* bad_double_parameter.c - a floating-point parameter is not passed in the registers that GORT_GO fills. */
#include <gort.h>

#ifdef GOOD
typedef long number;
#else
typedef double number;
#endif
static void f(number a)
{
    (void)a;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, 1);
#else
    return GORT_GO(f, 1);
#endif
}
