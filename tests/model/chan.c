/* SPDX-License-Identifier: MIT */
/*
 * chan.c - the real channels and select (sync/chan.c, select.c), waiting and waking (sched/wait.c, park.c) and the switch
 * away from a stack (sched/schedule.c): no value is lost or seen twice, nobody waits for ever, one party ends a wait, a
 * goroutine is resumed only when it is off its stack, a channel is freed once and touched by nobody afterwards.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 *
 * Channels look at nothing without their lock but refs and, for gort_chan_len, len; so what can go wrong is the order of
 * lock, claim word, commit and reference count. A model thread is a goroutine with an M and a P of its own: a switch to g0
 * runs the commit there (the real arrive), and then waits until somebody has readied the goroutine. One thread is
 * the clock: the alarm of a wait goes off at any time.
 * Modelled instead of real: stacks, run queues (to be readied is to be resumed; idle.c explores those), the lock's slow
 * path, the heap of timers (one alarm under a lock), memory. Absent: contexts, stops of the world.
 * Bounded: two or three threads of one to three calls; with three threads at most 3 preemptions (2 for selects).
 */
#include "model/engine/explore.c"

#include "model/locks.h"

#include <errno.h>

static void *self_get(void);
static void switch_stack(void);
#define gort__arch_self()            self_get()
#define gort__arch_set_self(m)       ((void)(m))
#define gort__arch_home()            self_get()
#define gort__arch_switch(from, to)  ((void)(from), (void)(to), switch_stack())
#define gort__arch_make(ctx, hi, fn) ((void)(ctx), (void)(hi), (void)(fn))

/* Never reached from here; they only have to link. */
#pragma weak gort__block_call_run
#pragma weak gort__enter_plain
#pragma weak gort__find
#pragma weak gort__fresh_may_start
#pragma weak gort__fuzz_here
#pragma weak gort__fuzz_point
#pragma weak gort__g_collect
#pragma weak gort__held_take
#pragma weak gort__hold_slow
#pragma weak gort__leave_blocking
#pragma weak gort__leave_slow
#pragma weak gort__os_nap
#pragma weak gort__os_thread_yield
#pragma weak gort__overflow_check
#pragma weak gort__poll_pending
#pragma weak gort__queue_take
#pragma weak gort__run_bound
#pragma weak gort__scope_refuses
#pragma weak gort__scope_wait_begin
#pragma weak gort__scope_wait_end
#pragma weak gort__spin_stop
#pragma weak gort__stack_class
#pragma weak gort__stack_get
#pragma weak gort__stack_guard_size
#pragma weak gort__start_here
#pragma weak gort__wait_for_locked
#pragma weak gort__wake_p

#include "sched/runq.c"
#include "sched/park.c"
#include "sched/schedule.c"
#define commit_unlock commit_unlock_any
#include "sched/wait.c"
#undef commit_unlock
#include "sync/chan.c"
#include "sync/select.c"

#ifndef gort__asan
bool gort__asan;
#endif

#define TS   3
#define CHS  2
#define SOON 100

struct gort__sched gort__sched;
void (*gort__run_at_end)(void);
bool gort__os_light_is_full;
_Thread_local uint64_t gort__tls[4] __attribute__((tls_model("initial-exec")));
static struct gort__m ms[TS];
static struct gort__p ps[TS];
static struct gort__g gs[TS];
static union {
    struct gort_chan ch;
    char room[sizeof(struct gort_chan) + 64]; /* with a buffer */
} chans[CHS];
static struct {
    struct gort__lock alarm_lock; /* of the heap of timers */
    struct gort__g *alarm;        /* whose wait it ends */
    uint32_t armed;
    uint32_t resumed[TS]; /* readied, and not yet gone on */
    uint32_t slept[TS];   /* plain threads: woken */
    bool off[TS];         /* off its stack */
    bool hasty;           /* a mutation: who goes on is on its stack while others can find it */
    int err[TS];
    uint32_t freed, done; /* bits */
    uint64_t sent[TS], got[TS][2];
    int result[TS][2]; /* of each call, plus 1000 */
} book;                /* what the threads did; written between steps only */

static void *self_get(void)
{
    return model_self() < 0 ? NULL : &ms[model_self()];
}

static int me(void)
{
    int i = model_self();
    MODEL_ASSERT(i >= 0 && i < TS);
    return i;
}

/* --- what the real code calls ------------------------------------------------------------------ */

