/* SPDX-License-Identifier: MIT */
/*
 * caught.c - signals that the program has asked for: each is noted for whoever asked, or does what it did
 * before.
 *
 * The problem: sigaction() puts the former disposition back, but a thread may have taken a signal under the
 * old one already. The kernel has set up a frame for our handler there, which runs when the thread gets a
 * CPU: any time later. No counter in the handler can see such a thread, and no barrier waits for it. So
 * nobody waits: the handler decides.
 *
 * One word a signal says whether it is caught, and whether one was noted since it was last asked:
 *
 *     | generation | NOTED | ON |
 *
 * Proof that no signal is lost or comes twice. The actors are the handler H, on any thread and at any time,
 * and the owner O, which calls catch, noted and release, one call at a time for each signal.
 * (1) H changes the word only by a compare-and-swap that needs ON and sets NOTED. O's `noted` and `release`
 * clear NOTED by an
 *     atomic operation that returns it: each NOTED is seen by O exactly once, and then O has the signal to deliver. Two
 *     signals that are noted before O looks are one, as two that are pending in the kernel are.
 * (2) Without ON, H does what `former` says, here and now, and notes nothing: the signal is handled exactly
 * once, too. (3) `former` is written by O only while the word has ON, after a new generation was stored. H
 * copies it, and then finds the
 *     very word that it found before, without ON: no catch began meanwhile, so that the copy is whole. H never waits for O,
 *     which it may have interrupted: if the word has ON by now, the signal is noted for the new catch.
 * (4) O stores ON before it installs the handler, and puts the former disposition back before it takes ON
 * away. So
 *     while the kernel has our handler installed by O, the word has ON. H depends on that nowhere, but a signal between catch
 *     and its return belongs to the new owner, and one between release and its return to the former disposition.
 * (5) Nothing is sent again, so that nothing can go round in circles: not even when a handler of the program
 * calls ours as its
 *     former one, or the program installs ours again after it was released.
 * A forked child has a copy of the words, but no owner: there H acts as without ON.
 *
 * Threads: the owner as above; the handler on any thread.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/linux/signal.h"
#include "os/os.h"

enum { ON = 1, NOTED = 2, GENERATION = 4 };

/* Copied word by word, because one may write while another reads. */
union former {
    struct sigaction action;
    uint64_t words[sizeof(struct sigaction) / sizeof(uint64_t)];
};
_Static_assert(sizeof(struct sigaction) % sizeof(uint64_t) == 0, "whole words");

static uint32_t words[_NSIG]; /* atomic */
static union former formers[_NSIG];
static void (*ring)(void); /* atomic; the same for all */
static pid_t owner;        /* atomic */

static void copy(union former *to, union former *from)
{
    for (size_t i = 0; i < sizeof to->words / sizeof *to->words; i++)
        gort__store(&to->words[i], gort__load(&from->words[i], RELAXED), RELAXED);
}

bool gort__os_signal_note(int signo, struct sigaction *former)
{
    uint32_t *word = &words[signo], now = gort__load(word, ACQUIRE); /* pairs with release */
    union former f;
    bool mine = gort__load(&owner, RELAXED) == getpid();
    for (;;) {
        if ((now & ON) && mine) {
            if (!gort__cas(word, &now, now | NOTED, RELEASE)) /* pairs with noted and release */
                continue;
            gort__load(&ring, RELAXED)();
            return true;
        }
        if (former)
            copy(&f, &formers[signo]);
        gort__fence(ACQUIRE); /* pairs with catch: whoever has seen a new `former` sees the new generation */
        uint32_t before = now;
        now = gort__load(word, RELAXED);
        if (now == before || !mine)
            break;
    }
    if (former)
        *former = f.action;
    return false;
}

static void on_caught(int signo, siginfo_t *info, void *context)
{
    int saved = errno;
    struct sigaction former;
    if (!gort__os_signal_note(signo, &former))
        gort__os_signal_act(&former, signo, info, context);
    errno = saved;
}

static bool is_ours(const struct sigaction *a)
{
    return (a->sa_flags & SA_SIGINFO) && a->sa_sigaction == on_caught;
}

int gort__os_signal_catch(int signo, void (*fn)(void))
{
    int saved = errno, err = 0;
    union former old;
    struct sigaction action;
    if (signo <= 0 || signo >= _NSIG)
        return -EINVAL;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_caught;
    action.sa_flags = SA_SIGINFO | gort__os_signal_flags();
    sigfillset(&action.sa_mask);
    gort__store(&ring, fn, RELAXED);
    gort__store(&owner, gort__os_process_id(), RELAXED);
    uint32_t now = gort__load(&words[signo], RELAXED);
    gort__store(&words[signo], ((now & ~(uint32_t)NOTED) + GENERATION) | ON, RELAXED);
    gort__fence(RELEASE); /* pairs with gort__os_signal_note */
    if (gort__os_signal_shared(signo)) {
        /* Its handler asks gort__os_signal_note. */
    } else if (sigaction(signo, &action, &old.action) != 0) {
        err = -errno;
        if (gort__os_signal_release(signo))
            raise(signo);               /* a late one, from before */
    } else if (!is_ours(&old.action)) { /* else the program has put it there: what it did before is known */
        copy(&formers[signo], &old);
    }
    errno = saved;
    return err;
}

bool gort__os_signal_noted(int signo)
{
    return (gort__load(&words[signo], RELAXED) & NOTED) &&
           (gort__and(&words[signo], ~(uint32_t)NOTED, ACQUIRE) &
            NOTED); /* pairs with gort__os_signal_note */
}

bool gort__os_signal_release(int signo)
{
    int saved = errno;
    struct sigaction now;
    if (sigaction(signo, NULL, &now) == 0 && is_ours(&now))
        sigaction(signo, &formers[signo].action, NULL);
    errno = saved;
    /* Pairs with gort__os_signal_note. */
    return gort__and(&words[signo], ~(uint32_t)(ON | NOTED), ACQ_REL) & NOTED;
}
