/* SPDX-License-Identifier: MIT */
/*
 * source.c - opens the files that addresses lie in: their symbols, their debug information.
 *
 * What is mapped where is in /proc/self/maps, which needs no lock. A file is opened once for a report. Debug
 * information that was split off is found by the build id below /usr/lib/debug, or by the name that the file
 * gives (.gnu_debuglink), beside it or in .debug. Compressed sections are not read: then there are names and
 * offsets, for addr2line.
 * Threads: one for each struct gort__os_source.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fmt.h"
#include "os/linux/dwarf.h"
#include "os/linux/symbol.h"

#define MODULES 32

struct file {
    const char *at; /* NULL: not there */
    size_t size;
};

struct module {
    struct gort__mapping map; /* one of those that the file has */
    struct file file, debug;  /* debug: what was split off, or nothing */
    bool opened;
    struct gort__dwarf dwarf;
};

struct gort__os_source {
    int n;
    struct module module[MODULES];
};

size_t gort__os_source_size(void)
{
    return sizeof(struct gort__os_source);
}

static struct file open_file(const char *path)
{
    struct file f = {NULL, 0};
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof(Elf64_Ehdr)) {
        void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (at != MAP_FAILED)
            f = (struct file){at, (size_t)st.st_size};
    }
    if (fd >= 0)
        close(fd);
    if (f.at && memcmp(f.at, ELFMAG, SELFMAG) != 0) {
        munmap((void *)(uintptr_t)f.at, f.size);
        f.at = NULL;
    }
    return f;
}

static const void *piece(const struct file *f, uint64_t at, uint64_t bytes)
{
    return f->at && at <= f->size && bytes <= f->size - at ? f->at + at : NULL;
}

static const Elf64_Shdr *sections(const struct file *f, int *n)
{
    const Elf64_Ehdr *e = piece(f, 0, sizeof *e);
    *n = e && e->e_ident[EI_CLASS] == ELFCLASS64 && e->e_shentsize == sizeof(Elf64_Shdr) ? e->e_shnum : 0;
    return *n ? piece(f, e->e_shoff, (uint64_t)*n * sizeof(Elf64_Shdr)) : NULL;
}

static struct gort__bytes find_section(const struct file *f, const char *name)
{
    int n;
    struct gort__bytes none = {NULL, NULL};
    const Elf64_Shdr *s = sections(f, &n);
    const Elf64_Ehdr *e = piece(f, 0, sizeof *e);
    if (!s || e->e_shstrndx >= n)
        return none;
    size_t length = strlen(name) + 1;
    for (int i = 0; i < n; i++) {
        const char *has = piece(f, s[e->e_shstrndx].sh_offset + s[i].sh_name, length);
        const uint8_t *at = piece(f, s[i].sh_offset, s[i].sh_size);
        if (has && memcmp(has, name, length) == 0 && at && s[i].sh_type != SHT_NOBITS &&
            !(s[i].sh_flags & SHF_COMPRESSED))
            return (struct gort__bytes){at, at + s[i].sh_size};
    }
    return none;
}

static bool has_debug(const struct file *f)
{
    struct gort__bytes b = find_section(f, ".debug_info");
    return b.at != b.end;
}

/* --- debug information that was split off ---------------------------------------------------------- */

static struct file by_build_id(const struct file *f)
{
    struct gort__bytes b = find_section(f, ".note.gnu.build-id");
    char path[256];
    uint64_t name = gort__bytes_word(&b, 4), size = gort__bytes_word(&b, 4);
    gort__bytes_skip(&b, 4 + ((name + 3) & ~UINT64_C(3)));
    if (size < 2 || size > 64 || size > (uint64_t)(b.end - b.at))
        return (struct file){NULL, 0};
    size_t n = gort__fmt(path, sizeof path, "/usr/lib/debug/.build-id/");
    for (uint64_t i = 0; i < size; i++) {
        static const char digit[] = "0123456789abcdef";
        path[n++] = digit[b.at[i] >> 4];
        path[n++] = digit[b.at[i] & 15];
        if (i == 0)
            path[n++] = '/';
    }
    gort__fmt(path + n, sizeof path - n, ".debug");
    return open_file(path);
}

