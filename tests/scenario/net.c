/* SPDX-License-Identifier: MIT */
/*
 * net.c - sockets: listen, accept, dial, read, write, over loopback.
 * Covers: src/io/io.h src/io/fd.c src/io/rw.c src/io/wait.c src/io/listen.c src/io/dial.c src/io/addr.c src/io/dns.c
 * Covers: src/poll/fd.c
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/un.h>

#include <net/if.h>

#include "netting.h"

/* --- echo ------------------------------------------------------------------------------------- */

static void echo(int fd)
{
    char buf[4096];
    for (ssize_t n; (n = gort_read(fd, buf, sizeof buf)) > 0;)
        CHECK_EQ(gort_write_all(fd, buf, (size_t)n), n);
    gort_close(fd);
}

static void serve(int listener)
{
    for (int fd; (fd = gort_accept(listener)) >= 0;)
        CHECK_EQ(GORT_GO(echo, fd), 0);
}

static gort_wg clients;

static void talk(const char *addr, int rounds)
{
    char out[512], in[512];
    int fd = gort_dial("tcp", addr);
    CHECK_GE(fd, 0);
    for (int i = 0; i < rounds; i++) {
        memset(out, i, sizeof out);
        CHECK_EQ(gort_write_all(fd, out, sizeof out), sizeof out);
        CHECK_EQ(gort_read_full(fd, in, sizeof in), sizeof in);
        CHECK_EQ(memcmp(in, out, sizeof in), 0);
    }
    CHECK_EQ(gort_close(fd), 0);
    gort_wg_done(&clients);
}

TEST_GO(echo_two_connections, .procs = "1,2,4", .fuzz = true)
{
    char addr[64];
    int listener = listen_here(addr, sizeof addr), rounds = (int)test_scaled(10000, 500);
    CHECK_EQ(GORT_GO(serve, listener), 0);
    gort_wg_add(&clients, 2);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(GORT_GO(talk, addr, rounds), 0);
    CHECK_EQ(gort_wg_wait(&clients), 0);
    CHECK_EQ(gort_close(listener), 0);
    settle();
}

static atomic_long accepted, woken;

static void accept_all(int listener)
{
    int fd;
    while ((fd = gort_accept(listener)) >= 0) {
        atomic_fetch_add(&accepted, 1);
        CHECK_EQ(gort_close(fd), 0);
    }
    CHECK_EQ(fd, -EBADF);
    atomic_fetch_add(&woken, 1);
}

TEST_GO(ten_acceptors, .procs = "1,4", .fuzz = true)
{
    char addr[64];
    int listener = listen_here(addr, sizeof addr);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(accept_all, listener), 0);
    await_waiting("accept", 10);
    for (int i = 0; i < 100; i++) {
        int fd = gort_dial("tcp", addr);
        CHECK_GE(fd, 0);
        CHECK_EQ(gort_close(fd), 0);
    }
    await(&accepted, 100);
    CHECK_EQ(gort_close(listener), 0);
    await(&woken, 10);
    settle();
}

/* A burst that comes with one edge: the first acceptor passes the turn on. */
TEST_GO(a_burst_reaches_all_acceptors, .procs = "1,2")
{
    char addr[64];
    int listener = listen_here(addr, sizeof addr), fds[10];
    for (int i = 0; i < 10; i++)
        CHECK_GE(fds[i] = gort_dial("tcp", addr), 0);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(GORT_GO(accept_all, listener), 0);
    await(&accepted, 10);
    for (int i = 0; i < 10; i++)
        CHECK_EQ(gort_close(fds[i]), 0);
    CHECK_EQ(gort_close(listener), 0);
    await(&woken, 10);
}

TEST_GO(close_and_listen_again, .procs = "1,2,4")
{
    char addr[64];
    int listener = listen_here(addr, sizeof addr);
    for (int i = 0; i < 100; i++) {
        atomic_store(&woken, 0);
        CHECK_EQ(GORT_GO(accept_all, listener), 0);
        await_waiting("accept", 1);
        CHECK_EQ(gort_close(listener), 0);
        listener = gort_listen("tcp", addr);
        CHECK_MSG(listener >= 0, "listen on %s again: %s", addr, gort_strerror(listener));
        await(&woken, 1);
    }
    CHECK_EQ(gort_close(listener), 0);
}

