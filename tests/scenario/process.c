/* SPDX-License-Identifier: MIT */
/*
 * process.c - child processes: pipes to them, their end, what they inherit.
 */
#include <signal.h>
#include <sys/wait.h>

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

TEST_GO(statuses, .procs = "1,2")
{
    check_statuses();
}

TEST_GO(statuses_without_pidfd, .procs = "1,2")
{
    gort__os_force.no_pidfd = true;
    check_statuses();
}

TEST_GO(pipes_to_a_child, .procs = "1,2", .fuzz = true)
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

TEST_GO(no_such_program)
{
    if (test_under_emulator() || test_under_valgrind())
        SKIP("their vfork is a fork: what goes wrong before the exec is not told");
    gort_process p;
    char *argv[] = {"gort-no-such-program", NULL};
    gort_command c = {.file = argv[0], .argv = argv, .in = GORT_PIPE, .out = GORT_PIPE};
    enum { TIMES = 50 };
    int before = test_fd_count();
    for (int i = 0; i < TIMES; i++)
        CHECK_EQ(gort_spawn(&p, &c), -ENOENT);
    CHECK_LT(test_fd_count(), before + TIMES); /* the runtime may have opened some of its own meanwhile */
    CHECK_EQ(gort_spawn(&p, &(gort_command){0}), -EINVAL);
}

/* A child gets 0, 1, 2 and what is not close-on-exec; default signals; its directory and environment. */
TEST_GO(what_a_child_inherits)
{
    char buf[512] = "", *envp[] = {"GREETING=hello", "PATH=/bin:/usr/bin", NULL};
    char *argv[] = {"sh", "-c",
                    "pwd; echo $GREETING; grep SigIgn /proc/self/status; ls /proc/self/fd | wc -l", NULL};
    gort_command c = {
        .file = "sh", .argv = argv, .envp = envp, .dir = "/", .in = GORT_NULL, .out = GORT_PIPE};
    gort_process p;
    int listener = gort_listen("tcp", "127.0.0.1:0");
    CHECK_GE(listener, 0);
    if (test_under_emulator())
        SKIP("the emulator has fds of its own");
    CHECK_EQ(gort_spawn(&p, &c), 0);
    CHECK_GT(gort_read_full(p.out, buf, sizeof buf - 1), 0);
    CHECK_EQ(gort_wait(&p, NULL), 0);
    CHECK(strncmp(buf, "/\nhello\nSigIgn:", 15) == 0);
    CHECK_EQ(gort_close(p.out), 0);
    CHECK_EQ(gort_close(listener), 0);
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

TEST_GO(many_at_once, .procs = "1,4", .fuzz = true)
{
    long n = test_scaled(40, 8);
    for (int i = 0; i < n; i++)
        CHECK_EQ(GORT_GO(run_one, i), 0);
    await(&ended, n);
    settle();
}