/* The goroutine of this thread leaves its stack for g0, where its commit runs; it goes on when it was readied. */
static void switch_stack(void)
{
    int i = me();
    book.off[i] = !book.hasty;
    gort__switch_finish(); /* on g0 */
    if (book.hasty)
        (void)gort__load(&book.armed, RELAXED);
    book.off[i] = true;
    model_await(&book.resumed[i], 1);
    book.resumed[i] = 0;
    book.off[i] = false;
    gort__store(&ms[i].g, &gs[i], RELEASE); /* as whoever resumes it does */
}
/* Somebody may resume g from now on. */
static void resume(struct gort__g *g)
{
    int i = (int)(g - gs);
    if (!book.off[i])
        model_fail("goroutine %d is resumed while it is on its stack", i);
    MODEL_ASSERT(gort__xchg(&book.resumed[i], 1, SEQ_CST) == 0);
}
void gort__p_put_next(struct gort__p *p, struct gort__g *g)
{
    (void)p;
    resume(g);
}
void gort__p_put(struct gort__p *p, struct gort__g *g)
{
    (void)p;
    resume(g);
}
void gort__queue_put(struct gort__g *g)
{
    resume(g);
}
void gort__queue_put_and_wake(struct gort__g *g)
{
    resume(g);
}
void gort__m_sleep(struct gort__m *m)
{
    model_await(&book.slept[m - ms], 1);
    book.slept[m - ms] = 0;
}
void gort__m_wake(struct gort__m *m)
{
    MODEL_ASSERT(gort__xchg(&book.slept[m - ms], 1, SEQ_CST) == 0);
}
int gort__timer_set(struct gort__timer *t, int64_t when, void (*fn)(void *), void *arg)
{
    MODEL_ASSERT(when == SOON && !fn && !book.alarm);
    (void)t;
    gort__lock_take(&book.alarm_lock, GORT_RANK_TIMER);
    book.alarm = arg;
    gort__lock_drop(&book.alarm_lock, GORT_RANK_TIMER);
    gort__store(&book.armed, 1, SEQ_CST);
    return 0;
}
void gort__timer_del(struct gort__timer *t)
{
    (void)t;
    gort__lock_take(&book.alarm_lock, GORT_RANK_TIMER);
    book.alarm = NULL;
    gort__lock_drop(&book.alarm_lock, GORT_RANK_TIMER);
}
int64_t gort__os_now(void)
{
    return 0;
}
void *gort__alloc(size_t size)
{
    (void)size;
    return NULL;
}
void gort__alloc_free(void *object, size_t size)
{
    for (uint32_t i = 0; i < CHS; i++)
        if (object == &chans[i]) {
            MODEL_ASSERT(!(book.freed & 1u << i) && size <= sizeof chans[i]);
            book.freed |= 1u << i;
            model_gone(&chans[i], sizeof chans[i]);
            return;
        }
    model_fail("what is freed is no channel");
}

/* --- the threads ------------------------------------------------------------------------------- */

#define A (&chans[0].ch)
#define B (&chans[1].ch)

