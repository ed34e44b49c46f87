/* SPDX-License-Identifier: MIT */
/*
 * own_malloc.h - a malloc of the program's own, as bad for the end of a run as one can be written.
 *
 * Included by one file of a program, it replaces libc's. One lock (a spin lock, or a pthread mutex while
 * own_malloc_mutex is set, which only a lone thread may change), held for long. What is behind it has no name
 * that anybody could know:
 *   malloc   jumps to a static function by a pointer (a tail call that leaves no trace)
 *   free     jumps to a static function
 *   realloc  calls static functions by pointers; memcpy with the lock held
 *   calloc   memset with the lock held
 * Large blocks are mapped and unmapped with the lock held. Empty in builds with a sanitizer, which brings its
 * own.
 */
#ifndef GORT_TEST_OWN_MALLOC_H
#define GORT_TEST_OWN_MALLOC_H

#if defined(__has_feature)
#define OWN_MALLOC_FEATURE(x) __has_feature(x)
#else
#define OWN_MALLOC_FEATURE(x) 0
#endif
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&                                       \
    !OWN_MALLOC_FEATURE(address_sanitizer) && !OWN_MALLOC_FEATURE(thread_sanitizer)
#define HAVE_OWN_MALLOC 1

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Stays a function of its own: neither inlined nor copied for a caller. clang makes no such copies and has no
 * word for it. */
#if defined(__clang__)
#define OWN_HIDE __attribute__((noinline))
#else
#define OWN_HIDE __attribute__((noinline, noclone))
#endif

/* Before each block. A block of a class comes from a chunk and goes to its class's list; a large one is its
 * own mapping. */
struct own_head {
    void *base;  /* of the mapping, or of the head itself */
    size_t size; /* of the mapping if class is CLASSES; of the block */
    size_t usable;
    unsigned class;
};

enum { OWN_CLASSES = 12, OWN_CHUNK = 1 << 20 }; /* 32 << class bytes: up to 64 KiB */

static struct own_block {
    struct own_block *next;
} * own_lists[OWN_CLASSES];
static char *own_chunk, *own_chunk_end;
static atomic_flag own_spin = ATOMIC_FLAG_INIT;
static pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned own_sum;
bool own_malloc_mutex;

static OWN_HIDE void own_lock(void)
{
    if (own_malloc_mutex)
        pthread_mutex_lock(&own_mutex);
    else
        for (int i = 1; atomic_flag_test_and_set_explicit(&own_spin, memory_order_acquire); i++)
            if (i % 100 == 0)
                usleep(20); /* whoever has it may need this CPU */
}

static OWN_HIDE void own_unlock(void)
{
    if (own_malloc_mutex)
        pthread_mutex_unlock(&own_mutex);
    else
        atomic_flag_clear_explicit(&own_spin, memory_order_release);
}

/* Most of the time of most calls, with the lock held. */
static OWN_HIDE void own_ponder(unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        own_sum += i * own_sum;
}
static void (*volatile own_think)(unsigned) = own_ponder;

static OWN_HIDE void *own_map(size_t size)
{
    /* Not through libc's function, which tests with faults replace. */
    long at = syscall(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
    return at == -1 ? NULL : (void *)at;
}

static OWN_HIDE char *own_carve(size_t size)
{
    if ((size_t)(own_chunk_end - own_chunk) < size) {
        own_chunk = own_map(OWN_CHUNK);
        own_chunk_end = own_chunk ? own_chunk + OWN_CHUNK : NULL;
    }
    char *p = own_chunk;
    own_chunk += p ? size : 0;
    return p;
}

static OWN_HIDE void *own_take_locked(size_t n, size_t align)
{
    unsigned class = 0;
    size_t whole = n + sizeof(struct own_head) + (align > 32 ? align : 0);
    own_think(100);
    while (class < OWN_CLASSES && (size_t)32 << class < whole)
        class ++;
    size_t size = class < OWN_CLASSES ? (size_t)32 << class : (whole + 4095) & ~(size_t)4095;
    char *base;
    if (class < OWN_CLASSES && own_lists[class]) {
        base = (char *)own_lists[class];
        own_lists[class] = own_lists[class]->next;
    } else
        base = whole < n ? NULL : class < OWN_CLASSES ? own_carve(size) : own_map(size);
    if (!base)
        return NULL;
    uintptr_t at = (uintptr_t)base + sizeof(struct own_head);
    at = align > 32 ? (at + align - 1) & ~(align - 1) : at;
    struct own_head *head = (struct own_head *)at - 1;
    *head = (struct own_head){base, size, size - (at - (uintptr_t)base), class};
    return (void *)at;
}

static OWN_HIDE void own_give_locked(void *p)
{
    struct own_head head = ((struct own_head *)p)[-1];
    struct own_block *b = head.base;
    own_think(100);
    if (head.class == OWN_CLASSES) {
        syscall(SYS_munmap, head.base, head.size);
        return;
    }
    b->next = own_lists[head.class];
    own_lists[head.class] = b;
}

static OWN_HIDE void *own_take(size_t n)
{
    own_lock();
    void *p = own_take_locked(n, 32);
    own_unlock();
    if (!p)
        errno = ENOMEM;
    return p;
}
static OWN_HIDE void own_give(void *p)
{
    int saved = errno;
    own_lock();
    own_give_locked(p);
    own_unlock();
    errno = saved;
}
static void *(*volatile own_taker)(size_t) = own_take;
static void *(*volatile own_locked_taker)(size_t, size_t) = own_take_locked;

OWN_HIDE void *malloc(size_t n)
{
    return own_taker(n);
}

OWN_HIDE void free(void *p)
{
    if (p)
        own_give(p);
}

OWN_HIDE void *calloc(size_t n, size_t size)
{
    size_t bytes;
    void *p = NULL;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    own_lock();
    p = own_locked_taker(bytes, 32);
    if (p)
        memset(p, 0, bytes);
    own_unlock();
    return p;
}

OWN_HIDE void *realloc(void *old, size_t n)
{
    own_lock();
    void *p = own_locked_taker(n, 32);
    if (p && old) {
        size_t had = ((struct own_head *)old)[-1].usable;
        memcpy(p, old, had < n ? had : n);
        own_give_locked(old);
    }
    own_unlock();
    return p;
}

OWN_HIDE void *memalign(size_t align, size_t n)
{
    own_lock();
    void *p = own_locked_taker(n, align);
    own_unlock();
    return p;
}

OWN_HIDE void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

OWN_HIDE int posix_memalign(void **p, size_t align, size_t n)
{
    *p = memalign(align, n);
    return *p ? 0 : ENOMEM;
}

OWN_HIDE size_t malloc_usable_size(void *p)
{
    return p ? ((struct own_head *)p)[-1].usable : 0;
}

#endif
#endif
