/* SPDX-License-Identifier: MIT */
/*
 * symbol.c - the names of functions in dumps (os/linux/symbol.c).
 * Covers: src/os/linux/symbol.c
 */
#include <stdio.h>
#include <string.h>

#include "os/os.h"
#include "test.h"

void symbol_usual(void);
void symbol_moved(void) __asm__("symbol_local.lto_priv.0");
void symbol_copy(void) __asm__("symbol_part.constprop.0.isra.12");
void symbol_cold(void) __asm__("symbol_rare.cold");
void symbol_dotted(void) __asm__("symbol.part_of.colder");

void symbol_usual(void) {}
void symbol_moved(void) {}
void symbol_copy(void) {}
void symbol_cold(void) {}
void symbol_dotted(void) {}

static void check_name(void (*fn)(void), const char *name)
{
    char text[256], start[64];
    CHECK_GT(gort__os_symbol((uintptr_t)fn, text, sizeof text), 0);
    snprintf(start, sizeof start, "%s+0x", name);
    CHECK_MSG(strncmp(text, start, strlen(start)) == 0, "%s instead of %s", text, name);
}

TEST(names_are_those_of_the_source)
{
    check_name(symbol_usual, "symbol_usual");
    check_name(symbol_moved, "symbol_local");
    check_name(symbol_copy, "symbol_part");
    check_name(symbol_cold, "symbol_rare");
    check_name(symbol_dotted, "symbol.part_of.colder");
}

TEST(a_small_buffer_is_enough)
{
    char text[12];
    memset(text, 'x', sizeof text);
    CHECK_LE(gort__os_symbol((uintptr_t)symbol_moved, text, sizeof text - 1), sizeof text - 2);
    CHECK_EQ(text[11], 'x');
}
