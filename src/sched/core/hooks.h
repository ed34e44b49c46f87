/* SPDX-License-Identifier: MIT */
/*
 * hooks.h - what lower rooms call of higher ones.
 *
 * Why: a search for work is above the queues, and what to do about a stopped world above both; but a
 * goroutine that stops asks for the one, and each entry may ask for the other. Such calls go through this
 * table, by name. It is constant (wiring/hooks.c), so it is there before the first run, and costs one load
 * more than a call. Nothing that happens at every switch is in it.
 */
#ifndef GORT_SRC_SCHED_CORE_HOOKS_H
#define GORT_SRC_SCHED_CORE_HOOKS_H

#include <stddef.h>

#include "base/compiler.h"

struct gort__g;
struct gort__m;
struct gort__zombie;

struct gort__hooks {
    struct {
        /* Gets one more M to look for work. */
        void (*wake_p)(void);
        /* On g0, with a P; NULL: the thread is to end. */
        struct gort__g *(*find)(struct gort__m *m);
        /* It found work. */
        void (*spin_stop)(struct gort__m *m);
        /* Hands m's P to g's own M. */
        void (*run_bound)(struct gort__m *m, struct gort__g *g);
        /* False: the thread is to end. */
        bool (*wait_bound)(struct gort__m *m);
        /* On g0: a blocking call of a goroutine. */
        void (*block_call_run)(struct gort__m *m);
        /* A function returned in one. */
        __attribute__((noreturn)) void (*block_left_open)(void);
        /* A timer became the first of its heap; after its unlock. */
        void (*timer_first)(struct gort__m *m, int64_t when);
    } threads;
    struct {
        /* It is to look at its attention soon. */
        void (*preempt_ask)(struct gort__m *m, bool urgent);
        /* An M's thread starts. */
        void (*preempt_thread)(struct gort__m *m);
        /* And ends. */
        void (*preempt_thread_end)(struct gort__m *m);
        /* The signal of this or the last run; 0: none. */
        int (*preempt_signal)(void);
        /* Something was queued while it sleeps long. */
        void (*sysmon_work)(void);
        /* There may be something for it to do soon. */
        void (*sysmon_notify)(void);
        /* Nobody waits any more. */
        void (*sysmon_calm)(void);
        /* A P is taken while it is idle; with sched.lock held. */
        void (*sysmon_arm_locked)(void);
        /* All Ps are idle; with sched.lock held. */
        void (*sysmon_disarm_locked)(void);
        /* A timer became the first. */
        void (*sysmon_timer)(int64_t when);
        /* Nobody owns the poller: it waits for timers and fds. */
        void (*sysmon_events)(void);
    } monitor;
    struct {
        /* With inside set: does what attention asks for. */
        void (*attend)(struct gort__m *m);
        /* The slow half of gort__enter. */
        struct gort__m *(*enter_plain)(void);
        /* Of gort__enter_light. */
        void (*light_slow)(struct gort__m *m);
        /* Of gort__leave. */
        void (*leave_slow)(struct gort__m *m);
        /* Back to a blocking call. */
        void (*leave_blocking)(struct gort__m *m);
        /* The run is over. */
        __attribute__((noreturn)) void (*end_thread)(struct gort__m *m);
        /* A thread comes to its end. */
        void (*thread_ends)(void *m);
        /* By a thread that outlived its run. */
        void (*zombie_free)(struct gort__zombie *z);
        /* The main goroutine ends. */
        void (*main_ends)(void);
        /* It has something to do; with sched.lock held. */
        void (*supervisor_wake_locked)(void);
        /* Is there one? With sched.lock held. */
        void (*deadlock_locked)(void);
        /* Attention said so. */
        void (*world_wait)(struct gort__m *m);
        /* An M stops, or gives up a P, while the world does. */
        void (*world_event)(void);
        /* Its thread is about to sleep. */
        void (*publish_sp)(struct gort__m *m, void *sp);
        /* And goes on. */
        void (*retract_sp)(struct gort__m *m);
    } life;
    struct {
        /* The start of a run. */
        void (*overflow_init)(void);
        /* Its end. */
        void (*overflow_end)(void);
        /* GORT_G_CHECKED: fatal when it has run over its stack. */
        void (*overflow_check)(struct gort__g *g);
        /* GORT_G_CHECKED: it has ended. */
        void (*census_take)(struct gort__g *g);
        /* At the end of a run. */
        void (*census_print)(void);
        /* The calling goroutine; 0 in a plain thread. */
        size_t (*dump_who)(char *buf, size_t size);
        /* When it wants to be called again. */
        int64_t (*scavenge)(int64_t now);
        /* The same. */
        int64_t (*schedtrace)(int64_t now);
        /* A P is at work. */
        void (*scavenge_stir)(void);
        /* All Ps are idle; with sched.lock held. */
        void (*scavenge_stir_locked)(void);
    } outer; /* observe and scavenge */
};
extern const struct gort__hooks gort__hooks GORT_HIDDEN;

#endif
