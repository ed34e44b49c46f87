/* SPDX-License-Identifier: MIT */
/*
 * end_libc_malloc.c - the end of a run beside goroutines in libc's malloc; or in another one
 * that LD_PRELOAD or a sanitizer puts in its place.
 * Covers: src/os/linux/text.c src/sched/life/run.c
 */
#include "heaping.h"

/* What frozen goroutines have is lost, as the end of a run says; LSan need not. */
TEST(goroutines_in_malloc, .procs = "1,2,4", .env = "ASAN_OPTIONS=detect_leaks=0")
{
    heaping_bulk = true;
    heaping_end_runs();
}
