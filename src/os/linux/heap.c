/* SPDX-License-Identifier: MIT */
/*
 * heap.c - tells whether a thread was met inside the program's allocator, wherever that is linked.
 *
 * Why: a goroutine that is stopped for good in malloc keeps its lock, and the process hangs at its next
 * malloc. A library of malloc can be linked statically, have any name, or be a page of code in the program
 * beside all the rest, so neither names of files nor ranges of addresses tell. But everybody enters it
 * through functions with known names. A thread is inside when
 *   (1) it is in one of these, or in a function that one of these jumps to (a tail call), or
 *   (2) one of its callers is, or
 *   (3) one of its callers made a call whose instruction names one of these: also when that has jumped on to a function
 *       that is known by a pointer only.
 * The callers are found by unwinding (unwind.c). Where that does not carry, every word further up the stack
 * that could be a return address counts as one: at worst a goroutine runs on for a while that could have been
 * stopped.
 * Rejected: all that the entries reach by calls as ranges of addresses. The way out of memory leads to the
 * program's own handlers, and from there anywhere: loops of the program would count as malloc, and never be
 * stopped. Not seen: an entry that the compiler has inlined into its caller; one that is called by a pointer
 * and jumps on by a pointer; pools of the program's own with other names.
 * If malloc is libc's all this is off: text.c knows libc.
 * Threads: collect alone; the question from anywhere, signal handlers too. errno is changed.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/force.h"
#include "os/linux/text.h"

#define MOST_ENTRIES 128
#define MOST_RANGES  256
#define SCAN         (UINT64_C(32) << 10) /* bytes of stack */

/* Weak: nothing is linked for our sake, and what the program does not have is 0. */
#pragma weak malloc
#pragma weak calloc
#pragma weak realloc
#pragma weak reallocarray
#pragma weak free
#pragma weak memalign
#pragma weak aligned_alloc
#pragma weak posix_memalign
#pragma weak valloc
#pragma weak pvalloc
#pragma weak malloc_usable_size
#pragma weak malloc_trim

/* Those that no header here declares: C23, jemalloc, mimalloc, and the operators new and delete. */
#define OTHERS(X)                                                                                            \
    X(free_sized)                                                                                            \
    X(free_aligned_sized)                                                                                    \
    X(mallocx)                                                                                               \
    X(rallocx)                                                                                               \
    X(xallocx)                                                                                               \
    X(sallocx)                                                                                               \
    X(dallocx)                                                                                               \
    X(sdallocx)                                                                                              \
    X(mallctl)                                                                                               \
    X(mi_malloc)                                                                                             \
    X(mi_zalloc)                                                                                             \
    X(mi_calloc)                                                                                             \
    X(mi_realloc)                                                                                            \
    X(mi_malloc_aligned)                                                                                     \
    X(mi_heap_malloc)                                                                                        \
    X(mi_free)                                                                                               \
    X(mi_collect)                                                                                            \
    X(_Znwm)                                                                                                 \
    X(_Znam)                                                                                                 \
    X(_ZnwmRKSt9nothrow_t)                                                                                   \
    X(_ZnamRKSt9nothrow_t)                                                                                   \
    X(_ZnwmSt11align_val_t)                                                                                  \
    X(_ZnamSt11align_val_t)                                                                                  \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t)                                                                    \
    X(_ZnamSt11align_val_tRKSt9nothrow_t)                                                                    \
    X(_ZdlPv)                                                                                                \
    X(_ZdaPv)                                                                                                \
    X(_ZdlPvm)                                                                                               \
    X(_ZdaPvm)                                                                                               \
    X(_ZdlPvSt11align_val_t)                                                                                 \
    X(_ZdaPvSt11align_val_t)                                                                                 \
    X(_ZdlPvmSt11align_val_t)                                                                                \
    X(_ZdaPvmSt11align_val_t)

#define DECLARE(name) extern void name(void) __attribute__((weak));
#define ADDRESS(name) (uintptr_t)(name),
OTHERS(DECLARE)

static uintptr_t entries[MOST_ENTRIES];        /* also as the linkage table has them */
static struct gort__range ranges[MOST_RANGES]; /* of these functions, and of those they jump to */
static int entry_count, range_count;

static void add_entry(uintptr_t at)
{
    if (entry_count < MOST_ENTRIES)
        entries[entry_count++] = at;
}

static void add_function(uintptr_t at)
{
    struct gort__range f;
    if (gort__text_range_has(ranges, range_count, at))
        return;
    if (!gort__unwind_function(at, &f))
        f = (struct gort__range){at, at + GORT__CODE_STEP}; /* code without tables: (3) has to do */
    gort__text_range_add(ranges, &range_count, MOST_RANGES, f.from, f.to);
}

/* Only to the first instruction of a function: in the middle it is the same function, or no jump but a piece
 * of data. */
