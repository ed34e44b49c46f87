/* SPDX-License-Identifier: MIT */
/*
 * process.c - child processes.
 *
 * Why: posix_spawn, because a fork of a process with many threads and large mappings is slow and its child could do
 * nothing safely; it blocks until the child has called exec, and allocates, so it runs as an announced blocking call.
 * The end of a child is an event of its pidfd. Kernels before 5.3 have none: there waiting is a blocking call, or with a
 * deadline or context a look now and then.
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

#include "io/io.h"
#include "os/force.h"

#define LOOK_EVERY (2 * GORT_MS)

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
    if (!err)
        err = posix_spawnp(&s->pid, s->c->file, &actions, NULL, s->c->argv,
                           s->c->envp ? s->c->envp : environ);
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
    struct spawning s = {.c = c, .theirs = {-1, -1, -1}};
    int own[3] = {-1, -1, -1}, want[3] = {c->in, c->out, c->err}, err = 0;
    *p = (gort_process){.in = -1, .out = -1, .err = -1, .gort_priv_pidfd = -1};
    int *ours[3] = {&p->in, &p->out, &p->err};
    if (!c->file || !c->argv)
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

static intptr_t wait_blocking(void *arg)
{
    gort_process *p = arg;
    pid_t got;
    while ((got = waitpid(p->pid, &p->gort_priv_status, 0)) < 0 && errno == EINTR)
        ;
    return got < 0 ? -errno : 0;
}

/* 1: it has ended; 0: not yet; -errno. */
static int look(gort_process *p)
{
    pid_t got = waitpid(p->pid, &p->gort_priv_status, WNOHANG);
    if (got < 0)
        return -errno;
    return got == p->pid;
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

int gort_wait_until(gort_process *p, int *status, int64_t deadline)
{
    if (!p->gort_priv_ended) {
        int err = 0;
        if (p->gort_priv_pidfd >= 0) {
            int ready = gort_wait_fd(p->gort_priv_pidfd, GORT_READ, deadline);
            err = ready < 0 ? ready : look(p);
            if (err == 0)
                err = -ECHILD; /* cannot be: the pidfd is readable when it has ended */
            else if (err == 1)
                err = 0;
        } else {
            err = wait_without(p, deadline);
        }
        if (err)
            return err;
        p->gort_priv_ended = true;
        if (p->gort_priv_pidfd >= 0)
            gort_close(p->gort_priv_pidfd);
        p->gort_priv_pidfd = -1;
    }
    if (status)
        *status = p->gort_priv_status;
    return WIFSIGNALED(p->gort_priv_status) ? 128 + WTERMSIG(p->gort_priv_status)
                                            : WEXITSTATUS(p->gort_priv_status);
}

int gort_wait(gort_process *p, int *status)
{
    return gort_wait_until(p, status, GORT_FOREVER);
}

int gort_kill(const gort_process *p, int signo)
{
    if (p->gort_priv_ended)
        return -ESRCH;
    return kill(p->pid, signo) == 0 ? 0 : -errno;
}
