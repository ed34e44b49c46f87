/* SPDX-License-Identifier: MIT */
/*
 * gort/stats.h - what the scheduler counts: for programs that watch themselves, and for Prometheus.
 *
 *     gort_stats s = {.size = sizeof s};
 *     if (gort_stats_get(&s) == 0)
 *         printf("%llu goroutines, %llu wait\n", (unsigned long long)s.goroutines, (unsigned long long)s.waiting);
 *
 * Counting makes a switch of goroutines 1 % longer at most. Asking takes a few microseconds, whatever the
 * number of goroutines, and stops nobody; so what belongs together may be a moment apart. Everything counts
 * from the start of the run and ends with it. GORT_DEBUG=schedtrace=MS prints some of it.
 */
#ifndef GORT_STATS_H
#define GORT_STATS_H

#include "base.h"

GORT_BEGIN_DECLS

/*
 * How long something took. bucket[i] counts what took less than gort_histogram_edge(i) ns and did not fit
 * into an earlier bucket: the edges are 128 ns, 256 ns, 512 ns and so on; the last bucket has none.
 */
#define GORT_HISTOGRAM_BUCKETS 32
typedef struct gort_histogram {
    uint64_t count, sum_ns;
    uint64_t bucket[GORT_HISTOGRAM_BUCKETS];
} gort_histogram;

/* Returns the upper edge of a bucket, ns; INT64_MAX for the last one. Never parks. Callable from anywhere. */
GORT_API int64_t gort_histogram_edge(int bucket);
/* Returns a time, ns, below which the given share (0 to 1) of what was counted lies: the edge of a bucket. 0:
 * there is none. */
GORT_API int64_t gort_histogram_quantile(const gort_histogram *h, double share);

typedef struct gort_stats {
    size_t size;    /* set it to sizeof(gort_stats) before the call */
    int64_t run_ns; /* since the run began */

    /* Goroutines now; their sum is goroutines. */
    uint64_t goroutines;
    uint64_t running;        /* run code on a P */
    uint64_t runnable;       /* wait for a P */
    uint64_t preempted;      /* were stopped while they computed, and wait for a P */
    uint64_t waiting;        /* are parked */
    uint64_t blocked;        /* in a call that blocks and was announced (gort_block, gort_block_enter) */
    uint64_t detached;       /* in a call that blocks and was not announced, without a P */
    uint64_t created, ended; /* so far */

    /* Threads that run goroutines, now; their sum is threads. gort has two more: the monitor and the one in
     * gort_run. */
    uint64_t threads;
    uint64_t threads_running;   /* run a goroutine */
    uint64_t threads_searching; /* have a P and look for work */
    uint64_t threads_blocked;   /* are in a call that blocks */
    uint64_t threads_stopped;   /* have a goroutine, and wait for a P */
    uint64_t threads_idle;      /* sleep */
    /* Of those that search: so many counted as such, which keeps others from being woken. */
    uint64_t threads_spinning;

    uint64_t maxprocs, procs_idle; /* Ps */
    uint64_t queue_length;         /* runnable goroutines in no P's queue */

    uint64_t switches;                                 /* from one goroutine to the next */
    uint64_t steals;                                   /* a P took goroutines from another one's queue */
    uint64_t handoffs_announced, handoffs_unannounced; /* of Ps, because of a call that blocks */
    uint64_t preemptions_asked, preemptions_done;      /* a request may be made again, or come to nothing */
    uint64_t polls, poll_events;                       /* looks at fds; goroutines that they woke */
    uint64_t timers, timers_fired;                     /* pending now; so far */
    uint64_t mutex_wait_ns; /* all together have waited so long for gort_mutex and gort_rwmutex */

    gort_histogram latency; /* from runnable to running; a sample */
    /* An fd that a busy P found ready may have been so for so long: since the last look. */
    gort_histogram poll_latency;
    gort_histogram timer_lateness; /* from the time to the call, or to runnable */
    gort_histogram stop_stopping,
        stop_total;        /* stops of the world: until all have stopped; until they go on */
    uint64_t reserved[16]; /* zero */
} gort_stats;

/*
 * Fills *stats, or as much of it as the library knows: what it does not know is zero. Returns 0; -ESRCH: no
 * run is on; -EINVAL: size is too small. Never parks.
 */
GORT_API GORT_MUST_CHECK int gort_stats_get(gort_stats *stats);

typedef struct gort_stats_proc {
    uint64_t queue_length;                     /* runnable goroutines in its queue */
    uint64_t created, ended, switches, steals; /* so far, while they were on it */
    uint64_t timers;                           /* pending */
    int64_t thread;       /* the kernel's number of the thread that has it; 0: it is idle */
    uint64_t reserved[5]; /* zero */
} gort_stats_proc;

/*
 * Fills procs[0] to procs[n - 1], as far as there are Ps. Returns how many there are, which may be more than
 * n; -ESRCH: no run is on. Never parks.
 */
GORT_API GORT_MUST_CHECK int gort_stats_procs(gort_stats_proc *procs, int n);

/* How gort_stats_text writes: Prometheus' text format, version 0.0.4; or OpenMetrics 1.0. */
enum { GORT_STATS_PROMETHEUS, GORT_STATS_OPENMETRICS };

/*
 * Writes all of the above as text into buf, with names after those of Go's runtime/metrics: gort_sched_...,
 * gort_sync_.... Returns its length without the zero at its end; if that is not below size the text is cut
 * off. -ESRCH: no run is on; -EINVAL: no such format. 32,768 bytes are enough for up to 64 Ps. Never parks.
 */
GORT_API GORT_MUST_CHECK int gort_stats_text(char *buf, size_t size, int format);
/* Writes the same to fd, as gort_write_all does. Returns 0 or -errno. May park. */
GORT_API GORT_MUST_CHECK int gort_stats_write(int fd, int format);

GORT_END_DECLS
#endif
