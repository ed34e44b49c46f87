/* SPDX-License-Identifier: MIT */
/*
 * buf.c - buffered readers against a model: the data are an array, and every call must give what the array
 * says.
 * Covers: src/io/buf.c
 *
 * The input: size of the buffer, how many bytes are calls, these calls, and the rest is what is read. No run
 * is on: all of it is in a pipe whose other end is closed.
 */
#include <gort.h>

#include <errno.h>
#include <unistd.h>

#include "fuzz.h"

struct model {
    const uint8_t *data;
    size_t size, at;
};

static size_t left(const struct model *m)
{
    return m->size - m->at;
}

static void take_token(gort_reader *r, struct model *m, size_t room, int delimiter, bool line)
{
    char *text;
    size_t len;
    int got = line ? gort_reader_line(r, &text, &len) : gort_reader_token(r, delimiter, &text, &len);
    const uint8_t *from = m->data + m->at, *end = left(m) ? memchr(from, delimiter, left(m)) : NULL;
    size_t n = end ? (size_t)(end - from) : left(m);
    if (!left(m)) {
        CHECK_EQ(got, 0);
        return;
    }
    if (n + (end != NULL) > room) { /* it does not fit: nothing was taken */
        CHECK_EQ(got, -EMSGSIZE);
        return;
    }
    if (got ==
        -EMSGSIZE) { /* a last line that just fills the buffer: whether the end follows is not known yet */
        CHECK(n + (end != NULL) >= room);
        return;
    }
    CHECK_EQ(got, 1);
    m->at += n + (end != NULL);
    if (line && end && n && from[n - 1] == '\r')
        n--;
    CHECK_EQ(len, n);
    CHECK_EQ(memcmp(text, from, n), 0);
    CHECK_EQ(text[len], '\0');
}

static void take_bytes(gort_reader *r, struct model *m, size_t n, bool full)
{
    static char to[FUZZ_MOST];
    ssize_t got = full ? gort_reader_read_full(r, to, n) : gort_reader_read(r, to, n);
    CHECK_GE(got, 0);
    size_t most = n < left(m) ? n : left(m);
    if (full)
        CHECK_EQ(got, most);
    CHECK(got <= (ssize_t)most && (got > 0 || most == 0));
    CHECK_EQ(memcmp(to, m->data + m->at, (size_t)got), 0);
    m->at += (size_t)got;
}

static void look(gort_reader *r, struct model *m, size_t n, size_t room)
{
    char *at;
    ssize_t got = gort_reader_peek(r, n, &at);
    if (n > room) {
        CHECK_EQ(got, -EMSGSIZE);
        return;
    }
    CHECK(got >= (ssize_t)(n < left(m) ? n : left(m)) && got <= (ssize_t)left(m));
    CHECK_EQ(memcmp(at, m->data + m->at, (size_t)got), 0);
}

FUZZ("buf")
{
    int ends[2];
    if (size < 2 || size > FUZZ_MOST)
        return 0;
    size_t buffer = 2 + data[0] % 64u, calls = data[1] < size - 2 ? data[1] : size - 2;
    const uint8_t *call = data + 2;
    struct model m = {call + calls, size - 2 - calls, 0};
    char *room = malloc(buffer);
    CHECK(room && pipe(ends) == 0);
    CHECK_EQ(write(ends[1], m.data, m.size), m.size);
    close(ends[1]);
    gort_reader r;
    gort_reader_init(&r, ends[0], room, buffer);
    for (size_t i = 0; i < calls; i++) {
        size_t n = call[i] >> 3;
        switch (call[i] & 7) {
        case 0:
        case 1:
            take_token(&r, &m, buffer - 1, '\n', true);
            break;
        case 2:
            take_token(&r, &m, buffer - 1, (int)n + 'a', false);
            break;
        case 3:
            take_bytes(&r, &m, n, false);
            break;
        case 4:
            take_bytes(&r, &m, n, true);
            break;
        case 5:
            look(&r, &m, n, buffer - 1);
            break;
        case 6: {
            size_t most = n < left(&m) ? n : left(&m);
            CHECK_EQ(gort_reader_skip(&r, n), most);
            m.at += most;
            break;
        }
        default:
            CHECK_LE(gort_reader_buffered(&r), left(&m));
        }
    }
    free(room);
    gort_close(ends[0]);
    return 0;
}
