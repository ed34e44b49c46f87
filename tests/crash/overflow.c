/* SPDX-License-Identifier: MIT */
/*
 * overflow.c - a stack that is used up ends the program with a report that says who, where and what to
 * change; other faults are none of our business.
 * Covers: src/observe/overflow.c src/os/linux/fault.c src/os/linux/symbol.c src/mem/stack.c
 */
#include <gort.h>

#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/compiler.h"
#include "test.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static int ask_nothing(void *unused)
{
    (void)unused;
    return 0;
}

TEST(the_handler_goes_with_the_run)
{
    struct sigaction before, after;
    CHECK_EQ(sigaction(SIGSEGV, NULL, &before), 0);
    CHECK_EQ(gort_run(ask_nothing, NULL), 0);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &after), 0);
    CHECK(before.sa_handler == after.sa_handler);
}

#if !GORT_SANITIZED /* else the signal is the sanitizer's */

static void no_core(void)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
}

/* A frame of some 100 bytes each; nothing knows that it does not end. */
static volatile long depth_wanted = 1L << 40;
__attribute__((noinline)) static long recurse(long n)
{
    volatile char frame[64];
    frame[n & 63] = (char)n;
    return n == depth_wanted ? 0 : recurse(n + 1) + frame[n & 63];
}

static void go_too_deep(void *unused)
{
    (void)unused;
    depth_wanted = recurse(0);
}

static void wait_for_ever(void)
{
    for (;;)
        gort_yield();
}

#define ADVICE(k) "^what to change: start it with a larger gort_attr.stack_size .* GORT_STACK=" k "K"
#define TRACE     "^    #0 0x[0-9a-f]+ recurse\\+0x[0-9a-f]+ \\(overflow\\+0x[0-9a-f]+\\)$"
#define POINTERS  "^stack 0x[0-9a-f]+ to 0x[0-9a-f]+, stack pointer 0x[0-9a-f]+, address 0x[0-9a-f]+$"

TEST_GO(in_a_goroutine, .procs = "1,2",
        .crash = "^gort: fatal: stack overflow in goroutine [0-9]+ \\(digger\\)$\n"
                 "^it used up its stack: 256 KiB, of which 16 are the guard$\n" ADVICE(
                     "512") "\n" TRACE "\n" POINTERS "\n"
                            "^    \\.\\.\\. and [0-9]+ more times$\n"
                            "^    #[0-9]+ 0x[0-9a-f]+ go_too_deep\\+")
{
    no_core();
    gort_go_with(&(gort_attr){.name = "digger"}, go_too_deep, NULL);
    wait_for_ever();
}

TEST_GO(with_guards_by_mprotect, .env = "GORT_DEBUG=noguard=1",
        .crash = "stack overflow in goroutine [0-9]+ \\(digger\\)$\n" TRACE)
{
    no_core();
    gort_go_with(&(gort_attr){.name = "digger"}, go_too_deep, NULL);
    wait_for_ever();
}

static void go_too_deep_in_a_call(void *unused)
{
    gort_block_enter();
    go_too_deep(unused);
    gort_block_leave();
}

TEST_GO(in_an_announced_call,
        .crash = "stack overflow in goroutine [0-9]+ \\(digger\\)$\n^it used up its stack: 256 KiB\n" TRACE)
{
    no_core();
    gort_go_with(&(gort_attr){.name = "digger"}, go_too_deep_in_a_call, NULL);
    wait_for_ever();
}

TEST_GO(
    in_main,
    .crash =
        "stack overflow in goroutine 1 \\(main\\)$\n^it used up its stack: 8192 KiB, of which 64 are the guard$\n"
        "^what to change: run the deep part in a goroutine\n" TRACE)
{
    no_core();
    recurse(0);
}

TEST_GO(in_a_big_one,
        .crash = "stack overflow in goroutine [0-9]+$\n^it used up its stack: 65536 KiB\n" ADVICE("131072"))
{
    no_core();
    gort_go_with(&(gort_attr){.stack_size = 64 * MIB}, go_too_deep, NULL);
    wait_for_ever();
}

