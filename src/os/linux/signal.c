/* SPDX-License-Identifier: MIT */
/*
 * signal.c - alternate stacks, taking a signal that nobody uses, sharing one with the program, and leaving at
 * once.
 *
 * Why: handlers of ours run on an alternate stack (SA_ONSTACK), because a goroutine's stack may be small or
 * have just overflowed; but not under valgrind, which notices neither that they begin on another stack nor
 * that they are back (mem/sanitize.h). A program's own handler always wins: only a signal with the default
 * disposition is taken, and it is given back only while the handler is still ours.
 * Threads: any for its own alternate stack. Dispositions belong to the process; the kernel offers no
 * compare-and-swap for them, so a program that installs its handler at the very moment of take or
 * give_back may lose it. Both happen at the start and the end of a run.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/force.h"
#include "os/linux/init.h"
#include "os/linux/signal.h"
#include "os/os.h"

void gort__os_altstack_set(void *sp, size_t size, struct gort__os_altstack *saved)
{
    int saved_errno = errno;
    stack_t new_stack = {.ss_sp = sp, .ss_size = size}, old_stack;
    if (sigaltstack(&new_stack, &old_stack) != 0)
        gort__os_needs("sigaltstack", errno);
    *saved = (struct gort__os_altstack){old_stack.ss_sp, old_stack.ss_size, old_stack.ss_flags};
    errno = saved_errno;
}

void gort__os_altstack_restore(const struct gort__os_altstack *saved)
{
    int saved_errno = errno;
    /* SS_ONSTACK only reports; the other flags (disabled, disarmed in handlers) are settings. */
    stack_t stack = {.ss_sp = saved->sp, .ss_size = saved->size, .ss_flags = saved->flags & ~SS_ONSTACK};
    if (sigaltstack(&stack, NULL) != 0)
        gort__os_needs("sigaltstack", errno);
    errno = saved_errno;
}

int gort__os_signal_flags(void)
{
    return SA_RESTART | (gort__load(&gort__os_force.no_altstack, RELAXED) ? 0 : SA_ONSTACK);
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
        action.sa_flags = gort__os_signal_flags();
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
    void (*fn)(const struct gort__os_signal *s); /* set before the handler is installed; atomic */
    /* What the program had there, in one of the slots: it may have taken the signal. */
    const struct sigaction *former;
    struct sigaction slot[2]; /* and call us from its own handler while we take it again; atomic */
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
    /* Field by field: clearing it would be a call of memset, which TSan looks at even here, and TSan delays
     * signals until the stack may already be somebody else's in its eyes. */
    struct gort__os_signal s;
    s.signo = signo;
    s.info = info;
    s.context = context;
    s.link = 0;
    s.timer = info->si_code == SI_TIMER;
    s.thread = info->si_code == SI_QUEUE && info->si_pid == getpid();
    s.blank = (info->si_code == SI_USER && info->si_pid == 0) ||
              (info->si_code == SI_TKILL && info->si_pid == getpid() && gort__os_signals_blank());
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
        gort__store(&shared.fn, fn, RELEASE); /* pairs with on_shared */
        memset(&action, 0, sizeof action);
        action.sa_sigaction = on_shared;
        action.sa_flags = SA_SIGINFO | gort__os_signal_flags();
        /* A thread that waits in it does not run the program's other handlers meanwhile: one of those could
         * leave ours half-way with siglongjmp, and a lock of ours locked. What only the code itself causes is
         * not masked: the kernel ends a process for a masked fault without a word, and a sandbox answers
         * system calls in its SIGSYS handler. */
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

/* Whether the default is to do nothing, and to stop the process. Else it is to end it. */
static bool ignored_by_default(int signo)
{
    return signo == SIGURG || signo == SIGCHLD || signo == SIGWINCH || signo == SIGCONT;
}

static bool stops_by_default(int signo)
{
    return signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

void gort__os_signal_act(const struct sigaction *f, int signo, siginfo_t *info, void *context)
{
    bool plain = !(f->sa_flags & SA_SIGINFO);
    if (plain && (f->sa_handler == SIG_IGN || (f->sa_handler == SIG_DFL && ignored_by_default(signo))))
        return;
    if (plain && f->sa_handler == SIG_DFL && stops_by_default(signo)) {
        kill(gort__os_process_id(), SIGSTOP);
        return;
    }
    if (!GORT_TSAN) {  /* which calls handlers late, and has one place for the mask that it puts back then */
        sigset_t mask; /* as it would be without us */
        sigorset(&mask, &((const ucontext_t *)context)->uc_sigmask, &f->sa_mask);
        if (!(f->sa_flags & SA_NODEFER))
            sigaddset(&mask, signo);
        uint64_t set;
        memcpy(&set, &mask, sizeof set);
        gort__os_mask_set(set);
    }
    if (!plain) {
        f->sa_sigaction(signo, info, context);
    } else if (f->sa_handler == SIG_DFL) {
        /* The default is to end the process: it comes again, undisturbed, when the handler returns. */
        struct sigaction dfl = {.sa_handler = SIG_DFL};
        sigaction(signo, &dfl, NULL);
        raise(signo);
    } else {
        f->sa_handler(signo);
    }
}

void gort__os_signal_chain(const struct gort__os_signal *s)
{
    const struct sigaction *f = gort__load(&shared.former, ACQUIRE); /* pairs with gort__os_signal_share */
    if (!gort__os_signal_note(s->signo, NULL))
        gort__os_signal_act(f, s->signo, s->info, s->context);
}

/* By system calls: pthread_sigmask is ours (sched/core/mask.c), and means a goroutine. */
int gort__os_mask_change(int how, const uint64_t *set, uint64_t *old)
{
    /* The first two real-time signals are libc's: for cancellation, and for setuid in all threads. */
    static const uint64_t libc = UINT64_C(3) << (32 - 1);
    int saved = errno;
    uint64_t wish = set ? *set & ~libc : 0;
    long err = syscall(SYS_rt_sigprocmask, how, set ? &wish : NULL, old, sizeof wish) ? -errno : 0;
    errno = saved;
    return (int)err;
}

uint64_t gort__os_mask_get(void)
{
    uint64_t now = 0;
    gort__os_mask_change(SIG_SETMASK, NULL, &now);
    return now;
}

uint64_t gort__os_mask_set(uint64_t mask)
{
    uint64_t old = mask;
    gort__os_mask_change(SIG_SETMASK, &mask, &old);
    return old;
}

static uint64_t bit(int signo)
{
    return UINT64_C(1) << (signo - 1);
}

void gort__os_signal_block(int signo)
{
    uint64_t set = bit(signo), old;
    gort__os_mask_change(SIG_BLOCK, &set, &old);
}

void gort__os_signal_unblock(int signo)
{
    uint64_t set = bit(signo), old;
    gort__os_mask_change(SIG_UNBLOCK, &set, &old);
}

void gort__os_exit_now(int status)
{
    _exit(status);
}
