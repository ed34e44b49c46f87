/* SPDX-License-Identifier: MIT */
/*
 * cgroup.c - the CPU limit that control groups put on this process.
 *
 * Why: a limit on any ancestor binds all groups below it, so one must walk from our group up to the root
 * of what we can see and take the tightest. Two questions lead there:
 *
 *      /proc/self/cgroup      which group are we in?   0::/a/b            (v2: one hierarchy)
 *                                                      4:cpu,cpuacct:/a/b (v1: one for each controller)
 *      /proc/self/mountinfo   where can we see it?     ... /a /sys/fs/cgroup ... - cgroup2 ...
 *                                                          |  `- mount point
 *                                                          `- the group that the mount point shows
 *
 * Here /sys/fs/cgroup shows group /a, so ours is the directory /sys/fs/cgroup/b, and its limits are
 * in b and in the mount point itself; what lies above /a is hidden from us.
 * A group outside of a cgroup namespace is named from the namespace's root with "/..". A mount of
 * "/../.." therefore shows an ancestor of the group "/b", but the names in between are not known:
 * then only the mount point is read. A group that is not below the mount is not looked for.
 * Hybrid systems have both versions; every mount that shows our group is asked, the tightest wins.
 *
 * Approach: no allocation and no stdio (this runs at the start of a run and now and then by sysmon);
 * about 24 KiB of stack; whatever is missing, too long or malformed is treated as "no limit here".
 * Threads: any; no state.
 */
#include "os/linux/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"

#define LINE_SIZE (2 * PATH_MAX)

/* Lines of a file, through a small buffer. */
struct reader {
    int fd;
    size_t at, end; /* unread bytes of buf */
    char buf[1024];
};

/* Everything that needs room, in one place so that its sum can be seen. */
struct search {
    const char *root;
    int limit;
    char v1[PATH_MAX], v2[PATH_MAX]; /* our group in each hierarchy; "" when there is none */
    char path[PATH_MAX];             /* a directory, then a file in it */
    char line[LINE_SIZE];
    struct reader in;
};
_Static_assert(sizeof(struct search) < 32 * 1024, "lies on a thread's stack");

static void find_groups(struct search *s);
static void look_at_mount(struct search *s);
static bool open_lines(struct search *s, const char *file);
static bool next_line(struct search *s);

int gort__cgroup_cpus(const char *root)
{
    struct search s;
    s.root = root;
    s.limit = INT_MAX;
    s.v1[0] = s.v2[0] = 0;
    find_groups(&s);
    if ((s.v1[0] || s.v2[0]) && open_lines(&s, "/proc/self/mountinfo")) {
        while (next_line(&s))
            look_at_mount(&s);
        close(s.in.fd);
    }
    return s.limit;
}

/* Is word one of the items of a comma list? */
static bool list_has(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *item = list; *item;) {
        size_t len = strcspn(item, ",");
        if (len == n && memcmp(item, word, n) == 0)
            return true;
        item += len + (item[len] == ',');
    }
    return false;
}

/* "number:controllers:path"; a path may contain colons. */
static void find_groups(struct search *s)
{
    if (!open_lines(s, "/proc/self/cgroup"))
        return;
    while (next_line(s)) {
        char *list = strchr(s->line, ':');
        char *group = list ? strchr(list + 1, ':') : NULL;
        if (!group || group[1] != '/')
            continue;
        *list++ = 0;
        *group++ = 0;
        size_t size = strlen(group) + 1;
        if (size > PATH_MAX)
            continue;
        if (strcmp(s->line, "0") == 0 && list[0] == 0)
            memcpy(s->v2, group, size);
        else if (list_has(list, "cpu"))
            memcpy(s->v1, group, size);
    }
    close(s->in.fd);
}

/* Undoes the kernel's \ooo for blanks, line ends and backslashes, in place. */
static void unescape(char *text)
{
    char *out = text;
    for (const char *in = text; *in; out++) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' && in[3] >= '0' &&
            in[3] <= '7') {
            *out = (char)((in[1] - '0') * 64 + (in[2] - '0') * 8 + (in[3] - '0'));
            in += 4;
        } else {
            *out = *in++;
        }
    }
    *out = 0;
}

/* Cuts the next field off; blanks inside of fields are escaped, and two in a row enclose an empty one. */
static char *next_field(char **rest)
{
    char *field = *rest;
    if (field) {
        char *blank = strchr(field, ' ');
        if (blank)
            *blank++ = 0;
        *rest = blank;
    }
    return field;
}

/* How many "/.." a group's path starts with. */
static size_t climbs(const char *group)
{
    size_t n = 0;
    while (strncmp(group, "/..", 3) == 0 && (group[3] == '/' || group[3] == 0)) {
        group += 3;
        n++;
    }
    return n;
}

/* Where below a mount of group `top` our group lies: "" for the mount point itself, NULL for nowhere. */
static const char *below(const char *group, const char *top)
{
    size_t n = strlen(top);
    while (n && top[n - 1] == '/')
        n--;
    if (strncmp(group, top, n) == 0 && (group[n] == '/' || group[n] == 0)) {
        const char *rest = group + n;
        if (climbs(rest) == 0)
            return strcmp(rest, "/") == 0 ? "" : rest;
    }
    /* An ancestor of the namespace, with names in between that we cannot know. */
    return n == 3 * climbs(top) && climbs(group) < climbs(top) ? "" : NULL;
}

