/* SPDX-License-Identifier: MIT */
/*
 * entry.S - aarch64: the first frame of a goroutine, starting over on a stack, the thread's words.
 *
 * Why: these cannot be functions of C: the first has no caller, the second leaves its own stack.
 * A context (arch.h) is  0: sp  8: pc  16: x29  24: FPCR.
 */
        .text

        /* The outermost frame: the function to call lies on top of the stack. Unwinders stop here. */
        .globl  gort__arch_entry
        .hidden gort__arch_entry
        .type   gort__arch_entry, %function
        .p2align 4
        .cfi_startproc
        .cfi_undefined x30
        nop
gort__arch_entry:
        ldr     x9, [sp]
        mov     x29, #0
        mov     x30, #0
        blr     x9
        brk     #1
        .cfi_endproc
        .size   gort__arch_entry, . - gort__arch_entry

        .globl  gort__arch_restart
        .hidden gort__arch_restart
        .type   gort__arch_restart, %function
        .p2align 4
gort__arch_restart:
        .cfi_startproc
        .cfi_undefined x30
        ldr     x11, [x0, #24]
        ldp     x9, x16, [x1]
        ldp     x29, x10, [x1, #16]
        mov     sp, x9
        cmp     x10, x11
        b.eq    1f
        msr     fpcr, x10
1:      br      x16
        .cfi_endproc
        .size   gort__arch_restart, . - gort__arch_restart

        .globl  gort__arch_fp_read
        .hidden gort__arch_fp_read
        .type   gort__arch_fp_read, %function
        .p2align 4
gort__arch_fp_read:
        .cfi_startproc
        mrs     x0, fpcr
        ret
        .cfi_endproc
        .size   gort__arch_fp_read, . - gort__arch_fp_read

        .data
        .globl  gort__arch_fp
        .hidden gort__arch_fp
        .type   gort__arch_fp, %object
        .size   gort__arch_fp, 8
        .p2align 3
gort__arch_fp:
        .xword  0

        /* The thread's own words: who runs here, (debug builds) the ranks of held locks, and home. */
        .section .tbss, "awT", %nobits
        .globl  gort__tls
        .hidden gort__tls
        .type   gort__tls, %object
        .size   gort__tls, 32
        .p2align 5
gort__tls:
        .zero   32

        .section .note.GNU-stack, "", %progbits
