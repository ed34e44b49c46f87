/* SPDX-License-Identifier: MIT */
/*
 * unwind.c - the callers of the place that a signal met, by the tables that compilers write for exceptions
 * and debuggers.
 *
 * Why our own: libgcc's unwinder may take the loader's lock, may allocate, and is not always linked. And it
 * need not be complete: where the tables say something unusual (an expression, a signal frame, code without
 * tables) the walk ends and says how far it came; whoever asks must take the worst of the rest. The same goes
 * for a return address without a call before it: then the tables are wrong. So a mistake here can make the
 * answer less exact, but only towards the safe side.
 *
 *   index (eh_frame_hdr):  sorted pairs, start of a function -> FDE
 *   FDE:                   start, size, program: how to find the caller's registers at each instruction
 *   CIE:                   what many FDEs have in common
 *
 * Threads: any, signal handlers too. errno is changed.
 */
#include <ucontext.h>

#include "os/linux/text.h"

#define FRAMES 100                 /* an allocator that is further up than so many is not seen */
#define LARGE  UINT64_C(0x4000000) /* bytes: larger frames are mistakes in the tables */

#if defined(__x86_64__)
enum { REGS = 17, SP = 7, RETURN = 16 };
#else
enum { REGS = 33, SP = 31, RETURN = 30 };
#endif

struct frame {
    uintptr_t reg[REGS];
    uintptr_t pc;
    bool called; /* pc follows a call */
};

enum { SAME, SAVED, UNDEFINED, UNKNOWN }; /* where the caller's value of a register is */
struct rules {
    uint64_t base; /* the frame's upper end is this register plus offset */
    int64_t offset;
    uint8_t how[REGS];
    int64_t at[REGS]; /* SAVED: from the frame's upper end */
    bool unknown;     /* the frame's upper end is */
};

/* What an FDE and its CIE say, before their programs are run. */
struct entry {
    uintptr_t from, to;
    const uint8_t *common, *common_end, *own, *own_end;
    uint64_t code_unit;
    int64_t data_unit;
};

/* --- reading ---------------------------------------------------------------------------------- */

static GORT__RAW uint64_t uleb(const uint8_t **at)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = *(*at)++;
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80))
            return v;
    }
}

static GORT__RAW int64_t sleb(const uint8_t **at)
{
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t b;
    do {
        b = *(*at)++;
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
    } while (b & 0x80);
    if (shift < 64 && (b & 0x40))
        v |= ~UINT64_C(0) << shift;
    return (int64_t)v;
}

/* How many bytes a pointer of this encoding has; 0: unusual. */
static unsigned pointer_size(uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x00:
    case 0x04:
    case 0x0c:
        return 8;
    case 0x03:
    case 0x0b:
        return 4;
    default:
        return 0;
    }
}

static GORT__RAW uintptr_t pointer(const uint8_t **at, uint8_t encoding, bool relative)
{
    uintptr_t here = (uintptr_t)*at, v;
    if (pointer_size(encoding) == 4) {
        v = *(const gort__raw32 *)*at;
        if ((encoding & 0x0f) == 0x0b)
            v = (uintptr_t)(int64_t)(int32_t)v;
        *at += 4;
    } else {
        v = *(const gort__raw64 *)*at;
        *at += 8;
    }
    return relative && (encoding & 0x70) == 0x10 ? v + here : v;
}

/* The encoding of an FDE's addresses, from its CIE; 0xff: unusual. *at is behind the augmentation's text. */
static GORT__RAW uint8_t read_common(const uint8_t *cie, struct entry *e, bool *sized)
{
    uint8_t encoding = 0, version = cie[8];
    const uint8_t *text = cie + 9, *at = text;
    if (version != 1 && version != 3)
        return 0xff;
    while (*at++)
        ;
    e->code_unit = uleb(&at);
    e->data_unit = sleb(&at);
    if (uleb(&at) != RETURN) /* one byte in version 1, which looks the same */
        return 0xff;
    *sized = *text == 'z';
    if (*sized) {
        uint64_t bytes = uleb(&at);
        const uint8_t *data = at;
        at += bytes;
        for (text++; *text; text++)
            if (*text == 'R')
                encoding = *data++;
            else if (*text == 'L')
                data++;
            else if (*text == 'P') {
                if (!pointer_size(*data))
                    return 0xff;
                data += 1 + pointer_size(*data);
                /* S: the frame of a signal. */
            } else if (*text != 'B')
                return 0xff;
    } else if (*text)
        return 0xff;
    e->common = at;
    e->common_end = cie + 4 + *(const gort__raw32 *)cie;
    return encoding;
}

/* The FDE at `fde`; false: it is unusual, or the end of the table. */
static GORT__RAW bool read_entry(uintptr_t fde, struct entry *e)
{
    const uint8_t *at = (const uint8_t *)fde;
    uint32_t bytes = *(const gort__raw32 *)at, back = *(const gort__raw32 *)(at + 4);
    bool sized = false;
    if (!bytes || bytes == UINT32_MAX || !back)
        return false;
    uint8_t encoding = read_common(at + 4 - back, e, &sized);
    if (!pointer_size(encoding) || (encoding & 0xf0 & ~0x10))
        return false;
    e->own_end = at + 4 + bytes;
    at += 8;
    e->from = pointer(&at, encoding, true);
    e->to = e->from + pointer(&at, encoding, false);
    if (sized) {
        uint64_t skip = uleb(&at);
        at += skip;
    }
    e->own = at;
    return true;
}