TEST_GO(
    in_the_smallest, .env = "GORT_STACK=64K",
    .crash = "stack overflow in goroutine [0-9]+$\n^it used up its stack: 64 KiB, of which 4 are the guard$")
{
    no_core();
    gort_go(go_too_deep, NULL);
    wait_for_ever();
}

static int compare_deep(const void *a, const void *b)
{
    (void)a, (void)b;
    return (int)recurse(0);
}

static void sort_deep(void *unused)
{
    (void)unused;
    int v[3] = {3, 2, 1};
    qsort(v, 3, sizeof *v, compare_deep);
}

/* Through frames of another library: the walk crosses them. */
TEST_GO(in_a_callback,
        .crash = "stack overflow in goroutine [0-9]+$\n" TRACE "\n#[0-9]+ 0x[0-9a-f]+ sort_deep\\+")
{
    no_core();
    gort_go(sort_deep, NULL);
    wait_for_ever();
}

/* --- large frames ------------------------------------------------------------------------------------------- */

__attribute__((noinline)) static void frame_of_100_kib(int n)
{
    volatile char frame[100 * KIB];
    frame[0] = frame[sizeof frame - 1] = (char)n;
    if (depth_wanted)
        frame_of_100_kib(n + 1);
    frame[1] = 2;
}

static void large_frames(void *unused)
{
    (void)unused;
    frame_of_100_kib(0);
}

/* Larger than the guard. Without -fstack-clash-protection a frame may go past it; here it is the lowest slot
 * that does. */
TEST_GO(frames_larger_than_the_guard,
        .crash =
            "stack overflow in goroutine [0-9]+$\n"
            "^(it used up its stack|the frame of one function went past the guard of its stack): 256 KiB")
{
    no_core();
    gort_go(large_frames, NULL);
    wait_for_ever();
}

#ifndef __clang__ /* the attribute is gcc's */
__attribute__((noinline, optimize("stack-clash-protection"))) static void probe_all(size_t size)
{
    char *p = __builtin_alloca(size);
    __asm__ volatile("" : : "r"(p) : "memory");
}

static void alloca_1_mib(void *unused)
{
    (void)unused;
    probe_all(MIB);
}

TEST_GO(alloca_with_probes, .crash = "stack overflow in goroutine [0-9]+$\n^it used up its stack: 256 KiB")
{
    no_core();
    gort_go(alloca_1_mib, NULL);
    wait_for_ever();
}

#endif

/* --- canaries ---------------------------------------------------------------------------------------------------- */

/* The lower end of the default stack on which the caller has only begun: it is still on the uppermost
 * page. */
static volatile char *my_stack(void)
{
    volatile char here = 0;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    return (volatile char *)(((uintptr_t)&here | (page - 1)) + 1 - 256 * KIB);
}

static void write_over_the_end(void *unused)
{
    (void)unused;
    volatile char *lo = my_stack() + 16 * KIB;
    for (int i = 1; i < 2000; i++)
        lo[-i] = 7;
    gort_yield();
    gort_wg never = {0};
    gort_wg_add(&never, 1);
    gort_wg_wait(&never);
}

#define CANARY                                                                                               \
    "^gort: new stacks have a canary instead of a guard\nstack overflow in goroutine [0-9]+ \\(digger\\)\n"  \
    "it wrote past the end of its stack\nfatal: this overflow may have overwritten the memory of another"
TEST_GO(a_canary_notices, .procs = "1,2", .env = "GORT_DEBUG=canary=1", .crash = CANARY)
{
    gort_go_with(&(gort_attr){.name = "digger"}, write_over_the_end, NULL);
    wait_for_ever();
}

/* --- other stacks ---------------------------------------------------------------------------------------------- */

static void handler_too_deep(int signo)
{
    (void)signo;
    recurse(0);
}

