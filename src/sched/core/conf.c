/* SPDX-License-Identifier: MIT */
/*
 * conf.c - how a run is set up: defaults, then the program's gort_config, then the environment.
 *
 * Why two kinds of mistakes: a bad gort_config is a bug of the program, so the run does not start
 * (-EINVAL). A bad environment variable is a slip of whoever types it, and must not take a service
 * down: it is said and ignored.
 * Why own parsers: strtol accepts blanks, signs and trailing text, depends on the locale and reports
 * through errno. Here a value is right to its last character or wrong.
 * GORT_DEBUG is driven by one table; a new switch is a field in conf.h and a line in `switches`.
 * Invariants: *out always has a usable value in each field when 0 is returned.
 * Threads: one caller at a time (conf.h), which is what guards `said`.
 */
#include "sched/core/conf.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/fatal.h"
#include "base/fmt.h"
#include "mem/sanitize.h"
#include "os/force.h"
#include "os/os.h"

#define DAY_MS 86400000

enum kind {
    SWITCH, /* 0 or 1, into a bool */
    COUNT,  /* 0 .. a day of milliseconds, into an int */
    ON_OFF, /* "on" clears a bool, "off" sets it */
    FATAL,  /* "fatal" sets a bool, "wait" clears it */
    SEED,   /* 64 bits, decimal or 0x...: fuzz_seed, and fuzz with it */
};

static const struct {
    const char *name;
    enum kind kind;
    size_t field;
} switches[] = {
    {"schedtrace", COUNT, offsetof(struct gort__conf, schedtrace_ms)},
    {"scheddetail", SWITCH, offsetof(struct gort__conf, scheddetail)},
    {"preempt", ON_OFF, offsetof(struct gort__conf, preempt_off)},
    {"schedfuzz", SEED, offsetof(struct gort__conf, fuzz_seed)},
    {"idle", COUNT, offsetof(struct gort__conf, idle_ms)},
    {"limits", COUNT, offsetof(struct gort__conf, limits_ms)},
    {"threads", FATAL, offsetof(struct gort__conf, threads_fatal)},
    {"stackcensus", SWITCH, offsetof(struct gort__conf, stackcensus)},
    {"noguard", SWITCH, offsetof(struct gort__conf, noguard)},
    {"canary", SWITCH, offsetof(struct gort__conf, canary)},
    {"nopagescan", SWITCH, offsetof(struct gort__conf, nopagescan)},
    {"nomembarrier", SWITCH, offsetof(struct gort__conf, nomembarrier)},
    {"nopwait2", SWITCH, offsetof(struct gort__conf, nopwait2)},
    {"notimerfd", SWITCH, offsetof(struct gort__conf, notimerfd)},
};
#define SWITCHES (sizeof switches / sizeof switches[0])

static const char *const wanted[] = {
    [SWITCH] = "is not 0 or 1",
    [COUNT] = "is not a number of milliseconds from 0 to 86400000",
    [ON_OFF] = "is not on or off",
    [FATAL] = "is not fatal or wait",
    [SEED] = "is not a number of 64 bits",
};

/* Signals that may be ours by name. Faults, aborts and what cannot be caught are not among them. */
static const struct {
    const char *name;
    int signo;
} signals[] = {
    {"HUP", SIGHUP},   {"INT", SIGINT},       {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},   {"USR2", SIGUSR2},
    {"PIPE", SIGPIPE}, {"ALRM", SIGALRM},     {"TERM", SIGTERM}, {"CHLD", SIGCHLD},   {"CONT", SIGCONT},
    {"TSTP", SIGTSTP}, {"TTIN", SIGTTIN},     {"TTOU", SIGTTOU}, {"URG", SIGURG},     {"XCPU", SIGXCPU},
    {"XFSZ", SIGXFSZ}, {"VTALRM", SIGVTALRM}, {"PROF", SIGPROF}, {"WINCH", SIGWINCH}, {"IO", SIGIO},
    {"POLL", SIGIO},   {"PWR", SIGPWR},
};
#define SIGNALS (sizeof signals / sizeof signals[0])

static int load_user(struct gort__conf *c, const gort_config *user);
static void load_environment(struct gort__conf *c);

