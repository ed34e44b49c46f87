/* SPDX-License-Identifier: MIT */
/*
 * sandbox.c - each system call in turn is refused by a real seccomp filter, as EPERM and as ENOSYS, from the
 * start of the process and in the middle of a run. A program that uses a bit of everything must come to its
 * right end; or, without a call that gort needs, to an error or one clear line. It must never hang and never
 * call it an internal error. docs/SANDBOX.md has the list.
 * Covers: src/os/linux/init.c src/os/linux/barrier.c src/os/linux/epoll.c src/os/linux/task.c src/os/linux/thread.c
 * Covers: src/os/linux/vm.c
 *
 * Each trial is a forked child, which makes its report in shared memory: it may be unable to write. Most of a
 * trial is waiting, so several processes share the trials of a case.
 */
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "netting.h"
#include "sandbox.h"

#define MOST SANDBOX_MOST

enum needs {
    FREE,  /* the program ends as it would without the sandbox */
    NEEDED /* or with an error, or a line that says what is refused */
};

struct trial {
    const char *name;
    enum needs needs;
    int calls[MOST];                  /* ended by 0 */
    const char *says, *says_at_start; /* what standard error must hold; NULL: nothing special */
    const char *libc_says; /* libc needs it as well, and ends the program like this; NULL: it does not */
    bool no_preemption;    /* goroutines that compute may keep their P */
    bool mute;             /* the program cannot even say why it ends */
    bool only_at_start;    /* libc itself does not survive it later */
};

static struct {
    atomic_int step;     /* how far the program has come */
    atomic_int finished; /* it has come to its end; */
    atomic_int result;   /* and gort_run has returned this */
} * report;

static const struct trial *trial;
static int refuse_with;

/* --- a bit of everything ------------------------------------------------------------------------ */

#define STEP(x)                                                                                              \
    do {                                                                                                     \
        atomic_store(&report->step, __LINE__);                                                               \
        if (!(x))                                                                                            \
            return 1;                                                                                        \
    } while (0)
/* A call of the kernel that the program itself has made: if that is what is refused, it is not gort's
 * fault. */
#define STEP_OR_ERROR(n, right)                                                                              \
    do {                                                                                                     \
        atomic_store(&report->step, __LINE__);                                                               \
        long test_n_ = (long)(n);                                                                            \
        if (test_n_ < 0 && trial->needs == NEEDED)                                                           \
            return 2;                                                                                        \
        if (test_n_ != (right))                                                                              \
            return 1;                                                                                        \
    } while (0)

static atomic_bool hog_may_end, late, unwritten;
static atomic_int hogs; /* that have begun */

/* Time in which it has run: what is longer than a millisecond between two looks at the clock is time without
 * a CPU, or one in which the whole machine stood still, and tells nothing about gort. */
static void hog(void *arg)
{
    int64_t left = trial->no_preemption ? GORT_SEC / 4 : test_seconds(5), last = gort_now();
    atomic_fetch_add(&hogs, 1);
    while (!atomic_load(&hog_may_end)) {
        int64_t now = gort_now(), ns = now - last;
        last = now;
        left -= ns < GORT_MS ? ns : GORT_MS;
        if (left < 0) {
            atomic_store(&late, true);
            break;
        }
    }
    (void)arg;
}

static void sends(gort_chan *ch, int n)
{
    for (int i = 1; i <= n; i++)
        gort_chan_send(ch, &i);
    gort_chan_close(ch);
}

static void writes_later(int fd, int ms)
{
    gort_sleep(ms * GORT_MS);
    if (gort_write_all(fd, "hello", 5) != 5) {
        atomic_store(&unwritten, true);
        gort_close(fd);
    }
}

/* What it writes. */
static ssize_t read_hello(int fd)
{
    char buf[5];
    ssize_t got = gort_read_full(fd, buf, 5);
    return got == 0 && atomic_load(&unwritten) ? -refuse_with : got;
}

