/* SPDX-License-Identifier: MIT */
/*
 * dwarf.c - which functions an address lies in, by the debug information of one file.
 *
 * How: the units are gone through until the ranges of one hold the address; then its entries, in the order in
 * which they are written, until the function is found, and within it the calls that were inlined, down to the
 * innermost. That is a search without an index, some hundred microseconds for a large program; whoever asks
 * for many addresses remembers the answers (observe/report.c). Not read: types, variables, files that others
 * share (dwz), units in other files (-gsplit-dwarf: they have lines, no functions).
 * Threads: one for each struct gort__dwarf, which remembers the abbreviations of the last unit.
 */
#include <string.h>

#include "os/linux/dwarf.h"

enum {
    TAG_CLASS = 0x02,
    TAG_BLOCK = 0x0b,
    TAG_UNIT = 0x11,
    TAG_STRUCTURE = 0x13,
    TAG_INLINED = 0x1d,
    TAG_MODULE = 0x1e,
    TAG_TRY = 0x32,
    TAG_FUNCTION = 0x2e,
    TAG_NAMESPACE = 0x39,
    TAG_PARTIAL = 0x3c,
    TAG_SKELETON = 0x4a
};

/* What is read of an entry. */
struct entry {
    uint64_t tag;
    bool children;
    struct gort__form name, low, high, ranges, origin, call_file, call_line, sibling, lines, dir, str_base,
        addr_base, ranges_base;
};

#define HOPS  8  /* from an entry to the one that it is a copy of */
#define DEPTH 64 /* of entries within entries */

/* --- units -------------------------------------------------------------------------------------- */

static struct gort__bytes section(const struct gort__unit *u, enum gort__section which, uint64_t offset)
{
    return gort__bytes_from(u->dwarf->section[which], offset);
}

/* Remembers where the abbreviations of a table are. */
static void index_abbrevs(struct gort__dwarf *d, const uint8_t *table)
{
    struct gort__bytes b = {table, d->section[GORT__DEBUG_ABBREV].end};
    if (d->abbrev_table == table)
        return;
    memset(d->abbrev, 0, sizeof d->abbrev);
    d->abbrev_table = table;
    for (uint64_t code; (code = gort__bytes_uleb(&b)) != 0 && b.at < b.end;) {
        if (code < GORT__ABBREVS)
            d->abbrev[code] = b.at;
        gort__bytes_uleb(&b);
        gort__bytes_skip(&b, 1);
        for (uint64_t at, form; at = gort__bytes_uleb(&b), form = gort__bytes_uleb(&b), at || form;) {
            if (form == 0x21)
                gort__bytes_sleb(&b);
            if (b.at >= b.end)
                return;
        }
    }
}

/* In a table that is not indexed, because few entries of the unit are read; or one that is too far behind. */
static const uint8_t *search_abbrev(const struct gort__dwarf *d, const uint8_t *table, uint64_t wanted)
{
    struct gort__bytes b = {table, d->section[GORT__DEBUG_ABBREV].end};
    for (uint64_t code; (code = gort__bytes_uleb(&b)) != 0 && b.at < b.end;) {
        if (code == wanted)
            return b.at;
        gort__bytes_uleb(&b);
        gort__bytes_skip(&b, 1);
        for (uint64_t at, form; at = gort__bytes_uleb(&b), form = gort__bytes_uleb(&b), at || form;) {
            if (form == 0x21)
                gort__bytes_sleb(&b);
            if (b.at >= b.end)
                return NULL;
        }
    }
    return NULL;
}

static struct gort__form *field_of(struct entry *e, uint64_t attribute)
{
    switch (attribute) {
    case 0x01:
        return &e->sibling;
    case 0x03:
        return &e->name;
    case 0x10:
        return &e->lines;
    case 0x11:
        return &e->low;
    case 0x12:
        return &e->high;
    case 0x1b:
        return &e->dir;
    case 0x31: /* abstract_origin */
    case 0x47: /* specification */
        return &e->origin;
    case 0x55:
        return &e->ranges;
    case 0x58:
        return &e->call_file;
    case 0x59:
        return &e->call_line;
    case 0x72:
        return &e->str_base;
    case 0x73:
        return &e->addr_base;
    case 0x74:
        return &e->ranges_base;
    default:
        return NULL;
    }
}

