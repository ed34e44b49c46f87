/* SPDX-License-Identifier: MIT */
/*
 * lines.c - the line table of a unit: which file and line an address comes from.
 *
 * How: the table is a program that makes rows, each for the addresses from it up to the next one. The row
 * wanted is the last one of a sequence at or below the address. Versions 2 to 5.
 * Threads: any; it only reads.
 */
#include "os/linux/dwarf.h"

struct table {
    struct gort__unit unit; /* for forms: offsets here may have another width than in the unit */
    struct gort__bytes program, dirs, files;
    unsigned version;
    uint8_t step, operations, opcode_base;
    int8_t line_base;
    uint8_t line_range;
    uint8_t lengths[256]; /* of standard opcodes */
};

/* Names in version 5: a description of columns, then rows. The value of two columns of row `wanted`. */
static bool read_entries(const struct table *t, struct gort__bytes *b, uint64_t wanted, const char **name,
                         uint64_t *dir)
{
    struct {
        uint64_t what, form;
    } column[8];
    unsigned columns = (unsigned)gort__bytes_word(b, 1);
    bool found = false;
    if (columns > 8)
        return false;
    for (unsigned i = 0; i < columns; i++) {
        column[i].what = gort__bytes_uleb(b);
        column[i].form = gort__bytes_uleb(b);
    }
    uint64_t rows = gort__bytes_uleb(b);
    for (uint64_t row = 0; row < rows && b->at < b->end; row++)
        for (unsigned i = 0; i < columns; i++) {
            struct gort__form v;
            gort__form_read(&t->unit, b, column[i].form, 0, &v);
            if (row != wanted)
                continue;
            found = true;
            if (column[i].what == 1 && v.kind == GORT__FORM_TEXT)
                *name = v.text;
            if (column[i].what == 2 && v.kind == GORT__FORM_NUMBER)
                *dir = v.value;
        }
    return found;
}

static bool open_table(const struct gort__unit *u, struct table *t)
{
    struct gort__bytes b = gort__bytes_from(u->dwarf->section[GORT__DEBUG_LINE], u->lines), next;
    *t = (struct table){.unit = *u};
    if (!u->has_lines || !gort__bytes_unit(&b, &t->unit.wide, &next))
        return false;
    t->version = (unsigned)gort__bytes_word(&b, 2);
    if (t->version < 2 || t->version > 5)
        return false;
    if (t->version == 5) {
        t->unit.address = (unsigned)gort__bytes_word(&b, 1);
        gort__bytes_skip(&b, 1); /* segments */
    }
    uint64_t header = gort__bytes_word(&b, t->unit.wide);
    t->program = gort__bytes_from(b, header);
    t->step = (uint8_t)gort__bytes_word(&b, 1);
    t->operations = t->version >= 4 ? (uint8_t)gort__bytes_word(&b, 1) : 1;
    gort__bytes_skip(&b, 1); /* whether rows are statements at first */
    t->line_base = (int8_t)gort__bytes_word(&b, 1);
    t->line_range = (uint8_t)gort__bytes_word(&b, 1);
    t->opcode_base = (uint8_t)gort__bytes_word(&b, 1);
    for (unsigned i = 1; i < t->opcode_base; i++)
        t->lengths[i] = (uint8_t)gort__bytes_word(&b, 1);
    t->dirs = b;
    if (t->version == 5) {
        const char *name;
        uint64_t dir;
        read_entries(t, &b, UINT64_MAX, &name, &dir);
    } else {
        for (const char *dir; (dir = gort__bytes_text(&b)) != NULL && *dir;)
            ;
    }
    t->files = b;
    return t->line_range != 0 && t->operations == 1;
}

struct row {
    uint64_t address, file;
    int64_t line;
};

/* The rows of a sequence, one after the other. */
struct search {
    uint64_t pc;
    struct row now, last;
    bool begun; /* last is a row of this sequence */
    bool found;
};