static int channels(void)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 3);
    int v, sum = 0;
    STEP(ch);
    STEP_OR_ERROR(GORT_GO(sends, ch, 100), 0);
    while (gort_chan_recv(ch, &v) == 1)
        sum += v;
    STEP(sum == 5050);
    gort_chan_unref(ch);
    return 0;
}

/* Two hogs on at most two Ps: the caller goes on only if one of them is made to stop. */
static int preemption(void)
{
    gort_wg wg = {0};
    atomic_store(&hog_may_end, false);
    atomic_store(&hogs, 0);
    for (int i = 0; i < 2; i++)
        STEP_OR_ERROR(gort_wg_go(&wg, hog, NULL), 0);
    while (atomic_load(&hogs) < 2)
        gort_yield(); /* to a hog, and with the second one nobody else has a P */
    atomic_store(&hog_may_end, true);
    STEP(gort_wg_wait(&wg) == 0);
    STEP(!atomic_load(&late) || trial->no_preemption);
    atomic_store(&late, false);
    return 0;
}

static void ticks(void *fired)
{
    atomic_fetch_add((atomic_int *)fired, 1);
}

static int times(void)
{
    static atomic_int fired;
    atomic_store(&fired, 0);
    gort_timer *timer = gort_timer_new(GORT_MS, GORT_MS, ticks, &fired);
    STEP(timer);
    int64_t before = gort_now();
    STEP(gort_sleep(3 * GORT_MS) == 0 && gort_now() - before >= 3 * GORT_MS);
    while (atomic_load(&fired) < 2)
        STEP(gort_sleep(GORT_MS) == 0);
    gort_timer_reset(timer, 1000 * GORT_SEC, 0);
    gort_timer_free(timer);
    return 0;
}

static int pipes(bool blocking)
{
    int ends[2];
    char buf[8];
    STEP_OR_ERROR(blocking ? (pipe(ends) ? -errno : 0) : gort_pipe(ends), 0);
    STEP_OR_ERROR(GORT_GO(writes_later, ends[1], 2), 0);
    STEP_OR_ERROR(read_hello(ends[0]), 5);
    STEP_OR_ERROR(gort_write(ends[1], "x", 1), 1);
    STEP(gort_read(ends[0], buf, sizeof buf) == 1);
    struct iovec iov[2] = {{buf, 1}, {buf + 1, 1}};
    STEP_OR_ERROR(gort_writev(ends[1], iov, 2), 2);
    STEP_OR_ERROR(gort_readv(ends[0], iov, 2), 2);
    STEP(gort_read_until(ends[0], buf, 1, gort_in(GORT_MS)) == -ETIMEDOUT);
    STEP_OR_ERROR(gort_close(ends[0]), 0);
    STEP_OR_ERROR(gort_close(ends[1]), 0);
    return 0;
}

/* From a to b, in each way there is. */
static int messages(int a, int b)
{
    char buf[8];
    struct iovec iov = {buf, 4};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    STEP_OR_ERROR(gort_sendto(a, "x", 1, 0, NULL, 0), 1);
    STEP_OR_ERROR(gort_recvfrom(b, buf, sizeof buf, 0, NULL, NULL), 1);
    STEP_OR_ERROR(gort_sendmsg(a, &msg, 0), 4);
    STEP_OR_ERROR(gort_recvmsg(b, &msg, 0), 4);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    STEP_OR_ERROR(fd < 0 ? -errno : 0, 0);
    STEP_OR_ERROR(gort_sendfile(a, fd, NULL, 4), 4);
    STEP_OR_ERROR(gort_read_full(b, buf, 4), 4);
    STEP_OR_ERROR(gort_shutdown(a, SHUT_WR), 0);
    STEP_OR_ERROR(gort_read(b, buf, 1), 0);
    STEP_OR_ERROR(gort_close(fd), 0);
    return 0;
}

