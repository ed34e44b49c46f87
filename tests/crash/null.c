/* SPDX-License-Identifier: MIT */
/*
 * null.c - NULL where a public call must be given something: one line that names the call and what is
 * missing, never a SIGSEGV. The table has a row for each pointer of each call: NEED tells what is missing,
 * FINE that NULL means something. A call that has no row is found by tools/symbols. (`arg`, `value` and the
 * like, which are passed on and never looked at, need none.)
 * Covers: include/gort/
 */
#include <gort.h>

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "misuse.h"

static gort_chan *ch;   /* of int, with room for one */
static gort_chan *ch8;  /* of 8 bytes: the fast way */
static gort_chan *none; /* of no bytes */
static gort_mutex mu;
static gort_cond cond;
static gort_wg wg;
static gort_once once;
static gort_sem sem;
static gort_barrier barrier;
static gort_group group;
static gort_pool pool;
static gort_case send_nothing;
static int value;
static char line[64], *at;
static size_t len;
static struct sockaddr any;
static struct sockaddr_storage storage;
static gort_reader reader;
static gort_writer writer;
static gort_command command;
static gort_process process;

static void f(void *unused)
{
    (void)unused;
}

static int fi(void *unused)
{
    (void)unused;
    return 0;
}

enum { NEEDED, IS_FINE };

struct row {
    const char *call, *parameter, *what;
    void (*make)(void);
    int kind;
};

/* Each row is a function of its own, made by the list in null_rows.h. */
#define IGNORE(expression) ((void)!(expression))
#define NEED(call, parameter, what, statement)                                                               \
    static void need_##call##_##parameter(void)                                                              \
    {                                                                                                        \
        statement;                                                                                           \
    }
#define FINE(call, parameter, statement)                                                                     \
    static void need_##call##_##parameter(void)                                                              \
    {                                                                                                        \
        statement;                                                                                           \
    }
#include "null_rows.h"
#undef NEED
#undef FINE

static struct row table[] = {
#define NEED(call, parameter, what, statement) {#call, #parameter, what, need_##call##_##parameter, NEEDED},
#define FINE(call, parameter, statement)       {#call, #parameter, "", need_##call##_##parameter, IS_FINE},
#include "null_rows.h"
};

static void make_objects(void)
{
    ch = gort_chan_new(sizeof(int), 4);
    ch8 = gort_chan_new(8, 4);
    none = gort_chan_new(0, 4);
    send_nothing = (gort_case){.ch = ch, .op = GORT_SEND};
    gort_sem_init(&sem, 1);
    gort_barrier_init(&barrier, 1);
    CHECK_EQ(gort_mutex_lock(&mu), 0);
}

static int make(void *row)
{
    ((const struct row *)row)->make();
    return 0;
}

/* What a child says that makes the call, in a goroutine or outside a run, and how it ends. */
static int ask(struct row *row, bool in_goroutine, char *text, size_t size)
{
    int ends[2], status;
    size_t n = 0;
    CHECK_EQ(pipe(ends), 0);
    pid_t child = fork();
    CHECK_GE(child, 0);
    if (child == 0) {
        dup2(ends[1], 2);
        alarm(30);
        _exit(in_goroutine ? gort_run(make, row) : make(row));
    }
    close(ends[1]);
    for (ssize_t got; n < size - 1 && (got = read(ends[0], text + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    close(ends[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    return status;
}

/* In a goroutine the line tells who it was. */
static void ask_all(bool in_goroutine)
{
    static char text[1 << 16];
    make_objects();
    int wrong = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct row *row = &table[i];
        char wanted[160], call[64];
        snprintf(call, sizeof call, "%s", strcmp(row->call, "gort_priv_go") ? row->call : "GORT_GO");
        char *until = strstr(call, "_until");
        if (!until)
            until = strstr(call, "_with");
        if (until)
            *until = '\0';
        snprintf(wanted, sizeof wanted, "gort: fatal: %s: NULL %s%s\n", call, row->what,
                 in_goroutine ? " [goroutine 1 (main)]" : "");
        int status = ask(row, in_goroutine, text, sizeof text);
        bool ended = row->kind == IS_FINE ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                                          : WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        if (ended && (row->kind == IS_FINE || strncmp(text, wanted, strlen(wanted)) == 0))
            continue;
        text[strcspn(text, "\n")] = '\0';
        test_log("%s, %s: status %#x: '%s'", row->call, row->parameter, (unsigned)status, text);
        wrong++;
    }
    test_log("%zu rows", sizeof table / sizeof *table);
    CHECK_EQ(wrong, 0);
}

TEST(every_call_says_what_is_missing)
{
    ask_all(false);
}

TEST(every_call_in_a_goroutine_says_what_is_missing)
{
    ask_all(true);
}

/* In a goroutine with a name the line tells that as well. */
MISUSE(lock_nothing, "gort_mutex_lock: NULL mutex")
{
    return gort_mutex_lock(NULL);
}

MISUSE(unlock_nothing, "gort_mutex_unlock: NULL mutex")
{
    gort_mutex_unlock(NULL);
    return 0;
}

MISUSE(block_in_nothing, "gort_block: NULL function")
{
    return (int)gort_block(NULL, NULL);
}

MISUSE(copy_nothing, "gort_go_copy: NULL argument to copy")
{
    return gort_go_copy(f, NULL, 8);
}

MISUSE(send_nothing_of_some_size, "gort_chan_send: NULL value")
{
    return gort_chan_send(gort_chan_new(8, 1), NULL);
}

MISUSE(send_nothing_without_room, "gort_chan_send: NULL value")
{
    return gort_chan_send(gort_chan_new(5, 0), NULL);
}
