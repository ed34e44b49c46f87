/* SPDX-License-Identifier: MIT */
/*
 * sysmon.c - the monitor thread costs little when there is little to watch.
 */
#include <dirent.h>

#include "waiting.h"

/* How often the monitor went to sleep so far. */
static long sleeps_of_the_monitor(void)
{
    char path[300], line[256];
    long n = -1;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    for (struct dirent *d; n < 0 && (d = readdir(tasks)) != NULL;) {
        bool found = false;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", d->d_name);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) {
            found |= strcmp(line, "Name:\tgort-sysmon\n") == 0;
            if (found)
                sscanf(line, "voluntary_ctxt_switches: %ld", &n);
        }
        if (f)
            fclose(f);
    }
    closedir(tasks);
    return n;
}

/* A program that is idle for a moment, again and again: the monitor looks now and then, not at each of them. */
TEST_GO(it_rests_between_bursts, .procs = "1,2,4")
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("threads are the emulator's here");
    for (int64_t until = soon(); sleeps_of_the_monitor() < 0; gort_sleep(GORT_MS))
        CHECK(gort_now() < until);
    long before = sleeps_of_the_monitor();
    int64_t from = gort_now();
    for (int i = 0; i < 2000; i++)
        CHECK_EQ(gort_sleep(50 * GORT_US), 0);
    long ms = (long)((gort_now() - from) / GORT_MS), sleeps = sleeps_of_the_monitor() - before;
    test_log("%ld times in %ld ms", sleeps, ms);
    CHECK_LT(sleeps, 4 * ms + 400); /* it was twice for each of them, and more */
}

/* A program that waits for long does not wake it at all. */
TEST_GO(it_sleeps_while_all_do, .procs = "1,2")
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("threads are the emulator's here");
    gort_sleep(20 * GORT_MS);
    long before = sleeps_of_the_monitor();
    gort_sleep(300 * GORT_MS);
    CHECK_LT(sleeps_of_the_monitor() - before, 20);
}
