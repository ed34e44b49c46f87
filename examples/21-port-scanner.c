/* SPDX-License-Identifier: MIT */
/*
 * 21-port-scanner.c - many connections at once, but not too many.      cc 21-port-scanner.c -o 21-port-scanner -lgort
 *
 *     21-port-scanner 127.0.0.1 1 1024
 *
 * A goroutine a port, a group's limit on how many dial at the same time, a deadline for each. Without arguments it looks for
 * a port of its own on loopback.
 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 64 };

static const char *host = "127.0.0.1";
static long first, last;
static gort_chan *open_ports; /* of long */

static int probe(void *port)
{
    char addr[300];
    snprintf(addr, sizeof addr, "%s:%ld", host, (long)(intptr_t)port);
    int fd = gort_dial_until("tcp", addr, gort_in(GORT_SEC));
    if (fd >= 0) {
        long number = (intptr_t)port;
        gort_chan_send(open_ports, &number);
        gort_close(fd);
    }
    return 0; /* a closed port is no reason to stop the others */
}

static void probe_all(void *unused)
{
    gort_group group;
    (void)unused;
    if (gort_group_init(&group, NULL) == 0) {
        gort_group_limit(&group, AT_ONCE);
        for (long port = first; port <= last; port++)
            if (gort_group_go(&group, probe, (void *)(intptr_t)port) < 0)
                break;
        gort_group_wait(&group);
    }
    gort_chan_close(open_ports);
}

static int start(void *found)
{
    char own[64];
    int listener = gort_listen("tcp", "127.0.0.1:0");
    if (listener < 0 || gort_local_addr(listener, own, sizeof own) < 0)
        return 1;
    long port = strtol(own + sizeof "127.0.0.1", NULL, 10);
    if (!first) {
        first = port > 100 ? port - 100 : 1;
        last = port < 65435 ? port + 100 : 65535;
    }
    open_ports = gort_chan_new(sizeof(long), 0);
    if (!open_ports || gort_go(probe_all, NULL) < 0)
        return 1;
    for (long n; gort_chan_recv(open_ports, &n) == 1;) {
        printf("%s:%ld is open%s\n", host, n, n == port ? " (by us)" : "");
        *(long *)found += 1;
    }
    gort_chan_unref(open_ports);
    return gort_close(listener);
}

int main(int argc, char **argv)
{
    long found = 0;
    if (argc > 3)
        host = argv[1], first = strtol(argv[2], NULL, 10), last = strtol(argv[3], NULL, 10);
    if (gort_run(start, &found) != 0)
        return 1;
    return found > 0 || argc > 3 ? 0 : 1;
}
