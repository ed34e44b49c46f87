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

#include "base/fmt.h"
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

enum gort__os_task gort__os_thread_state(int tid)
{
    char text[512];
    int saved = errno;
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

uint64_t gort__os_thread_waits(int tid)
{
    static const char key[] = "\nvoluntary_ctxt_switches:";
    char text[4096];
    int saved = errno;
    uint64_t n = 0;
    const char *at = NULL;
    if (read_task(tid, "status", text, sizeof text) > 0)
        at = strstr(text, key);
    if (at)
        for (at += sizeof key - 1; *at == '\t' || *at == ' ' || (*at >= '0' && *at <= '9'); at++)
            if (*at >= '0' && *at <= '9')
                n = n * 10 + (uint64_t)(*at - '0');
    errno = saved;
    return at ? n : UINT64_MAX;
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
    if (syscall(SYS_timer_create, cpu_clock(tid), &event, &timer) != 0)
        timer = -errno;
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

void gort__os_thread_signal(int tid, int signo, void *value)
{
    int saved = errno;
    siginfo_t info = {.si_signo = signo, .si_code = SI_QUEUE};
    info.si_pid = getpid();
    info.si_uid = getuid();
    info.si_value.sival_ptr = value;
    syscall(SYS_rt_tgsigqueueinfo, info.si_pid, tid, signo, &info);
    errno = saved;
}
