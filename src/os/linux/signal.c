/* SPDX-License-Identifier: MIT */
/*
 * signal.c - alternate stacks, taking a signal that nobody uses, and leaving at once.
 *
 * Why: handlers of ours run on an alternate stack (SA_ONSTACK), because a goroutine's stack may be
 * small or have just overflowed; but not under valgrind, which notices neither that they begin on another stack nor
 * that they are back (mem/sanitize.h). A program's own handler always wins: only a signal with the default
 * disposition is taken, and it is given back only while the handler is still ours.
 * Threads: any for its own alternate stack. Dispositions belong to the process; the kernel offers no
 * compare-and-swap for them, so a program that installs its handler at the very moment of take or
 * give_back may lose it. Both happen at the start and the end of a run.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fatal.h"
#include "os/force.h"
#include "os/os.h"

void gort__os_altstack_set(void *sp, size_t size, struct gort__os_altstack *saved)
{
    int saved_errno = errno;
    stack_t new_stack = {.ss_sp = sp, .ss_size = size}, old_stack;
    if (sigaltstack(&new_stack, &old_stack) != 0)
        gort__throw("sigaltstack of %zu bytes failed: errno %d", size, errno);
    *saved = (struct gort__os_altstack){old_stack.ss_sp, old_stack.ss_size, old_stack.ss_flags};
    errno = saved_errno;
}

void gort__os_altstack_restore(const struct gort__os_altstack *saved)
{
    int saved_errno = errno;
    /* SS_ONSTACK only reports; the other flags (disabled, disarmed in handlers) are settings. */
    stack_t stack = {.ss_sp = saved->sp, .ss_size = saved->size, .ss_flags = saved->flags & ~SS_ONSTACK};
    if (sigaltstack(&stack, NULL) != 0)
        gort__throw("sigaltstack could not be restored: errno %d", errno);
    errno = saved_errno;
}

/* What our handlers are installed with. */
static int handler_flags(void)
{
    return SA_RESTART | (gort__os_force.no_altstack ? 0 : SA_ONSTACK);
}

/* What is installed for signo; false for a number that is no signal. */
static bool look(int signo, struct sigaction *out)
{
    return sigaction(signo, NULL, out) == 0;
}