static void give(gort_chan *ch, int k, uint64_t value, int64_t deadline)
{
    int i = me(), err = gort_chan_send_until(ch, &value, deadline);
    book.result[i][k] = 1000 + err;
    if (err == 0)
        book.sent[i] += value;
}
static void take(gort_chan *ch, int k, int64_t deadline)
{
    int i = me();
    uint64_t value = 77;
    book.result[i][k] = 1000 + gort_chan_recv_until(ch, &value, deadline);
    book.got[i][k] = book.result[i][k] == 1001 ? value : 0;
}
static void done(void)
{
    book.done |= 1u << me();
}
static void sends_one(void)
{
    give(A, 0, 1u << me(), GORT_FOREVER);
    done();
}
static void sends_two(void)
{
    give(A, 0, 1, GORT_FOREVER);
    give(A, 1, 2, GORT_FOREVER);
    done();
}
static void sends_and_drops(void)
{
    give(A, 0, 1, GORT_FOREVER);
    gort_chan_unref(A);
    done();
}
static void offers(void)
{
    give(A, 0, 1u << me(), GORT_TRY);
    done();
}
static void offers_b(void)
{
    give(B, 0, 1u << me(), GORT_TRY);
    done();
}
/* When the receiver waits. */
static void offers_and_drops(void)
{
    model_await(&book.armed, 1);
    give(A, 0, 1, GORT_TRY);
    gort_chan_unref(A);
    done();
}
static void receives_one(void)
{
    take(A, 0, GORT_FOREVER);
    done();
}
static void receives_two(void)
{
    take(A, 0, GORT_FOREVER);
    MODEL_ASSERT(gort_chan_len(A) <= A->cap);
    take(A, 1, GORT_FOREVER);
    done();
}
static void receives_and_drops(void)
{
    take(A, 0, GORT_FOREVER);
    gort_chan_unref(A);
    done();
}
/* It has no reference: the channel stays for its sake until its wait is over. */
static void receives_for_a_while(void)
{
    take(A, 0, SOON);
    done();
}
static void closes(void)
{
    gort_chan_close(A);
    done();
}
static void refs_and_drops(void)
{
    gort_chan_ref(A);
    gort_chan_unref(A);
    gort_chan_unref(A);
    done();
}
static void alarm_goes_off(void)
{
    struct gort__glist woken = {0};
    model_await(&book.armed, 1);
    gort__lock_take(&book.alarm_lock, GORT_RANK_TIMER);
    struct gort__g *g = book.alarm;
    book.alarm = NULL;
    if (g && gort__claim(g)) { /* as gort__timer_fire does */
        g->wait_slot = (void *)(intptr_t)-ETIMEDOUT;
        gort__glist_add(&woken, g);
    }
    gort__lock_drop(&book.alarm_lock, GORT_RANK_TIMER);
    if (woken.n)
        gort__ready(self_get(), g);
}
static void selects(gort_case first, gort_case second, int64_t deadline)
{
    int i = me();
    gort_case cases[] = {first, second};
    int index = gort_select(cases, 2, deadline);
    book.result[i][0] = 1000 + index;
    if (index >= 0)
        book.result[i][1] = 1000 + cases[index].result;
    done();
}
static void selects_both(void)
{
    uint64_t a = 0, b = 0;
    selects((gort_case){.op = GORT_RECV, .ch = A, .recv = &a},
            (gort_case){.op = GORT_RECV, .ch = B, .recv = &b}, GORT_FOREVER);
    book.got[me()][0] = a + b;
    if (book.result[me()][0] == 1001) /* the other one waits */
        take(A, 1, GORT_FOREVER);
}
static void selects_for_a_while(void)
{
    uint64_t a = 0, b = 0;
    selects((gort_case){.op = GORT_RECV, .ch = A, .recv = &a},
            (gort_case){.op = GORT_RECV, .ch = B, .recv = &b}, SOON);
    book.got[me()][0] = a + b;
}
static void crosses(void)
{
    uint64_t in = 0, out = 1u << me();
    gort_case to_a = {.op = GORT_SEND, .ch = A, .send = &out},
              from_a = {.op = GORT_RECV, .ch = A, .recv = &in},
              to_b = {.op = GORT_SEND, .ch = B, .send = &out},
              from_b = {.op = GORT_RECV, .ch = B, .recv = &in};
    if (me() == 0)
        selects(from_a, to_b, GORT_FOREVER);
    else
        selects(from_b, to_a, GORT_FOREVER);
    book.got[me()][0] = in;
}

/* --- setup and oracles ------------------------------------------------------------------------- */

static void start(size_t cap, uint32_t refs)
{
    struct gort__sched *s = &gort__sched;
    memset(s, 0, sizeof *s);
    memset(ms, 0, sizeof ms);
    memset(ps, 0, sizeof ps);
    memset(gs, 0, sizeof gs);
    memset(&book, 0, sizeof book);
    memset(chans, 0, sizeof chans);
    memset(&left, 0, sizeof left);
    s->procs = s->p_made = TS; /* not alone */
    s->run = 1;
    for (int i = 0; i < CHS; i++)
        chans[i].ch = (gort_chan){.refs = refs, .elem = 8, .magic = GORT_CHAN_MAGIC, .cap = cap};
    for (int i = 0; i < TS; i++) {
        s->ps[i] = &ps[i];
        ps[i].turn = 1000;
        ps[i].timers.first = INT64_MAX;
        ps[i].m = &ms[i];
        ms[i].p = &ps[i];
        ms[i].g = &gs[i];
        ms[i].err = &book.err[i];
        ms[i].g0.flags = GORT_G_THREAD;
        gs[i].state = GORT_G_RUNNING;
        gs[i].m = &ms[i];
    }
    model_memory(ms, sizeof ms);
    model_memory(ps, sizeof ps);
    model_memory(gs, sizeof gs);
    model_memory(chans, sizeof chans);
    model_memory(&left, sizeof left);
    model_memory(&book, sizeof book);
    model_quiet(s, sizeof *s);
    model_quiet(ps, sizeof ps);
    model_quiet(ms, sizeof ms);  /* each M is its thread's own here */
    for (int i = 0; i < TS; i++) /* but for the claim word */
        model_quiet(&gs[i], offsetof(struct gort__g, wait_word));
}
static void unbuffered(void)
{
    start(0, 1);
}
static void unbuffered_two_refs(void)
{
    start(0, 2);
}
static void buffered(void)
{
    start(1, 1);
}
static void buffered_two_refs(void)
{
    start(1, 2);
}
static void hasty(void)
{
    start(0, 1);
    book.hasty = true;
}
/* A thread that is no goroutine takes part. */
static void plain_receiver(void)
{
    start(0, 1);
    gs[0].flags = GORT_G_THREAD;
}

