/* SPDX-License-Identifier: MIT */
/*
 * chan.c - the real channels and select (sync/chan.c, select.c), waiting and waking (sched/wait/wait.c, park.c)
 * and the switch away from a stack (sched/core/schedule.c): no value is lost or seen twice, nobody waits for ever,
 * one party ends a wait, a goroutine is resumed only when it is off its stack, a channel is freed once and
 * touched by nobody afterwards.
 * Build: standalone -DGORT_MODEL -DGORT_RUNQ_SIZE=4
 * Covers: src/sync/chan.c src/sync/select.c src/sched/wait/wait.c src/sched/core/park.c src/sched/core/schedule.c
 *
 * Channels look at nothing without their lock but refs and, for gort_chan_len, len; so what can go wrong is
 * the order of lock, claim word, commit and reference count. What a goroutine is here: gs.h. Absent:
 * contexts, stops of the world.
 * Bounded: two or three threads of one to three calls; with three threads at most 3 preemptions (2 for
 * selects).
 */
#include "model/gs.h"

#include "sync/chan.c"
#include "sync/select.c"

#define CHS 2

static union {
    struct gort_chan ch;
    char room[sizeof(struct gort_chan) + 64]; /* with a buffer */
} chans[CHS];
static struct {
    uint32_t freed, done; /* bits */
    uint64_t sent[TS], got[TS][2];
    int result[TS][2]; /* of each call, plus 1000 */
} book;                /* what the threads did; written between steps only */

void *gort__alloc(size_t size)
{
    (void)size;
    return NULL;
}
void gort__alloc_free(void *object, size_t size)
{
    for (uint32_t i = 0; i < CHS; i++)
        if (object == &chans[i]) {
            MODEL_ASSERT(!(book.freed & 1u << i) && size <= sizeof chans[i]);
            book.freed |= 1u << i;
            model_gone(&chans[i], sizeof chans[i]);
            return;
        }
    model_fail("what is freed is no channel");
}

/* --- the threads ------------------------------------------------------------------------------- */

#define A (&chans[0].ch)
#define B (&chans[1].ch)

