/* SPDX-License-Identifier: MIT */
/*
 * text.c - where code lies that may hold locks everybody needs: libc, the loader, allocators.
 *
 * Why: a goroutine that is stopped for long in malloc or stdio keeps its lock meanwhile. The ranges are
 * collected at the start of a run, because looking them up takes the loader's lock. In a statically
 * linked program libc's functions lie behind the program's own; the first of a few well-known ones
 * is taken for their beginning. What libc calls there with a lock held may lie before that: the
 * entries of the linkage table (x86-64), the compiler's helpers for atomics (aarch64). Both are leaves, so whoever
 * called them can be read from the link register, or from the top of the stack.
 * memset and its like hold no lock, but may take long: a loop over a big one is hardly ever outside of libc. They are leaves,
 * too; if the caller's address is there and lies in code that is not libc's, nothing is held. realloc and stdio call them with
 * their lock held. Only addresses are known, not sizes: what follows each within LEAF bytes are other functions for strings.
 * Threads: collect alone; the question from anywhere, signal handlers too.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/os.h"

#define MOST      16
#define MOST_TEXT 64
#define LEAF      1024 /* bytes */

struct range {
    uintptr_t from, to;
};

static struct range ranges[MOST];     /* where a lock may be held */
static struct range texts[MOST_TEXT]; /* the code of the program and all libraries */
static struct range libc_code[4];
static int count, text_count, libc_count;
static bool whole; /* libc is part of the program */
static uintptr_t leaves[12];

extern char etext[]; /* the end of the program's code, from the linker */

static void add(struct range *to_list, int *n, int most, uintptr_t from, uintptr_t to)
{
    if (*n < most && from < to)
        to_list[(*n)++] = (struct range){from, to};
}

static bool among(const struct range *list, int n, uintptr_t pc)
{
    for (int i = 0; i < n; i++)
        if (pc >= list[i].from && pc < list[i].to)
            return true;
    return false;
}

static bool in_ranges(uintptr_t pc)
{
    return among(ranges, count, pc);
}

static int look(struct dl_phdr_info *info, size_t size, void *libc)
{
    static const char *const names[] = {"/libc.so", "/libc-",   "/ld-",    "/libpthread",
                                        "malloc",   "/libasan", "/libtsan"};
    (void)size;
    bool wanted = false, is_libc = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && info->dlpi_name; i++)
        if (strstr(info->dlpi_name, names[i])) {
            wanted = true;
            is_libc |= i < 2;
        }
    *(bool *)libc |= is_libc;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + ph->p_vaddr;
        if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
            continue;
        add(texts, &text_count, MOST_TEXT, from, from + ph->p_memsz);
        if (wanted)
            add(ranges, &count, MOST, from, from + ph->p_memsz);
        if (is_libc)
            add(libc_code, &libc_count, 4, from, from + ph->p_memsz);
    }
    return 0;
}

/* The code at pc is an entry of the linkage table: endbr64 or nothing, a prefix or nothing, jmp *slot(%rip). Its caller's
 * address is on top of the stack. */
static bool is_linkage(uintptr_t pc)
{
#if defined(__x86_64__)
    const unsigned char *code = (const unsigned char *)pc;
    static const unsigned char endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
    if (memcmp(code, endbr, sizeof endbr) == 0)
        code += sizeof endbr;
    code += *code == 0xf2;
    return code[0] == 0xff && code[1] == 0x25;
#else
    (void)pc;
    return false;
#endif
}

static void find_whole(void)
{
    whole = true;
    uintptr_t known[] = {(uintptr_t)malloc, (uintptr_t)free,   (uintptr_t)vfprintf,  (uintptr_t)fwrite,
                         (uintptr_t)qsort,  (uintptr_t)strtod, (uintptr_t)localtime, (uintptr_t)exit};
    uintptr_t first = known[0];
    for (size_t i = 1; i < sizeof known / sizeof *known; i++)
        if (known[i] < first)
            first = known[i];
    add(ranges, &count, MOST, first, (uintptr_t)etext);
}

/* Where the function itself is, when its address is that of an entry of the linkage table which has been bound. */
static uintptr_t behind_linkage(uintptr_t pc)
{
#if defined(__x86_64__)
    const unsigned char *at = (const unsigned char *)pc;
    int32_t offset;
    if (!is_linkage(pc))
        return pc;
    while (at[0] != 0xff)
        at++;
    memcpy(&offset, at + 2, sizeof offset);
    memcpy(&pc, at + 6 + offset, sizeof pc);
#endif
    return pc;
}

/* Only what lies in libc itself: a sanitizer has functions of these names that are no leaves. */
static void find_leaves(void)
{
    const uintptr_t known[] = {(uintptr_t)memset,  (uintptr_t)memcpy, (uintptr_t)memmove, (uintptr_t)memcmp,
                               (uintptr_t)memchr,  (uintptr_t)strlen, (uintptr_t)strnlen, (uintptr_t)strchr,
                               (uintptr_t)strrchr, (uintptr_t)strcmp, (uintptr_t)strcpy,  (uintptr_t)strncmp};
    _Static_assert(sizeof known == sizeof leaves, "one place for each");
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uintptr_t at = behind_linkage(known[i]);
        leaves[i] = among(libc_code, libc_count, at) || whole ? at : 0;
    }
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
}

/* The instruction before pc is a call: pc is an address that somebody returns to. pc lies in code. */
static bool after_call(uintptr_t pc)
{
#if defined(__x86_64__)
    const unsigned char *at = (const unsigned char *)pc;
    return at[-5] == 0xe8 || at[-6] == 0xff || at[-2] == 0xff || at[-3] == 0xff || at[-7] == 0xff;
#elif defined(__aarch64__)
    uint32_t word;
    memcpy(&word, (const char *)pc - sizeof word, sizeof word);
    return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000;
#else
    (void)pc;
    return false;
#endif
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
    return among(texts, text_count, caller) && among(texts, text_count, caller - 8) && !in_ranges(caller) &&
           after_call(caller);
}

bool gort__os_text_delicate(const struct gort__os_signal *s)
{
    if (in_ranges(s->pc))
        return !is_leaf_outside(s);
    if (s->link && in_ranges(s->link))
        return true;
    return whole && is_linkage(s->pc) && in_ranges(*(const uintptr_t *)s->sp);
}
