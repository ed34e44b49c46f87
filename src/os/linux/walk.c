/* SPDX-License-Identifier: MIT */
/*
 * walk.c - the calls on a stack: of a context that was switched away from, of what a signal met, of a thread
 * in the kernel.
 *
 * Why so: unwind.c takes one step by the compilers' tables; here is where to begin, and what to do where the
 * tables end.
 *     a suspended context       stack pointer, frame pointer, program counter are known; nothing else is needed
 *     what a signal met         all registers are, in the frame that the kernel wrote
 *     here                      getcontext; a handler's frames end at the kernel's trampoline, below which lies what it met
 *     a thread in the kernel    /proc says where its stack ends and where it stands. Its frame pointer is unknown: the functions of
 *                               libc do without, and for the first one that needs it the stack is searched for what such a
 *                               function pushes: a frame pointer that points further up, and a return address
 * Code without tables is crossed by its frame pointer, if that leads to a return address; else the walk says
 * that it was lost.
 * Invariants: what is read as a stack lies between the stack pointer and its top; what is read as code or
 * tables can be read.
 * Threads: any, signal handlers too. errno is kept.
 */
#include "os/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fmt.h"
#include "os/linux/text.h"

#define SP         GORT__FRAME_SP
#define FP         GORT__FRAME_FP
#define DEPTH      20000                 /* calls that are looked at */
#define SEARCHED   ((uintptr_t)64 << 10) /* bytes that are searched for a frame */
#define TRIED      500                   /* calls that must lead from a guess to the end */
#define PAGES      4096                  /* that gort__os_walk_readable looks at */
#define FIRST_PAGE UINT64_C(4096)        /* below are no stacks and no code */

static void put(struct gort__stack_calls *out, uintptr_t pc)
{
    if (out->n < GORT__STACK_MOST) {
        out->pc[out->n++] = pc;
        return;
    }
    /* The outer part is a ring while the walk goes on; finish() turns it. */
    out->pc[GORT__STACK_INNER + out->elided++ % GORT__STACK_OUTER] = pc;
}

static void finish(struct gort__stack_calls *out, enum gort__stack_end end)
{
    uintptr_t last[GORT__STACK_OUTER];
    out->end = (uint8_t)end;
    if (!out->elided)
        return;
    for (uint32_t i = 0; i < GORT__STACK_OUTER; i++)
        last[i] = out->pc[GORT__STACK_INNER + (out->elided + i) % GORT__STACK_OUTER];
    for (uint32_t i = 0; i < GORT__STACK_OUTER; i++)
        out->pc[GORT__STACK_INNER + i] = last[i];
}

/* What a trampoline at the top of the stack will go back to. */
static bool leave_handler(struct gort__frame *f, uintptr_t top)
{
#if defined(__x86_64__)
    uintptr_t context = f->reg[SP];
#else
    uintptr_t context = f->reg[SP] + 128; /* behind the siginfo */
#endif
    if (context % 8 || context + offsetof(ucontext_t, uc_sigmask) > top)
        return false;
    gort__unwind_begin((const void *)context, f);
    return true;
}

/* A pair that a function with a frame pointer has pushed: the caller's, which lies further up, and where to
 * return to. */
static GORT__RAW bool is_frame(uintptr_t fp, uintptr_t sp, uintptr_t top)
{
    if (fp % 8 || fp < sp || top < 16 || fp > top - 16)
        return false;
    const uintptr_t *pair = (const uintptr_t *)fp;
    bool linked = !pair[0] || (pair[0] > fp && pair[0] < top && pair[0] % 8 == 0);
    uintptr_t pc = pair[1] & GORT__CODE_ADDRESS;
    return linked && pc > FIRST_PAGE && gort__code_after_call(pc);
}

/* By the frame pointer: for code without tables. */
static GORT__RAW bool step_by_pointer(struct gort__frame *f, uintptr_t top)
{
    uintptr_t fp = f->reg[FP];
    if (!is_frame(fp, f->reg[SP], top))
        return false;
    const uintptr_t *pair = (const uintptr_t *)fp;
    f->reg[FP] = pair[0];
    f->pc = pair[1] & GORT__CODE_ADDRESS;
    f->reg[SP] = fp + 16;
    f->called = true;
    return true;
}

/* Whether the tables lead from here to a first function. */
static bool leads_home(struct gort__frame f, uintptr_t top)
{
    for (int i = 0; i < TRIED; i++) {
        int found = gort__unwind_step(&f, top);
        if (found != 1)
            return found == 0;
    }
    return false;
}

/* The tables want a frame pointer, and nobody knows it: what looks like its frame on the stack, and leads to
 * the end; else the first. */
static bool guess_pointer(struct gort__frame *f, uintptr_t top)
{
    uintptr_t from = f->reg[SP], first = 0;
    for (uintptr_t at = (from + 7) & ~(uintptr_t)7; at < from + SEARCHED && at + 16 <= top; at += 8)
        if (is_frame(at, from, top)) {
            f->reg[FP] = at;
            first = first ? first : at;
            if (leads_home(*f, top))
                return true;
        }
    f->reg[FP] = first;
    return first != 0;
}

