/* SPDX-License-Identifier: MIT */
/*
 * test.c - the test kit's main, its checks and its looks into /proc.
 *
 * Why: a case gets a process of its own, so that a runtime that hangs, crashes or leaves threads behind
 * harms one case only. A check may fail on a goroutine's small stack, in a signal handler's neighbourhood or
 * while other threads hold stdio's locks: so messages are formatted into a buffer and leave in one write(2),
 * and the process ends with _exit(2). A case that passes ends through exit(3), which lets the leak checker
 * speak.
 */
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, EXIT_USAGE = 2 };

static struct test_case *first_case, **last_link = &first_case;

void test_add(struct test_case *c, const char *name, const char *file, int line, void (*fn)(void),
              const struct test_options *options)
{
    c->name = name;
    c->file = file;
    c->line = line;
    c->fn = fn;
    c->options = options;
    c->next = NULL;
    *last_link = c;
    last_link = &c->next;
}

/* Tabs separate the fields of a --list line; what could be mistaken for one is escaped. */
static void list_text(const char *key, const char *text)
{
    if (!text)
        return;
    printf("\t%s=", key);
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", stdout);
        else if (*text == '\t')
            fputs("\\t", stdout);
        else if (*text == '\\')
            fputs("\\\\", stdout);
        else
            putchar(*text);
    }
}

static void list_number(const char *key, int number)
{
    if (number)
        printf("\t%s=%d", key, number);
}

static void list_cases(void)
{
    for (struct test_case *c = first_case; c; c = c->next) {
        const struct test_options *o = c->options;
        printf("%s", c->name);
        list_number("timeout", o->timeout);
        list_text("procs", o->procs);
        list_number("fuzz", o->fuzz);
        list_number("serial", o->serial);
        list_text("env", o->env);
        list_text("expect", o->expect);
        list_text("crash", o->crash);
        list_number("signal", o->signal);
        list_number("status", o->status);
        list_number("soak", o->soak);
        list_text("native", o->native);
        putchar('\n');
    }
}

/* tools/test has set these before exec; this serves a case that is started by hand. */
static void set_environment(const char *env)
{
    if (!env)
        return;
    char *copy = strdup(env), *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) != NULL;) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        setenv(word, value, 1);
    }
    free(copy);
}

#ifdef GORT_FUZZ
int main(int argc, char **argv); /* the build calls it test_main */
#endif

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        list_cases();
        return 0;
    }
    for (struct test_case *c = first_case; argc == 2 && c; c = c->next) {
        if (strcmp(c->name, argv[1]) != 0)
            continue;
        set_environment(c->options->env);
        c->fn();
        return 0;
    }
    fprintf(stderr, "usage: %s --list | CASE\n", argv[0]);
    return EXIT_USAGE;
}

/* ---- messages ---- */

static void write_line(const char *prefix, const char *fmt, va_list ap)
{
    char line[1024];
    int saved = errno;
    int n = snprintf(line, sizeof line, "%s", prefix);
    int m = vsnprintf(line + n, sizeof line - (size_t)n, fmt, ap);
    n = m < (int)sizeof line - n ? n + m : (int)sizeof line - 1;
    line[n < (int)sizeof line - 1 ? n++ : n] = '\n';
    for (int done = 0; done < n;) {
        ssize_t w = write(STDERR_FILENO, line + done, (size_t)(n - done));
        if (w < 0 && errno != EINTR && errno != EAGAIN)
            break;
        done += w > 0 ? (int)w : 0;
    }
    errno = saved;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
    char where[256];
    va_list ap;
    snprintf(where, sizeof where, "%s:%d: failed: ", file, line);
    va_start(ap, fmt);
    write_line(where, fmt, ap);
    va_end(ap);
#ifdef GORT_FUZZ
    abort(); /* libFuzzer keeps the input */
#endif
    _exit(1);
}

void test_skip(const char *file, int line, const char *fmt, ...)
{
    char where[256];
    va_list ap;
    snprintf(where, sizeof where, "%s:%d: skipped: ", file, line);
    va_start(ap, fmt);
    write_line(where, fmt, ap);
    va_end(ap);
    _exit(EXIT_SKIPPED);
}