static int sockets(void)
{
    char addr[64];
    int listener = gort_listen("tcp", "127.0.0.1:0");
    STEP_OR_ERROR(listener < 0 ? listener : 0, 0);
    STEP_OR_ERROR(gort_local_addr(listener, addr, sizeof addr) > 0 ? 0 : -refuse_with, 0);
    int a = gort_dial("tcp", addr);
    STEP_OR_ERROR(a < 0 ? a : 0, 0);
    int b = gort_accept(listener);
    STEP_OR_ERROR(b < 0 ? b : 0, 0);
    STEP_OR_ERROR(GORT_GO(writes_later, a, 2), 0);
    STEP_OR_ERROR(read_hello(b), 5);
    int ready = gort_wait_fd(b, GORT_WRITE, GORT_FOREVER);
    STEP_OR_ERROR(ready < 0 ? ready : 0, 0);
    int err = messages(a, b);
    if (err)
        return err;
    STEP_OR_ERROR(gort_close(a), 0);
    STEP_OR_ERROR(gort_close(b), 0);
    STEP_OR_ERROR(gort_close(listener), 0);
    return 0;
}

static int files(void)
{
    char buf[4];
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    STEP_OR_ERROR(fd < 0 ? -errno : 0, 0);
    STEP_OR_ERROR(gort_read(fd, buf, 4), 4);
    STEP(memcmp(buf, "\177ELF", 4) == 0);
    STEP_OR_ERROR(gort_close(fd), 0);
    return 0;
}

/* The child is in the sandbox, too, and may not even come to its main. If it cannot be killed it ends after us: its input does. */
static int children(void)
{
    gort_process p;
    char *argv[] = {"cat", NULL};
    gort_command c = {.file = "cat", .argv = argv, .in = GORT_PIPE, .out = GORT_NULL, .err = GORT_NULL};
    int err = gort_spawn(&p, &c);
    STEP_OR_ERROR(err, 0);
    STEP_OR_ERROR(gort_kill(&p, SIGKILL), 0);
    STEP_OR_ERROR(gort_wait_until(&p, NULL, soon()) < 0 ? -refuse_with : 0, 0);
    STEP(gort_kill(&p, SIGKILL) == -ESRCH);
    STEP_OR_ERROR(gort_close(p.in), 0);
    return 0;
}

static int blocks(void)
{
    gort_block_enter();
    usleep(1000);
    gort_block_leave();
    usleep(30000); /* unannounced: others take the P */
    STEP(gort_world_stop() == 0 || trial->no_preemption);
    STEP(gort_world_start() == 0 || trial->no_preemption);
    return 0;
}

static int everything(void)
{
    int err = channels();
    err = err ? err : preemption();
    err = err ? err : times();
    err = err ? err : pipes(false);
    err = err ? err : pipes(true);
    err = err ? err : sockets();
    err = err ? err : files();
    err = err ? err : children();
    err = err ? err : blocks();
    return err;
}

static int from_the_start(void *unused)
{
    (void)unused;
    return everything();
}

static int in_the_middle(void *unused)
{
    static const struct trial none;
    const struct trial *now = trial;
    (void)unused;
    trial = &none;
    int err = everything();
    trial = now;
    if (err)
        return 50 + err;
    if (sandbox_close(trial->calls, refuse_with, true) != 0)
        return 60;
    err = everything();
    return err ? err : everything();
}

/* --- a trial ------------------------------------------------------------------------------------ */

static void child(bool middle)
{
    alarm((unsigned)(test_seconds(20) / GORT_SEC));
    if (!middle && sandbox_close(trial->calls, refuse_with, false) != 0)
        _exit(99);
    int result = gort_run(middle ? in_the_middle : from_the_start, NULL);
    atomic_store(&report->result, result);
    atomic_store(&report->finished, 1);
    _exit(0);
}

/* What the child says until it ends. */
static void gather(int fd, char *text, size_t size)
{
    size_t n = 0;
    for (ssize_t got; (got = read(fd, text + n, size - 1 - n)) > 0 || (got < 0 && errno == EINTR);)
        n += got > 0 ? (size_t)got : 0;
    text[n] = '\0';
}

static int wrong; /* trials */

#define EXPECT(cond, ...)                                                                                    \
    do {                                                                                                     \
        if (!(cond)) {                                                                                       \
            test_log(__VA_ARGS__);                                                                           \
            wrong++;                                                                                         \
            return;                                                                                          \
        }                                                                                                    \
    } while (0)

