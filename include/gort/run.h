/* SPDX-License-Identifier: MIT */
/*
 * gort/run.h - starting a run, starting goroutines, and calls about the calling goroutine and its thread.
 *
 * gort.h explains "run", "plain thread" and "park", and gives the rules that hold for all headers.
 */
#ifndef GORT_RUN_H
#define GORT_RUN_H

#include "base.h"

GORT_BEGIN_DECLS

/*
 * The settings of a run. A field that is zero means the default. Environment variables override these
 * settings.
 */
typedef struct gort_config {
    int maxprocs;           /* goroutines that may run at the same time; 0: the CPUs this process may use */
    int signal;             /* the signal that preempts goroutines; 0: SIGURG */
    int max_threads;        /* threads at a time; a goroutine that needs one more waits for it; 0: 10,000 */
    int reserved_int;       /* must be zero, else -EINVAL */
    size_t stack_size;      /* the default for gort_attr.stack_size, rounded as that is; 0: 256 KiB */
    uintptr_t reserved[12]; /* must be zero, else -EINVAL */
} gort_config;

/* The settings of one goroutine. A field that is zero means the default. */
typedef struct gort_attr {
    const char *name; /* shown in dumps; gort copies up to 31 bytes */
    /* Rounded up to a power of two of at least 64 KiB; 0: the default of the run; over 1 GiB: -EINVAL. */
    size_t stack_size;
    uintptr_t reserved[6]; /* must be zero, else -EINVAL: a later version may give it a meaning */
} gort_attr;

/*
 * Runs fn(arg) as the main goroutine. When fn returns, the run ends: all other goroutines are gone, and
 * gort_run returns the value of fn. Returns -EBUSY if a run is on already, another -errno if the run could
 * not start. Call it from a plain thread, which waits until the run has ended. Runs may follow one another.
 */
GORT_API int gort_run(int (*fn)(void *), void *arg);
GORT_API int gort_run_with(const gort_config *config, int (*fn)(void *), void *arg);

/*
 * Starts a goroutine that runs fn(arg). Returns 0; -ENOMEM: no memory; -ESRCH: no run is on; -EINVAL: a wrong
 * attr. Never parks. The caller may ignore the result if it cannot go on without memory anyway. The goroutine
 * starts with the signal mask of the thread that called gort_run. The mask belongs to the goroutine, as errno
 * does: what it changes with pthread_sigmask or sigprocmask moves with it to other threads.
 */
GORT_API int gort_go(void (*fn)(void *), void *arg);
GORT_API int gort_go_with(const gort_attr *attr, void (*fn)(void *), void *arg);

#define GORT_GO_COPY_MAX 1024
/*
 * As gort_go, but fn gets a pointer to a copy of the len bytes at arg. The copy is aligned for any type and
 * lives until fn returns. Also returns -EINVAL: len is larger than GORT_GO_COPY_MAX.
 */
GORT_API int gort_go_copy(void (*fn)(void *), const void *arg, size_t len);

/* Lets the other runnable goroutines run first; the caller may continue on another thread. Returns 0. */
GORT_API int gort_yield(void);

/*
 * Ends the calling goroutine, from any depth of calls: runs its exit handlers, then the destructors of its
 * keys. If the main goroutine calls it, the run goes on until the last goroutine has ended, and gort_run
 * returns 0. Fatal in a plain thread.
 */
GORT_API GORT_NORETURN void gort_exit(void);

/*
 * Registers fn(arg) to run when the calling goroutine or plain thread ends; the last one registered runs
 * first. If the run ends before, the handler does not run. Returns 0; -ENOMEM; -ESRCH: no run is on. Never
 * parks.
 */
GORT_API int gort_on_exit(void (*fn)(void *), void *arg);

/*
 * The number of the calling goroutine. The main goroutine has 1, a plain thread 0. No number is used twice in
 * a run.
 */
GORT_API uint64_t gort_id(void);
/*
 * The name of the calling goroutine: "main" for the main goroutine, "" for others, until it is set. Valid
 * until the goroutine ends or sets another name.
 */
