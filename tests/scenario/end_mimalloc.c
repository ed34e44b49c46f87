/* SPDX-License-Identifier: MIT */
/*
 * end_mimalloc.c - the end of a run in a program with mimalloc, linked statically if its archive is there.
 * Build: lib:mimalloc
 * Covers: src/os/linux/heap.c src/sched/life/run.c
 */
#include "heaping.h"

TEST(goroutines_in_mimalloc, .procs = "1,2,4")
{
#ifndef HAVE_MIMALLOC
    SKIP(
        "mimalloc is not linked: libmimalloc-dev is not installed, or this build has a sanitizer's malloc or another machine's code");
#endif
    heaping_bulk = true;
    heaping_end_runs();
}
