/* SPDX-License-Identifier: MIT */
/*
 * signal.c - signals of the process as values in a channel.
 *
 * Why: a handler may do next to nothing, so it notes the signal and writes to an eventfd; a goroutine waits
 * for that and sends to the channels. It exists while anything is registered, and as it waits for an fd, the
 * deadlock detector is silent so long. A signal is either sent to the channels that are registered when it is
 * noted, or does what it did before; never both, never neither. os/linux/caught.c proves that for the handler
 * against notify and stop. What was noted is taken by whoever sends it, in a nest (verbs.h): at the end of a
 * run it was sent, or is still noted. Then nobody is left to receive it: it is sent to the process once more,
 * and does what it did before.
 * Only goroutines touch the list of channels, under a mutex; a plain thread has one do it. So at the end of a
 * run, when all goroutines are gone, nobody is in the middle of it, and a mutex that one of them took along
 * is just made new.
 * Invariants: (1) `ears` and what it points at are guarded by lock, and changed in a nest; (2) a signal is
 * caught exactly while it has ears, seen from outside of nests.
 * Threads: any; the handler on whatever thread the kernel chooses.
 */
#include <gort/errno.h> /* libc's would be kept across a change of threads */
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <gort/ctx.h>
#include <gort/io.h>
#include <gort/signal.h>
#include <gort/sync.h>

#include "base/fatal.h"
#include "io/io.h"
#include "mem/alloc.h"

#define SIGNALS 65

struct ear {
    struct ear *next;
    gort_chan *ch; /* holds a reference */
};

static struct {
    gort_mutex lock;
    struct ear *ears[SIGNALS];
    int count;     /* of ears */
    bool forwards; /* the goroutine is there */
} signals;
static int bell = -1;    /* the eventfd; atomic: the handler reads it */
static uint32_t ringing; /* handlers that are at it right now; atomic */

/* In a handler: a signal was noted. */
static void on_noted(void)
{
    uint64_t one = 1;
    gort__add(&ringing, 1, SEQ_CST);     /* pairs with at_close */
    int fd = gort__load(&bell, SEQ_CST); /* pairs with at_close */
    if (fd >= 0 && write(fd, &one, sizeof one) < 0 && errno != EAGAIN)
        gort__throw("writing to the eventfd for signals failed: errno %d", errno);
    gort__sub(&ringing, 1, RELEASE); /* pairs with at_close */
}

/* With the lock held, in a nest. */
static void deliver(int signo)
{
    for (struct ear *e = signals.ears[signo]; e; e = e->next)
        gort_chan_send_until(e->ch, &signo, GORT_TRY);
}

/* With the lock held: sends what has come in. */
static void forward(void)
{
    struct gort__m *m = gort__enter_nest();
    for (int signo = 1; signo < SIGNALS; signo++)
        if (gort__os_signal_noted(signo))
            deliver(signo);
    gort__enter_nest_end(m);
}

/* With the lock held: makes the goroutine look around. */
static void ring(void)
{
    uint64_t one = 1;
    if (write(gort__load(&bell, RELAXED), &one, sizeof one) < 0)
        gort__check(errno == EAGAIN);
}

static void forwarder(void *unused)
{
    uint64_t count;
    (void)unused;
    gort_ctx_use(NULL);
    gort_set_name("signals");
    for (bool on = true; on;) {
        ssize_t n = gort_read(gort__load(&bell, RELAXED), &count, sizeof count);
        gort_mutex_lock(&signals.lock);
        forward();
        on = signals.count > 0;
        signals.forwards = on;
        gort_mutex_unlock(&signals.lock);
        if (on && n < 0 &&
            gort_sleep(GORT_MS)) /* the poller is short of something: signals must not be lost for that */
            gort_yield();
    }
}

/* The run is over: the program gets its signals back. */
static void at_close(void)
{
    uint64_t late = 0;
    for (int signo = 1; signo < SIGNALS; signo++) {
        if (signals.ears[signo] && gort__os_signal_release(signo))
            late |= UINT64_C(1) << (signo - 1);
        for (struct ear *e = signals.ears[signo], *next; e; e = next) {
            next = e->next;
            gort_chan_unref(e->ch);
            gort__enter_light_free(e, sizeof *e);
        }
    }
    memset(&signals, 0, sizeof signals);
    int fd = gort__xchg(&bell, -1, SEQ_CST); /* pairs with on_noted */
    while (gort__load(&ringing, ACQUIRE))    /* pairs with on_noted */
        gort__os_thread_yield();
    if (fd >= 0)
        gort_close(fd);
    for (int signo = 1; late; signo++, late >>= 1)
        if (late & 1)
            kill(gort__os_process_id(), signo);
}

static bool refused(int signo)
{
    return signo < 1 || signo >= SIGNALS || signo == SIGKILL || signo == SIGSTOP || signo == SIGSEGV ||
           signo == SIGBUS || signo == SIGFPE || signo == SIGILL || signo == SIGTRAP || signo == SIGSYS;
}

/* With the lock held: the eventfd and the goroutine. */
static int begin(void)
{
    if (gort__load(&bell, RELAXED) < 0) {
        int fd = gort__os_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (fd < 0)
            return -errno;
        gort__poll_at_close = at_close;
        gort__store(&bell, fd, SEQ_CST); /* pairs with on_signal */
    }
    if (signals.forwards)
        return 0;
    int err = gort_go(forwarder, NULL);
    signals.forwards = !err;
    return err;
}

