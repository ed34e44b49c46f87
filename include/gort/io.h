/* SPDX-License-Identifier: MIT */
/*
 * gort/io.h - reading and writing plain int fds as if they blocked: only the calling goroutine does.
 *
 * Sockets, pipes, ttys, eventfds and regular files, made here or elsewhere: an fd needs no preparation, and its
 * O_NONBLOCK flag is left as it is. Results are what the system call would return, errors are -errno. The plain form waits
 * for ever, `_until` until a deadline (gort_in), GORT_TRY not at all (-EAGAIN). EINTR is never returned. Writing to
 * somebody who has gone is -EPIPE and no signal, as long as a run is on. All of them may park unless they say otherwise.
 *
 * Several goroutines may read or write one fd: readers are served in order of arrival, and what one call writes is not
 * mixed with another's. Close an fd of gort's with gort_close; an fd that somebody else closes, after gort has used it,
 * needs gort_fd_forget first.
 *
 * Without O_NONBLOCK a tty, an eventfd and their like can only be tried by a call that blocks, which is made once they are
 * ready. It lasts, whatever deadline or close comes meanwhile, when another process was faster or a tty has room for less
 * than the up to 4 KiB that are written at once. Sockets, pipes and files do not have this problem.
 */
#ifndef GORT_IO_H
#define GORT_IO_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/* <sys/socket.h> and <sys/uio.h> define these; socklen_t is written as the unsigned int that it is, so that whoever
 * includes gort.h keeps names like send and listen for itself. */
struct iovec;
struct msghdr;
struct sockaddr;

enum { GORT_READ = 1, GORT_WRITE = 2, GORT_HUP = 4 };

/* How much was read; 0: end of file (or n is 0). */
GORT_API ssize_t gort_read(int fd, void *buf, size_t n);
GORT_API ssize_t gort_read_until(int fd, void *buf, size_t n, int64_t deadline);
/* All n bytes; fewer only at the end of the file; -errno: then some may have been read, into buf. */
GORT_API ssize_t gort_read_full(int fd, void *buf, size_t n);
GORT_API ssize_t gort_read_full_until(int fd, void *buf, size_t n, int64_t deadline);
GORT_API ssize_t gort_readv(int fd, const struct iovec *iov, int count);
GORT_API ssize_t gort_readv_until(int fd, const struct iovec *iov, int count, int64_t deadline);

/* How much was written: perhaps less than n. */
GORT_API GORT_MUST_CHECK ssize_t gort_write(int fd, const void *buf, size_t n);
GORT_API GORT_MUST_CHECK ssize_t gort_write_until(int fd, const void *buf, size_t n, int64_t deadline);
/* n, or -errno: then some of it may have been written. */
GORT_API GORT_MUST_CHECK ssize_t gort_write_all(int fd, const void *buf, size_t n);
GORT_API GORT_MUST_CHECK ssize_t gort_write_all_until(int fd, const void *buf, size_t n, int64_t deadline);
GORT_API GORT_MUST_CHECK ssize_t gort_writev(int fd, const struct iovec *iov, int count);
GORT_API GORT_MUST_CHECK ssize_t gort_writev_until(int fd, const struct iovec *iov, int count,
                                                   int64_t deadline);

/* Datagrams, and whatever else recvmsg and sendmsg can do (passing fds). flags: MSG_*; MSG_DONTWAIT is
 * GORT_TRY. */
GORT_API ssize_t gort_recvfrom(int fd, void *buf, size_t n, int flags, struct sockaddr *from,
                               unsigned int *len);
GORT_API ssize_t gort_recvfrom_until(int fd, void *buf, size_t n, int flags, struct sockaddr *from,
                                     unsigned int *len, int64_t deadline);
GORT_API ssize_t gort_sendto(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
                             unsigned int len);
GORT_API ssize_t gort_sendto_until(int fd, const void *buf, size_t n, int flags, const struct sockaddr *to,
                                   unsigned int len, int64_t deadline);
GORT_API ssize_t gort_recvmsg(int fd, struct msghdr *msg, int flags);
GORT_API ssize_t gort_recvmsg_until(int fd, struct msghdr *msg, int flags, int64_t deadline);
GORT_API ssize_t gort_sendmsg(int fd, const struct msghdr *msg, int flags);
GORT_API ssize_t gort_sendmsg_until(int fd, const struct msghdr *msg, int flags, int64_t deadline);

/* Copies from the regular file `from` (at *offset, which moves; NULL: at its own position, which does) to `fd`: up to n
 * bytes, fewer at the end of the file. How much. */
GORT_API ssize_t gort_sendfile(int fd, int from, off_t *offset, size_t n);
GORT_API ssize_t gort_sendfile_until(int fd, int from, off_t *offset, size_t n, int64_t deadline);

/* A pipe: reads from ends[0], writes to ends[1]; both close-on-exec. 0. Never parks. */
GORT_API int gort_pipe(int ends[2]);

/* Closes it; everyone who waits for it gets -EBADF. Never parks, but for a socket with gort_set_linger above 0, which waits
 * until all is sent. */
GORT_API int gort_close(int fd);
/* SHUT_RD, SHUT_WR (the peer reads the end of file), SHUT_RDWR. Never parks. */
GORT_API int gort_shutdown(int fd, int how);

/* From the deadline on, calls on the fd in these directions (GORT_READ | GORT_WRITE) fail with -ETIMEDOUT, those that wait
 * now included, data or not. GORT_FOREVER takes it back. Accepting counts as reading, dialing as neither. Never parks. */
GORT_API int gort_set_deadline(int fd, int what, int64_t deadline);

/*
 * For libraries that do their own I/O: waits until fd is ready for what (GORT_READ | GORT_WRITE | GORT_HUP), returns the
 * part that is, with GORT_HUP whenever the peer has hung up. Does not look at gort_set_deadline.
 */
GORT_API int gort_wait_fd(int fd, int what, int64_t deadline);
/*
 * Starts a goroutine that begins fn(arg) when fd is ready for what (GORT_READ or GORT_WRITE), or is closed. Until then it costs some
 * hundred bytes and no stack, which is for very many idle connections; a function that has emptied the fd
 * (-EAGAIN with GORT_TRY) may call this again and end. It may begin early, as after gort_set_deadline; no deadline and no context
 * ends the wait. -ESRCH: no run is on; -ENOMEM, -ENOSPC and the like: it was not started. Never parks.
 */
GORT_API GORT_MUST_CHECK int gort_go_when(int fd, int what, void (*fn)(void *), void *arg);
/* Before somebody else closes an fd that gort has used; everyone who waits for it gets -EBADF. 0. Never parks. */
GORT_API int gort_fd_forget(int fd);

GORT_END_DECLS
#endif
