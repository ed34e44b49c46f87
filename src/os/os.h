/* SPDX-License-Identifier: MIT */
/*
 * os.h - what the operating system must provide: the contract that linux/ fulfils.
 *
 * Why: every system call and every kernel #ifdef lives behind this page, so the rooms above read
 * the same on any kernel, and a test can make the k-th call of any kind fail.
 * Results: 0 or more is success, -errno says why not. Nothing here allocates from the C library
 * except thread creation, which cannot avoid it.
 */
#ifndef GORT_SRC_OS_OS_H
#define GORT_SRC_OS_OS_H

#include <errno.h>

#include "base/compiler.h"

/* Finds out once what this kernel can do (idempotent; at the start of each run). */
void gort__os_init(void);

/* Whether a system call failed because it is not to be had here: an old kernel says ENOSYS, a sandbox
 * (seccomp) what its author chose. The three mean the same. */
static inline bool gort__os_refused(int err)
{
    return err == ENOSYS || err == EPERM || err == EACCES;
}
/* Such a call was refused, and there is another way: says once what is lost by it. */
void gort__os_say_refused(uint32_t *said, const char *call, int err, const char *lost);
/* A call failed that gort cannot do without: ends the program, with a line for whoever made the sandbox. */
__attribute__((noreturn)) void gort__os_needs(const char *call, int err) GORT_COLD;

/* --- memory (linux/vm.c) ---------------------------------------------------------------------- */

/* Zeroed, lazily committed memory; size and align are multiples of the page size. NULL: none left. */
void *gort__os_vm_map(size_t size, size_t align);
/* The same, aligned to a page, for memory most of which is never touched: after mlockall(MCL_FUTURE) the
 * kernel would fill all of it at once. It is locked as it is touched, where the kernel can (Linux 4.4). */
void *gort__os_vm_map_sparse(size_t size);
void gort__os_vm_unmap(void *addr, size_t size);
/* Any access to the range faults from now on. Costs no mapping where the kernel can. 0 or -errno. */
int gort__os_vm_guard(void *addr, size_t size);
/* The same for n ranges, with one call where the kernel can; returns how many, from the first on, have a
 * guard. */
struct gort__os_range {
    void *addr;
    size_t size;
};
int gort__os_vm_guard_many(const struct gort__os_range *ranges, int n);
/* The memory of the range goes back to the kernel, and it reads as zero from now on; guards in it stay.
 * False, or nothing said: it may have been refused (locked memory of old kernels), and then what is there
 * stays in part or whole. */
bool gort__os_vm_discard(void *addr, size_t size);
void gort__os_vm_discard_many(const struct gort__os_range *ranges, int n);
/* The range is as gort__os_vm_map and _small made it: its `guards` guards are gone, and so are the kernel's
 * tables for it. False: it is as it was. */
bool gort__os_vm_renew(void *addr, size_t size, int guards);
/* The runs of pages in [from, to) that have memory, lowest first: up to n; *next tells where it ended.
 * Returns how many, or -errno. Callable from anywhere. */
int gort__os_vm_resident(char *from, char *to, struct gort__os_range *runs, int n, char **next);
size_t gort__os_rss(void); /* bytes of memory that the process has; 0: unknown. Reads a file */
/* The kernel says that processes wait for memory. Reads a file. */
bool gort__os_memory_pressure(void);
/* A hint that the range will be used as a whole: big pages are welcome. */
void gort__os_vm_huge(void *addr, size_t size);
/* A hint that the range is touched sparsely: big pages would only waste memory. */
void gort__os_vm_small(void *addr, size_t size);
size_t gort__os_page(void);

/* --- waiting (linux/futex.c) ------------------------------------------------------------------ */

/* Sleeps while *word is expected, until woken, interrupted, or the absolute monotonic deadline
 * (INT64_MAX: none) has passed. -ETIMEDOUT only for the deadline. May return for no reason. */
int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline);
void gort__os_futex_wake(uint32_t *word, int count);

/* --- time ------------------------------------------------------------------------------------- */

