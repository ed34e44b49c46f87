/* SPDX-License-Identifier: MIT */
/*
 * move.c - the real timers (time/timer.c, move.c): moved to later without a lock while their time comes, and while others stop or reset
 * them. None is called before the time that it was last set to, none is lost, and none comes much later.
 * Build: standalone -DGORT_MODEL
 *
 * One timer. Its entry of the heap is a record here; firers take it out when it is due, for which they set the clock, call the real
 * function of timer.c, and then are the goroutine of the call. Users move the timer, reset it under its lock, stop it. What must hold is said
 * in times of the lease, whose end stays where it is: slips are lease.c's. In the end all that is set comes.
 * With more than one user at a time the last one to be heard is not known: then the call comes at one of their times.
 * Modelled instead of real: the heap, starting goroutines (there is always memory, or never the first time), entering and leaving.
 */
#include "model/engine/explore.c"

#include "model/locks.h"
#include "sched/timer.h"
#include "sched/wait.h"

/* Never reached from here; they only have to link. */
#pragma weak gort__alloc_free_split
#pragma weak gort__alloc_split
#pragma weak gort__enter_plain
#pragma weak gort__hold_slow
#pragma weak gort__leave_slow
#pragma weak gort__os_errno
#pragma weak gort__ready_list
#pragma weak gort__rough_now
#pragma weak gort__wait
#pragma weak gort__wait_lock_sync
#pragma weak gort__wait_refused
#pragma weak gort__wait_unlock_sync

#define UNIT GORT_LEASE_UNIT
#define END  (1000 * UNIT + 1000) /* of the lease, with its number */
#define OTHER_END                                                                                            \
    (END + 500) /* of the one that the timer was set by: a time in the same unit may be before that */

static struct gort__m *model_m(void);
static int64_t model_now(void);
static char other_half[256] __attribute__((aligned(16)));
#define gort__enter()         model_m()
#define gort__enter_at_once() model_m()
#define gort__leave(m)        ((void)(m))
#define gort__leave_looks(m)  ((void)(m), false)
#define gort__m_self()        model_m()
#define gort__os_now()        model_now()
#define gort_in(ns)           (model_now() + (ns))
#define gort__alloc_cold(hot) ((void)(hot), (void *)other_half)

#include "time/move.c"
#include "time/timer.c"

#define USERS 3 /* and firers: one M each */

struct gort__sched gort__sched;
struct gort__lease gort__lease;
bool gort__os_light_is_full;
static struct gort__m ms[USERS + 1];
static struct gort__g gs[USERS + 1];
static struct gort__p ps[USERS + 1];
static gort_timer timer;

static struct gort__lock heap_lock;
static struct {
    int64_t now;
    int64_t entry;       /* when the timer's entry of the heap comes up; 0: there is none */
    bool movable;        /* the heap looks at the time in the timer, too */
    bool scarce;         /* the first goroutine cannot be started */
    int64_t slip;        /* of the lease that they are moved by, */
    int64_t other_slip;  /* and of the one that the timer was set by */
    uint32_t busy;       /* somebody says so before it resets the timer, */
    bool moved, saw;     /* and is told that it was active; the one who stops it has seen that */
    int started;         /* goroutines of calls that have not begun, */
    uintptr_t turn[4];   /* and what for */
    int calls, expected; /* that have come, and must have in the end */
    int running;         /* that came before somebody set the timer anew, and are not counted yet */
    int64_t least, most; /* when the next call may come */
    int users;           /* who reset it right now, all of them at times from... to: */
    int64_t from, to;
    bool stopped; /* somebody was told that there will be no call */
} book;           /* written between steps only; the entry, and what is due, under heap_lock */

/* --- what the real code calls ------------------------------------------------------------------ */

static struct gort__m *model_m(void)
{
    return &ms[model_self() < 0 ? USERS : model_self()];
}

static int64_t model_now(void)
{
    return book.now;
}

void gort__os_fence_heavy(void)
{
    if (model_self() >= 0)
        model_barrier(__func__);
}

void gort__timer_set_sure(struct gort__timer *t, struct gort__timer_own *own, int64_t when, const int64_t *at,
                          void (*fn)(void *), void *arg)
{
    (void)t, (void)own;
    gort__lock_take(&heap_lock, GORT_RANK_TIMER);
    MODEL_ASSERT(!book.entry && fn == fire && arg == &timer);
    MODEL_ASSERT(at == (cold(&timer)->settling ? NULL : &cold(&timer)->when));
    book.entry = when;
    book.movable = at != NULL;
    gort__lock_drop(&heap_lock, GORT_RANK_TIMER);
}

