/* SPDX-License-Identifier: MIT */
/* good_arguments.c - what GORT_GO takes: nothing to six pointers and integers of any kind. */
#include <gort.h>

struct job {
    int n;
};
static void f0(void) {}
static void f1(int a)
{
    (void)a;
}
static int f3(struct job *a, const char *b, unsigned long c)
{
    (void)a, (void)b, (void)c;
    return 0;
}
static void f6(int a, long b, char c, bool d, const void *e, size_t f)
{
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
}

int start(struct job *job);
int start(struct job *job)
{
    signed char small = -1;
    int err = GORT_GO(f0) | GORT_GO(f1, small) | GORT_GO(f1, -7) | GORT_GO(&f1, 'c');
    err |= GORT_GO(f3, job, "why", 3UL);
    err |= GORT_GO(f6, 1, 2L, 'c', true, job, sizeof *job);
    return err;
}
