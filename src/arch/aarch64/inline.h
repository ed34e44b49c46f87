/* SPDX-License-Identifier: MIT */
/* inline.h - the inline half of arch.h for aarch64; the layout of a suspended stack is in switch.S. */
#ifndef GORT_SRC_ARCH_AARCH64_INLINE_H
#define GORT_SRC_ARCH_AARCH64_INLINE_H

/* The address of the thread's words (gort__tls in switch.S), computed anew at each use. */
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
    return (void *)(uintptr_t)*(volatile uint64_t *)gort__arch_words();
}

static inline void gort__arch_set_self(void *self)
{
    *(volatile uint64_t *)gort__arch_words() = (uint64_t)(uintptr_t)self;
}

static inline uint64_t gort__arch_held(void)
{
    return ((volatile uint64_t *)gort__arch_words())[1];
}

static inline void gort__arch_set_held(uint64_t held)
{
    ((volatile uint64_t *)gort__arch_words())[1] = held;
}

static inline void gort__arch_pause(void)
{
    __asm__ volatile("isb" : : : "memory"); /* longer than yield, which most cores ignore */
}

static inline void gort__arch_fence_after_rmw(void)
{
    __asm__ volatile("dmb ish" : : : "memory");
}

/* Lays out what gort__arch_switch loads: see the picture in switch.S. */
static inline void gort__arch_make(struct gort__ctx *ctx, void *hi, void (*entry)(void))
{
    uint64_t *sp = (uint64_t *)hi - 22;
    for (int i = 0; i < 22; i++)
        sp[i] = 0;
    sp[0] = (uint64_t)(uintptr_t)entry; /* x19: whom gort__arch_entry calls */
    sp[11] = (uint64_t)(uintptr_t)gort__arch_entry;
    sp[20] = gort__arch_fp;
    ctx->sp = sp;
}

#endif
