/* SPDX-License-Identifier: MIT */
/*
 * fault.c - the functions that the linker puts between libgort.a and the C library; see fault.h.
 *
 * Why --wrap and not a library that is loaded first: it works in static programs and below the sanitizers'
 * own interceptors, and it touches the calls of our objects only, not those that the C library makes for
 * itself. A test calls most of these too: it turns the faults off before it looks. Compiled without
 * sanitizers, which may call these before they are ready.
 */
#include "fault.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define FAULT_EAI_MEMORY  EAI_MEMORY
#define FAULT_ARES_ENOMEM 15

static struct {
    atomic_int kind; /* of fault_at; -1: none */
    atomic_long left;
    atomic_bool on; /* it goes on failing */
    atomic_uint kinds, n;
    atomic_ullong random;
    atomic_long armed_fired;
    atomic_long calls[FAULT_COUNT], fired[FAULT_COUNT], mapped;
} plan = {.kind = -1};

static const char *const names[] = {
#define NAME(name, error) #name,
    FAULT_KINDS(NAME)};
static const int errors[] = {
#define ERROR(name, error) error,
    FAULT_KINDS(ERROR)};

const char *fault_name(int kind)
{
    return names[kind];
}

int fault_error(int kind)
{
    return errors[kind];
}

static void set_up(int kind, long k, bool on)
{
    atomic_store(&plan.kind, -1);
    atomic_store(&plan.n, 0);
    atomic_store(&plan.armed_fired, 0);
    atomic_store(&plan.left, k);
    atomic_store(&plan.on, on);
    if (k > 0)
        atomic_store(&plan.kind, kind);
}

void fault_at(int kind, long k)
{
    set_up(kind, k, false);
}

void fault_from(int kind, long k)
{
    set_up(kind, k, true);
}

void fault_random(uint32_t kinds, uint32_t n, uint64_t seed)
{
    set_up(0, 0, false);
    atomic_store(&plan.random, seed);
    atomic_store(&plan.kinds, kinds);
    atomic_store(&plan.n, n);
}

bool fault_off(void)
{
    atomic_store(&plan.kind, -1);
    atomic_store(&plan.n, 0);
    return atomic_load(&plan.armed_fired) != 0;
}

long fault_calls(int kind)
{
    return atomic_load(&plan.calls[kind]);
}

long fault_fired(int kind)
{
    return atomic_load(&plan.fired[kind]);
}

long fault_mapped(void)
{
    return atomic_load(&plan.mapped);
}

/* The numbers of one generator for all threads: splitmix64, whose state is a counter. */
static bool by_chance(int kind)
{
    uint32_t n = atomic_load_explicit(&plan.n, memory_order_relaxed);
    if (!n || !(atomic_load_explicit(&plan.kinds, memory_order_relaxed) >> kind & 1))
        return false;
    uint64_t x = atomic_fetch_add_explicit(&plan.random, 0x9e3779b97f4a7c15u, memory_order_relaxed);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % n == 0;
}

/* One more call of this kind: is it to fail? */
static bool fails(int kind)
{
    atomic_fetch_add_explicit(&plan.calls[kind], 1, memory_order_relaxed);
    bool now = false;
    if (atomic_load_explicit(&plan.kind, memory_order_relaxed) == kind) {
        long left = atomic_fetch_sub(&plan.left, 1);
        now = left == 1 || (left < 1 && atomic_load(&plan.on));
    }
    if (!now && !by_chance(kind))
        return false;
    atomic_fetch_add(&plan.fired[kind], 1);
    atomic_fetch_add(&plan.armed_fired, 1);
    errno = errors[kind];
    return true;
}

/* The declarations of a wrapped call: the one that the linker puts in its place, and the true one. */
#define WRAP(type, name, ...)                                                                                \
    type __real_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__);                                                                         \
    type __wrap_##name(__VA_ARGS__)

/* --- memory ----------------------------------------------------------------------------------- */

WRAP(void *, mmap, void *addr, size_t size, int prot, int flags, int fd, off_t at)
{
    if (fails(FAULT_MAP))
        return MAP_FAILED;
    void *p = __real_mmap(addr, size, prot, flags, fd, at);
    if (p != MAP_FAILED && !(flags & MAP_FIXED))
        atomic_fetch_add(&plan.mapped, (long)size);
    return p;
}

WRAP(int, munmap, void *addr, size_t size)
{
    atomic_fetch_sub(&plan.mapped, (long)size);
    return __real_munmap(addr, size);
}

