/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the real lock of the runtime: three threads that take it, sleep on it and drop it, all
 * interleavings.
 * Build: standalone -DGORT_MODEL -DGORT_LOCK_SPINS=1
 * Covers: src/mem/lock.c src/os/linux/barrier.c
 *
 * Verified: one holder at a time; everybody gets it in the end, so no sleeper is forgotten; what one holder
 * wrote the next sees; a lock that its last user gives back is not touched again. With the kernel's
 * membarrier, and with fences.
 */
#include "model/engine/explore.c"

#include <unistd.h>

/* Never reached from here; they only have to link. */
#pragma weak gort__os_nap
#pragma weak gort__os_say_refused

/* Ranks are checked elsewhere. */
#define gort__arch_ranks()        UINT64_C(0)
#define gort__arch_set_ranks(set) ((void)(set))
/* The only system call of barrier.c that is made where membarrier is not refused. */
static long model_syscall(long number, ...)
{
    (void)number;
    model_barrier("membarrier");
    return 0;
}
#define syscall model_syscall

#include "mem/lock.c"
#include "os/linux/barrier.c"

struct gort__os_force gort__os_force; /* nothing is forced */

/* What the models share; announced to the engine. */
static struct {
    struct gort__lock lock;
    uint32_t guarded; /* how often it was taken; atomic, because only atomic operations are steps */
    uint32_t takes;   /* the same, as the oracle has counted it */
    int holder, users, wanting;
    bool gone;
} book;

int64_t gort__os_now(void)
{
    return 0;
}
int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline)
{
    bool timed_out;
    return model_futex_wait(word, expected, deadline != INT64_MAX, &timed_out);
}
/* Of a lock that is gone: the kernel finds nobody there. */
void gort__os_futex_wake(uint32_t *word, int count)
{
    (void)count;
    if (!book.gone)
        model_futex_wake(word);
}

static void setup(bool full, int users)
{
    gort__os_light_is_full = full;
    gort__lock_slow_mask = full ? GORT_LOCK_FENCE : 0;
    memset(counts, 0, sizeof counts);
    memset(&book, 0, sizeof book);
    book.users = book.wanting = users;
    model_memory(&book, sizeof book);
    model_memory(&gort__lock_slow_mask, sizeof gort__lock_slow_mask);
    model_memory(counts, sizeof counts);
    model_quiet(&gort__os_light_is_full, sizeof gort__os_light_is_full);
    model_quiet(&gort__lock_exposed, sizeof gort__lock_exposed);
}
static void two_users(void)
{
    setup(false, 2);
}
static void three_users(void)
{
    setup(false, 3);
}
static void three_with_fences(void)
{
    setup(true, 3);
}

static void take(void)
{
    gort__lock_take(&book.lock, GORT_RANK_NONE);
    MODEL_ASSERT(!book.holder++);
    uint32_t n = gort__load(&book.guarded, RELAXED);
    MODEL_ASSERT(n == book.takes++);
    gort__store(&book.guarded, n + 1, RELAXED);
    book.holder--;
}

static void drop(void)
{
    gort__lock_release(&book.lock, GORT_RANK_NONE);
}

/* The last one that had it gives it back: from then on nobody may touch it. */
static void user(void)
{
    take();
    bool last = --book.users == 0;
    drop();
    if (last) {
        book.gone = true;
        model_gone(&book.lock, sizeof book.lock);
    }
    book.wanting--;
}

static void user_twice(void)
{
    take();
    drop();
    user();
}

static void all_had_it(void)
{
    if (book.wanting)
        model_fail("%d wait for a lock that nobody holds", book.wanting);
    MODEL_ASSERT(!(gort__lock_slow_mask & ~GORT_LOCK_FENCE));
}

/* --- cases ------------------------------------------------------------------------------------ */

static const struct model two = {
    .setup = two_users, .threads = {user_twice, user_twice}, .final = all_had_it};
static const struct model three = {.setup = three_users, .threads = {user, user, user}, .final = all_had_it};
static const struct model fenced = {
    .setup = three_with_fences, .threads = {user, user, user}, .final = all_had_it};

TEST(twice_each)
{
    model_check_both(two, "two threads, twice each", 0, 0);
}

TEST(three_threads)
{
    model_check_both(three, "three threads", 0, 0);
}

TEST(no_membarrier)
{
    model_check_both(fenced, "three threads, no membarrier", 0, 0);
}

TEST(mutation_barrier)
{
    model_catch(&three, "no membarrier", "membarrier", MODEL_OP_BARRIER, MODEL_SKIPPED);
}

TEST(mutation_light_fence)
{
    model_catch(&fenced, "no fence in the drop", "gort__os_fence_light", MODEL_OP_FENCE, MODEL_SKIPPED);
}

TEST(mutation_count)
{
    model_catch_at(&three, "not counted for its lock",
                   (struct model_mutation){
                       .func = "gort__lock_slow", .op = MODEL_OP_ADD, .kind = MODEL_SKIPPED, .word = "here"});
}

TEST(mutation_drop_unordered)
{
    struct model m = three;
    m.memory = MODEL_WEAK;
    model_catch(&m, "a drop that lets stores overtake it", "gort__lock_release_look", MODEL_OP_STORE,
                MODEL_UNORDERED);
}

TEST(mutation_take)
{
    model_catch(&three, "two take it at once", "gort__lock_take", MODEL_OP_CAS, MODEL_TORN);
}
