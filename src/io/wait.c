/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting for an fd, and for one's write lock.
 *
 * Why: fd.h tells how a waiter and an event find each other. Here the waiter's half meets deadlines and
 * contexts: all of them race for the goroutine's claim word (sched/wait/wait.c), so one of them ends the wait.
 * A new deadline of the fd does not touch anybody's timer: it wakes all who wait in that direction, and they
 * wait again. The write lock makes a long write whole: it is taken by every write, costs two atomic
 * operations while nobody else writes, and is handed from one to the next in order.
 * Threads: any.
 */
#include "base/fatal.h"
#include "io/io.h"

#define PAUSE_FIRST INT64_C(125000) /* ns between tries where no event will tell; */
#define PAUSE_TIMES 8               /* each twice as long as the one before, so often: 16 ms at most */

static void lock_fd(void *f)
{
    gort__fd_lock(f);
}

static void unlock_fd(void *f)
{
    gort__fd_unlock(f);
}

/* With the lock held: the earlier of the operation's deadline and the fd's. */
static int64_t deadline_of(const struct gort__io *io)
{
    int64_t until = gort__load(&io->f->until[io->dir], RELAXED);
    return until && until < io->deadline ? until : io->deadline;
}

int64_t gort__io_pause(uint32_t *tries)
{
    uint32_t n = (*tries)++;
    return PAUSE_FIRST << (n < PAUSE_TIMES ? n : PAUSE_TIMES - 1);
}

/*
 * A unix datagram socket is told when the peer that it is connected to has room again. When the peer is
 * another one, named with each message, nobody tells it and it has to look.
 */
static bool must_look(const struct gort__io *io)
{
    const uint32_t both = GORT__FD_UNIX | GORT__FD_DGRAM;
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    if (io->dir != GORT__DIR_WRITE || (io->kind & both) != both)
        return false;
    return io->addr || (io->msg && io->msg->msg_name) ||
           getpeername(io->fd, (struct sockaddr *)(void *)&peer, &len) != 0;
}

int gort__io_wait(struct gort__m **m, struct gort__io *io, uint32_t seq)
{
    struct gort__fd *f = io->f;
    int err = gort__wait_refused(*m, io->deadline, false, io->name);
    if (err)
        return err;
    struct gort__poll_waiter w = {.g = (*m)->g};
    gort__fd_lock(f);
    err = gort__fd_generation(f) != io->generation ? -EBADF : gort__fd_watch(f, io->fd);
    if (err) {
        gort__fd_unlock(f);
        return err;
    }
    gort__fd_queue(f, io->dir, &w, io->woken);
    io->woken = false;
    if (gort__fd_moved(f, io->dir, seq)) {
        gort__poll_remove(&f->waiters[io->dir], &w);
        gort__fd_unlock(f);
        gort__poll_done(1);
        return 0;
    }
    struct gort__wait how = {f, lock_fd, unlock_fd, deadline_of(io), io->reason, false};
    int64_t until = how.deadline;
    bool look = must_look(io);
    if (look) {
        int64_t next = gort__os_now() + gort__io_pause(&io->tries);
        how.deadline = next < until ? next : until;
    }
    gort__poller_notice_fd(*m);
    err = gort__wait_shared_park(m, &how);
    if (err) {
        if (w.queued)
            gort__poll_remove(&f->waiters[io->dir], &w);
        gort__fd_unlock(f);
    }
    gort__poll_done(1);
    if (look && err == -ETIMEDOUT && gort__os_now() < until)
        return gort__wait_refused(*m, io->deadline, false, io->name); /* the context's deadline counts too */
    if (err || w.result < 0)
        return err ? err : w.result;
    io->woken = w.result != GORT__POLL_AGAIN;
    return 0;
}

void gort__io_wake_next(struct gort__m *m, struct gort__fd *f, uint32_t generation, enum gort__dir d)
{
    const int ready = d == GORT__DIR_READ ? GORT__OS_READABLE : GORT__OS_WRITABLE;
    if (GORT_LIKELY(!gort__load(&f->waiters[d].first, RELAXED)))
        return;
    gort__fd_lock(f);
    /* The event was of the former file: nobody who waits for the one behind the number now may be told of
     * it. */
    struct gort__poll_waiter *w = gort__fd_generation(f) == generation
                                      ? gort__poll_take(&f->waiters[d], ready)
                                      : NULL;
    gort__fd_unlock(f);
    if (w)
        gort__ready(m, w->g);
}

