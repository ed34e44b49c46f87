/* SPDX-License-Identifier: MIT */
/*
 * sysmon.h - what the model of sysmon's sleep (sysmon_sleep.c) is made of: the real sources, the kernel's
 * timerfd, the threads, setup and oracle. sysmon_sleep.c says what is real and what is modelled, and has the
 * cases and mutations.
 */
#ifndef GORT_TEST_MODEL_SYSMON_H
#define GORT_TEST_MODEL_SYSMON_H

#include "model/engine/explore.c"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "model/locks.h"
#include "os/force.h"
#include "model/hooks.h"

/* Never reached from here; they only have to link. */
#pragma weak gort__g_cache_flush
#pragma weak gort__note_doze
#pragma weak gort__note_sleep
#pragma weak gort__os_vm_unmap
#pragma weak gort__m_take_next_p
#pragma weak gort__note_undoze
#pragma weak gort__netpoll_look
#pragma weak gort__os_beat
#pragma weak gort__os_nap
#pragma weak gort__os_page
#pragma weak gort__os_vm_map
#pragma weak gort__local_drain_locked
#pragma weak gort__poll_kick
#pragma weak gort__preempt_ask
#pragma weak gort__ready_events
#pragma weak gort__stack_cache_flush
#pragma weak gort__timer_coalesces
#pragma weak gort__timer_heap_init
#pragma weak gort__timer_run
#pragma weak gort__idle_wake_p

/* A mutation: a lock that one thread does not care for. */
static void take_carefully(struct gort__lock *l, enum gort__rank rank);
static void drop_carefully(struct gort__lock *l, enum gort__rank rank);
#define gort__lock_take(l, rank) take_carefully(l, rank)
#undef gort__lock_release
#define gort__lock_release(l, rank) drop_carefully(l, rank)

/* The kernel's timerfd. */
static int kernel_set(const struct itimerspec *spec);
static int kernel_poll(struct pollfd *fds);
static ssize_t kernel_kick(void);
#define timerfd_create(clock, flags)          3
#define timerfd_settime(fd, flags, spec, old) ((void)(fd), kernel_set(spec))
#define eventfd(value, flags)                 4
#define ppoll(fds, n, timeout, mask)          kernel_poll(fds)
#define write(fd, from, size)                 ((void)(from), kernel_kick())
#define close(fd)                             ((void)(fd))
#include "os/linux/alarm.c"
#undef write
#undef close

#include "sched/threads/poller.c"
#include "sched/threads/p.c"
#include "sched/monitor/sysmon_sleep.c"

#define MS    INT64_C(1000000)
#define START (1000 * MS)
#define TICK  (10 * MS)
#define PS    2
#define SLACK (MS / 2)
#define TIMER (START + 5 * MS) /* when the one is due that is set */

struct gort__sched gort__sched;
struct gort__os_force gort__os_force;
bool gort__os_light_is_full;
static struct gort__m ms[MODEL_THREADS];
static struct gort__p ps[PS];
static struct {
    int64_t now;
    int64_t due;             /* the kernel's timer: INT64_MAX never. by_futex: until when sysmon sleeps */
    uint32_t rings;          /* it has come and was not set anew, or there was a kick */
    bool kicked;             /* the eventfd is readable */
    bool refuses;            /* a sandbox is closed: the timer stays as it is */
    uint32_t tick;           /* a word to make steps with */
    bool asleep;             /* sysmon, from before it sleeps until it has woken */
    bool quit;               /* atomic; sysmon is to end, */
    bool ended;              /* and has */
    enum gort__mon notified; /* what it did when it was notified; AWAKE: it was not */
    bool seen, urgent;       /* and it has looked since, or was woken at once before */
    int64_t timer;           /* when one is due; atomic */
    uint32_t queued;         /* a goroutine is in a queue; atomic */
    int64_t noted;           /* by when sysmon is to see that, INT64_MAX: nothing is, or it has */
    uint32_t fds;            /* goroutines that wait for one; constant */
    bool publishes;          /* a publisher is about to queue one, or has, and sysmon has not looked since */
    int careless;            /* this thread, -1: none, */
    enum gort__rank carelessly; /* takes no lock of this rank */
} book;                         /* what the threads did; written between steps only */

