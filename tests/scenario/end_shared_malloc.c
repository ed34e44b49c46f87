/* SPDX-License-Identifier: MIT */
/*
 * end_shared_malloc.c - the end of a run with a malloc in a shared library whose name says nothing.
 * Build: with:own_malloc
 * Covers: src/os/linux/heap.c src/os/linux/object.c src/sched/life/run.c
 */
#include "heaping.h"

TEST(goroutines_in_a_malloc_of_a_shared_library, .procs = "1,2,4")
{
#ifndef WITH_OWN_MALLOC
    SKIP("only in builds with shared libraries and without sanitizers, which bring their own malloc");
#endif
    heaping_end_runs();
}
