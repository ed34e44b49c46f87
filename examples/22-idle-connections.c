/* SPDX-License-Identifier: MIT */
/*
 * 22-idle-connections.c - very many connections, most of them silent.
 *
 *     cc 22-idle-connections.c -o 22-idle-connections -lgort -pthread
 *
 *     22-idle-connections 7000            then: nc 127.0.0.1 7000
 *
 * Example 17 keeps a stack and a buffer for each connection, used or not. Here a goroutine begins when there is something
 * to read, and ends when there is no more: a silent connection costs some hundred bytes.
 * Test: by tests/servers echo
 */
#include <errno.h>
#include <gort.h>
#include <stdint.h>
#include <stdio.h>

static void echo(void *arg)
{
    char buf[4096];
    int fd = (int)(intptr_t)arg;
    ssize_t n;
    while ((n = gort_read_until(fd, buf, sizeof buf, GORT_TRY)) > 0)
        if (gort_write_all(fd, buf, (size_t)n) < 0)
            break;
    if (n != -EAGAIN || gort_go_when(fd, GORT_READ, echo, arg) < 0)
        gort_close(fd);
}

static int serve(void *port)
{
    char addr[64];
    snprintf(addr, sizeof addr, "127.0.0.1:%s", (char *)port);
    int listener = gort_listen("tcp", addr);
    if (listener < 0) {
        fprintf(stderr, "%s: %s\n", addr, gort_strerror(listener));
        return 1;
    }
    gort_local_addr(listener, addr, sizeof addr);
    printf("listening on %s\n", addr);
    fflush(stdout);
    for (;;) {
        int fd = gort_accept(listener);
        if (fd < 0)
            gort_sleep(10 * GORT_MS); /* too many open files: some will be closed soon */
        else if (gort_go_when(fd, GORT_READ, echo, (void *)(intptr_t)fd) < 0)
            gort_close(fd);
    }
}

int main(int argc, char **argv)
{
    return gort_run(serve, argc > 1 ? argv[1] : "0");
}