static void give(gort_chan *ch, int k, uint64_t value, int64_t deadline)
{
    int i = me(), err = gort_chan_send_until(ch, &value, deadline);
    book.result[i][k] = 1000 + err;
    if (err == 0)
        book.sent[i] += value;
}
static void take(gort_chan *ch, int k, int64_t deadline)
{
    int i = me();
    uint64_t value = 77;
    book.result[i][k] = 1000 + gort_chan_recv_until(ch, &value, deadline);
    book.got[i][k] = book.result[i][k] == 1001 ? value : 0;
}
static void done(void)
{
    book.done |= 1u << me();
}
static void sends_one(void)
{
    give(A, 0, 1u << me(), GORT_FOREVER);
    done();
}
static void sends_two(void)
{
    give(A, 0, 1, GORT_FOREVER);
    give(A, 1, 2, GORT_FOREVER);
    done();
}
static void sends_and_drops(void)
{
    give(A, 0, 1, GORT_FOREVER);
    gort_chan_unref(A);
    done();
}
static void offers(void)
{
    give(A, 0, 1u << me(), GORT_TRY);
    done();
}
static void offers_b(void)
{
    give(B, 0, 1u << me(), GORT_TRY);
    done();
}
/* When the receiver waits. */
static void offers_and_drops(void)
{
    model_await(&asleep.armed, 1);
    give(A, 0, 1, GORT_TRY);
    gort_chan_unref(A);
    done();
}
static void receives_one(void)
{
    take(A, 0, GORT_FOREVER);
    done();
}
static void receives_two(void)
{
    take(A, 0, GORT_FOREVER);
    MODEL_ASSERT(gort_chan_len(A) <= A->cap);
    take(A, 1, GORT_FOREVER);
    done();
}
static void receives_and_drops(void)
{
    take(A, 0, GORT_FOREVER);
    gort_chan_unref(A);
    done();
}
/* It has no reference: the channel stays for its sake until its wait is over. */
static void receives_for_a_while(void)
{
    take(A, 0, SOON);
    done();
}
static void closes(void)
{
    gort_chan_close(A);
    done();
}
static void refs_and_drops(void)
{
    gort_chan_ref(A);
    gort_chan_unref(A);
    gort_chan_unref(A);
    done();
}
static void alarm_goes_off(void)
{
    model_await(&asleep.armed, 1);
    alarm_fires();
}
static void selects(gort_case first, gort_case second, int64_t deadline)
{
    int i = me();
    gort_case cases[] = {first, second};
    int index = gort_select(cases, 2, deadline);
    book.result[i][0] = 1000 + index;
    if (index >= 0)
        book.result[i][1] = 1000 + cases[index].result;
    done();
}
static void selects_both(void)
{
    uint64_t a = 0, b = 0;
    selects((gort_case){.op = GORT_RECV, .ch = A, .recv = &a},
            (gort_case){.op = GORT_RECV, .ch = B, .recv = &b}, GORT_FOREVER);
    book.got[me()][0] = a + b;
    if (book.result[me()][0] == 1001) /* the other one waits */
        take(A, 1, GORT_FOREVER);
}
static void selects_for_a_while(void)
{
    uint64_t a = 0, b = 0;
    selects((gort_case){.op = GORT_RECV, .ch = A, .recv = &a},
            (gort_case){.op = GORT_RECV, .ch = B, .recv = &b}, SOON);
    book.got[me()][0] = a + b;
}
static void crosses(void)
{
    uint64_t in = 0, out = 1u << me();
    gort_case to_a = {.op = GORT_SEND, .ch = A, .send = &out},
              from_a = {.op = GORT_RECV, .ch = A, .recv = &in},
              to_b = {.op = GORT_SEND, .ch = B, .send = &out},
              from_b = {.op = GORT_RECV, .ch = B, .recv = &in};
    if (me() == 0)
        selects(from_a, to_b, GORT_FOREVER);
    else
        selects(from_b, to_a, GORT_FOREVER);
    book.got[me()][0] = in;
}

/* --- setup and oracles ------------------------------------------------------------------------- */

static void start(size_t cap, uint32_t refs)
{
    gs_start();
    memset(&book, 0, sizeof book);
    memset(chans, 0, sizeof chans);
    memset(&left, 0, sizeof left);
    for (int i = 0; i < CHS; i++)
        chans[i].ch = (gort_chan){.refs = refs, .elem = 8, .magic = GORT_CHAN_MAGIC, .cap = cap};
    model_memory(chans, sizeof chans);
    model_memory(&left, sizeof left);
    model_memory(&book, sizeof book);
}
static void unbuffered(void)
{
    start(0, 1);
}
static void unbuffered_two_refs(void)
{
    start(0, 2);
}
static void buffered(void)
{
    start(1, 1);
}
static void buffered_two_refs(void)
{
    start(1, 2);
}
static void hasty(void)
{
    start(0, 1);
    asleep.hasty = true;
}
/* A thread that is no goroutine takes part. */
static void plain_receiver(void)
{
    start(0, 1);
    gs[0].flags = GORT_G_THREAD;
}

/* One goroutine, which has the only P, and plain threads. */
static void alone(void)
{
    start(0, 1);
    gs_alone();
}
static void alone_two_refs(void)
{
    start(0, 2);
    gs_alone();
}

