/* SPDX-License-Identifier: MIT */
/*
 * io.h - one operation on one fd, for the files of this room.
 */
#ifndef GORT_SRC_IO_IO_H
#define GORT_SRC_IO_IO_H

#include <gort/errno.h> /* libc's would be kept across a change of threads */
#include <sys/socket.h>
#include <sys/uio.h>

#include <gort/io.h>

#include "poll/fd.h"
#include "sched/wait/wait.h"

_Static_assert(_Generic((socklen_t)0, unsigned int : 1, default : 0), "the public headers say so");

/* What is behind an fd: the kind decides how to try without blocking. */
enum gort__kind {
    GORT__KIND_SOCKET = 1, /* MSG_DONTWAIT does it, whatever O_NONBLOCK says */
    GORT__KIND_PLAIN,      /* O_NONBLOCK is set */
    GORT__KIND_SLOW,       /* it is not: RWF_NOWAIT, or a blocking call once it is ready */
    GORT__KIND_FILE,       /* never waits, but may block: regular files, disks, what epoll refuses */
    GORT__KIND_MASK = 0xff,
    /* and flags */
    GORT__FD_DGRAM = 0x100,
    GORT__FD_UNIX = 0x200,
    GORT__FD_NODELAY = 0x400,  /* a listener whose connections need not be told */
    GORT__FD_NONBLOCK = 0x800, /* O_NONBLOCK is set */
    GORT__FD_TCP = 0x2000,
    GORT__FD_NO_NOWAIT = 0x1000 /* the file does not know RWF_NOWAIT */
};

/* What a try returns when only a blocking call can tell. */
#define GORT__IO_BLOCKS (-100000)

struct gort__io {
    const char *name; /* of the public call */
    /* One try: the result, -errno, -EAGAIN: not now, or GORT__IO_BLOCKS. It never blocks unless
     * io->blocking. */
    ssize_t (*call)(struct gort__io *io);
    int64_t deadline;
    int fd;
    enum gort__dir dir;
    enum gort__reason reason;
    bool blocking;
    bool stream; /* a read that may rely on gort__fd_is_drained */
    bool woken;  /* an event was spent on this operation */

    struct gort__fd *f; /* set by gort__io_begin */
    uint32_t generation, kind;
    uint32_t tries; /* pauses so far (gort__io_pause) */

    /* Arguments of the various calls. */
    struct iovec one;
    const struct iovec *iov;
    int count, flags;
    struct msghdr *msg;
    struct sockaddr *addr;
    socklen_t *addr_len, to_len;
    int from;
    off_t *offset;
};

static inline ssize_t gort__io_result(ssize_t n)
{
    return GORT_LIKELY(n >= 0) ? n : -errno;
}

/* --- rw.c --- */
/* The try of what cannot be tried without blocking: -EAGAIN unless it is ready. */
ssize_t gort__io_slow(const struct gort__io *io);

/* --- fd.c --- */
/* Finds the entry; learns what is behind an fd at its first use. 0 or -errno. */
int gort__io_begin(struct gort__io *io);
/* A new fd of ours. fd, or -errno: then it is closed. */
int gort__io_adopt(struct gort__m *m, int fd, uint32_t kind);
/* Does the operation: waits as often as necessary. Inside; *m is updated. */
ssize_t gort__io_try(struct gort__m **m, struct gort__io *io);
/* begin, lock (for writers), try: the whole of most calls. */
ssize_t gort__io_run(struct gort__io *io, bool locks);
/* Makes those that a close or a new deadline has ended runnable. */
void gort__io_ready(struct gort__m *m, struct gort__poll_waiter *list);

/* --- wait.c --- */
/* Waits for an event later than seq. 0: try again; -EPERM: the fd never waits; -errno. */
int gort__io_wait(struct gort__m **m, struct gort__io *io, uint32_t seq);
/* How long to wait before the next try where no event will tell, in ns: longer each time. */
int64_t gort__io_pause(uint32_t *tries);
/* What an operation returns when the fd's own deadline has passed, which is another file's perhaps. */
int gort__io_too_late(const struct gort__io *io);
/* The operation is over: lets the next one that waits for the same have a look. */
void gort__io_wake_next(struct gort__m *m, struct gort__fd *f, uint32_t generation, enum gort__dir d);
/* The right to write: one at a time, in order. 0 or -errno. */
int gort__io_write_lock(struct gort__m **m, struct gort__io *io);
void gort__io_write_unlock(struct gort__m *m, struct gort__io *io);

#endif
