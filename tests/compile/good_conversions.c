/* SPDX-License-Identifier: MIT */
/*
 * good_conversions.c - what a call takes, GORT_GO takes: arrays, bit-fields, pointers to functions, null pointers.
 * Covers: include/gort/typed.h
 */
#include <gort.h>

struct bits {
    unsigned n : 3;
    int m : 5;
};
static void numbers(unsigned a, int b)
{
    (void)a, (void)b;
}
static void arrays(char *a, const int *b)
{
    (void)a, (void)b;
}
static void any(const void *a)
{
    (void)a;
}
static void call(void (*fn)(int), int n)
{
    fn(n);
}
static void print(int n)
{
    (void)n;
}
#ifndef __cplusplus
static void nulls(int *a, void (*b)(int), const char *c, bool d)
{
    (void)a, (void)b, (void)c, (void)d;
}
#endif

int start(struct bits *bits);
int start(struct bits *bits)
{
    char text[8] = "";
    const int n[3] = {1, 2, 3};
    const char *const word = "word";
    void (*pointer)(const void *) = any;
    void (*const fixed)(const void *) = any;
    volatile int changing = 1;
    unsigned char small = 3;
    int err = GORT_GO(numbers, bits->n, bits->m) + GORT_GO(numbers, small, changing) +
              GORT_GO(arrays, text, n);
    err += GORT_GO(pointer, text) + GORT_GO(fixed, word) + GORT_GO(*pointer, &fixed);
    err += GORT_GO(call, print, small) + GORT_GO(call, &print, changing++);
#ifndef __cplusplus
    err += GORT_GO(nulls, 0, 0, 0, 0) + GORT_GO(nulls, NULL, NULL, word, true);
#endif
    return err;
}
