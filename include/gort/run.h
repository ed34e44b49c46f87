/* SPDX-License-Identifier: MIT */
/*
 * gort/run.h - start the runtime, start goroutines, and what a goroutine can say about itself.
 *
 * Results: >= 0 is success, -errno says why not; errno itself is never used to report.
 * Unless a line says otherwise a call may be made from a goroutine and from a plain thread.
 */
#ifndef GORT_RUN_H
#define GORT_RUN_H

#include "base.h"

GORT_BEGIN_DECLS

/* How a run is set up. All zero means default; environment variables win over these. */
typedef struct gort_config {
    int maxprocs;           /* how many goroutines run at the same time; 0: the CPUs this process may use */
    int signal;             /* the signal that interrupts long-running goroutines; 0: SIGURG */
    int max_threads;        /* more threads than this is a fatal error; 0: 10,000 */
    int reserved_int;       /* zero */
    size_t stack_size;      /* of goroutines that do not ask for another; 0: 256 KiB; else as below */
    uintptr_t reserved[12]; /* zero */
} gort_config;

/* How one goroutine is started. All zero means default. */
typedef struct gort_attr {
    const char *name;      /* shown in dumps; copied, up to 31 bytes */
    size_t stack_size;     /* rounded up, to 64 KiB at least; 0: the run's default; over 1 GiB: -EINVAL */
    uintptr_t reserved[6]; /* zero */
} gort_attr;

/*
 * Runs fn(arg) as the main goroutine and returns its value once it has returned; the other
 * goroutines are gone then. -EBUSY: a run is on already. Other -errno: it could not start.
 * Call it from a plain thread. Several runs may follow one another.
 */
GORT_API int gort_run(int (*fn)(void *), void *arg);
GORT_API int gort_run_with(const gort_config *config, int (*fn)(void *), void *arg);

/*
 * Starts a goroutine that runs fn(arg). Never parks. -ENOMEM: no memory; -ESRCH: no run is on.
 * The result may be ignored where a shortage of memory may end the program's work anyway.
 */
GORT_API int gort_go(void (*fn)(void *), void *arg);
GORT_API int gort_go_with(const gort_attr *attr, void (*fn)(void *), void *arg);

#define GORT_GO_COPY_MAX 1024
/* fn gets a copy of len bytes at arg, aligned for any type, alive until fn returns. -EINVAL: too long. */
GORT_API int gort_go_copy(void (*fn)(void *), const void *arg, size_t len);

/* Lets the other runnable goroutines run first. 0. */
GORT_API int gort_yield(void);

/* Ends the calling goroutine, running its exit handlers and key destructors; from any call depth.
 * In the main goroutine: the run goes on until the last goroutine has ended, gort_run returns 0. */
GORT_API GORT_NORETURN void gort_exit(void);

/* fn(arg) runs when the calling goroutine ends, the last registered first. -ENOMEM; -ESRCH: no run is on. */
GORT_API int gort_on_exit(void (*fn)(void *), void *arg);

/* The calling goroutine: its number (main is 1; a plain thread has 0; never used twice in a run), its
 * name ("" without one; valid until the goroutine ends or is named anew; copied, up to 31 bytes;
 * stays as it is if there is no memory for a first one). */
GORT_API uint64_t gort_id(void);
GORT_API const char *gort_name(void);
GORT_API void gort_set_name(const char *name);

/* How many goroutines there are, the main one included; 0 when no run is on. */
GORT_API size_t gort_count(void);

/* How many goroutines may run at the same time. n >= 1 changes it, before a run for the next one;
 * larger than GORT_MAXPROCS_MAX counts as that. Returns the value before. n < 1 only asks. */
#define GORT_MAXPROCS_MAX 1024
GORT_API int gort_maxprocs(int n);

/* Ties the calling goroutine to its thread until as many unlocks; nests. A goroutine that ends
 * while tied takes the thread with it. In a plain thread they do nothing. */
GORT_API void gort_lock_thread(void);
GORT_API void gort_unlock_thread(void);

/* No preemption of the calling goroutine between them; they nest. For code that keeps a lock which others spin on,
 * or must not be stopped half-way; keep it short. */
GORT_API void gort_preempt_off(void);
GORT_API void gort_preempt_on(void);

/* Around a call that may block in the kernel: the other goroutines go on meanwhile. In between the caller counts as a
 * plain thread, whose context in use, values and exit handlers are its own and end with the call. Pairs nest. In a plain
 * thread they do nothing. */
GORT_API void gort_block_enter(void);
GORT_API void gort_block_leave(void);
/* fn(arg), which will block for long: the other goroutines go on at once. Returns what fn returned. */
GORT_API intptr_t gort_block(intptr_t (*fn)(void *), void *arg);

/*
 * Stops every other goroutine, wherever it is: also in a loop, in libc, in a blocking call, which may stay in the kernel
 * but does not come back before the start. For collectors, snapshots, checkpoints. 0; -EBUSY: the caller has stopped it
 * already; -ESRCH: no run is on; -ECANCELED: it ends; -ETIMEDOUT: one could not be stopped (its signals are blocked), and
 * all go on. In between the caller must not wait for anybody, nor allocate with malloc: somebody may hold its lock.
 * Plain threads are not stopped. System calls that SA_RESTART does not cover may return EINTR because of it.
 */
GORT_API GORT_MUST_CHECK int gort_world_stop(void);
/*
 * Calls fn(from, to, arg) for each piece of memory in which a goroutine may keep a pointer while the world is stopped: stacks,
 * saved registers, arguments, keys, buffers of channels, timers. Whatever else the program has (its data, malloc, plain
 * threads, thread-local variables) is not among them. fn must not call gort nor allocate. 0, or -EPERM: the
 * caller has not stopped the world.
 */
GORT_API int gort_world_roots(void (*fn)(const void *from, const void *to, void *arg), void *arg);
/* Lets them go on. 0, or -EPERM: the caller has not stopped it. */
GORT_API int gort_world_start(void);

/* Writes one line a goroutine (id, name, state, what it waits for, how deep its stack has been) to fd. Callable from a signal handler. */
GORT_API void gort_dump(int fd);

GORT_END_DECLS
#endif
