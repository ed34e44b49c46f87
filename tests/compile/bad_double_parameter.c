/* SPDX-License-Identifier: MIT */
/*
 * bad_double_parameter.c - a floating-point parameter is not passed in the registers that GORT_GO fills.
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