static struct ear **find(gort_chan *ch, int signo)
{
    struct ear **at = &signals.ears[signo];
    while (*at && (*at)->ch != ch)
        at = &(*at)->next;
    return at;
}

/* With the lock held. 0 or -errno. */
static int register_ear(struct ear **at, struct ear *e, gort_chan *ch, int signo)
{
    struct gort__m *m = gort__enter_nest();
    int err = signals.ears[signo] ? 0 : gort__os_signal_catch(signo, on_noted);
    if (!err) {
        *e = (struct ear){.ch = gort_chan_ref(ch)};
        *at = e;
        signals.count++;
    }
    gort__enter_nest_end(m);
    return err;
}

/* With the lock held: what came before is sent to it, too. */
static void unregister_ear(struct ear **at, int signo)
{
    struct gort__m *m = gort__enter_nest();
    struct ear *e = *at;
    bool last = signals.ears[signo] == e && !e->next;
    if (last ? gort__os_signal_release(signo) : gort__os_signal_noted(signo))
        deliver(signo);
    *at = e->next;
    signals.count--;
    gort__enter_nest_end(m);
}

/* In a goroutine, as stop is. */
static int notify(gort_chan *ch, int signo)
{
    gort_mutex_lock(&signals.lock);
    struct ear **at = find(ch, signo), *e = *at;
    int err = e ? 0 : begin();
    if (!e && !err) {
        e = gort__enter_light_alloc(sizeof *e);
        err = e ? 0 : -ENOMEM;
        if (!err)
            err = register_ear(at, e, ch, signo);
        if (err && e)
            gort__enter_light_free(e, sizeof *e);
        if (err && !signals.count)
            ring(); /* the goroutine that was just started ends again */
    }
    gort_mutex_unlock(&signals.lock);
    return err;
}

static int stop(gort_chan *ch, int signo)
{
    gort_mutex_lock(&signals.lock);
    struct ear **at = find(ch, signo), *e = *at;
    if (e) {
        unregister_ear(at, signo);
        if (signals.count == 0)
            ring(); /* the goroutine ends too */
    }
    gort_mutex_unlock(&signals.lock);
    if (!e)
        return -ENOENT;
    gort_chan_unref(e->ch);
    gort__enter_light_free(e, sizeof *e);
    return 0;
}

/* What a plain thread asks of a goroutine; on the thread's stack. */
struct wish {
    struct gort__lock lock; /* rank GORT_RANK_SYNC; guards thread */
    struct gort__waitq thread;
};

/* It looks at the wish inside only: when the run ends, the thread goes away with its stack. */
static void grant(struct wish *w, int (*fn)(gort_chan *, int), gort_chan *ch, uintptr_t signo)
{
    int result = fn(ch, (int)signo);
    struct gort__m *m = gort__enter();
    gort__wait_lock_sync(&w->lock);
    struct gort__waiter *thread = gort__waitq_take(&w->thread);
    if (thread)
        thread->result = result;
    gort__wait_unlock_sync(&w->lock);
    if (thread) /* else the run is ending, and it knows */
        gort__ready(m, thread->g);
    gort__leave(m);
}

/* The thread is inside from before the goroutine is started until it is done: the run cannot end
 * unnoticed. */
static int ask(struct gort__m **m, int (*fn)(gort_chan *, int), gort_chan *ch, int signo)
{
    struct wish w = {0};
    struct gort__waiter self = {.g = (*m)->g, .needs_claim = true};
    struct gort__wait how = {&w.lock,      gort__wait_lock_sync, gort__wait_unlock_sync,
                             GORT_FOREVER, GORT_WAIT_MUTEX,      true};
    uintptr_t args[] = {(uintptr_t)&w, (uintptr_t)fn, (uintptr_t)ch, (uintptr_t)signo};
    gort__wait_lock_sync(&w.lock);
    int err = gort__spawn(*m, NULL, (void (*)(void))grant, args, 4);
    if (err) {
        gort__wait_unlock_sync(&w.lock);
        return err;
    }
    gort__waitq_push(&w.thread, &self);
    return gort__wait(m, &how, &w.thread, &self);
}

/* no_run: what to say when no run is on. */
static int in_goroutine(int (*fn)(gort_chan *, int), gort_chan *ch, int signo, int no_run)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return no_run;
    bool plain = gort__load(&m->g->flags, RELAXED) & GORT_G_THREAD;
    int err = plain ? ask(&m, fn, ch, signo) : 0;
    gort__leave(m);
    return plain ? err : fn(ch, signo);
}

int gort_signal_notify(gort_chan *ch, int signo)
{
    GORT_NEED("gort_signal_notify", "channel", ch);
    if (refused(signo) || gort_chan_elem(ch) != sizeof(int))
        return -EINVAL;
    return in_goroutine(notify, ch, signo, -ESRCH);
}

int gort_signal_stop(gort_chan *ch, int signo)
{
    GORT_NEED("gort_signal_stop", "channel", ch);
    return refused(signo) ? -EINVAL : in_goroutine(stop, ch, signo, -ENOENT);
}