TEST_GO(in_a_signal_handler,
        .crash = "stack overflow in a signal handler of thread [0-9]+, which ran goroutine 1 \\(main\\)$\n"
                 "^stack pointer 0x\n" TRACE)
{
    no_core();
    struct sigaction action = {.sa_handler = handler_too_deep, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
}

static intptr_t block_too_deep(void *unused)
{
    (void)unused;
    return (intptr_t)recurse(0);
}

static void block_in_a_goroutine(void *unused)
{
    depth_wanted = (long)gort_block(block_too_deep, unused);
}

/* On the thread's own stack, or the goroutine's: wherever such calls run. */
TEST_GO(
    in_a_blocking_call,
    .crash =
        "stack overflow in (the own stack of thread [0-9]+, which ran )?goroutine [0-9]+ \\(digger\\)$\n" TRACE)
{
    no_core();
    gort_go_with(&(gort_attr){.name = "digger"}, block_in_a_goroutine, NULL);
    wait_for_ever();
}

/* --- stacks that are not ours ------------------------------------------------------------------------------------ */

static ucontext_t caller, elsewhere;
static char *their_stack; /* its lowest page is the guard */
#define THEIR_SIZE (128 * KIB)

/* Runs fn on a stack of the program's that lies above the caller's own (mapped before the run) or below. */
static void call_elsewhere(void (*fn)(void))
{
    CHECK_EQ(getcontext(&elsewhere), 0);
    elsewhere.uc_stack.ss_sp = their_stack;
    elsewhere.uc_stack.ss_size = THEIR_SIZE;
    elsewhere.uc_link = &caller;
    makecontext(&elsewhere, fn, 0);
    CHECK_EQ(swapcontext(&caller, &elsewhere), 0);
}

static void map_theirs(void)
{
    their_stack = mmap(NULL, THEIR_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(their_stack != MAP_FAILED);
    CHECK_EQ(mprotect(their_stack, 16 * KIB, PROT_NONE), 0);
}

static void recurse_there(void)
{
    recurse(0);
}

/* The program's own handler gets the fault, and nothing is said about goroutines. */
static void on_their_fault(int signo, siginfo_t *info, void *context)
{
    (void)signo, (void)context;
    const char *at = info->si_addr;
    bool theirs = at >= their_stack && at < their_stack + 16 * KIB;
    test_log(theirs ? "their guard" : "another fault");
    _exit(theirs ? 3 : 4);
}

static void catch_their_fault(void)
{
    struct sigaction action = {.sa_sigaction = on_their_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    map_theirs();
}

static void dig_elsewhere(void *unused)
{
    (void)unused;
    call_elsewhere(recurse_there);
}

static int main_digs_elsewhere(void *unused)
{
    (void)unused;
    gort_go(dig_elsewhere, NULL);
    wait_for_ever();
    return 0;
}

#define THEIRS .status = 3, .crash = "^their guard$\n\\A(?![\\s\\S]*stack overflow)"
TEST(on_a_stack_of_the_program, .procs = "1,2", THEIRS)
{
    catch_their_fault();
    gort_run(main_digs_elsewhere, NULL);
}

TEST_GO(on_a_stack_of_the_program_below, .signal = SIGSEGV, .crash = "^goes on$")
{
    no_core();
    gort_yield();
    map_theirs(); /* the kernel maps downwards: below the stacks */
    test_log("goes on");
    gort_go(dig_elsewhere, NULL);
    wait_for_ever();
}

/* The thread's own stack is not in use then. */
static void recurse_announced(void)
{
    gort_block_enter();
    gort_dump(-1);
    gort_sleep(GORT_US); /* surfaces */
    recurse(0);
}

static void dig_announced(void *unused)
{
    (void)unused;
    call_elsewhere(recurse_announced);
}

static int main_digs_announced(void *unused)
{
    (void)unused;
    gort_go(dig_announced, NULL);
    wait_for_ever();
    return 0;
}

TEST(on_a_stack_of_the_program_in_a_call, .procs = "1,2", THEIRS)
{
    catch_their_fault();
    gort_run(main_digs_announced, NULL);
}

static intptr_t dig_in_block(void *unused)
{
    dig_elsewhere(unused);
    return 0;
}

static int main_digs_in_block(void *unused)
{
    gort_block(dig_in_block, unused);
    return 0;
}

TEST(on_a_stack_of_the_program_in_gort_block, .procs = "1,2", THEIRS)
{
    catch_their_fault();
    gort_run(main_digs_in_block, NULL);
}

/* A wild pointer into a guard of ours, from a stack that lies below. */
static char *guard_of_caller;
static void write_to_a_guard(void)
{
    *(volatile char *)guard_of_caller = 1;
}

static void stray_from_elsewhere(void *unused)
{
    (void)unused;
    call_elsewhere(write_to_a_guard);
}

static void find_guard(void *unused)
{
    (void)unused;
    guard_of_caller = (char *)(uintptr_t)my_stack();
}

TEST_GO(a_stray_pointer_from_a_stack_of_the_program, .signal = SIGSEGV, .crash = "^goes on$")
{
    no_core();
    gort_go(find_guard, NULL);
    while (gort_count() > 1)
        gort_yield();
    map_theirs();
    test_log("goes on");
    gort_go_with(&(gort_attr){.stack_size = 8 * MIB}, stray_from_elsewhere, NULL);
    wait_for_ever();
}

/* --- faults that are not ours --------------------------------------------------------------------------------- */

/* Two that call each other: no frame is like the one before it, so the middle is left out. */
static long pong(long n);
__attribute__((noinline)) static long ping(long n)
{
    volatile char frame[64];
    frame[n & 63] = (char)n;
    return n == depth_wanted ? 0 : pong(n + 1) + frame[n & 63];
}

__attribute__((noinline)) static long pong(long n)
{
    volatile char frame[32]; /* another size: the compiler must not make one of the two */
    frame[n & 31] = (char)n;
    return n == depth_wanted ? 1 : ping(n + 2) - frame[n & 31];
}

static void play_for_ever(void *unused)
{
    (void)unused;
    depth_wanted = ping(0);
}

TEST_GO(in_two_that_call_each_other, .procs = "1,2",
        .crash =
            "stack overflow in goroutine [0-9]+$\n^    #0 0x[0-9a-f]+ p[io]ng\\+\n"
            "^    #23 0x[0-9a-f]+ p[io]ng\\+\n^    \\.\\.\\.$\n^    #[0-9]+ 0x[0-9a-f]+ play_for_ever\\+")
{
    no_core();
    gort_go(play_for_ever, NULL);
    wait_for_ever();
}

#if defined(__x86_64__)
/* Recursion that has lost its frame pointer: nobody can tell who called it, and the report ends there. */
static void lose_the_frame(void *unused)
{
    (void)unused;
    volatile char *some = alloca((size_t)(depth_wanted >> 36)); /* so that it needs a frame pointer */
    some[0] = 1;
    __asm__ volatile("movq $8, %%rbp\n"
                     "1: subq $1024, %%rsp\n"
                     "pushq %%rax\n"
                     "jmp 1b" ::
                         : "memory");
}

TEST_GO(with_frames_that_cannot_be_read,
        .crash = "stack overflow in goroutine [0-9]+$\n^it used up its stack: 256 KiB\n"
                 "^    \\.\\.\\. \\(the rest cannot be read\\)$")
{
    no_core();
    gort_go(lose_the_frame, NULL);
    wait_for_ever();
}
#endif

static volatile int *volatile nowhere = (volatile int *)16;

static void write_to_null(void *unused)
{
    (void)unused;
    *nowhere = 1;
}

TEST_GO(a_wild_pointer_kills_as_ever, .crash = "^going$", .signal = SIGSEGV)
{
    no_core();
    fprintf(stderr, "going\n");
    gort_go(write_to_null, NULL);
    wait_for_ever();
}

static void *write_in_a_thread(void *unused)
{
    write_to_null(unused);
    return unused;
}

TEST_GO(a_wild_pointer_in_a_plain_thread, .crash = "^going$", .signal = SIGSEGV)
{
    pthread_t t;
    no_core();
    fprintf(stderr, "going\n");
    CHECK_EQ(pthread_create(&t, NULL, write_in_a_thread, NULL), 0);
    wait_for_ever();
}

static void write_into_the_guard(void *unused)
{
    (void)unused;
    my_stack()[100] = 1;
}

/* The stack pointer is where it should be, so the stack did not overflow. */
TEST_GO(a_wild_pointer_into_a_guard, .crash = "^going$", .signal = SIGSEGV)
{
    no_core();
    fprintf(stderr, "going\n");
    gort_go(write_into_the_guard, NULL);
    wait_for_ever();
}

TEST_GO(a_segv_that_was_sent, .crash = "^going$", .signal = SIGSEGV)
{
    no_core();
    fprintf(stderr, "going\n");
    raise(SIGSEGV);
}

static void *volatile expected;
static atomic_int handled;
static void *page_at;

static void mend(int signo, siginfo_t *info, void *context)
{
    (void)context;
    sigset_t mask;
    CHECK_EQ(signo, SIGSEGV);
    CHECK_EQ(info->si_addr, expected);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    CHECK(sigismember(&mask, SIGUSR2)); /* what it asked for */
    CHECK(sigismember(&mask, SIGSEGV));
    atomic_fetch_add(&handled, 1);
    CHECK_EQ(mprotect(page_at, 4096, PROT_READ | PROT_WRITE), 0);
}

static void touch(void *unused)
{
    (void)unused;
    expected = (char *)page_at + 100;
    ((volatile char *)page_at)[100] = 5;
    CHECK_EQ(((volatile char *)page_at)[100], 5);
}

static int touch_all(void *unused)
{
    gort_wg wg = {0};
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(mprotect(page_at, 4096, PROT_NONE), 0);
        CHECK_EQ(gort_wg_go(&wg, touch, unused), 0);
        CHECK_EQ(gort_wg_wait(&wg), 0);
    }
    return 0;
}

/* A program that lives with faults (a collector, an emulator) goes on doing so. */
TEST(a_former_handler_gets_them, .procs = "1,2")
{
    page_at = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = mend, .sa_flags = SA_SIGINFO}, now;
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    CHECK_EQ(gort_run(touch_all, NULL), 0);
    CHECK_EQ(atomic_load(&handled), 10);
    CHECK_EQ(sigaction(SIGSEGV, NULL, &now), 0);
    CHECK(now.sa_sigaction == mend); /* as it was */
    CHECK(now.sa_flags & SA_SIGINFO);
}

static void say_and_exit(int signo)
{
    (void)signo;
    fprintf(stderr, "the program's own\n");
    _exit(5);
}

static int fault_in_run(void *unused)
{
    write_to_null(unused);
    return 0;
}

TEST(a_former_handler_of_the_old_kind, .crash = "^the program's own$", .status = 5)
{
    no_core();
    signal(SIGSEGV, say_and_exit);
    gort_run(fault_in_run, NULL);
}

static int overflow_in_run(void *unused)
{
    (void)unused;
    return (int)recurse(0);
}

TEST(a_former_handler_ends_an_overflow,
     .crash = "stack overflow in goroutine 1 \\(main\\)\n^the program's own$", .status = 5)
{
    no_core();
    signal(SIGSEGV, say_and_exit);
    gort_run(overflow_in_run, NULL);
}

TEST_GO(a_handler_of_the_run_wins, .crash = "^the program's own$", .status = 5)
{
    no_core();
    stack_t alt = {.ss_sp = malloc(64 * KIB), .ss_size = 64 * KIB};
    CHECK_EQ(sigaltstack(&alt, NULL), 0);
    struct sigaction action = {.sa_handler = say_and_exit, .sa_flags = SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    recurse(0);
}

static sigjmp_buf out;

static void jump_out(int signo)
{
    siglongjmp(out, signo);
}

static int jump_in_run(void *unused)
{
    if (sigsetjmp(out, 1) == 0)
        write_to_null(unused);
    return 9;
}

TEST(a_former_handler_may_jump, .procs = "1,2")
{
    signal(SIGSEGV, jump_out);
    CHECK_EQ(gort_run(jump_in_run, NULL), 9);
    CHECK(signal(SIGSEGV, SIG_DFL) == jump_out);
}

/* Both at once: one report. */
TEST_GO(two_at_once, .env = "GORT_MAXPROCS=4", .crash = "stack overflow in goroutine [0-9]+ \\(digger\\)$")
{
    no_core();
    for (int i = 0; i < 8; i++)
        gort_go_with(&(gort_attr){.name = "digger"}, go_too_deep, NULL);
    wait_for_ever();
}

#endif
