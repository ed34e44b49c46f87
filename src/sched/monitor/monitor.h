/* SPDX-License-Identifier: MIT */
/*
 * monitor.h - who keeps others from running: sysmon, its sleep, preemption.
 */
#ifndef GORT_SRC_SCHED_MONITOR_MONITOR_H
#define GORT_SRC_SCHED_MONITOR_MONITOR_H

#include "sched/threads/threads.h"

/* --- preempt.c ----------------------------------------------------------------------------------- */
int gort__preempt_start(void);                /* the start of a run: installs the handler */
void gort__preempt_end(bool keep);            /* its end; keep: threads that are left may still need it */
void gort__preempt_again(void);               /* installs the handler again if it is gone */
void gort__preempt_thread(struct gort__m *m); /* an M's thread starts */
void gort__preempt_thread_end(struct gort__m *m);
int gort__preempt_signal(void); /* our signal's number in the current or last run, 0: there was none */
bool gort__preempt_refused(struct gort__m *m);          /* its thread blocks the signal. Reads a file */
void gort__preempt_ask(struct gort__m *m, bool urgent); /* makes the thread look at its attention soon */
void gort__preempt_freeze(struct gort__m *list);        /* the end of the run: who computes stops for good */

/* --- sysmon.c ------------------------------------------------------------------------------------ */
int gort__sysmon_start(void);
/* The supervisor, while sysmon has no thread: sees to timers and fds, as every M may wait with a goroutine
 * that is bound to it. */
void gort__sysmon_stand_in(void);
/* It looks at nothing any more, but its thread is still there. Never waits for a lock of libc's. */
void gort__sysmon_quiet(void);
void gort__sysmon_stop(void);

/* --- sysmon_sleep.c ------------------------------------------------------------------------------ */
void gort__sysmon_sleep_work(void);
/* No P is idle, so nobody owns the poller: sysmon waits for timers and fds from now on. */
void gort__sysmon_sleep_events(void);
void gort__sysmon_sleep_notify(void);
void gort__sysmon_sleep_calm(void);          /* nobody waits any more, and it was about to look */
void gort__sysmon_sleep_timer(int64_t when); /* a timer became the first, and nobody owns the poller for it */
void gort__sysmon_sleep_arm_locked(void);    /* a P is taken while it is idle */
void gort__sysmon_sleep_disarm_locked(void); /* all Ps are idle, and its watchdog is armed */
/* For sysmon alone. Open, then quit by another thread, which wakes it for good, and close when it has
 * ended. */
void gort__sysmon_sleep_open(void);
void gort__sysmon_sleep_quit(void);
void gort__sysmon_sleep_close(void);
bool gort__sysmon_sleep_if_idle(int64_t now); /* there is nothing to look at: sleeps without an alarm next */
/* Else; is_long: whoever has something for it must notify it; listen: fds that are ready wake it; slack: of
 * timers. */
void gort__sysmon_sleep_until(int64_t until, bool is_long, bool listen, int64_t slack);
bool gort__sysmon_sleep(void); /* true: it was notified */

#endif
