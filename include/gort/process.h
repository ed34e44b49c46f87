/* SPDX-License-Identifier: MIT */
/*
 * gort/process.h - child processes, and pipes to their standard input and output.
 *
 *     gort_command c = {.file = "sort", .argv = (char *[]){"sort", NULL}, .in = GORT_PIPE, .out = GORT_PIPE};
 *     gort_process p;
 *     if (gort_spawn(&p, &c) == 0) {
 *         ssize_t n = gort_write_all(p.in, "b\na\n", 4);
 *         gort_close(p.in);
 *         n = n < 0 ? n : gort_read_full(p.out, buf, size);
 *         gort_close(p.out);
 *         printf("%zd bytes, status %d\n", n, gort_wait(&p, NULL));
 *     }
 */
#ifndef GORT_PROCESS_H
#define GORT_PROCESS_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

/*
 * What the standard input, output and error of a child are: an fd of this process above 0, or one of these:
 * the same file as in this process, a new pipe to this process, /dev/null, or (error only) the same as the
 * child's output.
 */
enum { GORT_INHERIT = 0, GORT_PIPE = -1, GORT_NULL = -2, GORT_SAME = -3 };

typedef struct gort_command {
    const char *file;    /* the program; without '/' it is searched for in PATH */
    char *const *argv;   /* its arguments, argv[0] included, then NULL */
    char *const *envp;   /* its environment; NULL: that of this process */
    const char *dir;     /* its working directory; NULL: that of this process */
    int in, out, err;    /* its standard input, output and error: see above */
    int64_t reserved[4]; /* must be zero, else -EINVAL */
} gort_command;

/*
 * A child process. One goroutine at a time may use it. If it is all zero, or gort_spawn has failed for it,
 * gort_wait returns -ECHILD and gort_kill -ESRCH.
 */
typedef struct gort_process {
    int pid;
    int in, out, err; /* this process's ends of the pipes (GORT_PIPE); close them with gort_close. Else -1 */
    int gort_priv_pidfd, gort_priv_status;
    bool gort_priv_ended, gort_priv_lost;
} gort_process;

/*
 * Starts a child process. It gets the fds named in c; other fds of this process only if they are not
 * close-on-exec. It has the signal mask of the calling goroutine and the timer slack of the thread that
 * called gort_run; a child that a goroutine makes with system(), popen() or posix_spawn() inherits that of
 * gort's threads, 1 ns. Returns 0, or the -errno with which exec failed, among others. May park.
 */
GORT_API GORT_MUST_CHECK int gort_spawn(gort_process *p, const gort_command *c);
/*
 * Waits until the child has ended. Returns its exit status, or 128 plus the number of the signal that ended
 * it, and stores what waitpid would have stored in *status, unless status is NULL. Later calls return the
 * same. -ECHILD: it is not a child of this process, or other code has reaped it (waitpid(-1), or SIGCHLD is
 * ignored). Does not close the pipes. May park.
 */
GORT_API int gort_wait(gort_process *p, int *status);
GORT_API int gort_wait_until(gort_process *p, int *status, int64_t deadline);
/*
 * Sends a signal to the child. Returns 0 or -errno; -ESRCH: gort_wait has returned its status already, or the
 * child was never started. Never parks.
 */
GORT_API int gort_kill(const gort_process *p, int signo);

GORT_END_DECLS
#endif
