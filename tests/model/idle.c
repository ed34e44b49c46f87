/* SPDX-License-Identifier: MIT */
/*
 * idle.c - the real search for work, going to sleep and waking (find, idle, m, proc, queue, runq, park, duty), with two
 * or three Ms: no wake-up is lost, and nobody sleeps past a timer.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 *
 * An M here is a model thread that calls gort__find as the real loop does; a goroutine is a function call that
 * returns, or one that computes for ever: then its M ends and keeps its P. In the end, when nobody can make a
 * step, every published goroutine has run once, unless all Ps are with goroutines that compute for ever.
 * Modelled instead of real: the lock's slow path (waits until the word is free), futexes, the clock, the keeper
 * (model threads stand by that become the wanted ones), the poller (a sleep that a kick ends), the heap of timers (each
 * P has room for one). Absent: stops of the world, bound goroutines, stacks, fds, the watch.
 * Where timers are set, in the end the one on duty sleeps until the first of them, or no P is left to run what it wakes.
 */
#include "model/engine/explore.c"

#include "model/locks.h"

/* Never reached from here; they only have to link. */
#pragma weak gort__attend
#pragma weak gort__entry_thread_ends
#pragma weak gort__os_at_thread_end
#pragma weak gort__lap_begin
#pragma weak gort__lap_end
#pragma weak gort__preempt_ask
#pragma weak gort__preempt_thread
#pragma weak gort__preempt_thread_end
#pragma weak gort__rest_again_locked
#pragma weak gort__rest_guard_locked
#pragma weak gort__sysmon_poke_slow
#pragma weak gort__estate_free
#pragma weak gort__fuzz_point
#pragma weak gort__g_cache_flush
#pragma weak gort__os_altstack_restore
#pragma weak gort__os_altstack_set
#pragma weak gort__os_errno
#pragma weak gort__os_fence_heavy
#pragma weak gort__os_nap
#pragma weak gort__poll_open
#pragma weak gort__timer_heap_init
#pragma weak gort__os_thread_id
#pragma weak gort__os_thread_stack
#pragma weak gort__os_thread_yield
#pragma weak gort__os_thrown
#pragma weak gort__os_vm_guard
#pragma weak gort__os_vm_unmap
#pragma weak gort__schedule_loop
#pragma weak gort__stack_cache_flush
#pragma weak gort__switch_away
#pragma weak gort__world_event

#include "sched/runq.c"
#include "sched/queue.c"
#include "sched/proc.c"
#include "sched/idle.c"
#include "sched/find.c"
#include "sched/m.c"
#include "sched/owner.c"
#include "sched/park.c"
#include "sched/netpoll.c"
#include "sched/duty.c"

#ifndef gort__asan
bool gort__asan;
#endif

#define MS    3 /* Ms that are there from the start */
#define MADE  2 /* more Ms, made on demand */
#define PS    3
#define GS    3
#define LATE  100 /* when timers are due */
#define EARLY 50
#define SOON  30

struct gort__sched gort__sched;

/* Nobody stops the world. */
void gort__world_rest(struct gort__m *m, void *sp)
{
    (void)m;
    (void)sp;
}

void gort__world_rise(struct gort__m *m)
{
    (void)m;
}

bool gort__os_light_is_full;
int gort__orphans;
_Thread_local uint64_t gort__tls[4] __attribute__((tls_model("initial-exec")));
static struct gort__m ms[MS + MADE]; /* the first is the publisher's; the last have no thread yet */
static struct gort__p ps[PS];
static struct gort__g gs[GS];
static struct {
    uint32_t published, ran[GS], computing;
    bool for_ever[GS];    /* this one never returns */
    uint32_t begun[MADE]; /* threads made on demand */
    int64_t now;
    uint32_t kicked; /* the poller's eventfd */
    bool timers;     /* the case is about timers: that of P 0 readies gs[1], that of P 1 gs[2] */
} book;              /* what the threads did; written between steps only */

/* --- what the real code calls ----------------------------------------------------------------- */

