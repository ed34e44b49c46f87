/* SPDX-License-Identifier: MIT */
/*
 * foreign.c - a client library that knows nothing of gort and opens and closes its own sockets: hiredis
 * against a redis server of its own, on loopback.
 * Build: pkg:hiredis
 * Covers: src/io/ready.c src/io/fd.c
 *
 * Needs libhiredis-dev when it is built and redis-server when it runs; without them the cases are skipped.
 */
#include <signal.h>

#include "netting.h"

#ifndef HAVE_HIREDIS

TEST(hiredis, .native = TEST_FORKS)
{
    SKIP("install libhiredis-dev and pkg-config and build again; not in static or cross builds");
}

#else
#include <hiredis/hiredis.h>

enum { CLIENTS = 8 };

static int port;
static atomic_long done;

static gort_process start_server(void)
{
    char addr[64], number[16], *at;
    int probe = listen_here(addr, sizeof addr);
    at = strrchr(addr, ':') + 1;
    snprintf(number, sizeof number, "%s", at);
    port = atoi(number);
    CHECK_EQ(gort_close(probe), 0);
    char *argv[] = {"redis-server", "--port", number,  "--bind", "127.0.0.1",
                    "--save",       "",       "--dir", "/tmp",   NULL};
    gort_command c = {.file = argv[0], .argv = argv, .in = GORT_NULL, .out = GORT_NULL, .err = GORT_NULL};
    gort_process p;
    int err = gort_spawn(&p, &c);
    if (err == -ENOENT)
        SKIP("install redis-server");
    CHECK_EQ(err, 0);
    for (int64_t until = soon(); (probe = gort_dial("tcp", addr)) < 0; gort_sleep(10 * GORT_MS))
        CHECK_MSG(gort_now() < until, "redis-server does not listen on %s", addr);
    CHECK_EQ(gort_close(probe), 0);
    return p;
}

/* One command and its answer; the library reads and writes, gort waits. */
static redisReply *command(redisContext *c, const char *format, long a, long b)
{
    void *reply = NULL;
    int written = 0;
    CHECK_EQ(redisAppendCommand(c, format, a, b), REDIS_OK);
    while (!written) {
        CHECK_GT(gort_wait_fd(c->fd, GORT_WRITE, soon()), 0);
        CHECK_MSG(redisBufferWrite(c, &written) == REDIS_OK, "%s", c->errstr);
    }
    for (;;) {
        CHECK_EQ(redisGetReplyFromReader(c, &reply), REDIS_OK);
        if (reply)
            return reply;
        CHECK_GT(gort_wait_fd(c->fd, GORT_READ, soon()), 0);
        CHECK_MSG(redisBufferRead(c) == REDIS_OK, "%s", c->errstr);
    }
}

static void client(long who)
{
    redisContext *c = redisConnectNonBlock("127.0.0.1", port);
    CHECK(c && !c->err);
    for (long i = 0; i < 200; i++) {
        redisReply *r = command(c, "SET key:%ld %ld", who, i);
        CHECK_EQ(r->type, REDIS_REPLY_STATUS);
        freeReplyObject(r);
        r = command(c, "GET key:%ld", who, 0);
        CHECK_EQ(r->type, REDIS_REPLY_STRING);
        CHECK_EQ(atol(r->str), i);
        freeReplyObject(r);
        if (i % 10 == 0) { /* closes its socket and opens another, which may well get the same number */
            if (i % 20 == 0)
                CHECK_EQ(gort_fd_forget(c->fd), 0);
            CHECK_MSG(redisReconnect(c) == REDIS_OK, "%s", c->errstr);
        }
    }
    gort_fd_forget(c->fd);
    redisFree(c);
    atomic_fetch_add(&done, 1);
}

TEST_GO(hiredis, .procs = "1,2,4", .fuzz = true, .native = TEST_FORKS)
{
    gort_process p = start_server();
    for (long i = 0; i < CLIENTS; i++)
        CHECK_EQ(GORT_GO(client, i), 0);
    await(&done, CLIENTS);
    CHECK_EQ(gort_kill(&p, SIGKILL), 0);
    CHECK_EQ(gort_wait(&p, NULL), 128 + SIGKILL);
    settle();
}
#endif