static void try(const struct trial *t, int err, bool middle)
{
    static char text[1 << 16];
    char what[160];
    int ends[2], status;
    trial = t;
    refuse_with = err;
    memset(report, 0, sizeof *report);
    snprintf(what, sizeof what, "%s, errno %d, %s", t->name, err,
             middle ? "during the run" : "from the start");
    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    CHECK_GE(pid, 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        child(middle);
    }
    close(ends[1]);
    gather(ends[0], text, sizeof text);
    close(ends[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    int step = atomic_load(&report->step), result = atomic_load(&report->result);
    EXPECT(!strstr(text, "internal error"), "%s: line %d: %s", what, step, text);
    EXPECT(!WIFSIGNALED(status) || WTERMSIG(status) != SIGALRM, "%s: hangs at line %d: %s", what, step, text);
    const char *says = t->says ? t->says : middle ? NULL : t->says_at_start;
    if (says)
        EXPECT(strstr(text, says), "%s: does not say '%s' but: %s", what, says, text);
    bool right = atomic_load(&report->finished) && result == 0;
    if (t->needs == NEEDED)
        right |= atomic_load(&report->finished) && (result == -err || result == 2 || result < 0);
    if (t->needs == NEEDED &&
        WIFSIGNALED(status)) /* without gettid or tgkill abort ends otherwise than by SIGABRT */
        right |= t->mute || strstr(text, "is refused (errno") || (t->libc_says && strstr(text, t->libc_says));
    EXPECT(right, "%s: status %#x, result %d, line %d: %s", what, (unsigned)status, result, step, text);
    int lines = 0;
    for (const char *at = text; (at = strstr(at, "is refused (errno")) != NULL; at++)
        lines++;
    EXPECT(lines <= MOST, "%s: says it %d times: %s", what, lines, text);
}

/* Numbers that not every processor has; the list of calls ends at 0. */
#ifdef SYS_dup2
#define SYS_DUP2 SYS_dup2
#else
#define SYS_DUP2 0
#endif

#define C(call) .name = #call, .calls = {SYS_##call}
#define WANTED  "is refused (errno"
static const struct trial trials[] = {
    /* Can do without. */
    {C(sched_setaffinity)},
    {C(sched_getaffinity)},
    {C(sched_yield)},
    {C(prctl)},
    {C(getrusage)},
    {C(getuid)},
    {C(timerfd_create)},
    {C(timerfd_settime)},
#ifdef SYS_poll
    {C(ppoll)},
#else
    {C(ppoll), .needs = NEEDED},
#endif
    {C(epoll_pwait2)},
    {C(pidfd_open)},
    {C(pidfd_send_signal)},
    {C(waitid)},
    {C(process_madvise)},
    {C(process_vm_readv)},
    {C(mincore)},
    {C(mlock2)},
    {C(madvise)},
    {C(clock_gettime)},
    {C(pread64)},
    {C(ioctl)},
    {C(setsockopt), .needs = NEEDED},
    {C(getsockopt), .needs = NEEDED},
    {C(clock_nanosleep)},
    {C(prlimit64)},
    {C(set_robust_list)},
    {C(brk)},
    {C(rt_sigprocmask)},
    {C(exit_group)}, /* after the end of main */
#ifdef SYS_vfork
    {C(vfork)},
#endif
    {C(timer_delete)},
    {C(timer_settime)},
    {C(getpeername), .needs = NEEDED},
    {C(fcntl), .needs = NEEDED},
    {C(tgkill)},
    {C(rt_tgsigqueueinfo)},
    /* Wants: something is lost, and said. */
    {C(membarrier), .says = "membarrier " WANTED},
    {C(timer_create), .says_at_start = "timer_create " WANTED},
    {C(preadv2), .says = "preadv2 " WANTED},
    {C(pwritev2), .says = "pwritev2 " WANTED},
    {.name = "timers and rt_tgsigqueueinfo",
     .calls = {SYS_timer_create, SYS_timer_settime, SYS_rt_tgsigqueueinfo},
     .says_at_start = "timer_create " WANTED},
    {.name = "no signals at all",
     .calls = {SYS_timer_create, SYS_timer_settime, SYS_rt_tgsigqueueinfo, SYS_tgkill},
     .says = "cannot preempt every goroutine",
     .no_preemption = true},
    {.name = "membarrier and sched_setaffinity",
     .calls = {SYS_membarrier, SYS_sched_setaffinity},
     .says = "membarrier " WANTED},
    {.name = "ppoll and epoll_pwait2", .calls = {SYS_ppoll, SYS_epoll_pwait2}},
    {.name = "waitid, pidfd_open", .calls = {SYS_waitid, SYS_pidfd_open}},
    /* Needs. */
    {C(epoll_create1), .needs = NEEDED},
    {C(epoll_ctl), .needs = NEEDED},
    {C(epoll_pwait), .needs = NEEDED},
    {C(eventfd2), .needs = NEEDED},
    {C(sigaltstack), .needs = NEEDED},
    {C(rt_sigaction), .needs = NEEDED, .no_preemption = true},
    {C(gettid), .needs = NEEDED, .only_at_start = true},
    {C(getpid), .needs = NEEDED},
    {C(futex), .needs = NEEDED, .libc_says = "The futex facility returned an unexpected error code"},
    {C(munmap), .needs = NEEDED, .mute = true}, /* libc aborts if it cannot give back a thread's stack */
    {C(rseq), .needs = NEEDED, .libc_says = "rseq registration failed"},
    {.name = "read", .needs = NEEDED, .calls = {SANDBOX_READ}},
    {C(write), .needs = NEEDED, .mute = true},
    {C(close), .needs = NEEDED},
    {C(readv), .needs = NEEDED},
    {C(writev), .needs = NEEDED},
    {C(sendto), .needs = NEEDED},
    {C(recvfrom), .needs = NEEDED},
    {C(sendmsg), .needs = NEEDED},
    {C(recvmsg), .needs = NEEDED},
    {C(sendfile), .needs = NEEDED},
    {C(shutdown), .needs = NEEDED},
    {.name = "fstat", .needs = NEEDED, .calls = {SYS_fstat, SYS_newfstatat}},
    {C(kill), .needs = NEEDED},
    {.name = "kill and pidfd_send_signal", .needs = NEEDED, .calls = {SYS_kill, SYS_pidfd_send_signal}},
    {.name = "dup2", .needs = NEEDED, .calls = {SYS_dup3, SYS_DUP2}},
    {C(execve), .needs = NEEDED},
    /* Without a new thread, which libc needs them for, hogs may have all there are. */
    {C(mmap), .needs = NEEDED, .no_preemption = true},
    {C(mprotect), .needs = NEEDED, .no_preemption = true},
    {C(openat), .needs = NEEDED},
    {C(pipe2), .needs = NEEDED},
    {C(socket), .needs = NEEDED},
    {C(bind), .needs = NEEDED},
    {C(listen), .needs = NEEDED},
    {C(connect), .needs = NEEDED},
    {C(accept4), .needs = NEEDED},
    {C(getsockname), .needs = NEEDED},
    {C(wait4), .needs = NEEDED},
    {.name = "clone",
     .needs = NEEDED,
     .no_preemption = true, /* it takes a thread more than there are hogs */
     .calls = {SYS_clone, SYS_clone3}},
#ifdef SYS_epoll_wait
    {C(epoll_wait), .needs = NEEDED},
#endif
#ifdef SYS_poll
    {C(poll), .needs = NEEDED},
    {.name = "poll and ppoll", .needs = NEEDED, .calls = {SYS_poll, SYS_ppoll, SYS_epoll_pwait2}},
#endif
};

/* The trials in four parts: each case has its time, also on a busy machine. */
enum which { OPTIONAL, OPTIONAL_TOO, REQUIRED, REQUIRED_TOO };

static enum which part_of(size_t i)
{
    return (trials[i].needs == NEEDED ? REQUIRED : OPTIONAL) + i % 2;
}

#define WORKERS 4

/* Every WORKERS'th trial of those that are wanted. 0: all was right. */
static int try_share(int err, bool middle, enum which which, int worker)
{
    int turn = 0;
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(report != MAP_FAILED);
    const char *only = getenv("SANDBOX_ONLY"); /* for whoever looks for the reason of a failure */
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++)
        if ((!middle || !trials[i].only_at_start) && which == part_of(i) &&
            (!only || strcmp(only, trials[i].name) == 0) && turn++ % WORKERS == worker)
            try(&trials[i], err, middle);
    return wrong; /* all of them are tried first */
}

static void try_all(int err, bool middle, enum which which)
{
    pid_t workers[WORKERS];
    sandbox_begin();
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = fork();
        CHECK_GE(workers[i], 0);
        if (workers[i] == 0)
            _exit(try_share(err, middle, which, i) ? 1 : 0);
    }
    int failed = 0, status;
    for (int i = 0; i < WORKERS; i++) {
        CHECK_EQ(waitpid(workers[i], &status, 0), workers[i]);
        failed += status != 0;
    }
    CHECK_EQ(failed, 0);
}

