/* SPDX-License-Identifier: MIT */
/*
 * symbol.c - the name of the function at an address.
 *
 * Why not dladdr: it takes the loader's lock, which whoever was interrupted may hold, and knows exported
 * names only. The files that are mapped have all names, also those of static functions, unless they were
 * stripped. They are found in /proc/self/maps and mapped for a look.
 * Threads: any, signal handlers included; each call opens, looks and closes. errno is never changed.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fmt.h"
#include "os/os.h"

struct module {
    uintptr_t start, end, offset; /* a mapping, and where in the file it begins */
    char path[512];
};

static uintptr_t hex(const char **at)
{
    uintptr_t v = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9')
            v = v * 16 + (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            v = v * 16 + (uintptr_t)(c - 'a' + 10);
        else
            return v;
    }
}

/* "start-end perms offset dev inode   path" */
static void parse(const char *line, struct module *m)
{
    m->start = hex(&line);
    line += *line == '-';
    m->end = hex(&line);
    for (int field = 1; field <= 5; field++) { /* the permissions, offset, device, inode, path */
        while (*line && *line != ' ')
            line++;
        while (*line == ' ')
            line++;
        if (field == 2)
            m->offset = hex(&line);
    }
    size_t n = strlen(line);
    if (n >= sizeof m->path)
        n = sizeof m->path - 1;
    memcpy(m->path, line, n);
    m->path[n] = '\0';
}

static bool find_module(uintptr_t pc, struct module *m)
{
    char buf[1024], line[640];
    size_t len = 0;
    bool found = false;
    ssize_t n;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && !found && (n = read(fd, buf, sizeof buf)) > 0)
        for (ssize_t i = 0; i < n && !found; i++) {
            if (buf[i] != '\n') {
                if (len < sizeof line - 1)
                    line[len++] = buf[i];
                continue;
            }
            line[len] = '\0';
            len = 0;
            parse(line, m);
            found = pc >= m->start && pc < m->end && m->path[0];
        }
    if (fd >= 0)
        close(fd);
    return found;
}

/* A piece of the file, or NULL when it is not all there. */
static const void *piece(const char *file, size_t size, uint64_t at, uint64_t bytes)
{
    return at <= size && bytes <= size - at ? file + at : NULL;
}

/* The function that holds vaddr in one table of symbols. */
static const char *look(const char *file, size_t size, const Elf64_Shdr *table, const Elf64_Shdr *strings,
                        uint64_t vaddr, uint64_t *offset)
{
    const Elf64_Sym *syms = piece(file, size, table->sh_offset, table->sh_size);
    const char *names = piece(file, size, strings->sh_offset, strings->sh_size);
    if (!syms || !names || !strings->sh_size || names[strings->sh_size - 1])
        return NULL;
    for (size_t i = 0; i < table->sh_size / sizeof *syms; i++) {
        const Elf64_Sym *s = &syms[i];
        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
            s->st_name >= strings->sh_size)
            continue;
        if (vaddr >= s->st_value && vaddr < s->st_value + (s->st_size ? s->st_size : 1)) {
            *offset = vaddr - s->st_value;
            return names + s->st_name;
        }
    }
    return NULL;
}

/* The name of what lies at `at` in the file: all symbols first, then the exported ones. */
static const char *name_at(const char *file, size_t size, uint64_t at, uint64_t *vaddr, uint64_t *offset)
{
    const Elf64_Ehdr *e = piece(file, size, 0, sizeof *e);
    if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64)
        return NULL;
    const Elf64_Phdr *p = piece(file, size, e->e_phoff, (uint64_t)e->e_phnum * sizeof *p);
    const Elf64_Shdr *s = piece(file, size, e->e_shoff, (uint64_t)e->e_shnum * sizeof *s);
    for (int i = 0; p && i < e->e_phnum; i++)
        if (p[i].p_type == PT_LOAD && at >= p[i].p_offset && at - p[i].p_offset < p[i].p_filesz)
            *vaddr = at - p[i].p_offset + p[i].p_vaddr;
    static const uint32_t kinds[] = {SHT_SYMTAB, SHT_DYNSYM};
    for (int k = 0; s && k < 2; k++)
        for (int i = 0; i < e->e_shnum; i++)
            if (s[i].sh_type == kinds[k] && s[i].sh_link < e->e_shnum) {
                const char *name = look(file, size, &s[i], &s[s[i].sh_link], *vaddr, offset);
                if (name)
                    return name;
            }
    return NULL;
}

/* The length of a function's name as the source has it. Compilers append to the names of static functions
 * when they are linked together (-flto: ".lto_priv.0"), and of copies and parts of functions (".isra.0",
 * ".cold"). */
static size_t plain_length(const char *name)
{
    static const char *const added[] = {".lto_priv", ".constprop", ".isra", ".part", ".cold", ".llvm"};
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.'))
        for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
            size_t n = strlen(added[i]);
            if (strncmp(dot, added[i], n) == 0 && (!dot[n] || dot[n] == '.'))
                return (size_t)(dot - name);
        }
    return strlen(name);
}

size_t gort__os_symbol(uintptr_t pc, char *buf, size_t size)
{
    struct module m;
    int saved = errno;
    size_t n = 0;
    buf[0] = '\0';
    if (!find_module(pc, &m)) {
        errno = saved;
        return 0;
    }
    uint64_t at = pc - m.start + m.offset, vaddr = at, offset = 0;
    const char *base = strrchr(m.path, '/');
    base = base ? base + 1 : m.path;
    struct stat st;
    int fd = open(m.path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        size_t bytes = (size_t)st.st_size;
        char *file = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            const char *name = name_at(file, bytes, at, &vaddr, &offset);
            if (name) {
                size_t plain = plain_length(name);
                n = gort__fmt(buf, size, "%s", name);
                n = n < plain ? n : plain;
                n += gort__fmt(buf + n, size - n, "+0x%lx ", (unsigned long)offset);
            }
            munmap(file, bytes);
        }
    }
    if (fd >= 0)
        close(fd);
    n += gort__fmt(buf + n, size - n, "(%s+0x%lx)", base, (unsigned long)vaddr);
    errno = saved;
    return n;
}
