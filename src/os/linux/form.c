/* SPDX-License-Identifier: MIT */
/*
 * form.c - values in debug information: DWARF 2 to 5, in the forms that gcc, clang and assemblers write.
 *
 * Why our own reader: a dump is wanted from signal handlers and in programs that hold any lock, which no
 * library for debug information can do; and what a dump needs of DWARF is small.
 * Threads: any; it only reads.
 */
#include <string.h>

#include "os/linux/dwarf.h"

const char *gort__bytes_text(struct gort__bytes *b)
{
    const char *text = (const char *)b->at;
    const uint8_t *zero = b->at < b->end ? memchr(b->at, 0, (size_t)(b->end - b->at)) : NULL;
    b->at = zero ? zero + 1 : b->end;
    return zero ? text : NULL;
}

bool gort__bytes_unit(struct gort__bytes *b, unsigned *wide, struct gort__bytes *next)
{
    uint64_t size = gort__bytes_word(b, 4);
    *wide = 4;
    if (size == UINT32_MAX) {
        size = gort__bytes_word(b, 8);
        *wide = 8;
    }
    *next = *b;
    if (!size || size > (uint64_t)(b->end - b->at))
        return false;
    b->end = b->at + size;
    next->at = b->end;
    return true;
}

static const char *text_at(const struct gort__unit *u, enum gort__section section, uint64_t offset)
{
    struct gort__bytes b = gort__bytes_from(u->dwarf->section[section], offset);
    return gort__bytes_text(&b);
}

static uint64_t entry_of(const struct gort__unit *u, enum gort__section section, uint64_t base, uint64_t i,
                         unsigned size)
{
    struct gort__bytes b = gort__bytes_from(u->dwarf->section[section], base);
    gort__bytes_skip(&b, i < UINT32_MAX ? i * size : UINT64_MAX);
    return gort__bytes_word(&b, size);
}

static void set(struct gort__form *out, enum gort__form_kind kind, uint64_t value)
{
    *out = (struct gort__form){.kind = kind, .value = value};
}

static void set_text(struct gort__form *out, const char *text)
{
    *out = (struct gort__form){.kind = text ? GORT__FORM_TEXT : GORT__FORM_NONE, .text = text};
}

static void set_indexed_text(const struct gort__unit *u, uint64_t i, struct gort__form *out)
{
    uint64_t base = u->str_base ? u->str_base : u->wide == 8 ? 16u : 8u;
    set_text(out, text_at(u, GORT__DEBUG_STR, entry_of(u, GORT__DEBUG_STR_OFFSETS, base, i, u->wide)));
}

static void set_indexed_address(const struct gort__unit *u, uint64_t i, struct gort__form *out)
{
    set(out, GORT__FORM_ADDRESS,
        entry_of(u, GORT__DEBUG_ADDR, u->addr_base ? u->addr_base : 8u, i, u->address));
}

/* A reference within the unit. */
static void set_ref(const struct gort__unit *u, uint64_t offset, struct gort__form *out)
{
    uint64_t start = (uint64_t)(u->start - u->dwarf->section[GORT__DEBUG_INFO].at);
    set(out, GORT__FORM_REF, start + offset);
}

/* Numbers of a fixed size. */
static unsigned fixed_size(uint64_t form)
{
    switch (form) {
    case 0x0b: /* data1 */
    case 0x0c: /* flag */
        return 1;
    case 0x05: /* data2 */
        return 2;
    case 0x06: /* data4 */
        return 4;
    case 0x07: /* data8 */
    case 0x20: /* ref_sig8 */
        return 8;
    default:
        return 0;
    }
}