WRAP(int, madvise, void *addr, size_t size, int advice)
{
    return fails(FAULT_ADVISE) ? -1 : __real_madvise(addr, size, advice);
}

WRAP(int, mprotect, void *addr, size_t size, int prot)
{
    return fails(FAULT_ADVISE) ? -1 : __real_mprotect(addr, size, prot);
}

/* --- threads ---------------------------------------------------------------------------------- */

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return fails(FAULT_THREAD) ? errors[FAULT_THREAD] : __real_pthread_create(thread, attr, fn, arg);
}

/* These three are not wrapped under TSan. */
__attribute__((weak)) int __real_pthread_key_create(pthread_key_t *, void (*)(void *));
__attribute__((weak)) int __real_pthread_setspecific(pthread_key_t, const void *);
__attribute__((weak)) int __real_pthread_atfork(void (*)(void), void (*)(void), void (*)(void));

WRAP(int, pthread_key_create, pthread_key_t *key, void (*fn)(void *))
{
    return fails(FAULT_KEY) ? errors[FAULT_KEY] : __real_pthread_key_create(key, fn);
}

WRAP(int, pthread_setspecific, pthread_key_t key, const void *value)
{
    return value && fails(FAULT_KEY) ? ENOMEM : __real_pthread_setspecific(key, value);
}

WRAP(int, pthread_atfork, void (*before)(void), void (*parent)(void), void (*child)(void))
{
    return fails(FAULT_KEY) ? ENOMEM : __real_pthread_atfork(before, parent, child);
}

long __real_syscall(long, ...);
long __wrap_syscall(long, ...);
long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    int kind = number == SYS_timer_create ? FAULT_CPU_TIMER
#ifdef SYS_pidfd_open
               : number == SYS_pidfd_open ? FAULT_PIDFD
#endif
#ifdef SYS_process_madvise
               : number == SYS_process_madvise ? FAULT_ADVISE
#endif
#ifdef SYS_epoll_pwait2
               : number == SYS_epoll_pwait2 ? FAULT_INTERRUPT
#endif
                                            : -1;
    if (kind >= 0 && fails(kind))
        return -1;
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* --- fds -------------------------------------------------------------------------------------- */

WRAP(int, epoll_create1, int flags)
{
    return fails(FAULT_POLLER) ? -1 : __real_epoll_create1(flags);
}

WRAP(int, epoll_ctl, int poller, int op, int fd, struct epoll_event *event)
{
    return op != EPOLL_CTL_DEL && fails(FAULT_WATCH) ? -1 : __real_epoll_ctl(poller, op, fd, event);
}

WRAP(int, epoll_wait, int poller, struct epoll_event *events, int n, int timeout)
{
    return fails(FAULT_INTERRUPT) ? -1 : __real_epoll_wait(poller, events, n, timeout);
}

WRAP(int, eventfd, unsigned value, int flags)
{
    return fails(FAULT_POLLER) ? -1 : __real_eventfd(value, flags);
}

WRAP(int, socket, int family, int type, int protocol)
{
    return fails(FAULT_SOCKET) ? -1 : __real_socket(family, type, protocol);
}

WRAP(int, accept4, int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    return fails(FAULT_SOCKET) ? -1 : __real_accept4(fd, addr, len, flags);
}

WRAP(int, setsockopt, int fd, int level, int name, const void *value, socklen_t len)
{
    return fails(FAULT_OPTION) ? -1 : __real_setsockopt(fd, level, name, value, len);
}

WRAP(int, bind, int fd, const struct sockaddr *addr, socklen_t len)
{
    return fails(FAULT_OPTION) ? -1 : __real_bind(fd, addr, len);
}

WRAP(int, listen, int fd, int backlog)
{
    return fails(FAULT_OPTION) ? -1 : __real_listen(fd, backlog);
}

WRAP(int, connect, int fd, const struct sockaddr *addr, socklen_t len)
{
    return fails(FAULT_OPTION) ? -1 : __real_connect(fd, addr, len);
}

WRAP(int, pipe2, int *ends, int flags)
{
    return fails(FAULT_PIPE) ? -1 : __real_pipe2(ends, flags);
}

int __real_open(const char *, int, ...);
int __wrap_open(const char *, int, ...);
int __wrap_open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
    va_end(args);
    return fails(FAULT_OPEN) ? -1 : __real_open(path, flags, mode);
}

/* --- children, names -------------------------------------------------------------------------- */

