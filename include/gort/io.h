/* SPDX-License-Identifier: MIT */
/*
 * gort/io.h - reading and writing file descriptors, which are plain ints. A call that has to wait makes only
 * the calling goroutine wait.
 *
 * Any fd works: socket, pipe, tty, eventfd or regular file, made by gort or not. It needs no preparation, and
 * gort does not change its O_NONBLOCK flag. Results are those of the system call, errors are -errno; -EINTR
 * is never returned. While a run is on, writing to a pipe or socket that the other end has closed returns
 * -EPIPE, and SIGPIPE does not end the process. Functions in this header may park unless a comment says
 * otherwise.
 *
 * Several goroutines may use one fd at the same time. Readers are served in the order of their arrival, and
 * the bytes of one write call are not mixed with those of another. Close an fd with gort_close. If other code
 * closes an fd that gort has used, call gort_fd_forget before.
 *
 * A tty, an eventfd or the like without O_NONBLOCK can only be read or written by a call that blocks. gort
 * makes that call when the fd is ready. The call still blocks if another process was faster, or if a tty has
 * room for less than the up to 4 KiB that gort writes at once; then neither a deadline nor a close ends it.
 * Sockets, pipes and regular files do not have this problem.
 */
#ifndef GORT_IO_H
#define GORT_IO_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/*
 * <sys/socket.h> and <sys/uio.h> define these. They are not included here, so that a program that includes
 * gort.h may use names such as send and listen for itself; therefore socklen_t appears as unsigned int.
 */
struct iovec;
struct msghdr;
struct sockaddr;

enum { GORT_READ = 1, GORT_WRITE = 2, GORT_HUP = 4 };

/* Reads up to n bytes. Returns how many; 0: end of file, or n is 0. */
GORT_API ssize_t gort_read(int fd, void *buf, size_t n);
GORT_API ssize_t gort_read_until(int fd, void *buf, size_t n, int64_t deadline);
/*
 * Reads n bytes. Returns n, or fewer only at the end of the file. After an error some of the bytes may have
 * been read into buf already.
 */
GORT_API ssize_t gort_read_full(int fd, void *buf, size_t n);
GORT_API ssize_t gort_read_full_until(int fd, void *buf, size_t n, int64_t deadline);
/* As readv(2). */
GORT_API ssize_t gort_readv(int fd, const struct iovec *iov, int count);
GORT_API ssize_t gort_readv_until(int fd, const struct iovec *iov, int count, int64_t deadline);

/* Writes up to n bytes. Returns how many, which may be fewer than n. */
GORT_API GORT_MUST_CHECK ssize_t gort_write(int fd, const void *buf, size_t n);
GORT_API GORT_MUST_CHECK ssize_t gort_write_until(int fd, const void *buf, size_t n, int64_t deadline);
/* Writes all n bytes. Returns n, or -errno; after an error some of the bytes may have been written. */
GORT_API GORT_MUST_CHECK ssize_t gort_write_all(int fd, const void *buf, size_t n);
GORT_API GORT_MUST_CHECK ssize_t gort_write_all_until(int fd, const void *buf, size_t n, int64_t deadline);
/* As writev(2): may write less than all. */
GORT_API GORT_MUST_CHECK ssize_t gort_writev(int fd, const struct iovec *iov, int count);
GORT_API GORT_MUST_CHECK ssize_t gort_writev_until(int fd, const struct iovec *iov, int count,
                                                   int64_t deadline);

/*
 * As recvfrom(2), sendto(2), recvmsg(2) and sendmsg(2): for datagrams, and to pass fds. flags are MSG_*
 * flags; MSG_DONTWAIT means the deadline GORT_TRY. Fds received with gort_recvmsg are close-on-exec.
 */
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

/*
 * Copies up to n bytes from the regular file `from` to fd. Reads at *offset and advances it; if offset is
 * NULL, reads at the file's own position and advances that. Returns how many bytes were copied: fewer than n
 * at the end of the file, or when an error ends the copy after the first bytes; -errno if nothing was copied.
 */
GORT_API ssize_t gort_sendfile(int fd, int from, off_t *offset, size_t n);
GORT_API ssize_t gort_sendfile_until(int fd, int from, off_t *offset, size_t n, int64_t deadline);

/*
 * Makes a pipe; what is written to ends[1] can be read from ends[0]. Both ends are close-on-exec and
 * O_NONBLOCK. Returns 0; after an error both ends are -1. Never parks.
 */
GORT_API int gort_pipe(int ends[2]);

/*
 * Closes fd. Every goroutine that waits for it gets -EBADF. Returns 0 or -errno. Never parks; but the close
 * of a TCP socket whose gort_set_linger is above 0 blocks, as announced by gort_block_enter, until all data
 * is sent or the time is over.
 */
GORT_API int gort_close(int fd);
/* As shutdown(2), with SHUT_RD, SHUT_WR (the peer reads end of file) or SHUT_RDWR. Never parks. */
GORT_API int gort_shutdown(int fd, int how);

/*
 * Sets a deadline for all calls on fd in the given directions (what: GORT_READ, GORT_WRITE or both), also for
 * calls that wait already. Once it has passed, they fail with -ETIMEDOUT even if there is data. GORT_FOREVER
 * removes it. Accepting counts as reading; dialing is not affected. Returns 0 or -errno. Never parks.
 */
GORT_API int gort_set_deadline(int fd, int what, int64_t deadline);

/*
 * Waits until fd is ready, for libraries that do their own I/O. what is a combination of GORT_READ,
 * GORT_WRITE and GORT_HUP (the peer has hung up). Returns the part of it that is ready, plus GORT_HUP if the
 * peer has hung up. Ignores the deadline of gort_set_deadline.
 */
GORT_API int gort_wait_fd(int fd, int what, int64_t deadline);
/*
 * Starts a goroutine that waits until fd is ready for what (GORT_READ or GORT_WRITE) or is closed, and then
 * runs fn(arg). Until then the goroutine has no stack and costs some hundred bytes: for very many idle
 * connections. When fn has read all there is (gort_read_until with GORT_TRY returns -EAGAIN), it may call
 * gort_go_when again and return. fn may begin before fd is ready, for instance after gort_set_deadline. No
 * deadline and no context ends the wait. Returns 0. After an error the goroutine was not started: -ESRCH: no
 * run is on; -EINVAL, -EBADF, -ENOMEM, -ENOSPC and the like. Never parks.
 */
GORT_API GORT_MUST_CHECK int gort_go_when(int fd, int what, void (*fn)(void *), void *arg);
/*
 * Makes gort forget fd, before other code closes it. Every goroutine that waits for it gets -EBADF. Returns
 * 0, or -EBADF for a negative fd. Never parks.
 */
GORT_API int gort_fd_forget(int fd);

GORT_END_DECLS
#endif
