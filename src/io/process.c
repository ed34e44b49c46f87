/* SPDX-License-Identifier: MIT */
/*
 * process.c - child processes.
 *
 * Why: posix_spawn, because a fork of a process with many threads and large mappings is slow and its child
 * could do nothing safely; it blocks until the child has called exec, and allocates, so it runs as an
 * announced blocking call. The end of a child is an event of its pidfd. Kernels before 5.3 have none: there
 * waiting is a blocking call, or with a deadline or context a look now and then.
 * Signals and the wait go through the pidfd too, where there is one: a process id may belong to somebody else
 * as soon as anybody has reaped the child. Kernels before 5.4, and sandboxes, leave the process id.
 * Our ends of pipes do not block, the child's do: they are different files, and programs expect that.
 * Threads: any; a gort_process by one goroutine at a time.
 */
#include <gort/errno.h> /* libc's would be kept across a change of threads */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gort/process.h>

#include "base/fatal.h"
#include "io/io.h"
#include "os/force.h"

#define LOOK_EVERY (2 * GORT_MS)

/* Younger than the headers that we may be built with. */
#define BY_PIDFD ((idtype_t)3)
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

extern char **environ;

struct spawning {
    const gort_command *c;
    int theirs[3]; /* fds for the child's 0, 1, 2; -1: as ours */
    pid_t pid;
};

/* In a blocking call. 0 or -errno. */
static intptr_t spawn(void *arg)
{
    struct spawning *s = arg;
    posix_spawn_file_actions_t actions;
    int err = posix_spawn_file_actions_init(&actions);
    if (err)
        return -err;
    for (int i = 0; i < 3 && !err; i++)
        if (s->theirs[i] >= 0)
            err = posix_spawn_file_actions_adddup2(&actions, s->theirs[i], i);
    if (!err && s->c->dir)
        err = posix_spawn_file_actions_addchdir_np(&actions, s->c->dir);
    if (!err) {
        const struct gort__m *m = gort__m_home();
        bool precise = m && !m->plain && gort__os_thread_usual(); /* a child inherits the timer slack */
        err = posix_spawnp(&s->pid, s->c->file, &actions, NULL, s->c->argv,
                           s->c->envp ? s->c->envp : environ);
        if (precise)
            gort__os_thread_precise();
    }
    posix_spawn_file_actions_destroy(&actions);
    return -err;
}

