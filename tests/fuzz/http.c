/* SPDX-License-Identifier: MIT */
/*
 * http.c - the HTTP example, with the input as what a client sends. It must answer or hang up; no answer but those it knows.
 *
 * No run is on: everything is in the socket already, so nothing ever waits.
 */
int http_main(int argc, char **argv);
#define main http_main
#include "../../examples/18-http-server.c"
#undef main

#include <unistd.h>

#include "fuzz.h"

FUZZ("http")
{
    static char answers[256 << 10];
    int ends[2];
    (void)http_main;
    if (size > FUZZ_MOST)
        return 0;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CHECK_EQ(write(ends[0], data, size), size);
    shutdown(ends[0], SHUT_WR);
    gort_wg_add(&connections, 1);
    serve(ends[1]); /* closes it */
    size_t n = 0;
    ssize_t got;
    while ((got = read(ends[0], answers + n, sizeof answers - 1 - n)) > 0)
        n += (size_t)got;
    answers[n] = '\0';
    close(ends[0]);
    CHECK(n == 0 || strncmp(answers, "HTTP/1.1 ", 9) == 0);
    CHECK_EQ(strlen(answers), n);
    return 0;
}
