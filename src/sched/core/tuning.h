/* SPDX-License-Identifier: MIT */
/*
 * tuning.h - the constants of the scheduler that decide how soon, how often and how many, with what they were
 * measured by.
 *
 * Times are in ns. docs/design/0009, 0012 and 0015 have the measurements.
 */
#ifndef GORT_SRC_SCHED_CORE_TUNING_H
#define GORT_SRC_SCHED_CORE_TUNING_H

/* --- Time slices and fairness -------------------------------------------------------------------- */
/* A time slice. Shorter: more switches; longer: a woken goroutine waits. Go's is the same. */
#define GORT_SLICE INT64_C(10000000)
/* One pick in so many looks at the global queue first, as in Go: rare enough to cost nothing. */
#define GORT_FAIR_EVERY 61
/* New goroutines that are looked behind when they must wait. */
#define GORT_PASS_OVER 256
/* A woken goroutine that computes for longer is an ordinary one. */
#define GORT_SLICE_WOKEN INT64_C(1000000)
/* So long may a goroutine wait to run next on a P whose goroutine computes. */
#define GORT_NEXT_LATE INT64_C(2000000)
/* So long the processor's counter is watched before its rate is believed. */
#define GORT_TICKS_RATE_AFTER INT64_C(5000000)
/* A suspended machine's counter may go on, its clock does not: the rate is measured anew so often. */
#define GORT_TICKS_RATE_ANEW INT64_C(1000000000)
/* Segments of the global queue looked at for one of our own, */
#define GORT_QUEUE_LOOK_FOR_OWN 8
/* and so often the first is passed over for it. */
#define GORT_QUEUE_PASS_MOST 4

/* --- Looks of sysmon ----------------------------------------------------------------------------- */
/* Between looks while somebody waits: a look and its wake-up cost 6 to 11 us. */
#define GORT_LOOK INT64_C(2000000)
/* And while nobody does, doubled up to */
#define GORT_LOOK_LONG INT64_C(10000000)
/* so many times: a look a second costs 0.002 % of a core, one every 10 ms 0.2 %. */
#define GORT_CALM_MOST 7
/* After a P was taken; an M that is woken runs after some 30 us. */
#define GORT_LOOK_FIRST INT64_C(40000)
/* While all Ps go through many goroutines: 2 % of a busy echo server are the price of 1 ms. */
#define GORT_LOOK_CHURNING INT64_C(4000000)
/* Switches of a P between two looks that count as many. */
#define GORT_CHURN_MIN 8
/* So long after the last P was taken the next one may still be taken at first sight. */
#define GORT_CALM INT64_C(1000000)
/* Of a timer, while a P is idle. */
#define GORT_OVERDUE INT64_C(4000000)
/* Of timers and fds, when all Ps are busy and see to them, */
#define GORT_SLACK_MOST INT64_C(4000000)
/* and the first step to that. */
#define GORT_SLACK_LEAST INT64_C(100000)
/* The alarm that the first P to be taken sets: earlier than the kernel's tick costs 10 us, */
#define GORT_WATCHDOG_MAX INT64_C(4000000)
/* and at least. */
#define GORT_WATCHDOG_MIN INT64_C(500000)
/* It is taken away again once in so long, at most. */
#define GORT_WATCHDOG_PAUSE INT64_C(2000000)

/* --- Blocking calls and hogs --------------------------------------------------------------------- */
/* A CPU clock that stands still for so long: asleep, if /proc does not tell. */
#define GORT_BLIND INT64_C(10000000)
/* Handing the P over does not pay for calls that are shorter. */
#define GORT_SHORT_CALL INT64_C(20000)
/* So many announced calls are taken for long ones after one that was. */
#define GORT_LONG_BLOCKS 8
/* CPU time in one announced call: it computes there. */
#define GORT_CALL_CPU INT64_C(200000)
/* Between two requests to stop. */
#define GORT_ASK_AGAIN INT64_C(10000000)
/* So much CPU time without a sleep makes a hog; */
#define GORT_HOG_PROVEN INT64_C(10000000)
/* what was seen longer ago proves nothing. */
#define GORT_HOG_LOOK INT64_C(100000)
/* Of its own CPU time: a CPU timer goes off at the kernel's tick, every 4 ms at HZ 250. */
#define GORT_TIMER_LATE INT64_C(5000000)
/* So much CPU time with our signal blocked and pending: it is not just in a handler. */
#define GORT_MASKED_CPU INT64_C(2000000)
/* From here on new goroutines wait for preempted ones. */
#define GORT_PREEMPTED_MANY 16
/* CPU time for each P, at GORT_PREEMPTED_MANY: the price of a start. */
#define GORT_ADMIT_CPU INT64_C(50000000)
/* A time slice is not longer; the M has run others meanwhile. */
#define GORT_BURST_MOST INT64_C(100000000)
/* In which something else, sysmon say, had the CPU. */
#define GORT_BURST_OTHERS INT64_C(100000)

/* --- Search and sleep of Ms ---------------------------------------------------------------------- */
/*
 * So many Ms, or preempted goroutines, are looked at for one that sleeps on this CPU, and so often may the
 * first be passed over. Beside 4,096 hogs and a ticker of 1 ms, 2 procs: with 4 a CPU was idle for 2 to 5 %
 * of the time, with 16 for 1 to 3 %.
 */
#define GORT_M_NEAR 16
/* Between looks for ready fds while there is other work. */
#define GORT_POLL_EVERY INT64_C(50000)
/* Over all Ps; `next` is stolen in the last one, as in Go, */
#define GORT_STEAL_ROUNDS 4
/* after so many pauses of the processor, some 2 us. */
#define GORT_STEAL_NEXT_PAUSES 60
/* Nobody has needed the last M for so long. */
#define GORT_LAST_M_UNUSED INT64_C(1000000000)
/* Wake-ups of the poll owner while timers are coalesced: half as many cost half as much, and timers come
 * later. */
#define GORT_COALESCE_EVERY INT64_C(275000)
/* From so many timers pending on one P on. */
#define GORT_COALESCE_MANY 256
/* Picks between looks whether a deferred wake-up is due. */
#define GORT_WAKE_DEFER_EVERY 4
/* How late the cached time may be; GORT_ARCH_TICKS_BRIEF ticks take less. */
#define GORT_CACHED_NOW_FOR INT64_C(100000)

#endif
