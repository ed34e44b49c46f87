/* SPDX-License-Identifier: MIT */
/*
 * when.c - gort_go_when: a goroutine that begins when an fd is ready.
 *
 * Why: a goroutine that waits in a read needs a stack, and the smallest stack is a page. One that has not run
 * needs none (design/0005). So a server with very many idle connections starts one for each that waits before
 * it begins: its record stands in the queue of the fd like any other waiter's, and gets a stack when there is
 * something to do. What the poller needs meanwhile lies in a block beside it.
 * No deadline and no context ends the wait: both would need a timer or a place in a list each, which is what
 * is saved here. An fd that cannot be watched is refused; whatever goes wrong with it later starts the
 * function, whose own first call is told.
 * Invariants: (1) the record is WAITING and armed before it is queued, so that an event may ready it at once;
 * (2) a wait that was queued is counted until its function is about to begin.
 * Threads: any.
 */
#include <poll.h>

#include "base/fatal.h"
#include "io/io.h"
#include "mem/argmem.h"

struct fd_start {
    struct gort__poll_waiter w;
    struct gort__fd *f;
    void (*fn)(void *);
    void *arg;
    uint32_t generation; /* of the file that it waits for */
    enum gort__dir dir;
    bool counted;
};

static void begin(void *block)
{
    struct fd_start l = *(struct fd_start *)block;
    struct gort__m *m = gort__enter();
    gort__argmem_put(block, sizeof l);
    if (l.counted) {
        gort__poll_done(1);
        gort__io_wake_next(m, l.f, l.generation, l.dir); /* the function may take nothing */
    }
    gort__leave(m);
    l.fn(l.arg);
}

/* Whether it is ready now. */
static bool is_ready(const struct gort__io *io, uint32_t seq)
{
    struct pollfd p = {.fd = io->fd, .events = io->dir == GORT__DIR_READ ? POLLIN | POLLRDHUP : POLLOUT};
    struct gort__fd *f = io->f;
    if (io->stream && gort__fd_is_drained(f, seq))
        return false;
    if (!gort__fd_pin(f, io->generation))
        return true;
    bool ready = poll(&p, 1, 0) != 0;
    gort__fd_unpin(f);
    return ready;
}

/*
 * Before anything is started: sees to it that the poller watches the fd. 1: it is the first to do so, and the
 * fd need not be asked, because to watch it makes an event if it is ready; 0: somebody has, perhaps long ago;
 * -errno, which the function could not be told: it would try, find nothing, and be here again at once.
 */
static int watch(const struct gort__io *io)
{
    struct gort__fd *f = io->f;
    if (gort__fd_watched(f))
        return 0;
    gort__fd_lock(f);
    int got = gort__fd_generation(f) != io->generation ? -EBADF : !gort__fd_watched(f);
    if (got == 1) {
        int err = gort__fd_watch(f, io->fd);
        got = err ? err : 1;
    }
    gort__fd_unlock(f);
    return got;
}

/* True: it waits, and whoever ends that readies it. False: it is to begin now. */
static bool queue(struct gort__io *io, struct fd_start *l, uint32_t seq)
{
    struct gort__fd *f = io->f;
    struct gort__g *g = l->w.g;
    gort__fd_lock(f);
    if (gort__fd_generation(f) != io->generation) { /* its function will hear */
        gort__fd_unlock(f);
        return false;
    }
    l->counted = true;
    gort__store(&g->wait_word, GORT_CLAIM_ARMED, RELEASE); /* pairs with gort__g_claim */
    gort__fd_queue(f, io->dir, &l->w, false);
    bool moved = gort__fd_moved(f, io->dir, seq);
    if (moved) { /* the lock is held, so nobody has claimed it */
        gort__poll_remove(&f->waiters[io->dir], &l->w);
        gort__store(&g->wait_word, GORT_CLAIM_NONE, RELAXED);
    }
    gort__fd_unlock(f);
    return !moved;
}

static int start(struct gort__m *m, struct gort__io *io, void (*fn)(void *), void *arg)
{
    uint32_t seq = gort__load(&io->f->seq[io->dir], ACQUIRE); /* before the look; pairs with gort__fd_event */
    int fresh = watch(io);
    if (fresh < 0 && fresh != -EPERM) /* that is a regular file, which is always ready */
        return fresh;
    struct fd_start *l = gort__argmem_get(sizeof *l);
    if (!l)
        return -ENOMEM;
    *l = (struct fd_start){.f = io->f, .fn = fn, .arg = arg, .generation = io->generation, .dir = io->dir};
    struct gort__g *g = gort__spawn_parked(m, (void (*)(void))begin, (uintptr_t)l, GORT_WAIT_FD);
    if (!g) {
        gort__argmem_put(l, sizeof *l);
        return -ENOMEM;
    }
    l->w.g = g;
    if (fresh >= 0 && (fresh || !is_ready(io, seq)) && queue(io, l, seq))
        gort__poller_notice_fd(m);
    else
        gort__ready(m, g);
    return 0;
}

int gort_go_when(int fd, int what, void (*fn)(void *), void *arg)
{
    struct gort__io io = {.name = "gort_go_when", .fd = fd};
    if (what != GORT_READ && what != GORT_WRITE)
        return -EINVAL;
    GORT_NEED("gort_go_when", "function", fn);
    io.dir = what == GORT_READ ? GORT__DIR_READ : GORT__DIR_WRITE;
    io.stream = what == GORT_READ;
    struct gort__m *m = gort__enter();
    if (!m)
        return -ESRCH;
    int err = gort__io_begin(&io);
    if (!err)
        err = start(m, &io, fn, arg);
    gort__leave(m);
    return err;
}