TEST(eperm_from_the_start_what_is_optional, .procs = "1,2")
{
    try_all(EPERM, false, OPTIONAL);
}

TEST(eperm_from_the_start_what_else_is_optional, .procs = "1,2")
{
    try_all(EPERM, false, OPTIONAL_TOO);
}

TEST(eperm_from_the_start_what_is_required, .procs = "1,2")
{
    try_all(EPERM, false, REQUIRED);
}

TEST(eperm_from_the_start_what_else_is_required, .procs = "1,2")
{
    try_all(EPERM, false, REQUIRED_TOO);
}

TEST(enosys_from_the_start_what_is_optional, .procs = "1,2")
{
    try_all(ENOSYS, false, OPTIONAL);
}

TEST(enosys_from_the_start_what_else_is_optional, .procs = "1,2")
{
    try_all(ENOSYS, false, OPTIONAL_TOO);
}

TEST(enosys_from_the_start_what_is_required, .procs = "1,2")
{
    try_all(ENOSYS, false, REQUIRED);
}

TEST(enosys_from_the_start_what_else_is_required, .procs = "1,2")
{
    try_all(ENOSYS, false, REQUIRED_TOO);
}

TEST(eperm_during_the_run_what_is_optional, .procs = "1,2")
{
    try_all(EPERM, true, OPTIONAL);
}