bool gort__timer_cancel(struct gort__timer *t)
{
    (void)t;
    gort__lock_take(&heap_lock, GORT_RANK_TIMER);
    bool was = book.entry != 0;
    book.entry = 0;
    gort__lock_drop(&heap_lock, GORT_RANK_TIMER);
    return was;
}

int64_t gort__lease_slip(uint32_t lease)
{
    MODEL_ASSERT(lease == gort__lease_of(END) || lease == gort__lease_of(OTHER_END));
    return lease == gort__lease_of(END) ? book.slip : book.other_slip;
}

int gort__go_finally(struct gort__m *m, void (*fn)(void), const uintptr_t *args, int nargs,
                     void (*at_end)(void *), void *end_arg)
{
    (void)m, (void)nargs;
    MODEL_ASSERT(fn == (void (*)(void))call && at_end == end_call && end_arg == &timer);
    if (book.scarce) {
        book.scarce = false;
        return -ENOMEM;
    }
    book.turn[book.started++] = args[ARG_TURN];
    return 0;
}

/* The timer's function. */
static void comes(void *unused)
{
    (void)unused;
    book.calls++;
    if (book.running) {
        book.running--;
        return;
    }
    if (book.now < book.least || book.now > book.most)
        model_fail("a call at %d units, which may come from %d to %d", (int)((book.now - END) / UNIT),
                   (int)((book.least - END) / UNIT), (int)((book.most - END) / UNIT));
    MODEL_ASSERT(!book.stopped);
}

/* --- the threads ------------------------------------------------------------------------------- */

/* Takes the entry out, for which the time comes, unless it was moved under the timer's lock. */
static bool takes_out(void)
{
    gort__lock_take(&heap_lock, GORT_RANK_TIMER);
    int64_t when = book.entry, at = book.movable ? gort__load(&cold(&timer)->when, RELAXED) : when;
    bool is_due = when && at <= when;
    if (when)
        book.entry = is_due ? 0 : at;
    if (is_due && when > book.now)
        book.now = when;
    gort__lock_drop(&heap_lock, GORT_RANK_TIMER);
    return is_due;
}

/* And whatever follows from that. */
static void fires(void)
{
    if (!takes_out())
        return;
    fire(&timer);
    while (book.started) {
        uintptr_t turn = book.turn[--book.started];
        model_m()->g->arg[ARG_BEGUN] = 0;
        call(&timer, turn);
        end_call(&timer);
    }
}
static void fires_twice(void)
{
    fires();
    fires();
}
static void fires_thrice(void)
{
    fires_twice();
    fires_twice();
}

/* Somebody was told whether the timer was active when it was reset. */
static void was_reset(bool active)
{
    if (!active) { /* the call has begun, perhaps it is not counted yet, and there will be one more */
        book.running += book.calls + book.running < book.expected;
        book.expected++;
    }
    book.stopped = false;
}

/* For so many units from the end of the lease. */
static void resets_to(int units)
{
    int64_t ns = units * UNIT, when = END + ns + book.slip;
    if (!book.users++ || when < book.from)
        book.from = when;
    if (book.users == 1 || when > book.to)
        book.to = when;
    /* It may come before we return; two units are more than what a moment and a lack of memory take. */
    book.least = when < book.least ? when : book.least;
    book.most = END + 100 * UNIT;
    was_reset(gort_timer_reset(&timer, ns, 0));
    if (--book.users == 0) {
        book.least = book.from;
        book.most = (book.now > book.to ? book.now : book.to) + 2 * UNIT;
    }
}
static void moves_one(void)
{
    resets_to(40);
}
static void moves_less(void)
{
    resets_to(30);
}
static void moves_twice(void)
{
    resets_to(40);
    resets_to(30);
}
static void moves_a_little(void)
{
    resets_to(10);
    resets_to(11);
    resets_to(10);
}
static void moves_back_and_forth(void)
{
    resets_to(30);
    resets_to(20);
    resets_to(40);
}
/* Too short for a lease: by the lock, and shut. */
static void shortens(void)
{
    resets_to(40);
    int64_t when = book.now + UNIT;
    book.least = when < book.least ? when : book.least;
    book.most = END + 100 * UNIT;
    was_reset(gort_timer_reset(&timer, UNIT, 0));
    book.least = when;
}
/* One that is new, and comes before its maker has seen it. */
static void makes_one(void)
{
    book.expected = 1;
    gort_timer *t = gort_timer_new(10 * UNIT, 0, comes, NULL);
    MODEL_ASSERT(t == &timer);
    resets_to(40);
}
static void stops(void)
{
    bool prevented = gort_timer_stop(&timer);
    book.expected -= prevented;
    book.running += !prevented && book.calls + book.running < book.expected;
    book.stopped = true;
}
static void moves_and_stops(void)
{
    resets_to(40);
    stops();
}
static void stops_and_moves(void)
{
    stops();
    resets_to(40);
}

