/* SPDX-License-Identifier: MIT */
/*
 * gort/buf.h - buffered reading and writing, with a buffer that the caller provides.
 *
 *     char room[4096], *line;
 *     size_t len;
 *     gort_reader in;
 *     gort_reader_init(&in, fd, room, sizeof room);
 *     while (gort_reader_line(&in, &line, &len) == 1)
 *         printf("%zu: %s\n", len, line);
 *
 * One goroutine at a time may use a reader or a writer. gort allocates nothing for it and does not close the
 * fd. A call waits until the field `deadline`, which the program may set before any call. If fd is negative
 * (it could not be opened), calls that need it return -EBADF. Functions in this header may park unless a
 * comment says otherwise.
 */
#ifndef GORT_BUF_H
#define GORT_BUF_H

#include "base.h"
#include "time.h"

GORT_BEGIN_DECLS

typedef struct gort_reader {
    int fd;
    int64_t deadline; /* gort_reader_init sets GORT_FOREVER */
    char *gort_priv_buf;
    size_t gort_priv_size, gort_priv_from, gort_priv_to;
    bool gort_priv_end;
} gort_reader;

/*
 * Prepares a reader of fd with a buffer of size bytes. The longest line that fits has size - 2 bytes, without
 * its "\n". A size below 2 is fatal. Never parks.
 */
GORT_API void gort_reader_init(gort_reader *r, int fd, void *buf, size_t size);

/*
 * Takes the next line, without its "\n" or "\r\n". *line points into the buffer, to text that ends with '\0'
 * and is valid until the next call. Returns 1: a line, also a last one without "\n"; 0: end of file;
 * -EMSGSIZE: the line is longer than the buffer, and nothing was taken (gort_reader_read can take it in
 * pieces); another -errno: what has been read stays in the buffer for the next call.
 */
GORT_API GORT_MUST_CHECK int gort_reader_line(gort_reader *r, char **line, size_t *len);
/* The same up to the byte delimiter, which is taken as well and replaced by '\0'. */
GORT_API GORT_MUST_CHECK int gort_reader_token(gort_reader *r, int delimiter, char **token, size_t *len);
/*
 * Waits until at least n bytes are in the buffer, takes none, and sets *at to the first. Returns how many are
 * there, perhaps more than n; fewer only at the end of the file; -EMSGSIZE: the buffer has no room for n;
 * another -errno.
 */
GORT_API ssize_t gort_reader_peek(gort_reader *r, size_t n, char **at);
/* Returns the number of bytes in the buffer. Never parks. */
GORT_API size_t gort_reader_buffered(const gort_reader *r);
/*
 * As gort_read and gort_read_full, but take what is in the buffer first. If gort_reader_read_full fails, the
 * bytes that it has taken are lost.
 */
GORT_API ssize_t gort_reader_read(gort_reader *r, void *to, size_t n);
GORT_API ssize_t gort_reader_read_full(gort_reader *r, void *to, size_t n);
/*
 * Drops the next n bytes. Returns how many; fewer than n only at the end of the file; after an error some may
 * have been dropped.
 */
GORT_API ssize_t gort_reader_skip(gort_reader *r, size_t n);

typedef struct gort_writer {
    int fd;
    int error;        /* of the first write that failed; all later calls return it too */
    int64_t deadline; /* gort_writer_init sets GORT_FOREVER */
    char *gort_priv_buf;
    size_t gort_priv_size, gort_priv_used;
} gort_writer;

/* Prepares a writer to fd with a buffer of size bytes. Never parks. */
GORT_API void gort_writer_init(gort_writer *w, int fd, void *buf, size_t size);
/*
 * Put n bytes, or a string, into the buffer. If there is no room, the buffer is written to fd first; data
 * that is larger than the buffer then goes to fd directly. Return 0 or -errno.
 */
GORT_API int gort_writer_write(gort_writer *w, const void *data, size_t n);
GORT_API int gort_writer_text(gort_writer *w, const char *text);
/* Writes what is in the buffer to fd. Returns 0 or -errno. */
GORT_API GORT_MUST_CHECK int gort_writer_flush(gort_writer *w);
/* Returns the number of bytes in the buffer. Never parks. */
GORT_API size_t gort_writer_buffered(const gort_writer *w);

GORT_END_DECLS
#endif
