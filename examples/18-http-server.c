/* SPDX-License-Identifier: MIT */
/*
 * 18-http-server.c - HTTP/1.1 in a page and a half.      cc 18-http-server.c -o 18-http-server -lgort -pthread
 *
 *     18-http-server 8080            then: curl http://127.0.0.1:8080/
 *
 * Keep-alive and pipelining: answers are buffered as long as another request is in the reader's buffer. A connection may be
 * idle for half a minute. SIGTERM or SIGINT: no new connections, requests under way are answered, idle ones end.
 * Test: by tests/servers http
 */
#include <gort.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

static gort_ctx *serving; /* cancelled at shutdown: ends waits for the next request */
static gort_wg connections;
static int listener;

struct request {
    bool head, found, close;
    size_t body; /* bytes that follow it */
};

static const char *value_of(const char *line, const char *name)
{
    size_t n = strlen(name);
    if (strncasecmp(line, name, n) != 0 || line[n] != ':')
        return NULL;
    return line + n + 1 + strspn(line + n + 1, " \t");
}

/* Whether a list like "TE, close" has this word in it. */
static bool lists(const char *value, const char *word)
{
    size_t n = strlen(word);
    for (value += strspn(value, ", \t"); *value; value += strcspn(value, ","), value += strspn(value, ", \t"))
        if (strncasecmp(value, word, n) == 0 && strcspn(value + n, ", \t") == 0)
            return true;
    return false;
}

static bool parse_length(const char *value, size_t *n)
{
    char *end;
    *n = strtoul(value, &end, 10);
    end += strspn(end, " \t");
    return *value >= '0' && *value <= '9' && !*end && *n <= INT64_MAX; /* too many digits make it ULONG_MAX */
}

static bool parse_first_line(char *line, struct request *r)
{
    char *path = strchr(line, ' '), *version = path ? strchr(path + 1, ' ') : NULL;
    if (!version || strncmp(version, " HTTP/1.", 8) != 0)
        return false;
    *path++ = *version = '\0';
    r->head = strcmp(line, "HEAD") == 0;
    r->found = strcmp(path, "/") == 0;
    r->close = version[8] == '0';
    r->body = 0;
    return true;
}

/* 1: a request; 0: the peer is done; < 0: -errno, -EPROTO for what is no request. */
static int read_request(gort_reader *in, struct request *r)
{
    char *line;
    const char *value;
    size_t len;
    int got = gort_reader_line(in, &line, &len);
    if (got <= 0)
        return got;
    gort_ctx_use(NULL); /* it has begun: it will be answered */
    if (!parse_first_line(line, r))
        return -EPROTO;
    while ((got = gort_reader_line(in, &line, &len)) == 1 && len) {
        if ((value = value_of(line, "Connection")))
            r->close = lists(value, "close") || (r->close && !lists(value, "keep-alive"));
        else if ((value = value_of(line, "Content-Length")) && !parse_length(value, &r->body))
            return -EPROTO;
        else if (value_of(line, "Transfer-Encoding"))
            return -EPROTO;
    }
    return got == 1 ? 1 : got < 0 ? got : -EPROTO;
}

static void answer(gort_writer *out, const struct request *r)
{
    static const char found[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n",
                      missing[] =
                          "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n";
    gort_writer_text(out, r->found ? found : missing);
    gort_writer_text(out, r->close ? "Connection: close\r\n\r\n" : "\r\n");
    if (!r->head)
        gort_writer_text(out, r->found ? "hello, world\n" : "not found\n");
}

static void serve(int fd)
{
    char in_room[4096], out_room[4096];
    struct request r;
    gort_reader in;
    gort_writer out;
    gort_reader_init(&in, fd, in_room, sizeof in_room);
    gort_writer_init(&out, fd, out_room, sizeof out_room);
    do {
        gort_ctx_use(serving);
        in.deadline = out.deadline = gort_in(30 * GORT_SEC);
        int got = read_request(&in, &r);
        gort_ctx_use(NULL);
        if (got == -EPROTO || got == -EMSGSIZE)
            gort_writer_text(&out,
                             "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        if (got != 1 || gort_reader_skip(&in, r.body) != (ssize_t)r.body)
            break;
        answer(&out, &r);
        if (!gort_reader_buffered(&in) && gort_writer_flush(&out) < 0) /* none is waiting in the buffer */
            break;
    } while (!r.close);
    if (gort_writer_flush(&out) == 0)
        gort_shutdown(fd, SHUT_WR);
    gort_close(fd);
    gort_wg_done(&connections);
}

static void shut_down(gort_chan *signals)
{
    int signo;
    if (gort_chan_recv(signals, &signo) == 1) {
        gort_close(listener);
        gort_ctx_cancel(serving, 0);
    }
}

static int start(void *port)
{
    char addr[64];
    gort_chan *signals = gort_chan_new(sizeof(int), 1);
    serving = gort_ctx_new(NULL, GORT_FOREVER);
    snprintf(addr, sizeof addr, "127.0.0.1:%s", (char *)port);
    listener = gort_listen("tcp", addr);
    if (listener < 0 || !signals || !serving) {
        fprintf(stderr, "%s: %s\n", addr, gort_strerror(listener));
        return 1;
    }
    gort_local_addr(listener, addr, sizeof addr);
    printf("listening on %s\n", addr);
    fflush(stdout);
    gort_signal_notify(signals, SIGTERM);
    gort_signal_notify(signals, SIGINT);
    if (GORT_GO(shut_down, signals) < 0)
        return 1;
    for (int fd; (fd = gort_accept(listener)) != -EBADF;) {
        if (fd < 0) {
            gort_sleep(10 * GORT_MS); /* too many open files: some will be closed soon */
            continue;
        }
        gort_wg_add(&connections, 1);
        if (GORT_GO(serve, fd) < 0) {
            gort_wg_done(&connections);
            gort_close(fd);
        }
    }
    return gort_wg_wait_until(&connections, gort_in(10 * GORT_SEC)) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    return gort_run(start, argc > 1 ? argv[1] : "8080");
}
