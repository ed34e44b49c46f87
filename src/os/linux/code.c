/* SPDX-License-Identifier: MIT */
/*
 * code.c - the few instructions that tell who calls whom: calls, jumps, entries of the linkage table (PLT).
 *
 * Why: a return address says where a call comes from; the call instruction before it says what was called,
 * also when that has jumped on to another function since (a tail call), which leaves no trace on the stack.
 * On x86-64 the length of an instruction cannot be read backwards, so what looks like a call may be something
 * else. Callers compare the target with addresses that they look for, which such a chance does not hit.
 * A call by a pointer tells what it called as long as the pointer lies at a fixed place. On x86-64 that is in
 * the instruction itself; on aarch64 those before it have put the pointer into a register.
 * Threads: any, signal handlers too. errno is changed.
 */
#include "os/linux/text.h"

#if defined(__x86_64__)

/* endbr64 or nothing, a prefix or nothing, jmp *slot(%rip): the address of its displacement; 0: something
 * else. */
static GORT__RAW uintptr_t linkage_slot(uintptr_t pc)
{
    if (!gort__object_readable(pc, 11))
        return 0;
    if (*(const gort__raw32 *)pc == 0xfa1e0ff3)
        pc += 4;
    pc += *(const uint8_t *)pc == 0xf2;
    return *(const gort__raw16 *)pc == 0x25ff ? pc + 2 : 0;
}

/* Memory that an instruction names relative to its end, which is its displacement's. */
static GORT__RAW uintptr_t value_at(uintptr_t displacement)
{
    uintptr_t slot = displacement + 4 + (uintptr_t)(int32_t) * (const gort__raw32 *)displacement;
    return gort__object_readable(slot, 8) ? *(const gort__raw64 *)slot : 0;
}

bool gort__code_is_linkage(uintptr_t pc)
{
    return linkage_slot(pc) != 0;
}

uintptr_t gort__code_behind_linkage(uintptr_t pc)
{
    uintptr_t slot = linkage_slot(pc), to = slot ? value_at(slot) : 0;
    return to ? to : pc;
}

GORT__RAW bool gort__code_after_call(uintptr_t pc)
{
    if (!gort__object_readable(pc - 7, 7))
        return false;
    const uint8_t *at = (const uint8_t *)pc;
    return at[-5] == 0xe8 || at[-6] == 0xff || at[-2] == 0xff || at[-3] == 0xff || at[-7] == 0xff ||
           at[-4] == 0xff;
}

GORT__RAW void gort__code_called(uintptr_t pc, uintptr_t called[2])
{
    called[0] = called[1] = 0;
    if (!gort__object_readable(pc - 6, 6))
        return;
    const uint8_t *at = (const uint8_t *)pc;
    if (at[-5] == 0xe8)
        called[0] = pc + (uintptr_t)(int32_t) * (const gort__raw32 *)(at - 4);
    if (at[-6] == 0xff && at[-5] == 0x15)
        called[1] = value_at(pc - 4);
}

GORT__RAW uintptr_t gort__code_jump(uintptr_t pc)
{
    const uint8_t *at = (const uint8_t *)pc;
    if (!gort__object_readable(pc, 6))
        return 0;
    if (at[0] == 0xe9)
        return pc + 5 + (uintptr_t)(int32_t) * (const gort__raw32 *)(at + 1);
    if (at[0] == 0x0f && (at[1] & 0xf0) == 0x80)
        return pc + 6 + (uintptr_t)(int32_t) * (const gort__raw32 *)(at + 2);
    /* The short forms, to a neighbour. A condition only after a test of a register: two bytes are easily met
     * by chance. */
    if (at[0] == 0xeb || ((at[0] & 0xf0) == 0x70 && gort__object_readable(pc - 2, 2) && at[-2] == 0x85))
        return pc + 2 + (uintptr_t)(int8_t)at[1];
    return at[0] == 0xff && at[1] == 0x25 ? value_at(pc + 2) : 0;
}

#elif defined(__aarch64__)

static GORT__RAW uint32_t word_at(uintptr_t pc)
{
    return pc % 4 == 0 && gort__object_readable(pc, 4) ? *(const gort__raw32 *)pc : 0;
}

static uintptr_t branch_target(uintptr_t pc, uint32_t word)
{
    return pc + (uintptr_t)(int64_t)((int32_t)(word << 6) >> 4);
}

/* What adrp at pc puts into its register. */
static uintptr_t page_of(uintptr_t pc, uint32_t adrp)
{
    uint64_t pages = (uint64_t)(adrp >> 5 & 0x7ffff) << 2 | (adrp >> 29 & 3);
    int64_t page = (int64_t)(pages << 43) >> 31; /* 21 bits, signed, of 4096 bytes */
    return (pc & ~UINT64_C(4095)) + (uintptr_t)page;
}

