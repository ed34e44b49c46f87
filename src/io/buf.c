/* SPDX-License-Identifier: MIT */
/*
 * buf.c - buffered reading and writing.
 *
 * Why: a protocol reads a few bytes at a time, a system call costs as much as copying thousands. The buffer
 * is the caller's, so a server decides what an idle connection costs.
 *
 *     buf:  | used up | from ... to: not taken yet | free |
 *
 * Lines are handed out where they lie: their end is overwritten with '\0'. One byte is kept free for the end
 * of a last line that has none.
 * Threads: one at a time for each reader and writer.
 */
#include <gort/errno.h> /* libc's would be kept across a change of threads */
#include <string.h>

#include <gort/buf.h>
#include <gort/io.h>

#include "base/fatal.h"

/* --- reading ---------------------------------------------------------------------------------- */

void gort_reader_init(gort_reader *r, int fd, void *buf, size_t size)
{
    GORT_NEED("gort_reader_init", "reader", r);
    GORT_NEED("gort_reader_init", "buffer", buf || !size);
    if (size < 2)
        gort__fatal("gort_reader_init: the buffer must have at least 2 bytes, but has %zu", size);
    *r = (gort_reader){.fd = fd, .deadline = GORT_FOREVER, .gort_priv_buf = buf, .gort_priv_size = size};
}

size_t gort_reader_buffered(const gort_reader *r)
{
    GORT_NEED("gort_reader_buffered", "reader", r);
    return r->gort_priv_to - r->gort_priv_from;
}

static size_t room(const gort_reader *r)
{
    return r->gort_priv_size - 1;
}

/* Reads more behind what is there. > 0; 0: end of file; -EMSGSIZE: the buffer is full; -errno. */
static ssize_t more(gort_reader *r)
{
    size_t have = gort_reader_buffered(r);
    if (r->gort_priv_end)
        return 0;
    if (r->fd < 0 || !r->gort_priv_buf)
        return -EBADF; /* the fd failed to open, or the reader was never made: all zero would read fd 0 */
    if (have == room(r))
        return -EMSGSIZE;
    if (r->gort_priv_from && (have == 0 || r->gort_priv_to == room(r))) {
        memmove(r->gort_priv_buf, r->gort_priv_buf + r->gort_priv_from, have);
        r->gort_priv_from = 0;
        r->gort_priv_to = have;
    }
    ssize_t n = gort_read_until(r->fd, r->gort_priv_buf + r->gort_priv_to, room(r) - r->gort_priv_to,
                                r->deadline);
    if (n > 0)
        r->gort_priv_to += (size_t)n;
    r->gort_priv_end = n == 0;
    return n;
}

/* As gort_reader_token; *whole: the delimiter was there, not only the end of the file. */
static int next_token(gort_reader *r, int delimiter, char **token, size_t *len, bool *whole)
{
    size_t seen = 0;
    for (;;) {
        size_t have = gort_reader_buffered(r);
        char *from = r->gort_priv_buf + r->gort_priv_from;
        char *end = have > seen ? memchr(from + seen, delimiter, have - seen) : NULL;
        ssize_t n = end ? 1 : more(r);
        if (n > 0 && !end) {
            seen = have;
            continue;
        }
        if (n < 0)
            return (int)n;
        if (!end && have == 0) {
            r->gort_priv_end = false; /* a tty, or a file that grows, may have more later */
            return 0;
        }
        from = r->gort_priv_buf + r->gort_priv_from; /* to find the end it was perhaps moved */
        size_t taken = end ? (size_t)(end - from) + 1 : have;
        *token = from;
        *len = end ? taken - 1 : have;
        *whole = end != NULL;
        from[*len] = '\0';
        r->gort_priv_from += taken;
        return 1;
    }
}

int gort_reader_token(gort_reader *r, int delimiter, char **token, size_t *len)
{
    GORT_NEED("gort_reader_token", "reader", r);
    GORT_NEED("gort_reader_token", "place for the token", token && len);
    bool whole;
    return next_token(r, delimiter, token, len, &whole);
}

int gort_reader_line(gort_reader *r, char **line, size_t *len)
{
    GORT_NEED("gort_reader_line", "reader", r);
    GORT_NEED("gort_reader_line", "place for the line", line && len);
    bool whole;
    int got = next_token(r, '\n', line, len, &whole);
    if (got == 1 && whole && *len && (*line)[*len - 1] == '\r')
        (*line)[--*len] = '\0';
    return got;
}