static int step(struct gort__frame *f, uintptr_t top, bool *guessed)
{
    int found = gort__unwind_step(f, top);
    if (found < 0 && !f->reg[FP] && !*guessed) {
        *guessed = true;
        if (guess_pointer(f, top))
            found = gort__unwind_step(f, top);
    }
    return found < 0 && step_by_pointer(f, top) ? 1 : found;
}

/* top: of the stack that f is on, 0: to be asked for. skip: the innermost calls that are not wanted. */
static void walk(struct gort__frame *f, uintptr_t top, gort__stack_top_fn *top_of, unsigned skip,
                 struct gort__stack_calls *out)
{
    bool guessed = false;
    uintptr_t from = f->reg[SP];
    out->n = out->elided = 0;
    for (int i = 0; i < DEPTH; i++) {
        if (f->called && gort__code_is_trampoline(f->pc)) {
            if (!leave_handler(f, top))
                break;
            out->n = out->elided = 0; /* what it met is what counts */
        }
        uintptr_t sp = f->reg[SP];
        if (sp < from || sp > top) {
            top = sp % 8 ? 0 : top_of(sp);
            from = sp;
        }
        if (skip)
            skip--;
        else
            put(out, f->pc - f->called);
        int found = top >= sp && top > 16 ? step(f, top, &guessed) : -1;
        if (found != 1) {
            finish(out, found < 0 ? GORT__STACK_LOST : GORT__STACK_WHOLE);
            return;
        }
    }
    finish(out, GORT__STACK_DEEP);
}

void gort__os_walk_at(uintptr_t pc, uintptr_t sp, uintptr_t fp, uintptr_t hi, gort__stack_top_fn *top,
                      struct gort__stack_calls *out)
{
    int saved = errno;
    struct gort__frame f = {.pc = pc};
    f.reg[SP] = sp;
    f.reg[FP] = fp;
    walk(&f, hi, top, 0, out);
    errno = saved;
}

void gort__os_walk_signal(const void *context, gort__stack_top_fn *top, struct gort__stack_calls *out)
{
    int saved = errno;
    struct gort__frame f;
    gort__unwind_begin(context, &f);
    walk(&f, 0, top, 0, out);
    errno = saved;
}

GORT_NOINLINE void gort__os_walk_here(gort__stack_top_fn *top, struct gort__stack_calls *out)
{
    int saved = errno;
    ucontext_t here;
    struct gort__frame f;
    out->n = 0;
    out->end = GORT__STACK_LOST;
    if (getcontext(&here) == 0) {
        gort__unwind_begin(&here, &f);
        walk(&f, 0, top, 1, out);
    }
    errno = saved;
}

/* "... sp pc" at the end of /proc/self/task/TID/syscall. */
static bool read_place(int tid, uintptr_t *sp, uintptr_t *pc)
{
    char text[256];
    gort__fmt(text, sizeof text, "/proc/self/task/%d/syscall", tid);
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    uintptr_t number = 0, former = 0;
    bool any = false, hex = false;
    for (ssize_t i = 0; i < n; i++) {
        unsigned c = (unsigned char)text[i], low = c | 0x20;
        if (c == 'x') {
            hex = true;
            number = 0;
        } else if (hex && ((c >= '0' && c <= '9') || (low >= 'a' && low <= 'f'))) {
            number = number * 16 + (c <= '9' ? c - '0' : low - 'a' + 10);
            any = true;
        } else if (c == ' ' || c == '\n') {
            if (hex && c == ' ')
                former = number;
            if (c == '\n')
                break;
            hex = false;
        }
    }
    *sp = former;
    *pc = number;
    return any && former && number;
}

bool gort__os_walk_task(int tid, gort__stack_top_fn *top, struct gort__stack_calls *out)
{
    int saved = errno;
    struct gort__frame f = {.called = false};
    bool known = read_place(tid, &f.reg[SP], &f.pc);
    if (known)
        walk(&f, 0, top, 0, out);
    errno = saved;
    return known;
}

bool gort__os_walk_in(uintptr_t pc, uintptr_t at)
{
    struct gort__range function;
    return gort__unwind_function(pc, &function) && function.from == at;
}

uintptr_t gort__os_walk_readable(uintptr_t sp)
{
    int saved = errno;
    uintptr_t page = sp & ~(uintptr_t)(GORT__PAGE - 1);
    for (int i = 0; i < PAGES && gort__object_readable(page, 8); i++)
        page += GORT__PAGE;
    errno = saved;
    return page > sp ? page : 0;
}

bool gort__os_walk_reads(const void *at, size_t size)
{
    int saved = errno;
    bool reads = gort__object_readable((uintptr_t)at, size);
    errno = saved;
    return reads;
}

static bool prepared; /* atomic: somebody reads the tables, or has */

void gort__os_walk_prepare(void)
{
    int saved = errno;
    if (!gort__xchg(&prepared, true, RELAXED))
        gort__object_collect();
    errno = saved;
}
