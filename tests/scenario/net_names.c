/* SPDX-License-Identifier: MIT */
/*
 * net_names.c - a name server that does not answer, and names with several addresses.
 * Covers: src/io/dns.c src/io/ares.c src/io/dial.c
 *
 * The process gets a network and a file system of its own, in which a thread of the test is the name server,
 * on port 53 of 127.0.0.1, and resolv.conf names it; both.test is in the hosts file, with an address of
 * either family. It is silent for all names but those that begin with "known", which is 127.0.0.1, and
 * "several", which is 127.0.0.1, 127.0.0.2 and 127.0.0.3.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>

#include "netting.h"

#define SEVERAL 3

static atomic_long questions, beats, stop, ended, outcome;

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* Who is not root becomes it in a user namespace; where that is not allowed either there is nothing to
 * test. */
static void world_of_our_own(void)
{
    char map[64], path[64];
    int uid = (int)getuid();
    if (test_under_emulator())
        SKIP("only natively: the emulator's namespaces are its own");
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0)
            SKIP("needs root, or user namespaces (kernel.unprivileged_userns_clone=1)");
        snprintf(map, sizeof map, "0 %d 1", uid);
        write_file("/proc/self/uid_map", map);
    }
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0)
        SKIP("needs the right to mount in a namespace of its own");
    static const char *const files[2][2] = {
        {"/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:5 attempts:1\n"},
        {"/etc/hosts", "127.0.0.1 localhost both.test\n::1 both.test\n"}};
    bool mounted = true;
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/tmp/gort-names-%d-%d", (int)getpid(), i);
        write_file(path, files[i][1]);
        mounted &= mount(path, files[i][0], "none", MS_BIND, NULL) == 0;
        unlink(path);
    }
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (!mounted || fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo) != 0)
        SKIP(
            "needs the right to have a resolv.conf and a loopback of its own (root, not in a restricted container)");
    close(fd);
}

/* The answer to a question for an IPv4 address: the first `count` of them; to any other: nothing of that
 * kind. */
static size_t answer(unsigned char *m, size_t n, size_t size, int count)
{
    unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 0};
    size_t at = 12;
    while (at < n && m[at])
        at += m[at] + 1u;
    at++;
    CHECK_LE(at + 4 + SEVERAL * sizeof record, size);
    bool is_a = m[at] == 0 && m[at + 1] == 1;
    m[2] = 0x84 | (m[2] & 1); /* it is an answer, with authority */
    m[3] = 0x80;
    m[7] = (unsigned char)(is_a ? count : 0);
    memset(m + 8, 0, 4);
    at += 4;
    for (int i = 0; is_a && i < count; i++, at += sizeof record) {
        record[sizeof record - 1] = (unsigned char)(i + 1);
        memcpy(m + at, record, sizeof record);
    }
    return at;
}

static void *name_server(void *arg)
{
    unsigned char m[1024];
    struct sockaddr_in from;
    socklen_t len = sizeof from;
    ssize_t n;
    while ((n = recvfrom((int)(intptr_t)arg, m, 512, 0, (struct sockaddr *)&from, &len)) > 12) {
        atomic_fetch_add(&questions, 1);
        int count = memcmp(m + 13, "known", 5) == 0 ? 1 : memcmp(m + 13, "several", 7) == 0 ? SEVERAL : 0;
        if (count)
            sendto((int)(intptr_t)arg, m, answer(m, (size_t)n, sizeof m, count), 0, (struct sockaddr *)&from,
                   len);
        len = sizeof from;
    }
    return NULL;
}

static void beat(void)
{
    for (; !atomic_load(&stop); gort_sleep(GORT_MS))
        atomic_fetch_add(&beats, 1);
}

static void asks(void)
{
    struct sockaddr_storage found[4];
    atomic_store(&outcome, gort_resolve("silent.test", "80", found, 4));
    atomic_fetch_add(&ended, 1);
}

static void check_known(void)
{
    struct sockaddr_storage found[4];
    CHECK_EQ(gort_resolve_until("known.test", "80", found, 4, soon()), 1);
    const struct sockaddr_in *in = (const struct sockaddr_in *)&found[0];
    CHECK_EQ(in->sin_family, AF_INET);
    CHECK_EQ(ntohl(in->sin_addr.s_addr), INADDR_LOOPBACK);
    CHECK_EQ(ntohs(in->sin_port), 80);
}

static int silence(void *unused)
{
    struct sockaddr_storage found[4];
    CHECK_EQ(GORT_GO(beat), 0);
    check_known();
    for (int i = 0; i < 3; i++) {
        long asked = questions;
        int64_t from = gort_now();
        CHECK_EQ(gort_resolve_until("silent.test", "80", found, 4, gort_in(60 * GORT_MS)), -ETIMEDOUT);
        CHECK_GE(gort_now() - from, 60 * GORT_MS);
        await(&questions, asked + 1); /* the server may be slower than that */
        CHECK_EQ(gort_dial_until("tcp", "silent.test:80", gort_in(10 * GORT_MS)), -ETIMEDOUT);
        check_known();
    }
    gort_ctx *ctx = gort_ctx_new(NULL, GORT_FOREVER), *former = gort_ctx_use(ctx);
    long asked = questions;
    for (int i = 0; i < 20; i++)
        CHECK_EQ(GORT_GO(asks), 0);
    gort_ctx_use(former);
    await(&questions, asked + 20);
    await(&beats, beats + 10); /* the others go on meanwhile, also with one P */
    check_known();
    CHECK_EQ(ended, 0);
    gort_ctx_cancel(ctx, 0);
    gort_ctx_unref(ctx);
    await(&ended, 20);
    CHECK_EQ(outcome, -ECANCELED);
    check_known();
    atomic_store(&stop, 1);
    return unused != NULL;
}

