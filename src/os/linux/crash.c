/* SPDX-License-Identifier: MIT */
/*
 * crash.c - SIGBUS, SIGFPE, SIGILL and SIGABRT: a report, then what would have happened anyway.
 *
 * Why: these end the process, and a core file does not know which goroutine it was. The handler tells (fn),
 * makes the disposition the default again, and returns: a faulting instruction runs again and dies with its
 * registers, abort goes on and raises the signal again, and one that was sent is sent again. Only signals
 * with the default disposition are taken; a program's own handler stays, also one that it installs later.
 * SIGSEGV has a handler of its own (fault.c), which comes here when the fault is nobody's.
 * Invariants: one report in a process; a crash in it ends it.
 * Threads: take and give_back by one thread while no other does; the handler on any.
 */
#include "os/linux/crash.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/os.h"

static const int signals[] = {SIGBUS, SIGFPE, SIGILL, SIGABRT};
#define SIGNALS (sizeof signals / sizeof *signals)

static void (*report)(int signo, const struct gort__os_fault *); /* atomic; NULL: nobody */
static int reporter; /* the thread that reports; atomic, 0: none */

void gort__crash_default(int signo)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(signo, &action, NULL);
}

void gort__crash_report(int signo, void *info, void *context)
{
    int nobody = 0, me = gort__os_thread_id();
    const mcontext_t *regs = &((const ucontext_t *)context)->uc_mcontext;
    struct gort__os_fault f = {
        .addr = (uintptr_t)((siginfo_t *)info)->si_addr, .info = info, .context = context};
    void (*fn)(int, const struct gort__os_fault *) = gort__load(&report, ACQUIRE); /* pairs with take */
    if (!fn)
        return;
    if (!gort__cas(&reporter, &nobody, me, RELAXED)) {
        while (nobody != me) /* the other one ends the process */
            gort__os_nap(INT64_C(1000000000));
        return;
    }
#if defined(__x86_64__)
    f.pc = (uintptr_t)regs->gregs[REG_RIP];
    f.sp = (uintptr_t)regs->gregs[REG_RSP];
#else
    f.pc = (uintptr_t)regs->pc;
    f.sp = (uintptr_t)regs->sp;
#endif
    fn(signo, &f);
}

static void on_crash(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    bool sent = info->si_code <= 0, ours = sent && info->si_pid == getpid();
    if (!sent || ours) /* others know what they do */
        gort__crash_report(signo, info, context);
    gort__crash_default(signo);
    if (sent)
        syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)syscall(SYS_gettid), signo, info);
    errno = saved;
}

void gort__os_crash_take(void (*fn)(int signo, const struct gort__os_fault *))
{
    int saved = errno;
    struct sigaction action, now;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER; /* a crash in the report ends it */
    sigemptyset(&action.sa_mask);
    gort__store(&reporter, 0, RELAXED);
    gort__store(&report, fn, RELEASE); /* pairs with gort__crash_report */
    for (size_t i = 0; i < SIGNALS && !GORT_SANITIZED; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == SIG_DFL)
            sigaction(signals[i], &action, NULL);
    errno = saved;
}

void gort__os_crash_give_back(void)
{
    int saved = errno;
    struct sigaction now;
    for (size_t i = 0; i < SIGNALS; i++)
        if (sigaction(signals[i], NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
            now.sa_sigaction == on_crash)
            gort__crash_default(signals[i]);
    gort__store(&report, NULL, RELEASE); /* pairs with gort__crash_report */
    errno = saved;
}