ssize_t gort_reader_peek(gort_reader *r, size_t n, char **at)
{
    GORT_NEED("gort_reader_peek", "reader", r);
    GORT_NEED("gort_reader_peek", "place for the address", at);
    if (n > room(r))
        return -EMSGSIZE;
    while (gort_reader_buffered(r) < n) {
        if (r->gort_priv_from + n > room(r)) { /* make room at once, not when it is full */
            memmove(r->gort_priv_buf, r->gort_priv_buf + r->gort_priv_from, gort_reader_buffered(r));
            r->gort_priv_to -= r->gort_priv_from;
            r->gort_priv_from = 0;
        }
        ssize_t got = more(r);
        if (got < 0)
            return got;
        if (got == 0)
            break;
    }
    *at = r->gort_priv_buf + r->gort_priv_from;
    r->gort_priv_end &= gort_reader_buffered(r) > 0; /* told once */
    return (ssize_t)gort_reader_buffered(r);
}

ssize_t gort_reader_read(gort_reader *r, void *to, size_t n)
{
    GORT_NEED("gort_reader_read", "reader", r);
    GORT_NEED("gort_reader_read", "buffer", to || !n);
    size_t have = gort_reader_buffered(r);
    if (n == 0)
        return 0;
    if (!have && n >= room(r) && !r->gort_priv_end)
        return gort_read_until(r->fd, to, n, r->deadline);
    if (!have) {
        ssize_t got = more(r);
        if (got <= 0) {
            r->gort_priv_end = false;
            return got;
        }
        have = gort_reader_buffered(r);
    }
    size_t part = n < have ? n : have;
    memcpy(to, r->gort_priv_buf + r->gort_priv_from, part);
    r->gort_priv_from += part;
    return (ssize_t)part;
}

ssize_t gort_reader_read_full(gort_reader *r, void *to, size_t n)
{
    GORT_NEED("gort_reader_read_full", "reader", r);
    GORT_NEED("gort_reader_read_full", "buffer", to || !n);
    size_t done = 0;
    while (done < n) {
        ssize_t got = gort_reader_read(r, (char *)to + done, n - done);
        if (got < 0)
            return got;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

ssize_t gort_reader_skip(gort_reader *r, size_t n)
{
    GORT_NEED("gort_reader_skip", "reader", r);
    size_t done = 0;
    while (done < n) {
        size_t have = gort_reader_buffered(r), part = n - done < have ? n - done : have;
        r->gort_priv_from += part;
        done += part;
        ssize_t got = part ? 1 : more(r);
        if (got < 0)
            return got;
        if (got == 0) {
            r->gort_priv_end = false;
            break;
        }
    }
    return (ssize_t)done;
}

/* --- writing ---------------------------------------------------------------------------------- */

void gort_writer_init(gort_writer *w, int fd, void *buf, size_t size)
{
    GORT_NEED("gort_writer_init", "writer", w);
    GORT_NEED("gort_writer_init", "buffer", buf || !size);
    *w = (gort_writer){.fd = fd, .deadline = GORT_FOREVER, .gort_priv_buf = buf, .gort_priv_size = size};
    if (fd < 0)
        w->error = -EBADF; /* it failed to open: the first write says so, not the flush after it */
}

size_t gort_writer_buffered(const gort_writer *w)
{
    GORT_NEED("gort_writer_buffered", "writer", w);
    return w->gort_priv_used;
}

static int put(gort_writer *w, const void *data, size_t n)
{
    ssize_t done = w->error ? w->error : gort_write_all_until(w->fd, data, n, w->deadline);
    if (done < 0)
        w->error = (int)done;
    return w->error;
}

int gort_writer_flush(gort_writer *w)
{
    GORT_NEED("gort_writer_flush", "writer", w);
    int err = w->gort_priv_used || w->error ? put(w, w->gort_priv_buf, w->gort_priv_used) : 0;
    if (!err)
        w->gort_priv_used = 0;
    return err;
}

int gort_writer_write(gort_writer *w, const void *data, size_t n)
{
    GORT_NEED("gort_writer_write", "writer", w);
    GORT_NEED("gort_writer_write", "data", data || !n);
    if (w->error)
        return w->error;
    if (n > w->gort_priv_size - w->gort_priv_used) {
        int err = gort_writer_flush(w);
        if (err)
            return err;
        if (n >= w->gort_priv_size)
            return put(w, data, n);
    }
    if (n)
        memcpy(w->gort_priv_buf + w->gort_priv_used, data, n);
    w->gort_priv_used += n;
    return 0;
}

int gort_writer_text(gort_writer *w, const char *text)
{
    GORT_NEED("gort_writer_text", "writer", w);
    GORT_NEED("gort_writer_text", "text", text);
    return gort_writer_write(w, text, strlen(text));
}