void test_log(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    write_line("", fmt, ap);
    va_end(ap);
}

void test_check_str(const char *file, int line, const char *a_text, const char *a, const char *b_text,
                    const char *b)
{
    if (a == b || (a && b && strcmp(a, b) == 0))
        return;
    test_fail(file, line, "CHECK_STR(%s, %s): \"%s\" against \"%s\"", a_text, b_text, a ? a : "(null)",
              b ? b : "(null)");
}

/* ---- randomness ---- */

uint64_t test_seed(void)
{
    static uint64_t seed; /* 0 until chosen; several threads may race to choose, one wins. */
    uint64_t now = __atomic_load_n(&seed, __ATOMIC_RELAXED);
    if (now)
        return now;
    const char *text = getenv("TEST_SEED");
    uint64_t mine = text ? strtoull(text, NULL, 0) : 0;
    if (!mine && getrandom(&mine, sizeof mine, 0) != (ssize_t)sizeof mine)
        mine = (uint64_t)getpid();
    mine = mine ? mine : 1;
    if (!__atomic_compare_exchange_n(&seed, &now, mine, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return now;
    test_log("seed: TEST_SEED=%llu", (unsigned long long)mine);
    return mine;
}

uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* ---- /proc/self ---- */

/* The number after "Key:" in /proc/self/status. */
static long status_number(const char *key)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, key);
    return at ? strtol(at + strlen(key), NULL, 10) : -1;
}

int test_thread_count(void)
{
    return (int)status_number("\nThreads:");
}

long test_rss_kb(void)
{
    return status_number("\nVmRSS:");
}

int test_fd_count(void)
{
    DIR *dir = opendir("/proc/self/fd");
    if (!dir)
        return -1;
    int n = 0;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n - 1;
}

int test_socket_option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    CHECK_EQ(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

int test_vma_count(void)
{
    char text[4096];
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC), lines = 0;
    if (fd < 0)
        return -1;
    for (ssize_t n; (n = read(fd, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < n; i++)
            lines += text[i] == '\n';
    }
    close(fd);
    return lines;
}

/* ---- surroundings ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER true
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER false
#endif

bool test_under_sanitizer(void)
{
    return UNDER_SANITIZER;
}

bool test_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return getenv("TEST_VALGRIND") || (preload && strstr(preload, "vgpreload"));
}

bool test_under_emulator(void)
{
    return getenv("TEST_EMULATOR") != NULL;
}

/* gcc's ThreadSanitizer gives up at 8,128 threads, of which each goroutine that has run is one for it. */
long test_most_goroutines(void)
{
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
    return 8000;
#else
    return LONG_MAX;
#endif
}

long test_scaled(long n, long least)
{
    const char *text = getenv("TEST_DIVISOR");
    long divisor = text ? strtol(text, NULL, 10) : 0;
    if (divisor < 1)
        divisor = test_under_valgrind() ? 50 : test_under_emulator() ? 20 : test_under_sanitizer() ? 10 : 1;
    return n / divisor > least ? n / divisor : least;
}

int64_t test_seconds(int n)
{
    const char *scale = getenv("TEST_TIMEOUT_SCALE"), *limit = getenv("TEST_LIMIT");
    double seconds = n * (scale ? strtod(scale, NULL) : 1),
           most = limit ? strtod(limit, NULL) * 5 / 6 : seconds;
    return (int64_t)((seconds < most ? seconds : most) * 1e9);
}

bool test_eventually(bool (*fn)(void *), void *arg, int seconds)
{
    for (int i = 0; i < seconds * 1000; i++) {
        if (fn(arg))
            return true;
        usleep(1000);
    }
    return fn(arg);
}

void test_debug(const char *setting)
{
    const char *old = getenv("GORT_DEBUG");
    char text[256];
    snprintf(text, sizeof text, "%s%s%s", old ? old : "", old && *old ? "," : "", setting);
    setenv("GORT_DEBUG", text, 1);
}
