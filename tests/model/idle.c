/* SPDX-License-Identifier: MIT */
/*
 * idle.c - the real search for work, going to sleep and waking (find, idle, m, proc, queue, runq, park), with two or
 * three Ms: no wake-up is lost.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 *
 * An M here is a model thread that calls gort__find as the real loop does; a goroutine is a function call that
 * returns, or one that computes for ever: then its M ends and keeps its P. In the end, when nobody can make a
 * step, every published goroutine has run once, unless all Ps are with goroutines that compute for ever.
 * Modelled instead of real: the lock's slow path (waits until the word is free), futexes, the clock, the keeper
 * (model threads stand by that become the wanted ones). Absent: stops of the world, bound goroutines, stacks.
 */
#include "model/engine/explore.c"

/* Never reached from here; they only have to link. */
#pragma weak gort__attend
#pragma weak gort__estate_free
#pragma weak gort__fuzz_point
#pragma weak gort__g_cache_flush
#pragma weak gort__os_altstack_restore
#pragma weak gort__os_altstack_set
#pragma weak gort__os_errno
#pragma weak gort__os_fence_heavy
#pragma weak gort__os_light_is_full
#pragma weak gort__os_nap
#pragma weak gort__os_thread_id
#pragma weak gort__os_thread_yield
#pragma weak gort__os_vm_guard
#pragma weak gort__os_vm_unmap
#pragma weak gort__schedule_loop
#pragma weak gort__stack_cache_flush
#pragma weak gort__switch_away
#pragma weak gort__world_event

#include "sched/runq.c"
#include "sched/queue.c"
#include "sched/proc.c"
#include "sched/idle.c"
#include "sched/find.c"
#include "sched/m.c"
#include "sched/park.c"

#define MS 3   /* Ms that are there from the start */
#define MADE 2 /* more Ms, made on demand */
#define PS 3
#define GS 3

struct gort__sched gort__sched;
_Thread_local uint64_t gort__tls[2] __attribute__((tls_model("initial-exec")));
static struct gort__m ms[MS + MADE]; /* the first is the publisher's; the last have no thread yet */
static struct gort__p ps[PS];
static struct gort__g gs[GS];
static struct {
    uint32_t published, ran[GS], computing;
    bool for_ever[GS]; /* this one never returns */
    uint32_t begun[MADE]; /* threads made on demand */
    int64_t now;
} book; /* what the threads did; written between steps only */

/* --- what the real code calls ----------------------------------------------------------------- */

struct gort__g *gort__pick_local(struct gort__p *p) /* but for the turns of fairness */
{
    struct gort__g *g = gort__runq_get_next(&p->runq);
    return g ? g : gort__runq_get(&p->runq);
}
void gort__lock_slow(struct gort__lock *l)
{
    uint32_t free_word;
    do {
        model_await(&l->word, 0);
        free_word = 0;
    } while (!gort__cas(&l->word, &free_word, 1, ACQUIRE)); /* pairs with gort__lock_drop */
}
void gort__lock_wake(struct gort__lock *l)
{
    model_fail("nobody sleeps on lock %p", (void *)l);
}
void gort__lock_rank_take(enum gort__rank rank)
{
    (void)rank;
}
void gort__lock_rank_drop(enum gort__rank rank)
{
    (void)rank;
}
void gort__g_check_edge(const struct gort__g *g, enum gort__gstate to)
{
    (void)g, (void)to;
}
int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline)
{
    bool timed_out;
    int result = model_futex_wait(word, expected, deadline != INT64_MAX, &timed_out);
    if (timed_out && book.now < deadline)
        book.now = deadline;
    return result;
}
void gort__os_futex_wake(uint32_t *word, int count)
{
    (void)count;
    model_futex_wake(word);
}
int64_t gort__os_now(void)
{
    return book.now;
}
size_t gort__os_page(void)
{
    return 4096;
}
void *gort__os_vm_map(size_t size, size_t align)
{
    (void)size, (void)align;
    model_cut(); /* more threads on demand than the model has */
}
void gort__deadlock_check_locked(void)
{
}
void gort__keeper_wake_locked(void)
{
    struct gort__m *m = gort__sched.wanted_ms;
    gort__sched.wanted_ms = m->link;
    for (int i = 0; i < MADE; i++)
        book.begun[i] |= m == &ms[MS + i];
}

/* --- the threads ------------------------------------------------------------------------------ */

/* False: it computes for ever. */
static bool run(struct gort__g *g)
{
    MODEL_ASSERT(g >= gs && g < gs + GS);
    MODEL_ASSERT(++book.ran[g - gs] == 1);
    book.computing += book.for_ever[g - gs];
    return !book.for_ever[g - gs];
}

/* gort__schedule_loop without the switch of stacks. */
static void loop(struct gort__m *m)
{
    for (;;) {
        struct gort__g *g = gort__find(m);
        if (!g)
            return;
        MODEL_ASSERT(m->p && m->p->m == m);
        if (m->spinning)
            gort__spin_stop(m);
        if (!run(g))
            return;
    }
}

static void m1(void)
{
    loop(&ms[1]);
}
static void m2(void)
{
    loop(&ms[2]);
}
/* Ms that do not exist yet. */
static void begin(int i)
{
    model_await(&book.begun[i], 1);
    take_next_p(&ms[MS + i]);
    loop(&ms[MS + i]);
}
static void made0(void)
{
    begin(0);
}
static void made1(void)
{
    begin(1);
}

