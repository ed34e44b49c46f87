/* SPDX-License-Identifier: MIT */
/*
 * soak_own_malloc.c - soak.c in a program with a malloc of its own (tests/lib/own_malloc.h).
 * Build: faults
 * Covers: src/os/linux/heap.c src/sched/monitor/preempt.c
 */
#include "own_malloc.h"

#ifdef HAVE_OWN_MALLOC
#include "soak.c"
#else
#include "test.h"

TEST(mixed_load)
{
    SKIP("a sanitizer brings its own malloc");
}
#endif