int64_t gort__os_now(void);
/* The kernel takes the time from the counter of this name. Reads a file. */
bool gort__os_clock_is(const char *name);
void gort__os_nap(int64_t ns); /* sleeps the thread; may return early */

/* --- threads (linux/thread.c) ----------------------------------------------------------------- */

/* A thread with all signals as the caller has them, whose timed sleeps end as exactly as the kernel can; 0 or
 * -EAGAIN, -ENOMEM. */
int gort__os_thread_start(uintptr_t *thread, void (*fn)(void *), void *arg, const char *name);
void gort__os_thread_join(uintptr_t thread);
bool gort__os_thread_try_join(uintptr_t thread); /* false: it has not ended yet */
void gort__os_thread_detach(uintptr_t thread);
int gort__os_thread_id(void);  /* the kernel's number of the calling thread */
int gort__os_process_id(void); /* the process's */
int gort__os_cpu(void);        /* the number of the CPU that it runs on, for the moment */
void gort__os_thread_yield(void);
/* The calling thread's sleeps end when they should, not some 50 us later,. */
void gort__os_thread_precise(void);
/* Or as those of the thread that called gort_run. True: they were precise. */
bool gort__os_thread_usual(void);
int gort__os_thread_total(void); /* how many threads the process has; 0: unknown. Reads a file */
int *gort__os_errno(void);       /* the calling thread's errno; asked anew at each call */
/* What the runtime of C++ keeps for a thread (its ABI calls it __cxa_eh_globals): exceptions in catch blocks
 * that are not left yet, and how many are on their way to one. */
struct gort__os_eh_globals {
    void *caught;
    unsigned int uncaught;
};
/* The calling thread's; NULL: there is no C++ in this program. */
struct gort__os_eh_globals *gort__os_eh_globals(void);
/* Calls fn(arg) when the calling thread ends. arg NULL takes it back. 0 or -errno. */
int gort__os_at_thread_end(void (*fn)(void *), void *arg);
/* Calls fn in the child of every fork from now on. 0 or -errno; call it once. */
int gort__os_at_fork_child(void (*fn)(void));
/* How large the stacks of threads are that gort__os_thread_start starts. */
size_t gort__os_thread_stack_size(void);

/* --- other threads of this process (linux/task.c) --------------------------------------------- */

int64_t gort__os_thread_cpu(int tid); /* the CPU time it has used, ns; -1: it is gone */
enum gort__os_task { GORT__OS_TASK_UNKNOWN, GORT__OS_TASK_RUNS, GORT__OS_TASK_SLEEPS };
enum gort__os_task gort__os_thread_state(int tid); /* reads a file */
/* The signal was sent to the thread, which has it in its mask; false: or unknown. Reads a file. */
bool gort__os_thread_holds_back(int tid, int signo);
/* The CPU time that the calling thread has used, and how often it has gone to sleep. */
void gort__os_thread_usage(int64_t *cpu, uint64_t *waits);
/* value is lost when the kernel has no room for it (RLIMIT_SIGPENDING), or a sandbox lets only the plain call
 * through: then the handler is told `blank`. */
void gort__os_thread_signal(int tid, int signo, void *value);
/* A timer that counts the CPU time of tid and sends it signo, with value. A number >= 0, or -errno. */
int gort__os_cpu_timer_make(int tid, int signo, void *value);
bool gort__os_cpu_timer_arm(int timer, int64_t ns); /* once, after so much more CPU time; 0 disarms */
void gort__os_cpu_timer_drop(int timer);

/* --- code that may hold locks which everybody needs (linux/text.c) ---------------------------- */

void gort__os_text_collect(void); /* finds libc, the loader and allocators; before the question */
struct gort__os_signal;
/* The signal met such code, or code that an allocator has called. errno is changed. */
bool gort__os_text_in_libc(const struct gort__os_signal *s);
/* The loader has called what the signal met, with its lock held. Takes microseconds. errno is changed. */
bool gort__os_text_loading(const struct gort__os_signal *s);

