/* SPDX-License-Identifier: MIT */
/*
 * code.c - reading who calls whom from instructions (os/linux/code.c): also calls and tail calls by a pointer
 * at a fixed place.
 * Covers: src/os/linux/code.c
 */
#include "os/linux/text.h"
#include "test.h"

/* The assembly below uses them, which the linker's optimizer does not see. */
__attribute__((used)) void code_target(void);
__attribute__((used)) void (*code_pointer)(void) = code_target;
extern char code_after_direct[], code_after_pointer[], code_after_unknown[], code_at_jump[],
    code_at_pointer_jump[];

void code_target(void) {}

__asm__(
    ".globl code_after_direct, code_after_pointer, code_after_unknown, code_at_jump, code_at_pointer_jump\n");

#if defined(__x86_64__)
__asm__(".text\n"
        "code_direct: call code_target\n"
        "code_after_direct: ret\n"
        "code_by_pointer: call *code_pointer(%rip)\n"
        "code_after_pointer: ret\n"
        "code_unknown: call *%rdi\n"
        "code_after_unknown: ret\n"
        "code_jumps:\n"
        "code_at_jump: .byte 0xe9\n"
        ".long code_target - . - 4\n"
        "code_jumps_by_pointer:\n"
        "code_at_pointer_jump: jmp *code_pointer(%rip)\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".balign 4\n"
        "code_direct: bl code_target\n"
        "code_after_direct: ret\n"
        /* The compiler puts other things between, and keeps a part of the address across calls. */
        "code_by_pointer: adrp x22, code_pointer\n"
        "mov x19, x0\n"
        "bl code_target\n"
        "add x1, x22, :lo12:code_pointer\n"
        "cbz x0, code_after_pointer\n"
        "sub x1, x1, #24\n"
        "add x1, x22, :lo12:code_pointer\n"
        "mov x0, x19\n"
        "ldr x1, [x1]\n"
        "str x1, [sp, #8]\n"
        "blr x1\n"
        "code_after_pointer: ret\n"
        "code_unknown: ldr x1, [x0]\n"
        "blr x1\n"
        "code_after_unknown: ret\n"
        "code_jumps:\n"
        "code_at_jump: b code_target\n"
        "code_jumps_by_pointer: adrp x1, code_pointer\n"
        "add x1, x1, :lo12:code_pointer\n"
        "ldr x1, [x1]\n"
        "mov x16, x1\n"
        "ldp x29, x30, [sp], #32\n"
        "code_at_pointer_jump: br x16\n");
#endif

static bool calls(const char *after, void (*target)(void))
{
    uintptr_t called[2];
    CHECK(gort__code_after_call((uintptr_t)after));
    gort__code_called((uintptr_t)after, called);
    for (int i = 0; i < 2; i++)
        if (called[i] == (uintptr_t)target)
            return true;
    return false;
}

TEST(calls_tell_what_they_call)
{
    gort__os_text_collect(); /* what can be read */
    CHECK(calls(code_after_direct, code_target));
    CHECK(calls(code_after_pointer, code_target));
    CHECK(!calls(code_after_unknown, code_target));
    code_pointer = NULL;
    CHECK(!calls(code_after_pointer, code_target));
    code_pointer = code_target;
}

TEST(jumps_tell_where_they_go)
{
    gort__os_text_collect();
    CHECK(gort__code_jump((uintptr_t)code_at_jump) == (uintptr_t)code_target);
    CHECK(gort__code_jump((uintptr_t)code_at_pointer_jump) == (uintptr_t)code_target);
    CHECK_EQ(gort__code_jump((uintptr_t)code_after_direct), 0);
}
