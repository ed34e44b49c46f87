/* SPDX-License-Identifier: MIT */
/*
 * core.h - what the files of this room and those above it in sched may call.
 */
#ifndef GORT_SRC_SCHED_CORE_CORE_H
#define GORT_SRC_SCHED_CORE_CORE_H

#include "mem/argmem.h"
#include "sched/core/cached_now.h"
#include "sched/core/enter.h"
#include "sched/core/fuzz.h"
#include "sched/core/gmain.h"
#include "sched/core/hooks.h"
#include "sched/core/latency.h"
#include "sched/core/local.h"
#include "sched/core/note.h"
#include "sched/core/park.h"
#include "sched/core/ras.h"
#include "sched/core/ready.h"
#include "sched/core/sched.h"
#include "sched/core/spawn.h"
#include "sched/core/tuning.h"
#include "sched/core/wake.h"

/* --- cputime.c ----------------------------------------------------------------------------------- */
/* cputime.c. */
/* A goroutine that has not run yet; false: those that are preempted go first. */
bool gort__cputime_admit_new(void);
/* Its goroutine is about to be preempted, or at least was asked to stop. */
void gort__cputime_end(struct gort__m *m);
void gort__cputime_begin(struct gort__m *m); /* it was preempted, and goes on */
/* A thread that has used so much CPU time of that time has not slept to speak of. */
bool gort__cputime_awake(int64_t ns, int64_t cpu);
/* The CPU time for which the goroutine that m runs on p has only computed until now, as far as the clocks
 * tell, ns. */
int64_t gort__cputime_burst(struct gort__m *m, struct gort__p *p, int64_t now, int64_t cpu);

/* The thread sleeps in the kernel; since_last: and has not run since the last look. Where the kernel cannot
 * be asked (no fd left, no /proc), one that has not run for long counts as asleep. Keeps what it saw in
 * *s. */
bool gort__stall_asleep(struct gort__cpu_stall *s, int tid, int64_t now, bool since_last);

/* --- extra.c ------------------------------------------------------------------------------------- */
struct gort__extra *gort__extra_get(struct gort__g *g); /* made if there is none; NULL: no memory; inside */
void gort__extra_put(struct gort__g *g);                /* it has one, with nothing in it but a name */
bool gort__extra_set_name(struct gort__g *g, const char *name); /* false: no memory; inside */
/* Anybody's, byte by byte: it may change at any time. */
const char *gort__extra_name(const struct gort__g *g);

/* --- g.c ----------------------------------------------------------------------------------------- */
struct gort__g *gort__g_new(struct gort__p *p); /* an idle G; p NULL: for a plain thread. NULL: no memory */
void gort__g_free(struct gort__p *p, struct gort__g *g);    /* its stack is gone already */
void gort__g_discard(struct gort__p *p, struct gort__g *g); /* never started */
void gort__g_cache_flush(struct gort__p *p);
void gort__g_batch_put_locked(struct gort__g *batch); /* with free_lock held */
void gort__g_collect(void); /* memory is short: takes records and stacks from idle Ps */
uint64_t gort__g_count(void);

/* --- gmain.c ------------------------------------------------------------------------------------- */
void gort__gmain_start(void);                             /* the entry of every goroutine */
void gort__gmain_cleanup(struct gort__g *g);              /* whatever it has to release at its end; inside */
bool gort__gmain_callback(void (*fn)(void *), void *arg); /* user code, outside; false: the run is over */
__attribute__((noreturn)) void gort__gmain_end(void);     /* the running G ends */

/* --- key.c --------------------------------------------------------------------------------------- */
bool gort__key_destroy_all(struct gort__g *g); /* key.c; false: the run is over */

/* --- mask.c -------------------------------------------------------------------------------------- */
void gort__mask_thread(struct gort__m *m); /* an M's thread starts */
void gort__mask_doubt(struct gort__m *m);  /* the mask may not be the usual one; in handlers, too */
/* Whoever runs stops: the thread has its usual mask. True: *mask is what it was; else it is not touched or
 * worthless. */
bool gort__mask_put_away(struct gort__m *m, uint64_t *mask);
void gort__mask_take_up(struct gort__m *m, uint64_t mask); /* and goes on, here */

/* --- preempted.c --------------------------------------------------------------------------------- */
/* SECOND: the first is the one that the P which it gives up may be for. */
enum gort__place { GORT_PLACE_LAST, GORT_PLACE_SECOND, GORT_PLACE_FIRST };
void gort__preempted_put_locked(struct gort__g *g, enum gort__place place);
struct gort__g *gort__preempted_pop_locked(void);
struct gort__g *gort__preempted_take(void);
struct gort__g *gort__preempted_take_first(void); /* the one that let others go first, if it is still there */

