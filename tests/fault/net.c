/* SPDX-License-Identifier: MIT */
/*
 * net.c - what fds.c leaves out of sockets and children: options, addresses, gort_go_when, children that are
 * killed.
 * Build: faults
 * Covers: src/io/listen.c src/io/dial.c src/io/addr.c src/io/when.c src/io/process.c
 *
 * trial.h tells what must hold. Here a call that was refused is made again at once (AGAIN), and everything is
 * as if it had not been made before.
 */
#include "trial.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

/* --- sockets ----------------------------------------------------------------------------------- */

FAULTS(datagrams_with_senders)
{
    int err = 0;
    char text[64], sender[64], buf[16];
    struct sockaddr_storage to, from;
    socklen_t len = sizeof from;
    int a = (int)AGAIN(err, gort_listen_until("udp", "127.0.0.1:0", gort_in(LONG)));
    int b = (int)AGAIN(err, gort_listen_until("udp", "127.0.0.1:0", gort_in(LONG)));
    CHECK(a >= 0 && b >= 0);
    CHECK_GT(gort_local_addr(b, text, sizeof text), 0);
    int to_len = gort_addr_parse("udp", text, &to);
    CHECK_EQ(AGAIN(err, gort_sendto_until(a, "hello", 5, 0, (struct sockaddr *)&to, (unsigned)to_len,
                                          gort_in(LONG))),
             5);
    CHECK_EQ(AGAIN(err, gort_recvfrom(b, buf, sizeof buf, 0, (struct sockaddr *)&from, &len)), 5);
    CHECK_GT(gort_local_addr(a, text, sizeof text), 0);
    CHECK_GT(gort_addr_text((struct sockaddr *)&from, len, sender, sizeof sender), 0);
    CHECK_STR(sender, text);
    gort_close(a);
    gort_close(b);
    return err;
}

/* The connection of `dialed`: one that was given up may come before it. */
static int accept_it(int listener, int dialed, int *err)
{
    char own[64], peer[64];
    CHECK_GT(gort_local_addr(dialed, own, sizeof own), 0);
    for (;;) {
        int fd = (int)AGAIN(*err, gort_accept_until(listener, gort_in(LONG)));
        CHECK_GE(fd, 0);
        if (gort_peer_addr(fd, peer, sizeof peer) > 0 && strcmp(peer, own) == 0)
            return fd;
        gort_close(fd);
    }
}

FAULTS(connections_with_options)
{
    static const gort_net_options here = {.reuse_port = true, .backlog = 5, .keepalive = 30 * GORT_SEC},
                                  there = {.delay = true, .send_buffer = 20000, .local = "127.0.0.1:0"};
    char addr[64], peer[64], text[5];
    int err = 0;
    int listener = (int)AGAIN(err, gort_listen_with(&here, "tcp", "127.0.0.1:0", gort_in(LONG)));
    CHECK_GE(listener, 0);
    CHECK_GT(gort_local_addr(listener, addr, sizeof addr), 0);
    CHECK_TIMES_OUT(err, gort_accept_until(listener, gort_in(GORT_MS)));
    for (int way = 0; way < 2; way++) {
        int a = way ? (int)AGAIN(err, gort_dial_with(&there, "tcp", addr, gort_in(LONG)))
                    : (int)AGAIN(err, gort_dial_until("tcp", addr, gort_in(LONG)));
        CHECK_GE(a, 0);
        CHECK_GT(gort_peer_addr(a, peer, sizeof peer), 0);
        CHECK_STR(peer, addr);
        CHECK_EQ(!test_socket_option(a, IPPROTO_TCP, TCP_NODELAY), way);
        int b = accept_it(listener, a, &err);
        CHECK(test_socket_option(b, SOL_SOCKET, SO_KEEPALIVE));
        CHECK_EQ(test_socket_option(b, IPPROTO_TCP, TCP_KEEPIDLE), 30);
        CHECK_EQ(AGAIN(err, gort_write_all(b, "hello", 5)), 5);
        CHECK_EQ(AGAIN(err, gort_read_full(a, text, 5)), 5);
        CHECK_EQ(memcmp(text, "hello", 5), 0);
        gort_close(a);
        gort_close(b);
    }
    gort_close(listener);
    return err;
}

