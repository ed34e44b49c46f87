/* SPDX-License-Identifier: MIT */
/*
 * bad_float_parameter.c - a floating-point parameter among others.
 * Covers: include/gort/typed.h
 *
 * gcc: conversion from .GORT_GO_takes_only_pointers_and_integers
 * clang: passing 'GORT_GO_takes_only_pointers_and_integers'
 * c++: GORT_GO takes pointers and integers
 */
#include <gort.h>

#ifdef GOOD
typedef long number;
#else
typedef float number;
#endif
static void f(int a, number b, void *c)
{
    (void)a, (void)b, (void)c;
}

int start(void);
int start(void)
{
#ifdef GOOD
    return GORT_GO(f, 1, 2, (void *)0);
#else
    return GORT_GO(f, 1, 2, (void *)0);
#endif
}