/* --- what the real code calls ------------------------------------------------------------------ */

int64_t gort__os_now(void)
{
    return book.now;
}
int64_t gort__timer_next(void)
{
    return gort__load(&book.timer, RELAXED);
}
bool gort__runq_empty(const struct gort__runq *q)
{
    (void)q;
    return true;
}
bool gort__queue_has_work(void)
{
    return gort__load(&book.queued, RELAXED) != 0;
}
int gort__poll_handle(void)
{
    return 5;
}
uint32_t gort__poll_pending(void)
{
    return book.fds;
}
void gort__os_fence_heavy(void)
{
    model_barrier("membarrier");
}
void gort__scavenge_stack_stir_locked(void) {}
int gort__os_fd_own(int fd)
{
    return fd;
}

static bool cares(enum gort__rank rank)
{
    return model_self() < 0 || model_self() != book.careless || rank != book.carelessly;
}
static void take_carefully(struct gort__lock *l, enum gort__rank rank)
{
    if (cares(rank))
        (gort__lock_take)(l, rank);
}
static void drop_carefully(struct gort__lock *l, enum gort__rank rank)
{
    if (cares(rank))
        model_lock_drop(l);
}

static void a_moment(void)
{
    (void)gort__load(&book.tick, RELAXED);
}

static void ring_if_due(void)
{
    if (book.due <= book.now) {
        book.due = INT64_MAX;
        book.rings = 1;
    }
}
static int kernel_set(const struct itimerspec *spec)
{
    int64_t when = spec->it_value.tv_sec * SECOND + spec->it_value.tv_nsec;
    a_moment();
    if (book.refuses)
        return -1;
    book.rings = 0;
    book.due = when ? when : INT64_MAX;
    ring_if_due();
    return 0;
}
/* Either of the two fds. */
static int kernel_poll(struct pollfd *fds)
{
    model_await(&book.rings, 1);
    fds[1].revents = book.kicked ? POLLIN : 0;
    return 1;
}
static ssize_t kernel_kick(void)
{
    a_moment();
    book.rings = 1;
    book.kicked = true;
    return 8;
}
void gort__os_needs(const char *call, int err)
{
    model_fail("%s: errno %d", call, err);
    abort();
}
int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline)
{
    bool timed_out;
    book.due = deadline;
    int result = model_futex_wait(word, expected, deadline != INT64_MAX, &timed_out);
    if (timed_out && book.now < deadline)
        book.now = deadline;
    return result;
}
void gort__os_futex_wake(uint32_t *word, int count)
{
    (void)count;
    model_futex_wake(word);
}

/* --- the threads ------------------------------------------------------------------------------- */

