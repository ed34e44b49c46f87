/* SPDX-License-Identifier: MIT */
/*
 * 18-http-server.c - HTTP/1.1 in three pages.      cc 18-http-server.c -o 18-http-server -lgort -pthread
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
    bool head, found, close, old, has_host, has_length; /* old: HTTP/1.0 */
    size_t body;                                        /* bytes that follow it */
};

/*
 * Whoever stands before us (a proxy, a cache) must see the same requests as we do: else somebody hides one in another's body. So all
 * that two readers might understand differently is refused, not repaired (RFC 9112, section 11.2).
 */

/* The characters of a method and of a header's name. */
static bool is_token(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr("!#$%&'*+-.^_`|~", text[i]) && !(text[i] >= '0' && text[i] <= '9') &&
            !((text[i] | 32) >= 'a' && (text[i] | 32) <= 'z'))
            return false;
    return n > 0;
}

/* No control characters but tabs; so no NUL, and no CR that is not before the LF. */
static bool is_text(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 127)
            return false;
    return true;
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

/* Digits and nothing else; no sign, no list, no overflow. */
static bool parse_length(const char *value, size_t *n)
{
    size_t digits = strspn(value, "0123456789"), spaces = strspn(value + digits, " \t");
    *n = strtoul(value, NULL, 10);
    return digits > 0 && digits < 19 && !value[digits + spaces];
}

/* "GET / HTTP/1.1": two spaces, and a version of two digits. */
static bool parse_first_line(char *line, size_t len, struct request *r)
{
    char *path = strchr(line, ' '), *version = path ? strchr(path + 1, ' ') : NULL;
    if (!is_text(line, len) || !version || version == path + 1 || !is_token(line, (size_t)(path - line)))
        return false;
    if (strcmp(version, " HTTP/1.1") != 0 && strcmp(version, " HTTP/1.0") != 0)
        return false;
    *path++ = *version = '\0';
    bool old = version[8] == '0';
    *r = (struct request){
        .head = strcmp(line, "HEAD") == 0, .found = strcmp(path, "/") == 0, .close = old, .old = old};
    return true;
}

/* "Name: value", where no space stands before the colon, or at the beginning: that would be the rest of the line before. */
static bool parse_header(char *line, size_t len, struct request *r)
{
    char *colon = strchr(line, ':');
    if (!is_text(line, len) || !colon || !is_token(line, (size_t)(colon - line)))
        return false;
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    if (strcasecmp(line, "Connection") == 0) {
        r->close = lists(value, "close") || (r->close && !lists(value, "keep-alive"));
    } else if (strcasecmp(line, "Content-Length") == 0) {
        if (r->has_length || !parse_length(value, &r->body))
            return false;
        r->has_length = true;
    } else if (strcasecmp(line, "Host") == 0) {
        if (r->has_host)
            return false;
        r->has_host = true;
    }
    return strcasecmp(line, "Transfer-Encoding") != 0; /* we know none, and a length beside one is a trick */
}

enum { MOST_HEADERS = 100 };

/* 1: a request; 0: the peer is done; < 0: -errno, -EPROTO for what is no request. */
static int read_request(gort_reader *in, struct request *r)
{
    char *line;
    size_t len;
    int got = gort_reader_line(in, &line, &len);
    if (got <= 0)
        return got;
    gort_ctx_use(NULL); /* it has begun: it will be answered */
    if (!parse_first_line(line, len, r))
        return -EPROTO;
    for (int n = 0; (got = gort_reader_line(in, &line, &len)) == 1 && len; n++)
        if (n == MOST_HEADERS || !parse_header(line, len, r))
            return -EPROTO;
    if (got < 0)
        return got;
    return got == 1 && (r->has_host || r->old) ? 1 : -EPROTO; /* RFC 9112, section 3.2 */
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
        if (fd < 0) { /* too many open files, or no memory: some will be free soon */
            gort_sleep(10 * GORT_MS);
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
