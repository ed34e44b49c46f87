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
 * Threads: all functions from any thread at any time, except init. errno is never changed.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

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

static bool guard_install_works; /* written by init only */

size_t gort__os_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void *map(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
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

void gort__os_vm_unmap(void *addr, size_t size)
{
    int saved = errno;
    unmap(addr, size);
    errno = saved;
}

int gort__os_vm_guard(void *addr, size_t size)
{
    int saved = errno, result = 0;
    /* Locked memory (mlockall) refuses guard marks, hence the second way even where the first exists. */
    if (!guard_install_works || madvise(addr, size, MADV_GUARD_INSTALL) != 0)
        result = mprotect(addr, size, PROT_NONE) == 0 ? 0 : -errno;
    errno = saved;
    return result;
}

void gort__os_vm_discard(void *addr, size_t size)
{
    int saved = errno;
    /* Locked memory refuses the plain way; before Linux 5.18 it could not be given back at all. */
    if (madvise(addr, size, MADV_DONTNEED) != 0 && madvise(addr, size, MADV_DONTNEED_LOCKED) != 0)
        memset(addr, 0, size);
    errno = saved;
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

void gort__vm_init(void)
{
    guard_install_works = !gort__os_force.no_guard_install && probe_guard_install();
}
