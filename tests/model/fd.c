/* SPDX-License-Identifier: MIT */
/*
 * fd.c - the real words of an fd (poll/fd.c) and the real operations on it (io/fd.c, io/wait.c): no event is
 * lost, no call touches a file that took over the number, and one writes at a time.
 * Build: standalone -DGORT_MODEL
 * Covers: src/poll/fd.c src/io/fd.c src/io/wait.c
 *
 * Modelled instead of real: the kernel's file (a count of bytes, and which file the number stands for),
 * parking (arms the claim word, unlocks, waits for a word), the lock's slow path. Absent: deadlines,
 * contexts, blocking calls.
 */
#include "model/engine/explore.c"

#include "model/locks.h"

/* Never reached from here; they only have to link. */
#pragma weak gort__entry_plain
#pragma weak gort__table_get
#pragma weak gort__entry_leave_slow
#pragma weak gort__os_now
#pragma weak gort_block_enter
#pragma weak gort_block_leave

#include "model/hooks.h"
#include "poll/fd.c"

#include "io/wait.c"
#include "io/fd.c"

#define FD 3

struct gort__sched gort__sched;
bool gort__os_light_is_full;
_Thread_local uint64_t gort__tls[4] __attribute__((tls_model("initial-exec")));
int gort__poll_fd = 9;
uint32_t gort__poll_epoch = 1, gort__poll_waits;
bool (*gort__poll_claim)(struct gort__poll_waiter *w);
static struct gort__fd file_of;
static struct gort__m ms[3];
static struct gort__g gs[3];
static struct {
    uint32_t bytes;      /* in the kernel's buffer */
    uint32_t file;       /* which one the number stands for: 0 the first */
    uint32_t woken[3];   /* by gort__ready */
    uint32_t writing[2]; /* a file */
    int64_t got[3];      /* what each thread's call returned, plus 1000 */
} book;

/* --- what the real code calls ----------------------------------------------------------------- */

static bool claim(struct gort__poll_waiter *w)
{
    return gort__g_claim(w->g);
}
int gort__os_poll_add(int poller, int fd, uint64_t tag)
{
    (void)poller, (void)fd, (void)tag;
    return 0;
}
int gort__os_poll_del(int poller, int fd)
{
    (void)poller, (void)fd;
    return 0;
}
void gort__os_thread_yield(void) {}
int gort__wait_refused(const struct gort__m *m, int64_t deadline, bool no_cancel, const char *call)
{
    (void)m, (void)deadline, (void)no_cancel, (void)call;
    return 0;
}
int gort__wait_shared_park(struct gort__m **m, const struct gort__wait *how)
{
    struct gort__g *g = (*m)->g;
    uint32_t *word = &book.woken[g - gs];
    gort__store(&g->wait_word, GORT_CLAIM_ARMED, RELEASE); /* pairs with gort__g_claim */
    how->unlock(how->object);
    model_await(word, 1);
    gort__xchg(word, 0, SEQ_CST);
    return 0;
}
int *gort_priv_errno(void)
{
    return __errno_location();
}

void gort__poller_notice_fd(struct gort__m *m) /* somebody always looks here */
{
    (void)m;
}

void gort__ready(struct gort__m *m, struct gort__g *g)
{
    (void)m;
    MODEL_ASSERT(gort__xchg(&book.woken[g - gs], 1, SEQ_CST) == 0);
}
void gort__ready_list(struct gort__m *m, struct gort__glist list)
{
    for (struct gort__g *g = list.first, *next; g; g = next) {
        next = g->link;
        gort__ready(m, g);
    }
}

/* --- the kernel ------------------------------------------------------------------------------- */

/* Takes a byte; the caller's file is the first one. */
static ssize_t take_byte(struct gort__io *io)
{
    (void)io;
    uint32_t n;
    do {
        MODEL_ASSERT(gort__load(&book.file, SEQ_CST) == 0);
        n = gort__load(&book.bytes, SEQ_CST);
        if (n == 0)
            return -EAGAIN;
    } while (!gort__cas(&book.bytes, &n, n - 1, SEQ_CST));
    return 1;
}

