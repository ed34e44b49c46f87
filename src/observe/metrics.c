/* SPDX-License-Identifier: MIT */
/*
 * metrics.c - what the scheduler counts, as text that Prometheus reads.
 *
 * Why: the names are those that Prometheus' client for Go gives to Go's runtime/metrics, with gort_ in place
 * of go_, so that dashboards made for Go need no more than that changed; what only gort has is called in the
 * same way. Two formats, because they contradict each other: a counter's family ends with _total in the older
 * one, and must not in OpenMetrics. No stdio, no allocation: the text comes out in pieces, into a buffer or
 * to an fd.
 * Threads: any.
 */
#include <errno.h>
#include <string.h>

#include <gort/io.h>

#include "base/fatal.h"
#include "base/fmt.h"
#include "observe/stats.h"

enum kind { GAUGE, COUNTER, NS, HISTOGRAM }; /* NS: a counter of ns, shown in seconds */

#define FIELD(name, kind, field, help)                                                                       \
    {                                                                                                        \
        name, help, kind, offsetof(gort_stats, field)                                                        \
    }

struct row {
    const char *name, *help; /* without _total */
    enum kind kind;
    size_t offset;
};

static const struct row rows[] = {
    FIELD("sched_gomaxprocs_threads", GAUGE, maxprocs, "Ps: so many goroutines can run at the same time."),
    FIELD("sched_procs_idle", GAUGE, procs_idle, "Ps that no thread has."),
    FIELD("sched_goroutines_goroutines", GAUGE, goroutines, "Goroutines that live."),
    FIELD("sched_goroutines_running_goroutines", GAUGE, running, "Goroutines that run."),
    FIELD("sched_goroutines_runnable_goroutines", GAUGE, runnable, "Goroutines that wait for a P."),
    FIELD("sched_goroutines_preempted_goroutines", GAUGE, preempted,
          "Goroutines that were stopped while they computed, and wait for a P."),
    FIELD("sched_goroutines_waiting_goroutines", GAUGE, waiting, "Goroutines that are parked."),
    FIELD("sched_goroutines_not_in_go_goroutines", GAUGE, blocked,
          "Goroutines in an announced blocking call."),
    FIELD("sched_goroutines_detached_goroutines", GAUGE, detached,
          "Goroutines in a blocking call that was not announced, without a P."),
    FIELD("sched_goroutines_created_goroutines", COUNTER, created, "Goroutines started."),
    FIELD("sched_goroutines_ended_goroutines", COUNTER, ended, "Goroutines that have ended."),
    FIELD("sched_threads_total_threads", GAUGE, threads, "Threads that run goroutines."),
    FIELD("sched_threads_running_threads", GAUGE, threads_running, "Threads that run a goroutine."),
    FIELD("sched_threads_searching_threads", GAUGE, threads_searching, "Threads that look for work."),
    FIELD("sched_threads_blocked_threads", GAUGE, threads_blocked, "Threads in a call that blocks."),
    FIELD("sched_threads_stopped_threads", GAUGE, threads_stopped,
          "Threads with a goroutine that wait for a P."),
    FIELD("sched_threads_idle_threads", GAUGE, threads_idle, "Threads that sleep for want of work."),
    FIELD("sched_threads_spinning_threads", GAUGE, threads_spinning,
          "Threads that look for work in place of others."),
    FIELD("sched_queue_length_goroutines", GAUGE, queue_length, "Runnable goroutines in no P's queue."),
    FIELD("sched_switches", COUNTER, switches, "Switches from one goroutine to the next."),
    FIELD("sched_steals", COUNTER, steals, "Thefts of goroutines from another P's queue."),
    FIELD("sched_handoffs_announced", COUNTER, handoffs_announced,
          "Ps handed over because of announced calls."),
    FIELD("sched_handoffs_unannounced", COUNTER, handoffs_unannounced,
          "Ps taken because of other blocking calls."),
    FIELD("sched_preemptions_asked", COUNTER, preemptions_asked, "Requests to goroutines to stop."),
    FIELD("sched_preemptions_done", COUNTER, preemptions_done, "Goroutines stopped while they computed."),
    FIELD("sched_polls", COUNTER, polls, "Looks at file descriptors."),
    FIELD("sched_poll_events", COUNTER, poll_events, "Goroutines woken by file descriptors."),
    FIELD("sched_timers", GAUGE, timers, "Timers that are pending."),
    FIELD("sched_timers_fired", COUNTER, timers_fired, "Timers that have fired."),
    FIELD("sync_mutex_wait_total_seconds", NS, mutex_wait_ns,
          "Time that goroutines have waited for mutexes."),
    FIELD("sched_latencies_seconds", HISTOGRAM, latency, "Time from runnable to running, of a sample."),
    FIELD("sched_poll_latencies_seconds", HISTOGRAM, poll_latency,
          "Time since the last look, of looks of busy Ps that found a ready file descriptor."),
    FIELD("sched_timer_lateness_seconds", HISTOGRAM, timer_lateness,
          "Time from when a timer was due to when it fired."),
    FIELD("sched_pauses_stopping_other_seconds", HISTOGRAM, stop_stopping,
          "Time until the world had stopped."),
    FIELD("sched_pauses_total_other_seconds", HISTOGRAM, stop_total, "Time until the world went on."),
};

/* Of each P. */
static const struct row proc_rows[] = {
    {"sched_proc_queue_length_goroutines", "Runnable goroutines in the queue of a P.", GAUGE,
     offsetof(gort_stats_proc, queue_length)},
    {"sched_proc_switches", "Switches on a P.", COUNTER, offsetof(gort_stats_proc, switches)},
    {"sched_proc_steals", "Thefts of goroutines for a P.", COUNTER, offsetof(gort_stats_proc, steals)},
};

