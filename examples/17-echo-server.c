/* SPDX-License-Identifier: MIT */
/*
 * 17-echo-server.c - a goroutine a connection.      cc 17-echo-server.c -o 17-echo-server -lgort -pthread
 *
 *     17-echo-server 7000            then: nc 127.0.0.1 7000
 *
 * The code reads as if it blocked, and only its goroutine does. Port 0 takes a free one.
 * Test: by tests/servers echo
 */
#include <gort.h>
#include <stdio.h>

static void echo(int fd)
{
    char buf[4096];
    ssize_t n;
    while ((n = gort_read(fd, buf, sizeof buf)) > 0)
        if (gort_write_all(fd, buf, (size_t)n) < 0)
            break;
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
        else if (GORT_GO(echo, fd) < 0)
            gort_close(fd);
    }
}

int main(int argc, char **argv)
{
    return gort_run(serve, argc > 1 ? argv[1] : "0");
}
