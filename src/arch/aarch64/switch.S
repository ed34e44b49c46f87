/* SPDX-License-Identifier: MIT */
/*
 * switch.S - aarch64: changing stacks, the first frame of a goroutine, the thread's own words.
 *
 * A suspended stack, from its saved stack pointer upwards (8 bytes each):
 *
 *     sp +0  x19 x20   +16 x21 x22   +32 x23 x24   +48 x25 x26   +64 x27 x28
 *        +80 x29 x30 (where to go on)
 *        +96 d8 d9     +112 d10 d11  +128 d12 d13  +144 d14 d15
 *        +160 FPCR, unused
 *
 * Why: AAPCS64 leaves just these to the callee. The jump is a `br`, not a `ret`, so that the
 * return predictor is not misled. FPCR is written only when it differs.
 */
        .text

        .globl  gort__arch_switch
        .hidden gort__arch_switch
        .type   gort__arch_switch, %function
        .p2align 5
gort__arch_switch:
        .cfi_startproc
        sub     sp, sp, #176
        .cfi_adjust_cfa_offset 176
        stp     x19, x20, [sp]
        stp     x21, x22, [sp, #16]
        stp     x23, x24, [sp, #32]
        stp     x25, x26, [sp, #48]
        stp     x27, x28, [sp, #64]
        stp     x29, x30, [sp, #80]
        .cfi_rel_offset x19, 0
        .cfi_rel_offset x20, 8
        .cfi_rel_offset x21, 16
        .cfi_rel_offset x22, 24
        .cfi_rel_offset x23, 32
        .cfi_rel_offset x24, 40
        .cfi_rel_offset x25, 48
        .cfi_rel_offset x26, 56
        .cfi_rel_offset x27, 64
        .cfi_rel_offset x28, 72
        .cfi_rel_offset x29, 80
        .cfi_rel_offset x30, 88
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        mrs     x9, fpcr
        str     x9, [sp, #160]
        mov     x10, sp
        str     x10, [x0]
        ldr     x10, [x1]
        mov     sp, x10
        /* From here on everything is read from the other stack, which has the same shape. */
        ldr     x11, [sp, #160]
        cmp     x9, x11
        b.eq    1f
        msr     fpcr, x11
1:      ldp     x19, x20, [sp]
        ldp     x21, x22, [sp, #16]
        ldp     x23, x24, [sp, #32]
        ldp     x25, x26, [sp, #48]
        ldp     x27, x28, [sp, #64]
        ldp     x29, x30, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        add     sp, sp, #176
        .cfi_def_cfa_offset 0
        .cfi_restore x19
        .cfi_restore x20
        .cfi_restore x21
        .cfi_restore x22
        .cfi_restore x23
        .cfi_restore x24
        .cfi_restore x25
        .cfi_restore x26
        .cfi_restore x27
        .cfi_restore x28
        .cfi_restore x29
        .cfi_restore x30
        mov     x16, x30
        br      x16
        .cfi_endproc
        .size   gort__arch_switch, . - gort__arch_switch

        /* The outermost frame of a goroutine: x19 holds the function to call. */
        .globl  gort__arch_entry
        .hidden gort__arch_entry
        .type   gort__arch_entry, %function
        .p2align 4
        .cfi_startproc
        .cfi_undefined x30
        nop
gort__arch_entry:
        mov     x29, #0
        mov     x30, #0
        blr     x19
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
        mov     sp, x0
        mov     x19, x1
        adrp    x9, gort__arch_fp
        ldr     x9, [x9, #:lo12:gort__arch_fp]
        mrs     x10, fpcr
        cmp     x9, x10
        b.eq    gort__arch_entry
        msr     fpcr, x9
        b       gort__arch_entry
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

        /* The thread's own words: who runs here, and (debug builds) the ranks of held locks. */
        .section .tbss, "awT", %nobits
        .globl  gort__tls
        .hidden gort__tls
        .type   gort__tls, %object
        .size   gort__tls, 16
        .p2align 4
gort__tls:
        .zero   16

        .section .note.GNU-stack, "", %progbits
