/* SPDX-License-Identifier: MIT */
/*
 * good_arguments.c - what GORT_GO takes: nothing to six pointers and integers of any kind.
 * Covers: include/gort/typed.h
 */
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
enum color { RED, GREEN = 7 };
enum shift { LEFT = -1, RIGHT = 1 };
static void f_enum(enum color a, enum shift b, void (*c)(int), const volatile int *d, unsigned char e)
{
    (void)a, (void)b, (void)c, (void)d, (void)e;
}
/* What functions say about themselves does not disturb. */
__attribute__((nonnull)) static void f_nonnull(struct job *a)
{
    (void)a;
}
__attribute__((warn_unused_result)) static int f_result(int a)
{
    return a;
}
__attribute__((const)) static int f_const(int a)
{
    return a;
}
__attribute__((noreturn)) static void f_noreturn(int a)
{
    for (;;)
        (void)a;
}

int start(struct job *job);
int start(struct job *job)
{
    signed char small = -1;
    int err = GORT_GO(f0) | GORT_GO(f1, small) | GORT_GO(f1, -7) | GORT_GO(&f1, 'c');
    err |= GORT_GO(f3, job, "why", 3UL);
    err |= GORT_GO(f6, 1, 2L, 'c', true, job, sizeof *job);
    err |= GORT_GO(f_enum, GREEN, LEFT, f1, &job->n, 255);
    err |= GORT_GO(f_nonnull, job) | GORT_GO(f_result, 1) | GORT_GO(f_const, 1) | GORT_GO(f_noreturn, 1);
    return err;
}