/* Where the text goes. With an fd the buffer is emptied whenever the next piece may not fit; without one what
 * does not fit is counted only. */
struct out {
    char *buf;
    size_t size, len; /* len: of all of it without an fd, of what is in the buffer with one */
    int fd, err;
    bool open_metrics;
};

#define PIECE 320 /* no piece is longer */

static void put(struct out *o, const char *fmt, ...) GORT_PRINTF(2, 3);
static void put(struct out *o, const char *fmt, ...)
{
    char piece[PIECE];
    va_list args;
    va_start(args, fmt);
    size_t n = gort__fmt_v(piece, sizeof piece, fmt, args);
    va_end(args);
    if (o->fd >= 0 && o->len + n > o->size) {
        ssize_t wrote = o->err ? 0 : gort_write_all(o->fd, o->buf, o->len);
        if (wrote < 0)
            o->err = (int)wrote;
        o->len = 0;
    }
    if (o->len < o->size)
        memcpy(o->buf + o->len, piece, n < o->size - o->len ? n : o->size - o->len);
    o->len += n;
}

/* "0.000000128", of ns. */
static const char *seconds(uint64_t ns, char *buf, size_t size)
{
    size_t n = gort__fmt(buf, size, "%lu.", (unsigned long)(ns / 1000000000));
    uint64_t rest = ns % 1000000000;
    for (uint64_t unit = 100000000; unit && n + 1 < size; unit /= 10)
        buf[n++] = (char)('0' + rest / unit % 10);
    buf[n] = '\0';
    return buf;
}

static const char *const type_names[] = {"gauge", "counter", "counter", "histogram"};

static const char *suffix(const struct row *r)
{
    return r->kind == COUNTER || r->kind == NS ? "_total" : "";
}

static void put_head(struct out *o, const struct row *r)
{
    const char *total = o->open_metrics ? "" : suffix(r);
    put(o, "# HELP gort_%s%s %s\n", r->name, total, r->help);
    put(o, "# TYPE gort_%s%s %s\n", r->name, total, type_names[r->kind]);
}

static void put_histogram(struct out *o, const struct row *r, const gort_histogram *h)
{
    char text[40];
    uint64_t n = 0;
    for (int i = 0; i < GORT_HISTOGRAM_BUCKETS - 1; i++) {
        n += h->bucket[i];
        put(o, "gort_%s_bucket{le=\"%s\"} %lu\n", r->name,
            seconds((uint64_t)gort_histogram_edge(i), text, sizeof text), (unsigned long)n);
    }
    put(o, "gort_%s_bucket{le=\"+Inf\"} %lu\n", r->name, (unsigned long)h->count);
    put(o, "gort_%s_sum %s\n", r->name, seconds(h->sum_ns, text, sizeof text));
    put(o, "gort_%s_count %lu\n", r->name, (unsigned long)h->count);
}

static void put_row(struct out *o, const struct row *r, const gort_stats *s)
{
    const char *at = (const char *)s + r->offset;
    uint64_t value;
    char text[40];
    put_head(o, r);
    if (r->kind == HISTOGRAM) {
        put_histogram(o, r, (const gort_histogram *)(const void *)at);
        return;
    }
    memcpy(&value, at, sizeof value);
    if (r->kind == NS)
        put(o, "gort_%s_total %s\n", r->name, seconds(value, text, sizeof text));
    else
        put(o, "gort_%s%s %lu\n", r->name, suffix(r), (unsigned long)value);
}

static void put_proc_row(struct out *o, const struct row *r, int n)
{
    put_head(o, r);
    for (int i = 0; i < n; i++) {
        gort_stats_proc p = {0};
        struct gort__stats_look look;
        uint64_t value;
        if (!gort__stats_begin(&look))
            return;
        bool there = gort__stats_fill_proc(&p, i);
        gort__stats_end(&look);
        if (!there)
            return;
        memcpy(&value, (const char *)&p + r->offset, sizeof value);
        put(o, "gort_%s%s{proc=\"%d\"} %lu\n", r->name, suffix(r), i, (unsigned long)value);
    }
}

static int put_all(struct out *o, int format)
{
    gort_stats s = {.size = sizeof s};
    if (format != GORT_STATS_PROMETHEUS && format != GORT_STATS_OPENMETRICS)
        return -EINVAL;
    o->open_metrics = format == GORT_STATS_OPENMETRICS;
    int err = gort_stats_get(&s);
    if (err)
        return err;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        put_row(o, &rows[i], &s);
    for (size_t i = 0; i < sizeof proc_rows / sizeof proc_rows[0]; i++)
        put_proc_row(o, &proc_rows[i], (int)s.maxprocs);
    if (o->open_metrics)
        put(o, "# EOF\n");
    return 0;
}

int gort_stats_text(char *buf, size_t size, int format)
{
    if (size)
        GORT_NEED("gort_stats_text", "buffer", buf);
    struct out o = {.buf = buf, .size = size ? size - 1 : 0, .fd = -1};
    int err = put_all(&o, format);
    if (size)
        buf[err ? 0 : o.len < size ? o.len : size - 1] = '\0';
    return err ? err : (int)o.len;
}

int gort_stats_write(int fd, int format)
{
    char buf[4096];
    struct out o = {.buf = buf, .size = sizeof buf, .fd = fd};
    if (fd < 0)
        return -EBADF;
    int err = put_all(&o, format);
    if (err || o.err)
        return err ? err : o.err;
    ssize_t wrote = gort_write_all(fd, buf, o.len);
    return wrote < 0 ? (int)wrote : 0;
}