/* --- fences between threads (linux/barrier.c) -------------------------------------------------
 *
 * An asymmetric pair: the frequent side (light) costs nothing when the kernel can make all running threads of
 * the process pass a full fence (heavy: membarrier, or another way if that is refused during a run); else
 * both are full fences.
 * Ordering: if light() lies between X and Y on one thread, and heavy() between A and B on another,
 * then not both "Y misses A" and "B misses X" happen.
 */
extern bool gort__os_light_is_full GORT_HIDDEN;
void gort__os_fence_heavy(void);

/* --- readiness of fds (linux/epoll.c) ---------------------------------------------------------
 *
 * A poller tells when fds become ready: edge-triggered, both directions at once. errno is left alone.
 */
enum {
    GORT__OS_READABLE = 1,
    GORT__OS_WRITABLE = 2,
    GORT__OS_HANGUP = 4,
    GORT__OS_ERROR = 8,
    GORT__OS_URGENT = 16
};
struct gort__os_event {
    uint64_t tag; /* as given to gort__os_poll_add */
    uint32_t what;
};
/* fd, one of ours that stays open, moved away from 0 to 2 if it can be: in a program that was started without
 * them these are not free, it writes its messages there and closes or replaces them. -1 and errno as they
 * were. */
int gort__os_fd_own(int fd);
/* A write to it does not wait: of up to PIPE_BUF bytes, if nobody else writes. */
bool gort__os_fd_writable(int fd);
int gort__os_poll_open(void); /* a poller, or -errno */
void gort__os_poll_close(int poller);
/* 0, -EPERM: never waits (a regular file), -errno. What is ready already is an event. Again for the same fd:
 * the new tag counts, and what is ready is an event once more. */
int gort__os_poll_add(int poller, int fd, uint64_t tag);
int gort__os_poll_del(int poller, int fd); /* 0 or -errno */
/* Up to n events. 0: the monotonic deadline (INT64_MIN: does not sleep; INT64_MAX: none) has passed, or it
 * was kicked or interrupted. Sleeps with a precision of some ten microseconds where the kernel can
 * (epoll_pwait2). */
int gort__os_poll_wait(int poller, struct gort__os_event *events, int n, int64_t deadline);
void gort__os_poll_kick(int poller); /* the wait that goes on, or else the next one, returns */
/* The caller is about to sleep until `when`, in a wait of the poller, and after that until `then`, most
 * likely: a hint that makes both cheaper (linux/beat.c). One thread at a time. End: nobody will for a
 * while. */
void gort__os_beat(int64_t when, int64_t then);
void gort__os_beat_end(void);

/* --- alarms (linux/alarm.c) --------------------------------------------------------------------
 *
 * One thread sleeps until a time that others may change meanwhile, without waking it. errno is left alone.
 */
struct gort__os_alarm {
    int fd, kick;  /* a timerfd, and an eventfd for the day on which it cannot be set; -1: by the futex */
    bool refused;  /* the timerfd cannot be set any more, or there is none; the setters' own, */
    bool by_futex; /* and the sleeper knows; its own */
    uint32_t word; /* futex, changes when the time has come nearer; atomic */
    int64_t when;  /* atomic, written by gort__os_alarm_set */
};
void gort__os_alarm_open(struct gort__os_alarm *a); /* it is set for never */
void gort__os_alarm_close(struct gort__os_alarm *a);
/* For a monotonic time, that has passed perhaps; INT64_MAX: never. Forgets one that has come and was not
 * slept for. One thread at a time. */
void gort__os_alarm_set(struct gort__os_alarm *a, int64_t when);
/* Until it comes; it must be set anew then. Or until that fd can be read; -1: none. Without a timerfd it
 * looks at the fd every millisecond. */
void gort__os_alarm_sleep(struct gort__os_alarm *a, int fd);

/* --- signals (linux/signal.c) ----------------------------------------------------------------- */

