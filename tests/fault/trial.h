/* SPDX-License-Identifier: MIT */
/*
 * trial.h - an operation, with the k-th call of the kernel beneath it failing, for every k.
 *
 * An operation is a function that does something with the public calls, cleans up whatever happens, and
 * returns 0 or the first error. For each kind of fault and each k a forked child, in which nothing has been
 * cached yet, tries it in the middle of a run, or with the start of the run included. What must hold:
 *     - the result is 0 or the error that was injected (not that of anything else, and nothing hangs);
 *     - the operation works when it is done again, in the same run and in a new one;
 *     - no goroutine, fd or thread is left, and error paths that are taken again and again do not add up memory.
 */
#ifndef GORT_TEST_TRIAL_H
#define GORT_TEST_TRIAL_H

#include <gort.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"
#include "sched/life/life.h"
#include "test.h"

#define NOT_FIRED 10
#define CHILD_MAX 30               /* seconds, as test_seconds() counts them */
#define LONG      test_seconds(20) /* a deadline that is not reached: it is there to need an alarm */

/* --- the harness ------------------------------------------------------------------------------ */

typedef int op_fn(void);

static struct {
    op_fn *op;
    int kind;
    long k;
    bool from_start, fired;
    int result;
    const gort_config *config; /* of the runs; NULL: the default */
} trial;

/* Whether a call may fail like this because of the fault. What is only a help, or comes again, must not show
 * at all. */
static bool may_return(int kind, int err, bool starting)
{
    switch (kind) {
    case FAULT_ADVISE:
    case FAULT_CPU_TIMER:
    case FAULT_INTERRUPT:
    case FAULT_SHORT:
        return err == 0;
    case FAULT_THREAD:
        return err == 0 || (starting && err == -EAGAIN);
    case FAULT_KEY:
        return err == 0 || err == -EAGAIN || err == -ENOMEM;
    default:
        return err == 0 || err == -fault_error(kind);
    }
}

static void settle(void)
{
    for (int i = 0; gort_count() > 1; i++) {
        CHECK_MSG(i < 5000, "%zu goroutines are left", gort_count());
        gort_sleep(GORT_MS);
    }
}

static int main_with_fault(void *unused)
{
    (void)unused;
    settle();
    if (!trial.from_start)
        fault_at(trial.kind, trial.k);
    trial.result = trial.op();
    trial.fired |= fault_off();
    settle();
    CHECK_EQ(trial.op(), 0); /* the object, and everything else, is as good as before */
    settle();
    return trial.result;
}

static int main_without(void *unused)
{
    (void)unused;
    int err = trial.op();
    settle();
    return err;
}

static void on_alarm(int signo)
{
    (void)signo;
    fault_off();
    test_log("it hangs");
    gort_dump(2);
    _exit(3);
}

static bool alone(void *unused)
{
    (void)unused;
    return test_thread_count() == 1;
}

static void set_alarm(void)
{
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(test_seconds(CHILD_MAX) / GORT_SEC));
}

static int child(void)
{
    set_alarm();
    int fds = test_fd_count();
    if (trial.from_start)
        fault_at(trial.kind, trial.k);
    int got = gort_run_with(trial.config, main_with_fault, NULL);
    trial.fired |= fault_off();
    CHECK_MSG(may_return(trial.kind, got, trial.from_start), "the result is %d", got);
    CHECK(trial.fired || got == 0);
    CHECK_EQ(test_fd_count(), fds);
    if (!test_under_sanitizer()) /* TSan has a thread of its own */
        CHECK(test_eventually(alone, NULL, 10));
    long mapped = fault_mapped();
    CHECK_EQ(gort_run_with(trial.config, main_without, NULL), 0);
    CHECK_LE(fault_mapped(), mapped + (got ? 4 << 20 : 0));
    CHECK_EQ(test_fd_count(), fds);
    return trial.fired ? 0 : NOT_FIRED;
}

/* False: the k-th call did not happen. */
static bool try_one(const char *name, int kind, long k, bool from_start)
{
    trial.kind = kind;
    trial.k = k;
    trial.from_start = from_start;
    fflush(NULL);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0)
        exit(child());
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    CHECK_MSG(code == 0 || code == NOT_FIRED, "%s: %s number %ld%s: status 0x%x", name, fault_name(kind), k,
              from_start ? " from the start" : "", status);
    return code == 0;
}

static void try_all(const char *name, op_fn *op, long most, bool from_start)
{
    long tried = 0;
    trial.op = op;
    for (int kind = 0; kind < FAULT_COUNT; kind++)
        for (long k = 1; k <= most && try_one(name, kind, k, from_start); k++)
            tried++;
    test_log("%s: %ld faults", name, tried);
    CHECK_GT(tried, 0);
}

/* For .native: the process that forks the trials has one thread, but a trial may spawn. */
#define TRIALS_FORK "trials are forked, and some of them spawn: such a child can hang in qemu-user"

