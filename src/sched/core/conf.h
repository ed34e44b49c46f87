/* SPDX-License-Identifier: MIT */
/*
 * conf.h - how a run is set up, after defaults, the program's gort_config and the environment.
 *
 * The environment wins, so that whoever runs a program can change it without building it anew.
 */
#ifndef GORT_SRC_SCHED_CONF_H
#define GORT_SRC_SCHED_CONF_H

#include <gort/run.h>

#include "base/compiler.h"

#define GORT_CONF_STACK_MIN   ((size_t)64 << 10) /* as mem/stack.h */
#define GORT_CONF_STACK_MAX   ((size_t)1 << 30)
#define GORT_CONF_STACK       ((size_t)256 << 10)
#define GORT_CONF_MAX_THREADS 10000
#define GORT_CONF_IDLE_MS     5000
#define GORT_CONF_LIMITS_MS   5000

/* Written by gort__conf_load; whoever has it may change it before the run starts. */
struct gort__conf {
    int maxprocs;       /* 1 .. GORT_MAXPROCS_MAX */
    bool maxprocs_set;  /* somebody asked for it, so it does not follow the machine's limits; atomic */
    size_t stack_size;  /* GORT_CONF_STACK_MIN .. GORT_CONF_STACK_MAX, not rounded */
    int signal;         /* the one that preempts */
    int max_threads;    /* at least 1 */
    uint64_t fuzz_seed; /* with fuzz */
    bool fuzz;          /* choices of the scheduler are made at random */
    bool threads_fatal; /* needing more than max_threads ends the program */
    bool preempt_off;   /* long-running goroutines are left alone */
    int schedtrace_ms;  /* 0: no such lines */
    bool scheddetail;   /* schedtrace with each G, M and P */
    bool stackcensus;   /* count how deep stacks have been used */
    int idle_ms;        /* how long a thread without work stays */
    int limits_ms;      /* between looks at the machine's CPU limits; 0: never */
    bool noguard;       /* as on a kernel without MADV_GUARD_INSTALL */
    bool canary;        /* as when the kernel has no mapping left for a guard */
    bool nopagescan;    /* as on a kernel without PAGEMAP_SCAN */
    bool nomembarrier;  /* as on a kernel without membarrier */
    bool nopwait2;      /* as on a kernel without epoll_pwait2 */
    bool notimerfd;     /* as when there is no fd left for one */
};

/*
 * Fills *out; user may be NULL. -EINVAL: user has a value that makes no sense. Bad values in the
 * environment are said once in a process (gort__warn) and ignored. Also tells the os room what
 * noguard and nomembarrier want, so it comes before gort__os_init.
 * From a plain thread, one at a time, while no run is on.
 */
int gort__conf_load(struct gort__conf *out, const gort_config *user);

#endif