/* --- ends ------------------------------------------------------------------------------------- */

TEST_GO(half_close)
{
    char buf[16];
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(gort_write_all(ends[0], "question", 8), 8);
    CHECK_EQ(gort_shutdown(ends[0], SHUT_WR), 0);
    CHECK_EQ(gort_read_full(ends[1], buf, sizeof buf), 8);
    CHECK_EQ(gort_read(ends[1], buf, sizeof buf), 0);
    CHECK_EQ(gort_write_all(ends[1], "answer", 6), 6);
    CHECK_EQ(gort_read(ends[0], buf, sizeof buf), 6);
    CHECK_EQ(gort_write(ends[0], "x", 1), -EPIPE);
    CHECK_EQ(gort_shutdown(ends[1], SHUT_RD), 0);
    CHECK_EQ(gort_read(ends[1], buf, sizeof buf), 0);
    close_pair(ends);
}

static atomic_long results[8];

static void read_one(int fd, int slot)
{
    char buf[64];
    atomic_store(&results[slot], gort_read(fd, buf, sizeof buf));
    atomic_fetch_add(&woken, 1);
}

TEST_GO(end_of_file_and_reset, .procs = "1,2")
{
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(GORT_GO(read_one, ends[1], 0), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_close(ends[0]), 0);
    await(&woken, 1);
    CHECK_EQ(results[0], 0);
    CHECK_EQ(gort_close(ends[1]), 0);
    tcp_pair(ends);
    CHECK_EQ(GORT_GO(read_one, ends[1], 1), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_set_linger(ends[0], 0), 0);
    CHECK_EQ(gort_close(ends[0]), 0);
    await(&woken, 2);
    CHECK_EQ(results[1], -ECONNRESET);
    CHECK_EQ(gort_write(ends[1], "x", 1), -EPIPE);
    CHECK_EQ(gort_close(ends[1]), 0);
}

static void write_and_close(int fd, int pause)
{
    if (pause == 1)
        gort_yield();
    CHECK_EQ(gort_write_all(fd, "12345", 5), 5);
    if (pause == 2)
        gort_yield();
    CHECK_EQ(gort_close(fd), 0);
}

/* Data and the end of the stream in one event: a short read must not hide the end. */
TEST_GO(data_and_end_together, .procs = "1,2,4", .fuzz = true)
{
    long n = test_scaled(300, 30);
    for (long i = 0; i < n; i++) {
        int ends[2];
        char buf[64];
        tcp_pair(ends);
        CHECK_EQ(gort_read_until(ends[1], buf, sizeof buf, gort_in(1)), -ETIMEDOUT); /* it is watched */
        CHECK_EQ(GORT_GO(write_and_close, ends[0], (int)(i % 3)), 0);
        CHECK_EQ(gort_read_until(ends[1], buf, sizeof buf, soon()), 5);
        CHECK_EQ(gort_read_until(ends[1], buf, sizeof buf, soon()), 0);
        CHECK_EQ(gort_close(ends[1]), 0);
    }
    settle();
}

/* Reads stop at urgent data: what follows it is there all the same. */
TEST_GO(reads_stop_at_urgent_data, .procs = "1,2")
{
    int ends[2];
    char buf[64], got[5] = "";
    tcp_pair(ends);
    CHECK_EQ(gort_read_until(ends[1], buf, sizeof buf, gort_in(1)), -ETIMEDOUT);
    CHECK_EQ(gort_write_all(ends[0], "ab", 2), 2);
    CHECK_EQ(gort_sendto(ends[0], "!", 1, MSG_OOB, NULL, 0), 1);
    CHECK_EQ(gort_write_all(ends[0], "cd", 2), 2);
    for (ssize_t n = 0, more; n < 4; n += more) {
        more = gort_read_until(ends[1], buf, sizeof buf, soon());
        CHECK_GT(more, 0);
        memcpy(got + n, buf, (size_t)more);
    }
    CHECK_STR(got, "abcd");
    close_pair(ends);
}