FAULTS(socket_options)
{
    int err = 0, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0)
        return -errno; /* the fault was this one */
    bool no = refused(gort_set_nodelay(fd, true), &err);
    CHECK_EQ(!test_socket_option(fd, IPPROTO_TCP, TCP_NODELAY), no);
    no = refused(gort_set_keepalive(fd, 40 * GORT_SEC), &err);
    CHECK_EQ(!test_socket_option(fd, SOL_SOCKET, SO_KEEPALIVE), no);
    struct linger l;
    socklen_t len = sizeof l;
    no = refused(gort_set_linger(fd, 0), &err);
    CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &len), 0);
    CHECK_EQ(!l.l_onoff, no);
    int send = test_socket_option(fd, SOL_SOCKET, SO_SNDBUF);
    no = refused(gort_set_buffers(fd, 10000, 20000), &err);
    CHECK_EQ(test_socket_option(fd, SOL_SOCKET, SO_SNDBUF),
             no ? send : 40000); /* Linux counts its own needs too */
    CHECK_EQ(AGAIN(err, gort_set_nodelay(fd, true)), 0);
    CHECK_EQ(AGAIN(err, gort_set_keepalive(fd, 40 * GORT_SEC)), 0);
    CHECK_EQ(AGAIN(err, gort_set_linger(fd, 0)), 0);
    CHECK_EQ(AGAIN(err, gort_set_buffers(fd, 10000, 20000)), 0);
    CHECK_EQ(test_socket_option(fd, IPPROTO_TCP, TCP_KEEPIDLE), 40);
    CHECK_EQ(test_socket_option(fd, SOL_SOCKET, SO_RCVBUF), 20000);
    CHECK_EQ(test_socket_option(fd, SOL_SOCKET, SO_SNDBUF), 40000);
    gort_close(fd);
    return err;
}

/* --- goroutines that begin when there is something ---------------------------------------------- */

struct guard {
    int fd, err;
    gort_wg wg;
};

static void when_ready(void *arg)
{
    struct guard *g = arg;
    char text[5];
    ssize_t n = AGAIN(g->err, gort_read_until(g->fd, text, 5, GORT_TRY));
    if (n == -EAGAIN) { /* an event of a former file with this number */
        CHECK_EQ(AGAIN(g->err, gort_go_when(g->fd, GORT_READ, when_ready, g)), 0);
        return;
    }
    CHECK_EQ(n, 5);
    CHECK_EQ(memcmp(text, "hello", 5), 0);
    /* A second one is fatal: so much for those that were refused and started all the same. */
    gort_wg_done(&g->wg);
}

FAULTS(go_when_ready)
{
    enum { N = 30 };
    int ends[N][2], err = 0;
    struct guard guard[N];
    for (int i = 0; i < N; i++) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]), 0);
        guard[i] = (struct guard){.fd = ends[i][0]};
        gort_wg_add(&guard[i].wg, 1);
        CHECK_EQ(AGAIN(err, gort_go_when(ends[i][0], GORT_READ, when_ready, &guard[i])), 0);
    }
    gort_yield();
    for (int i = 0; i < N; i++)
        CHECK_EQ(dprintf(ends[i][1], "hello"), 5);
    for (int i = 0; i < N; i++) {
        CHECK_EQ(gort_wg_wait(&guard[i].wg), 0);
        err = both(err, guard[i].err);
        close_both(ends[i]);
    }
    return err;
}

/* A function that is told nothing would try, find nothing and ask again, for ever. */
TEST_GO(go_when_tells_that_the_fd_cannot_be_watched, .procs = "1,2")
{
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    fault_from(FAULT_WATCH, 1);
    CHECK_EQ(gort_go_when(ends[0], GORT_READ, nothing, NULL), -ENOSPC);
    CHECK(fault_off());
    CHECK_EQ(gort_count(), 1);
    struct guard g = {.fd = ends[0]};
    gort_wg_add(&g.wg, 1);
    CHECK_EQ(gort_go_when(ends[0], GORT_READ, when_ready, &g), 0);
    CHECK_EQ(dprintf(ends[1], "hello"), 5);
    CHECK_EQ(gort_wg_wait(&g.wg), 0);
    close_both(ends);
}

/* --- children --------------------------------------------------------------------------------- */

FAULTS(killed_children)
{
    char word[] = "sleep", time[] = "60", *argv[] = {word, time, NULL};
    gort_command c = {.file = word, .argv = argv, .in = GORT_NULL, .out = GORT_NULL, .err = GORT_NULL};
    gort_process p;
    int err = 0, status;
    CHECK_EQ(AGAIN(err, gort_spawn(&p, &c)), 0);
    CHECK_TIMES_OUT(err, gort_wait_until(&p, &status, gort_in(GORT_MS)));
    CHECK_EQ(gort_kill(&p, SIGTERM), 0);
    CHECK_EQ(AGAIN(err, gort_wait_until(&p, &status, gort_in(LONG))), 128 + SIGTERM);
    CHECK(WIFSIGNALED(status));
    CHECK_EQ(gort_kill(&p, SIGTERM), -ESRCH);
    CHECK_EQ(gort_wait_until(&p, NULL, GORT_TRY), 128 + SIGTERM);
    return err;
}

NOTHING_LEAKS({"datagrams", datagrams_with_senders, 20}, {"connections", connections_with_options, 5},
              {"go_when", go_when_ready, 5}, {"killed", killed_children, 2})
