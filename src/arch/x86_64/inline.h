/* SPDX-License-Identifier: MIT */
/* inline.h - the inline half of arch.h for x86-64. */
#ifndef GORT_SRC_ARCH_X86_64_INLINE_H
#define GORT_SRC_ARCH_X86_64_INLINE_H

/*
 * The thread's words live in entry.S (gort__tls). The asm is volatile, so each use reads the
 * thread register again, and initial-exec, so it never allocates, not even in a signal handler.
 */
#define GORT_ARCH_WORD(type, name, offset)                                                                   \
    static inline type gort__arch_##name(void)                                                               \
    {                                                                                                        \
        type word;                                                                                           \
        __asm__ volatile("movq gort__tls@gottpoff(%%rip), %0\n\tmovq %%fs:" #offset "(%0), %0"               \
                         : "=r"(word)                                                                        \
                         :                                                                                   \
                         : "memory");                                                                        \
        return word;                                                                                         \
    }                                                                                                        \
    static inline void gort__arch_set_##name(type word)                                                      \
    {                                                                                                        \
        uint64_t off;                                                                                        \
        __asm__ volatile("movq gort__tls@gottpoff(%%rip), %0\n\tmovq %1, %%fs:" #offset "(%0)"               \
                         : "=&r"(off)                                                                        \
                         : "r"(word)                                                                         \
                         : "memory");                                                                        \
    }
GORT_ARCH_WORD(void *, self, 0)
GORT_ARCH_WORD(uint64_t, ranks, 8)
GORT_ARCH_WORD(void *, home, 16)
#undef GORT_ARCH_WORD

static inline __attribute__((always_inline)) void *gort__arch_sp(void)
{
    void *sp;
    __asm__ volatile("movq %%rsp, %0" : "=r"(sp) : : "memory");
    return sp;
}

static inline void gort__arch_pause(void)
{
    __asm__ volatile("pause" : : : "memory");
}

#define GORT_ARCH_TICKS_NAME  "tsc"
#define GORT_ARCH_TICKS_BRIEF 50000 /* at 500 MHz */

static inline uint64_t gort__arch_ticks(void)
{
    return __builtin_ia32_rdtsc();
}

static inline void gort__arch_fence_after_rmw(void)
{
    __asm__ volatile("" : : : "memory"); /* a locked instruction is a full fence */
}

static inline void gort__arch_save_control(struct gort__ctx *ctx)
{
    __asm__ volatile("stmxcsr (%0)\n\tfnstcw 4(%0)" : : "r"(&ctx->control) : "memory");
}

#ifdef __AVX512F__
#define GORT_ARCH_CLOBBER_AVX512                                                                             \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26",     \
        "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define GORT_ARCH_CLOBBER_AVX512
#endif

/*
 * The jump is indirect instead of a `ret` for the same reason for which the switch is inline
 * (arch.h). The control words are loaded only when they differ, because loading them is slow and
 * they hardly ever do. rbp cannot be in the list of lost registers, so it is kept in the context.
 */
static inline __attribute__((always_inline)) void gort__arch_switch(struct gort__ctx *from,
                                                                    struct gort__ctx *to)
{
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rsp, 0(%0)\n\t"
                     "movq %%rax, 8(%0)\n\t"
                     "movq %%rbp, 16(%0)\n\t"
                     "movl 24(%0), %%eax\n\t"
                     "movzwl 28(%0), %%ecx\n\t"
                     "cmpl 24(%1), %%eax\n\t"
                     "jne 2f\n\t"
                     "cmpw 28(%1), %%cx\n\t"
                     "je 3f\n"
                     "2:\tldmxcsr 24(%1)\n\t"
                     "fldcw 28(%1)\n"
                     "3:\tmovq 8(%1), %%rax\n\t"
                     "movq 16(%1), %%rbp\n\t"
                     "movq 0(%1), %%rsp\n\t"
                     "jmp *%%rax\n"
                     "1:"
                     : "+D"(from), "+S"(to)
                     :
                     : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                       "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                       "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15" GORT_ARCH_CLOBBER_AVX512, "mm0",
                       "mm1", "mm2", "mm3", "mm4", "mm5", "mm6", "mm7", "st", "st(1)", "st(2)", "st(3)",
                       "st(4)", "st(5)", "st(6)", "st(7)", "cc", "memory");
}

void *gort__arch_ret_indirect(void *value);
int gort__arch_ret_indirect_int(int value);

#ifdef __clang__
#define GORT_ARCH_TAIL __attribute__((musttail))
#define GORT_ARCH_RET_INDIRECT_AS(type, value, ...)                                                          \
    ((type *)(void *)gort__arch_ret_indirect_int)((void *)(intptr_t)(value), __VA_ARGS__)
#else
#define GORT_ARCH_TAIL
#define GORT_ARCH_RET_INDIRECT_AS(type, value, ...) gort__arch_ret_indirect_int(value)
#endif

/* gort__arch_entry finds the function to call on top of the stack. */
static inline void gort__arch_make(struct gort__ctx *ctx, void *hi, void (*entry)(void))
{
    uintptr_t *sp = (uintptr_t *)hi - 2;
    sp[0] = (uintptr_t)entry;
    *ctx = (struct gort__ctx){sp, (void *)(uintptr_t)gort__arch_entry, NULL, gort__arch_fp};
}

#endif
