/* SPDX-License-Identifier: MIT */
/* inline.h - the inline half of arch.h for aarch64. */
#ifndef GORT_SRC_ARCH_AARCH64_INLINE_H
#define GORT_SRC_ARCH_AARCH64_INLINE_H

/* The address of the thread's words (gort__tls in entry.S), computed anew at each use. */
static inline uint64_t *gort__arch_words(void)
{
    uint64_t off, base;
    __asm__ volatile("adrp %0, :gottprel:gort__tls\n\t"
                     "ldr %0, [%0, #:gottprel_lo12:gort__tls]\n\t"
                     "mrs %1, tpidr_el0\n\t"
                     "add %1, %1, %0"
                     : "=&r"(off), "=&r"(base)
                     :
                     : "memory");
    return (uint64_t *)base;
}

static inline void *gort__arch_self(void)
{
    return (void *)(uintptr_t) * (volatile uint64_t *)gort__arch_words();
}

static inline void gort__arch_set_self(void *self)
{
    *(volatile uint64_t *)gort__arch_words() = (uint64_t)(uintptr_t)self;
}

static inline void *gort__arch_home(void)
{
    return (void *)(uintptr_t)((volatile uint64_t *)gort__arch_words())[2];
}

static inline void gort__arch_set_home(void *home)
{
    ((volatile uint64_t *)gort__arch_words())[2] = (uint64_t)(uintptr_t)home;
}

static inline uint64_t gort__arch_ranks(void)
{
    return ((volatile uint64_t *)gort__arch_words())[1];
}

static inline void gort__arch_set_ranks(uint64_t ranks)
{
    ((volatile uint64_t *)gort__arch_words())[1] = ranks;
}

static inline __attribute__((always_inline)) void *gort__arch_sp(void)
{
    void *sp;
    __asm__ volatile("mov %0, sp" : "=r"(sp) : : "memory");
    return sp;
}

static inline void gort__arch_pause(void)
{
    __asm__ volatile("isb" : : : "memory"); /* longer than yield, which most cores ignore */
}

#define GORT_ARCH_TICKS_NAME  "arch_sys_counter"
#define GORT_ARCH_TICKS_BRIEF gort__arch_ticks_brief()

static inline uint64_t gort__arch_ticks_brief(void)
{
    uint64_t a_second; /* 1 to 1,000 million */
    __asm__("mrs %0, cntfrq_el0" : "=r"(a_second));
    return a_second / 20000;
}

static inline uint64_t gort__arch_ticks(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

static inline void gort__arch_fence_after_rmw(void)
{
    __asm__ volatile("dmb ish" : : : "memory");
}

static inline void gort__arch_save_control(struct gort__ctx *ctx)
{
    __asm__ volatile("mrs %0, fpcr" : "=r"(ctx->control));
}

/* `br` instead of `ret`, inline instead of called: see arch.h. x29 may be the frame pointer and is kept in
 * the context; the other registers are lost for the compiler. */
static inline __attribute__((always_inline)) void gort__arch_switch(struct gort__ctx *from,
                                                                    struct gort__ctx *to)
{
    register struct gort__ctx *x0 __asm__("x0") = from;
    register struct gort__ctx *x1 __asm__("x1") = to;
    __asm__ volatile("adr x9, 1f\n\t"
                     "mov x10, sp\n\t"
                     "ldr x11, [%0, #24]\n\t"
                     "stp x10, x9, [%0]\n\t"
                     "str x29, [%0, #16]\n\t"
                     "ldp x10, x16, [%1]\n\t"
                     "ldp x29, x12, [%1, #16]\n\t"
                     "cmp x11, x12\n\t"
                     "b.eq 2f\n\t"
                     "msr fpcr, x12\n"
                     "2:\tmov sp, x10\n\t"
                     "br x16\n"
                     "1:"
                     : "+r"(x0), "+r"(x1)
                     :
                     : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
                       "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26",
                       "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
                       "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22",
                       "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}

/* As usual: where branch targets are protected, a jump to where no jump is expected is a fault. */
static inline void *gort__arch_ret_indirect(void *value)
{
    return value;
}

static inline int gort__arch_ret_indirect_int(int value)
{
    return value;
}

#define GORT_ARCH_TAIL
#define GORT_ARCH_RET_INDIRECT_AS(type, value, ...) (value)

/* gort__arch_entry finds the function to call on top of the stack. */
static inline void gort__arch_make(struct gort__ctx *ctx, void *hi, void (*entry)(void))
{
    uintptr_t *sp = (uintptr_t *)hi - 2;
    sp[0] = (uintptr_t)entry;
    *ctx = (struct gort__ctx){sp, (void *)(uintptr_t)gort__arch_entry, NULL, gort__arch_fp};
}

#endif