static void nobody_waits(const gort_chan *ch)
{
    MODEL_ASSERT(!ch->receivers.first && !ch->senders.first && !ch->parked && !ch->lock.word);
}
static void all_done(uint32_t who)
{
    if (book.done != who)
        model_fail("lost wake-up: %x of %x are done", book.done, who);
    for (int i = 0; i < TS; i++)
        MODEL_ASSERT(!book.resumed[i] && !book.slept[i] && gs[i].wait_word == GORT_CLAIM_NONE);
    for (uint32_t i = 0; i < CHS; i++)
        if (!(book.freed & 1u << i))
            nobody_waits(&chans[i].ch);
}
static uint64_t in_buffer(void)
{
    uint64_t v = 0;
    if (!(book.freed & 1) && A->len)
        memcpy(&v, A->buffer + A->head * 8, 8);
    return v;
}
/* What was sent was received or is in the buffer, once. */
static void conserved(uint32_t who)
{
    uint64_t sent = 0, got = in_buffer();
    all_done(who);
    for (int i = 0; i < TS; i++) {
        sent += book.sent[i];
        got += book.got[i][0] + book.got[i][1];
    }
    MODEL_ASSERT(sent == got);
}
static void passed(void)
{
    conserved(3);
    MODEL_ASSERT(book.result[0][0] == 1001 && book.result[1][0] == 1000);
}
static void in_order(void)
{
    conserved(3);
    MODEL_ASSERT(book.got[0][0] == 1 && book.got[0][1] == 2);
}
static void both_passed(void)
{
    conserved(7);
    MODEL_ASSERT(book.sent[1] == 2 && book.sent[2] == 4);
}
/* Of a receiver, a sender that does not wait, and a close, in any order. */
static void closed(void)
{
    conserved(7);
    MODEL_ASSERT(book.result[0][0] == 1000 + (book.result[2][0] == 1000));
}
static void freed_once(void)
{
    all_done(3);
    MODEL_ASSERT(book.freed == 1);
}
static void passed_and_freed(void)
{
    freed_once();
    MODEL_ASSERT(book.got[0][0] == 1);
}
static void passed_or_late(void)
{
    all_done(3);
    MODEL_ASSERT(book.freed == 1);
    MODEL_ASSERT(book.result[0][0] == (book.result[1][0] == 1000 ? 1001 : 1000 - ETIMEDOUT));
    MODEL_ASSERT(book.got[0][0] == book.sent[1]);
}
/* Of a select of two, a sender to the first, and one to the second that does not wait. */
static void one_each(void)
{
    conserved(7);
    MODEL_ASSERT(book.result[0][1] == 1001 && book.sent[1]);
}
static void one_or_late(void)
{
    all_done(3);
    MODEL_ASSERT(book.got[0][0] == book.sent[1]);
    MODEL_ASSERT(book.sent[1] ? book.result[0][1] == 1001 : book.result[0][0] == 1000 - ETIMEDOUT);
}
static void crossed(void)
{
    all_done(3);
    MODEL_ASSERT((book.got[0][0] == 2 && !book.got[1][0]) || (book.got[1][0] == 1 && !book.got[0][0]));
}

static const struct model hand_over = {
    .setup = unbuffered, .threads = {receives_one, sends_one}, .final = passed};