static bool fds_are_back(void *n)
{
    return test_fd_count() == *(int *)n;
}

static void with_name_server(int (*fn)(void *))
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(53)};
    pthread_t thread;
    world_of_our_own();
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CHECK_EQ(bind(fd, (struct sockaddr *)&here, sizeof here), 0);
    CHECK_EQ(pthread_create(&thread, NULL, name_server, (void *)(intptr_t)fd), 0);
    int fds = test_fd_count();
    CHECK_EQ(gort_run(fn, NULL), 0);
    /* The sockets of questions that were given up are closed: at once, or when the C library gives them up
     * too. */
    CHECK(test_eventually(fds_are_back, &fds, 20));
}

TEST(a_name_server_that_is_silent, .procs = "1,2,4")
{
    with_name_server(silence);
}

/* --- several addresses ------------------------------------------------------------------------ */

static int listener_at(int which, int port, int backlog)
{
    char text[64];
    snprintf(text, sizeof text, "127.0.0.%d:%d", which, port);
    int fd = gort_listen_with(&(gort_net_options){.backlog = backlog}, "tcp", text, GORT_FOREVER);
    CHECK_MSG(fd >= 0, "%s: %s", text, gort_strerror(fd));
    return fd;
}

/* Nobody accepts there, and the kernel has no room for more, which is one above the backlog: who dials it
 * waits. */
static void make_silent(int which, int port, int *used, int *count)
{
    char text[64];
    used[(*count)++] = listener_at(which, port, 1);
    snprintf(text, sizeof text, "127.0.0.%d:%d", which, port);
    for (int i = 0; i < 2; i++) {
        int fd = gort_dial_until("tcp", text, soon());
        CHECK_MSG(fd >= 0, "%s: %s", text, gort_strerror(fd));
        used[(*count)++] = fd;
    }
    CHECK_EQ(gort_dial_until("tcp", text, gort_in(100 * GORT_MS)), -ETIMEDOUT);
}

static void check_dials(const char *name, int which, int port)
{
    char peer[64], text[64];
    snprintf(text, sizeof text, "127.0.0.%d:%d", which, port);
    int fd = gort_dial_until("tcp", name, soon());
    CHECK_MSG(fd >= 0, "%s: %s", text, gort_strerror(fd));
    CHECK_GT(gort_peer_addr(fd, peer, sizeof peer), 0);
    CHECK_STR(peer, text);
    CHECK_EQ(gort_close(fd), 0);
}

static int dial_the_one_that_answers(void *unused)
{
    int used[64], count = 0;
    CHECK_EQ(gort_dial_until("tcp", "several.test:4000", soon()), -ECONNREFUSED);
    for (int which = 1; which <= SEVERAL; which++) { /* the others refuse */
        int fd = listener_at(which, 4000, 0);
        check_dials("several.test:4000", which, 4000);
        CHECK_EQ(gort_close(fd), 0);
    }
    for (int which = 1; which <= SEVERAL; which++) { /* the others are silent: it is tried beside them */
        int port = 4000 + which;
        char name[64];
        snprintf(name, sizeof name, "several.test:%d", port);
        for (int other = 1; other <= SEVERAL; other++)
            if (other != which)
                make_silent(other, port, used, &count);
        CHECK_EQ(gort_dial_until("tcp", name, gort_in(400 * GORT_MS)), -ETIMEDOUT);
        used[count++] = listener_at(which, port, 0);
        check_dials(name, which, port);
        while (count)
            CHECK_EQ(gort_close(used[--count]), 0);
    }
    while (gort_count() > 1) /* those that were late go, and close what they have */
        gort_yield();
    return unused != NULL;
}

TEST(names_with_several_addresses, .procs = "1,2,4", .fuzz = true)
{
    with_name_server(dial_the_one_that_answers);
}

/* Datagrams too: where the first address cannot be used, the next one is. */
static int dial_from_either_family(void *unused)
{
    static const char *const locals[] = {"127.0.0.1:0", "[::1]:0"}, *const nets[] = {"udp", "tcp"};
    char text[64];
    struct sockaddr_storage found[4];
    int n = gort_resolve("both.test", "53", found, 4);
    if (n != 2)
        SKIP("needs IPv6 on the loopback device");
    for (int i = 0; i < 4; i++) {
        int server = gort_listen(nets[i / 2], locals[i % 2]), port = 0;
        CHECK_GT(gort_local_addr(server, text, sizeof text), 0);
        CHECK_EQ(sscanf(strrchr(text, ':'), ":%d", &port), 1);
        snprintf(text, sizeof text, "both.test:%d", port);
        gort_net_options from = {.local = locals[i % 2]};
        int fd = gort_dial_with(&from, nets[i / 2], text, soon());
        CHECK_MSG(fd >= 0, "%s from %s: %s", nets[i / 2], locals[i % 2], gort_strerror(fd));
        CHECK_EQ(gort_close(fd), 0);
        CHECK_EQ(gort_close(server), 0);
    }
    while (gort_count() > 1)
        gort_yield();
    return unused != NULL;
}

TEST(a_name_of_both_families, .procs = "1,2")
{
    with_name_server(dial_from_either_family);
}
