/* SPDX-License-Identifier: MIT */
/*
 * net_epoll.c - an echo server as one would write it by hand: one thread, one epoll, level-triggered, no gort.
 *
 * Why: the yardstick for what goroutines cost on top of the system calls that any server needs.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static void watch(int ep, int fd)
{
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(ep, EPOLL_CTL_ADD, fd, &e) != 0)
        die("epoll_ctl");
}

static void echo(int fd)
{
    char buf[4096];
    ssize_t n = read(fd, buf, sizeof buf);
    if (n <= 0 || write(fd, buf, (size_t)n) != n)
        close(fd);
}

int main(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof addr;
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
        ep = epoll_create1(EPOLL_CLOEXEC);
    if (bind(listener, (struct sockaddr *)&addr, sizeof addr) != 0 || listen(listener, SOMAXCONN) != 0)
        die("listen");
    getsockname(listener, (struct sockaddr *)&addr, &len);
    printf("listening on 127.0.0.1:%d\n", ntohs(addr.sin_port));
    fflush(stdout);
    watch(ep, listener);
    for (;;) {
        struct epoll_event events[64];
        int n = epoll_wait(ep, events, 64, -1);
        for (int i = 0; i < n; i++) {
            if (events[i].data.fd != listener) {
                echo(events[i].data.fd);
                continue;
            }
            for (int fd, one = 1; (fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0;) {
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                watch(ep, fd);
            }
        }
    }
}
