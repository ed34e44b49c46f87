/* SPDX-License-Identifier: MIT */
/*
 * io.c - what fds.c leaves out of reading and writing: timed calls, vectors, messages with fds, buffers.
 * Build: faults
 * Covers: src/io/rw.c src/io/file.c src/io/buf.c
 *
 * trial.h tells what must hold. Here a call that was refused is made again at once (AGAIN), and everything is
 * as if it had not been made before.
 */
#include "trial.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

static const char digits[] = "0123456789";
enum { DIGITS = 10, HEAD = 3 };

/* --- reading and writing ---------------------------------------------------------------------- */

/* What a short write left of the digits. */
static int put_rest(int fd, long done)
{
    int err = 0;
    CHECK_GT(done, 0);
    CHECK_EQ(AGAIN(err, gort_write_all_until(fd, digits + done, (size_t)(DIGITS - done), gort_in(LONG))),
             DIGITS - done);
    return err;
}

static int get_rest(int fd, char *text, long done)
{
    int err = 0;
    CHECK_GT(done, 0);
    CHECK_EQ(AGAIN(err, gort_read_full_until(fd, text + done, (size_t)(DIGITS - done), gort_in(LONG))),
             DIGITS - done);
    CHECK_EQ(memcmp(text, digits, DIGITS), 0);
    return err;
}

/* Digits from out to in, four times: each way to write, each way to read. */
static int move_digits(int in, int out)
{
    int err = 0;
    char text[DIGITS];
    struct iovec from[2] = {{(void *)(uintptr_t)digits, HEAD},
                            {(void *)(uintptr_t)(digits + HEAD), DIGITS - HEAD}};
    struct iovec to[2] = {{text, HEAD}, {text + HEAD, DIGITS - HEAD}};
    CHECK_TIMES_OUT(err, gort_read_until(in, text, sizeof text, gort_in(GORT_MS)));
    CHECK_TIMES_OUT(err, gort_readv_until(in, to, 2, gort_in(GORT_MS)));
    for (int way = 0; way < 4; way++) {
        memset(text, 0, sizeof text);
        long n = way == 0   ? AGAIN(err, gort_write(out, digits, DIGITS))
                 : way == 1 ? AGAIN(err, gort_write_until(out, digits, DIGITS, gort_in(LONG)))
                 : way == 2 ? AGAIN(err, gort_writev(out, from, 2))
                            : AGAIN(err, gort_writev_until(out, from, 2, gort_in(LONG)));
        err = both(err, put_rest(out, n));
        n = way == 0   ? AGAIN(err, gort_read(in, text, DIGITS))
            : way == 1 ? AGAIN(err, gort_read_until(in, text, DIGITS, gort_in(LONG)))
            : way == 2 ? AGAIN(err, gort_readv(in, to, 2))
                       : AGAIN(err, gort_readv_until(in, to, 2, gort_in(LONG)));
        err = both(err, get_rest(in, text, n));
    }
    return err;
}

FAULTS(timed_pipes)
{
    int ends[2], err = 0;
    char c;
    CHECK_EQ(AGAIN(err, gort_pipe(ends)), 0);
    err = both(err, move_digits(ends[0], ends[1]));
    gort_close(ends[1]);
    CHECK_EQ(AGAIN(err, gort_read(ends[0], &c, 1)), 0);
    gort_close(ends[0]);
    CHECK_EQ(pipe(ends), 0); /* somebody else's, which blocks */
    err = both(err, move_digits(ends[0], ends[1]));
    close_both(ends);
    return err;
}

FAULTS(timed_sockets)
{
    int ends[2];
    char c;
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int err = move_digits(ends[0], ends[1]);
    CHECK_EQ(gort_shutdown(ends[1], SHUT_WR), 0);
    CHECK_EQ(AGAIN(err, gort_read(ends[0], &c, 1)), 0);
    err = both(err, move_digits(ends[1], ends[0]));
    close_both(ends);
    return err;
}

FAULTS(timed_sendfile)
{
    int ends[2], err = 0;
    char path[] = "/tmp/gort-fault-XXXXXX", text[DIGITS];
    int file = mkstemp(path);
    CHECK_GE(file, 0);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(dprintf(file, "%s", digits), DIGITS);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    for (off_t at = 0; at < DIGITS;) {
        off_t before = at;
        long n = gort_sendfile_until(ends[1], file, &at, (size_t)(DIGITS - at), gort_in(LONG));
        if (refused(n, &err))
            n = 0;
        CHECK_GE(n, 0);
        CHECK_EQ(at, before + n);
    }
    CHECK_EQ(AGAIN(err, gort_read_full(ends[0], text, DIGITS)), DIGITS);
    CHECK_EQ(memcmp(text, digits, DIGITS), 0);
    gort_close(file);
    close_both(ends);
    return err;
}

/* --- messages --------------------------------------------------------------------------------- */

/* A message with some digits and, one way, an fd. */
struct letter {
    char text[DIGITS];
    struct iovec iov;
    struct msghdr msg;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } room;
};

static void open_letter(struct letter *l)
{
    memset(l, 0, sizeof *l);
    l->iov = (struct iovec){l->text, sizeof l->text};
    l->msg = (struct msghdr){.msg_iov = &l->iov,
                             .msg_iovlen = 1,
                             .msg_control = l->room.bytes,
                             .msg_controllen = sizeof l->room.bytes};
}

