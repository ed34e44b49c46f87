/* SPDX-License-Identifier: MIT */
/*
 * end_jemalloc.c - the end of a run in a program with jemalloc, linked statically if its archive is there.
 * Build: lib:jemalloc
 * Covers: src/os/linux/heap.c src/sched/life/run.c
 */
#include "heaping.h"

TEST(goroutines_in_jemalloc, .procs = "1,2,4")
{
#ifndef HAVE_JEMALLOC
    SKIP(
        "jemalloc is not linked: libjemalloc-dev is not installed, or this build has a sanitizer's malloc or another machine's code");
#endif
    heaping_bulk = true;
    heaping_end_runs();
}