GORT_API const char *gort_name(void);
/*
 * Names the calling goroutine, with a copy of the first 31 bytes; NULL takes the name away. Without memory
 * for the copy the name does not change. Does nothing in a plain thread. None of these three parks.
 */
GORT_API void gort_set_name(const char *name);

/* The number of goroutines, the main goroutine included; 0 when no run is on. Never parks. */
GORT_API size_t gort_count(void);

/*
 * Returns how many goroutines may run at the same time. n >= 1 sets a new number and returns the one before;
 * a larger n than GORT_MAXPROCS_MAX counts as that. Outside a run it is set for the next one. n < 1 only
 * asks. May park if n >= 1.
 */
#define GORT_MAXPROCS_MAX 1024
GORT_API int gort_maxprocs(int n);

/*
 * gort_lock_thread binds the calling goroutine to its thread until gort_unlock_thread has been called as
 * often. A goroutine that ends while it is bound ends its thread. An unlock without a lock is fatal. Neither
 * parks; neither does anything in a plain thread.
 */
GORT_API void gort_lock_thread(void);
GORT_API void gort_unlock_thread(void);

/*
 * Between the two the calling goroutine is not preempted, that is, no signal interrupts it so that others can
 * run. For short code that holds a lock on which others spin, or that must not stop half-way. Pairs nest; an
 * on without an off is fatal. Neither parks.
 */
GORT_API void gort_preempt_off(void);
GORT_API void gort_preempt_on(void);

/*
 * For a call that may block in the kernel: call gort_block_enter before it and gort_block_leave after it. The
 * other goroutines go on meanwhile; the caller keeps its thread. Between the two the caller counts as a plain
 * thread. A context in use, values of keys and exit handlers that it sets there are not the goroutine's and
 * end at gort_block_leave. Pairs nest; a leave without an enter is fatal. Neither does anything in a plain
 * thread.
 */
GORT_API void gort_block_enter(void);
GORT_API void gort_block_leave(void);
/*
 * Runs fn(arg), which will block for long, and returns its result. The other goroutines go on at once. fn
 * runs on the thread's own stack and counts as a plain thread; the goroutine may continue on another thread
 * after it.
 */
GORT_API intptr_t gort_block(intptr_t (*fn)(void *), void *arg);

/*
 * Stops the world: every other goroutine stops, also one in a loop, in libc or in a blocking call (which may
 * go on in the kernel, but does not return before gort_world_start). For collectors, snapshots and
 * checkpoints. Plain threads do not stop. Until gort_world_start the caller must neither wait for anything
 * nor call malloc, because a stopped goroutine may hold malloc's lock. System calls that SA_RESTART does not
 * cover may return EINTR because of a stop. Returns 0; -EBUSY: the caller has stopped the world already;
 * -ESRCH: no run is on; -ECANCELED: the run is ending; -ETIMEDOUT: a goroutine could not be stopped, because
 * it blocks the signal for preemption; then all go on. May park while another stop lasts.
 */
GORT_API GORT_MUST_CHECK int gort_world_stop(void);
/*
 * Calls fn(from, to, arg) for each range of memory in which a goroutine may keep a pointer while the world is
 * stopped: stacks, saved registers, arguments, values of keys, buffers of channels, timers. The rest of the
 * program is not reported: its data, malloc, plain threads, thread-local variables, and stacks of coroutines
 * of its own. For a goroutine that runs on such a stack, the whole of its own stack is reported. fn must
 * neither call gort nor allocate. Returns 0, or -EPERM: the caller has not stopped the world. Never parks.
 */
GORT_API int gort_world_roots(void (*fn)(const void *from, const void *to, void *arg), void *arg);
/*
 * Lets the stopped goroutines go on. Returns 0, or -EPERM: the caller has not stopped the world. Never parks.
 */
GORT_API int gort_world_start(void);

/*
 * Writes two lines about the run and one line for each of up to 1000 goroutines to fd: number, name, state,
 * what it waits for, how deep its stack has been, and the function it was started with. Outside a run it says
 * that no run is on. Never parks. Callable from a signal handler.
 */
GORT_API void gort_dump(int fd);

GORT_END_DECLS
#endif
