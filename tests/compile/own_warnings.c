/* SPDX-License-Identifier: MIT */
/*
 * own_warnings.c - code that compilers warn of, outside of gort's macros: gort.h must not make it worse.
 * Covers: include/gort/typed.h
 */
#ifdef WITHOUT_GORT
#include <stdint.h>
#define GORT_GO(f, a, b)          ((f)(a, b), 0)
#define GORT_CHAN_DEFINE(name, T) typedef T name
#else
#include <gort.h>
#endif

GORT_CHAN_DEFINE(numbers, long);

static void take(int a, char *b)
{
    (void)a, (void)b;
}
static unsigned sum(const unsigned char *text)
{
    return text[0];
}
static int *address(long number)
{
    return number; /* -Wint-conversion */
}

int start(numbers *ch, char *text, long *words);
int start(numbers *ch, char *text, long *words)
{
    int err = GORT_GO(take, 1, text);
    int *other = words;                                              /* -Wincompatible-pointer-types */
    uintptr_t number = text;                                         /* -Wint-conversion */
    err += (int)sum(text) + GORT_GO(take, 2, text) + (int)sum(text); /* -Wpointer-sign */
    return err + !other + !number + !address(*words) + !ch;
}
