/* SPDX-License-Identifier: MIT */
/*
 * switch.S - x86-64: changing stacks, the first frame of a goroutine, the thread's own words.
 *
 * A suspended stack, from its saved stack pointer upwards:
 *
 *     sp +0   MXCSR (4 bytes), x87 control word (2), unused (2)
 *        +8   r15  +16  r14  +24  r13  +32  r12  +40  rbx  +48  rbp
 *        +56  where to go on
 *
 * Why: the System V ABI leaves just these to the callee. The jump at the end is indirect instead
 * of a `ret`: the processor predicts returns by its call history, which a stack change makes wrong
 * every time (9.7 ns against 2.6 ns). The floating-point control words are loaded only when they
 * differ, because loading them is slow and they hardly ever do.
 */
        .text

        .globl  gort__arch_switch
        .hidden gort__arch_switch
        .type   gort__arch_switch, @function
        .p2align 5
gort__arch_switch:
        .cfi_startproc
        pushq   %rbp
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbp, 0
        pushq   %rbx
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset rbx, 0
        pushq   %r12
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r12, 0
        pushq   %r13
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r13, 0
        pushq   %r14
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r14, 0
        pushq   %r15
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r15, 0
        subq    $8, %rsp
        .cfi_adjust_cfa_offset 8
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movl    (%rsp), %eax
        movzwl  4(%rsp), %ecx
        movq    %rsp, (%rdi)
        movq    (%rsi), %rsp
        /* From here on everything is read from the other stack, which has the same shape. */
        cmpl    %eax, (%rsp)
        jne     2f
        cmpw    %cx, 4(%rsp)
        jne     2f
1:      addq    $8, %rsp
        .cfi_adjust_cfa_offset -8
        popq    %r15
        .cfi_adjust_cfa_offset -8
        .cfi_restore r15
        popq    %r14
        .cfi_adjust_cfa_offset -8
        .cfi_restore r14
        popq    %r13
        .cfi_adjust_cfa_offset -8
        .cfi_restore r13
        popq    %r12
        .cfi_adjust_cfa_offset -8
        .cfi_restore r12
        popq    %rbx
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbx
        popq    %rbp
        .cfi_adjust_cfa_offset -8
        .cfi_restore rbp
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register rip, rcx
        jmp     *%rcx
        .cfi_endproc

        .cfi_startproc
        .cfi_def_cfa_offset 64
        .cfi_offset rbp, -16
        .cfi_offset rbx, -24
        .cfi_offset r12, -32
        .cfi_offset r13, -40
        .cfi_offset r14, -48
        .cfi_offset r15, -56
2:      ldmxcsr (%rsp)
        fldcw   4(%rsp)
        jmp     1b
        .cfi_endproc
        .size   gort__arch_switch, . - gort__arch_switch

        /* The outermost frame of a goroutine: rbx holds the function to call. The nop in front
           keeps the return address minus one inside this function for unwinders. */
        .globl  gort__arch_entry
        .hidden gort__arch_entry
        .type   gort__arch_entry, @function
        .p2align 4
        .cfi_startproc
        .cfi_undefined rip
        nop
gort__arch_entry:
        xorl    %ebp, %ebp
        call    *%rbx
        ud2
        .cfi_endproc
        .size   gort__arch_entry, . - gort__arch_entry

        .globl  gort__arch_restart
        .hidden gort__arch_restart
        .type   gort__arch_restart, @function
        .p2align 4
gort__arch_restart:
        .cfi_startproc
        .cfi_undefined rip
        movq    %rdi, %rsp
        movq    %rsi, %rbx
        subq    $16, %rsp
        stmxcsr (%rsp)
        fnstcw  4(%rsp)
        movq    gort__arch_fp(%rip), %rax
        movq    %rax, 8(%rsp)
        cmpl    %eax, (%rsp)
        jne     3f
        shrq    $32, %rax
        cmpw    %ax, 4(%rsp)
        jne     3f
4:      addq    $16, %rsp
        jmp     gort__arch_entry
3:      ldmxcsr 8(%rsp)
        fldcw   12(%rsp)
        jmp     4b
        .cfi_endproc
        .size   gort__arch_restart, . - gort__arch_restart

        .globl  gort__arch_fp_read
        .hidden gort__arch_fp_read
        .type   gort__arch_fp_read, @function
        .p2align 4
gort__arch_fp_read:
        .cfi_startproc
        movq    $0, -8(%rsp)
        stmxcsr -8(%rsp)
        fnstcw  -4(%rsp)
        movq    -8(%rsp), %rax
        ret
        .cfi_endproc
        .size   gort__arch_fp_read, . - gort__arch_fp_read

        .data
        .globl  gort__arch_fp
        .hidden gort__arch_fp
        .type   gort__arch_fp, @object
        .size   gort__arch_fp, 8
        .p2align 3
gort__arch_fp:
        .long   0x1f80
        .value  0x37f, 0

        /* The thread's own words: who runs here, and (debug builds) the ranks of held locks. */
        .section .tbss, "awT", @nobits
        .globl  gort__tls
        .hidden gort__tls
        .type   gort__tls, @object
        .size   gort__tls, 16
        .p2align 4
gort__tls:
        .zero   16

        .section .note.GNU-stack, "", @progbits
