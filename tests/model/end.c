/* SPDX-License-Identifier: MIT */
/*
 * end.c - the end of a run (sched/life/run.c: gort__run_main_ends, end_threads, make_zombie, let_go,
 * send_away_plain; see ps.h) while a goroutine computes, calls, blocks, or is about to start, and a plain
 * thread calls.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sched/life/run.c src/sched/life/zombie.c
 *
 * M 0 runs goroutine 0 with P 0, M 1 the main goroutine with P 1, from the start of their threads
 * (gort__m_main) on; the supervisor waits until main is done and ends the run as gort_run_with does. From
 * then on the Ps are gone, and so is every M whose memory was given back: nobody touches them. In the end
 * main's thread is gone; that of goroutine 0 has ended, or is frozen, or is in user code and has its record,
 * which it will free.
 * Modelled instead of real: the clock (it stands still until the supervisor naps), what is freed in teardown.
 * Bounded: interleavings with at most 2 preemptions, stores and signals at any time within them.
 */
#define MODEL_REAL_RUN
#include "model/ps.h"

/* Never reached from here; they only have to link. */
#pragma weak gort__alloc
#pragma weak gort__alloc_free
#pragma weak gort__arch_fp
#pragma weak gort__arch_fp_read
#pragma weak gort__argmem_destroy
#pragma weak gort__argmem_init
#pragma weak gort__census_print
#pragma weak gort__conf_load
#pragma weak gort__dump_who
#pragma weak gort__fatal_hooks
#pragma weak gort__extra_name
#pragma weak gort__supervisor_loop
#pragma weak gort__lock_exposed
#pragma weak gort__lock_init
#pragma weak gort__netpoll_open
#pragma weak gort__os_at_fork_child
#pragma weak gort__os_cpus
#pragma weak gort__os_exit_now
#pragma weak gort__os_init
#pragma weak gort__os_signal_give_back
#pragma weak gort__os_signal_take
#pragma weak gort__overflow_end
#pragma weak gort__overflow_init
#pragma weak gort__poll_close
#pragma weak gort__cached_now_init
#pragma weak gort__slab_carve
#pragma weak gort__slab_destroy
#pragma weak gort__stack_class
#pragma weak gort__stack_destroy
#pragma weak gort__stack_get
#pragma weak gort__stack_init
#pragma weak gort__timer_forget
#pragma weak gort_dump

#define start run_start /* ours comes below */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* of statics of other files */
#include "sched/life/run.c"
#include "sched/life/zombie.c"
#pragma GCC diagnostic pop
#undef start

static struct gort__stack stacks[2];

/* --- what the real code calls ------------------------------------------------------------------ */

/* An M, a P, or the stack of a left goroutine. */
void gort__os_vm_unmap(void *addr, size_t size)
{
    for (int i = 0; i < 2; i++) {
        if (addr == &ps[i])
            model_gone(&ps[i], sizeof ps[i]);
        if (addr == (char *)&ms[i] - GORT_ALTSTACK - GUARD) {
            MODEL_ASSERT(book.ended[i] || model_self() == i);
            model_gone(&ms[i], sizeof ms[i]);
        }
        MODEL_ASSERT(addr != stacks[i].base || book.ended[i] || model_self() == i);
    }
    (void)size;
}
/* Those that end do so: the explorer need not try how often it is asked for nothing. */
bool gort__os_thread_try_join(uintptr_t thread)
{
    model_await(&book.ended[thread], 1);
    return true;
}
void gort__os_thread_detach(uintptr_t thread)
{
    (void)thread;
}
int *gort__os_errno(void)
{
    return __errno_location();
}
struct gort__os_eh_globals *gort__os_eh_globals(void)
{
    return NULL;
}
/* Their records stay with the thread. */
void gort__slab_chunk_drop(struct gort__chunk *c)
{
    (void)c;
}
void gort__gmain_cleanup(struct gort__g *g)
{
    (void)g;
}

/* --- threads ----------------------------------------------------------------------------------- */

static void (*script)(void); /* of goroutine 0 */

static void stays(void)
{
    model_await(&book.never, 1);
}
static void main_returns(void)
{
    struct gort__m *m = gort__enter();
    main_call.returned = true;
    gort__run_main_ends();
    MODEL_ASSERT(m == self_get());
    gort__store(&m->g, &m->g0, RELEASE); /* as switch_to does */
}
/* The goroutine of an M from its beginning; then what the M does without one. */
void gort__schedule_loop(struct gort__m *m)
{
    if (_setjmp(ends_at[model_self()]) == 0) {
        gort__store(&m->g, &gs[m - ms], RELEASE); /* as switch_to does */
        if (m == &ms[1]) {
            gort__leave(m);
            main_returns();
        } else if (m->p) {
            gort__leave(m);
            script();
            m = gort__enter();
            gort__store(&m->g, &m->g0, RELEASE); /* as switch_to does */
        }
    }
    while (gort__find(&ms[model_self()]))
        model_fail("a goroutine runs after the end");
}
static void m_thread(void)
{
    int i = model_self();
    gort__m_main(&ms[i]);
    book.ended[i] = 1;
}
static void supervisor(void)
{
    struct gort__sched *s = &gort__sched;
    do {
        model_await(&book.supervisor, 1);
        book.supervisor = 0;
    } while (!s->main.done);
    gort__store(&s->phase, GORT_PHASE_ENDING, SEQ_CST); /* as gort_run_with does */
    end_threads();
    send_away_plain();
    book.over = true; /* teardown */
    for (int i = 0; i < 2; i++)
        if (!keep_p(&ps[i]))
            gort__os_vm_unmap(&ps[i], sizeof ps[i]);
    for (struct gort__m *m = zombies, *next; m; m = next) {
        next = m->link;
        let_go(m);
    }
    reap_leaving();
    book.done |= 1u << model_self();
}
static void plain(void)
{
    struct gort__m *m = gort__enter();
    if (m) {
        MODEL_ASSERT(!book.over);
        (void)gort__load(&book.tick, RELAXED);
        MODEL_ASSERT(!book.over);
        gort__leave(m);
    }
}