/* The kernel knows more than the poller has told: who does not want to wait gets what is there. */
TEST_GO(trying_is_never_refused_for_nothing, .procs = "1")
{
    int ends[2];
    char buf[64];
    tcp_pair(ends);
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(gort_write_all(ends[0], "12345", 5), 5);
        CHECK_EQ(gort_wait_fd(ends[1], GORT_READ, soon()), GORT_READ);
        CHECK_EQ(gort_read(ends[1], buf, sizeof buf), 5); /* short: it is empty now */
        CHECK_EQ(gort_write_all(ends[0], "67890", 5), 5);
        while (poll(&(struct pollfd){.fd = ends[1], .events = POLLIN}, 1, 1000) != 1)
            ;
        CHECK_EQ(gort_read_until(ends[1], buf, sizeof buf, i % 2 ? GORT_TRY : gort_now()), 5);
    }
    close_pair(ends);
}

TEST_GO(flags_that_do_not_wait)
{
    int ends[2];
    char byte = 0;
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
    tcp_pair(ends);
    CHECK_EQ(gort_recvfrom(ends[0], &byte, 1, MSG_DONTWAIT, NULL, NULL), -EAGAIN);
    CHECK_EQ(gort_recvmsg(ends[0], &msg, MSG_DONTWAIT), -EAGAIN);
    fill(ends[0]);
    CHECK_EQ(gort_sendto(ends[0], &byte, 1, MSG_DONTWAIT, NULL, 0), -EAGAIN);
    CHECK_EQ(gort_sendmsg(ends[0], &msg, MSG_DONTWAIT), -EAGAIN);
    close_pair(ends);
}

TEST_GO(zero_bytes)
{
    char buf[8];
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(gort_read(ends[0], buf, 0), 0);
    CHECK_EQ(gort_readv(ends[0], NULL, 0), 0);
    CHECK_EQ(gort_write(ends[0], buf, 0), 0);
    CHECK_EQ(gort_write_all(ends[0], buf, 0), 0);
    CHECK_EQ(gort_read_full(ends[0], buf, 0), 0);
    close_pair(ends);
    CHECK_EQ(gort_read(ends[0], buf, 0), -EBADF);
}

TEST_GO(bad_fds)
{
    char buf[8];
    CHECK_EQ(gort_read(-1, buf, 8), -EBADF);
    CHECK_EQ(gort_write(-1, buf, 8), -EBADF);
    CHECK_EQ(gort_read(1000000, buf, 8), -EBADF);
    CHECK_EQ(gort_read(INT32_MAX, buf, 8), -EBADF);
    CHECK_EQ(gort_close(-1), -EBADF);
    CHECK_EQ(gort_close(777), -EBADF);
    CHECK_EQ(gort_accept(-1), -EBADF);
    CHECK_EQ(gort_set_deadline(777, GORT_READ, GORT_FOREVER), -EBADF);
    CHECK_EQ(gort_wait_fd(777, GORT_READ, GORT_TRY), -EBADF);
    CHECK_EQ(gort_wait_fd(-1, GORT_READ, GORT_TRY), -EBADF);
    CHECK_EQ(gort_fd_forget(777), 0);
    CHECK_EQ(gort_accept(0) < 0, 1);
}

/* --- sharing ---------------------------------------------------------------------------------- */

TEST_GO(two_readers_in_turn, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    tcp_pair(ends);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(GORT_GO(read_one, ends[1], i), 0);
        await_waiting("io read", i + 1);
    }
    CHECK_EQ(gort_write_all(ends[0], "a", 1), 1);
    await(&woken, 1);
    CHECK_EQ(results[0], 1); /* the first that came */
    CHECK_EQ(gort_write_all(ends[0], "bc", 2), 2);
    await(&woken, 2);
    CHECK_EQ(results[1], 2);
    close_pair(ends);
}

static void read_byte(int fd)
{
    char byte;
    CHECK_EQ(gort_read(fd, &byte, 1), 1);
    atomic_fetch_add(&woken, 1);
}

/* One edge, many readers that take a byte each. */
TEST_GO(one_edge_serves_all_readers, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    tcp_pair(ends);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(GORT_GO(read_byte, ends[1]), 0);
    await_waiting("io read", 20);
    CHECK_EQ(gort_write_all(ends[0], "01234567890123456789", 20), 20);
    await(&woken, 20);
    close_pair(ends);
}