static void nobody_waits(const gort_chan *ch)
{
    MODEL_ASSERT(!ch->receivers.first && !ch->senders.first && !ch->parked && !ch->lock.word);
}
static void all_done(uint32_t who)
{
    if (book.done != who)
        model_fail("lost wake-up: %x of %x are done", book.done, who);
    gs_all_awake();
    for (uint32_t i = 0; i < CHS; i++)
        if (!(book.freed & 1u << i))
            nobody_waits(&chans[i].ch);
}
static uint64_t in_buffer(void)
{
    uint64_t v = 0;
    if (!(book.freed & 1) && A->len)
        memcpy(&v, A->buffer + A->head * 8, 8);
    return v;
}
/* What was sent was received or is in the buffer, once. */
static void conserved(uint32_t who)
{
    uint64_t sent = 0, got = in_buffer();
    all_done(who);
    for (int i = 0; i < TS; i++) {
        sent += book.sent[i];
        got += book.got[i][0] + book.got[i][1];
    }
    MODEL_ASSERT(sent == got);
}
static void passed(void)
{
    conserved(3);
    MODEL_ASSERT(book.result[0][0] == 1001 && book.result[1][0] == 1000);
}
static void in_order(void)
{
    conserved(3);
    MODEL_ASSERT(book.got[0][0] == 1 && book.got[0][1] == 2);
}
static void both_passed(void)
{
    conserved(7);
    MODEL_ASSERT(book.sent[1] == 2 && book.sent[2] == 4);
}
/* Of a receiver, a sender that does not wait, and a close, in any order. */
static void closed(void)
{
    conserved(7);
    MODEL_ASSERT(book.result[0][0] == 1000 + (book.result[2][0] == 1000));
}
static void freed_once(void)
{
    all_done(3);
    MODEL_ASSERT(book.freed == 1);
}
static void passed_and_freed(void)
{
    freed_once();
    MODEL_ASSERT(book.got[0][0] == 1);
}
static void passed_or_late(void)
{
    all_done(3);
    MODEL_ASSERT(book.freed == 1);
    MODEL_ASSERT(book.result[0][0] == (book.result[1][0] == 1000 ? 1001 : 1000 - ETIMEDOUT));
    MODEL_ASSERT(book.got[0][0] == book.sent[1]);
}
/* Of a select of two, a sender to the first, and one to the second that does not wait. */
static void one_each(void)
{
    conserved(7);
    MODEL_ASSERT(book.result[0][1] == 1001 && book.sent[1]);
}
static void one_or_late(void)
{
    all_done(3);
    MODEL_ASSERT(book.got[0][0] == book.sent[1]);
    MODEL_ASSERT(book.sent[1] ? book.result[0][1] == 1001 : book.result[0][0] == 1000 - ETIMEDOUT);
}
static void crossed(void)
{
    all_done(3);
    MODEL_ASSERT((book.got[0][0] == 2 && !book.got[1][0]) || (book.got[1][0] == 1 && !book.got[0][0]));
}

static const struct model hand_over = {
    .setup = unbuffered, .threads = {receives_one, sends_one}, .final = passed};
static const struct model hand_over_plain = {
    .setup = plain_receiver, .threads = {receives_one, sends_one}, .final = passed};
static const struct model hand_over_alone = {
    .setup = alone, .threads = {receives_one, sends_one}, .final = passed};
static const struct model alone_frees = {
    .setup = alone_two_refs, .threads = {receives_and_drops, sends_and_drops}, .final = passed_and_freed};
static const struct model selecting_alone = {
    .setup = alone, .threads = {selects_both, sends_one, offers_b}, .final = one_each};
static const struct model through_buffer = {
    .setup = buffered, .threads = {receives_two, sends_two}, .final = in_order};
static const struct model two_senders = {
    .setup = unbuffered, .threads = {receives_two, sends_one, sends_one}, .final = both_passed};
static const struct model two_senders_buffer = {
    .setup = buffered, .threads = {receives_two, sends_one, sends_one}, .final = both_passed};
static const struct model closing = {
    .setup = unbuffered, .threads = {receives_one, closes, offers}, .final = closed};
static const struct model last_one_frees = {.setup = unbuffered_two_refs,
                                            .threads = {receives_and_drops, sends_and_drops},
                                            .final = passed_and_freed};
static const struct model last_one_frees_buffer = {
    .setup = buffered_two_refs, .threads = {receives_and_drops, sends_and_drops}, .final = passed_and_freed};
