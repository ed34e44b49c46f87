/* SPDX-License-Identifier: MIT */
/*
 * vm.c - memory from the kernel: maps, guards, and giving pages back.
 *
 * Why: a goroutine's stack is reserved address space with a guard below it. A guard made by mprotect
 * splits the mapping, and 65,530 mappings (vm.max_map_count) are soon used up by goroutines; since
 * Linux 6.13 MADV_GUARD_INSTALL marks the pages alone and costs no mapping. Both ways fault alike.
 * MAP_NORESERVE: most of what we map is never touched, so it must not count as promised memory.
 *
 *      map(size, align) over-allocates and trims:
 *
 *      | head: unmapped | size, aligned: returned | tail: unmapped |
 *      raw              start                     start + size     raw + size + align - page
 *
 * The budget: where guards are made by mprotect they may take three quarters of vm.max_map_count, because
 * malloc, thread stacks and the program's own files live off the rest. Beyond it there are no guards
 * (mem/stack.c puts canaries then).
 * Threads: all functions from any thread at any time, except init. errno is never changed.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/force.h"
#include "os/linux/init.h"
#include "os/os.h"

/* Younger than the headers that we may be built with. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif

static bool guard_install_works;  /* written by init only; atomic: threads of former runs look */
static bool many_works;           /* process_madvise for ourselves: Linux 6.14; written by init only */
static long guard_budget = 24573; /* guards that mprotect may still make; atomic */

#define PIDFD_SELF (-10001) /* the calling process, since Linux 6.14 */
_Static_assert(sizeof(struct gort__os_range) == sizeof(struct iovec), "given to the kernel as it is");

