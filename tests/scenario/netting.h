/* SPDX-License-Identifier: MIT */
/*
 * netting.h - for the tests of gort/io.h and gort/net.h: connections over loopback.
 */
#ifndef GORT_TEST_NETTING_H
#define GORT_TEST_NETTING_H

#include <sys/socket.h>
#include <sys/uio.h>

#include "waiting.h"

/* A listener on a free port of 127.0.0.1, and its address. */
static UNUSED int listen_here(char *addr, size_t size)
{
    int fd = gort_listen("tcp", "127.0.0.1:0");
    CHECK_MSG(fd >= 0, "listen: %s", gort_strerror(fd));
    CHECK_GT(gort_local_addr(fd, addr, size), 0);
    return fd;
}

/* A TCP connection: ends[0] dialed, ends[1] accepted. */
static UNUSED void tcp_pair(int ends[2])
{
    char addr[64];
    int listener = listen_here(addr, sizeof addr);
    ends[0] = gort_dial("tcp", addr);
    CHECK_MSG(ends[0] >= 0, "dial: %s", gort_strerror(ends[0]));
    ends[1] = gort_accept(listener);
    CHECK_MSG(ends[1] >= 0, "accept: %s", gort_strerror(ends[1]));
    CHECK_EQ(gort_close(listener), 0);
}

static UNUSED void close_pair(int ends[2])
{
    CHECK_EQ(gort_close(ends[0]), 0);
    CHECK_EQ(gort_close(ends[1]), 0);
}

/* Fills what the kernel keeps for fd: a write would wait now. How much fitted. */
static UNUSED size_t fill(int fd)
{
    static const char block[1 << 16];
    size_t total = 0;
    for (ssize_t n; (n = gort_write_until(fd, block, sizeof block, GORT_TRY)) != -EAGAIN; total += (size_t)n)
        CHECK_GT(n, 0);
    return total;
}

#endif
