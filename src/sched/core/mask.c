/* SPDX-License-Identifier: MIT */
/*
 * mask.c - a goroutine's signal mask.
 *
 * The problem: the kernel keeps a mask for each thread. Code that blocks all signals, as code written for
 * threads does, and then parks or ends would leave it to whoever runs there next: that one could not be
 * preempted. So the mask belongs to the goroutine. Whoever stops puts it away, on its own stack, and gives
 * the thread its usual mask back; when it goes on, on whatever thread, it takes its mask up again. A new
 * goroutine starts with the usual one.
 *
 * How a change is noticed. Asking the kernel at each switch would cost more than the switch. So the library
 * defines pthread_sigmask and sigprocmask, which do what libc's do and put the thread's mask in doubt:
 * m->eh_globals, which each switch looks at for the sake of C++ exceptions, points at m->sig.doubt then, and the
 * switch takes its slow way (schedule.c:switch_carrying). Only there is the kernel asked. A goroutine that
 * never changes its mask pays nothing.
 *     rejected: macros in a header, which miss libraries; a bit in attention, which makes every call slow.
 *
 * What is not noticed: a change by siglongjmp, setcontext, a system call made directly, or a libgort that was
 * loaded so late that libc's functions are found first. Then the thread may keep a mask that blocks our
 * signal. sysmon finds such a thread, as it finds a goroutine that blocks the signal and computes: it does
 * not stop although it was asked. It loses its P, like one that sleeps in the kernel, so that the others go
 * on; and its mask is in doubt from its next call on.
 *
 * With TSan pthread_join is defined here, too. TSan calls handlers at once while it is in a function that it
 * takes for a mere wait, and keeps signals back elsewhere. pthread_join is one in its eyes, but frees memory:
 * a handler that comes then finds a lock of TSan's taken by its own thread, and waits for it for ever. So our
 * signal is blocked while memory may be freed, but not while the caller waits: a stop of the world needs it.
 *
 * In a signal handler the functions may be called as libc's: doubt is one store, and a mask that turns out to
 * be the usual one changes nothing. In gort_block the caller keeps its mask on the thread's own stack
 * (block.c).
 * Threads: the functions by anybody; put_away and take_up by an M for itself, inside.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fatal.h"
#include "sched/core/core.h"

#define EXPORT __attribute__((visibility("default"), used))

void gort__mask_doubt(struct gort__m *m)
{
    gort__store(&m->eh_globals, &m->sig.doubt, RELAXED);
}

void gort__mask_thread(struct gort__m *m)
{
    m->sig.doubt.caught = m; /* anything but NULL: the switch takes it for an exception */
    m->eh_globals = m->sig.cxx = gort__os_eh_globals();
    m->sig.mask = gort__os_mask_get();
}

bool gort__mask_put_away(struct gort__m *m, uint64_t *mask)
{
    if (gort__load(&m->eh_globals, RELAXED) != &m->sig.doubt)
        return false;
    /* First: a handler on this thread that comes now, and changes the mask for its own time only, does no
     * harm. */
    gort__store(&m->eh_globals, m->sig.cxx, RELAXED);
    *mask = gort__os_mask_set(m->sig.mask);
    return *mask != m->sig.mask;
}

void gort__mask_take_up(struct gort__m *m, uint64_t mask)
{
    gort__os_mask_set(mask);
    gort__mask_doubt(m);
}

/* --- instead of libc's -------------------------------------------------------------------------- */

/* 0 or an errno. */
static int change(int how, const sigset_t *set, sigset_t *old)
{
    uint64_t now, before;
    if (set)
        memcpy(&now, set, sizeof now);
    int err = gort__os_mask_change(how, set ? &now : NULL, &before);
    if (err)
        return -err;
    if (old) {
        sigemptyset(old);
        memcpy(old, &before, sizeof before);
    }
    struct gort__m *m = set ? gort__m_home() : NULL;
    if (m && !m->plain && m->sig.doubt.caught) /* else it is not one that runs goroutines */
        gort__mask_doubt(m);
    return 0;
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    int saved = errno, err = change(how, set, old);
    errno = saved;
    return err;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    int err = change(how, set, old);
    if (err)
        errno = err;
    return err ? -1 : 0;
}

#if GORT_TSAN
int __interceptor_pthread_tryjoin_np(pthread_t thread, void **value);
GORT_HIDDEN int pthread_join(pthread_t thread, void **value);

int pthread_join(pthread_t thread, void **value)
{
    int saved = errno, signo = gort__hooks.monitor.preempt_signal();
    uint64_t bit = signo ? UINT64_C(1) << (signo - 1) : 0, before = 0;
    for (;;) {
        gort__os_mask_change(SIG_BLOCK, &bit, &before);
        int err = __interceptor_pthread_tryjoin_np(thread, value);
        if (!(before & bit))
            gort__os_mask_change(SIG_UNBLOCK, &bit, &before);
        if (err != EBUSY) {
            errno = saved;
            return err;
        }
        gort__os_nap(1000000);
    }
}
#endif