struct gort__g gort__chore;
bool (*gort__poll_claim)(struct gort__poll_waiter *w);
uint32_t gort__poll_pending(void)
{
    return 0;
}
void gort__poll_kick(void)
{
    gort__xchg(&book.kicked, 1, SEQ_CST); /* pairs with gort__poll_look */
    model_futex_wake(&book.kicked);
}
struct gort__poll_waiter *gort__poll_look(int64_t deadline)
{
    bool timed_out = false;
    if (deadline == INT64_MIN)
        return NULL;
    if (deadline > book.now)
        model_futex_wait(&book.kicked, 0, deadline != INT64_MAX, &timed_out);
    if (timed_out && book.now < deadline)
        book.now = deadline;
    gort__xchg(&book.kicked, 0, SEQ_CST); /* pairs with gort__poll_kick */
    return NULL;
}
int64_t gort__timer_next(void)
{
    int64_t next = INT64_MAX;
    for (int i = 0; book.timers && i < gort__sched.p_made; i++) {
        int64_t first = gort__load(&ps[i].timers.first, RELAXED);
        if (first < next)
            next = first;
    }
    return next;
}
bool gort__timer_crowd(void)
{
    return false;
}
uint32_t gort__timer_fire(struct gort__heap *h, struct gort__m *m, int64_t now)
{
    int64_t first = gort__load(&h->first, RELAXED);
    if (first > now || !gort__cas(&h->first, &first, INT64_MAX, SEQ_CST)) /* stands for the lock */
        return 0;
    int i = h == &ps[0].timers ? 1 : 2;
    book.published |= 1u << i;
    gs[i].state = GORT_G_WAITING;
    gort__ready_list(m, (struct gort__glist){&gs[i], &gs[i], 1});
    return 1;
}
uint32_t gort__timer_run(struct gort__m *m, int64_t now)
{
    uint32_t n = 0;
    for (int i = 0; book.timers && i < gort__sched.p_made; i++)
        n += gort__timer_fire(&ps[i].timers, m, now);
    return n;
}
struct gort__g *gort__pick_local(struct gort__p *p) /* but for the turns of fairness */
{
    struct gort__g *g = gort__runq_get_next(&p->runq);
    return g ? g : gort__runq_get(&p->runq);
}
int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline)
{
    bool timed_out;
    int result = model_futex_wait(word, expected, deadline != INT64_MAX, &timed_out);
    if (timed_out && book.now < deadline)
        book.now = deadline;
    return result;
}
int gort__os_cpu(void)
{
    return model_self() % 2;
}

void gort__os_futex_wake(uint32_t *word, int count)
{
    (void)count;
    model_futex_wake(word);
}
int64_t gort__os_now(void)
{
    return book.now;
}
size_t gort__os_page(void)
{
    return 4096;
}
void *gort__os_vm_map(size_t size, size_t align)
{
    (void)size, (void)align;
    model_cut(); /* more threads on demand than the model has */
}
void gort__deadlock_check_locked(void) {}
void gort__overflow_check(struct gort__g *g)
{
    (void)g;
}
void gort__keeper_wake_locked(void)
{
    struct gort__m *m = gort__sched.wanted_ms;
    gort__sched.wanted_ms = m->link;
    for (int i = 0; i < MADE; i++)
        book.begun[i] |= m == &ms[MS + i];
}

/* --- the threads ------------------------------------------------------------------------------ */

/* False: it computes for ever. */
static bool run(struct gort__g *g)
{
    MODEL_ASSERT(g >= gs && g < gs + GS);
    MODEL_ASSERT(++book.ran[g - gs] == 1);
    book.computing += book.for_ever[g - gs];
    return !book.for_ever[g - gs];
}

/* gort__schedule_loop without the switch of stacks. */
static void loop(struct gort__m *m)
{
    for (;;) {
        struct gort__g *g = gort__find(m);
        if (!g)
            return;
        MODEL_ASSERT(m->p && m->p->m == m);
        if (m->spinning)
            gort__spin_stop(m);
        if (!run(g))
            return;
    }
}

static void m1(void)
{
    loop(&ms[1]);
}
static void m2(void)
{
    loop(&ms[2]);
}
/* Ms that do not exist yet. */
static void begin(int i)
{
    model_await(&book.begun[i], 1);
    gort__m_take_next_p(&ms[MS + i]);
    loop(&ms[MS + i]);
}
static void made0(void)
{
    begin(0);
}
static void made1(void)
{
    begin(1);
}

/* M 2 gives up its P: its goroutine makes an announced blocking call that lasts. */
static void hands_off(void)
{
    gort__p_handoff(&ms[2]);
}

static void publish(int i)
{
    book.published |= 1u << i;
    gs[i].state = GORT_G_WAITING;
    gort__ready(&ms[0], &gs[i]);
}