static void computes(void)
{
    user();
    stays();
}
static void calls(void)
{
    user();
    call();
    stays();
}
static void announces(void)
{
    gort_block_enter();
    user();
    gort_block_leave();
    stays();
}

/* --- setup and oracle -------------------------------------------------------------------------- */

static void start(void (*goroutine)(void), bool sleeps, bool with_plain)
{
    struct gort__sched *s = &gort__sched;
    begin_setup(2, false);
    script = goroutine;
    book.computes = !sleeps;
    for (int i = 0; i < 2; i++) {
        struct gort__m *m = new_m(i);
        m->life.started = false;
        m->thread = (uintptr_t)i;
        m->handoff.next_p = &ps[i];
        ps[i].m = m;
        gs[i].m = m;
        gs[i].stack = &stacks[i];
        gs[i].state = GORT_G_RUNNING;
        stacks[i].base = (char *)&stacks[i];
        book.self[i] = NULL;
    }
    gs[1].flags = GORT_G_MAIN;
    if (with_plain)
        is_plain(3);
    zombies = leaving = lingering = NULL;
    gort__zombie_count = 0;
    left_running = false;
    main_call.returned = false;
    end_setup(with_plain ? 4 : 2, true);
    model_memory(&zombies, sizeof zombies);
    model_memory(&leaving, sizeof leaving);
    model_memory(&lingering, sizeof lingering);
    model_memory(&gort__zombie_count, sizeof gort__zombie_count);
    model_memory(&left_running, sizeof left_running);
    model_memory(&main_call, sizeof main_call);
    model_quiet(&gort__zombie_count, sizeof gort__zombie_count);
    model_quiet(&s->main.leaving, sizeof s->main.leaving);
}
static void one_computes(void)
{
    start(computes, false, false);
}
static void one_calls(void)
{
    start(calls, false, false);
}
static void one_calls_asleep(void)
{
    start(calls, true, false);
}
static void one_announces(void)
{
    start(announces, true, false);
}
static void plain_calls(void)
{
    start(computes, true, true);
}

static void run_is_gone(void)
{
    MODEL_ASSERT(book.done == 1u << 2 && book.ended[1]);
    MODEL_ASSERT(book.ended[0] || ms[0].end.reaper == GORT_REAPER_THREAD);
    MODEL_ASSERT(book.ended[0] || ms[0].end.frozen || !ms[0].inside);
    MODEL_ASSERT(!gort__sched.lock.word);
}

#define CASE(prepares, ...)                                                                                  \
    {                                                                                                        \
        .setup = prepares, .threads = {m_thread, m_thread, supervisor, __VA_ARGS__}, .final = run_is_gone,   \
        .handler = on_model_signal                                                                           \
    }
static const struct model computing = CASE(one_computes, NULL);
static const struct model calling = CASE(one_calls, NULL);
static const struct model calling_asleep = CASE(one_calls_asleep, NULL);
static const struct model blocking = CASE(one_announces, NULL);
static const struct model plain_calling = CASE(plain_calls, plain);

TEST(end_computing)
{
    model_check_both(computing, "one that computes", 3, 2);
}
TEST(end_calling)
{
    model_check_both(calling, "one that calls", 3, 2);
}
TEST(end_calling_asleep)
{
    model_check_both(calling_asleep, "one that sleeps and calls", 3, 2);
}
TEST(end_blocking)
{
    model_check_both(blocking, "one in an announced call", 3, 2);
}
TEST(end_plain)
{
    model_check_both(plain_calling, "a plain thread that calls", 2, 2);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_barrier)
{
    mutant(calling, "no membarrier", MODEL_TSO, 2,
           (struct model_mutation){.func = "membarrier", .op = MODEL_OP_BARRIER, .kind = MODEL_SKIPPED});
}
TEST(mutation_mark)
{
    mutant(calling_asleep, "nobody is told", MODEL_TSO, 2,
           (struct model_mutation){.func = "end_threads", .op = MODEL_OP_OR, .kind = MODEL_SKIPPED});
}
TEST(mutation_plain)
{
    mutant(plain_calling, "plain threads are not waited for", MODEL_TSO, 2,
           (struct model_mutation){
               .func = "send_away_plain", .op = MODEL_OP_LOAD, .kind = MODEL_SKIPPED, .word = "&m->inside"});
}
