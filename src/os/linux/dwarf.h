/* SPDX-License-Identifier: MIT */
/*
 * dwarf.h - what the readers of debug information share: dwarf.c knows functions, form.c values, lines.c
 * lines; source.c opens the files.
 *
 * A file may be anything: each read is checked against the end of its section, and a bad cursor reads zeros.
 */
#ifndef GORT_SRC_OS_LINUX_DWARF_H
#define GORT_SRC_OS_LINUX_DWARF_H

#include "os/source.h"

struct gort__bytes {
    const uint8_t *at, *end;
};

enum gort__section {
    GORT__DEBUG_INFO,
    GORT__DEBUG_ABBREV,
    GORT__DEBUG_LINE,
    GORT__DEBUG_STR,
    GORT__DEBUG_LINE_STR,
    GORT__DEBUG_RANGES,
    GORT__DEBUG_RNGLISTS,
    GORT__DEBUG_ADDR,
    GORT__DEBUG_STR_OFFSETS,
    GORT__SECTIONS
};

#define GORT__ABBREVS 512 /* of a unit that are found without a search */

/* The debug information of one file. All zero: none. */
struct gort__dwarf {
    struct gort__bytes section[GORT__SECTIONS];
    const uint8_t *abbrev_table; /* whose abbreviations these are: */
    const uint8_t *abbrev[GORT__ABBREVS];
};

/* A part of a section from `offset` on. */
static inline struct gort__bytes gort__bytes_from(struct gort__bytes b, uint64_t offset)
{
    uint64_t size = (uint64_t)(b.end - b.at);
    b.at += offset < size ? offset : size;
    return b;
}
/* Little-endian, n <= 8 bytes. */
static inline uint64_t gort__bytes_word(struct gort__bytes *b, unsigned n)
{
    uint64_t v = 0;
    if ((size_t)(b->end - b->at) < n) {
        b->at = b->end;
        return 0;
    }
    for (unsigned i = 0; i < n; i++)
        v |= (uint64_t)b->at[i] << 8 * i;
    b->at += n;
    return v;
}
static inline uint64_t gort__bytes_uleb(struct gort__bytes *b)
{
    uint64_t v = 0;
    for (unsigned shift = 0; b->at < b->end; shift += 7) {
        uint8_t byte = *b->at++;
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    return v;
}
static inline int64_t gort__bytes_sleb(struct gort__bytes *b)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t byte = 0;
    while (b->at < b->end) {
        byte = *b->at++;
        if (shift < 64)
            v |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80))
            break;
    }
    if (shift < 64 && (byte & 0x40))
        v |= ~UINT64_C(0) << shift;
    return (int64_t)v;
}
static inline void gort__bytes_skip(struct gort__bytes *b, uint64_t n)
{
    *b = gort__bytes_from(*b, n);
}
/* A text that ends in the section; NULL: it does not. */
const char *gort__bytes_text(struct gort__bytes *b);
/* The length of a unit; *wide: its offsets have 8 bytes, else 4. *b ends where the unit does, and *next
 * begins there. */
bool gort__bytes_unit(struct gort__bytes *b, unsigned *wide, struct gort__bytes *next);

/* --- form.c ------------------------------------------------------------------------------------- */

/* One unit of .debug_info, and what its first entry says. */
struct gort__unit {
    struct gort__dwarf *dwarf;
    const uint8_t *start; /* its header; references count from there */
    struct gort__bytes entries;
    unsigned version, wide, address; /* bytes of offsets and addresses */
    const uint8_t *abbrevs;
    uint64_t low, lines, addr_base, str_base, ranges_base;
    bool has_lines;
    const char *dir;
};

enum gort__form_kind {
    GORT__FORM_NONE,
    GORT__FORM_NUMBER,
    GORT__FORM_ADDRESS,
    GORT__FORM_REF,
    GORT__FORM_TEXT,
    GORT__FORM_INDEX
};
struct gort__form {
    enum gort__form_kind kind;
    uint64_t value; /* REF: from the start of .debug_info; INDEX: of a range list */
    const char *text;
};
void gort__form_read(const struct gort__unit *u, struct gort__bytes *b, uint64_t form, int64_t implied,
                     struct gort__form *out);

/* --- lines.c ------------------------------------------------------------------------------------ */

bool gort__lines_find(const struct gort__unit *u, uint64_t pc, uint64_t *file, uint32_t *line);
bool gort__lines_file(const struct gort__unit *u, uint64_t file, const char **dir, const char **name);

/* --- dwarf.c ------------------------------------------------------------------------------------ */

/* Fills call[0..], the innermost first; how many. The outermost has a file and line even if its name is
 * unknown. */
int gort__dwarf_find(struct gort__dwarf *d, uint64_t pc, struct gort__os_source_call *call, int most);

#endif
