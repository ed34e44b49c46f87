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
 * Threads: collect alone; the question from anywhere, signal handlers too.
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "os/os.h"

#define MOST 16

static struct {
    uintptr_t from, to;
} ranges[MOST];
static int count;
static bool whole; /* libc is part of the program */

extern char etext[]; /* the end of the program's code, from the linker */

static void add(uintptr_t from, uintptr_t to)
{
    if (count < MOST && from < to) {
        ranges[count].from = from;
        ranges[count].to = to;
        count++;
    }
}

static int look(struct dl_phdr_info *info, size_t size, void *libc)
{
    static const char *const names[] = {"/libc.so", "/libc-",   "/ld-",    "/libpthread",
                                        "malloc",   "/libasan", "/libtsan"};
    (void)size;
    bool wanted = false;
    for (size_t i = 0; i < sizeof names / sizeof *names && info->dlpi_name; i++)
        if (strstr(info->dlpi_name, names[i])) {
            wanted = true;
            *(bool *)libc |= i < 2;
        }
    for (int i = 0; wanted && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if (ph->p_type == PT_LOAD && (ph->p_flags & PF_X))
            add(info->dlpi_addr + ph->p_vaddr, info->dlpi_addr + ph->p_vaddr + ph->p_memsz);
    }
    return 0;
}

void gort__os_text_collect(void)
{
    bool libc = false;
    if (count) /* threads that an earlier run left behind may be looking */
        return;
    dl_iterate_phdr(look, &libc);
    if (libc)
        return;
    whole = true;
    uintptr_t known[] = {(uintptr_t)malloc, (uintptr_t)free,   (uintptr_t)vfprintf,  (uintptr_t)fwrite,
                         (uintptr_t)qsort,  (uintptr_t)strtod, (uintptr_t)localtime, (uintptr_t)exit};
    uintptr_t first = known[0];
    for (size_t i = 1; i < sizeof known / sizeof *known; i++)
        if (known[i] < first)
            first = known[i];
    add(first, (uintptr_t)etext);
}

static bool in_ranges(uintptr_t pc)
{
    for (int i = 0; i < count; i++)
        if (pc >= ranges[i].from && pc < ranges[i].to)
            return true;
    return false;
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

bool gort__os_text_delicate(const struct gort__os_signal *s)
{
    if (in_ranges(s->pc) || (s->link && in_ranges(s->link)))
        return true;
    return whole && is_linkage(s->pc) && in_ranges(*(const uintptr_t *)s->sp);
}
