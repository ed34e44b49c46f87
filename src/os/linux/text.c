/* SPDX-License-Identifier: MIT */
/*
 * text.c - where code lies that may hold locks everybody needs: libc, the loader, allocators.
 *
 * Why: a goroutine that is stopped for long in malloc or stdio keeps its lock meanwhile. libc and the loader
 * are known by their names; the ranges are collected at the start of a run, because looking them up takes the
 * loader's lock. An allocator can be anywhere: heap.c finds it. The kernel's code for clocks (vdso) counts as
 * libc's, which calls it, also for allocators that read the time with a lock held (ASan's does).
 * In a statically linked program libc's functions lie behind the program's own; the first of a few well-known
 * ones is taken for their beginning. What libc calls there with a lock held may lie before that: the entries
 * of the linkage table (x86-64), the compiler's helpers for atomics (aarch64). Both are leaves, so whoever
 * called them can be read from the link register, or from the top of the stack.
 * memset and its like hold no lock, but may take long: a loop over a big one is hardly ever outside of libc.
 * They are leaves, too; if the caller's address is there and lies in code that is not libc's, nothing is
 * held. realloc and stdio call them with their lock held. Only addresses are known, not sizes: what follows
 * each within LEAF bytes are other functions for strings. The loader calls the program with its lock held:
 * constructors of libraries, and whoever walks the list of libraries (dl_iterate_phdr: collectors, profilers,
 * and C++ exceptions before glibc 2.35). Such code is stopped like any other, as it goes on later; but
 * whoever is to be frozen is asked for its callers.
 * Threads: collect alone; the question from anywhere, signal handlers too. errno is changed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/linux/text.h"

#define MOST      16
#define MOST_TEXT 64
#define LEAF      1024 /* bytes */

static struct gort__range ranges[MOST];     /* where a lock may be held */
static struct gort__range texts[MOST_TEXT]; /* the code of the program and all libraries */
static struct gort__range libc_code[4];
/* Libc, the loader, sanitizers: with an allocator that is all theirs. */
static struct gort__range runtime[MOST];
static struct gort__range loader[4]; /* and dl_iterate_phdr, which lies in libc */
static struct gort__range cxx[4];    /* operators new and delete that only call malloc and free */
static int count, text_count, libc_count, runtime_count, loader_count, cxx_count;
static bool whole; /* libc is part of the program */
static uintptr_t leaves[12];

extern char etext[]; /* the end of the program's code, from the linker */

/* The names that glibc's malloc and free have when the program has others; weak: not linked for our sake. */
extern void __libc_malloc(void) __attribute__((weak));
extern void __libc_free(void) __attribute__((weak));

static bool in_ranges(uintptr_t pc)
{
    return gort__text_range_has(ranges, count, pc);
}

