/* SPDX-License-Identifier: MIT */
/*
 * object.c - which program or library holds an address, and where its tables for unwinding are.
 *
 * Why not dl_iterate_phdr when the question comes: it takes the loader's lock, which whoever was interrupted
 * may hold. The program itself, libc and the loader are never unloaded, so what was collected about them
 * stays true. For all others glibc's _dl_find_object (2.35) is asked, which takes no lock and may be called
 * in signal handlers; where it is missing nobody can tell what has been unloaded, and the answer is no.
 * gcc links -static programs without an index of their unwind tables (PT_GNU_EH_FRAME). The tables themselves are there; the
 * section headers in the program's file tell where, and we sort them. That takes some milliseconds in a large
 * program, and is done only if it has an allocator of its own (heap.c).
 * Threads: collect and add alone; the questions from anywhere, signal handlers too. errno is changed.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/linux/text.h"

#define MOST          8
#define MOST_SEGMENTS 48

#if defined(DLFO_STRUCT_HAS_EH_DBASE)
#pragma weak _dl_find_object
#endif

static struct gort__object program;
static uintptr_t bias; /* what the loader added to the program's addresses */
static struct gort__object steady_ones[MOST];
static struct gort__range segments[MOST_SEGMENTS]; /* of all these, that can be read */
static int segment_count, steady_count;

void gort__object_add(const struct dl_phdr_info *info, bool steady)
{
    struct gort__object o = {.lo = UINTPTR_MAX};
    bool first = !program.hi; /* the program comes first */
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        uintptr_t from = info->dlpi_addr + ph->p_vaddr, to = from + ph->p_memsz;
        if (ph->p_type == PT_GNU_EH_FRAME)
            o.index = from;
        if (ph->p_type != PT_LOAD)
            continue;
        o.lo = from < o.lo ? from : o.lo;
        o.hi = to > o.hi ? to : o.hi;
        if ((first || steady) && (ph->p_flags & PF_R))
            gort__text_range_add(segments, &segment_count, MOST_SEGMENTS, from, to);
    }
    if (first) {
        program = o;
        bias = info->dlpi_addr;
    } else if (steady && steady_count < MOST)
        steady_ones[steady_count++] = o;
}

static bool holds(const struct gort__object *o, uintptr_t at)
{
    return at >= o->lo && at < o->hi;
}

bool gort__object_find(uintptr_t at, struct gort__object *o)
{
    if (holds(&program, at)) {
        *o = program;
        return true;
    }
    for (int i = 0; i < steady_count; i++)
        if (holds(&steady_ones[i], at)) {
            *o = steady_ones[i];
            return true;
        }
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
    struct dl_find_object found;
    if (_dl_find_object && _dl_find_object((void *)at, &found) == 0) {
        *o = (struct gort__object){.lo = (uintptr_t)found.dlfo_map_start,
                                   .hi = (uintptr_t)found.dlfo_map_end,
                                   .index = (uintptr_t)found.dlfo_eh_frame};
        return true;
    }
#endif
    return false;
}

/* Asks the kernel to compare a word, without waiting: it fails in a different way when the word cannot be
 * read. */
static bool kernel_reads(uintptr_t at)
{
    struct timespec now = {0};
    at &= ~(uintptr_t)3;
    return syscall(SYS_futex, at, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 0, &now, NULL, 0) == 0 || errno != EFAULT;
}

bool gort__object_readable(uintptr_t at, size_t size)
{
    uintptr_t last = at + size - 1;
    if (last < at)
        return false;
    for (int i = 0; i < segment_count; i++)
        if (at >= segments[i].from && last < segments[i].to)
            return true;
    return kernel_reads(at) && (at / GORT__PAGE == last / GORT__PAGE || kernel_reads(last));
}

static bool read_at(int fd, void *to, size_t size, uint64_t at)
{
    return pread(fd, to, size, (off_t)at) == (ssize_t)size;
}

static void sort_table(uintptr_t from, uintptr_t to)
{
    size_t n = gort__unwind_sort(from, to, NULL, 0);
    struct gort__sorted *sorted = n ? mmap(NULL, n * sizeof *sorted, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                    : MAP_FAILED;
    if (sorted == MAP_FAILED)
        return;
    program.sorted_count = gort__unwind_sort(from, to, sorted, n);
    program.sorted = sorted;
}

static void find_section(int fd)
{
    ElfW(Ehdr) e;
    ElfW(Shdr) names, s;
    if (!read_at(fd, &e, sizeof e, 0) || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
        e.e_shentsize != sizeof s || e.e_shstrndx >= e.e_shnum ||
        !read_at(fd, &names, sizeof names, e.e_shoff + (uint64_t)e.e_shstrndx * sizeof s))
        return;
    for (int i = 0; i < e.e_shnum; i++) {
        static const char wanted[] = ".eh_frame";
        char name[sizeof wanted];
        if (!read_at(fd, &s, sizeof s, e.e_shoff + (uint64_t)i * sizeof s))
            return;
        if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NOBITS ||
            !read_at(fd, name, sizeof name, names.sh_offset + s.sh_name) ||
            memcmp(name, wanted, sizeof name) != 0)
            continue;
        uintptr_t from = bias + s.sh_addr, to = from + s.sh_size;
        for (int k = 0; k < segment_count; k++)
            if (from >= segments[k].from && to <= segments[k].to && from < to) {
                sort_table(from, to);
                return;
            }
    }
}

void gort__object_collect(void)
{
    if (program.index)
        return;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    find_section(fd);
    close(fd);
}