/* The entry at *b. False: the end of a list of children, or of the unit. */
static bool read_entry(const struct gort__unit *u, struct gort__bytes *b, struct entry *e)
{
    uint64_t code = gort__bytes_uleb(b);
    memset(e, 0, sizeof *e);
    if (!code)
        return false;
    bool indexed = code < GORT__ABBREVS && u->dwarf->abbrev_table == u->abbrevs;
    const uint8_t *at = indexed ? u->dwarf->abbrev[code] : search_abbrev(u->dwarf, u->abbrevs, code);
    struct gort__bytes a = {at, u->dwarf->section[GORT__DEBUG_ABBREV].end};
    if (!at) {
        b->at = b->end;
        return false;
    }
    e->tag = gort__bytes_uleb(&a);
    e->children = gort__bytes_word(&a, 1);
    for (;;) {
        uint64_t attribute = gort__bytes_uleb(&a), form = gort__bytes_uleb(&a);
        int64_t implied = form == 0x21 ? gort__bytes_sleb(&a) : 0;
        struct gort__form unwanted, *to = field_of(e, attribute);
        if (!attribute && !form)
            return true;
        if (a.at >= a.end)
            return false;
        gort__form_read(u, b, form, implied, to ? to : &unwanted);
    }
}

/* The header of the unit at *b, and what its first entry says; *b is behind it then. False: there is none, or
 * an unknown one. */
static bool open_unit(struct gort__dwarf *d, struct gort__bytes *b, struct gort__unit *u, struct entry *first)
{
    struct gort__bytes next, at = *b;
    *u = (struct gort__unit){.dwarf = d, .start = b->at, .address = 8};
    bool there = gort__bytes_unit(&at, &u->wide, &next);
    *b = next;
    if (!there)
        return false;
    u->version = (unsigned)gort__bytes_word(&at, 2);
    uint64_t type = u->version >= 5 ? gort__bytes_word(&at, 1) : 1, abbrevs;
    if (u->version >= 5) {
        u->address = (unsigned)gort__bytes_word(&at, 1);
        abbrevs = gort__bytes_word(&at, u->wide);
        gort__bytes_skip(&at, type == 4 || type == 5 ? 8 : 0); /* a unit in another file */
    } else {
        abbrevs = gort__bytes_word(&at, u->wide);
        u->address = (unsigned)gort__bytes_word(&at, 1);
    }
    if (u->version < 2 || u->version > 5 || (u->address != 8 && u->address != 4))
        return false;
    u->entries = at;
    u->abbrevs = section(u, GORT__DEBUG_ABBREV, abbrevs).at;
    /* Twice: what the bases are good for may come before them. */
    for (int i = 0; i < 2; i++) {
        at = u->entries;
        if (!read_entry(u, &at, first))
            return false;
        u->str_base = first->str_base.value;
        u->addr_base = first->addr_base.value;
        u->ranges_base = first->ranges_base.value;
    }
    u->low = first->low.kind == GORT__FORM_ADDRESS ? first->low.value : 0;
    u->has_lines = first->lines.kind == GORT__FORM_NUMBER;
    u->lines = first->lines.value;
    u->dir = first->dir.text;
    return true;
}

/* --- ranges ------------------------------------------------------------------------------------- */

static bool in_old_ranges(const struct gort__unit *u, uint64_t offset, uint64_t pc)
{
    struct gort__bytes b = section(u, GORT__DEBUG_RANGES, offset);
    uint64_t base = u->low, highest = u->address == 8 ? UINT64_MAX : UINT32_MAX;
    while (b.at < b.end) {
        uint64_t from = gort__bytes_word(&b, u->address), to = gort__bytes_word(&b, u->address);
        if (!from && !to)
            break;
        if (from == highest)
            base = to;
        else if (pc >= base + from && pc < base + to)
            return true;
    }
    return false;
}