size_t gort__os_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void *map_as(size_t size, int prot)
{
    GORT_TSAN_IGNORE_BEGIN();
    void *p = mmap(NULL, size, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    GORT_TSAN_IGNORE_END();
    return p == MAP_FAILED ? NULL : p;
}

static void *map(size_t size)
{
    return map_as(size, PROT_READ | PROT_WRITE);
}

/* Cutting a piece out of a mapping makes two, which can exceed the limit of mappings; then the address
 * space is lost but its memory is not. */
static void unmap(void *addr, size_t size)
{
    if (size && munmap(addr, size) != 0)
        madvise(addr, size, MADV_DONTNEED);
}

void *gort__os_vm_map(size_t size, size_t align)
{
    int saved = errno;
    size_t page = gort__os_page();
    size_t extra = align > page ? align - page : 0;
    char *raw = size <= SIZE_MAX - extra ? map(size + extra) : NULL;
    if (raw && extra) {
        size_t head = -(uintptr_t)raw & (align - 1);
        unmap(raw, head);
        unmap(raw + head + size, extra - head);
        raw += head;
    }
    errno = saved;
    return raw;
}

/* Whether new mappings are filled at once: the program has called mlockall(MCL_FUTURE). Some 2 us. */
static bool fills_at_once(void)
{
    size_t page = gort__os_page();
    unsigned char resident = 0;
    void *p = map(page);
    bool fills = p && mincore(p, page, &resident) == 0 && (resident & 1);
    if (p)
        unmap(p, page);
    return fills;
}

/* What cannot be read or written is not filled, and once it is to be locked page by page it is not filled
 * either. */
static void *map_locked_sparse(size_t size)
{
    void *p = map_as(size, PROT_NONE);
    if (!p)
        return NULL;
    syscall(SYS_mlock2, p, size, MLOCK_ONFAULT); /* refused: it is filled now, as the program has asked for */
    if (mprotect(p, size, PROT_READ | PROT_WRITE) == 0)
        return p;
    unmap(p, size);
    return NULL;
}

void *gort__os_vm_map_sparse(size_t size)
{
    int saved = errno;
    void *p = fills_at_once() ? map_locked_sparse(size) : map(size);
    errno = saved;
    return p;
}

void gort__os_vm_unmap(void *addr, size_t size)
{
    int saved = errno;
    unmap(addr, size);
    errno = saved;
}

/* One more mapping, or rather two: the guard, and what it cuts off. */
static int guard_by_mprotect(void *addr, size_t size)
{
    if (gort__sub(&guard_budget, 1, RELAXED) <= 0) {
        gort__add(&guard_budget, 1, RELAXED);
        return -ENOMEM;
    }
    if (mprotect(addr, size, PROT_NONE) == 0)
        return 0;
    gort__add(&guard_budget, 1, RELAXED);
    return -errno;
}

int gort__os_vm_guard(void *addr, size_t size)
{
    int saved = errno, result = 0;
    if (gort__os_force.no_guard)
        return -ENOMEM;
    /* Locked memory (mlockall) refuses guard marks, hence the second way even where the first exists. */
    if (!gort__load(&guard_install_works, RELAXED) || madvise(addr, size, MADV_GUARD_INSTALL) != 0)
        result = guard_by_mprotect(addr, size);
    errno = saved;
    return result;
}

/* Advises n ranges with one call. How many of them, from the first on, it was done for. */
static int advise_many(const struct gort__os_range *ranges, int n, int advice)
{
    ssize_t bytes = syscall(SYS_process_madvise, PIDFD_SELF, ranges, (size_t)n, advice, 0);
    int done = 0;
    for (; done < n && bytes >= (ssize_t)ranges[done].size; done++)
        bytes -= (ssize_t)ranges[done].size;
    return done;
}

int gort__os_vm_guard_many(const struct gort__os_range *ranges, int n)
{
    int saved = errno, done = 0;
    if (gort__load(&many_works, RELAXED) && gort__load(&guard_install_works, RELAXED) && n > 1 &&
        !gort__os_force.no_guard)
        done = advise_many(ranges, n, MADV_GUARD_INSTALL);
    while (done < n && gort__os_vm_guard(ranges[done].addr, ranges[done].size) == 0)
        done++;
    errno = saved;
    return done;
}

bool gort__os_vm_discard(void *addr, size_t size)
{
    int saved = errno;
    /* Locked memory refuses the plain way; before Linux 5.18 it could not be given back at all. */
    bool done = madvise(addr, size, MADV_DONTNEED) == 0 || madvise(addr, size, MADV_DONTNEED_LOCKED) == 0;
    errno = saved;
    return done;
}

void gort__os_vm_discard_many(const struct gort__os_range *ranges, int n)
{
    int saved = errno, done = 0;
    if (gort__load(&many_works, RELAXED) && n > 1)
        done = advise_many(ranges, n, MADV_DONTNEED);
    for (; done < n; done++)
        gort__os_vm_discard(ranges[done].addr, ranges[done].size);
    errno = saved;
}

bool gort__os_vm_renew(void *addr, size_t size, int guards)
{
    int saved = errno;
    if (fills_at_once()) {
        errno = saved;
        return false;
    }
    GORT_TSAN_IGNORE_BEGIN();
    bool renewed = mmap(addr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == addr;
    GORT_TSAN_IGNORE_END();
    if (renewed) {
        madvise(addr, size, MADV_NOHUGEPAGE); /* as gort__os_vm_small: mappings that agree become one */
        if (!gort__load(&guard_install_works, RELAXED))
            gort__add(&guard_budget, guards, RELAXED);
    }
    errno = saved;
    return renewed;
}

void gort__os_vm_huge(void *addr, size_t size)
{
    int saved = errno;
    madvise(addr, size, MADV_HUGEPAGE);
    errno = saved;
}

void gort__os_vm_small(void *addr, size_t size)
{
    int saved = errno;
    madvise(addr, size, MADV_NOHUGEPAGE);
    errno = saved;
}

/* Marks a page and lets the kernel write to it: an honest guard gives EFAULT. qemu's user emulation
 * answers 0 to advice that it does not know, so the result of madvise proves nothing. */
static bool probe_guard_install(void)
{
    size_t page = gort__os_page();
    void *p = map(page);
    if (!p)
        return false;
    bool works = madvise(p, page, MADV_GUARD_INSTALL) == 0 &&
                 syscall(SYS_clock_gettime, CLOCK_MONOTONIC, p) == -1 && errno == EFAULT;
    unmap(p, page);
    return works;
}

/* Asks for an empty list of ranges: only a kernel that knows the call and PIDFD_SELF agrees. */
static bool probe_many(void)
{
    size_t page = gort__os_page();
    void *p = map(page);
    struct iovec one = {p, page};
    bool works = p &&
                 syscall(SYS_process_madvise, PIDFD_SELF, &one, (size_t)1, MADV_DONTNEED, 0) == (ssize_t)page;
    if (p)
        unmap(p, page);
    return works;
}

void gort__vm_init(void)
{
    int saved = errno;
    gort__store(&guard_install_works, !gort__os_force.no_guard_install && probe_guard_install(), RELAXED);
    gort__store(&many_works, !gort__os_force.no_guard_install && probe_many(), RELAXED);
    long maps = gort__os_number_in("/proc/sys/vm/max_map_count");
    gort__store(&guard_budget, (maps > 0 ? maps : 65530) / 8 * 3, RELAXED);
    errno = saved;
}
