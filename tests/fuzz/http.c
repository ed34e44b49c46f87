/* SPDX-License-Identifier: MIT */
/*
 * http.c - the HTTP example, with the input as what a client sends. It must answer or hang up; no answer but
 * those it knows.
 * Covers: examples/18-http-server.c
 *
 * No run is on: everything is in the socket already, so nothing ever waits.
 */
int http_main(int argc, char **argv);
#define main http_main
#include "../../examples/18-http-server.c"
#undef main

#include <unistd.h>

#include "fuzz.h"

/* The head of the first request, or what there is of it, has a byte that no head may have: that must not be
 * answered as if it had not. */
static bool head_is_bad(const uint8_t *data, size_t size)
{
    for (size_t i = 0, line = 0; i < size; i++) {
        if (data[i] == '\n') {
            if (i && (i == line || (i == line + 1 && data[line] == '\r')))
                return false;
            line = i + 1;
        } else if ((data[i] < ' ' && data[i] != '\t' && data[i] != '\r') || data[i] == 127) {
            return true;
        }
    }
    return false;
}

/* The head of the first request is whole, and one of HTTP/1.1 that names no host, or two of them. */
static bool host_is_bad(const uint8_t *data, size_t size)
{
    static const char version[] = " HTTP/1.1\r\n";
    const uint8_t *line = memchr(data, '\n', size), *end = data + size, *next;
    int hosts = 0;
    if (!line || ++line - data < 11 || memcmp(line - 11, version, 11) != 0)
        return false;
    for (; (next = memchr(line, '\n', (size_t)(end - line))) != NULL; line = next + 1) {
        if (next == line || (next == line + 1 && *line == '\r'))
            return hosts != 1;
        hosts += next - line > 5 && strncasecmp((const char *)line, "Host:", 5) == 0;
    }
    return false;
}

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
    bool bad = head_is_bad(data, size) || host_is_bad(data, size);
    CHECK(!bad || n == 0 || strncmp(answers, "HTTP/1.1 400 ", 13) == 0);
    const char *refused = strstr(answers, "HTTP/1.1 400 "); /* is the last answer */
    CHECK(!refused || !strstr(refused + 1, "HTTP/1.1 "));
    return 0;
}
