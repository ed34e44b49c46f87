/* SPDX-License-Identifier: MIT */
/*
 * 19-tcp-proxy.c - both directions of a connection.      cc 19-tcp-proxy.c -o 19-tcp-proxy -lgort -pthread
 *
 *     19-tcp-proxy 127.0.0.1:7001 example.org:80 [SECONDS]
 *
 * Two goroutines a connection copy what comes; the end of one direction is passed on as a half close, so the
 * other may still talk. A connection on which nothing moves in either direction for so many seconds (300) is ended: a peer that
 * is gone without a word would keep its fds and goroutines for ever.
 * Test: by tests/servers proxy
 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static const char *target;
static int64_t idle = 300 * GORT_SEC;

/* One direction. What moves here moves the deadlines of both: each side has one, which the reader and the writer of it look at. */
struct copy {
    int from, to;
    gort_wg *both;
};

static void moved(const struct copy *c)
{
    gort_set_deadline(c->from, GORT_READ | GORT_WRITE, gort_in(idle));
    gort_set_deadline(c->to, GORT_READ | GORT_WRITE, gort_in(idle));
}

static void copy(void *arg)
{
    struct copy *c = arg;
    char buf[16 << 10];
    ssize_t n;
    moved(c);
    while ((n = gort_read(c->from, buf, sizeof buf)) > 0) {
        moved(c);
        if (gort_write_all(c->to, buf, (size_t)n) < 0)
            break;
    }
    gort_shutdown(c->to, SHUT_WR);
    if (n != 0)
        gort_shutdown(c->from, SHUT_RD);
    gort_wg_done(c->both);
}

static void forward(int client)
{
    gort_wg both = {0};
    int server = gort_dial_until("tcp", target, gort_in(5 * GORT_SEC));
    if (server >= 0) {
        struct copy there = {client, server, &both}, back = {server, client, &both};
        gort_wg_add(&both, 2);
        if (gort_go(copy, &there) < 0)
            gort_wg_done(&both);
        copy(&back);
        gort_wg_wait(&both);
        gort_close(server);
    }
    gort_close(client);
}

static int serve(void *addr)
{
    char text[64];
    int listener = gort_listen("tcp", addr);
    if (listener < 0 || gort_local_addr(listener, text, sizeof text) < 0) {
        fprintf(stderr, "%s: %s\n", (char *)addr, gort_strerror(listener));
        return 1;
    }
    printf("listening on %s\n", text);
    fflush(stdout);
    for (;;) {
        int fd = gort_accept(listener);
        if (fd < 0) /* too many open files, or no memory: some will be free soon */
            gort_sleep(10 * GORT_MS);
        else if (GORT_GO(forward, fd) < 0)
            gort_close(fd);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return fprintf(stderr, "usage: %s LISTEN TARGET\n", argv[0]), 2;
    target = argv[2];
    if (argc > 3)
        idle = (int64_t)(strtod(argv[3], NULL) * (double)GORT_SEC);
    return gort_run(serve, argv[1]);
}
