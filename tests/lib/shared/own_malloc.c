/* SPDX-License-Identifier: MIT */
/* own_malloc.c - own_malloc.h as a shared library, for programs with "Build: with:own_malloc". */
#include "own_malloc.h"