int gort__conf_load(struct gort__conf *out, const gort_config *user)
{
    struct gort__conf c = {
        .stack_size = GORT_CONF_STACK,
        .signal = SIGURG,
        .max_threads = GORT_CONF_MAX_THREADS,
        .idle_ms = GORT_CONF_IDLE_MS,
        .limits_ms = GORT_CONF_LIMITS_MS,
    };
    int error = user ? load_user(&c, user) : 0;
    if (error)
        return error;
    load_environment(&c);
    if (!c.maxprocs_set) {
        int cpus = gort__os_cpus();
        c.maxprocs = cpus < GORT_MAXPROCS_MAX ? cpus : GORT_MAXPROCS_MAX;
    }
    /* It does not know some calls: it complains, or takes their answers for garbage. */
    bool valgrind = gort__sanitize_valgrind();
    gort__os_force.no_guard_install = c.noguard || valgrind;
    gort__os_force.no_guard = c.canary;
    gort__os_force.no_pagemap_scan = c.nopagescan || valgrind;
    gort__os_force.no_membarrier = c.nomembarrier;
    gort__os_force.no_epoll_pwait2 = c.nopwait2 || valgrind;
    gort__os_force.no_timerfd = c.notimerfd;
    gort__os_force.no_pidfd |= valgrind;
    gort__store(&gort__os_force.no_altstack, valgrind, RELAXED); /* os/linux/signal.c */
    *out = c;
    return 0;
}

static bool signal_usable(uint64_t signo)
{
    /* The first real-time signals belong to libc; it starts its range behind them. */
    if (signo >= (uint64_t)SIGRTMIN && signo <= (uint64_t)SIGRTMAX)
        return true;
    for (size_t i = 0; i < SIGNALS; i++)
        if ((uint64_t)signals[i].signo == signo)
            return true;
    return false;
}

static int load_user(struct gort__conf *c, const gort_config *user)
{
    uintptr_t reserved = (uintptr_t)user->reserved_int;
    for (size_t i = 0; i < sizeof user->reserved / sizeof user->reserved[0]; i++)
        reserved |= user->reserved[i];
    if (reserved || user->maxprocs < 0 || user->max_threads < 0 || user->signal < 0)
        return -EINVAL;
    if (user->signal && !signal_usable((uint64_t)user->signal))
        return -EINVAL;
    if (user->stack_size > GORT_CONF_STACK_MAX)
        return -EINVAL;

    if (user->maxprocs) {
        c->maxprocs = user->maxprocs < GORT_MAXPROCS_MAX ? user->maxprocs : GORT_MAXPROCS_MAX;
        c->maxprocs_set = true;
    }
    if (user->stack_size)
        c->stack_size = user->stack_size > GORT_CONF_STACK_MIN ? user->stack_size : GORT_CONF_STACK_MIN;
    if (user->signal)
        c->signal = user->signal;
    if (user->max_threads)
        c->max_threads = user->max_threads;
    return 0;
}

/* --- complaints ------------------------------------------------------------------------------- */

/* Says "head text why: ignored", unless these very words were said before in this process. Words are
 * remembered by their hash; a collision or a full table only loses a complaint. */
static void complain(const char *head, const char *text, size_t len, const char *why)
{
    static uint64_t said[32];
    char value[80], message[256];
    size_t n = len < sizeof value ? len : sizeof value - 1;
    memcpy(value, text, n);
    value[n] = 0;
    if (n < len)
        memcpy(value + n - 3, "...", 3);
    size_t size = gort__fmt(message, sizeof message, "%s%s %s: ignored", head, value, why);

    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)message[i]) * UINT64_C(0x100000001b3);
    hash |= 1; /* 0 marks a free place */
    for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
        if (said[i] == hash)
            return;
        if (said[i] == 0) {
            said[i] = hash;
            gort__warn("%s", message);
            return;
        }
    }
}

/* --- values: each parser takes all of the len characters or fails ------------------------------ */

static int digit(char c, unsigned base)
{
    int v = c >= '0' && c <= '9'                     ? c - '0'
            : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                     : 99;
    return v < (int)base ? v : -1;
}

static bool number(const char *text, size_t len, unsigned base, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < len; i++) {
        int d = digit(text[i], base);
        if (d < 0 || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, (uint64_t)d, &v))
            return false;
    }
    *out = v;
    return len > 0 && v <= max;
}

static bool is(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(text, word, len) == 0;
}

/* Bytes, or K, M and G of them. */
static bool size_value(const char *text, size_t len, uint64_t *out)
{
    unsigned shift = 0;
    switch (len ? text[len - 1] | 0x20 : 0) {
    case 'k':
        shift = 10;
        break;
    case 'm':
        shift = 20;
        break;
    case 'g':
        shift = 30;
        break;
    default:
        break;
    }
    if (!number(text, len - (shift != 0), 10, UINT64_MAX >> shift, out))
        return false;
    *out <<= shift;
    return *out >= GORT_CONF_STACK_MIN && *out <= GORT_CONF_STACK_MAX;
}