static void arrive(uint32_t bytes)
{
    struct gort__poll_waiter *list = NULL, **tail = &list;
    gort__add(&book.bytes, bytes, SEQ_CST);
    gort__fd_event(&file_of, 0, GORT__OS_READABLE, &tail);
    gort__io_ready(NULL, list);
}

/* --- the threads ------------------------------------------------------------------------------ */

static struct gort__io operation(enum gort__dir d)
{
    return (struct gort__io){.call = take_byte,
                             .deadline = GORT_FOREVER,
                             .fd = FD,
                             .dir = d,
                             .f = &file_of,
                             .kind = GORT__KIND_SOCKET};
}
static void reads(int i)
{
    struct gort__io io = operation(GORT__DIR_READ);
    struct gort__m *m = &ms[i];
    book.got[i] = 1000 + gort__io_try(&m, &io);
}
static void reader0(void)
{
    reads(0);
}
static void reader1(void)
{
    reads(1);
}
static void one_byte(void)
{
    arrive(1);
}
static void two_bytes(void)
{
    arrive(2);
}
static void two_events(void)
{
    arrive(1);
    arrive(1);
}
/* gort_close, and at once somebody else opens a file, which gets the number. */
static void closer(void)
{
    struct gort__poll_waiter *woken;
    gort__fd_retire(&file_of, FD, GORT__FD_CLOSING, &woken);
    gort__store(&book.file, 1, SEQ_CST);
    gort__fd_closed(&file_of);
    gort__io_ready(NULL, woken);
}
static void writes_to(int i, uint32_t generation)
{
    struct gort__io io = operation(GORT__DIR_WRITE);
    struct gort__m *m = &ms[i];
    io.generation = generation;
    int err = gort__io_write_lock(&m, &io);
    book.got[i] = 1000 + err;
    if (err)
        return;
    MODEL_ASSERT(gort__add(&book.writing[generation], 1, SEQ_CST) == 0);
    gort__sub(&book.writing[generation], 1, SEQ_CST);
    gort__io_write_unlock(m, &io);
}
static void writer0(void)
{
    writes_to(0, 0);
}
static void writer1(void)
{
    writes_to(1, 0);
}
static void writer2(void)
{
    writes_to(2, 0);
}
/* A writer that stays in a blocking call until the number is another file's: it has the former one's turn, if
 * it came in time. */
static void stuck0(void)
{
    struct gort__io io = operation(GORT__DIR_WRITE);
    struct gort__m *m = &ms[0];
    int err = gort__io_write_lock(&m, &io);
    book.got[0] = 1000 + err;
    if (err)
        return;
    model_await(&book.file, 1);
    gort__io_write_unlock(m, &io);
}
/* Closes it, then writes to the file that has the number now. */
static void closer_writes1(void)
{
    closer();
    writes_to(1, 1);
}
static void next_writer2(void)
{
    model_await(&book.file, 1);
    writes_to(2, 1);
}

/* --- setup and oracles ------------------------------------------------------------------------ */

static void start(void)
{
    memset(&file_of, 0, sizeof file_of);
    memset(ms, 0, sizeof ms);
    memset(gs, 0, sizeof gs);
    memset(&book, 0, sizeof book);
    gort__poll_waits = 0;
    gort__poll_claim = claim;
    for (int i = 0; i < 3; i++)
        ms[i].g = &gs[i];
    model_memory(&file_of, sizeof file_of);
    model_memory(gs, sizeof gs);
    model_memory(&book, sizeof book);
    model_memory(&gort__poll_waits, sizeof gort__poll_waits);
    model_quiet(&gort__poll_waits, sizeof gort__poll_waits);
    model_quiet(&file_of.until, sizeof file_of.until);
}

