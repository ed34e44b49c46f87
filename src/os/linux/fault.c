/* SPDX-License-Identifier: MIT */
/*
 * fault.c - SIGSEGV: ours is reported, everybody else's is passed on untouched.
 *
 * Why: a guard that is hit ends the program anyway; all that is left to do is to say what happened. The
 * handler runs on the alternate stack, since there is no other left. When that one overflows, its stack
 * pointer lies below it, the kernel does not count it as in use and starts again at its top, over the frames
 * that are there: enough for a report, and nobody returns to them.
 * A fault that is not ours:
 *     the program had a handler        it is called as the kernel would: arguments, mask, SA_RESETHAND
 *     default, or ignored              the default is restored and the instruction runs again: a core dump shows it
 *     sent by kill, not raised         the same, but it is sent again; SIG_IGN ignores it
 * The one difference that a former handler may notice: it runs on the alternate stack of the thread, if that
 * has one. A handler that the program installs during the run replaces ours, and ours is what sigaction hands
 * it as the former one; it gets the report if it calls that. In sanitized builds the sanitizer's handler
 * stays. The unwinder is the compiler's; since glibc 2.35 it finds its tables without a lock.
 * Threads: take and give_back by one thread while no other does; the handler on any.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "base/atomic.h"
#include "os/os.h"

static void (*report)(const struct gort__os_fault *); /* atomic; NULL: nobody */
static struct sigaction former;                       /* valid while report is set */

static void on_segv(int signo, siginfo_t *info, void *context);

void gort__os_fault_take(void (*fn)(const struct gort__os_fault *))
{
    int saved = errno;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_segv;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER; /* a fault in the report ends the report */
    sigemptyset(&action.sa_mask);
    if (!GORT_SANITIZED && sigaction(SIGSEGV, NULL, &former) == 0) {
        gort__store(&report, fn, RELEASE); /* pairs with on_segv */
        sigaction(SIGSEGV, &action, NULL);
    }
    errno = saved;
}

void gort__os_fault_give_back(void)
{
    int saved = errno;
    struct sigaction now;
    if (gort__load(&report, RELAXED) && sigaction(SIGSEGV, NULL, &now) == 0) {
        if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_segv)
            sigaction(SIGSEGV, &former, NULL);
        /* else the program's own may go on calling ours: it finds nobody and passes the fault on. */
        gort__store(&report, NULL, RELEASE); /* pairs with on_segv */
    }
    errno = saved;
}

static void restore_default(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, NULL);
}

/* A function of the program's. */
static bool has_former(const struct sigaction *a)
{
    return (a->sa_flags & SA_SIGINFO) || (a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN);
}

/* As the kernel would; the mask is restored when on_segv returns. */
static void call_former(int signo, siginfo_t *info, void *context)
{
    struct sigaction a = former;
    sigset_t mask = a.sa_mask;
    if (!(a.sa_flags & SA_NODEFER))
        sigaddset(&mask, SIGSEGV);
    if (a.sa_flags & (int)SA_RESETHAND) {
        former.sa_flags = 0;
        former.sa_handler = SIG_DFL;
    }
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    if (a.sa_flags & SA_SIGINFO)
        a.sa_sigaction(signo, info, context);
    else
        a.sa_handler(signo);
}

static void pass_on(int signo, siginfo_t *info, void *context)
{
    bool sent = info->si_code <= 0;
    if (has_former(&former)) {
        call_former(signo, info, context);
        return;
    }
    if (sent && former.sa_handler == SIG_IGN)
        return;
    restore_default();
    if (sent)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), signo, info);
}

static void on_segv(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    const mcontext_t *regs = &((const ucontext_t *)context)->uc_mcontext;
    void (*fn)(const struct gort__os_fault *) = gort__load(&report, ACQUIRE); /* pairs with take */
    struct gort__os_fault fault = {.addr = (uintptr_t)info->si_addr, .info = info, .context = context};
#if defined(__x86_64__)
    fault.pc = (uintptr_t)regs->gregs[REG_RIP];
    fault.sp = (uintptr_t)regs->gregs[REG_RSP];
#else
    fault.pc = (uintptr_t)regs->pc;
    fault.sp = (uintptr_t)regs->sp;
#endif
    if (fn && info->si_code > 0)
        fn(&fault);
    pass_on(signo, info, context);
    errno = saved;
}

void gort__os_fault_die(const struct gort__os_fault *fault)
{
    if (has_former(&former))
        call_former(SIGSEGV, fault->info, fault->context);
    abort();
}

struct walk {
    const struct gort__os_fault *fault;
    bool (*each)(uintptr_t pc, void *arg);
    void *arg;
    bool found; /* past the frames of the handler */
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct walk *w = arg;
    int before = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &before);
    if (!w->found && pc != w->fault->pc)
        return _URC_NO_REASON;
    w->found = true;
    /* A return address may lie in the next function already. */
    return pc && w->each(before ? pc : pc - 1, w->arg) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

void gort__os_backtrace(const struct gort__os_fault *fault, bool (*each)(uintptr_t pc, void *arg), void *arg)
{
    struct walk w = {fault, each, arg, false};
    _Unwind_Backtrace(step, &w);
    if (!w.found)
        each(fault->pc, arg);
}
