/* SPDX-License-Identifier: MIT */
/*
 * arch.h - what a processor must provide: the contract that x86_64/ and aarch64/ fulfil.
 *
 * Why: changing stacks and reading the thread register cannot be said in C. Everything that can is
 * kept out of here. A port is one folder with inline.h (below, "inline") and entry.S (the rest).
 *
 * struct gort__ctx
 *     Where a suspended context goes on: stack, program counter, frame pointer, floating-point
 *     control words. Everything else that it needs lies on its stack. Debuggers may rely on it.
 *
 * void gort__arch_switch(struct gort__ctx *from, struct gort__ctx *to)                  inline
 *     Suspends the caller in *from and goes on in *to. Loads the control words of *to where they
 *     differ from those in *from, which are the current ones; tells the compiler that every other register is lost. Returns when somebody
 *     switches to *from, possibly on another thread.
 *     Pre: *to is suspended and nobody else resumes it. Used in one function only (schedule.c).
 *     Inline, because a call that never returns the normal way would put the processor's record
 *     of return addresses out of step, and every return after it would be mispredicted: with a
 *     called switch a yield took 49 ns, inlined 11.
 *
 * void gort__arch_save_control(struct gort__ctx *ctx)                                   inline
 *     Stores the current floating-point control words in ctx. User code may have changed them, so
 *     every switch away from a goroutine begins with it; as early as possible, because reading
 *     them takes some 5 ns that overlap with whatever else is done before the switch.
 *
 * void gort__arch_make(struct gort__ctx *ctx, void *hi, void (*entry)(void))            inline
 *     A context that will call entry on the stack that ends at hi (16-byte aligned), with the
 *     floating-point control words of gort__arch_fp. entry never returns. Unwinding ends there.
 *
 * noreturn void gort__arch_restart(const struct gort__ctx *from, const struct gort__ctx *to)
 *     The same, but forgets everything on the current stack, on which *to may have been made.
 *
 * void *gort__arch_ret_indirect(void *value), int gort__arch_ret_indirect_int(int value)
 *     Returns value, by a jump. For the last act of a function that may have switched away: when it comes back the
 *     processor's record of return addresses is that of whoever ran before it, and a return that goes elsewhere
 *     is found out only when it is done, 10 ns later. Whatever the record holds is out of step then by one; it was wrong
 *     already. May return as usual where that is not worth it.
 * GORT_ARCH_TAIL return GORT_ARCH_RET_INDIRECT_AS(type, value, ...)
 *     The same for an int in a function of that type whose first parameter is a pointer; `...`: its other parameters. clang ends a
 *     function with a record that others knew of by a jump only if it must, and if both functions are of one type.
 *
 * uint64_t gort__arch_fp, gort__arch_fp_read()
 *     The floating-point control words that new contexts start with; those of the caller.
 *
 * void *gort__arch_self(void), gort__arch_set_self(void *)                              inline
 *     One pointer per thread, NULL at first. Read anew at every call: a compiler never keeps it,
 *     or the address it came from, across a switch.
 * void *gort__arch_home(void), gort__arch_set_home(void *)                              inline
 *     A second one. self is written again and again; what is computed from home need not wait for that.
 * uint64_t gort__arch_ranks(void), gort__arch_set_ranks(uint64_t)                         inline
 *     One more word per thread, for lock ranks (debug builds).
 * void *gort__arch_sp(void)                                                             inline
 *   The stack pointer: everything that the calling function has saved lies above it.
 * void gort__arch_pause(void)                                                           inline
 *     A hint that the caller is waiting in a loop.
 * uint64_t gort__arch_ticks(void)                                                       inline
 *     The processor's counter, which most kernels take the time from; may be read a little too early or too late.
 * GORT_ARCH_TICKS_NAME, GORT_ARCH_TICKS_BRIEF
 *     What Linux calls it as a source of time; so many ticks take less than 100 us.
 * void gort__arch_fence_after_rmw(void)                                                 inline
 *     A full fence, given that the caller has just done a SEQ_CST read-modify-write.
 */
#ifndef GORT_SRC_ARCH_ARCH_H
#define GORT_SRC_ARCH_ARCH_H

#include "base/compiler.h"

/* The offsets are known to the assembly of each port. */
struct gort__ctx {
    void *sp;
    void *pc;
    void *fp;
    uint64_t control; /* floating-point control words, as gort__arch_fp */
};

__attribute__((noreturn)) void gort__arch_restart(const struct gort__ctx *from, const struct gort__ctx *to);
void gort__arch_entry(void); /* where a context made by gort__arch_make begins; never called from C */
extern uint64_t gort__arch_fp GORT_HIDDEN;
uint64_t gort__arch_fp_read(void);

/* p; but compilers do not know any more which object it points into. */
static inline void *gort__arch_opaque(const void *p)
{
    uintptr_t word = (uintptr_t)p;
    __asm__("" : "+r"(word));
    return (void *)word;
}

#if defined(__x86_64__)
#include "arch/x86_64/inline.h"
#elif defined(__aarch64__)
#include "arch/aarch64/inline.h"
#else
#error "gort runs on x86-64 and aarch64; a port is one folder under src/arch, see arch.h"
#endif

#endif