static void echo_back(int fd, long total)
{
    char buf[8192];
    for (long n = 0; n < total;) {
        ssize_t got = gort_read(fd, buf, sizeof buf);
        CHECK_GT(got, 0);
        n += got;
    }
    atomic_fetch_add(&woken, 1);
}

static void pump(int fd, long total)
{
    static char buf[1 << 16];
    for (long n = 0; n < total; n += (long)sizeof buf)
        CHECK_EQ(gort_write_all(fd, buf, sizeof buf), sizeof buf);
    atomic_fetch_add(&woken, 1);
}

TEST_GO(both_directions_at_once, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    long total = test_scaled(64, 4) << 16;
    tcp_pair(ends);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(GORT_GO(pump, ends[i], total), 0);
        CHECK_EQ(GORT_GO(echo_back, ends[i], total), 0);
    }
    await(&woken, 4);
    close_pair(ends);
}

enum { WRITERS = 8, RECORD = 100000 };

static void write_record(int fd, int who)
{
    char *record = malloc(RECORD);
    memset(record, 'a' + who, RECORD);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(gort_write_all(fd, record, RECORD), RECORD);
    free(record);
}

/* What one write_all writes is not mixed with another's, although each needs many system calls. */
TEST_GO(writers_do_not_mix, .procs = "1,2,4", .fuzz = true)
{
    int ends[2];
    char *record = malloc(RECORD);
    tcp_pair(ends);
    CHECK_EQ(gort_set_buffers(ends[0], 0, 8192), 0);
    for (int i = 0; i < WRITERS; i++)
        CHECK_EQ(GORT_GO(write_record, ends[0], i), 0);
    for (int i = 0; i < 4 * WRITERS; i++) {
        CHECK_EQ(gort_read_full(ends[1], record, RECORD), RECORD);
        for (int k = 1; k < RECORD; k++)
            CHECK_EQ(record[k], record[0]);
    }
    free(record);
    settle();
    close_pair(ends);
}

static void read_slowly(int fd, long total)
{
    char *buf = malloc(1 << 20);
    for (long n = 0; n < total;) {
        ssize_t got = gort_read(fd, buf, 1 << 20);
        CHECK_GT(got, 0);
        for (ssize_t i = 0; i < got; i += 997)
            CHECK_EQ(buf[i], (char)((n + i) / 1024));
        n += got;
        if (n % 3 == 0)
            gort_sleep(100 * GORT_US);
        else
            gort_yield();
    }
    free(buf);
    atomic_fetch_add(&woken, 1);
}

TEST_GO(a_large_write_to_a_slow_reader, .procs = "1,2")
{
    int ends[2];
    long total = test_under_sanitizer() || test_under_emulator() ? 5 << 20 : 50 << 20;
    char *all = malloc((size_t)total);
    for (long i = 0; i < total; i++)
        all[i] = (char)(i / 1024);
    tcp_pair(ends);
    CHECK_EQ(GORT_GO(read_slowly, ends[1], total), 0);
    CHECK_EQ(gort_write_all(ends[0], all, (size_t)total), total);
    await(&woken, 1);
    close_pair(ends);
    free(all);
}

/* --- dialing ---------------------------------------------------------------------------------- */

TEST_GO(refused_at_once)
{
    char addr[64];
    int64_t from = gort_now();
    CHECK_EQ(gort_close(listen_here(addr, sizeof addr)), 0);
    CHECK_EQ(gort_dial("tcp", addr), -ECONNREFUSED);
    CHECK_EQ(gort_dial("tcp4", addr), -ECONNREFUSED);
    CHECK_EQ(gort_dial("tcp6", addr), -EAFNOSUPPORT);
    CHECK_LT(gort_now() - from, test_seconds(30));
    CHECK_EQ(gort_dial("unix", "/nonexistent/socket"), -ENOENT);
    CHECK_EQ(gort_dial("sctp", addr), -EINVAL);
    CHECK_EQ(gort_dial_with(&(gort_net_options){.reserved = {[3] = 1}}, "tcp", addr, GORT_FOREVER), -EINVAL);
    CHECK_EQ(gort_listen_with(&(gort_net_options){.reserved = {1}}, "tcp", "127.0.0.1:0", GORT_FOREVER),
             -EINVAL);
    CHECK_EQ(gort_dial("tcp", "no port"), -EINVAL);
    CHECK_EQ(gort_dial("tcp", "::1:80"), -EINVAL);
    CHECK_EQ(gort_dial("tcp", "127.0.0.1:99999"), -EINVAL);
}