static void publish(int i)
{
    book.published |= 1u << i;
    gs[i].state = GORT_G_WAITING;
    gort__ready(&ms[0], &gs[i]);
}

/* A goroutine on M 0 readies others and then computes for ever. */
static void readies_one(void)
{
    publish(0);
    book.computing++;
}
static void readies_two(void)
{
    publish(0);
    publish(1);
    book.computing++;
}
static void readies_list(void)
{
    book.published = 3;
    gs[0].link = &gs[1];
    gort__ready_list(&ms[0], (struct gort__glist){&gs[0], &gs[1], 2});
    book.computing++;
}
/* The same goroutine goes on to wait itself: its M looks for work like the others. */
static void readies_two_and_waits(void)
{
    publish(0);
    publish(1);
    loop(&ms[0]);
}
/* A plain thread: through the global queue. */
static void plain_readies_one(void)
{
    publish(0);
}
static void plain_readies_two(void)
{
    publish(0);
    publish(1);
}

/* --- setup and oracle ------------------------------------------------------------------------- */

/* Ps 0 .. procs-1; M i holds P i, except that M 0 is a plain thread if !inside, and its P then is idle. Up to
 * `spare` threads can be made. */
static void start(int procs, bool inside, int spare)
{
    struct gort__sched *s = &gort__sched;
    memset(s, 0, sizeof *s);
    memset(ms, 0, sizeof ms);
    memset(ps, 0, sizeof ps);
    memset(gs, 0, sizeof gs);
    memset(&book, 0, sizeof book);
    s->procs = s->p_made = procs;
    s->conf.max_threads = MS + MADE;
    s->conf.idle_ms = 1;
    s->m_count = procs;
    for (int i = 0; i < procs; i++) {
        s->ps[i] = &ps[i];
        ps[i].id = i;
        ps[i].turn = 1000;
        if (i > 0 || inside)
            gort__p_take(&ms[i], &ps[i]);
    }
    if (!inside)
        gort__p_idle_put_locked(&ps[0]);
    model_memory(s, offsetof(struct gort__sched, ps));
    model_memory(ms, sizeof ms);
    model_memory(ps, sizeof ps);
    model_memory(gs, sizeof gs);
    model_memory(&book, sizeof book);
    model_quiet(&s->procs, sizeof s->procs);
    model_quiet(s->ps, sizeof s->ps);
    model_quiet(gs, sizeof gs);
    for (int i = 0; i < MS + MADE; i++)
        model_quiet(&ms[i].attention, sizeof ms[i].attention);
    for (int i = spare - 1; i >= 0; i--)
        gort__m_retire_locked(&ms[MS + i]); /* a record to make a thread from */
}
static void two(void)
{
    start(2, true, 1);
}
static void two_plain(void)
{
    start(2, false, 2);
}
static void three(void)
{
    start(3, true, 1);
}
static void three_for_ever(void)
{
    start(3, true, 1);
    book.for_ever[0] = true;
}

static void all_done(void)
{
    struct gort__sched *s = &gort__sched;
    uint32_t missing = 0, idle = 0;
    for (int i = 0; i < GS; i++)
        missing += (book.published >> i & 1) && !book.ran[i];
    for (struct gort__p *p = s->idle_ps; p; p = p->link)
        idle++;
    if (missing && book.computing < (uint32_t)s->procs)
        model_fail("lost wake-up: %u goroutines wait, %u of %d Ps compute", missing, book.computing, s->procs);
    MODEL_ASSERT(s->spinning == 0);
    MODEL_ASSERT(s->idle_count == idle && idle + book.computing == (uint32_t)s->procs);
    MODEL_ASSERT(s->queued == s->queue.n);
}

/* --- cases ------------------------------------------------------------------------------------ */

static void check_both(struct model m, const char *name)
{
    m.memory = MODEL_TSO;
    model_check(&m, name);
    m.memory = MODEL_WEAK;
    model_check(&m, name);
}

static const struct model one = {.setup = two, .threads = {readies_one, m1, made0}, .final = all_done};
static const struct model both = {.setup = two, .threads = {readies_two, m1, made0}, .final = all_done};
static const struct model list = {.setup = two, .threads = {readies_list, m1, made0}, .final = all_done};
static const struct model waits = {.setup = two, .threads = {readies_two_and_waits, m1, made0}, .final = all_done};
static const struct model plain = {.setup = two_plain, .threads = {plain_readies_one, m1, made0, made1}, .final = all_done};

TEST(inside_one)
{
    check_both(one, "one from inside");
}
TEST(inside_two)
{
    check_both(both, "two from inside");
}
TEST(inside_list)
{
    check_both(list, "a list from inside");
}
TEST(inside_waits)
{
    check_both(waits, "two from inside, then waits");
}
static const struct model three_ms = {.setup = three, .threads = {readies_two, m1, m2, made0}, .final = all_done};
static const struct model three_busy = {.setup = three_for_ever, .threads = {readies_two, m1, m2, made0}, .final = all_done};
TEST(three)
{
    check_both(three_ms, "three Ms");
}
TEST(three_for_ever)
{
    check_both(three_busy, "three Ms, one computes for ever");
}
TEST(plain_two)
{
    struct model m = plain;
    m.threads[0] = plain_readies_two;
    check_both(m, "two from a plain thread");
}
TEST(plain_one)
{
    check_both(plain, "one from a plain thread");
}
