/* SPDX-License-Identifier: MIT */
/*
 * lease.c - the time without asking: never before now, once what has slipped is added, and never far after it if nothing has.
 */
#include <pthread.h>
#include <unistd.h>

#include <gort.h>

#include "sched/verbs.h"

#include "test.h"

#define MS    INT64_C(1000000)
#define LEASE (39 * MS) /* with what it is rounded up by */

/* What somebody saw who set a timer. */
struct seen {
    int64_t at;     /* a moment before */
    int64_t end;    /* of the lease; 0: there was none */
    uint32_t lease; /* which */
};

static struct seen look(void)
{
    struct seen s = {.at = gort__os_now()};
    s.end = gort__load(&gort__lease.end, RELAXED);
    s.lease = gort__lease_of(s.end);
    return s;
}

static void wait_until(int64_t when)
{
    while (gort__os_now() < when)
        usleep(500);
}

/* Moved in time it is always ahead, by no more than it may be, and nothing slips. */
TEST(moved_in_time)
{
    gort__lease_init();
    CHECK_EQ(look().end, 0);
    for (int i = 0; i < 20; i++) {
        int64_t now = gort__os_now();
        gort__lease_extend();
        struct seen s = look();
        int64_t slip = gort__lease_slip(s.lease);
        if (gort__os_now() - now > 5 * MS)
            continue; /* no CPU */
        CHECK_GE(s.end, s.at);
        CHECK_LE(s.end, gort__os_now() + LEASE);
        CHECK_EQ(slip, 0);
        wait_until(now + i % 3 * MS);
    }
    struct seen last = look();
    gort__lease_close();
    CHECK_EQ(look().end, 0);
    if (gort__os_now() < last.end - 2 * MS)
        CHECK_EQ(gort__lease_slip(last.lease), 0);
}

/* Not moved in time: whoever asks first notes it, or else who moves or closes it. */
TEST(not_moved_in_time)
{
    for (int i = 0; i < 3; i++) {
        gort__lease_init();
        gort__lease_extend();
        wait_until(look().end + 3 * MS);
        struct seen s = look();
        CHECK_GT(s.at, s.end);
        if (i == 1)
            gort__lease_extend();
        else if (i == 2)
            gort__lease_close();
        CHECK_GE(s.end + gort__lease_slip(s.lease), s.at);
        CHECK_EQ(gort__lease_slip(s.lease + 1), 0);
        CHECK_EQ(gort__lease_slip(s.lease - 1), 0);
    }
}

/* More slips than are kept apart: each is still known, if not by how much exactly. */
TEST(many_slips)
{
    enum { N = 72 };
    struct seen seen[N];
    gort__lease_init();
    for (int i = 0; i < N; i++) {
        gort__lease_extend();
        wait_until(look().end + i % 5 * MS);
        seen[i] = look();
        gort__lease_close();
    }
    for (int i = 0; i < N; i++)
        CHECK_GE(seen[i].end + gort__lease_slip(seen[i].lease), seen[i].at);
}

/* --- several at a time -------------------------------------------------------------------------- */

enum { LOOKS = 20000 };
static struct seen looks[2][LOOKS];
static bool stop; /* atomic */

static void *looks_on(void *arg)
{
    struct seen *seen = arg;
    for (int i = 0; i < LOOKS; i++) {
        seen[i] = look();
        if (i % 16 == 0)
            usleep(100);
    }
    return NULL;
}

static void *moves(void *unused)
{
    (void)unused;
    for (unsigned i = 0; !gort__load(&stop, RELAXED); i = i * 1664525 + 1013904223) {
        if (i >> 28 == 0)
            gort__lease_close();
        else
            gort__lease_extend();
        usleep(i >> 28 == 1 ? 40000 : i >> 20 & 4095); /* sometimes too long */
    }
    return NULL;
}

TEST(none_is_early)
{
    pthread_t lookers[2], mover;
    int64_t slipped = 0, leased = 0;
    gort__lease_init();
    CHECK_EQ(pthread_create(&mover, NULL, moves, NULL), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&lookers[i], NULL, looks_on, looks[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(lookers[i], NULL);
    gort__store(&stop, true, RELAXED);
    pthread_join(mover, NULL);
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < LOOKS; k++) {
            const struct seen *s = &looks[i][k];
            if (!s->end)
                continue;
            CHECK_GE(s->end + gort__lease_slip(s->lease), s->at);
            leased++;
            slipped += s->end < s->at;
        }
    test_log("%ld looks at leases, %ld at ones that had slipped", (long)leased, (long)slipped);
    CHECK_GT(leased, 0);
}