/* A listener with a full backlog, which is one more than asked for, lets the next ones wait. */
TEST_GO(dialing_times_out)
{
    char addr[64];
    int fds[2];
    gort_net_options small = {.backlog = 1};
    int listener = gort_listen_with(&small, "tcp", "127.0.0.1:0", GORT_FOREVER);
    CHECK_GE(listener, 0);
    CHECK_GT(gort_local_addr(listener, addr, sizeof addr), 0);
    for (int i = 0; i < 2; i++)
        CHECK_GE(fds[i] = gort_dial_until("tcp", addr, soon()), 0);
    int64_t from = gort_now();
    CHECK_EQ(gort_dial_until("tcp", addr, gort_in(50 * GORT_MS)), -ETIMEDOUT);
    CHECK_GE(gort_now() - from, 50 * GORT_MS);
    gort_ctx *ctx = gort_ctx_new(NULL, gort_in(20 * GORT_MS));
    gort_ctx_use(ctx);
    CHECK_EQ(gort_dial("tcp", addr), -ETIMEDOUT);
    gort_ctx_use(NULL);
    gort_ctx_unref(ctx);
    close_pair(fds);
    CHECK_EQ(gort_close(listener), 0);
}

/* localhost has up to two addresses; the listener has one of them. */
TEST_GO(names, .procs = "1,2")
{
    char addr[64], name[64];
    struct sockaddr_storage found[8];
    int listener = listen_here(addr, sizeof addr);
    int n = gort_resolve("localhost", "80", found, 8);
    CHECK_GE(n, 1);
    for (int i = 0; i < n; i++)
        CHECK(found[i].ss_family == AF_INET || found[i].ss_family == AF_INET6);
    CHECK_EQ(gort_resolve_until("localhost", NULL, found, 1, soon()), 1);
    CHECK_LT(gort_resolve("bad..name", NULL, found, 8), 0); /* refused without asking a server */
    CHECK_LT(gort_resolve_until("bad..name", "80", found, 8, soon()), 0);
    CHECK_EQ(gort_resolve("127.0.0.1", "80", found, 8), 1);
    snprintf(name, sizeof name, "localhost%s", strrchr(addr, ':'));
    for (int i = 0; i < 5; i++) {
        int fd = gort_dial_until("tcp", name, soon());
        CHECK_MSG(fd >= 0, "dial %s: %s", name, gort_strerror(fd));
        CHECK_GT(gort_peer_addr(fd, name + 32, sizeof name - 32), 0);
        CHECK_STR(name + 32, addr);
        CHECK_EQ(gort_close(fd), 0);
    }
    CHECK_EQ(gort_close(listener), 0);
    settle();
}

/* ":port" is this machine, whichever family somebody listens with. */
TEST_GO(no_host_is_this_machine, .procs = "1,2")
{
    static const char *const nets[] = {"tcp", "tcp4", "tcp6"};
    for (int i = 0; i < 3; i++) {
        char addr[64], text[64];
        int listener = gort_listen(nets[i], ":0");
        if (listener == -EAFNOSUPPORT)
            continue; /* no IPv6 here */
        CHECK_GE(listener, 0);
        CHECK_GT(gort_local_addr(listener, addr, sizeof addr), 0);
        snprintf(text, sizeof text, "%s", strrchr(addr, ':'));
        int fd = gort_dial("tcp", text);
        CHECK_GE(fd, 0);
        int peer = gort_accept(listener);
        CHECK_GE(peer, 0);
        CHECK_EQ(gort_close(fd), 0);
        CHECK_EQ(gort_close(peer), 0);
        CHECK_EQ(gort_close(listener), 0);
    }
}

