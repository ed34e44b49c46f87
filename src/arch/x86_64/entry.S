/* SPDX-License-Identifier: MIT */
/*
 * entry.S - x86-64: the first frame of a goroutine, starting over on a stack, the thread's words.
 *
 * Why: these cannot be functions of C: the first has no caller, the second leaves its own stack.
 * A context (arch.h) is  0: rsp  8: rip  16: rbp  24: MXCSR (4 bytes), x87 control word (2).
 */
        .text

        /* The outermost frame: the function to call lies on top of the stack. Unwinders stop here;
           the nop keeps the return address minus one inside for those that look there. */
        .globl  gort__arch_entry
        .hidden gort__arch_entry
        .type   gort__arch_entry, @function
        .p2align 4
        .cfi_startproc
        .cfi_undefined rip
        nop
gort__arch_entry:
        movq    (%rsp), %rax
        xorl    %ebp, %ebp
        call    *%rax
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
        movl    24(%rdi), %eax
        movzwl  28(%rdi), %ecx
        cmpl    24(%rsi), %eax
        jne     1f
        cmpw    28(%rsi), %cx
        jne     1f
2:      movq    16(%rsi), %rbp
        movq    (%rsi), %rsp
        jmp     *8(%rsi)
1:      ldmxcsr 24(%rsi)
        fldcw   28(%rsi)
        jmp     2b
        .cfi_endproc
        .size   gort__arch_restart, . - gort__arch_restart

        /* An indirect jump is foreseen to go where it went the last time; some processors, and those that guard against
           others' learning from it, know no more than that. So there are 16 of them: a hash of the target
           says which one is taken, and whether a branch is taken is foreseen well everywhere. */
        .globl  gort__arch_ret_indirect, gort__arch_ret_indirect_int
        .hidden gort__arch_ret_indirect, gort__arch_ret_indirect_int
        .type   gort__arch_ret_indirect, @function
        .type   gort__arch_ret_indirect_int, @function
        .p2align 4
gort__arch_ret_indirect:
gort__arch_ret_indirect_int:
        .cfi_startproc
        popq    %rcx
        .cfi_adjust_cfa_offset -8
        .cfi_register rip, rcx
        imull   $0x9e3779b1, %ecx, %edx
        movq    %rdi, %rax
        .altmacro
        .macro  choose path, bits
        .if     \bits
        addl    %edx, %edx
        jc      .Lone_\path
        choose  \path\()0, %(\bits-1)
.Lone_\path:
        choose  \path\()1, %(\bits-1)
        .else
        notrack jmp *%rcx
        .endif
        .endm
        choose  p, 4
        .noaltmacro
        .cfi_endproc
        .size   gort__arch_ret_indirect, . - gort__arch_ret_indirect
        .size   gort__arch_ret_indirect_int, . - gort__arch_ret_indirect_int

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

        /* The thread's own words: who runs here, (debug builds) the ranks of held locks, and home. */
        .section .tbss, "awT", @nobits
        .globl  gort__tls
        .hidden gort__tls
        .type   gort__tls, @object
        .size   gort__tls, 32
        .p2align 5
gort__tls:
        .zero   32

        .section .note.GNU-stack, "", @progbits
