/* SPDX-License-Identifier: MIT */
/*
 * net_unix.c - unix sockets: streams and datagrams, by path and by abstract name; peers and backlogs that are
 * full.
 * Covers: src/io/dial.c src/io/listen.c src/io/addr.c
 */
#include "netting.h"
#include "sched/timers/timer.h"

static atomic_long woken;

static void unix_stream(const char *path)
{
    char text[128], buf[8];
    int listener = gort_listen("unix", path);
    CHECK_MSG(listener >= 0, "%s: %s", path, gort_strerror(listener));
    CHECK_EQ(gort_local_addr(listener, text, sizeof text), strlen(path));
    CHECK_STR(text, path);
    CHECK_EQ(gort_listen("unix", path), -EADDRINUSE);
    int a = gort_dial("unix", path), b = gort_accept(listener);
    CHECK_GE(a, 0);
    CHECK_GE(b, 0);
    CHECK_EQ(gort_local_addr(a, text, sizeof text), 0); /* unnamed */
    CHECK_EQ(gort_write_all(a, "12345", 5), 5);
    CHECK_EQ(gort_read(b, buf, 8), 5);
    CHECK_EQ(gort_close(a), 0);
    CHECK_EQ(gort_read(b, buf, 8), 0);
    CHECK_EQ(gort_close(b), 0);
    CHECK_EQ(gort_close(listener), 0);
}

static void drain(int fd, int count)
{
    char buf[2048];
    gort_sleep(5 * GORT_MS);
    for (int i = 0; i < count; i++)
        CHECK_EQ(gort_recvfrom(fd, buf, sizeof buf, 0, NULL, NULL), 1000);
    atomic_fetch_add(&woken, 1);
}

TEST_GO(unix_sockets, .procs = "1,2")
{
    char path[64], name[64], buf[1000] = {0};
    snprintf(path, sizeof path, "/tmp/gort-test-%d.sock", (int)getpid());
    snprintf(name, sizeof name, "@gort-test-%d", (int)getpid());
    unix_stream(path);
    CHECK_EQ(unlink(path), 0);
    unix_stream(name);
    int server = gort_listen("unixgram", name), client = gort_dial("unixgram", name);
    CHECK_GE(server, 0);
    CHECK_GE(client, 0);
    CHECK_EQ(GORT_GO(drain, server, 200), 0);
    struct sockaddr_storage to;
    int len = gort_addr_parse("unixgram", name, &to), other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    for (int i = 0; i < 100; i++) { /* more than fits: connected and not */
        CHECK_EQ(gort_write(client, buf, sizeof buf), 1000);
        CHECK_EQ(gort_sendto(other, buf, sizeof buf, 0, (struct sockaddr *)&to, (socklen_t)len), 1000);
    }
    await(&woken, 1);
    CHECK_EQ(gort_close(other), 0);
    CHECK_EQ(gort_close(server), 0);
    CHECK_EQ(gort_close(client), 0);
}

static void send_until_full(int fd, const struct sockaddr_storage *to, int len)
{
    char buf[1000] = {0};
    for (int i = 0; i < 100; i++)
        CHECK_EQ(
            gort_sendto(fd, buf, sizeof buf, 0, len ? (const struct sockaddr *)to : NULL, (socklen_t)len),
            1000);
    atomic_fetch_add(&woken, 1);
}

/* Whoever is connected to a full peer is told by an event; whoever is not looks now and then, by a timer. */
TEST_GO(a_full_unix_peer, .procs = "1,2,4", .fuzz = true)
{
    char name[64];
    struct sockaddr_storage to;
    snprintf(name, sizeof name, "@gort-full-peer-%d", (int)getpid());
    int server = gort_listen("unixgram", name), client = gort_dial("unixgram", name);
    CHECK_GE(server, 0);
    CHECK_GE(client, 0);
    for (int named = 0; named < 2; named++) {
        int other = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        int len = gort_addr_parse("unixgram", name, &to);
        CHECK_EQ(GORT_GO(send_until_full, named ? other : client, &to, named ? len : 0), 0);
        for (int64_t until = soon(); waiting("io write") == 0; gort_yield())
            CHECK(gort_now() < until);
        if (named)
            for (int64_t until = soon(); gort__timer_count() == 0; gort_yield())
                CHECK(gort_now() < until);
        else
            CHECK_EQ(gort__timer_count(), 0);
        CHECK_EQ(GORT_GO(drain, server, 100), 0);
        await(&woken, 2 * (named + 1));
        CHECK_EQ(gort_close(other), 0);
    }
    CHECK_EQ(gort_close(server), 0);
    CHECK_EQ(gort_close(client), 0);
}

static void dial_and_close(const char *name)
{
    int fd = gort_dial_until("unix", name, soon());
    CHECK_MSG(fd >= 0, "%s", gort_strerror(fd));
    CHECK_EQ(gort_close(fd), 0);
    atomic_fetch_add(&woken, 1);
}

/* A full backlog of a unix socket is an error of connect, not an event. */
TEST_GO(a_full_unix_backlog, .procs = "1,2")
{
    char name[64];
    gort_net_options small = {.backlog = 1};
    snprintf(name, sizeof name, "@gort-full-%d", (int)getpid());
    int listener = gort_listen_with(&small, "unix", name, GORT_FOREVER);
    CHECK_GE(listener, 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(dial_and_close, name), 0);
    gort_sleep(5 * GORT_MS);
    for (int i = 0; i < 10; i++) {
        int fd = gort_accept(listener);
        CHECK_GE(fd, 0);
        CHECK_EQ(gort_close(fd), 0);
    }
    await(&woken, 10);
    CHECK_EQ(gort_close(listener), 0);
}