static const struct model references = {
    .setup = unbuffered_two_refs, .threads = {refs_and_drops, refs_and_drops}, .final = freed_once};
static const struct model late = {.setup = unbuffered,
                                  .threads = {receives_for_a_while, offers_and_drops, alarm_goes_off},
                                  .final = passed_or_late};
static const struct model selecting = {
    .setup = unbuffered, .threads = {selects_both, sends_one, offers_b}, .final = one_each};
static const struct model selecting_late = {
    .setup = unbuffered, .threads = {selects_for_a_while, offers, alarm_goes_off}, .final = one_or_late};
static const struct model crossing = {.setup = unbuffered, .threads = {crosses, crosses}, .final = crossed};

TEST(unbuffered_value)
{
    model_check_both(hand_over, "a value from hand to hand", 0, 0);
    model_check_both(hand_over_plain, "to a plain thread", 0, 0);
}
TEST(one_goroutine_and_threads)
{
    model_check_both(hand_over_alone, "to the only goroutine", 0, 0);
    model_check_both(alone_frees, "the last one frees it, one P", 0, 0);
    model_check_both(selecting_alone, "a select of two, one P, two threads", 2, 2);
}
TEST(buffered_values)
{
    model_check_both(through_buffer, "two values through a buffer of one", 0, 0);
}
TEST(two_senders)
{
    model_check_both(two_senders, "two senders", 3, 3);
    model_check_both(two_senders_buffer, "two senders, a buffer of one", 3, 3);
}
TEST(close_while_used)
{
    model_check_both(closing, "a receiver, a sender, a close", 3, 3);
}
TEST(freed_by_the_last)
{
    model_check_both(last_one_frees, "the last one frees it", 0, 0);
    model_check_both(last_one_frees_buffer, "the last one frees it, with a buffer", 0, 0);
    model_check_both(references, "two that count references", 0, 0);
}
TEST(deadline)
{
    model_check_both(late, "a deadline, and the last reference goes", 3, 3);
}
TEST(select_of_two)
{
    model_check_both(selecting, "a select of two, two senders", 2, 2);
}
TEST(select_deadline)
{
    model_check_both(selecting_late, "a select of two, a deadline", 2, 2);
}
TEST(select_crossing)
{
    model_check_both(crossing, "two selects that serve each other", 0, 0);
}

/* --- mutations -------------------------------------------------------------------------------- */

TEST(mutation_commit)
{
    struct model m = hand_over;
    m.setup = hasty;
    struct model_result r = model_explore(&m);
    CHECK_MSG(r.failed, "a goroutine that can be found while it is on its stack was not noticed");
}
TEST(mutation_claim_torn)
{
    model_catch(&late, "torn claim", "gort__g_claim", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_claim_select)
{
    model_catch(&selecting, "a claim that does not look", "gort__g_claim", MODEL_OP_CAS, MODEL_SKIPPED);
}
TEST(mutation_arm)
{
    model_catch(&selecting, "a wait that is not armed", "commit_unlock_all", MODEL_OP_STORE, MODEL_SKIPPED);
}
TEST(mutation_arm_deadline)
{
    model_catch(&selecting_late, "a wait that is not armed", "commit_arm", MODEL_OP_STORE, MODEL_SKIPPED);
}
TEST(mutation_unref_torn)
{
    model_catch(&references, "torn count of references", "gort_chan_unref", MODEL_OP_CAS, MODEL_TORN);
}
TEST(mutation_ref_torn)
{
    model_catch(&references, "torn new reference", "gort_chan_ref", MODEL_OP_RMW, MODEL_TORN);
}
TEST(mutation_let_go)
{
    model_catch(&late, "a wait that frees what others have", "gort__chan_let_go", MODEL_OP_LOAD,
                MODEL_SKIPPED);
}
TEST(mutation_unlock_unordered)
{
    struct model m = through_buffer;
    m.memory = MODEL_WEAK;
    model_catch(&m, "unlock without order", "model_lock_drop", MODEL_OP_STORE, MODEL_UNORDERED);
}
