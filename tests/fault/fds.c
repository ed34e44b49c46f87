/* SPDX-License-Identifier: MIT */
/*
 * fds.c - sockets, pipes, files, children, signals and names, when the kernel refuses.
 * Build: faults
 * Covers: src/io/fd.c src/io/rw.c src/io/file.c src/io/ready.c src/io/process.c src/io/signal.c src/io/dns.c
 * Covers: src/io/dial.c src/io/listen.c src/observe/stats.c src/observe/metrics.c
 *
 * trial.h tells what must hold.
 */
#include "trial.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "poll/poll.h"

/* --- fds -------------------------------------------------------------------------------------- */

struct echo {
    int fd, err;
    atomic_bool over; /* it accepts no more */
    gort_wg wg;
};

static void echo_once(void *arg)
{
    struct echo *e = arg;
    char buf[64];
    int fd = gort_accept(e->fd);
    if (fd == -EMFILE || fd == -ENOMEM || fd == -ENOSPC) { /* it is still there to be accepted */
        e->err = fd;
        fd = gort_accept(e->fd);
    }
    ssize_t n = fd < 0 ? fd : gort_read_full(fd, buf, 32);
    if (n == 32)
        n = gort_write_all(fd, buf, 32);
    if (n < 0)
        e->err = both(e->err, (int)n);
    if (fd >= 0) {
        gort_close(fd);
    } else if (fd != -EBADF) { /* nobody will: so that the other side does not wait for ever */
        gort_close(e->fd);
        e->fd = -1;
    }
    atomic_store(&e->over, true);
}

/* Closes it under the one who accepts: not before, else the number may be somebody else's when that one uses
 * it. */
static void close_under(struct echo *e)
{
    while (!atomic_load(&e->over) && !gort__poll_pending())
        gort_yield();
    if (e->fd >= 0)
        gort_close(e->fd);
}

static int say_and_hear(const char *net, const char *addr)
{
    char text[128], buf[32] = "0123456789abcdef0123456789abcde", back[32];
    struct echo e = {.fd = gort_listen(net, addr)};
    if (e.fd < 0)
        return e.fd;
    int err = gort_local_addr(e.fd, text, sizeof text);
    if (err > 0)
        err = gort_wg_go(&e.wg, echo_once, &e);
    int fd = err < 0 ? err : gort_dial(net, text);
    if (fd < 0) {
        if (err < 0) /* nobody accepts */
            atomic_store(&e.over, true);
        err = both(err, fd);
        close_under(&e); /* -EBADF for who accepts */
        gort_wg_wait(&e.wg);
        return e.err && e.err != -EBADF ? e.err : err;
    }
    ssize_t n = gort_write_all(fd, buf, sizeof buf);
    if (n > 0)
        n = gort_read_full(fd, back, sizeof back);
    if (n == sizeof back)
        CHECK_EQ(memcmp(buf, back, sizeof back), 0);
    gort_close(fd);
    gort_wg_wait(&e.wg);
    if (e.fd >= 0)
        gort_close(e.fd);
    if (e.err) /* then the other side was just hung up on */
        return e.err == -ECONNRESET || e.err == -EPIPE ? (n < 0 ? (int)n : 0) : e.err;
    return n < 0 ? (int)n : n == sizeof back ? 0 : -EPIPE;
}

FAULTS(tcp)
{
    return say_and_hear("tcp", "127.0.0.1:0");
}

FAULTS(tcp_by_name)
{
    return say_and_hear("tcp", "localhost:0");
}

FAULTS(unix_sockets)
{
    char name[64];
    snprintf(name, sizeof name, "@gort-fault-%d", (int)getpid());
    return say_and_hear("unix", name);
}

FAULTS(datagrams)
{
    char text[64], buf[16];
    struct sockaddr_storage to, from;
    socklen_t len = sizeof from;
    int a = gort_listen("udp", "127.0.0.1:0");
    int b = a < 0 ? a : gort_listen("udp", "127.0.0.1:0");
    ssize_t n = b;
    if (b >= 0) {
        CHECK_GT(gort_local_addr(b, text, sizeof text), 0);
        int to_len = gort_addr_parse("udp", text, &to);
        CHECK_GT(to_len, 0);
        n = gort_sendto(a, "hello", 5, 0, (struct sockaddr *)&to, (unsigned)to_len);
    }
    if (n >= 0)
        n = gort_recvfrom_until(b, buf, sizeof buf, 0, (struct sockaddr *)&from, &len, gort_in(LONG));
    if (n >= 0)
        CHECK_EQ(n, 5);
    if (a >= 0)
        gort_close(a);
    if (b >= 0)
        gort_close(b);
    return n < 0 ? (int)n : 0;
}

static void write_lines(void *arg)
{
    struct echo *e = arg;
    char room[64], line[40];
    gort_writer out;
    gort_writer_init(&out, e->fd, room, sizeof room);
    for (int i = 0; i < 50 && !e->err; i++) {
        snprintf(line, sizeof line, "line %d\n", i);
        e->err = gort_writer_text(&out, line);
        if (i % 10 == 0)
            gort_yield();
    }
    e->err = both(e->err, gort_writer_flush(&out));
    gort_close(e->fd);
}

static int hear_lines(int fd)
{
    char room[64], *line, expected[40];
    size_t len;
    gort_reader in;
    gort_reader_init(&in, fd, room, sizeof room);
    int n = 0, got;
    while ((got = gort_reader_line(&in, &line, &len)) == 1) {
        snprintf(expected, sizeof expected, "line %d", n++);
        if (n <= 50 && strcmp(line, expected) != 0 && strlen(line) >= strlen(expected))
            CHECK_STR(line, expected);
    }
    return got < 0 ? got : n == 50 ? 0 : -EPIPE;
}