static uint64_t indexed_address(const struct gort__unit *u, uint64_t i)
{
    struct gort__form v;
    uint8_t text[10];
    struct gort__bytes b = {text, text};
    uint8_t *end = text;
    do {
        *end++ = (uint8_t)((i & 0x7f) | (i > 0x7f ? 0x80 : 0));
        i >>= 7;
    } while (i);
    b.end = end;
    gort__form_read(u, &b, 0x1b, 0, &v);
    return v.value;
}

static bool in_ranges(const struct gort__unit *u, uint64_t offset, uint64_t pc)
{
    struct gort__bytes b = section(u, GORT__DEBUG_RNGLISTS, offset);
    uint64_t base = u->low, from, to;
    while (b.at < b.end) {
        switch (gort__bytes_word(&b, 1)) {
        case 1: /* base_addressx */
            base = indexed_address(u, gort__bytes_uleb(&b));
            continue;
        case 2: /* startx_endx */
            from = indexed_address(u, gort__bytes_uleb(&b));
            to = indexed_address(u, gort__bytes_uleb(&b));
            break;
        case 3: /* startx_length */
            from = indexed_address(u, gort__bytes_uleb(&b));
            to = from + gort__bytes_uleb(&b);
            break;
        case 4: /* offset_pair */
            from = base + gort__bytes_uleb(&b);
            to = base + gort__bytes_uleb(&b);
            break;
        case 5: /* base_address */
            base = gort__bytes_word(&b, u->address);
            continue;
        case 6: /* start_end */
            from = gort__bytes_word(&b, u->address);
            to = gort__bytes_word(&b, u->address);
            break;
        case 7: /* start_length */
            from = gort__bytes_word(&b, u->address);
            to = from + gort__bytes_uleb(&b);
            break;
        default:
            return false;
        }
        if (pc >= from && pc < to)
            return true;
    }
    return false;
}

static bool holds(const struct gort__unit *u, const struct entry *e, uint64_t pc)
{
    if (e->low.kind == GORT__FORM_ADDRESS && e->high.kind != GORT__FORM_NONE) {
        uint64_t high = e->high.kind == GORT__FORM_ADDRESS ? e->high.value : e->low.value + e->high.value;
        return pc >= e->low.value && pc < high;
    }
    if (e->ranges.kind == GORT__FORM_NUMBER)
        return u->version >= 5 ? in_ranges(u, e->ranges.value, pc) : in_old_ranges(u, e->ranges.value, pc);
    if (e->ranges.kind == GORT__FORM_INDEX) {
        uint64_t base = u->ranges_base ? u->ranges_base : 12u;
        struct gort__bytes b = section(u, GORT__DEBUG_RNGLISTS, base);
        gort__bytes_skip(&b, e->ranges.value < UINT32_MAX ? e->ranges.value * u->wide : UINT64_MAX);
        return in_ranges(u, base + gort__bytes_word(&b, u->wide), pc);
    }
    return false;
}

/* --- functions ---------------------------------------------------------------------------------- */

/* The unit that has the entry at this offset of .debug_info. */
static bool unit_at(struct gort__dwarf *d, uint64_t offset, struct gort__unit *u)
{
    struct gort__bytes all = d->section[GORT__DEBUG_INFO], b = all;
    struct entry first;
    while (b.at < b.end) {
        struct gort__bytes size = b, next;
        unsigned wide;
        gort__bytes_unit(&size, &wide, &next);
        if (offset < (uint64_t)(next.at - all.at))
            return open_unit(d, &b, u, &first);
        if (next.at <= b.at)
            return false;
        b = next;
    }
    return false;
}

/* The name of an entry, or of what it is a copy of. */
static const char *name_of(const struct gort__unit *unit, const struct entry *entry)
{
    struct gort__unit u = *unit;
    struct entry e = *entry;
    for (int i = 0; i < HOPS && e.name.kind != GORT__FORM_TEXT && e.origin.kind == GORT__FORM_REF; i++) {
        struct gort__bytes all = u.dwarf->section[GORT__DEBUG_INFO],
                           b = gort__bytes_from(all, e.origin.value);
        if ((b.at < u.start || b.at >= u.entries.end) && !unit_at(u.dwarf, e.origin.value, &u))
            return NULL;
        b.end = u.entries.end;
        if (!read_entry(&u, &b, &e))
            return NULL;
    }
    return e.name.text;
}

