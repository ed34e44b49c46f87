/* SPDX-License-Identifier: MIT */
/*
 * arch.c - the contract of src/arch/arch.h: a switch keeps what the compiler relies on and the
 * floating-point control words, and a made context starts with the default ones.
 * Covers: src/arch/arch.h src/arch/x86_64/entry.S src/arch/x86_64/inline.h src/arch/aarch64/entry.S
 * Covers: src/arch/aarch64/inline.h
 */
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "test.h"
#include "unit/fp.h"

#define STACK  ((size_t)256 << 10)
#define ROUNDS 1000

static struct gort__ctx here, there;
static volatile int rounds;

static GORT_NOINLINE void change(struct gort__ctx *from, struct gort__ctx *to)
{
    gort__arch_save_control(from);
    gort__arch_switch(from, to);
}

static void start(void (*fn)(void))
{
    char *stack = aligned_alloc(4096, STACK);
    CHECK(stack);
    gort__arch_make(&there, stack + STACK, fn);
}

static void no_sanitizer(void)
{
    if (test_under_sanitizer() || test_under_valgrind())
        SKIP("only without sanitizers and valgrind: they would have to be told about the stacks");
}

/* More values than there are registers of either kind, alive over the switch; salt keeps the two sides
 * apart. */
static GORT_NOINLINE void keep_values(struct gort__ctx *mine, struct gort__ctx *other, uint64_t salt)
{
    volatile uint64_t source = salt;
    uint64_t a = source, b = source * 3, c = source * 5, d = source * 7, e = source * 11, f = source * 13,
             g = source * 17, h = source * 19, i = source * 23, j = source * 29, k = source * 31,
             l = source * 37, m = source * 41, n = source * 43, o = source * 47, p = source * 53;
    double r = (double)a, s = (double)b, t = (double)c, u = (double)d, v = (double)e, w = (double)f,
           x = (double)g, y = (double)h, z = (double)i;
    long double q = (long double)j / 3;
    for (int round = 0; round < ROUNDS; round++) {
        change(mine, other);
        a++, b++, c++, d++, e++, f++, g++, h++, i++, j++, k++, l++, m++, n++, o++, p++;
        r += 1, s += 1, t += 1, u += 1, v += 1, w += 1, x += 1, y += 1, z += 1, q += 1;
    }
    uint64_t by = source;
    CHECK(a == by + ROUNDS && b == by * 3 + ROUNDS && c == by * 5 + ROUNDS && d == by * 7 + ROUNDS);
    CHECK(e == by * 11 + ROUNDS && f == by * 13 + ROUNDS && g == by * 17 + ROUNDS && h == by * 19 + ROUNDS);
    CHECK(i == by * 23 + ROUNDS && j == by * 29 + ROUNDS && k == by * 31 + ROUNDS && l == by * 37 + ROUNDS);
    CHECK(m == by * 41 + ROUNDS && n == by * 43 + ROUNDS && o == by * 47 + ROUNDS && p == by * 53 + ROUNDS);
    CHECK(r == (double)by + ROUNDS && s == (double)(by * 3) + ROUNDS && t == (double)(by * 5) + ROUNDS);
    CHECK(u == (double)(by * 7) + ROUNDS && v == (double)(by * 11) + ROUNDS &&
          w == (double)(by * 13) + ROUNDS);
    CHECK(x == (double)(by * 17) + ROUNDS && y == (double)(by * 19) + ROUNDS &&
          z == (double)(by * 23) + ROUNDS);
    long double want = (long double)(by * 29) / 3, off = q - want - ROUNDS;
    CHECK(off < 0.001L && off > -0.001L);
    rounds += ROUNDS;
}

static void other_side(void)
{
    keep_values(&there, &here, 1000003);
    change(&there, &here);
    abort();
}

TEST(keeps_values)
{
    no_sanitizer();
    start(other_side);
    keep_values(&here, &there, 77);
    change(&here, &there);
    CHECK_EQ(rounds, 2 * ROUNDS);
}

static volatile double one = 1, three = 3, tiny = 1e-308;

/* What the processor does, rather than what its control word says. */
static double third_downward, third_upward;

static void rounding_side(void)
{
    CHECK_EQ(fp_rounding(), FP_NEAREST); /* the default, although its maker rounds upward */
    CHECK(tiny / 16 > 0);
    fp_set(FP_DOWN, 1);
    for (;;) {
        CHECK_EQ(fp_rounding(), FP_DOWN);
        CHECK(one / three == third_downward);
        CHECK(tiny / 16 == 0);
        rounds++;
        change(&there, &here);
    }
}

TEST(keeps_the_control_words)
{
    no_sanitizer();
    gort__arch_fp = gort__arch_fp_read();
    fp_set(FP_DOWN, 0);
    third_downward = one / three;
    fp_set(FP_UP, 0);
    third_upward = one / three;
    CHECK(third_upward > third_downward);
    start(rounding_side);
    for (int i = 0; i < ROUNDS; i++) {
        change(&here, &there);
        CHECK_EQ(fp_rounding(), FP_UP);
        CHECK(one / three == third_upward);
        CHECK(tiny / 16 > 0);
    }
    CHECK_EQ(rounds, ROUNDS);
}

static char *stack_end;

static void restarted(void)
{
    rounds++;
    if (rounds == 3)
        change(&there, &here);
    static struct gort__ctx now, again;
    gort__arch_save_control(&now);
    gort__arch_make(&again, stack_end, restarted);
    gort__arch_restart(&now, &again);
}

TEST(starts_over_on_its_stack)
{
    no_sanitizer();
    char *stack = aligned_alloc(4096, STACK);
    CHECK(stack);
    gort__arch_make(&there, stack + STACK, restarted);
    stack_end = stack + STACK;
    change(&here, &there);
    CHECK_EQ(rounds, 3);
}

TEST(the_stack_is_aligned)
{
    no_sanitizer();
    struct gort__ctx ctx;
    char *stack = aligned_alloc(4096, STACK);
    gort__arch_make(&ctx, stack + STACK, restarted);
    CHECK_EQ((uintptr_t)ctx.sp % 16, 0);
    CHECK((char *)ctx.sp < stack + STACK && (char *)ctx.sp > stack + STACK - 256);
    CHECK_EQ(ctx.control, gort__arch_fp);
    free(stack);
}

TEST(a_thread_has_its_own_words)
{
    int here_too;
    CHECK_EQ(gort__arch_self(), NULL);
    gort__arch_set_self(&here_too);
    gort__arch_set_ranks(42);
    CHECK_EQ(gort__arch_self(), &here_too);
    CHECK_EQ(gort__arch_ranks(), 42);
    gort__arch_set_self(NULL);
    CHECK_EQ(gort__arch_ranks(), 42);
    gort__arch_set_ranks(0);
}