/* A goroutine on M 0 readies others and then computes for ever. */
static void readies_one(void)
{
    publish(0);
    book.computing++;
}
static void readies_two(void)
{
    publish(0);
    publish(1);
    book.computing++;
}
static void readies_list(void)
{
    book.published = 3;
    gs[0].link = &gs[1];
    gort__ready_list(&ms[0], (struct gort__glist){&gs[0], &gs[1], 2});
    book.computing++;
}
/* The same goroutine goes on to wait itself: its M looks for work like the others. */
static void readies_two_and_waits(void)
{
    publish(0);
    publish(1);
    loop(&ms[0]);
}
/* A plain thread: through the global queue. */
static void plain_readies_one(void)
{
    publish(0);
}
static void plain_readies_two(void)
{
    publish(0);
    publish(1);
}

/* --- timers ----------------------------------------------------------------------------------- */

/* The end of gort__timer_set, after the lock of the heap. */
static void set_timer(struct gort__m *m)
{
    gort__store(&ps[0].timers.first, EARLY, RELEASE); /* pairs with the second look of duty.c */
    gort__duty_notice(m, EARLY);
}
static void sets_timer(void)
{
    set_timer(&ms[0]);
}
/* The first one is taken back, which tells nobody, and set to a later time. */
static void deletes_and_sets_timer(void)
{
    gort__store(&ps[0].timers.first, INT64_MAX, RELEASE); /* pairs with the second look of duty.c */
    set_timer(&ms[0]);
}
/* A goroutine sets one and then computes for ever, with its P. */
static void sets_timer_and_computes(void)
{
    ms[0].g = &gs[0];
    set_timer(&ms[0]);
    book.computing++;
}
/* A thread without a P that readies one, and one that sets a timer at the same time. */
static void readies_and_sets_timer(void)
{
    publish(0);
    set_timer(&ms[0]);
}

/* --- setup and oracle ------------------------------------------------------------------------- */

/* Ps 0 .. procs-1; M i holds P i, except that M 0 is a plain thread if !inside, and its P then is idle. Up to
 * `spare` threads can be made. */
static void start_with(int procs, bool inside, int spare, bool timers)
{
    struct gort__sched *s = &gort__sched;
    memset(s, 0, sizeof *s);
    memset(ms, 0, sizeof ms);
    memset(ps, 0, sizeof ps);
    memset(gs, 0, sizeof gs);
    memset(&book, 0, sizeof book);
    book.timers = timers;
    s->procs = s->p_made = procs;
    s->conf.max_threads = MS + MADE;
    s->conf.idle_ms = 1;
    s->m_count = procs;
    for (int i = 0; i < procs; i++) {
        s->ps[i] = &ps[i];
        ps[i].id = i;
        ps[i].turn = 1000;
        ps[i].timers.first = INT64_MAX;
        if (i > 0 || inside)
            gort__p_take(&ms[i], &ps[i]);
    }
    if (!inside)
        gort__p_idle_put_locked(&ps[0]);
    model_memory(s, offsetof(struct gort__sched, ps));
    model_memory(ms, sizeof ms);
    model_memory(ps, sizeof ps);
    model_memory(gs, sizeof gs);
    model_memory(&book, sizeof book);
    model_quiet(&s->procs, sizeof s->procs);
    model_quiet(s->ps, sizeof s->ps);
    model_quiet(gs, sizeof gs);
    for (int i = 0; i < PS; i++) /* in cases about timers only they are steps */
        if (!timers)
            model_quiet(&ps[i].timers, sizeof ps[i].timers);
    for (int i = 0; i < MS + MADE; i++)
        model_quiet(&ms[i].attention, sizeof ms[i].attention);
    for (int i = spare - 1; i >= 0; i--)
        gort__m_retire_locked(&ms[MS + i]); /* a record to make a thread from */
}
static void start(int procs, bool inside, int spare)
{
    start_with(procs, inside, spare, false);
}
static void two(void)
{
    start(2, true, 1);
}
static void timers_none(void)
{
    start_with(2, false, 1, true);
}
static void timers_inside(void)
{
    start_with(2, true, 1, true);
}
static void timers_one(void)
{
    start_with(2, false, 2, true);
    ps[1].timers.first = LATE;
}
static void timers_two(void)
{
    start_with(2, false, 1, true);
    ps[1].timers.first = LATE;
    ps[0].timers.first = SOON;
}
static void timers_one_for_ever(void)
{
    timers_one();
    book.for_ever[0] = true;
}
/* M 2 has no P, and is or will be on duty. */
static void timers_spare(void)
{
    start_with(2, true, 1, true);
    ps[1].timers.first = LATE;
}
static void two_plain(void)
{
    start(2, false, 2);
}
static void two_plain_for_ever(void)
{
    start(2, false, 2);
    book.for_ever[0] = true;
}
static void three_for_ever(void)
{
    start(3, true, 1);
    book.for_ever[0] = true;
}

