/* SPDX-License-Identifier: MIT */
/*
 * monitor.h - the threads of the process as the kernel shows them: how many there are, which is the monitor,
 * and its CPU time.
 */
#ifndef BENCH_MONITOR_H
#define BENCH_MONITOR_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Counts the threads; *monitor: its thread id, looked for if it is 0. */
static inline int count_threads(int *monitor)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], name[32] = "";
        if (e->d_name[0] == '.')
            continue;
        n++;
        if (*monitor)
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *f = fopen(path, "r");
        if (f && fgets(name, sizeof name, f) && !strncmp(name, "gort-sysmon", 11))
            *monitor = atoi(e->d_name);
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return n;
}

/* CPU time of a thread of this process, ns: of the clock that clock_getcpuclockid would give for it. */
static inline int64_t thread_cpu(int tid)
{
    struct timespec t = {0};
    if (tid)
        clock_gettime((clockid_t)(~(unsigned)tid << 3 | 6), &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

#endif
