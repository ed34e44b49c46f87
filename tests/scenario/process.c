/* SPDX-License-Identifier: MIT */
/*
 * process.c - child processes: pipes to them, their end, what they inherit.
 * Covers: src/io/process.c
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/force.h"
#include "waiting.h"

static char *shell[] = {"sh", "-c", NULL, NULL};

static gort_process start(const char *script, int in, int out, int err)
{
    gort_process p;
    char *argv[] = {shell[0], shell[1], (char *)(uintptr_t)script, NULL};
    gort_command c = {.file = "sh", .argv = argv, .in = in, .out = out, .err = err};
    int result = gort_spawn(&p, &c);
    CHECK_MSG(result == 0, "%s", gort_strerror(result));
    return p;
}

static void check_statuses(void)
{
    int status;
    gort_process p = start("exit 7", GORT_INHERIT, GORT_INHERIT, GORT_INHERIT);
    CHECK_EQ(gort_wait(&p, &status), 7);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(gort_wait(&p, NULL), 7);
    CHECK_EQ(gort_kill(&p, SIGTERM), -ESRCH);
    p = start("exec sleep 100", GORT_NULL, GORT_NULL, GORT_NULL);
    CHECK_EQ(gort_wait_until(&p, NULL, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_wait_until(&p, NULL, GORT_TRY), -EAGAIN);
    CHECK_EQ(gort_kill(&p, SIGTERM), 0);
    CHECK_EQ(gort_wait(&p, NULL), 128 + SIGTERM);
}

TEST_GO(statuses, .procs = "1,2", .native = TEST_FORKS)
{
    check_statuses();
}

TEST_GO(statuses_without_pidfd, .procs = "1,2", .native = TEST_FORKS)
{
    gort__os_force.no_pidfd = true;
    check_statuses();
}

TEST_GO(pipes_to_a_child, .procs = "1,2", .fuzz = true, .native = TEST_FORKS)
{
    char buf[64] = "";
    gort_process p = start("tr a-z A-Z; echo problem >&2", GORT_PIPE, GORT_PIPE, GORT_PIPE);
    CHECK_EQ(gort_write_all(p.in, "hello", 5), 5);
    CHECK_EQ(gort_close(p.in), 0);
    CHECK_EQ(gort_read_full(p.out, buf, sizeof buf - 1), 5);
    CHECK_STR(buf, "HELLO");
    CHECK_EQ(gort_read_full(p.err, buf, sizeof buf - 1), 8);
    CHECK_EQ(gort_wait(&p, NULL), 0);
    CHECK_EQ(gort_close(p.out), 0);
    CHECK_EQ(gort_close(p.err), 0);
    p = start("echo out; echo err >&2", GORT_NULL, GORT_PIPE, GORT_SAME);
    CHECK_EQ(gort_read_full(p.out, buf, sizeof buf), 8);
    CHECK_EQ(memcmp(buf, "out\nerr\n", 8), 0);
    CHECK_EQ(p.in, -1);
    CHECK_EQ(gort_wait(&p, NULL), 0);
    CHECK_EQ(gort_close(p.out), 0);
}

TEST_GO(no_such_program, .native = TEST_FORKS)
{
    if (test_under_valgrind())
        SKIP("not under valgrind: its vfork is a fork, which cannot report what goes wrong before the exec");
    gort_process p;
    char *argv[] = {"gort-no-such-program", NULL};
    gort_command c = {.file = argv[0], .argv = argv, .in = GORT_PIPE, .out = GORT_PIPE};
    enum { TIMES = 50 };
    int before = test_fd_count();
    for (int i = 0; i < TIMES; i++)
        CHECK_EQ(gort_spawn(&p, &c), -ENOENT);
    CHECK_LT(test_fd_count(), before + TIMES); /* the runtime may have opened some of its own meanwhile */
    CHECK_EQ(gort_spawn(&p, &(gort_command){0}), -EINVAL);
    CHECK_EQ(
        gort_spawn(&p,
                   &(gort_command){.file = "true", .argv = (char *[]){"true", NULL}, .reserved = {[3] = 1}}),
        -EINVAL);
}

/* A child gets 0, 1, 2 and what is not close-on-exec; default signals; its directory and environment. */
TEST_GO(what_a_child_inherits, .native = TEST_FORKS)
{
    char buf[512] = "", *envp[] = {"GREETING=hello", "PATH=/bin:/usr/bin", NULL};
    char *argv[] = {"sh", "-c",
                    "pwd; echo $GREETING; grep SigIgn /proc/self/status; ls /proc/self/fd | wc -l", NULL};
    gort_command c = {
        .file = "sh", .argv = argv, .envp = envp, .dir = "/", .in = GORT_NULL, .out = GORT_PIPE};
    gort_process p;
    int listener = gort_listen("tcp", "127.0.0.1:0");
    CHECK_GE(listener, 0);
    CHECK_EQ(gort_spawn(&p, &c), 0);
    CHECK_GT(gort_read_full(p.out, buf, sizeof buf - 1), 0);
    CHECK_EQ(gort_wait(&p, NULL), 0);
    CHECK(strncmp(buf, "/\nhello\nSigIgn:", 15) == 0);
    CHECK_EQ(gort_close(p.out), 0);
    CHECK_EQ(gort_close(listener), 0);
}