static bool named(const char *file, const char *const *names, size_t n)
{
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    for (size_t i = 0; i < n; i++)
        if (strncmp(base, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}
#define NAMED(file, names) named(file, names, sizeof(names) / sizeof *(names))

static int look(struct dl_phdr_info *info, size_t size, void *libc)
{
    static const char *const libcs[] = {"libc.so", "libc-"}, *const loaders[] = {"ld-"},
                             *const others[] = {"libpthread", "linux-vdso"},
                             *const sanitizers[] = {"libasan", "libtsan", "libclang_rt"},
                             *const cxxs[] = {"libstdc++", "libc++"};
    (void)size;
    const char *file = info->dlpi_name ? info->dlpi_name : "";
    const char *base = strrchr(file, '/');
    bool is_libc = NAMED(file, libcs), sanitizer = NAMED(file, sanitizers), is_cxx = NAMED(file, cxxs);
    bool is_loader = NAMED(file, loaders), steady = is_libc || is_loader || NAMED(file, others);
    bool allocator = strstr(base ? base : file, "malloc"); /* also its functions with names of its own */
    *(bool *)libc |= is_libc;
    gort__object_add(info, steady);
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + ph->p_vaddr, to = from + ph->p_memsz;
        if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
            continue;
        gort__text_range_add(texts, &text_count, MOST_TEXT, from, to);
        if (steady || sanitizer || allocator)
            gort__text_range_add(ranges, &count, MOST, from, to);
        if (steady || sanitizer)
            gort__text_range_add(runtime, &runtime_count, MOST, from, to);
        if (is_loader)
            gort__text_range_add(loader, &loader_count, 3, from, to);
        if (is_libc)
            gort__text_range_add(libc_code, &libc_count, 4, from, to);
        if (is_cxx)
            gort__text_range_add(cxx, &cxx_count, 4, from, to);
    }
    return 0;
}

static void find_whole(void)
{
    whole = true;
    uintptr_t known[] = {(uintptr_t)vfprintf,      (uintptr_t)fwrite,     (uintptr_t)qsort,
                         (uintptr_t)strtod,        (uintptr_t)localtime,  (uintptr_t)exit,
                         (uintptr_t)__libc_malloc, (uintptr_t)__libc_free};
    uintptr_t first = known[0];
    for (size_t i = 1; i < sizeof known / sizeof *known; i++)
        if (known[i] && known[i] < first)
            first = known[i];
    gort__text_range_add(ranges, &count, MOST, first, (uintptr_t)etext);
}

/* It may be in a program without tables, where nobody knows how long it is. */
#define ITERATE 512 /* bytes */

static void find_iterate(void)
{
    struct gort__range f;
    uintptr_t at = gort__code_behind_linkage((uintptr_t)dl_iterate_phdr);
    if (!gort__unwind_function(at, &f))
        f = (struct gort__range){at, at + ITERATE};
    gort__text_range_add(loader, &loader_count, 4, f.from, f.to);
}

/* Only what lies in libc itself: a sanitizer has functions of these names that are no leaves. */
static void find_leaves(void)
{
    const uintptr_t known[] = {(uintptr_t)memset,  (uintptr_t)memcpy, (uintptr_t)memmove, (uintptr_t)memcmp,
                               (uintptr_t)memchr,  (uintptr_t)strlen, (uintptr_t)strnlen, (uintptr_t)strchr,
                               (uintptr_t)strrchr, (uintptr_t)strcmp, (uintptr_t)strcpy,  (uintptr_t)strncmp};
    _Static_assert(sizeof known == sizeof leaves, "one place for each");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uintptr_t at = gort__code_behind_linkage(known[i]);
        leaves[i] = gort__text_range_has(libc_code, libc_count, at) || whole ? at : 0;
    }
}

/* An allocator there is met by its address. */
static bool is_runtime(uintptr_t pc)
{
    if (whole)
        return in_ranges(pc) && (uintptr_t)malloc == (uintptr_t)__libc_malloc;
    return gort__text_range_has(runtime, runtime_count, pc);
}

static bool is_cxx(uintptr_t pc)
{
    return gort__text_range_has(cxx, cxx_count, pc);
}

void gort__os_text_collect(void)
{
    bool libc = false;
    if (count) /* threads that an earlier run left behind may be looking */
        return;
    dl_iterate_phdr(look, &libc);
    if (!libc)
        find_whole();
    find_leaves();
    find_iterate();
    gort__heap_collect(is_runtime, is_cxx);
}

/* memset or its like runs, and was called by code that is not libc's. */
static bool is_leaf_outside(const struct gort__os_signal *s)
{
    bool leaf = false;
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves && !leaf; i++)
        leaf = leaves[i] && s->pc >= leaves[i] && s->pc - leaves[i] < LEAF;
    if (!leaf)
        return false;
    uintptr_t caller = s->link ? s->link : *(const uintptr_t *)s->sp;
    return gort__text_range_has(texts, text_count, caller) &&
           gort__text_range_has(texts, text_count, caller - 8) && !in_ranges(caller) &&
           gort__code_after_call(caller);
}

static bool in_libc(const struct gort__os_signal *s)
{
    if (in_ranges(s->pc))
        return !is_leaf_outside(s);
    if (s->link && in_ranges(s->link))
        return true;
    return whole && !s->link && gort__code_is_linkage(s->pc) && in_ranges(*(const uintptr_t *)s->sp);
}

bool gort__os_text_in_libc(const struct gort__os_signal *s)
{
    return in_libc(s) || gort__heap_inside(s);
}

static bool returns_to_loader(uintptr_t pc)
{
    return gort__text_range_has(loader, loader_count, pc - 1);
}

bool gort__os_text_loading(const struct gort__os_signal *s)
{
    return gort__heap_caller(s, returns_to_loader);
}