/* By the program's own words one comes after the other: who stops it and does not see that somebody is busy came first. */
static void says_so_and_moves(void)
{
    gort__xchg(&book.busy, 1, SEQ_CST);
    gort__arch_fence_after_rmw();
    book.moved = gort_timer_reset(&timer, 40 * UNIT, 0);
}
static void stops_and_looks(void)
{
    MODEL_ASSERT(gort_timer_stop(&timer) || book.moved);
    book.saw = gort__load(&book.busy, RELAXED);
}
static void one_came_first(void)
{
    MODEL_ASSERT(book.saw || !book.moved);
}

/* For some other timer; it will do for this one, too, if it begins late enough. */
static void fences(void)
{
    fence_after(gort__load(&begun, RELAXED));
}

/* --- setup and oracle -------------------------------------------------------------------------- */

/* A timer for 10 units after the end of the lease. */
static void start(void)
{
    memset(&book, 0, sizeof book);
    memset(&timer, 0, sizeof timer);
    memset(other_half, 0, sizeof other_half);
    for (int i = 0; i <= USERS; i++) {
        gs[i] = (struct gort__g){0};
        ms[i].g = &gs[i];
    }
    begun = done = 0;
    gort__lease = (struct gort__lease){.end = END, .least = 5 * UNIT, .run_tag = 7};
    book.now = END - 10 * UNIT;
    init(&timer, comes, NULL);
    set_to(&timer, cold(&timer), 10 * UNIT, 0, OTHER_END + 10 * UNIT, gort__lease_of(OTHER_END));
    arm_locked(&timer, cold(&timer));
    book.expected = 1;
    book.least = OTHER_END + 10 * UNIT;
    book.most = END + 12 * UNIT;
    heap_lock.word = 0;
    model_memory(&heap_lock, sizeof heap_lock);
    model_memory(&book, sizeof book);
    model_memory(&timer, sizeof timer);
    model_memory(other_half, sizeof other_half);
    model_memory(&begun, sizeof begun);
    model_memory(&done, sizeof done);
    model_memory(gs, sizeof gs);
    model_quiet(&gort__sched, sizeof gort__sched);
    model_quiet(&gort__lease, sizeof gort__lease);
    model_quiet(&gort__os_light_is_full, sizeof gort__os_light_is_full);
}
static void scarce(void)
{
    start();
    book.scarce = true;
}

static void has_slipped(void)
{
    start();
    book.slip = 3 * UNIT;
}
static void other_has_slipped(void)
{
    start();
    book.other_slip = 3 * UNIT;
    book.least += book.other_slip;
    book.most += book.other_slip;
}
static void not_yet(void)
{
    start();
    gort__timer_cancel(&cold(&timer)->heap);
    memset(other_half, 0, sizeof other_half);
    timer = (gort_timer){0};
    book.expected = 0;
    for (int i = 0; i <= USERS; i++) {
        ps[i].object = &timer;
        ms[i].p = &ps[i];
    }
    model_memory(ps, sizeof ps);
}

static void all_come(void)
{
    for (int i = 0; i < 8 && book.entry; i++)
        fires();
    MODEL_ASSERT(!book.entry && !book.started && !book.running);
    if (book.calls != book.expected)
        model_fail("%d calls instead of %d", book.calls, book.expected);
    MODEL_ASSERT(cold(&timer)->refs == 1 && cold(&timer)->state == IDLE && !timer.move.open);
}

static const struct model moved = {.setup = start, .threads = {moves_one, fires_thrice}, .final = all_come};
static const struct model twice = {.setup = start, .threads = {moves_twice, fires_thrice}, .final = all_come};
static const struct model little = {
    .setup = start, .threads = {moves_a_little, fires_thrice}, .final = all_come};
static const struct model forth = {
    .setup = start, .threads = {moves_back_and_forth, fires_thrice}, .final = all_come};
static const struct model slipped_away = {
    .setup = has_slipped, .threads = {moves_a_little, fires_thrice}, .final = all_come};
static const struct model slipped_before = {
    .setup = other_has_slipped, .threads = {moves_a_little, fires_thrice}, .final = all_come};
static const struct model in_order = {
    .setup = start, .threads = {says_so_and_moves, stops_and_looks}, .final = one_came_first};
