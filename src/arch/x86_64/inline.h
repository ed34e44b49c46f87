/* SPDX-License-Identifier: MIT */
/* inline.h - the inline half of arch.h for x86-64; the layout of a suspended stack is in switch.S. */
#ifndef GORT_SRC_ARCH_X86_64_INLINE_H
#define GORT_SRC_ARCH_X86_64_INLINE_H

/*
 * The thread's words live in switch.S (gort__tls). The asm is volatile, so each use reads the
 * thread register again, and initial-exec, so it never allocates, not even in a signal handler.
 */
static inline void *gort__arch_self(void)
{
    void *self;
    __asm__ volatile("movq gort__tls@gottpoff(%%rip), %0\n\tmovq %%fs:(%0), %0" : "=r"(self) : : "memory");
    return self;
}

static inline void gort__arch_set_self(void *self)
{
    uint64_t off;
    __asm__ volatile("movq gort__tls@gottpoff(%%rip), %0\n\tmovq %1, %%fs:(%0)" : "=&r"(off) : "r"(self) : "memory");
}

static inline uint64_t gort__arch_held(void)
{
    uint64_t held;
    __asm__ volatile("movq gort__tls@gottpoff(%%rip), %0\n\tmovq %%fs:8(%0), %0" : "=r"(held) : : "memory");
    return held;
}

static inline void gort__arch_set_held(uint64_t held)
{
    uint64_t off;
    __asm__ volatile("movq gort__tls@gottpoff(%%rip), %0\n\tmovq %1, %%fs:8(%0)" : "=&r"(off) : "r"(held) : "memory");
}

static inline void gort__arch_pause(void)
{
    __asm__ volatile("pause" : : : "memory");
}

static inline void gort__arch_fence_after_rmw(void)
{
    __asm__ volatile("" : : : "memory"); /* a locked instruction is a full fence */
}

/* Lays out what gort__arch_switch pops: see the picture in switch.S. */
static inline void gort__arch_make(struct gort__ctx *ctx, void *hi, void (*entry)(void))
{
    uint64_t *sp = (uint64_t *)hi - 8;
    sp[0] = gort__arch_fp;
    sp[1] = sp[2] = sp[3] = sp[4] = 0; /* r15 r14 r13 r12 */
    sp[5] = (uint64_t)(uintptr_t)entry; /* rbx: whom gort__arch_entry calls */
    sp[6] = 0;                          /* rbp: the frame chain ends */
    sp[7] = (uint64_t)(uintptr_t)gort__arch_entry;
    ctx->sp = sp;
}

#endif