bool gort__os_signal_take(int signo, void (*fn)(int signo))
{
    int saved = errno;
    struct sigaction action;
    bool taken = look(signo, &action) && !(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL;
    if (taken) {
        memset(&action, 0, sizeof action);
        action.sa_handler = fn;
        action.sa_flags = handler_flags();
        sigemptyset(&action.sa_mask);
        taken = sigaction(signo, &action, NULL) == 0;
    }
    errno = saved;
    return taken;
}

void gort__os_signal_give_back(int signo, void (*fn)(int signo))
{
    int saved = errno;
    struct sigaction action;
    if (look(signo, &action) && !(action.sa_flags & SA_SIGINFO) && action.sa_handler == fn) {
        memset(&action, 0, sizeof action);
        action.sa_handler = SIG_DFL;
        sigemptyset(&action.sa_mask);
        sigaction(signo, &action, NULL);
    }
    errno = saved;
}

/* --- one signal that we share with the program ------------------------------------------------ */

static struct {
    int signo;                                   /* 0: none; atomic */
    void (*fn)(const struct gort__os_signal *s); /* set before the handler is installed; atomic */
    const struct sigaction
        *former; /* what the program had there, in one of the slots: it may have taken the signal */
    struct sigaction slot[2]; /* and call us from its own handler while we take it again; atomic */
    void (*also)(int signo);  /* instead of former, while it is caught; atomic */
} shared;

static void fill_place(struct gort__os_signal *s, void *context)
{
    const ucontext_t *uc = context;
#if defined(__x86_64__)
    s->pc = (uintptr_t)uc->uc_mcontext.gregs[REG_RIP];
    s->sp = (uintptr_t)uc->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    s->pc = (uintptr_t)uc->uc_mcontext.pc;
    s->sp = (uintptr_t)uc->uc_mcontext.sp;
    s->link = (uintptr_t)uc->uc_mcontext.regs[30];
#endif
}

static void on_shared(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    /* Field by field: clearing it would be a call of memset, which TSan looks at even here, and TSan delays signals until
     * the stack may already be somebody else's in its eyes. */
    struct gort__os_signal s;
    s.signo = signo;
    s.info = info;
    s.context = context;
    s.link = 0;
    s.timer = info->si_code == SI_TIMER;
    s.thread = info->si_code == SI_QUEUE && info->si_pid == getpid();
    s.blank = info->si_code == SI_USER && info->si_pid == 0;
    s.value = s.timer || s.thread ? info->si_value.sival_ptr : NULL;
    fill_place(&s, context);
    gort__load(&shared.fn, ACQUIRE)(&s); /* pairs with gort__os_signal_share */
    errno = saved;
}

bool gort__os_signal_shared(int signo)
{
    struct sigaction action;
    int saved = errno;
    bool ours = look(signo, &action) && (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == on_shared;
    errno = saved;
    return ours;
}

int gort__os_signal_share(int signo, void (*fn)(const struct gort__os_signal *))
{
    int saved = errno, err = 0;
    struct sigaction action;
    if (!gort__os_signal_shared(signo)) {
        struct sigaction *former = &shared.slot[gort__load(&shared.former, RELAXED) == &shared.slot[0]];
        gort__store(&shared.signo, signo, RELAXED);
        gort__store(&shared.fn, fn, RELEASE); /* pairs with on_shared */
        memset(&action, 0, sizeof action);
        action.sa_sigaction = on_shared;
        action.sa_flags = SA_SIGINFO | handler_flags();
        /* A thread that waits in it does not run the program's other handlers meanwhile: one of those could leave ours
         * half-way with siglongjmp, and a lock of ours locked. What only the code itself causes is not masked: the kernel
         * ends a process for a masked fault without a word, and a sandbox answers system calls in its SIGSYS handler. */
        sigfillset(&action.sa_mask);
        static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            sigdelset(&action.sa_mask, faults[i]);
        if (!look(signo, former)) {
            err = -errno;
        } else {
            gort__store(&shared.former, former, RELEASE); /* pairs with gort__os_signal_chain */
            if (sigaction(signo, &action, NULL) != 0)
                err = -errno;
        }
    }
    errno = saved;
    return err;
}

void gort__os_signal_unshare(int signo)
{
    int saved = errno;
    if (gort__os_signal_shared(signo))
        sigaction(signo, gort__load(&shared.former, ACQUIRE), NULL); /* pairs with gort__os_signal_share */
    errno = saved;
}

void gort__os_signal_chain(const struct gort__os_signal *s)
{
    const struct sigaction *f = gort__load(&shared.former, ACQUIRE); /* pairs with gort__os_signal_share */
    void (*also)(int) = gort__load(&shared.also, ACQUIRE);           /* pairs with gort__os_signal_catch */
    if (also) {
        also(s->signo);
        return;
    }
    if (!GORT_TSAN) { /* which calls handlers late, and has one place for the mask that it puts back then */
        sigset_t mask = ((const ucontext_t *)s->context)->uc_sigmask; /* as it would be without us */
        sigaddset(&mask, s->signo);
        pthread_sigmask(SIG_SETMASK, &mask, NULL);
    }
    if (f->sa_flags & SA_SIGINFO) {
        f->sa_sigaction(s->signo, s->info, s->context);
    } else if (f->sa_handler == SIG_DFL && s->signo != SIGURG && s->signo != SIGCHLD &&
               s->signo != SIGWINCH && s->signo != SIGCONT) {
        /* The default is to end the process: it comes again, undisturbed, when the handler returns. */
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        sigaction(s->signo, &dfl, NULL);
        raise(s->signo);
    } else if (f->sa_handler != SIG_DFL && f->sa_handler != SIG_IGN) {
        f->sa_handler(s->signo);
    }
}

/* --- signals that the program has asked for ---------------------------------------------------- */

static struct sigaction former[_NSIG]; /* of caught signals; guarded by the caller */

int gort__os_signal_catch(int signo, void (*fn)(int signo))
{
    int saved = errno, err = 0;
    struct sigaction action = {.sa_handler = fn, .sa_flags = handler_flags()};
    sigfillset(&action.sa_mask);
    if (signo <= 0 || signo >= _NSIG)
        err = -EINVAL;
    else if (gort__os_signal_shared(signo))
        gort__store(&shared.also, fn, RELEASE); /* pairs with gort__os_signal_chain */
    else if (sigaction(signo, &action, &former[signo]) != 0)
        err = -errno;
    errno = saved;
    return err;
}

void gort__os_signal_release(int signo)
{
    int saved = errno;
    if (signo != gort__load(&shared.signo, RELAXED) || !gort__xchg(&shared.also, NULL, RELAXED))
        sigaction(signo, &former[signo], NULL);
    errno = saved;
}

void gort__os_signal_block(int signo)
{
    int saved = errno;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    errno = saved;
}

void gort__os_signal_unblock(int signo)
{
    int saved = errno;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signo);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    errno = saved;
}

void gort__os_exit_now(int status)
{
    _exit(status);
}