/* --- finding ---------------------------------------------------------------------------------- */

static GORT__RAW bool find_by_index(uintptr_t index, uintptr_t pc, struct entry *e)
{
    const uint8_t *at = (const uint8_t *)index;
    if (at[0] != 1 || pointer_size(at[1]) != 4 || at[2] != 0x03 || at[3] != 0x3b)
        return false;
    const gort__raw32 *table = (const gort__raw32 *)(at + 12);
    uint32_t n = *(const gort__raw32 *)(at + 8), low = 0, high = n;
    int64_t wanted = (int64_t)(pc - index);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if ((int32_t)table[(size_t)2 * middle] <= wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low && read_entry(index + (uintptr_t)(int64_t)(int32_t)table[(size_t)2 * low - 1], e);
}

static bool find_sorted(const struct gort__object *o, uintptr_t pc, struct entry *e)
{
    size_t low = 0, high = o->sorted_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (o->sorted[middle].from <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    return low && read_entry(o->sorted[low - 1].entry, e);
}

static bool find(uintptr_t pc, struct entry *e)
{
    struct gort__object o;
    return gort__object_find(pc, &o) && (o.index ? find_by_index(o.index, pc, e) : find_sorted(&o, pc, e)) &&
           pc >= e->from && pc < e->to;
}

/* Puts the largest of a heap's parts, whose root `at` may be out of place, in its place. */
static void sift(struct gort__sorted *heap, size_t n, size_t at)
{
    struct gort__sorted one = heap[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && heap[child + 1].from > heap[child].from;
        if (heap[child].from <= one.from)
            break;
        heap[at] = heap[child];
    }
    heap[at] = one;
}

GORT__RAW size_t gort__unwind_sort(uintptr_t table, uintptr_t end, struct gort__sorted *to, size_t most)
{
    struct entry e;
    size_t n = 0;
    while (table + 8 < end) {
        uint32_t bytes = *(const gort__raw32 *)table;
        if (bytes == UINT32_MAX)
            break;
        if (bytes && read_entry(table, &e)) { /* 0 ends what one file brought; a CIE is none */
            if (to && n < most)
                to[n] = (struct gort__sorted){e.from, table};
            n++;
        }
        table += 4 + (uintptr_t)bytes;
    }
    n = to && n > most ? most : n;
    for (size_t i = to ? n / 2 : 0; i-- > 0;)
        sift(to, n, i);
    for (size_t i = to ? n : 0; i-- > 1;) {
        struct gort__sorted last = to[i];
        to[i] = to[0];
        to[0] = last;
        sift(to, i, 0);
    }
    return n;
}

bool gort__unwind_function(uintptr_t pc, struct gort__range *function)
{
    struct entry e;
    if (!find(pc, &e))
        return false;
    *function = (struct gort__range){e.from, e.to};
    return true;
}

/* --- the programs ----------------------------------------------------------------------------- */

static void set_rule(struct rules *r, uint64_t reg, uint8_t how, int64_t at)
{
    if (reg < REGS) {
        r->how[reg] = how;
        r->at[reg] = at;
    }
}

/* One of the instructions that have no operand in their first byte, and change rules. False: an unusual
 * one. */
static GORT__RAW bool change_rule(uint8_t op, const uint8_t **at, const struct entry *e, struct rules *r)
{
    uint64_t reg;
    switch (op) {
    case 0x00: /* nop */
    case 0x2d: /* the return address is signed from here on, or no more: GORT__CODE_ADDRESS */
        return true;
    case 0x05: /* offset_extended */
        reg = uleb(at);
        set_rule(r, reg, SAVED, (int64_t)uleb(at) * e->data_unit);
        return true;
    case 0x07: /* undefined */
        set_rule(r, uleb(at), UNDEFINED, 0);
        return true;
    case 0x08: /* same_value */
        set_rule(r, uleb(at), SAME, 0);
        return true;
    case 0x0c: /* def_cfa */
        r->base = uleb(at);
        r->offset = (int64_t)uleb(at);
        r->unknown = false;
        return true;
    case 0x0d: /* def_cfa_register */
        r->base = uleb(at);
        return true;
    case 0x0e: /* def_cfa_offset */
        r->offset = (int64_t)uleb(at);
        return true;
    case 0x0f: /* def_cfa_expression */
        r->unknown = true;
        reg = uleb(at);
        *at += reg;
        return true;
    case 0x10: /* expression */
    case 0x16: /* val_expression */
        set_rule(r, uleb(at), UNKNOWN, 0);
        reg = uleb(at);
        *at += reg;
        return true;
    case 0x11: /* offset_extended_sf */
        reg = uleb(at);
        set_rule(r, reg, SAVED, sleb(at) * e->data_unit);
        return true;
    case 0x12: /* def_cfa_sf */
        r->base = uleb(at);
        r->offset = sleb(at) * e->data_unit;
        r->unknown = false;
        return true;
    case 0x13: /* def_cfa_offset_sf */
        r->offset = sleb(at) * e->data_unit;
        return true;
    case 0x2e: /* GNU_args_size */
        uleb(at);
        return true;
    default:
        return false;
    }
}

/* Runs one program up to the place of pc. False: something unusual. */
static GORT__RAW bool run(const uint8_t *at, const uint8_t *end, const struct entry *e, uintptr_t pc,
                          const struct rules *initial, struct rules *r)
{
    struct rules kept[4];
    int n = 0;
    for (uintptr_t place = e->from; at < end;) {
        uint8_t op = *at++, low = op & 0x3f;
        uint64_t reg, step = 0;
        if (op >> 6 == 1)
            step = low;
        else if (op >> 6 == 2)
            set_rule(r, low, SAVED, (int64_t)uleb(&at) * e->data_unit);
        else if (op >> 6 == 3 || op == 0x06) { /* restore, restore_extended */
            reg = op == 0x06 ? uleb(&at) : low;
            if (initial && reg < REGS)
                set_rule(r, reg, initial->how[reg], initial->at[reg]);
        } else if (op == 0x02)
            step = *at++;
        else if (op == 0x03) {
            step = *(const gort__raw16 *)at;
            at += 2;
        } else if (op == 0x04) {
            step = *(const gort__raw32 *)at;
            at += 4;
        } else if (op == 0x0a) { /* remember_state */
            if (n == 4)
                return false;
            kept[n++] = *r;
        } else if (op == 0x0b) { /* restore_state */
            if (!n)
                return false;
            *r = kept[--n];
        } else if (!change_rule(op, &at, e, r))
            return false;
        place += step * e->code_unit;
        if (place > pc)
            return true;
    }
    return true;
}

/* --- walking ---------------------------------------------------------------------------------- */

static void begin(const struct gort__os_signal *s, struct frame *f)
{
    const ucontext_t *uc = s->context;
    *f = (struct frame){.pc = s->pc};
#if defined(__x86_64__)
    static const uint8_t order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    for (int i = 0; i < 16; i++)
        f->reg[i] = (uintptr_t)uc->uc_mcontext.gregs[order[i]];
#else
    for (int i = 0; i < 31; i++)
        f->reg[i] = uc->uc_mcontext.regs[i];
    f->reg[SP] = uc->uc_mcontext.sp;
#endif
}

/* The caller of f. 1: there; 0: f is the last, or reaches beyond top; -1: nobody can tell. */
static GORT__RAW int step(struct frame *f, uintptr_t top)
{
    struct entry e;
    struct rules initial = {0}, r;
    uintptr_t sp = f->reg[SP], pc = f->pc - f->called; /* a call may be a function's last instruction */
    struct frame up = *f;
#if defined(__x86_64__)
    set_rule(&initial, RETURN, UNKNOWN, 0);
#endif
    if (!f->called && gort__code_is_linkage(f->pc)) { /* as at the first instruction of any function */
        r = initial;
        r.base = SP;
#if defined(__x86_64__)
        r.offset = 8;
        set_rule(&r, RETURN, SAVED, -8);
#endif
    } else {
        if (!find(pc, &e) || !run(e.common, e.common_end, &e, pc, NULL, &initial))
            return -1;
        r = initial;
        if (!run(e.own, e.own_end, &e, pc, &initial, &r))
            return -1;
    }
    if (r.how[RETURN] == UNDEFINED)
        return 0;
    if (r.unknown || r.base >= REGS)
        return -1;
    uintptr_t end = f->reg[r.base] + (uintptr_t)r.offset;
    if (end > top && end - top < LARGE)
        return 0;
    if (end < sp || end > top || (f->called && end == sp))
        return -1;
    for (int i = 0; i < REGS; i++) {
        uintptr_t from = end + (uintptr_t)r.at[i];
        if (r.how[i] == SAME)
            continue;
        if (r.how[i] != SAVED || from < sp || from + 8 > end || from % 8)
            return -1;
        up.reg[i] = *(const uintptr_t *)from;
    }
    up.reg[SP] = end;
    up.pc = up.reg[RETURN] & GORT__CODE_ADDRESS;
    up.called = true;
    if (!gort__code_after_call(up.pc))
        return -1;
    *f = up;
    return 1;
}

bool gort__unwind_walk(const struct gort__os_signal *s, uintptr_t top, bool (*fn)(uintptr_t),
                       uintptr_t *reached)
{
    struct frame f;
    begin(s, &f);
    *reached = f.reg[SP];
    for (int i = 0; i < FRAMES; i++) {
        int found = step(&f, top);
        if (found < 0)
            return false;
        if (found == 0)
            break;
        if (fn(f.pc))
            return true;
        *reached = f.reg[SP];
    }
    *reached = top;
    return false;
}