/* Sleeps of gort's own threads are precise; those of a child end as they would without gort. */
static long slack_of(pid_t pid)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof path, "/proc/%d/timerslack_ns", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        SKIP("needs a kernel that tells the timer slack of a process (/proc/PID/timerslack_ns, Linux 4.6)");
    close(fd);
    return atol(text);
}

static void check_slack(void)
{
    gort_process p = start("read line", GORT_PIPE, GORT_NULL, GORT_NULL);
    CHECK_EQ(slack_of(p.pid), 12345);
    CHECK_EQ(gort_close(p.in), 0);
    CHECK_EQ(gort_wait(&p, NULL), 1);
}

static void *check_slack_of_thread(void *unused)
{
    check_slack();
    return unused;
}

static int check_slacks(void *unused)
{
    int ends[2];
    char byte;
    pthread_t thread;
    (void)unused;
    for (int i = 0; i < 3; i++)
        check_slack();
    CHECK_EQ(prctl(PR_GET_TIMERSLACK), 1);
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        if (read(ends[0], &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    while (slack_of(pid) == 1) /* it has not got that far */
        usleep(100);
    CHECK_EQ(slack_of(pid), 12345);
    close(ends[0]);
    close(ends[1]);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    gort_block_enter();
    prctl(PR_SET_TIMERSLACK, 12345UL);
    CHECK_EQ(pthread_create(&thread, NULL, check_slack_of_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    gort_block_leave();
    return 0;
}

TEST(the_timer_slack_of_children, .procs = "1,2", .native = TEST_FORKS)
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("only natively, without sanitizers: the tools have a timer slack of their own");
    CHECK_EQ(prctl(PR_SET_TIMERSLACK, 12345UL), 0);
    CHECK_EQ(gort_run(check_slacks, NULL), 0);
    CHECK_EQ(prctl(PR_GET_TIMERSLACK), 12345);
}

/* --- processes that are none -------------------------------------------------------------------- */

static atomic_int strays; /* signals that reached us instead of a child */

static void on_stray(int signo)
{
    (void)signo;
    atomic_fetch_add(&strays, 1);
}

static void refuses(gort_process *p)
{
    int status = 12345;
    CHECK_EQ(gort_kill(p, SIGUSR1), -ESRCH);
    CHECK_EQ(gort_kill(p, 0), -ESRCH);
    CHECK_EQ(gort_wait(p, &status), -ECHILD);
    CHECK_EQ(gort_wait_until(p, &status, GORT_TRY), -ECHILD);
    CHECK_EQ(status, 12345);
}

/* Process id 0 is "my whole process group" to kill, and fd 0 is no pidfd. */
TEST_GO(one_that_was_never_started_is_refused, .native = TEST_FORKS)
{
    CHECK(getpgrp() == getpid() || setpgid(0, 0) == 0); /* the group that must not be hit is ours alone */
    signal(SIGUSR1, on_stray);
    gort_process zero = {0}, p;
    refuses(&zero);
    CHECK_EQ(gort_spawn(&p, &(gort_command){0}), -EINVAL);
    refuses(&p);
    char *argv[] = {"/", NULL};
    gort_command c = {.file = argv[0], .argv = argv, .in = GORT_PIPE, .out = 12345};
    CHECK_LT(gort_spawn(&p, &c), 0); /* no such fd */
    refuses(&p);
    CHECK_EQ(p.in, -1);
    CHECK_EQ(p.out, -1);
    CHECK_EQ(atomic_load(&strays), 0);
}

/* Its number may be another process's as soon as anybody has reaped it. */
static void check_reaped_elsewhere(void)
{
    enum { TIMES = 20 };
    int before = 0;
    for (int i = 0; i < TIMES; i++) {
        if (i == 1)
            before = test_fd_count(); /* what the first one made the runtime open stays */
        gort_process p = start("exit 3", GORT_NULL, GORT_NULL, GORT_NULL);
        pid_t got;
        while ((got = waitpid(p.pid, NULL, 0)) < 0 && errno == EINTR)
            ;
        CHECK_EQ(got, p.pid);
        CHECK_EQ(gort_kill(&p, SIGKILL), -ESRCH);
        refuses(&p);
    }
    CHECK_LT(test_fd_count(), before + TIMES / 2);
}

TEST_GO(reaped_by_somebody_else, .procs = "1,2", .native = TEST_FORKS)
{
    check_reaped_elsewhere();
}

TEST_GO(reaped_by_somebody_else_without_pidfd, .native = TEST_FORKS)
{
    gort__os_force.no_pidfd = true;
    check_reaped_elsewhere();
}

static atomic_long ended;

static void run_one(int i)
{
    char script[32], buf[16] = "";
    snprintf(script, sizeof script, "echo %d; exit %d", i, i);
    gort_process p = start(script, GORT_NULL, GORT_PIPE, GORT_INHERIT);
    CHECK_GT(gort_read_full(p.out, buf, sizeof buf - 1), 0);
    CHECK_EQ(atoi(buf), i);
    CHECK_EQ(gort_wait(&p, NULL), i);
    CHECK_EQ(gort_close(p.out), 0);
    atomic_fetch_add(&ended, 1);
}

TEST_GO(many_at_once, .procs = "1,4", .fuzz = true, .native = TEST_FORKS)
{
    long n = test_scaled(40, 8);
    for (int i = 0; i < n; i++)
        CHECK_EQ(GORT_GO(run_one, i), 0);
    await(&ended, n);
    settle();
}
