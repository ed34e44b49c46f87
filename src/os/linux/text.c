/* SPDX-License-Identifier: MIT */
/*
 * text.c - where code lies that may hold locks everybody needs: libc, the loader, allocators.
 *
 * Why: a goroutine that is stopped for long in malloc or stdio keeps its lock meanwhile. The ranges are
 * collected at the start of a run, because looking them up takes the loader's lock. In a statically
 * linked program libc's functions lie behind the program's own; the first of a few well-known ones
 * is taken for their beginning.
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
    uintptr_t known[] = {(uintptr_t)malloc, (uintptr_t)free,   (uintptr_t)vfprintf,  (uintptr_t)fwrite,
                         (uintptr_t)qsort,  (uintptr_t)strtod, (uintptr_t)localtime, (uintptr_t)exit};
    uintptr_t first = known[0];
    for (size_t i = 1; i < sizeof known / sizeof *known; i++)
        if (known[i] < first)
            first = known[i];
    add(first, (uintptr_t)etext);
}

bool gort__os_text_delicate(uintptr_t pc)
{
    for (int i = 0; i < count; i++)
        if (pc >= ranges[i].from && pc < ranges[i].to)
            return true;
    return false;
}