/* bti c or nothing; adrp x16, page; ldr x17, [x16, offset]; add; br x17: the slot's address. */
static uintptr_t linkage_slot(uintptr_t pc)
{
    uint32_t adrp = word_at(pc);
    if (adrp == 0xd503245f)
        adrp = word_at(pc += 4);
    uint32_t ldr = word_at(pc + 4);
    if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
        return 0;
    return page_of(pc, adrp) + ((ldr >> 10 & 0xfff) << 3);
}

#define FAR   64 /* instructions between the first of such a chain and its branch */
#define LOADS 2  /* in a chain: a pointer in memory, whose address the linker keeps in memory, too */

static bool ends_block(uint32_t word) /* b, br, ret */
{
    return word >> 26 == 0x05 || (word & 0xffbffc1f) == 0xd61f0000;
}

static bool is_call(uint32_t word) /* bl, blr */
{
    return word >> 26 == 0x25 || (word & 0xfffffc1f) == 0xd63f0000;
}

/* It has a register in its lowest bits, but does not write it; or the pair that it loads has another one
 * there. */
static bool only_reads(uint32_t word)
{
    bool branch = (word & 0x1c000000) == 0x14000000;
    return branch || ((word & 0x0a000000) == 0x08000000 && !(word & 0x00c00000));
}

static bool loads_second(uint32_t word, unsigned reg) /* ldp */
{
    return (word & 0x3a400000) == 0x28400000 && (word >> 10 & 31) == reg;
}

/*
 * The value of a register that a branch at pc takes its target from, when it was loaded from a fixed place:
 * by adrp, add, ldr and mov in any number and with others between them. 0: by other means, or too far away.
 * The instructions before pc are read as if they had run one after the other; where another path leads here
 * the answer may be wrong, as after all jumps that are looked at here.
 */
static GORT__RAW uintptr_t loaded_target(uintptr_t pc, unsigned reg)
{
    uint64_t offset[LOADS + 1] = {0};
    int loads = 0;
    for (int i = 0; i < FAR; i++) {
        uint32_t word = word_at(pc -= 4);
        if (!word || ends_block(word) || loads_second(word, reg))
            return 0;
        if (is_call(word)) {
            if (reg <= 18 || reg == 30) /* not kept across calls */
                return 0;
            continue;
        }
        if ((word & 31) != reg || only_reads(word))
            continue;
        if ((word & 0xffe0ffe0) == 0xaa0003e0) { /* mov */
            reg = word >> 16 & 31;
        } else if ((word & 0xff800000) == 0x91000000) { /* add */
            offset[loads] += (uint64_t)(word >> 10 & 0xfff) << (word & 0x400000 ? 12 : 0);
            reg = word >> 5 & 31;
        } else if ((word & 0xffc00000) == 0xf9400000 && loads < LOADS) { /* ldr */
            offset[++loads] = (uint64_t)(word >> 10 & 0xfff) << 3;
            reg = word >> 5 & 31;
        } else if ((word & 0x9f000000) == 0x90000000) { /* adrp */
            uintptr_t at = page_of(pc, word);
            for (; loads; loads--) {
                at += offset[loads];
                if (!gort__object_readable(at, 8))
                    return 0;
                at = *(const gort__raw64 *)at;
            }
            return at + offset[0];
        } else {
            return 0;
        }
    }
    return 0;
}

bool gort__code_is_linkage(uintptr_t pc)
{
    return linkage_slot(pc) != 0;
}

GORT__RAW uintptr_t gort__code_behind_linkage(uintptr_t pc)
{
    uintptr_t slot = linkage_slot(pc);
    uintptr_t to = slot && gort__object_readable(slot, 8) ? *(const gort__raw64 *)slot : 0;
    return to ? to : pc;
}

bool gort__code_after_call(uintptr_t pc)
{
    return is_call(word_at(pc - 4));
}

void gort__code_called(uintptr_t pc, uintptr_t called[2])
{
    uint32_t word = word_at(pc - 4);
    called[0] = word >> 26 == 0x25 ? branch_target(pc - 4, word) : 0;
    called[1] = (word & 0xfffffc1f) == 0xd63f0000 ? loaded_target(pc - 4, word >> 5 & 31) : 0;
}

uintptr_t gort__code_jump(uintptr_t pc)
{
    uint32_t word = word_at(pc);
    if ((word & 0xfffffc1f) == 0xd61f0000) /* br: the end of a function that ends with a call by a pointer */
        return loaded_target(pc, word >> 5 & 31);
    return word >> 26 == 0x05 ? branch_target(pc, word) : 0;
}

#endif
