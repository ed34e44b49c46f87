/* SPDX-License-Identifier: MIT */
/*
 * select.c - selects under load: many cases, duplicates, both directions, deadlines; a value handed on
 * exactly as often as it was sent.
 * Covers: src/sync/select.c
 */
#include "scenario/waiting.h"

#define CHANS 12
#define CASES 20 /* more than fit the stack of a select */

static gort_chan *chans[CHANS];
static gort_ctx *ctx;
static atomic_long balance[CHANS], happened, timeouts;
static gort_wg workers;

static void work(uint64_t seed)
{
    while (!gort_ctx_err(ctx)) {
        gort_case cases[CASES];
        int of[CASES], in[CASES], out[CASES];
        size_t n = 1 + test_random(&seed) % CASES;
        for (size_t i = 0; i < n; i++) {
            of[i] = (int)(test_random(&seed) % CHANS);
            in[i] = -1;
            out[i] = of[i];
            bool sends = test_random(&seed) % 2;
            cases[i] = (gort_case){.ch = test_random(&seed) % 8 ? chans[of[i]] : NULL,
                                   .op = sends ? GORT_SEND : GORT_RECV,
                                   .result = 77};
            if (sends)
                cases[i].send = &out[i];
            else
                cases[i].recv = &in[i];
        }
        int k = gort_select(cases, n, gort_in((int64_t)(test_random(&seed) % (50 * GORT_US))));
        if (k < 0) {
            CHECK(k == -ETIMEDOUT || k == -ECANCELED);
            atomic_fetch_add(&timeouts, 1);
        } else {
            CHECK(cases[k].ch);
            CHECK_EQ(cases[k].result, cases[k].op == GORT_SEND ? 0 : 1);
            atomic_fetch_add(&balance[of[k]], cases[k].op == GORT_SEND ? 1 : -1);
            atomic_fetch_add(&happened, 1);
        }
        for (size_t i = 0; i < n; i++)
            if (cases[i].op == GORT_RECV)
                /* A value goes to the case that happened, and nowhere else. */
                CHECK_EQ(in[i], (int)i == k ? of[i] : -1);
    }
    gort_wg_done(&workers);
}

static void *thread_work(void *seed)
{
    gort_ctx_use(ctx);
    work((uint64_t)(uintptr_t)seed);
    gort_ctx_use(NULL);
    return NULL;
}

TEST_GO(many_over_few_channels, .procs = "1,2,4,64", .fuzz = true)
{
    pthread_t threads[2];
    long before = 0;
    for (int i = 0; i < CHANS; i++)
        chans[i] = gort_chan_new(sizeof(int), i % 3 ? 0 : 2);
    for (int round = 0; round < 6 || !atomic_load(&happened); round++) {
        ctx = gort_ctx_new(NULL, GORT_FOREVER);
        gort_wg_add(&workers, 18);
        for (uint64_t i = 0; i < 2; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, thread_work, (void *)(uintptr_t)(test_seed() + i)), 0);
        gort_ctx_use(ctx);
        for (uint64_t i = 0; i < 16; i++)
            CHECK_EQ(GORT_GO(work, test_seed() + 50 + i), 0);
        gort_ctx_use(NULL);
        let_pass(150 * GORT_MS);
        gort_ctx_cancel(ctx, 0);
        CHECK_EQ(gort_wg_wait_until(&workers, soon()), 0);
        for (int i = 0; i < 2; i++)
            pthread_join(threads[i], NULL);
        settle();
        for (int i = 0; i < CHANS; i++) {
            CHECK_EQ(atomic_load(&balance[i]), (long)gort_chan_len(chans[i]));
            int v;
            while (gort_chan_recv_until(chans[i], &v, GORT_TRY) == 1) {
                CHECK_EQ(v, i);
                atomic_fetch_sub(&balance[i], 1);
            }
            CHECK_EQ(gort_chan_recv_until(chans[i], &v, GORT_TRY), -EAGAIN);
            if (gort_chan_cap(chans[i]) == 0)
                CHECK_EQ(gort_chan_send_until(chans[i], &i, GORT_TRY), -EAGAIN); /* nobody was left behind */
        }
        gort_ctx_unref(ctx);
        if (round == 0)
            before = test_rss_kb();
    }
    check_flat(before, 4096);
    test_log("%ld happened, %ld timeouts", atomic_load(&happened), atomic_load(&timeouts));
    for (int i = 0; i < CHANS; i++)
        gort_chan_unref(chans[i]);
}