TEST_GO(ports_that_are_none)
{
    struct sockaddr_storage out;
    static const char *const bad[] = {"127.0.0.1:-1",   "127.0.0.1:+5", "127.0.0.1: 5",
                                      "127.0.0.1:0x50", "localhost:-1", "localhost:65536"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_EQ(gort_listen("tcp", bad[i]), -EINVAL);
        CHECK_EQ(gort_dial("tcp", bad[i]), -EINVAL);
    }
    CHECK_EQ(gort_resolve("127.0.0.1", "-1", &out, 1), -EINVAL);
    CHECK_EQ(gort_resolve("127.0.0.1", "65536", &out, 1), -EINVAL);
    CHECK_EQ(gort_resolve(NULL, NULL, &out, 1), 1);
    CHECK_EQ(gort_resolve("127.0.0.1", "80", &out, 0), -EINVAL);
}

TEST_GO(texts_of_addresses)
{
    static const char *const same[] = {
        "127.0.0.1:80",      "[::1]:8080",          "[2001:db8::1]:1",    "[::]:0",        "0.0.0.0:65535",
        "[fe80::1:0:0:2]:9", "[1:2:3:4:5:6:7:8]:1", "[::ffff:1.2.3.4]:5", "[1:0:0:2::]:3", "[1:0:2::]:3"};
    struct sockaddr_storage any;
    char text[128];
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        int len = gort_addr_parse("tcp", same[i], &any);
        CHECK_MSG(len > 0, "%s", same[i]);
        CHECK_EQ(gort_addr_text((struct sockaddr *)&any, (socklen_t)len, text, sizeof text), strlen(same[i]));
        CHECK_STR(text, same[i]);
    }
    CHECK_EQ(gort_addr_text((struct sockaddr *)&any, sizeof(struct sockaddr_in6), text, 5), -ENOBUFS);
    CHECK_EQ(gort_addr_parse("tcp", "localhost:1", &any), -EINVAL);
    struct if_nameindex *links = if_nameindex(); /* the one of a link-local address has a number and a name */
    CHECK(links && links[0].if_index);
    for (int i = 0; i < 2; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "[fe80::1%%%u]:7", links[0].if_index);
        snprintf(text, sizeof text, "[fe80::1%%%s]:7", links[0].if_name);
        int len = gort_addr_parse("udp6", i ? text : wanted, &any);
        CHECK_MSG(len == sizeof(struct sockaddr_in6), "%s: %d", i ? text : wanted, len);
        CHECK_EQ(gort_addr_text((struct sockaddr *)&any, (socklen_t)len, text, sizeof text), strlen(wanted));
        CHECK_STR(text, wanted);
    }
    if_freenameindex(links);
    static const char *const none[] = {"[fe80::1%]:7",  "[fe80::1%no-such-one]:7",
                                       "[fe80::1%0]:7", "[fe80::1%4294967296]:7",
                                       "[fe80%1]:7",    "127.0.0.1%1:7"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK_MSG(gort_addr_parse("tcp", none[i], &any) == -EINVAL, "%s", none[i]);
    CHECK_EQ(gort_addr_parse("unix", "", &any), -EINVAL);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_EQ(gort_addr_parse("unix", text, &any), -ENAMETOOLONG);
}

/* --- options, errors of accept ---------------------------------------------------------------- */

