/* SPDX-License-Identifier: MIT */
/*
 * sandbox.h - a seccomp filter that refuses a few system calls with an errno, for this thread or for the
 * whole process.
 */
#ifndef GORT_TEST_SANDBOX_H
#define GORT_TEST_SANDBOX_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

#define SANDBOX_MOST 4  /* calls refused at once */
#define SANDBOX_READ -1 /* stands for read, whose number is 0 on x86-64 */

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#else
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif

/* Skips the case where there can be no filter. Before the first thread: it allows filters to this thread and
 * those that it starts. */
static inline void sandbox_begin(void)
{
    if (test_under_emulator() || test_under_valgrind() || test_under_sanitizer())
        SKIP("only natively, without sanitizers: a filter would meet the system calls of the tools as well");
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    unsigned action = SECCOMP_RET_ERRNO;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) != 0)
        SKIP("needs seccomp filters: a kernel with CONFIG_SECCOMP_FILTER, no sandbox around it (errno %d)",
             errno);
}

/* Refuses the calls (a list that 0 ends) with err. 0 or -errno. */
static inline int sandbox_close(const int calls[SANDBOX_MOST], int err, bool all_threads)
{
    struct sock_filter code[5 + 2 * SANDBOX_MOST];
    size_t n = 0;
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < SANDBOX_MOST && calls[i]; i++) {
        unsigned call = calls[i] == SANDBOX_READ ? SYS_read : (unsigned)calls[i];
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)err);
    }
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {(unsigned short)n, code};
    unsigned flags = all_threads ? SECCOMP_FILTER_FLAG_TSYNC : 0;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0 ? 0 : -errno;
}

#endif