static void emit(struct search *s, bool end)
{
    if (s->begun && s->pc >= s->last.address && s->pc < s->now.address)
        s->found = true;
    else if (!end)
        s->last = s->now;
    s->begun = !end;
}

static void extended(const struct table *t, struct search *s, struct gort__bytes *b)
{
    uint64_t size = gort__bytes_uleb(b);
    struct gort__bytes args = *b;
    gort__bytes_skip(b, size);
    args.end = b->at;
    switch (gort__bytes_word(&args, 1)) {
    case 1: /* end_sequence */
        emit(s, true);
        s->now = (struct row){0, 1, 1};
        break;
    case 2: /* set_address */
        s->now.address = gort__bytes_word(&args, size == 5 ? 4 : t->unit.address);
        break;
    default:
        break;
    }
}

static void standard(const struct table *t, uint8_t op, struct search *s, struct gort__bytes *b)
{
    switch (op) {
    case 1: /* copy */
        emit(s, false);
        break;
    case 2: /* advance_pc */
        s->now.address += gort__bytes_uleb(b) * t->step;
        break;
    case 3: /* advance_line */
        s->now.line += gort__bytes_sleb(b);
        break;
    case 4: /* set_file */
        s->now.file = gort__bytes_uleb(b);
        break;
    case 8: /* const_add_pc */
        s->now.address += (uint64_t)((255 - t->opcode_base) / t->line_range) * t->step;
        break;
    case 9: /* fixed_advance_pc */
        s->now.address += gort__bytes_word(b, 2);
        break;
    default: /* statements, blocks, columns: of no interest */
        for (unsigned i = 0; i < t->lengths[op]; i++)
            gort__bytes_uleb(b);
    }
}

bool gort__lines_find(const struct gort__unit *u, uint64_t pc, uint64_t *file, uint32_t *line)
{
    struct table t;
    if (!open_table(u, &t))
        return false;
    struct search s = {.pc = pc, .now = {0, 1, 1}};
    struct gort__bytes b = t.program;
    while (b.at < b.end && !s.found) {
        uint8_t op = *b.at++;
        if (op >= t.opcode_base) {
            op = (uint8_t)(op - t.opcode_base);
            s.now.address += (uint64_t)(op / t.line_range) * t.step;
            s.now.line += t.line_base + op % t.line_range;
            emit(&s, false);
        } else if (op) {
            standard(&t, op, &s, &b);
        } else {
            extended(&t, &s, &b);
        }
    }
    *file = s.last.file;
    *line = (uint32_t)s.last.line;
    return s.found;
}

/* Versions 2 to 4: names count from 1; dir 0 is where the compiler ran. */
static bool old_file(const struct table *t, uint64_t file, const char **dir, const char **name)
{
    struct gort__bytes b = t->files, d = t->dirs;
    uint64_t at = 0;
    *name = NULL;
    for (uint64_t i = 1; i <= file; i++) {
        *name = gort__bytes_text(&b);
        if (!*name || !**name)
            return false;
        at = gort__bytes_uleb(&b);
        gort__bytes_uleb(&b); /* when it was changed */
        gort__bytes_uleb(&b); /* how long it is */
    }
    for (uint64_t i = 1; i <= at; i++)
        *dir = gort__bytes_text(&d);
    return *name != NULL;
}

bool gort__lines_file(const struct gort__unit *u, uint64_t file, const char **dir, const char **name)
{
    struct table t;
    *dir = NULL;
    if (!open_table(u, &t))
        return false;
    if (t.version < 5)
        return old_file(&t, file, dir, name);
    struct gort__bytes b = t.files, d = t.dirs;
    uint64_t at = 0, none;
    *name = NULL;
    if (!read_entries(&t, &b, file, name, &at) || !*name)
        return false;
    if (at)
        read_entries(&t, &d, at, dir, &none);
    return true;
}