static void all_done(void)
{
    struct gort__sched *s = &gort__sched;
    uint32_t missing = 0, idle = 0;
    for (int i = 0; i < GS; i++)
        missing += (book.published >> i & 1) && !book.ran[i];
    for (struct gort__p *p = s->idle_ps; p; p = p->link)
        idle++;
    if (missing && book.computing < (uint32_t)s->procs)
        model_fail("lost wake-up: %u goroutines wait, %u of %d Ps compute", missing, book.computing,
                   s->procs);
    MODEL_ASSERT(s->spinning == 0);
    MODEL_ASSERT(s->idle_count == idle && idle + book.computing == (uint32_t)s->procs);
    MODEL_ASSERT(s->queued == s->queue.n);
    int64_t next = INT64_MAX;
    for (int i = 0; book.timers && i < s->p_made; i++)
        next = ps[i].timers.first < next ? ps[i].timers.first : next;
    if (next != INT64_MAX && book.computing < (uint32_t)s->procs && (!s->poll_until || s->poll_until > next))
        model_fail("a timer is due at %d, the one on duty sleeps until %d", (int)next, (int)s->poll_until);
}

/* --- cases ------------------------------------------------------------------------------------ */

static const struct model one = {
    .setup = two, .threads = {readies_one, m1, made0}, .final = all_done, .eager = true};
static const struct model both = {
    .setup = two, .threads = {readies_two, m1, made0}, .final = all_done, .eager = true};
static const struct model list = {
    .setup = two, .threads = {readies_list, m1, made0}, .final = all_done, .eager = true};
static const struct model waits = {
    .setup = two, .threads = {readies_two_and_waits, m1, made0}, .final = all_done, .eager = true};
static const struct model plain = {
    .setup = two_plain, .threads = {plain_readies_two, m1, made0, made1}, .final = all_done, .eager = true};
static const struct model busy = {
    .setup = three_for_ever, .threads = {readies_two, m1, m2, made0}, .final = all_done, .eager = true};
static const struct model gives_up = {.setup = three_for_ever,
                                      .threads = {readies_two, m1, hands_off, made0},
                                      .final = all_done,
                                      .eager = true};

static const struct model set_none = {
    .setup = timers_none, .threads = {sets_timer, m1, made0}, .final = all_done, .eager = true};
static const struct model set_inside = {.setup = timers_inside,
                                        .threads = {sets_timer_and_computes, m1, made0},
                                        .final = all_done,
                                        .eager = true};
static const struct model set_earlier = {
    .setup = timers_one, .threads = {sets_timer, m1, made0, made1}, .final = all_done, .eager = true};
static const struct model set_again = {.setup = timers_two,
                                       .threads = {deletes_and_sets_timer, m1, made0},
                                       .final = all_done,
                                       .eager = true,
                                       .timeouts = 1};
static const struct model set_spare = {.setup = timers_spare,
                                       .threads = {sets_timer_and_computes, m1, m2, made0},
                                       .final = all_done,
                                       .eager = true};
static const struct model duty_wake = {
    .setup = timers_one, .threads = {plain_readies_one, m1, made0, made1}, .final = all_done, .eager = true};
static const struct model duty_change = {.setup = timers_one_for_ever,
                                         .threads = {readies_and_sets_timer, m1, made0, made1},
                                         .final = all_done,
                                         .eager = true};

/* preemptions 0: all interleavings; else those with at most so many (the threads' number of steps decides). */
static void check(struct model m, const char *name, enum model_memory_kind memory, int preemptions)
{
    m.memory = memory;
    m.preemptions = preemptions;
    model_check(&m, name);
}