/* An alternate signal stack for the calling thread; the former one is put into *saved. */
struct gort__os_altstack {
    void *sp;
    size_t size;
    int flags;
};
void gort__os_altstack_set(void *sp, size_t size, struct gort__os_altstack *saved);
void gort__os_altstack_restore(const struct gort__os_altstack *saved);
/* What a handler is told. */
struct gort__os_signal {
    int signo;
    bool timer, thread; /* sent by a timer; queued for this thread or process by itself */
    bool blank;         /* the kernel does not know who sent it */
    void *value;        /* that it was sent with */
    uintptr_t pc, sp;   /* of the interrupted code */
    uintptr_t link;     /* its link register, where the machine has one, else 0 */
    void *info, *context;
};
/* Installs fn for signo, whatever was there, which gort__os_signal_chain then calls. 0 or -errno. One signal
 * at a time. */
int gort__os_signal_share(int signo, void (*fn)(const struct gort__os_signal *));
bool gort__os_signal_shared(int signo); /* our handler is still the one installed */
void gort__os_signal_unshare(int signo);
void gort__os_signal_chain(const struct gort__os_signal *s); /* does what would have happened without us */
/* The calling thread's signal mask, bit signo - 1: asks, sets and returns the former one, changes as
 * sigprocmask does but never what libc has for itself. 0 or -errno. */
uint64_t gort__os_mask_get(void);
uint64_t gort__os_mask_set(uint64_t mask);
int gort__os_mask_change(int how, const uint64_t *set, uint64_t *old);
void gort__os_signal_block(int signo);   /* for the calling thread, as unblock */
void gort__os_signal_unblock(int signo); /* for the calling thread */
/* Installs fn for signo when its disposition is the default; true when it did. */
bool gort__os_signal_take(int signo, void (*fn)(int signo));
/* Back to the default, if fn is still the handler. */
void gort__os_signal_give_back(int signo, void (*fn)(int signo));
/* Signals that the program asked for (linux/caught.c). From catch to release each signal is noted, and ring
 * is called in a handler; before and after it does what it did without us: never both, never neither. The
 * shared one stays shared. catch: 0 or -errno; one caller at a time for each signal, and the same ring in all
 * calls. */
int gort__os_signal_catch(int signo, void (*ring)(void));
bool gort__os_signal_noted(int signo);   /* one or more since the last look, which are the caller's now */
bool gort__os_signal_release(int signo); /* true: one was noted that nobody has looked at */
__attribute__((noreturn)) void gort__os_exit_now(int status); /* no atexit handlers */

/* --- faults (linux/fault.c, linux/symbol.c) ---------------------------------------------------- */

/* A SIGSEGV that the hardware raised, as its handler sees it. */
struct gort__os_fault {
    uintptr_t addr, pc, sp;
    void *info, *context; /* the kernel's, for gort__os_fault_die */
};
/* Calls fn on the alternate stack at each such fault until given back. fn returns when the fault is not its
 * own: then it goes to whom it would have gone to, untouched. fn does not return from its own but through
 * gort__os_fault_die. */
void gort__os_fault_take(void (*fn)(const struct gort__os_fault *));
void gort__os_fault_give_back(void);
/* Ends the process: by the handler that the program had, if it has one, then by abort. In fn only. */
__attribute__((noreturn)) void gort__os_fault_die(const struct gort__os_fault *);
/* The callers of the code at the fault, innermost first: each(pc, arg) until it returns false. */
void gort__os_backtrace(const struct gort__os_fault *fault, bool (*each)(uintptr_t pc, void *arg), void *arg);
/* "name+0x1f (module+0x12ab)", or as much of it as is known. Opens files, takes no lock; callable from
 * anywhere. */
size_t gort__os_symbol(uintptr_t pc, char *buf, size_t size);

/* --- the machine (linux/cpus.c) --------------------------------------------------------------- */

/* How many CPUs this process may use: its affinity mask, then the tightest CPU limit among all its
 * ancestor cgroups (v1 and v2), rounded up; at least 1. Reads files; takes some 100 us. */
int gort__os_cpus(void);
/* The same with the files below root instead of "/" and the given number of CPUs in the mask. */
int gort__os_cpus_below(const char *root, int affinity);

#endif
