/* SPDX-License-Identifier: MIT */
/*
 * litmus.c - does the explorer explore? Small programs whose possible outcomes are known.
 * Build: standalone -DGORT_MODEL
 * Covers: tests/model/engine/explore.c tests/model/engine/memory.c
 *
 * Each case lists all outcomes (the two registers as one number) and compares them with what the memory model
 * allows: no fewer (or bugs would be missed), no more (or correct code would be refused).
 */
#include "model/engine/explore.c"

static struct {
    uint32_t x, y, lock, woken;
} v;
static uint32_t r[2];
static bool outcome[16]; /* 4 * r[0] + r[1]; survives executions: not announced to the explorer */

static void setup(void)
{
    model_memory(&v, sizeof v);
    model_memory(r, sizeof r);
    memset(outcome, 0, sizeof outcome);
}

static void final(void)
{
    outcome[4 * r[0] + r[1]] = true;
}

/* With and without recognising states; if m is eager, with and without that. */
static void expect(struct model m, const char *name, enum model_memory_kind memory, uint32_t outcomes)
{
    m.setup = setup;
    m.final = final;
    m.memory = memory;
    bool eager = m.eager;
    for (int way = 0; way < (eager ? 4 : 2); way++) {
        m.tree = way & 1;
        m.eager = way & 2;
        struct model_result result = timed(&m, name, true);
        uint32_t found = 0;
        for (uint32_t i = 0; i < 16; i++)
            found |= (uint32_t)outcome[i] << i;
        CHECK_MSG(!result.failed, "%s: %s", name, result.why);
        CHECK_EQ(found, outcomes);
    }
}

#define OUT(r0, r1) (1u << (4 * (r0) + (r1)))

