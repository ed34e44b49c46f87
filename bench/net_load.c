/* SPDX-License-Identifier: MIT */
/*
 * net_load.c - the other side of the network benchmarks: connections that talk, or that are only there.
 *
 *     net_load PORT CONNECTIONS BYTES SECONDS     each connection sends BYTES and waits for as many, again and again;
 *                                                 prints "trips N" after SECONDS
 *     net_load PORT CONNECTIONS                   connects, has 64 bytes echoed by each, prints "connected",
 *                                                 and waits for the end of its input
 *
 * Why: all servers are measured with the same client, in a process of its own, whose CPU time does not count. It knows
 * nothing of gort: one thread, one epoll.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int dial(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

int main(int argc, char **argv)
{
    static char buf[65536];
    struct rlimit limit;
    if (argc != 3 && argc != 5)
        return 2;
    int port = atoi(argv[1]), n = atoi(argv[2]);
    size_t bytes = argc > 3 ? (size_t)atoi(argv[3]) : 0;
    if (bytes > sizeof buf)
        return 2;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    int *fds = calloc((size_t)n, sizeof *fds), ep = epoll_create1(EPOLL_CLOEXEC);
    size_t *got = calloc((size_t)n, sizeof *got);
    for (int i = 0; i < n; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        fds[i] = dial(port);
        if (epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &e) != 0)
            die("epoll_ctl");
    }
    if (argc == 3) {
        for (int i = 0; i < n; i++) /* each was used once */
            if (write(fds[i], buf, 64) != 64 || read(fds[i], buf, 64) <= 0)
                die("echo");
        puts("connected");
        fflush(stdout);
        while (read(0, buf, sizeof buf) > 0)
            ;
        return 0;
    }
    double until = now() + atof(argv[4]);
    long trips = 0;
    for (int i = 0; i < n; i++)
        if (write(fds[i], buf, bytes) != (ssize_t)bytes)
            die("write");
    while (now() < until) {
        struct epoll_event events[64];
        int ready = epoll_wait(ep, events, 64, 1000);
        for (int i = 0; i < ready; i++) {
            uint32_t who = events[i].data.u32;
            ssize_t more = read(fds[who], buf, bytes - got[who]);
            if (more <= 0)
                die("read");
            got[who] += (size_t)more;
            if (got[who] < bytes)
                continue;
            got[who] = 0;
            trips++;
            if (write(fds[who], buf, bytes) != (ssize_t)bytes)
                die("write");
        }
    }
    printf("trips %ld\n", trips);
    return 0;
}