/* For operations that go on with the same calls for as long as they take, `most` is enough. */
#define FAULTS_UP_TO(most, name)                                                                             \
    static int name(void);                                                                                   \
    TEST(name, .procs = "1,2", .native = TRIALS_FORK)                                                        \
    {                                                                                                        \
        try_all(#name, name, most, false);                                                                   \
    }                                                                                                        \
    static int name(void)
#define FAULTS(name) FAULTS_UP_TO(60, name)

/* The first error counts. */
static inline int both(int a, int b)
{
    return a < 0 ? a : b;
}

static inline void nothing(void *unused)
{
    (void)unused;
}

static inline void close_both(const int ends[2])
{
    gort_close(ends[0]);
    gort_close(ends[1]);
}

/* Whether a call in the middle of a run failed because of the fault, which the rest of the operation is then
 * spared. Not -EAGAIN: GORT_TRY says so, and the runtime does not pass on that there is no thread. */
static inline bool refused(long got, int *err)
{
    if (got >= 0 || got == -EAGAIN || got != -fault_error(trial.kind) ||
        !may_return(trial.kind, (int)got, false))
        return false;
    *err = both(*err, (int)got);
    fault_off();
    return true;
}

/* A call that is made again when the fault hit it: it must have changed nothing. The error is kept in err, an
 * int. */
#define AGAIN(err, call)                                                                                     \
    __extension__({                                                                                          \
        long again_got = (long)(call);                                                                       \
        refused(again_got, &(err)) ? (long)(call) : again_got;                                               \
    })

/* -ETIMEDOUT is what the call is for; anything else is an error, success included. */
#define CHECK_TIMES_OUT(err, call) CHECK_EQ(AGAIN(err, call), -ETIMEDOUT)

/* Starts a goroutine that belongs to wg, with one more try. */
static inline int surely_go(gort_wg *wg, void (*fn)(void *), void *arg)
{
    int err = 0;
    CHECK_EQ(AGAIN(err, gort_wg_go(wg, fn, arg)), 0);
    return err;
}

/* --- nothing leaks ---------------------------------------------------------------------------- */

/*
 * From the k-th call on all fail, and the operation is tried again and again; then all work, and so on. What
 * an error path forgets to free adds up until a slab needs another chunk, or fds are left.
 */
static struct {
    op_fn *op;
    int kind;
    long k, rounds;
} leak;

/* How many threads there are is a matter of luck, and the record of each counts: m.c:record_bytes. */
static bool is_records(long bytes)
{
    long page = sysconf(_SC_PAGESIZE);
    long record = (64 << 10) + GORT_ALTSTACK + ((long)sizeof(struct gort__m) + page - 1) / page * page;
    return bytes % record == 0 && bytes / record <= 8;
}

static bool fail_often(long rounds)
{
    bool fired = false;
    for (long i = 0; i < rounds; i++) {
        fault_from(leak.kind, leak.k);
        int err = leak.op();
        fired |= fault_off();
        CHECK_MSG(err == 0 || may_return(leak.kind, err, false), "the result is %d", err);
        for (int n = 0; gort_count() > 1 && n < 100; n++)
            gort_yield();
    }
    settle();
    for (int i = 0; i < 5; i++)
        CHECK_EQ(leak.op(), 0);
    settle();
    return fired;
}

static int main_leak(void *unused)
{
    (void)unused;
    bool fired = fail_often(leak.rounds);
    if (!fired)
        return NOT_FIRED;
    /* Stacks come in large pieces, and small ones when memory is short: once there are enough, it is flat. */
    long more = 1;
    for (int i = 0; i < 3 && more > 0; i++) {
        long mapped = fault_mapped();
        fail_often(3 * leak.rounds);
        more = fault_mapped() - mapped;
        more = is_records(more) ? 0 : more;
    }
    CHECK_MSG(more <= 0, "%ld bytes more", more);
    return 0;
}

static bool leak_trial(const char *name)
{
    trial.kind = leak.kind;
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        set_alarm();
        int fds = test_fd_count(), got = gort_run(main_leak, NULL);
        CHECK_EQ(test_fd_count(), fds);
        exit(got);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    CHECK_MSG(code == 0 || code == NOT_FIRED, "%s: all %s from number %ld on: status 0x%x", name,
              fault_name(leak.kind), leak.k, status);
    return code == 0;
}

struct leak_op {
    const char *name;
    op_fn *op;
    long rounds;
};

static void try_leaks(const struct leak_op *ops, size_t count)
{
    static const int kinds[] = {FAULT_MAP,  FAULT_WATCH,  FAULT_POLLER, FAULT_SOCKET,
                                FAULT_PIPE, FAULT_OPTION, FAULT_SPAWN,  FAULT_LOOKUP};
    long tried = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; n < sizeof kinds / sizeof *kinds; n++) {
            leak.op = ops[i].op;
            leak.rounds = test_scaled(ops[i].rounds, 5);
            leak.kind = kinds[n];
            for (leak.k = 1; leak.k <= 4 && leak_trial(ops[i].name); leak.k++)
                tried++;
        }
    test_log("%ld combinations", tried);
    CHECK_GT(tried, 10);
}

/* The case for all of them: {name, operation, rounds}, ... */
#define NOTHING_LEAKS(...)                                                                                   \
    TEST(nothing_leaks, .env = "GORT_MAXPROCS=1", .native = TRIALS_FORK)                                     \
    {                                                                                                        \
        static const struct leak_op ops[] = {__VA_ARGS__};                                                   \
        try_leaks(ops, sizeof ops / sizeof *ops);                                                            \
    }

#endif
