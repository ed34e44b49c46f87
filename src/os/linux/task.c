/* SPDX-License-Identifier: MIT */
/*
 * task.c - looking at another thread of this process: its CPU clock, whether it sleeps, and a timer
 * on that clock.
 *
 * Why the raw calls: libc's timer_create may allocate, and its clock ids want a pthread_t that may be
 * gone. The kernel's ids are made of the thread's number.
 * The timer counts the CPU time of its thread: it expires only while the thread computes, and the
 * signal is raised on the way back to user mode. So it never interrupts a system call that waits.
 * Threads: any, arm in signal handlers too. errno is never changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/fmt.h"
#include "os/linux/init.h"
#include "os/os.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define SECOND INT64_C(1000000000)

/* The kernel's id of a thread's CPU clock: the complement of its number, "per thread", "as scheduled". */
static clockid_t cpu_clock(int tid)
{
    return (clockid_t)(~(unsigned)tid << 3 | 4 | 2);
}

int64_t gort__os_thread_cpu(int tid)
{
    struct timespec ts;
    int saved = errno;
    long err = syscall(SYS_clock_gettime, cpu_clock(tid), &ts);
    errno = saved;
    return err ? -1 : (int64_t)ts.tv_sec * SECOND + ts.tv_nsec;
}

/* Reads a file of the thread below /proc. The text ends with a zero. -1: it is gone. */
static ssize_t read_task(int tid, const char *name, char *text, size_t size)
{
    char path[64];
    gort__fmt(path, sizeof path, "/proc/self/task/%d/%s", tid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, size - 1);
    close(fd);
    if (n >= 0)
        text[n] = '\0';
    return n;
}

/*
 * The system call that a thread sleeps in, or "running": 4 us, 3 of them for opening the file; "stat" takes
 * half as long again. That is for kernels that lack the former.
 */
static enum gort__os_task state_by_call(int tid)
{
    char text[256];
    if (read_task(tid, "syscall", text, sizeof text) <= 0)
        return GORT__OS_TASK_UNKNOWN;
    return text[0] == 'r' ? GORT__OS_TASK_RUNS : GORT__OS_TASK_SLEEPS;
}

enum gort__os_task gort__os_thread_state(int tid)
{
    char text[512];
    int saved = errno;
    enum gort__os_task state = tid == gort__os_thread_id() ? GORT__OS_TASK_RUNS : state_by_call(tid);
    errno = saved;
    if (state != GORT__OS_TASK_UNKNOWN)
        return state;
    const char *end = NULL;
    if (read_task(tid, "stat", text, sizeof text) > 0)
        end = strrchr(text, ')'); /* the name in parentheses may hold anything */
    errno = saved;
    if (!end || end[1] != ' ')
        return GORT__OS_TASK_UNKNOWN;
    return end[2] == 'R'                    ? GORT__OS_TASK_RUNS
           : end[2] == 'S' || end[2] == 'D' ? GORT__OS_TASK_SLEEPS
                                            : GORT__OS_TASK_UNKNOWN;
}

/* A set of signals in the status file of a thread; key: with what stands around its name. */
static uint64_t read_set(const char *text, const char *key)
{
    uint64_t set = 0;
    const char *at = strstr(text, key);
    for (at = at ? at + strlen(key) : ""; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
        set = set << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return set;
}

bool gort__os_thread_holds_back(int tid, int signo)
{
    char text[4096];
    int saved = errno;
    uint64_t both = 0;
    if (read_task(tid, "status", text, sizeof text) > 0)
        both = read_set(text, "\nSigPnd:\t") & read_set(text, "\nSigBlk:\t");
    errno = saved;
    return both >> (signo - 1) & 1;
}

void gort__os_thread_usage(int64_t *cpu, uint64_t *waits)
{
    struct rusage used;
    int saved = errno;
    *cpu = 0;
    *waits = UINT64_MAX;
    if (getrusage(RUSAGE_THREAD, &used) == 0) {
        *cpu = (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * SECOND +
               (int64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
        *waits = (uint64_t)used.ru_nvcsw;
    }
    errno = saved;
}

int gort__os_cpu_timer_make(int tid, int signo, void *value)
{
    struct sigevent event;
    int saved = errno, timer = -1;
    memset(&event, 0, sizeof event);
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = signo;
    event.sigev_value.sival_ptr = value;
    event.sigev_notify_thread_id = tid;
    static uint32_t said;
    if (syscall(SYS_timer_create, cpu_clock(tid), &event, &timer) != 0) {
        timer = -errno;
        if (gort__os_refused(errno))
            gort__os_say_refused(
                &said, "timer_create", errno,
                "goroutines that compute are preempted some milliseconds later, and their system "
                "calls may return EINTR");
    }
    errno = saved;
    return timer;
}

bool gort__os_cpu_timer_arm(int timer, int64_t ns)
{
    struct itimerspec at = {.it_value = {(time_t)(ns / SECOND), (long)(ns % SECOND)}};
    int saved = errno;
    bool armed = syscall(SYS_timer_settime, timer, 0, &at, NULL) == 0;
    errno = saved;
    return armed;
}

void gort__os_cpu_timer_drop(int timer)
{
    int saved = errno;
    syscall(SYS_timer_delete, timer);
    errno = saved;
}

static bool no_queue; /* rt_tgsigqueueinfo is refused; atomic */

bool gort__os_signals_blank(void)
{
    return gort__load(&no_queue, RELAXED);
}

/* Without the value. What the program sends to the same thread with the same signal by pthread_kill looks
 * alike. */
static void signal_plainly(int tid, int signo)
{
    static uint32_t said;
    if (syscall(SYS_tgkill, gort__os_process_id(), tid, signo) != 0 && gort__os_refused(errno))
        gort__os_say_refused(
            &said, "tgkill", errno,
            "rt_tgsigqueueinfo is refused too, so gort cannot preempt every goroutine that computes");
}

void gort__os_thread_signal(int tid, int signo, void *value)
{
    int saved = errno;
    siginfo_t info = {.si_signo = signo, .si_code = SI_QUEUE};
    info.si_pid = gort__os_process_id();
    info.si_uid = getuid();
    info.si_value.sival_ptr = value;
    if (!gort__load(&no_queue, RELAXED) &&
        syscall(SYS_rt_tgsigqueueinfo, info.si_pid, tid, signo, &info) != 0 && gort__os_refused(errno))
        gort__store(&no_queue, true, RELAXED);
    if (gort__load(&no_queue, RELAXED))
        signal_plainly(tid, signo);
    errno = saved;
}