/* One of the three. *ours: our end of a pipe; *own: an fd to close when the child has it. */
static int arrange(int want, int i, int *theirs, int *ours, int *own)
{
    int ends[2];
    if (want == GORT_INHERIT || want > 0) {
        *theirs = want ? want : -1;
        return 0;
    }
    if (want == GORT_NULL) {
        *theirs = *own = open("/dev/null", O_RDWR | O_CLOEXEC);
        return *own < 0 ? -errno : 0;
    }
    if (want != GORT_PIPE)
        return -EINVAL;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    int mine = i == 0 ? ends[1] : ends[0];
    *theirs = *own = i == 0 ? ends[0] : ends[1];
    struct gort__m *m = gort__enter();
    int fd = fcntl(mine, F_SETFL, O_NONBLOCK) < 0 ? -errno : gort__io_adopt(m, mine, GORT__KIND_PLAIN);
    if (m)
        gort__leave(m);
    *ours = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

/* dup2 to 0, 1, 2 in turn must not overwrite one that is needed later. */
static int out_of_the_way(int *theirs, int i, int *own)
{
    if (*theirs < 0 || *theirs >= 3 || *theirs == i)
        return 0;
    int fd = fcntl(*theirs, F_DUPFD_CLOEXEC, 3);
    if (fd < 0)
        return -errno;
    if (*own >= 0)
        close(*own);
    *theirs = *own = fd;
    return 0;
}

static int open_pidfd(pid_t pid)
{
#ifdef SYS_pidfd_open
    if (!gort__os_force.no_pidfd)
        return gort__os_fd_own((int)syscall(SYS_pidfd_open, pid, 0)); /* close-on-exec by itself */
#endif
    (void)pid;
    return -1;
}

int gort_spawn(gort_process *p, const gort_command *c)
{
    GORT_NEED("gort_spawn", "process", p);
    GORT_NEED("gort_spawn", "command", c);
    struct spawning s = {.c = c, .theirs = {-1, -1, -1}};
    int own[3] = {-1, -1, -1}, want[3] = {c->in, c->out, c->err}, err = 0;
    *p = (gort_process){.in = -1, .out = -1, .err = -1, .gort_priv_pidfd = -1};
    int *ours[3] = {&p->in, &p->out, &p->err};
    if (!c->file || !c->argv || c->reserved[0] || c->reserved[1] || c->reserved[2] || c->reserved[3])
        return -EINVAL;
    for (int i = 0; i < 3 && !err; i++) {
        if (i == 2 && want[i] == GORT_SAME)
            s.theirs[i] = s.theirs[1] >= 0 ? s.theirs[1] : 1;
        else
            err = arrange(want[i], i, &s.theirs[i], ours[i], &own[i]);
        if (!err)
            err = out_of_the_way(&s.theirs[i], i, &own[i]);
    }
    if (!err)
        err = (int)gort_block(spawn, &s);
    for (int i = 0; i < 3; i++) {
        if (own[i] >= 0)
            close(own[i]);
        if (err && *ours[i] >= 0) {
            gort_close(*ours[i]);
            *ours[i] = -1;
        }
    }
    if (err)
        return err;
    p->pid = s.pid;
    p->gort_priv_pidfd = open_pidfd(s.pid);
    return 0;
}

/* --- its end ---------------------------------------------------------------------------------- */

/* Not started (all zero, or gort_spawn has failed), or its end is known or out of reach. */
static bool is_over(const gort_process *p)
{
    return p->pid <= 0 || p->gort_priv_ended || p->gort_priv_lost;
}

/* As waitpid writes it. */
static int status_of(const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED)
        return (info->si_status & 0xff) << 8;
    return info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

/* Where a sandbox refuses waitid. waitpid cannot look without reaping, so a question with WNOWAIT is answered
 * "not yet". */
static int ask_by_number(const gort_process *p, int options, int *status)
{
    pid_t got;
    if (options & WNOWAIT)
        return 0;
    while ((got = waitpid(p->pid, status, options & WNOHANG)) < 0 && errno == EINTR)
        ;
    return got < 0 ? -errno : got == p->pid;
}

/* waitid, by the pidfd if there is one. 1: it has ended; 0: not yet; -errno. With WNOWAIT it stays as it
 * is. */
static int ask(const gort_process *p, int options, int *status)
{
    siginfo_t info;
    int err = -1;
    do {
        info.si_pid = 0; /* the kernel leaves it so if there is nothing to tell */
        if (p->gort_priv_pidfd >= 0)
            err = waitid(BY_PIDFD, (id_t)p->gort_priv_pidfd, &info, options);
        if (err && (p->gort_priv_pidfd < 0 || errno == EINVAL)) /* EINVAL: before Linux 5.4 */
            err = waitid(P_PID, (id_t)p->pid, &info, options);
    } while (err && errno == EINTR);
    if (err)
        return gort__os_refused(errno) ? ask_by_number(p, options, status) : -errno;
    if (!info.si_pid)
        return 0;
    *status = status_of(&info);
    return 1;
}

static int look(gort_process *p)
{
    return ask(p, WEXITED | WNOHANG, &p->gort_priv_status);
}

static intptr_t wait_blocking(void *arg)
{
    gort_process *p = arg;
    int got = ask(p, WEXITED, &p->gort_priv_status);
    return got < 0 ? got : 0;
}

/* Without a pidfd. 0 or -errno. */
static int wait_without(gort_process *p, int64_t deadline)
{
    for (;;) {
        int ended = look(p);
        if (ended)
            return ended < 0 ? ended : 0;
        struct gort__m *m = gort__enter();
        int err = gort__wait_refused(m, deadline, false, "gort_wait");
        bool patient = !err && deadline == GORT_FOREVER && !(m->g->flags & GORT_G_CONTEXT);
        int64_t soon = gort__os_now() + LOOK_EVERY;
        if (!err && !patient)
            err = gort__wait_alone(&m, soon < deadline ? soon : deadline, GORT_WAIT_FD);
        if (m)
            gort__leave(m);
        if (patient)
            return (int)gort_block(wait_blocking, p);
        if (err && (err != -ETIMEDOUT || gort__os_now() >= deadline))
            return err;
    }
}

static int wait_by_pidfd(gort_process *p, int64_t deadline)
{
    int ready = gort_wait_fd(p->gort_priv_pidfd, GORT_READ, deadline);
    if (ready < 0)
        return ready;
    int ended = look(p);
    if (ended == 0) /* a debugger holds back its end (ptrace), although the pidfd is ready: look for it */
        return wait_without(p, deadline);
    return ended < 0 ? ended : 0;
}

int gort_wait_until(gort_process *p, int *status, int64_t deadline)
{
    GORT_NEED("gort_wait", "process", p);
    if (!is_over(p)) {
        int err = p->gort_priv_pidfd >= 0 ? wait_by_pidfd(p, deadline) : wait_without(p, deadline);
        if (err && err != -ECHILD)
            return err;
        p->gort_priv_ended = !err;
        p->gort_priv_lost = err != 0; /* somebody else has reaped it */
        if (p->gort_priv_pidfd >= 0)
            gort_close(p->gort_priv_pidfd);
        p->gort_priv_pidfd = -1;
    }
    if (!p->gort_priv_ended)
        return -ECHILD;
    if (status)
        *status = p->gort_priv_status;
    return WIFSIGNALED(p->gort_priv_status) ? 128 + WTERMSIG(p->gort_priv_status)
                                            : WEXITSTATUS(p->gort_priv_status);
}

int gort_wait(gort_process *p, int *status)
{
    return gort_wait_until(p, status, GORT_FOREVER);
}

/* By its number, if it is still a child of ours: nobody has reaped it then, so the number is its own. */
static int kill_by_number(const gort_process *p, int signo)
{
    int status;
    if (ask(p, WEXITED | WNOHANG | WNOWAIT, &status) == -ECHILD)
        return -ESRCH;
    return kill(p->pid, signo) == 0 ? 0 : -errno;
}

int gort_kill(const gort_process *p, int signo)
{
    GORT_NEED("gort_kill", "process", p);
    if (is_over(p))
        return -ESRCH;
    if (p->gort_priv_pidfd < 0)
        return kill_by_number(p, signo);
    if (syscall(SYS_pidfd_send_signal, p->gort_priv_pidfd, signo, NULL, 0) == 0)
        return 0;
    /* Refused by a sandbox, or because the child is another user's by now: then kill says so as well. */
    return gort__os_refused(errno) ? kill_by_number(p, signo) : -errno;
}