static const struct model fresh = {.setup = not_yet, .threads = {makes_one, fires_thrice}, .final = all_come};
static const struct model no_memory = {
    .setup = scarce, .threads = {moves_twice, fires_thrice}, .final = all_come};
static const struct model shortened = {
    .setup = start, .threads = {shortens, fires_thrice}, .final = all_come};
static const struct model stopped = {
    .setup = start, .threads = {moves_and_stops, fires_thrice}, .final = all_come};
static const struct model restarted = {
    .setup = start, .threads = {stops_and_moves, fires_thrice}, .final = all_come};
static const struct model by_two = {
    .setup = start, .threads = {moves_one, moves_less, fires_thrice}, .final = all_come};
static const struct model shared_fence = {
    .setup = start, .threads = {moves_one, fires_twice, fences}, .final = all_come};
static const struct model fired_by_two = {
    .setup = start, .threads = {moves_twice, fires_twice, fires_twice}, .final = all_come};

TEST(moved_while_it_comes)
{
    model_check_both(moved, "moved", 0, 0);
    model_check_both(twice, "moved twice", 0, 0);
    model_check_both(little, "moved a little", 0, 0);
    model_check_both(forth, "moved back and forth", 0, 0);
}
TEST(the_lease_has_slipped)
{
    model_check_both(slipped_away, "a lease that has slipped", 0, 0);
    model_check_both(slipped_before, "the one before has slipped", 0, 0);
}
TEST(fired_while_it_is_made)
{
    model_check_both(fresh, "new, and moved", 0, 0);
}
TEST(no_memory_for_the_call)
{
    model_check_both(no_memory, "no memory for the call", 0, 0);
}
TEST(shortened_while_it_comes)
{
    model_check_both(shortened, "moved and shortened", 0, 0);
}
TEST(stopped_while_it_comes)
{
    model_check_both(stopped, "moved and stopped", 0, 0);
    model_check_both(restarted, "stopped and started", 0, 0);
}
TEST(stopped_before_or_after)
{
    model_check_both(in_order, "stopped and looked", 0, 0);
}
TEST(a_fence_for_many)
{
    model_check_both(shared_fence, "another timer's fence", 0, 0);
}
TEST(moved_by_two)
{
    model_check_both(by_two, "two move it", 0, 0);
}
TEST(fired_by_two_threads)
{
    model_check_both(fired_by_two, "two fire it", 0, 0);
}

/* --- mutations --------------------------------------------------------------------------------- */

TEST(mutation_fence)
{
    model_catch(&moved, "no fence before it is seen where it was moved to", "gort__os_fence_heavy",
                MODEL_OP_BARRIER, MODEL_SKIPPED);
}
TEST(mutation_shut)
{
    model_catch(&moved, "it is fired while it is open", "gort__move_is_open", MODEL_OP_LOAD, MODEL_SKIPPED);
    struct model m = shared_fence;
    m.memory = MODEL_WEAK;
    model_catch(&m, "others fence before it is seen that it is shut", "gort__move_shut", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
/* Not one operation of the real code: a user who does so. */
static void moves_without_a_second_look(void)
{
    uint64_t open = gort__load(&timer.move.open, ACQUIRE);
    if (!open)
        return;
    gort__store(&timer.move.to, END + 40 * UNIT, RELAXED);
    book.least = END + 40 * UNIT;
    book.most = END + 42 * UNIT;
}
TEST(mutation_second_look)
{
    struct model m = moved;
    m.threads[0] = moves_without_a_second_look;
    CHECK_MSG(timed(&m, "no second look", false).failed, "the mutation was not noticed");
}
TEST(mutation_forget)
{
    model_catch(&twice, "where it was moved to before still counts", "gort__move_forget", MODEL_OP_STORE,
                MODEL_SKIPPED);
}
TEST(mutation_floor)
{
    model_catch_kept(&twice, "it may be moved to before its entry", "gort__move_change", MODEL_OP_STORE,
                     UINT64_MAX << 32);
}
TEST(mutation_close)
{
    model_catch(&stopped, "it can be moved when it was stopped", "gort__move_change", MODEL_OP_XCHG,
                MODEL_SKIPPED);
    model_catch(&in_order, "whoever stops it does not see what came before", "gort__move_change",
                MODEL_OP_XCHG, MODEL_NOT_A_FENCE);
}
TEST(mutation_number_of_the_fence)
{
    model_catch(&forth, "a fence from before will do", "gort__move_shut", MODEL_OP_LOAD, MODEL_SKIPPED);
}
