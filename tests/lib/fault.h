/* SPDX-License-Identifier: MIT */
/*
 * fault.h - makes calls of the kernel and the C library fail on purpose.
 *
 * Why: what happens when the machine refuses is code like any other, and runs for the first time on the worst
 * of days. A program whose opening comment says `Build: faults` is linked with --wrap for every call listed
 * in cmake/faults.cmake, so the calls of libgort.a come here first; the library itself is the one that gets
 * installed, without a single test in it.
 *
 *     fault_at(FAULT_MAP, 3);       // the third mmap from now on fails
 *     ... something ...
 *     bool fired = fault_off();
 *
 * Calls are counted over all threads of the process, so with several Ps the k-th may be another one each
 * time. Calls of the C library for itself (malloc's mmap, say) do not pass through here.
 * Threads: any; errno is what the failed call would have left.
 */
#ifndef GORT_TEST_FAULT_H
#define GORT_TEST_FAULT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What can fail, and the error it fails with. */
#define FAULT_KINDS(X)                                                                                       \
    X(MAP, ENOMEM)       /* mmap */                                                                          \
    X(ADVISE, ENOMEM)    /* madvise, mprotect, process_madvise: guards and memory given back */              \
    X(THREAD, EAGAIN)    /* pthread_create */                                                                \
    X(KEY, EAGAIN)       /* pthread_key_create, pthread_setspecific, pthread_atfork */                       \
    X(CPU_TIMER, EAGAIN) /* timer_create */                                                                  \
    X(POLLER, EMFILE)    /* epoll_create1, eventfd */                                                        \
    X(WATCH, ENOSPC)     /* epoll_ctl that adds or changes */                                                \
    X(SOCKET, EMFILE)    /* socket, accept4 */                                                               \
    X(OPTION, ENOBUFS)   /* setsockopt, bind, listen, connect */                                             \
    X(PIPE, EMFILE)      /* pipe2 */                                                                         \
    X(OPEN, EMFILE)      /* open */                                                                          \
    X(SPAWN, ENOMEM)     /* posix_spawnp and its actions */                                                  \
    X(PIDFD, EMFILE)     /* pidfd_open */                                                                    \
    X(LOOKUP, ENOMEM)    /* getaddrinfo, c-ares */                                                           \
    X(IO, ENOBUFS)       /* reading and writing: recv, send, read, write and their kin */                    \
    X(INTERRUPT, EINTR)  /* the same, and epoll_wait: a signal came */                                       \
    X(SHORT, 0)          /* the same: less is read or written than there is */

enum fault_kind {
#define FAULT_ENUM(name, error) FAULT_##name,
    FAULT_KINDS(FAULT_ENUM)
#undef FAULT_ENUM
        FAULT_COUNT
};

const char *fault_name(int kind);
int fault_error(int kind); /* the errno, > 0 */

/* The k-th call of the kind from now on fails, and with `on` all after it too. k < 1: they are only
 * counted. */
void fault_at(int kind, long k);
void fault_from(int kind, long k);
/* One in `n` calls of each kind in the set (1 << kind) fails, at random. */
void fault_random(uint32_t kinds, uint32_t n, uint64_t seed);
/* No more of it. True: at least one call has failed since it was set up. */
bool fault_off(void);

/* Since the start of the process: calls of the kind, and those that were made to fail. */
long fault_calls(int kind);
long fault_fired(int kind);
/* Bytes that are mapped by libgort right now. */
long fault_mapped(void);

#ifdef __cplusplus
}
#endif
#endif
