/* SPDX-License-Identifier: MIT */
/*
 * arch.h - what a processor must provide: the contract that x86_64/ and aarch64/ fulfil.
 *
 * Why: changing stacks and reading the thread register cannot be said in C. Everything that can is
 * kept out of here. A port is one folder with inline.h (below, "inline") and switch.S (the rest).
 *
 * gort__ctx: a stack pointer; everything else that a suspended context needs lies on its stack.
 *
 * void gort__arch_switch(struct gort__ctx *from, struct gort__ctx *to)
 *     Suspends the caller in *from and goes on in *to, which is left there for its next suspension.
 *     Keeps the callee-saved registers and the floating-point control words of each side. Returns
 *     when somebody switches to *from, possibly on another thread.
 *     Pre: *to is suspended and nobody else resumes it. Unwinders can walk through it.
 *
 * void gort__arch_make(struct gort__ctx *ctx, void *hi, void (*entry)(void))            inline
 *     A context that will call entry on the stack that ends at hi (16-byte aligned), with the
 *     floating-point control words of gort__arch_fp. entry never returns. Unwinding ends there.
 *
 * noreturn void gort__arch_restart(void *hi, void (*entry)(void))
 *     Forgets everything on the current stack, which ends at hi, and calls entry as if it were new.
 *
 * uint64_t gort__arch_fp, gort__arch_fp_read()
 *     The floating-point control words that new contexts start with; those of the caller.
 *
 * void *gort__arch_self(void), gort__arch_set_self(void *)                              inline
 *     One pointer per thread, NULL at first. Read anew at every call: a compiler never keeps it,
 *     or the address it came from, across a switch.
 * uint64_t gort__arch_held(void), gort__arch_set_held(uint64_t)                         inline
 *     One more word per thread, for lock ranks (debug builds).
 * void gort__arch_pause(void)                                                           inline
 *     A hint that the caller is waiting in a loop.
 * void gort__arch_fence_after_rmw(void)                                                 inline
 *     A full fence, given that the caller has just done a SEQ_CST read-modify-write.
 */
#ifndef GORT_SRC_ARCH_ARCH_H
#define GORT_SRC_ARCH_ARCH_H

#include "base/compiler.h"

struct gort__ctx {
    void *sp;
};

void gort__arch_switch(struct gort__ctx *from, struct gort__ctx *to);
__attribute__((noreturn)) void gort__arch_restart(void *hi, void (*entry)(void));
void gort__arch_entry(void); /* where a context made by gort__arch_make begins; never called from C */
extern uint64_t gort__arch_fp;
uint64_t gort__arch_fp_read(void);

#if defined(__x86_64__)
#include "arch/x86_64/inline.h"
#elif defined(__aarch64__)
#include "arch/aarch64/inline.h"
#else
#error "gort runs on x86-64 and aarch64; a port is one folder under src/arch, see arch.h"
#endif

#endif