/* --- queue.c ------------------------------------------------------------------------------------- */
void gort__queue_put_locked(struct gort__g *g);
struct gort__g *gort__queue_take(struct gort__p *p, uint32_t most); /* returns one, the rest into p */
struct gort__g *gort__queue_take_bound_locked(void); /* the first that runs on its own M only, or NULL */
void gort__queue_put(struct gort__g *g);
void gort__queue_put_woken_locked(struct gort__g *g);
void gort__queue_put_woken(struct gort__glist list); /* to the end of those that an event has woken */
/* Returns one, a fair share of the rest into p; NULL: none. */
struct gort__g *gort__queue_take_woken(struct gort__p *p);
void gort__queue_put_and_wake(struct gort__g *g);

/* --- schedule.c ---------------------------------------------------------------------------------- */
void gort__schedule_loop(struct gort__m *m);                  /* on g0; returns when the thread is to end */
struct gort__g *gort__schedule_pick_local(struct gort__p *p); /* NULL: nothing is queued here */
struct gort__g *gort__schedule_pick(struct gort__p *p);       /* the same, or gort__poll_marker */
/* Picked instead of a G: timers or fds are to be seen to. */
extern struct gort__g gort__poll_marker GORT_HIDDEN;
/* These return the M that the caller is on afterwards. */
struct gort__m *gort__schedule_switch_to(struct gort__m *m, struct gort__g *from, struct gort__g *to);
struct gort__m *gort__schedule_switch_finish(void); /* first thing on a new stack */
bool gort__schedule_give_stack(struct gort__p *p, struct gort__g *g);

/* --- tight.c ------------------------------------------------------------------------------------- */
void gort__tight_update_locked(void);   /* after a change of m_count, refused or preempted */
void gort__tight_starve_locked(void);   /* the supervisor is to try again soon */
void gort__tight_say_locked(void);      /* somebody waits for a thread: says so once in a run, or is fatal */
void gort__tight_say_hogs_locked(void); /* the same, if it is because all threads compute */
/* g has not run yet, or has GORT_G_BLOCKS: it, or another one whose turn it is; NULL: not now. */
struct gort__g *gort__tight_turn(struct gort__p *p, struct gort__g *g);
struct gort__g *gort__tight_take(struct gort__p *p); /* one that waits in the line; NULL: none, or not now */

/* --- turn.c -------------------------------------------------------------------------------------- */
struct gort__g *gort__turn_pick(struct gort__p *p); /* mode is not 0. NULL: nothing is queued here */
void gort__turn_look(struct gort__p *p); /* now and then, whether the ring has waited for a slice */
struct gort__g *gort__turn_woken(struct gort__p *p); /* a woken one, if it may run now; NULL: none */
struct gort__g *gort__turn_last(struct gort__p *p);  /* the same when nobody else was found here */
/* A preempted one, if its turn has come; NULL: none. */
struct gort__g *gort__turn_preempted(struct gort__p *p);
struct gort__g *gort__turn_begin_woken(struct gort__p *p,
                                       struct gort__g *g); /* p runs g, which an event has woken, next; g */
/* p runs g next, which was picked past turn.c: unless it is a woken one, the others have the P from now
 * on. */
void gort__turn_others(struct gort__p *p, const struct gort__g *g);
void gort__turn_rate(int64_t now, bool begin);     /* by sysmon: learns how fast the processor's counter is */
bool gort__turn_may_stop(const struct gort__p *p); /* by sysmon: for woken goroutines */
int64_t gort__turn_ns(uint64_t ticks);             /* of the processor's counter, in ns. Any thread */

/* --- wake_defer.c -------------------------------------------------------------------------------- */
/* p's M is about to put n goroutines into its queue. True: it need not wake anybody for them now. By its
 * owner. */
bool gort__wake_defer(struct gort__p *p, uint32_t n);
/* By its owner, at a pick; false: it is the turn of a fair one. */
bool gort__wake_defer_look(struct gort__p *p);
void gort__wake_defer_watch(struct gort__p *p); /* by sysmon */

struct gort__m *gort__schedule_yield(
    struct gort__m *m);          /* lets others run first; returns the M it is on now. Inside */
bool gort__queue_has_work(void); /* any P's queue, or the global one */
/* Put behind those in the global queue, as a segment of p. */
void gort__queue_put_overflow(struct gort__p *p, struct gort__glist list);
bool gort__queue_has_work_but(const struct gort__p *but); /* any queue but this P's */

#endif