/* 23, URG, SIGURG, RTMIN+3 or RTMAX-1. */
static bool signal_value(const char *text, size_t len, uint64_t *out)
{
    if (number(text, len, 10, INT32_MAX, out))
        return signal_usable(*out);
    if (len > 3 && memcmp(text, "SIG", 3) == 0) {
        text += 3;
        len -= 3;
    }
    for (size_t i = 0; i < SIGNALS; i++)
        if (is(text, len, signals[i].name)) {
            *out = (uint64_t)signals[i].signo;
            return true;
        }
    uint64_t span = (uint64_t)(SIGRTMAX - SIGRTMIN), offset = 0;
    bool from_min = len >= 5 && memcmp(text, "RTMIN", 5) == 0,
         from_max = len >= 5 && memcmp(text, "RTMAX", 5) == 0;
    if (!from_min && !from_max)
        return false;
    if (len > 5 && (text[5] != (from_min ? '+' : '-') || !number(text + 6, len - 6, 10, span, &offset)))
        return false;
    *out = from_min ? (uint64_t)SIGRTMIN + offset : (uint64_t)SIGRTMAX - offset;
    return true;
}

/* --- the environment -------------------------------------------------------------------------- */

static bool set_switch(struct gort__conf *c, enum kind kind, size_t at, const char *text, size_t len)
{
    char *field = (char *)c + at;
    uint64_t v;
    bool on = is(text, len, "on"), fatal = is(text, len, "fatal"), hex;
    switch (kind) {
    case SWITCH:
        if (!number(text, len, 10, 1, &v))
            return false;
        *(bool *)field = v;
        return true;
    case COUNT:
        if (!number(text, len, 10, DAY_MS, &v))
            return false;
        *(int *)(void *)field = (int)v;
        return true;
    case ON_OFF:
        if (!on && !is(text, len, "off"))
            return false;
        *(bool *)field = !on;
        return true;
    case FATAL:
        if (!fatal && !is(text, len, "wait"))
            return false;
        *(bool *)field = fatal;
        return true;
    case SEED:
        hex = len > 2 && text[0] == '0' && (text[1] | 0x20) == 'x';
        if (!number(text + 2 * hex, len - 2 * hex, hex ? 16 : 10, UINT64_MAX, &v))
            return false;
        *(uint64_t *)(void *)field = v;
        c->fuzz = true;
        return true;
    }
    return false;
}

/* One "name=value" of GORT_DEBUG. */
static void load_switch(struct gort__conf *c, const char *item, size_t len)
{
    const char *equals = memchr(item, '=', len);
    size_t name = equals ? (size_t)(equals - item) : len;
    for (size_t i = 0; i < SWITCHES; i++) {
        if (!is(item, name, switches[i].name))
            continue;
        if (!equals || !set_switch(c, switches[i].kind, switches[i].field, equals + 1, len - name - 1))
            complain("GORT_DEBUG: ", item, len, wanted[switches[i].kind]);
        return;
    }
    complain("GORT_DEBUG: ", item, len, "is not known");
}

/* A variable's value and length; NULL when it is not set or empty. A program with more rights than
 * its user (setuid) does not listen to the user's environment. */
static const char *variable(const char *name, size_t *len)
{
    const char *text = secure_getenv(name);
    *len = text ? strlen(text) : 0;
    return *len ? text : NULL;
}

static void load_environment(struct gort__conf *c)
{
    size_t len;
    uint64_t v;
    const char *text = variable("GORT_MAXPROCS", &len);
    if (text && number(text, len, 10, GORT_MAXPROCS_MAX, &v) && v > 0) {
        c->maxprocs = (int)v;
        c->maxprocs_set = true;
    } else if (text) {
        complain("GORT_MAXPROCS=", text, len, "is not a number from 1 to 1024");
    }
    text = variable("GORT_STACK", &len);
    if (text && size_value(text, len, &v))
        c->stack_size = (size_t)v;
    else if (text)
        complain("GORT_STACK=", text, len, "is not a size from 64K to 1G");
    text = variable("GORT_SIGNAL", &len);
    if (text && signal_value(text, len, &v))
        c->signal = (int)v;
    else if (text)
        complain("GORT_SIGNAL=", text, len, "is not a signal that gort can use");
    text = variable("GORT_DEBUG", &len);
    while (text && *text) {
        size_t item = strcspn(text, ",");
        if (item)
            load_switch(c, text, item);
        text += item + (text[item] == ',');
    }
}