/* Blocks, and what nobody here wants to know. */
static void skip_form(const struct gort__unit *u, struct gort__bytes *b, uint64_t form)
{
    switch (form) {
    case 0x03: /* block2 */
        gort__bytes_skip(b, gort__bytes_word(b, 2));
        break;
    case 0x04: /* block4 */
        gort__bytes_skip(b, gort__bytes_word(b, 4));
        break;
    case 0x09: /* block */
    case 0x18: /* exprloc */
        gort__bytes_skip(b, gort__bytes_uleb(b));
        break;
    case 0x0a: /* block1 */
        gort__bytes_skip(b, gort__bytes_word(b, 1));
        break;
    case 0x1e: /* data16 */
        gort__bytes_skip(b, 16);
        break;
    case 0x1c: /* ref_sup4 */
        gort__bytes_skip(b, 4);
        break;
    case 0x24: /* ref_sup8 */
        gort__bytes_skip(b, 8);
        break;
    case 0x1d: /* strp_sup */
    case 0x1f20:
    case 0x1f21: /* GNU_ref_alt, GNU_strp_alt: in a file that several share */
        gort__bytes_skip(b, u->wide);
        break;
    case 0x22: /* loclistx */
        gort__bytes_uleb(b);
        break;
    default: /* unknown, so is its size */
        b->at = b->end;
    }
}

void gort__form_read(const struct gort__unit *u, struct gort__bytes *b, uint64_t form, int64_t implied,
                     struct gort__form *out)
{
    *out = (struct gort__form){.kind = GORT__FORM_NONE};
    if (form == 0x16) /* indirect */
        form = gort__bytes_uleb(b);
    if (fixed_size(form)) {
        set(out, GORT__FORM_NUMBER, gort__bytes_word(b, fixed_size(form)));
        return;
    }
    if (form >= 0x11 && form <= 0x14) { /* ref1, 2, 4, 8 */
        set_ref(u, gort__bytes_word(b, 1u << (form - 0x11)), out);
        return;
    }
    if (form >= 0x25 && form <= 0x28) { /* strx1, 2, 3, 4 */
        set_indexed_text(u, gort__bytes_word(b, (unsigned)form - 0x24), out);
        return;
    }
    if (form >= 0x29 && form <= 0x2c) { /* addrx1, 2, 3, 4 */
        set_indexed_address(u, gort__bytes_word(b, (unsigned)form - 0x28), out);
        return;
    }
    switch (form) {
    case 0x01: /* addr */
        set(out, GORT__FORM_ADDRESS, gort__bytes_word(b, u->address));
        break;
    case 0x08: /* string */
        set_text(out, gort__bytes_text(b));
        break;
    case 0x0d: /* sdata */
        set(out, GORT__FORM_NUMBER, (uint64_t)gort__bytes_sleb(b));
        break;
    case 0x0e: /* strp */
        set_text(out, text_at(u, GORT__DEBUG_STR, gort__bytes_word(b, u->wide)));
        break;
    case 0x1f: /* line_strp */
        set_text(out, text_at(u, GORT__DEBUG_LINE_STR, gort__bytes_word(b, u->wide)));
        break;
    case 0x0f: /* udata */
        set(out, GORT__FORM_NUMBER, gort__bytes_uleb(b));
        break;
    case 0x10: /* ref_addr */
        set(out, GORT__FORM_REF, gort__bytes_word(b, u->version == 2 ? u->address : u->wide));
        break;
    case 0x15: /* ref_udata */
        set_ref(u, gort__bytes_uleb(b), out);
        break;
    case 0x17: /* sec_offset */
        set(out, GORT__FORM_NUMBER, gort__bytes_word(b, u->wide));
        break;
    case 0x19: /* flag_present */
        set(out, GORT__FORM_NUMBER, 1);
        break;
    case 0x1a:   /* strx */
    case 0x1f02: /* GNU_str_index */
        set_indexed_text(u, gort__bytes_uleb(b), out);
        break;
    case 0x1b:   /* addrx */
    case 0x1f01: /* GNU_addr_index */
        set_indexed_address(u, gort__bytes_uleb(b), out);
        break;
    case 0x21: /* implicit_const */
        set(out, GORT__FORM_NUMBER, (uint64_t)implied);
        break;
    case 0x23: /* rnglistx */
        set(out, GORT__FORM_INDEX, gort__bytes_uleb(b));
        break;
    default:
        skip_form(u, b, form);
    }
}