FAULTS(lines_through_a_pipe)
{
    int ends[2], err = gort_pipe(ends);
    if (err)
        return err;
    struct echo e = {.fd = ends[1]};
    err = gort_wg_go(&e.wg, write_lines, &e);
    if (err)
        gort_close(ends[1]);
    else
        err = hear_lines(ends[0]);
    gort_close(ends[0]);
    gort_wg_wait(&e.wg);
    return e.err && (e.err != -EPIPE || err == -EPIPE || !err) ? e.err : err;
}

FAULTS(files)
{
    char path[] = "/tmp/gort-fault-XXXXXX", back[64];
    int fd = mkstemp(path), ends[2] = {-1, -1};
    CHECK_GE(fd, 0);
    unlink(path);
    ssize_t n = gort_write_all(fd, "some text in a file", 19);
    if (n >= 0)
        n = lseek(fd, 0, SEEK_SET) == 0 ? gort_read_full(fd, back, sizeof back) : -errno;
    if (n >= 0)
        CHECK_EQ(n, 19);
    if (n >= 0)
        n = gort_pipe(ends);
    off_t at = 0;
    if (n >= 0)
        n = gort_sendfile(ends[1], fd, &at, 19);
    if (n >= 0)
        CHECK(n == 19 || n == 9);
    if (ends[0] >= 0) {
        gort_close(ends[0]);
        gort_close(ends[1]);
    }
    gort_close(fd);
    return n < 0 ? (int)n : 0;
}

FAULTS(stats)
{
    static char text[32768];
    gort_stats now = {.size = sizeof now};
    gort_stats_proc procs[2];
    char path[] = "/tmp/gort-fault-XXXXXX";
    int fd = mkstemp(path);
    CHECK_GE(fd, 0);
    unlink(path);
    CHECK_EQ(gort_stats_get(&now), 0);
    CHECK_EQ(now.goroutines, 1);
    CHECK_GE(gort_histogram_quantile(&now.latency, 1), 0);
    CHECK_GT(gort_histogram_edge(0), 0);
    CHECK_GE(gort_stats_procs(procs, 2), 1);
    CHECK_GT(gort_stats_text(text, sizeof text, GORT_STATS_PROMETHEUS), 0);
    int err = gort_stats_write(fd, GORT_STATS_OPENMETRICS);
    gort_close(fd);
    return err;
}

static void poke(void *arg)
{
    gort_sleep(GORT_MS);
    CHECK_EQ(dprintf(*(int *)arg, "x"), 1);
}

FAULTS(wait_fd)
{
    int ends[2], err;
    CHECK_EQ(pipe(ends), 0);
    int got = gort_wait_fd(ends[0], GORT_READ, gort_in(GORT_MS));
    err = got == -ETIMEDOUT ? 0 : got;
    if (!err)
        err = gort_set_deadline(ends[0], GORT_READ, gort_in(GORT_MS));
    char c;
    got = err ? err : (int)gort_read(ends[0], &c, 1);
    err = got == -ETIMEDOUT ? 0 : got;
    if (!err)
        err = gort_set_deadline(ends[0], GORT_READ, GORT_FOREVER);
    gort_wg wg = {0};
    if (!err)
        err = gort_wg_go(&wg, poke, &ends[1]);
    if (!err) {
        got = gort_wait_fd(ends[0], GORT_READ, GORT_FOREVER);
        err = got < 0 ? got : 0;
    }
    gort_wg_wait(&wg);
    gort_fd_forget(ends[0]);
    close(ends[0]);
    close(ends[1]);
    return err;
}

FAULTS(processes)
{
    char word[] = "cat", buf[16], *argv[] = {word, NULL};
    gort_command c = {.file = word, .argv = argv, .in = GORT_PIPE, .out = GORT_PIPE, .err = GORT_NULL};
    gort_process p;
    int err = gort_spawn(&p, &c);
    if (err)
        return err;
    ssize_t n = gort_write_all(p.in, "hello", 5);
    gort_close(p.in);
    if (n >= 0)
        n = gort_read_full(p.out, buf, 5);
    gort_close(p.out);
    int status = gort_wait(&p, NULL);
    if (status < 0) { /* the child is still ours: it can be waited for again */
        fault_off();
        CHECK_GE(gort_wait(&p, NULL), 0);
        return status;
    }
    return n < 0 ? (int)n : n == 5 ? 0 : -EPIPE;
}

FAULTS(signals)
{
    gort_chan *ch = gort_chan_new(sizeof(int), 1);
    int err = ch ? gort_signal_notify(ch, SIGUSR1) : -ENOMEM, signo = 0;
    if (!err) {
        kill(getpid(), SIGUSR1);
        CHECK_EQ(gort_chan_recv(ch, &signo), 1); /* whatever the forwarding goroutine is refused */
        CHECK_EQ(signo, SIGUSR1);
        CHECK_EQ(gort_signal_stop(ch, SIGUSR1), 0);
    }
    gort_chan_unref(ch);
    return err;
}

FAULTS(names)
{
    struct sockaddr_storage out[4];
    int n = gort_resolve("localhost", "80", out, 4);
    int m = n < 0 ? n : gort_resolve_until("localhost", NULL, out, 4, gort_in(test_seconds(10)));
    return m < 0 ? m : m > 0 ? 0 : -EINVAL;
}

NOTHING_LEAKS({"tcp", tcp, 50}, {"unix_sockets", unix_sockets, 50}, {"datagrams", datagrams, 100},
              {"names", names, 10}, {"files", files, 100}, {"signals", signals, 20}, {"stats", stats, 60},
              {"processes", processes, 2}, {"lines", lines_through_a_pipe, 50})