static void enclose(struct letter *l, int fd)
{
    open_letter(l);
    memcpy(l->text, digits, DIGITS);
    struct cmsghdr *c = CMSG_FIRSTHDR(&l->msg);
    *c = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fd), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
}

/* The fd that came is another one for the same file. */
static void take_out(struct letter *l, int sent)
{
    struct stat a, b;
    int fd;
    CHECK_EQ(memcmp(l->text, digits, DIGITS), 0);
    struct cmsghdr *c = CMSG_FIRSTHDR(&l->msg);
    CHECK(c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof fd));
    memcpy(&fd, CMSG_DATA(c), sizeof fd);
    CHECK(fstat(fd, &a) == 0 && fstat(sent, &b) == 0);
    CHECK(a.st_ino == b.st_ino && a.st_dev == b.st_dev);
    CHECK_EQ(gort_close(fd), 0);
}

FAULTS(messages_with_an_fd)
{
    int ends[2], carried[2], err = 0;
    struct letter out, in;
    CHECK_EQ(pipe(carried), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
    open_letter(&in);
    CHECK_TIMES_OUT(err, gort_recvmsg_until(ends[0], &in.msg, 0, gort_in(GORT_MS)));
    for (int way = 0; way < 2; way++) {
        enclose(&out, carried[way]);
        open_letter(&in);
        CHECK_EQ(way ? AGAIN(err, gort_sendmsg(ends[1], &out.msg, 0))
                     : AGAIN(err, gort_sendmsg_until(ends[1], &out.msg, 0, gort_in(LONG))),
                 DIGITS);
        CHECK_EQ(way ? AGAIN(err, gort_recvmsg(ends[0], &in.msg, 0))
                     : AGAIN(err, gort_recvmsg_until(ends[0], &in.msg, 0, gort_in(LONG))),
                 DIGITS);
        take_out(&in, carried[way]);
    }
    CHECK_EQ(AGAIN(err, gort_recvmsg(ends[0], &in.msg, MSG_DONTWAIT)), -EAGAIN); /* nothing was sent twice */
    close_both(ends);
    close_both(carried);
    return err;
}

/* --- buffers ---------------------------------------------------------------------------------- */

/* A writer keeps its first error, whatever is asked of it later. */
static int write_through(int fd)
{
    char room[16];
    gort_writer out;
    gort_writer_init(&out, fd, room, sizeof room);
    int err = gort_writer_write(&out, "one,two,", 8);
    CHECK_EQ(err, 0);
    CHECK_EQ(gort_writer_buffered(&out), 8);
    err = gort_writer_write(&out, "0123456789abcdef", 16);
    if (!err)
        err = gort_writer_write(&out, "the end", 7);
    size_t left = gort_writer_buffered(&out);
    CHECK(err ? left == 8 || left == 0 : left == 7);
    int flushed = gort_writer_flush(&out);
    if (err)
        CHECK_EQ(flushed, err);
    if (flushed) {
        CHECK_EQ(gort_writer_write(&out, "x", 1), flushed);
        CHECK_EQ(out.error, flushed);
    } else {
        CHECK_EQ(gort_writer_buffered(&out), 0);
    }
    return flushed;
}

static int read_through(int fd)
{
    char room[16], text[16], *at;
    size_t len;
    int err = 0;
    gort_reader in;
    gort_reader_init(&in, fd, room, sizeof room);
    in.deadline = gort_in(LONG);
    CHECK_EQ(gort_reader_buffered(&in), 0);
    CHECK_GE(AGAIN(err, gort_reader_peek(&in, 5, &at)), 5);
    CHECK_EQ(memcmp(at, "one,t", 5), 0);
    CHECK_GE(gort_reader_buffered(&in), 5);
    CHECK_EQ(AGAIN(err, gort_reader_token(&in, ',', &at, &len)), 1);
    CHECK_STR(at, "one");
    CHECK_EQ(AGAIN(err, gort_reader_skip(&in, 4)), 4);
    CHECK_EQ(AGAIN(err, gort_reader_read(&in, text, 1)), 1);
    CHECK_EQ(text[0], '0');
    /* In two steps: what a read_full has taken when its fd fails is gone. */
    size_t have = gort_reader_buffered(&in);
    CHECK_EQ(gort_reader_read_full(&in, text, have), have);
    CHECK_EQ(AGAIN(err, gort_reader_read_full(&in, text + have, 15 - have)), 15 - have);
    CHECK_EQ(memcmp(text, "123456789abcdef", 15), 0);
    CHECK_EQ(AGAIN(err, gort_reader_token(&in, ',', &at, &len)), 1);
    CHECK_STR(at, "the end");
    CHECK_EQ(AGAIN(err, gort_reader_peek(&in, 1, &at)), 0);
    return err;
}

FAULTS(buffers)
{
    int ends[2], err = 0;
    CHECK_EQ(AGAIN(err, gort_pipe(ends)), 0);
    int wrote = write_through(ends[1]);
    gort_close(ends[1]);
    if (!wrote)
        err = both(err, read_through(ends[0]));
    gort_close(ends[0]);
    return both(err, wrote);
}

NOTHING_LEAKS({"timed_pipes", timed_pipes, 5}, {"timed_sockets", timed_sockets, 5},
              {"timed_sendfile", timed_sendfile, 20}, {"messages", messages_with_an_fd, 20},
              {"buffers", buffers, 50})
