/* SPDX-License-Identifier: MIT */
/*
 * zero_read_8.c - short system calls (16 bytes of /dev/zero), eight goroutines, announced; one operation is one call.
 */
#include "bench.h"

#include <fcntl.h>
#include <unistd.h>

enum { READERS = 8 };

static int zero = -1;

static void reader(gort_wg *wg, long n)
{
    char buf[16];
    for (long i = 0; i < n; i++) {
        gort_block_enter();
        ssize_t got = read(zero, buf, sizeof buf);
        gort_block_leave();
        if (got != sizeof buf)
            bench_die("read", 0);
    }
    gort_wg_done(wg);
}

static double work(long n)
{
    gort_wg wg = {0};
    if (zero < 0 && (zero = open("/dev/zero", O_RDONLY)) < 0)
        bench_die("/dev/zero", 0);
    gort_wg_add(&wg, READERS);
    for (int i = 0; i < READERS; i++)
        must(GORT_GO(reader, &wg, n / READERS));
    must(gort_wg_wait(&wg));
    return 0;
}

BENCH_MAIN("zero_read_8", READERS, work)
