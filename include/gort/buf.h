/* SPDX-License-Identifier: MIT */
/*
 * gort/buf.h - buffered reading and writing, in a buffer that the caller gives.
 *
 *     char room[4096], *line;
 *     size_t len;
 *     gort_reader in;
 *     gort_reader_init(&in, fd, room, sizeof room);
 *     while (gort_reader_line(&in, &line, &len) == 1)
 *         ...
 *
 * A reader or writer is used by one goroutine at a time. Nothing is allocated and the fd is not closed. All of them may park
 * unless they say otherwise; they wait until `deadline`, which may be set before any call.
 */
#ifndef GORT_BUF_H
#define GORT_BUF_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

typedef struct gort_reader {
    int fd;
    int64_t deadline; /* GORT_FOREVER after init */
    char *gort_priv_buf;
    size_t gort_priv_size, gort_priv_from, gort_priv_to;
    bool gort_priv_end;
} gort_reader;

/* size is the longest line plus 2; at least 2. Never parks. */
GORT_API void gort_reader_init(gort_reader *r, int fd, void *buf, size_t size);

/*
 * The next line, without its "\n" or "\r\n", ended by '\0'. It lies in the buffer until the next call. 1: a line, also a last
 * one that lacks its end; 0: end of file; -EMSGSIZE: longer than the buffer, nothing was taken (gort_reader_read gets it
 * in pieces); -errno: and what has come so far stays for the next call.
 */
GORT_API GORT_MUST_CHECK int gort_reader_line(gort_reader *r, char **line, size_t *len);
/* The same up to any byte, which is taken and replaced by '\0'. */
GORT_API GORT_MUST_CHECK int gort_reader_token(gort_reader *r, int delimiter, char **token, size_t *len);
/* At least n bytes to look at, which stay. How many there are, more than n perhaps; fewer only at the end of the file; -EMSGSIZE:
 * n is more than the buffer has room for. */
GORT_API ssize_t gort_reader_peek(gort_reader *r, size_t n, char **at);
/* How many bytes are in the buffer now. Never parks. */
GORT_API size_t gort_reader_buffered(const gort_reader *r);
/* As gort_read and gort_read_full: what is in the buffer first. What read_full has taken before an error is gone. */
GORT_API ssize_t gort_reader_read(gort_reader *r, void *to, size_t n);
GORT_API ssize_t gort_reader_read_full(gort_reader *r, void *to, size_t n);
/* Drops n bytes. How many there were: fewer only at the end of the file; -errno: then some may have been dropped. */
GORT_API ssize_t gort_reader_skip(gort_reader *r, size_t n);

typedef struct gort_writer {
    int fd;
    int error; /* of the first write that failed: every later call returns it too */
    int64_t deadline;
    char *gort_priv_buf;
    size_t gort_priv_size, gort_priv_used;
} gort_writer;

/* Never parks. */
GORT_API void gort_writer_init(gort_writer *w, int fd, void *buf, size_t size);
/* Order is kept: what is larger than the buffer is written after what is in it. 0 or -errno. */
GORT_API int gort_writer_write(gort_writer *w, const void *data, size_t n);
GORT_API int gort_writer_text(gort_writer *w, const char *text);
/* Writes what is in the buffer. 0 or -errno. */
GORT_API GORT_MUST_CHECK int gort_writer_flush(gort_writer *w);
/* How many bytes are in the buffer. Never parks. */
GORT_API size_t gort_writer_buffered(const gort_writer *w);

GORT_END_DECLS
#endif