/* Store buffering: write mine, read yours. */
static void sb0(void)
{
    gort__store(&v.x, 1, RELEASE);
    r[0] = gort__load(&v.y, ACQUIRE);
}
static void sb1(void)
{
    gort__store(&v.y, 1, RELEASE);
    r[1] = gort__load(&v.x, ACQUIRE);
}
TEST(store_buffering)
{
    struct model m = {.threads = {sb0, sb1}, .eager = true};
    expect(m, "sb", MODEL_SC, OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    expect(m, "sb", MODEL_TSO, OUT(0, 0) | OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    expect(m, "sb", MODEL_WEAK, OUT(0, 0) | OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
}

static void sb_fence0(void)
{
    gort__store(&v.x, 1, RELAXED);
    gort__fence(SEQ_CST);
    r[0] = gort__load(&v.y, RELAXED);
}
static void sb_fence1(void)
{
    gort__store(&v.y, 1, RELAXED);
    gort__fence(SEQ_CST);
    r[1] = gort__load(&v.x, RELAXED);
}
TEST(store_buffering_fenced)
{
    struct model m = {.threads = {sb_fence0, sb_fence1}, .eager = true};
    expect(m, "sb, fences", MODEL_TSO, OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    expect(m, "sb, fences", MODEL_WEAK, OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    m.mutation = (struct model_mutation){.func = "sb_fence0", .op = MODEL_OP_FENCE, .kind = MODEL_SKIPPED};
    expect(m, "sb, one fence", MODEL_TSO, OUT(0, 0) | OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
}

/* An asymmetric pair: nothing on one side, on the other the kernel's barrier. */
static void sb_barrier1(void)
{
    gort__store(&v.y, 1, RELAXED);
    model_barrier(__func__);
    r[1] = gort__load(&v.x, RELAXED);
}
TEST(store_buffering_barrier)
{
    struct model m = {.threads = {sb0, sb_barrier1}};
    expect(m, "sb, barrier", MODEL_TSO, OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    expect(m, "sb, barrier", MODEL_WEAK, OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    m.mutation = (struct model_mutation){
        .func = "sb_barrier1", .op = MODEL_OP_BARRIER, .kind = MODEL_SKIPPED};
    expect(m, "sb, no barrier", MODEL_TSO, OUT(0, 0) | OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
}

/* A signal comes before, between or after the two stores, or not any more; never before it is sent. */
static void two_stores(void)
{
    gort__store(&v.x, 1, RELAXED);
    gort__store(&v.x, 2, RELAXED);
    (void)gort__load(&v.x, RELAXED);
}
static void sends_signal(void)
{
    (void)gort__load(&v.x, RELAXED);
    r[1] = 1;
    model_signal(0);
}
static void on_litmus_signal(void)
{
    MODEL_ASSERT(model_self() == 0 && r[1] == 1);
    r[0] = gort__load(&v.x, RELAXED) + 1;
}
TEST(signals)
{
    struct model m = {.threads = {two_stores, sends_signal}, .handler = on_litmus_signal};
    expect(m, "signal", MODEL_TSO, OUT(0, 1) | OUT(1, 1) | OUT(2, 1) | OUT(3, 1));
}

static void sb_rmw0(void)
{
    gort__xchg(&v.x, 1, SEQ_CST);
    r[0] = gort__load(&v.y, RELAXED);
}
static void sb_rmw1(void)
{
    gort__xchg(&v.y, 1, SEQ_CST);
    r[1] = gort__load(&v.x, RELAXED);
}
static void sb_rmw_fence0(void)
{
    gort__xchg(&v.x, 1, SEQ_CST);
    gort__arch_fence_after_rmw();
    r[0] = gort__load(&v.y, RELAXED);
}
static void sb_rmw_fence1(void)
{
    gort__xchg(&v.y, 1, SEQ_CST);
    gort__arch_fence_after_rmw();
    r[1] = gort__load(&v.x, RELAXED);
}
TEST(store_buffering_rmw)
{
    struct model m = {.threads = {sb_rmw0, sb_rmw1}, .eager = true};
    expect(m, "sb, xchg", MODEL_TSO, OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    expect(m, "sb, xchg", MODEL_WEAK, OUT(0, 0) | OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    struct model fenced = {.threads = {sb_rmw_fence0, sb_rmw_fence1}};
    expect(fenced, "sb, xchg and fence", MODEL_WEAK, OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
    m.mutation = (struct model_mutation){.func = "sb_rmw1", .op = MODEL_OP_RMW, .kind = MODEL_NOT_A_FENCE};
    expect(m, "sb, one xchg", MODEL_TSO, OUT(0, 0) | OUT(0, 1) | OUT(1, 0) | OUT(1, 1));
}

/* Message passing: data, then flag. */
static void mp0(void)
{
    gort__store(&v.x, 1, RELAXED);
    gort__store(&v.y, 1, RELAXED);
}
static void mp0_release(void)
{
    gort__store(&v.x, 1, RELAXED);
    gort__store(&v.y, 1, RELEASE);
}
static void mp1(void)
{
    r[0] = gort__load(&v.y, ACQUIRE);
    r[1] = gort__load(&v.x, RELAXED);
}
TEST(message_passing)
{
    struct model relaxed = {.threads = {mp0, mp1}, .eager = true},
                 release = {.threads = {mp0_release, mp1}, .eager = true};
    expect(relaxed, "mp", MODEL_TSO, OUT(0, 0) | OUT(0, 1) | OUT(1, 1));
    expect(relaxed, "mp", MODEL_WEAK, OUT(0, 0) | OUT(0, 1) | OUT(1, 1) | OUT(1, 0));
    expect(release, "mp, release", MODEL_WEAK, OUT(0, 0) | OUT(0, 1) | OUT(1, 1));
}

/* A thread sees its own stores first, also where it reads without an atomic operation. */
static void forward0(void)
{
    gort__store(&v.x, 1, RELAXED);
    gort__store(&v.x, 2, RELAXED);
    MODEL_ASSERT(gort__load(&v.x, RELAXED) == 2);
    MODEL_ASSERT(v.x == 2);
}
static void forward1(void)
{
    r[0] = gort__load(&v.x, RELAXED);
    r[1] = gort__load(&v.x, RELAXED);
}
TEST(forwarding)
{
    struct model m = {.threads = {forward0, forward1}, .eager = true};
    uint32_t rising = OUT(0, 0) | OUT(0, 1) | OUT(0, 2) | OUT(1, 1) | OUT(1, 2) | OUT(2, 2);
    expect(m, "forwarding", MODEL_TSO, rising);
    expect(m, "forwarding", MODEL_WEAK, rising);
}

/* Counting: atomic, and torn. */
static void count0(void)
{
    gort__add(&v.x, 1, RELAXED);
    r[0] = v.lock; /* keeps r[0] at 0 */
}
static void count1(void)
{
    gort__add(&v.x, 1, RELAXED);
}
static void count_final(void)
{
    outcome[v.x] = true;
    MODEL_ASSERT(v.x == 2);
}
TEST(counting)
{
    struct model m = {.setup = setup, .threads = {count0, count1}, .final = count_final};
    model_check(&m, "count");
    m.memory = MODEL_WEAK;
    model_check(&m, "count");
    model_catch(&m, "count, torn", "count0", MODEL_OP_RMW, MODEL_TORN);
}

/* Sleeping: whoever forgets to look again sleeps for ever. */
static void sleeper(void)
{
    bool timed_out;
    if (gort__load(&v.woken, ACQUIRE) == 0)
        model_futex_wait(&v.woken, 0, false, &timed_out);
    r[0] = 1;
}
static void waker(void)
{
    gort__store(&v.woken, 1, RELEASE);
    model_futex_wake(&v.woken);
}
static void waker_forgets(void)
{
    gort__store(&v.woken, 1, RELEASE);
}
static void woken_final(void)
{
    MODEL_ASSERT(r[0] == 1);
}
TEST(futex)
{
    struct model m = {.setup = setup, .threads = {sleeper, waker}, .final = woken_final};
    model_check(&m, "futex");
    m.threads[1] = waker_forgets;
    CHECK(model_explore(&m).failed);
}