TEST(eperm_during_the_run_what_else_is_optional, .procs = "1,2")
{
    try_all(EPERM, true, OPTIONAL_TOO);
}

TEST(eperm_during_the_run_what_is_required, .procs = "1,2")
{
    try_all(EPERM, true, REQUIRED);
}

TEST(eperm_during_the_run_what_else_is_required, .procs = "1,2")
{
    try_all(EPERM, true, REQUIRED_TOO);
}

TEST(enosys_during_the_run_what_is_optional, .procs = "1,2")
{
    try_all(ENOSYS, true, OPTIONAL);
}

TEST(enosys_during_the_run_what_else_is_optional, .procs = "1,2")
{
    try_all(ENOSYS, true, OPTIONAL_TOO);
}

TEST(enosys_during_the_run_what_is_required, .procs = "1,2")
{
    try_all(ENOSYS, true, REQUIRED);
}

TEST(enosys_during_the_run_what_else_is_required, .procs = "1,2")
{
    try_all(ENOSYS, true, REQUIRED_TOO);
}

TEST(eacces_during_the_run_what_is_optional)
{
    try_all(EACCES, true, OPTIONAL);
}

TEST(eacces_during_the_run_what_else_is_optional)
{
    try_all(EACCES, true, OPTIONAL_TOO);
}

TEST(eacces_during_the_run_what_is_required)
{
    try_all(EACCES, true, REQUIRED);
}

TEST(eacces_during_the_run_what_else_is_required)
{
    try_all(EACCES, true, REQUIRED_TOO);
}