WRAP(int, posix_spawnp, pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
     const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
    return fails(FAULT_SPAWN) ? ENOMEM : __real_posix_spawnp(pid, file, actions, attr, argv, envp);
}

WRAP(int, posix_spawn_file_actions_init, posix_spawn_file_actions_t *actions)
{
    return fails(FAULT_SPAWN) ? ENOMEM : __real_posix_spawn_file_actions_init(actions);
}

WRAP(int, posix_spawn_file_actions_adddup2, posix_spawn_file_actions_t *actions, int from, int to)
{
    return fails(FAULT_SPAWN) ? ENOMEM : __real_posix_spawn_file_actions_adddup2(actions, from, to);
}

WRAP(int, getaddrinfo, const char *host, const char *service, const struct addrinfo *hints,
     struct addrinfo **list)
{
    return fails(FAULT_LOOKUP) ? FAULT_EAI_MEMORY : __real_getaddrinfo(host, service, hints, list);
}

/* Weak: a build without c-ares has no such call. */
__attribute__((weak)) int __real_ares_init_options(void *channel, void *options, int mask);
int __wrap_ares_init_options(void *channel, void *options, int mask);
int __wrap_ares_init_options(void *channel, void *options, int mask)
{
    return fails(FAULT_LOOKUP) ? FAULT_ARES_ENOMEM : __real_ares_init_options(channel, options, mask);
}

/* --- reading and writing ---------------------------------------------------------------------- */

/* How much of n bytes a call may move, 0: none, it fails. Datagrams must not be cut: see cut_msg. */
static bool refuses(void)
{
    return fails(FAULT_INTERRUPT) || fails(FAULT_IO);
}

static size_t cut(size_t n)
{
    return n > 1 && fails(FAULT_SHORT) ? n / 2 : n;
}

/* What the runtime itself says to its sleepers, eight bytes to an eventfd, must not fail: the kernel never
 * refuses it. */
static bool is_word(size_t n)
{
    return n == 8;
}

WRAP(ssize_t, read, int fd, void *buf, size_t n)
{
    if (!is_word(n) && refuses())
        return -1;
    return __real_read(fd, buf, is_word(n) ? n : cut(n));
}

WRAP(ssize_t, write, int fd, const void *buf, size_t n)
{
    if (fd > 2 && !is_word(n) && refuses())
        return -1;
    return __real_write(fd, buf, is_word(n) || fd <= 2 ? n : cut(n));
}

WRAP(ssize_t, recv, int fd, void *buf, size_t n, int flags)
{
    return refuses() ? -1 : __real_recv(fd, buf, n, flags); /* the kernel never gives less than there is */
}

WRAP(ssize_t, send, int fd, const void *buf, size_t n, int flags)
{
    return refuses() ? -1 : __real_send(fd, buf, cut(n), flags);
}

WRAP(ssize_t, readv, int fd, const struct iovec *iov, int n)
{
    return refuses() ? -1 : __real_readv(fd, iov, (int)cut((size_t)n));
}

WRAP(ssize_t, writev, int fd, const struct iovec *iov, int n)
{
    return refuses() ? -1 : __real_writev(fd, iov, (int)cut((size_t)n));
}

WRAP(ssize_t, preadv2, int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    return refuses() ? -1 : __real_preadv2(fd, iov, (int)cut((size_t)n), at, flags);
}

WRAP(ssize_t, pwritev2, int fd, const struct iovec *iov, int n, off_t at, int flags)
{
    return refuses() ? -1 : __real_pwritev2(fd, iov, (int)cut((size_t)n), at, flags);
}

WRAP(ssize_t, recvfrom, int fd, void *buf, size_t n, int flags, struct sockaddr *from, socklen_t *len)
{
    return refuses() ? -1 : __real_recvfrom(fd, buf, n, flags, from, len);
}

WRAP(ssize_t, sendto, int fd, const void *buf, size_t n, int flags, const struct sockaddr *to, socklen_t len)
{
    return refuses() ? -1 : __real_sendto(fd, buf, n, flags, to, len);
}

WRAP(ssize_t, recvmsg, int fd, struct msghdr *msg, int flags)
{
    return refuses() ? -1 : __real_recvmsg(fd, msg, flags);
}

WRAP(ssize_t, sendmsg, int fd, const struct msghdr *msg, int flags)
{
    return refuses() ? -1 : __real_sendmsg(fd, msg, flags);
}

WRAP(ssize_t, sendfile, int fd, int from, off_t *offset, size_t n)
{
    return refuses() ? -1 : __real_sendfile(fd, from, offset, cut(n));
}