/* --- the write lock ------------------------------------------------------------------------ */

/*
 * The word holds the generation, and a close (gort__fd_retire, under the lock) puts the next one there with a
 * free write lock. So (1) a writer of the former file that has the lock cannot release the new file's: its
 * CAS fails for the generation, and under the lock of the entry it sees that too; (2) nor can a writer that
 * began before the close take it, and one that took it between the change of the generation and that of the
 * word finds its file closed (gort__fd_pin); (3) a writer of the new file that comes in between fails its CAS
 * and looks again under the lock, when both have changed.
 */

int gort__io_too_late(const struct gort__io *io)
{
    return gort__fd_generation(io->f) == io->generation ? -ETIMEDOUT : -EBADF;
}

static int write_lock_wait(struct gort__m **m, struct gort__io *io)
{
    struct gort__fd *f = io->f;
    for (;;) {
        int64_t until = gort__load(&f->until[GORT__DIR_WRITE], RELAXED);
        if (until && until <= gort__os_now())
            return gort__io_too_late(io);
        int err = gort__wait_refused(*m, io->deadline, false, io->name);
        if (err)
            return err;
        struct gort__poll_waiter w = {.g = (*m)->g};
        gort__fd_lock(f);
        if (gort__fd_generation(f) != io->generation) {
            gort__fd_unlock(f);
            return -EBADF;
        }
        const uint64_t nobody = gort__fd_write_lock_word(io->generation, GORT__WRITE_LOCK_FREE);
        const uint64_t wanted = gort__fd_write_lock_word(io->generation, GORT__WRITE_LOCK_WANTED);
        if (gort__xchg(&f->write_lock, wanted, ACQUIRE) == nobody) { /* pairs with gort__io_write_unlock */
            gort__fd_unlock(f);
            return 0;
        }
        gort__poll_push(&f->writers, &w, false);
        struct gort__wait how = {f, lock_fd, unlock_fd, deadline_of(io), GORT_WAIT_IO_WRITE_LOCK, false};
        err = gort__wait_shared_park(m, &how);
        if (err) {
            if (w.queued)
                gort__poll_remove(&f->writers, &w);
            gort__fd_unlock(f);
            return err;
        }
        if (w.result != GORT__POLL_AGAIN)
            return w.result < 0 ? w.result : 0;
    }
}

int gort__io_write_lock(struct gort__m **m, struct gort__io *io)
{
    uint64_t nobody = gort__fd_write_lock_word(io->generation, GORT__WRITE_LOCK_FREE);
    const uint64_t mine = gort__fd_write_lock_word(io->generation, GORT__WRITE_LOCK_TAKEN);
    if (GORT_LIKELY(
            gort__cas(&io->f->write_lock, &nobody, mine, ACQUIRE))) /* pairs with gort__io_write_unlock */
        return 0;
    return write_lock_wait(m, io);
}

void gort__io_write_unlock(struct gort__m *m, struct gort__io *io)
{
    struct gort__fd *f = io->f;
    uint64_t mine = gort__fd_write_lock_word(io->generation, GORT__WRITE_LOCK_TAKEN);
    const uint64_t nobody = gort__fd_write_lock_word(io->generation, GORT__WRITE_LOCK_FREE);
    const uint64_t wanted = gort__fd_write_lock_word(io->generation, GORT__WRITE_LOCK_WANTED);
    if (GORT_LIKELY(gort__cas(&f->write_lock, &mine, nobody, RELEASE))) /* pairs with gort__io_write_lock */
        return;
    struct gort__poll_waiter *w = NULL;
    gort__fd_lock(f);
    if (gort__fd_generation(f) == io->generation) { /* else the write lock went with the file */
        w = gort__poll_take(&f->writers, GORT__POLL_WRITE_LOCK);
        gort__store(&f->write_lock, w ? wanted : nobody, RELEASE); /* pairs with gort__io_write_lock */
    }
    gort__fd_unlock(f);
    if (w)
        gort__ready(m, w->g);
}