/* As look_around and loop do. */
static void sysmon(void)
{
    while (!gort__load(&book.quit, ACQUIRE)) { /* pairs with quits */
        book.seen |= book.notified != GORT_MON_AWAKE;
        int64_t now = gort__os_now();
        if (!gort__sysmon_sleep_if_idle(now))
            gort__sysmon_sleep_until(now + TICK, model_choose(2), false, 0);
        book.asleep = true;
        bool urgent = gort__sysmon_sleep();
        MODEL_ASSERT(!urgent || !book.urgent); /* nobody notifies twice */
        book.urgent |= urgent;
        book.asleep = false;
    }
    book.ended = true;
}
/* The same while there are timers: it fires them. */
static void sysmon_with_timers(void)
{
    while (!gort__load(&book.quit, ACQUIRE)) { /* pairs with quits */
        int64_t now = gort__os_now(), next = gort__timer_next();
        bool waits = gort__queue_has_work(), is_long = !waits && model_choose(2);
        int64_t until = now + (is_long ? TICK : GORT_LOOK);
        if (waits) {
            book.noted = INT64_MAX;
            book.publishes = false;
        }
        if (next <= now - SLACK)
            gort__store(&book.timer, INT64_MAX, RELAXED);
        else if (next < until - SLACK)
            until = next + SLACK;
        if (!gort__sysmon_sleep_if_idle(now))
            gort__sysmon_sleep_until(until, is_long, false, SLACK);
        book.asleep = true;
        gort__sysmon_sleep();
        book.asleep = false;
    }
    book.ended = true;
}
/* The same while goroutines wait for fds: it listens if no P is idle, else an M owns the poller. */
static void sysmon_with_fds(void)
{
    while (!gort__load(&book.quit, ACQUIRE)) { /* pairs with quits */
        int64_t now = gort__os_now();
        bool listen = gort__load(&gort__sched.idle_count, RELAXED) == 0 && gort__poll_pending();
        gort__sysmon_sleep_until(now + TICK, true, listen, SLACK);
        book.asleep = true;
        gort__sysmon_sleep();
        book.asleep = false;
    }
    book.ended = true;
}
/* As gort__sysmon_stop does. */
static void quits(void)
{
    gort__store(&book.quit, true, RELEASE); /* pairs with sysmon */
    gort__sysmon_sleep_quit();
}

static void time_passes_once(void)
{
    bool to_alarm = model_choose(2);
    a_moment();
    book.now = to_alarm && book.due != INT64_MAX ? book.due : book.now + GORT_WATCHDOG_PAUSE;
    ring_if_due();
}
static void time_passes(void)
{
    time_passes_once();
    time_passes_once();
}

static void closes_sandbox(void)
{
    a_moment();
    book.refuses = true;
}

static struct gort__p *get(void)
{
    struct gort__m *m = &ms[model_self()];
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    struct gort__p *p = gort__p_idle_get_locked();
    if (p)
        gort__p_take(m, p);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
    return p;
}
static void put(struct gort__p *p)
{
    if (!p)
        return;
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    int64_t now = gort__os_now();
    ms[model_self()].p = NULL;
    gort__store(&p->m, NULL, RELAXED);
    if (!(gort__sched.world_word & 1)) /* else whoever starts it sees to the P */
        gort__p_idle_put_locked(p);
    /* The last one takes a watchdog away, but not too often: */
    enum gort__mon mon = gort__sched.sysmon.state;
    MODEL_ASSERT((mon != GORT_MON_ARMED && mon != GORT_MON_ARMED_SOON) || !all_idle_locked() ||
                 now - sleeper.disarmed_at < GORT_WATCHDOG_PAUSE);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}
static void works(void)
{
    put(get());
}
static void works_twice(void)
{
    put(get());
    put(get());
}
static void keeps(void)
{
    get();
}
static void works_and_keeps(void)
{
    put(get());
    get();
}
/* The last idle P goes to an M; another one stops, as gort__m_stop has it, and does not own the poller
 * because of that. All under one lock, which would make a fence between the two if it was dropped. */
static void takes_last(void)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    gort__p_take(&ms[1], gort__p_idle_get_locked());
    gort__poller_take_locked(&ms[2]);
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}
/* As starve_locked of m.c does. */
static void finds_no_memory(void)
{
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    struct gort__p *p = gort__p_idle_get_locked();
    if (p) {
        gort__sched.limit.starved = true;
        gort__p_idle_put_locked(p);
    }
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}
/* It is preempted, and whoever gets its P gives that back at once. */
static void is_held(void)
{
    struct gort__p *p = get();
    gort__lock_take(&gort__sched.lock, GORT_RANK_SCHED);
    if (p) {
        gort__sched.preempted.list.n++;
        gort__p_idle_put_locked(p);
    }
    gort__lock_release(&gort__sched.lock, GORT_RANK_SCHED);
}
/* As gort__world_stop_now, gort__p_resize and gort__world_start do. */
static void stops_the_world(void)
{
    struct gort__sched *s = &gort__sched;
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__store(&s->world_word, s->world_word + 1, RELAXED);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    s->idle_ps = NULL;
    gort__store(&s->idle_count, 0, RELAXED);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
    gort__lock_take(&s->lock, GORT_RANK_SCHED);
    gort__store(&s->world_word, s->world_word + 1, RELEASE);
    s->idle_ps = NULL;
    gort__store(&s->idle_count, 0, RELAXED);
    for (int i = 0; i < s->procs; i++)
        if (!ps[i].m)
            gort__p_idle_put_locked(&ps[i]);
    gort__lock_release(&s->lock, GORT_RANK_SCHED);
}