TEST_GO(options)
{
    int ends[2];
    tcp_pair(ends);
    for (int i = 0; i < 2; i++) {
        CHECK_NE(test_socket_option(ends[i], IPPROTO_TCP, TCP_NODELAY), 0);
        CHECK_EQ(fcntl(ends[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    CHECK_EQ(gort_set_nodelay(ends[0], false), 0);
    CHECK_EQ(test_socket_option(ends[0], IPPROTO_TCP, TCP_NODELAY), 0);
    CHECK_EQ(gort_set_keepalive(ends[0], 30 * GORT_SEC), 0);
    CHECK_EQ(test_socket_option(ends[0], IPPROTO_TCP, TCP_KEEPIDLE), 30);
    CHECK_EQ(gort_set_keepalive(ends[0], 0), 0);
    CHECK_EQ(test_socket_option(ends[0], SOL_SOCKET, SO_KEEPALIVE), 0);
    CHECK_EQ(gort_set_keepalive(ends[0], -1), -EINVAL);
    CHECK_EQ(gort_set_buffers(ends[0], 20000, 30000), 0);
    CHECK_EQ(test_socket_option(ends[0], SOL_SOCKET, SO_RCVBUF), 40000);
    close_pair(ends);

    char addr[64];
    gort_net_options o = {.reuse_port = true, .keepalive = 60 * GORT_SEC, .delay = true};
    int a = gort_listen_with(&o, "tcp", "127.0.0.1:0", GORT_FOREVER);
    CHECK_GE(a, 0);
    CHECK_GT(gort_local_addr(a, addr, sizeof addr), 0);
    int b = gort_listen_with(&o, "tcp", addr, GORT_FOREVER);
    CHECK_GE(b, 0);
    CHECK_EQ(gort_close(b), 0);
    CHECK_EQ(gort_listen("tcp", addr), -EADDRINUSE);
    int dialed = gort_dial("tcp", addr), got = gort_accept(a);
    CHECK_EQ(test_socket_option(got, IPPROTO_TCP, TCP_KEEPIDLE), 60);
    CHECK_EQ(gort_close(dialed), 0);
    CHECK_EQ(gort_close(got), 0);
    CHECK_EQ(gort_close(a), 0);
}

TEST_GO(aborted_connections_and_too_many_files, .procs = "1,2")
{
    char addr[64];
    if (test_under_valgrind())
        SKIP(
            "only without valgrind: it keeps the limit of files itself, and closes what is accepted beyond it");
    int listener = listen_here(addr, sizeof addr);
    int fd = gort_dial("tcp", addr);
    CHECK_EQ(gort_set_linger(fd, 0), 0);
    CHECK_EQ(gort_close(fd), 0); /* reset before it is accepted */
    int good = gort_dial("tcp", addr);
    CHECK_GE(good, 0);
    struct rlimit old, low;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = (rlim_t)dup(0); /* the next free number */
    close((int)low.rlim_cur);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    int refused = gort_accept(listener);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK_EQ(refused, -EMFILE);
    for (int i = 0; i < 2; i++) { /* Linux hands out the reset one too */
        int got = gort_accept_until(listener, gort_in(GORT_SEC));
        CHECK_GE(got, 0);
        char byte;
        ssize_t n = gort_read_until(got, &byte, 1, gort_in(10 * GORT_MS));
        CHECK(n == -ECONNRESET || n == -ETIMEDOUT);
        CHECK_EQ(gort_close(got), 0);
    }
    CHECK_EQ(gort_close(good), 0);
    CHECK_EQ(gort_close(listener), 0);
}

/* Out-of-band data is not readable data: the reader sleeps on, and no thread spins. */
TEST_GO(urgent_data_does_not_spin, .procs = "2")
{
    int ends[2];
    tcp_pair(ends);
    CHECK_EQ(GORT_GO(read_one, ends[1], 0), 0);
    await_waiting("io read", 1);
    CHECK_EQ(gort_sendto(ends[0], "!", 1, MSG_OOB, NULL, 0), 1);
    struct rusage a, b;
    getrusage(RUSAGE_SELF, &a);
    gort_sleep(50 * GORT_MS);
    getrusage(RUSAGE_SELF, &b);
    int64_t us = (b.ru_utime.tv_sec - a.ru_utime.tv_sec) * INT64_C(1000000) + b.ru_utime.tv_usec -
                 a.ru_utime.tv_usec + (b.ru_stime.tv_sec - a.ru_stime.tv_sec) * INT64_C(1000000) +
                 b.ru_stime.tv_usec - a.ru_stime.tv_usec;
    CHECK_LT(us, 40000);
    CHECK_EQ(atomic_load(&woken), 0);
    CHECK_EQ(gort_write_all(ends[0], "x", 1), 1);
    await(&woken, 1);
    close_pair(ends);
}

/* --- datagrams, unix -------------------------------------------------------------------------- */

TEST_GO(udp, .procs = "1,2")
{
    char addr[64], from_text[64], buf[16];
    struct sockaddr_storage from;
    socklen_t len = sizeof from;
    int server = gort_listen("udp", "127.0.0.1:0");
    CHECK_GE(server, 0);
    CHECK_GT(gort_local_addr(server, addr, sizeof addr), 0);
    int client = gort_dial("udp", addr);
    CHECK_GE(client, 0);
    CHECK_EQ(gort_write(client, "hello", 5), 5);
    CHECK_EQ(gort_recvfrom(server, buf, sizeof buf, 0, (struct sockaddr *)&from, &len), 5);
    CHECK_GT(gort_addr_text((struct sockaddr *)&from, len, from_text, sizeof from_text), 0);
    CHECK_GT(gort_local_addr(client, addr, sizeof addr), 0);
    CHECK_STR(from_text, addr);
    CHECK_EQ(gort_sendto(server, "", 0, 0, (struct sockaddr *)&from, len), 0); /* an empty one arrives */
    CHECK_EQ(gort_recvfrom_until(client, buf, sizeof buf, 0, NULL, NULL, soon()), 0);
    CHECK_EQ(gort_write(client, "0123456789", 10), 10); /* what does not fit is cut off */
    CHECK_EQ(gort_recvfrom(server, buf, 4, MSG_TRUNC, NULL, NULL), 10);
    CHECK_EQ(gort_recvfrom_until(server, buf, 4, 0, NULL, NULL, gort_in(5 * GORT_MS)), -ETIMEDOUT);
    CHECK_EQ(gort_close(server), 0);
    CHECK_EQ(gort_write(client, "x", 1), 1);
    CHECK_EQ(gort_read_until(client, buf, 4, soon()), -ECONNREFUSED); /* nobody is there any more */
    CHECK_EQ(gort_close(client), 0);
}

TEST_GO(passing_an_fd)
{
    int ends[2], pipe_ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    CHECK_EQ(gort_pipe(pipe_ends), 0);
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = {{0}};
    char byte = 'x';
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &pipe_ends[1], sizeof(int));
    CHECK_EQ(gort_sendmsg(ends[0], &msg, 0), 1);
    memset(&control, 0, sizeof control);
    CHECK_EQ(gort_recvmsg(ends[1], &msg, 0), 1);
    int passed;
    c = CMSG_FIRSTHDR(&msg);
    CHECK(c && c->cmsg_type == SCM_RIGHTS);
    memcpy(&passed, CMSG_DATA(c), sizeof passed);
    CHECK_EQ(fcntl(passed, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    CHECK_EQ(gort_write_all(passed, "through", 7), 7);
    char buf[8];
    CHECK_EQ(gort_read(pipe_ends[0], buf, 8), 7);
    CHECK_EQ(gort_close(passed), 0);
    close_pair(pipe_ends);
    close_pair(ends);
}

TEST_GO(vectors)
{
    int ends[2];
    char a[3], b[5];
    struct iovec out[3] = {{"he", 2}, {"llo, ", 5}, {"w", 1}}, in[2] = {{a, 3}, {b, 5}};
    tcp_pair(ends);
    CHECK_EQ(gort_writev(ends[0], out, 3), 8);
    CHECK_EQ(gort_wait_fd(ends[1], GORT_READ, soon()) & GORT_READ, GORT_READ);
    CHECK_EQ(gort_readv(ends[1], in, 2), 8);
    CHECK_EQ(memcmp(a, "hel", 3), 0);
    CHECK_EQ(memcmp(b, "lo, w", 5), 0);
    CHECK_EQ(gort_readv(ends[1], in, -1), -EINVAL);
    CHECK_EQ(gort_writev_until(ends[0], out, 0, GORT_TRY), 0);
    close_pair(ends);
}

/* --- before, between and after runs ----------------------------------------------------------- */

static int between_ends[2];

static int use_pair(void *unused)
{
    char byte = 'b';
    (void)unused;
    CHECK_EQ(GORT_GO(read_one, between_ends[1], 0), 0); /* is gone with the run */
    await_waiting("io read", 1);
    CHECK_EQ(gort_write_all(between_ends[1], &byte, 1), 1);
    CHECK_EQ(gort_read(between_ends[0], &byte, 1), 1);
    return 0;
}

TEST(fds_live_longer_than_runs)
{
    char byte = 'a';
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, between_ends), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(gort_write_all(between_ends[0], &byte, 1), 1); /* what can proceed at once does */
        CHECK_EQ(gort_read(between_ends[1], &byte, 1), 1);
        CHECK_EQ(gort_read_until(between_ends[1], &byte, 1, GORT_TRY), -EAGAIN);
        CHECK_EQ(gort_run(use_pair, NULL), 0);
    }
    close_pair(between_ends);
}