static const struct model hand_over_plain = {
    .setup = plain_receiver, .threads = {receives_one, sends_one}, .final = passed};
static const struct model through_buffer = {
    .setup = buffered, .threads = {receives_two, sends_two}, .final = in_order};
static const struct model two_senders = {
    .setup = unbuffered, .threads = {receives_two, sends_one, sends_one}, .final = both_passed};
static const struct model two_senders_buffer = {
    .setup = buffered, .threads = {receives_two, sends_one, sends_one}, .final = both_passed};
static const struct model closing = {
    .setup = unbuffered, .threads = {receives_one, closes, offers}, .final = closed};
static const struct model last_one_frees = {.setup = unbuffered_two_refs,
                                            .threads = {receives_and_drops, sends_and_drops},
                                            .final = passed_and_freed};
static const struct model last_one_frees_buffer = {
    .setup = buffered_two_refs, .threads = {receives_and_drops, sends_and_drops}, .final = passed_and_freed};
static const struct model references = {
    .setup = unbuffered_two_refs, .threads = {refs_and_drops, refs_and_drops}, .final = freed_once};
static const struct model late = {.setup = unbuffered,
                                  .threads = {receives_for_a_while, offers_and_drops, alarm_goes_off},
                                  .final = passed_or_late};
static const struct model selecting = {
    .setup = unbuffered, .threads = {selects_both, sends_one, offers_b}, .final = one_each};
static const struct model selecting_late = {
    .setup = unbuffered, .threads = {selects_for_a_while, offers, alarm_goes_off}, .final = one_or_late};
static const struct model crossing = {.setup = unbuffered, .threads = {crosses, crosses}, .final = crossed};

TEST(unbuffered_value)
{
    model_check_both(hand_over, "a value from hand to hand", 0, 0);
    model_check_both(hand_over_plain, "to a plain thread", 0, 0);
}
TEST(buffered_values)
{
    model_check_both(through_buffer, "two values through a buffer of one", 0, 0);
}
TEST(two_senders, .timeout = 180)
{
    model_check_both(two_senders, "two senders", 3, 3);
    model_check_both(two_senders_buffer, "two senders, a buffer of one", 3, 3);
}
TEST(close_while_used, .timeout = 180)
{
    model_check_both(closing, "a receiver, a sender, a close", 3, 3);
}
TEST(freed_by_the_last)
{
    model_check_both(last_one_frees, "the last one frees it", 0, 0);
    model_check_both(last_one_frees_buffer, "the last one frees it, with a buffer", 0, 0);
    model_check_both(references, "two that count references", 0, 0);
}
TEST(deadline, .timeout = 180)
{
    model_check_both(late, "a deadline, and the last reference goes", 3, 3);
}
TEST(select_of_two, .timeout = 180)
{
    model_check_both(selecting, "a select of two, two senders", 2, 2);
}
TEST(select_deadline, .timeout = 180)
{
    model_check_both(selecting_late, "a select of two, a deadline", 2, 2);
}
TEST(select_crossing, .timeout = 180)
{
    model_check_both(crossing, "two selects that serve each other", 0, 0);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_commit)
{
    struct model m = hand_over;
    m.setup = hasty;
    struct model_result r = model_explore(&m);
    CHECK_MSG(r.failed, "a goroutine that can be found while it is on its stack was not noticed");
}
TEST(mutation_claim_torn)
{
    model_catch(&late, "torn claim", "gort__claim", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_claim_select)
{
    model_catch(&selecting, "a claim that does not look", "gort__claim", MODEL_OP_CAS, MODEL_SKIPPED);
}
TEST(mutation_arm)
{
    model_catch(&selecting, "a wait that is not armed", "commit_arm", MODEL_OP_STORE, MODEL_SKIPPED);
}
TEST(mutation_unref_torn)
{
    model_catch(&references, "torn count of references", "gort_chan_unref", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_ref_torn)
{
    model_catch(&references, "torn new reference", "gort_chan_ref", MODEL_OP_RMW, MODEL_TORN);
}
TEST(mutation_let_go)
{
    model_catch(&late, "a wait that frees what others have", "gort__chan_let_go", MODEL_OP_LOAD,
                MODEL_SKIPPED);
}
TEST(mutation_unlock_unordered)
{
    struct model m = through_buffer;
    m.memory = MODEL_WEAK;
    model_catch(&m, "unlock without order", "model_lock_drop", MODEL_OP_STORE, MODEL_UNORDERED);
}