/* From when sysmon is in that state on. */
static void poke_in(enum gort__mon state)
{
    model_await((const uint32_t *)&gort__sched.sysmon.state, state);
    if (book.asleep) /* else it has woken, and says so in a moment */
        book.notified = state;
    gort__wake_sysmon();
}
static void pokes_long(void)
{
    poke_in(GORT_MON_LONG);
}
static void pokes_rest(void)
{
    poke_in(GORT_MON_IDLE);
}
static void pokes_guard(void)
{
    poke_in(GORT_MON_ARMED);
}

/* M 0, which has the only P. */
static void sets_timer(void)
{
    gort__store(&book.timer, TIMER, RELEASE); /* pairs with sysmon_sleep.c */
    gort__poller_notice(&ms[0], TIMER);
}
static void queue_one(bool fence)
{
    book.publishes = true;
    gort__store(&book.queued, 1, RELAXED);
    if (fence)
        gort__fence(SEQ_CST); /* pairs with look_back */
    gort__wake_note_work();
    if (book.publishes) /* and sysmon has not looked since */
        book.noted = book.now + GORT_LOOK;
}
/* It puts a goroutine into a queue, as idle.c has it. */
static void publishes_work(void)
{
    queue_one(true);
}
/* The same by the holder of the only P, who has no fence: sysmon has the kernel make one. */
static void publishes_alone(void)
{
    queue_one(false);
}
/* It has found that nobody waits any more. */
static void calms(void)
{
    gort__sysmon_sleep_calm();
}
static void calms_and_pokes(void)
{
    calms();
    gort__wake_sysmon();
}

/* --- setup and oracle -------------------------------------------------------------------------- */

/* Light fences are full, as without membarrier, but in for_queue. */
static void start_all(int procs, bool taken, bool by_futex, bool timers, bool fds)
{
    struct gort__sched *s = &gort__sched;
    memset(s, 0, sizeof *s);
    memset(ms, 0, sizeof ms);
    memset(ps, 0, sizeof ps);
    memset(&book, 0, sizeof book);
    memset(&sleeper, 0, sizeof sleeper);
    book.now = START;
    book.due = INT64_MAX;
    book.careless = -1;
    book.fds = fds;
    book.timer = book.noted = INT64_MAX;
    s->procs = s->p_made = procs;
    for (int i = 0; i < procs; i++) {
        s->ps[i] = &ps[i];
        if (taken && i == 0)
            gort__p_take(&ms[0], &ps[0]); /* nobody else's: thread 0 is sysmon */
        else
            gort__p_idle_put_locked(&ps[i]);
    }
    gort__os_force.no_timerfd = by_futex;
    gort__os_light_is_full = true;
    gort__sysmon_sleep_open();
    model_memory(s, offsetof(struct gort__sched, ps));
    model_memory(ms, sizeof ms);
    for (int i = 0; i < PS; i++)
        model_memory(&ps[i].m, sizeof ps[i].m + sizeof ps[i].link);
    model_memory(&book, sizeof book);
    model_memory(&sleeper, sizeof sleeper);
    model_quiet(&s->procs, sizeof s->procs);
    model_quiet(&s->idle_times, sizeof s->idle_times);
    model_quiet(&s->line.n, sizeof s->line.n);
    if (!book.fds)
        model_quiet(&s->idle_count, sizeof s->idle_count);
    model_quiet(ps, sizeof ps);
    if (!timers)
        model_quiet(&book.timer, sizeof book.timer);
}
static void start(int procs, bool taken, bool by_futex)
{
    start_all(procs, taken, by_futex, false, false);
}
/* The case is about the only timer, which is set while no P is idle. */
static void for_timers(void)
{
    start_all(1, true, false, true, false);
}
/* The light fence of its holder is none. */
static void for_queue(void)
{
    start_all(1, true, false, true, false);
    gort__os_light_is_full = false;
}
static void for_fds(void)
{
    start_all(2, true, false, false, true);
    gort__sched.sysmon.on = true;
}
static void one_p(void)
{
    start(1, false, false);
}
static void one_p_by_futex(void)
{
    start(1, false, true);
}
static void two_ps(void)
{
    start(2, false, false);
}
static void one_is_taken(void)
{
    start(1, true, false);
}
static void one_is_taken_by_futex(void)
{
    start(1, true, true);
}