static void expect(int n, int64_t a, int64_t b)
{
    for (int i = 0; i < n; i++)
        if (book.got[i] != 1000 + a && book.got[i] != 1000 + b)
            model_fail("thread %d: %s", i,
                       book.got[i] ? "a wrong result" : "lost wake-up: it waits for ever");
    MODEL_ASSERT(!file_of.waiters[0].first && !file_of.writers.first && !file_of.lock.word);
    MODEL_ASSERT((uint32_t)file_of.word == 0 && gort__poll_waits == 0);
}
static void one_reads(void)
{
    expect(1, 1, 1);
}
static void two_read(void)
{
    expect(2, 1, 1);
}
static void told_or_read(void)
{
    expect(1, 1, -EBADF);
}
static void two_told(void)
{
    expect(2, 1, -EBADF);
}
static void three_write(void)
{
    expect(3, 0, 0);
    MODEL_ASSERT(file_of.write_lock == 0);
}
static void next_file_is_written(void)
{
    expect(1, 0, -EBADF);
    for (int i = 1; i < 3; i++)
        if (book.got[i] != 1000)
            model_fail("writer %d of the next file: %s", i,
                       book.got[i] ? "a wrong result" : "it waits for ever for the former file's turn");
    MODEL_ASSERT(file_of.write_lock == gort__fd_write_lock_word(1, GORT__WRITE_LOCK_FREE));
}

static const struct model event = {.setup = start, .threads = {reader0, one_byte}, .final = one_reads};
static const struct model events = {
    .setup = start, .threads = {reader0, reader1, two_events}, .final = two_read};
static const struct model burst = {
    .setup = start, .threads = {reader0, reader1, two_bytes}, .final = two_read};
static const struct model closing = {
    .setup = start, .threads = {reader0, closer, one_byte}, .final = told_or_read};
static const struct model closing_two = {
    .setup = start, .threads = {reader0, reader1, closer}, .final = two_told};
static const struct model turns = {
    .setup = start, .threads = {writer0, writer1, writer2}, .final = three_write};

static const struct model stuck = {
    .setup = start, .threads = {stuck0, closer_writes1, next_writer2}, .final = next_file_is_written};

TEST(one_event)
{
    model_check_both(event, "a reader, an event", 0, 0);
}
TEST(two_readers_two_events)
{
    model_check_both(events, "two readers, two events", 3, 3);
}
TEST(two_readers_one_event)
{
    model_check_both(burst, "two readers, one event of two bytes", 3, 3);
}
TEST(close_and_event)
{
    model_check_both(closing, "a reader, an event, a close", 3, 3);
}
TEST(close_two)
{
    model_check_both(closing_two, "two readers, a close", 3, 3);
}
TEST(three_writers)
{
    model_check_both(turns, "three writers", 3, 3);
}

TEST(a_closed_files_turn)
{
    model_check_both(stuck, "a stuck writer, a close, two writers of the next file", 3, 3);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_queue)
{
    model_catch(&event, "no fence between queue and counter", "gort__fd_moved", MODEL_OP_FENCE,
                MODEL_SKIPPED);
}
TEST(mutation_event)
{
    model_catch(&event, "no fence after the counter", "gort__fd_event", MODEL_OP_RMW, MODEL_NOT_A_FENCE);
}
TEST(mutation_event_weak)
{
    struct model m = event;
    m.memory = MODEL_WEAK;
    model_catch(&m, "no fence before the look at the queue", "gort__fd_event", MODEL_OP_FENCE, MODEL_SKIPPED);
}
TEST(mutation_hold_torn)
{
    model_catch(&closing_two, "torn count of calls", "gort__fd_pin", MODEL_OP_RMW, MODEL_TORN);
}
TEST(mutation_retire_torn)
{
    model_catch(&closing_two, "torn change of the generation", "gort__fd_retire", MODEL_OP_RMW, MODEL_TORN);
}
TEST(mutation_turn_torn)
{
    model_catch(&turns, "torn taking of a turn", "gort__io_write_lock", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_turn_of_a_generation)
{
    model_catch_at(&stuck, "a close that leaves the turn taken",
                   (struct model_mutation){.func = "gort__fd_retire",
                                           .op = MODEL_OP_STORE,
                                           .kind = MODEL_SKIPPED,
                                           .word = "&f->write_lock"});
}
TEST(mutation_turn_given_back_late)
{
    struct model_mutation blind = {
        .func = "gort__io_write_unlock", .op = MODEL_OP_CAS, .kind = MODEL_SKIPPED};
    model_catch_at(&stuck, "a former writer gives back the new file's turn", blind);
}
