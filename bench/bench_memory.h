/* SPDX-License-Identifier: MIT */
/* bench_memory.h - what the process costs now: resident memory and page tables, in bytes. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include "bench.h"

static inline double bench_memory(void)
{
    double kb = 0;
    long one;
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    if (!f)
        bench_die("no /proc/self/status", 0);
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmRSS: %ld kB", &one) == 1 || sscanf(line, "VmPTE: %ld kB", &one) == 1)
            kb += (double)one;
    fclose(f);
    return kb * 1024;
}

#endif