/* It has looked since, or will soon, or somebody had a P meanwhile: when all are idle again there is nothing
 * to look at. */
static void check_poke(int64_t due)
{
    bool soon = state() == GORT_MON_ARMED_SOON && due <= book.now + GORT_WATCHDOG_MIN;
    bool over = state() == GORT_MON_IDLE && gort__sched.idle_times > 1;
    if (book.notified != GORT_MON_AWAKE && !book.seen && !soon && !over)
        model_fail("lost notification: it sleeps as if there had been none");
}

static void is_watched(void)
{
    const struct gort__sched *s = &gort__sched;
    bool idle = s->idle_count == (uint32_t)s->procs && !s->preempted.list.n && !s->limit.starved;
    MODEL_ASSERT(!sleeper.lock.word && !s->lock.word);
    if (book.quit) {
        if (!book.ended)
            model_fail("sysmon is to end, and sleeps");
        MODEL_ASSERT(state() == GORT_MON_AWAKE);
        return;
    }
    MODEL_ASSERT(book.asleep);
    int64_t due = sleeper.alarm.refused ? sleeper.alarm.when : book.due;
    if (due == INT64_MAX && !idle)
        model_fail("lost guard: somebody is at work, and sysmon has no alarm");
    if (book.due > due)
        model_fail("sysmon sleeps past its alarm");
    MODEL_ASSERT((due == INT64_MAX) == (state() == GORT_MON_IDLE));
    MODEL_ASSERT(due == INT64_MAX || due <= book.now + TICK);
    check_poke(due);
}
/* It is in time for the timer, and for what was queued; a GORT_WATCHDOG_PAUSE may have passed between the queueing and the
 * note. */
static void is_in_time(void)
{
    is_watched();
    if (book.quit)
        return;
    MODEL_ASSERT(state() == GORT_MON_LONG || state() == GORT_MON_AWAKE);
    int64_t due = sleeper.alarm.refused ? sleeper.alarm.when : book.due;
    if (book.timer != INT64_MAX && due > book.timer + SLACK)
        model_fail("a timer is due at %d, sysmon sleeps until %d", (int)(book.timer - START),
                   (int)(due - START));
    if (book.noted != INT64_MAX && due > book.noted + GORT_WATCHDOG_PAUSE)
        model_fail("a goroutine waits, and sysmon sleeps until %d", (int)(due - START));
}
/* Nobody owns the poller, so it listens, or will soon. */
static void listens(void)
{
    is_watched();
    if (!sleeper.listen && book.due > book.now + GORT_LOOK + GORT_WATCHDOG_PAUSE)
        model_fail("a goroutine waits for an fd, and nobody listens until %d", (int)(book.due - START));
}
/* Where no time passes and nobody takes a P, it was the notification that woke it. */
static void is_hurried(void)
{
    is_watched();
    MODEL_ASSERT(book.urgent || book.notified == GORT_MON_AWAKE);
}

#endif