static bool add_to_path(struct search *s, size_t *len, const char *text)
{
    size_t n = strlen(text);
    if (n >= sizeof s->path - *len)
        return false;
    memcpy(s->path + *len, text, n + 1);
    *len += n;
    return true;
}

/* Reads a small file of the directory that is in path (len bytes) and leaves path as it was. */
static bool read_small(struct search *s, size_t len, const char *file, char *buf, size_t size)
{
    size_t end = len;
    int fd = add_to_path(s, &end, file) ? open(s->path, O_RDONLY | O_CLOEXEC) : -1;
    s->path[len] = 0;
    if (fd < 0)
        return false;
    ssize_t n = read(fd, buf, size - 1);
    close(fd);
    if (n <= 0 || (size_t)n == size - 1) /* what fills the buffer is not the file that we expect */
        return false;
    buf[n] = 0;
    return true;
}

/* A decimal number that something other than a digit ends; where it ended, or NULL. */
static const char *number(const char *text, uint64_t *out)
{
    uint64_t v = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (v > (UINT64_MAX - 9) / 10)
            return NULL;
        v = v * 10 + (uint64_t)(*c - '0');
    }
    *out = v;
    return c == text ? NULL : c;
}

static bool ends(const char *c)
{
    return c && (c[0] == 0 || (c[0] == '\n' && c[1] == 0));
}

/* quota microseconds of CPU time in each period. v2 writes "max" and v1 -1 for no limit: no numbers. */
static void read_limit(struct search *s, size_t len, bool v2)
{
    char buf[64];
    uint64_t quota, period;
    const char *c;
    if (v2) {
        if (!read_small(s, len, "/cpu.max", buf, sizeof buf))
            return;
        c = number(buf, &quota);
        if (!c || *c != ' ' || !ends(number(c + 1, &period)))
            return;
    } else {
        if (!read_small(s, len, "/cpu.cfs_quota_us", buf, sizeof buf) || !ends(number(buf, &quota)))
            return;
        if (!read_small(s, len, "/cpu.cfs_period_us", buf, sizeof buf) || !ends(number(buf, &period)))
            return;
    }
    if (quota == 0 || period == 0)
        return;
    /* Rounding up keeps the order, so the tightest of the rounded limits is the tightest one rounded. */
    uint64_t cpus = quota / period + (quota % period != 0);
    if (cpus < (uint64_t)s->limit)
        s->limit = (int)cpus;
}

/* From our group's directory up to the mount point. */
static void walk_up(struct search *s, const char *point, const char *rest, bool v2)
{
    size_t len = 0;
    if (!add_to_path(s, &len, s->root) || !add_to_path(s, &len, strcmp(point, "/") == 0 ? "" : point))
        return;
    size_t top = len;
    if (!add_to_path(s, &len, rest))
        return;
    for (;;) {
        read_limit(s, len, v2);
        if (len <= top)
            return;
        while (len > top && s->path[len - 1] != '/')
            len--;
        while (len > top && s->path[len - 1] == '/')
            len--;
        s->path[len] = 0;
    }
}

/* "id parent major:minor root point options [tags] - type source super-options" */
static void look_at_mount(struct search *s)
{
    char *rest = s->line, *fields[6];
    for (int i = 0; i < 6; i++)
        fields[i] = next_field(&rest);
    char *tag = next_field(&rest);
    while (tag && strcmp(tag, "-") != 0)
        tag = next_field(&rest);
    const char *type = next_field(&rest);
    (void)next_field(&rest); /* the source is free text */
    const char *super = next_field(&rest);
    if (!type || !super)
        return;
    bool v2 = strcmp(type, "cgroup2") == 0;
    if (!v2 && !(strcmp(type, "cgroup") == 0 && list_has(super, "cpu")))
        return;
    const char *group = v2 ? s->v2 : s->v1;
    if (!group[0])
        return;
    unescape(fields[3]);
    unescape(fields[4]);
    const char *where = below(group, fields[3]);
    if (where)
        walk_up(s, fields[4], where, v2);
}

static bool open_lines(struct search *s, const char *file)
{
    size_t len = 0;
    if (!add_to_path(s, &len, s->root) || !add_to_path(s, &len, file))
        return false;
    s->in.at = s->in.end = 0;
    s->in.fd = open(s->path, O_RDONLY | O_CLOEXEC);
    return s->in.fd >= 0;
}

static bool fill(struct reader *in)
{
    ssize_t n;
    do
        n = read(in->fd, in->buf, sizeof in->buf);
    while (n < 0 && errno == EINTR);
    in->at = 0;
    in->end = n > 0 ? (size_t)n : 0;
    return n > 0;
}

/* The next line into line, without its end; lines that do not fit are left out. False at the end. */
static bool next_line(struct search *s)
{
    struct reader *in = &s->in;
    size_t len = 0;
    bool fits = true;
    for (;;) {
        if (in->at == in->end && !fill(in)) {
            s->line[len] = 0;
            return fits && len > 0;
        }
        char c = in->buf[in->at++];
        if (c == '\n' && fits) {
            s->line[len] = 0;
            return true;
        }
        if (c == '\n') {
            len = 0;
            fits = true;
        } else if (len < sizeof s->line - 1) {
            s->line[len++] = c;
        } else {
            fits = false;
        }
    }
}