static struct file by_link(const struct module *m)
{
    struct gort__bytes b = find_section(&m->file, ".gnu_debuglink");
    const char *name = gort__bytes_text(&b), *slash = strrchr(m->map.path, '/');
    struct file f = {NULL, 0};
    char path[1024], dir[512];
    if (!name || !slash)
        return f;
    gort__fmt(dir, sizeof dir, "%s", m->map.path);
    dir[slash - m->map.path] = '\0';
    static const char *const around[][2] = {{"", "/"}, {"", "/.debug/"}, {"/usr/lib/debug", "/"}};
    for (size_t i = 0; i < 3 && !has_debug(&f); i++) {
        gort__fmt(path, sizeof path, "%s%s%s%s", around[i][0], dir, around[i][1], name);
        f = open_file(path);
    }
    return f;
}

/* --- modules --------------------------------------------------------------------------------------- */

static void open_module(struct module *m)
{
    static const char *const names[GORT__SECTIONS] = {
        ".debug_info",   ".debug_abbrev",   ".debug_line", ".debug_str",        ".debug_line_str",
        ".debug_ranges", ".debug_rnglists", ".debug_addr", ".debug_str_offsets"};
    m->opened = true;
    m->file = open_file(m->map.path);
    if (m->file.at && !has_debug(&m->file)) {
        m->debug = by_build_id(&m->file);
        if (!m->debug.at)
            m->debug = by_link(m);
    }
    for (int i = 0; i < GORT__SECTIONS; i++)
        m->dwarf.section[i] = find_section(m->debug.at ? &m->debug : &m->file, names[i]);
}

static struct module *module_of(struct gort__os_source *s, uintptr_t pc)
{
    for (int i = 0; i < s->n; i++)
        if (pc >= s->module[i].map.start && pc < s->module[i].map.end)
            return &s->module[i];
    if (s->n == MODULES) { /* the last one's place is used again and again */
        struct module *last = &s->module[--s->n];
        if (last->file.at)
            munmap((void *)(uintptr_t)last->file.at, last->file.size);
        if (last->debug.at)
            munmap((void *)(uintptr_t)last->debug.at, last->debug.size);
        memset(last, 0, sizeof *last);
    }
    struct module *m = &s->module[s->n];
    if (!gort__symbol_mapping(pc, &m->map))
        return NULL;
    s->n++;
    open_module(m);
    return m;
}

static void by_symbol(struct module *m, struct gort__os_source_place *out)
{
    const struct file *files[2] = {&m->debug, &m->file};
    const char *name = NULL;
    for (int i = 0; i < 2 && !name; i++)
        if (files[i]->at)
            name = gort__symbol_name(files[i]->at, files[i]->size, out->address, &out->offset);
    if (!name)
        return;
    struct gort__os_source_call *c = &out->call[out->n ? out->n - 1 : 0];
    /* The outermost: the symbol tells of copies and parts, too, but is cut to what the source says. */
    c->function = name;
    c->length = gort__symbol_length(name);
    out->n += !out->n;
}

void gort__os_source_find(struct gort__os_source *s, uintptr_t pc, struct gort__os_source_place *out)
{
    int saved = errno;
    struct module *m = module_of(s, pc);
    memset(out, 0, sizeof *out);
    if (m) {
        const char *slash = strrchr(m->map.path, '/');
        uint64_t at = pc - m->map.start + m->map.offset;
        out->module = slash ? slash + 1 : m->map.path;
        out->address = m->file.at ? gort__symbol_address(m->file.at, m->file.size, at) : at;
        out->n = gort__dwarf_find(&m->dwarf, out->address, out->call, GORT__SOURCE_CALLS);
        if (!out->n || !out->call[out->n - 1].function)
            by_symbol(m, out);
    }
    errno = saved;
}

void gort__os_source_end(struct gort__os_source *s)
{
    int saved = errno;
    for (int i = 0; i < s->n; i++) {
        const struct module *m = &s->module[i];
        if (m->file.at)
            munmap((void *)(uintptr_t)m->file.at, m->file.size);
        if (m->debug.at)
            munmap((void *)(uintptr_t)m->debug.at, m->debug.size);
    }
    s->n = 0;
    errno = saved;
}