static void follow_jumps(const struct gort__range f, bool (*known)(uintptr_t))
{
    for (uintptr_t pc = f.from; pc < f.to; pc += GORT__CODE_STEP) {
        uintptr_t to = gort__code_jump(pc);
        struct gort__object o;
        struct gort__range target;
        if (!to || (to >= f.from && to < f.to) || !gort__object_find(to, &o))
            continue;
        to = gort__code_behind_linkage(to);
        if (!known(to) && !gort__text_range_has(ranges, range_count, to) &&
            gort__unwind_function(to, &target) && target.from == to)
            add_function(to);
    }
}

void gort__heap_collect(bool (*known)(uintptr_t), bool (*passing)(uintptr_t))
{
    const uintptr_t names[] = {OTHERS(ADDRESS)(uintptr_t) malloc,
                               (uintptr_t)calloc,
                               (uintptr_t)realloc,
                               (uintptr_t)reallocarray,
                               (uintptr_t)free,
                               (uintptr_t)memalign,
                               (uintptr_t)aligned_alloc,
                               (uintptr_t)posix_memalign,
                               (uintptr_t)valloc,
                               (uintptr_t)pvalloc,
                               (uintptr_t)malloc_usable_size,
                               (uintptr_t)malloc_trim};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uintptr_t at = names[i] ? gort__code_behind_linkage(names[i]) : 0;
        if (!at || known(at) || passing(at))
            continue;
        if (!entry_count)
            gort__object_collect();
        add_entry(at);
        if (at != names[i])
            add_entry(names[i]);
        add_function(at);
    }
    for (int i = 0; i < range_count; i++) /* which grows meanwhile */
        follow_jumps(ranges[i], known);
}

static bool is_entry(uintptr_t at)
{
    for (int i = 0; i < entry_count; i++)
        if (entries[i] == at)
            return true;
    return false;
}

/* Somebody who was called from just before pc has not returned yet, and is the allocator, or was called by
 * it. */
static bool returns_to_or_from(uintptr_t pc)
{
    uintptr_t called[2];
    if (gort__text_range_has(ranges, range_count, pc - 1))
        return true;
    gort__code_called(pc, called);
    for (int i = 0; i < 2; i++)
        if (called[i] && (is_entry(called[i]) || is_entry(gort__code_behind_linkage(called[i]))))
            return true;
    return false;
}

/* How far up from sp the stack can be read and is worth reading. It need not be one of ours: programs switch
 * stacks, too. */
static uintptr_t find_top(uintptr_t sp)
{
    uintptr_t at = sp;
    while (at - sp < SCAN && (at == sp || gort__object_readable(at, 8)))
        at = (at | (GORT__PAGE - 1)) + 1;
    return at;
}

/* Every word of a page that could be a return address. */
static bool look_at(const uintptr_t *words, size_t n, bool (*fn)(uintptr_t))
{
    for (size_t i = 0; i < n; i++) {
        struct gort__object o;
        uintptr_t pc = words[i] & GORT__CODE_ADDRESS;
        if (pc > GORT__PAGE && gort__object_find(pc, &o) && gort__code_after_call(pc) && fn(pc))
            return true;
    }
    return false;
}

/* Words that were left there by calls that have returned count, too. The stack may end before top, and what
 * lies above it may be unmapped meanwhile: so the kernel copies it. Where it does not, only the page that the
 * walk has come to is known to be there. */
static GORT__RAW bool scan(uintptr_t from, uintptr_t top, bool (*fn)(uintptr_t))
{
    uintptr_t words[128];
    from = (from + 7) & ~(uintptr_t)7;
    for (uintptr_t at = from, end; at < top; at = end) {
        end = (at | (sizeof words - 1)) + 1; /* in one page */
        struct iovec here = {words, end - at}, there = {(void *)at, end - at};
        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)(end - at)) {
            if (errno == EFAULT || at / GORT__PAGE != from / GORT__PAGE)
                return false;
            for (size_t i = 0; i < (end - at) / 8; i++)
                words[i] = ((const uintptr_t *)at)[i];
        }
        if (look_at(words, (end - at) / 8, fn))
            return true;
    }
    return false;
}

/* The link register holds where a function returns to that has not put it on the stack. Later it holds where
 * the last call returned to, which lies in the same function. */
static bool by_link(uintptr_t pc, uintptr_t link)
{
    struct gort__range f;
    link &= GORT__CODE_ADDRESS;
    return link && gort__code_after_call(link) && returns_to_or_from(link) &&
           !(gort__unwind_function(pc, &f) && link >= f.from && link <= f.to);
}

bool gort__heap_caller(const struct gort__os_signal *s, bool (*fn)(uintptr_t))
{
    uintptr_t reached = s->sp, top;
    if (gort__load(&gort__os_force.no_altstack, RELAXED))
        return false; /* valgrind: it takes words between variables for variables that nobody has set */
    top = find_top(s->sp);
    return gort__unwind_walk(s, top, fn, &reached) || scan(reached, top, fn);
}

bool gort__heap_inside(const struct gort__os_signal *s)
{
    if (!entry_count)
        return false;
    return gort__text_range_has(ranges, range_count, s->pc) || by_link(s->pc, s->link) ||
           gort__heap_caller(s, returns_to_or_from);
}
