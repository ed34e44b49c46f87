/* SPDX-License-Identifier: MIT */
/*
 * 20-chat-server.c - what one says, all hear.      cc 20-chat-server.c -o 20-chat-server -lgort -pthread
 *
 *     20-chat-server 7002 [SECONDS]            then, several times: nc 127.0.0.1 7002
 *
 * Each guest has a goroutine that reads lines and one that writes them from a channel. Whoever does not read fast enough
 * misses lines instead of holding up the others. The first line of a guest is his name: who does
 * not say it within so many seconds (30) has to go. Guests who only listen may stay; the kernel asks now and then whether they
 * are still there.
 * Test: by tests/servers chat
 */
#include <gort.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LINE = 512, GUESTS = 100 };

static int64_t patience = 30 * GORT_SEC; /* for a name */
static gort_mutex lock;
static gort_chan *guests[GUESTS]; /* of lines; NULL: a free chair; guarded by lock */

static void tell_all(const char *name, const char *what)
{
    char line[LINE];
    snprintf(line, sizeof line, "%.30s%.400s\n", name, what);
    gort_mutex_lock(&lock);
    for (int i = 0; i < GUESTS; i++)
        if (guests[i])
            gort_chan_send_until(guests[i], line, GORT_TRY);
    gort_mutex_unlock(&lock);
}

static int sit_down(gort_chan *hears)
{
    int chair = 0;
    gort_mutex_lock(&lock);
    while (chair < GUESTS && guests[chair])
        chair++;
    if (chair < GUESTS)
        guests[chair] = hears;
    gort_mutex_unlock(&lock);
    return chair;
}

static void hear(int fd, gort_chan *hears)
{
    char line[LINE];
    bool listens = true;
    while (gort_chan_recv(hears, line) == 1)
        if (listens && gort_write_all_until(fd, line, strlen(line), gort_in(5 * GORT_SEC)) < 0) {
            listens = false;
            gort_shutdown(fd, SHUT_RDWR); /* ends the other one too; who closes it is the last to use it */
        }
    gort_chan_unref(hears);
    gort_close(fd);
}

static void speak(int fd)
{
    char room[LINE], name[32] = "", said[LINE], *line;
    size_t len;
    gort_reader in;
    gort_chan *hears = gort_chan_ref(gort_chan_new(LINE, 64)); /* one for each of us */
    gort_reader_init(&in, fd, room, sizeof room);
    in.deadline = gort_in(patience);
    gort_set_keepalive(fd, 60 * GORT_SEC);
    if (!hears || gort_reader_line(&in, &line, &len) != 1 || GORT_GO(hear, fd, hears) < 0) {
        gort_chan_unref(hears);
        gort_chan_unref(hears);
        gort_close(fd);
        return;
    }
    in.deadline = GORT_FOREVER;
    snprintf(name, sizeof name, "%s", line);
    int chair = sit_down(hears);
    tell_all(name, " comes in");
    while (chair < GUESTS && gort_reader_line(&in, &line, &len) == 1) {
        snprintf(said, sizeof said, ": %s", line);
        tell_all(name, said);
    }
    gort_mutex_lock(&lock);
    if (chair < GUESTS)
        guests[chair] = NULL;
    gort_mutex_unlock(&lock);
    tell_all(name, " leaves");
    gort_chan_close(hears); /* the other goroutine of this guest ends, and closes the connection */
    gort_chan_unref(hears);
}

static int serve(void *port)
{
    char addr[64];
    snprintf(addr, sizeof addr, "127.0.0.1:%s", (char *)port);
    int listener = gort_listen("tcp", addr);
    if (listener < 0 || gort_local_addr(listener, addr, sizeof addr) < 0)
        return 1;
    printf("listening on %s\n", addr);
    fflush(stdout);
    for (;;) {
        int fd = gort_accept(listener);
        if (fd < 0) /* too many open files, or no memory: some will be free soon */
            gort_sleep(10 * GORT_MS);
        else if (GORT_GO(speak, fd) < 0)
            gort_close(fd);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2)
        patience = (int64_t)(strtod(argv[2], NULL) * (double)GORT_SEC);
    return gort_run(serve, argc > 1 ? argv[1] : "0");
}
