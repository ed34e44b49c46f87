/* SPDX-License-Identifier: MIT */
/*
 * crash.c - the process dies of a signal in a goroutine: which one, and its calls.
 *
 * Nothing is said of plain threads, of a scheduler without a goroutine, and of an abort with which gort
 * itself gives up, for that has been explained. What runs on the thread's own stack (gort_block) belongs to
 * its goroutine.
 * Threads: a handler on any thread, one at a time (os/linux/crash.c).
 */
#include <signal.h>

#include "base/fatal.h"
#include "base/fmt.h"
#include "observe/stacks.h"

static const char *name_of(int signo)
{
    switch (signo) {
    case SIGSEGV:
        return "SIGSEGV: invalid access to memory";
    case SIGBUS:
        return "SIGBUS: bad access to memory";
    case SIGFPE:
        return "SIGFPE: arithmetic error";
    case SIGILL:
        return "SIGILL: invalid instruction";
    default:
        return "SIGABRT: abort";
    }
}

void gort__report_crash(int signo, const struct gort__os_fault *f)
{
    struct gort__m *m = gort__m_home();
    if (!m || m->plain || gort__fatal_begun())
        return;
    struct gort__stack_calls calls;
    const struct gort__g *g = gort__stacks_signal(m, f->context, &calls);
    char who[96];
    if (!g)
        return;
    gort__dump_name(g, who, sizeof who);
    if (signo == SIGABRT)
        gort__fmt_print(2, "gort: %s [%s]\n", name_of(signo), who);
    else
        gort__fmt_print(2, "gort: %s, address %p [%s]\n", name_of(signo), (void *)f->addr, who);
    gort__report_calls(2, &calls, gort__stacks_site(g));
}