TEST(inside_one)
{
    model_check_both(one, "one from inside", 0, 0);
}
TEST(inside_list)
{
    model_check_both(list, "a list from inside", 0, 0);
}
TEST(inside_two, .timeout = 180)
{
    model_check_both(both, "two from inside", 4, 3);
}
TEST(inside_waits, .timeout = 180)
{
    model_check_both(waits, "two from inside, then waits", 3, 3);
}
TEST(plain_thread, .timeout = 180)
{
    model_check_both(plain, "two from a plain thread", 3, 2);
}
TEST(plain_thread_busy, .timeout = 180)
{
    struct model m = plain;
    m.setup = two_plain_for_ever;
    model_check_both(m, "two from a plain thread, one computes for ever", 3, 3);
}
TEST(three_ps, .timeout = 180)
{
    check(busy, "three Ps, one computes for ever", MODEL_TSO, 3);
}
TEST(three_ps_weak, .timeout = 180)
{
    check(busy, "three Ps, one computes for ever", MODEL_WEAK, 2);
}
TEST(handoff, .timeout = 180)
{
    check(gives_up, "three Ps, one is handed off", MODEL_TSO, 3);
}
TEST(handoff_weak, .timeout = 180)
{
    check(gives_up, "three Ps, one is handed off", MODEL_WEAK, 2);
}
/* A thread that has slept long enough ends, perhaps just when it is handed a P. */
TEST(idle_timeout)
{
    struct model m = one;
    m.timeouts = 1;
    check(m, "one from inside, time-out", MODEL_TSO, 0);
    m.setup = two_plain;
    m.threads[0] = plain_readies_one;
    m.threads[3] = made1;
    check(m, "one from a plain thread, time-out", MODEL_TSO, 3);
}

/* Nobody is on duty when the timer is set: somebody takes it. */
TEST(timer_nobody, .timeout = 180)
{
    model_check_both(set_none, "a timer from a plain thread", 4, 3);
    model_check_both(set_inside, "a timer from inside", 4, 3);
}
/* The one on duty sleeps until a later one. */
TEST(timer_earlier, .timeout = 180)
{
    model_check_both(set_earlier, "an earlier timer", 4, 2);
    model_check_both(set_again, "another one than before", 3, 2);
}
TEST(timer_spare, .timeout = 180)
{
    model_check_both(set_spare, "an earlier timer, a spare M is on duty", 3, 2);
}
/* The one on duty is needed for work. */
TEST(duty_is_woken, .timeout = 180)
{
    model_check_both(duty_wake, "work for the one on duty", 4, 3);
}
TEST(duty_changes, .timeout = 180)
{
    model_check_both(duty_change, "the one on duty computes for ever", 3, 2);
}
TEST(timer_fires, .timeout = 180)
{
    struct model m = set_earlier;
    m.timeouts = 2;
    check(m, "an earlier timer, both fire", MODEL_TSO, 2);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_publish)
{
    model_catch(&one, "no fence after publishing", "gort__runq_put_next", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_stop_spinning)
{
    model_catch(&one, "no fence after spinning", "look_again", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_publish_weak)
{
    struct model m = one;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the look at idle Ps", "gort__wake_if_idle", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_stop_spinning_weak)
{
    struct model m = one;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the second look", "look_again", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_found, .timeout = 180)
{
    struct model m = busy;
    m.preemptions = 3;
    model_catch(&m, "no fence after finding work", "gort__spin_stop", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_found_weak, .timeout = 180)
{
    struct model m = busy;
    m.memory = MODEL_WEAK;
    m.preemptions = 3;
    model_catch(&m, "no fence before the look of one that found work", "gort__spin_stop", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_publish_list)
{
    model_catch(&list, "no fence after a list", "gort__ready_list", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_sleep_torn)
{
    model_catch(&one, "torn cas in falling asleep", "gort__m_sleep_until", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_spinning_torn)
{
    model_catch(&one, "torn count of spinning Ms", "look_again", MODEL_OP_RMW, MODEL_TORN);
}
TEST(mutation_timer_set)
{
    model_catch(&set_earlier, "no fence after setting a timer", "gort__duty_notice", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_timer_publish, .timeout = 180)
{
    struct model m = set_again;
    m.preemptions = 3;
    model_catch(&m, "no fence after telling until when", "announce", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_timer_publish_weak, .timeout = 180)
{
    struct model m = set_again;
    m.memory = MODEL_WEAK;
    m.preemptions = 3;
    model_catch(&m, "no fence before the second look at timers", "announce", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_doze_torn)
{
    model_catch(&duty_wake, "torn cas before the poller", "gort__m_doze", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_undoze_torn)
{
    struct model m = duty_wake;
    m.timeouts = 1;
    m.preemptions = 3;
    model_catch(&m, "torn cas after the poller", "gort__m_undoze", MODEL_OP_CAS, MODEL_TORN);
}