/* Whether functions may be found within such an entry. */
static bool is_container(uint64_t tag)
{
    return tag == TAG_UNIT || tag == TAG_PARTIAL || tag == TAG_NAMESPACE || tag == TAG_MODULE ||
           tag == TAG_BLOCK || tag == TAG_TRY || tag == TAG_STRUCTURE || tag == TAG_CLASS;
}

/* The function at pc, then those that were inlined there, the outermost first. */
struct found {
    struct entry e[GORT__SOURCE_CALLS];
    int n, depth; /* of the last one, -1: none yet */
};

/* Goes over what the entry has within it, if it says where that ends; else it is read. */
static bool skip_children(const struct gort__unit *u, const struct entry *e, struct gort__bytes *b)
{
    struct gort__bytes to = gort__bytes_from(u->dwarf->section[GORT__DEBUG_INFO], e->sibling.value);
    if (e->sibling.kind != GORT__FORM_REF || to.at <= b->at || to.at > b->end)
        return false;
    b->at = to.at;
    return true;
}

static void find_function(const struct gort__unit *u, uint64_t pc, struct found *f)
{
    struct gort__bytes b = u->entries;
    struct entry e;
    int depth = 0;
    f->n = 0;
    f->depth = -1;
    index_abbrevs(u->dwarf, u->abbrevs);
    while (b.at < b.end && depth < DEPTH) {
        if (!read_entry(u, &b, &e)) {
            if (--depth <= f->depth || depth <= 0)
                return; /* what is within the innermost one has been read */
            continue;
        }
        bool function = e.tag == TAG_FUNCTION && !f->n, inlined = e.tag == TAG_INLINED && f->n;
        if ((function || inlined) && holds(u, &e, pc)) {
            if (f->n == GORT__SOURCE_CALLS)
                return;
            f->e[f->n++] = e;
            f->depth = depth;
            if (!e.children)
                return;
        } else if (e.children && !is_container(e.tag) && skip_children(u, &e, &b))
            continue;
        depth += e.children;
    }
}

static int fill(const struct gort__unit *u, uint64_t pc, const struct found *f,
                struct gort__os_source_call *call, int most)
{
    uint64_t file = 0;
    uint32_t line = 0;
    bool known = gort__lines_find(u, pc, &file, &line);
    int n = 0;
    if (!known && !f->n)
        return 0;
    for (int i = f->n ? f->n - 1 : 0; i >= 0 && n < most; i--, n++) {
        struct gort__os_source_call *c = &call[n];
        *c = (struct gort__os_source_call){.line = known ? line : 0};
        c->function = f->n ? name_of(u, &f->e[i]) : NULL;
        c->length = c->function ? strlen(c->function) : 0;
        if (known && !gort__lines_file(u, file, &c->dir, &c->file))
            c->file = NULL;
        if (i > 0) { /* it was called from there, in the function around it */
            known = f->e[i].call_line.kind == GORT__FORM_NUMBER;
            file = f->e[i].call_file.value;
            line = (uint32_t)f->e[i].call_line.value;
        }
    }
    return n;
}

int gort__dwarf_find(struct gort__dwarf *d, uint64_t pc, struct gort__os_source_call *call, int most)
{
    struct gort__bytes b = d->section[GORT__DEBUG_INFO];
    struct gort__unit u;
    struct entry first;
    struct found f;
    while (b.at < b.end) {
        const uint8_t *before = b.at;
        if (open_unit(d, &b, &u, &first) && holds(&u, &first, pc)) {
            if (first.tag == TAG_SKELETON)
                f.n = 0;
            else
                find_function(&u, pc, &f);
            return fill(&u, pc, &f, call, most);
        }
        if (b.at <= before)
            break;
    }
    return 0;
}
