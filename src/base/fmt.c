/* SPDX-License-Identifier: MIT */
/*
 * fmt.c - formatting without stdio.
 *
 * Why: see fmt.h. The formatter knows just the conversions that our messages use; an unknown one
 * is copied as it stands, so a mistake shows in the text instead of reading a wrong argument.
 * Threads: no shared state; callable from anywhere, signal handlers included.
 */
#include "base/fmt.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct out {
    char *buf;
    size_t size, len; /* len counts only what fits */
};

static void put(struct out *o, char c)
{
    if (o->len + 1 < o->size)
        o->buf[o->len++] = c;
}

static void put_padded(struct out *o, const char *s, size_t n, size_t width, bool left)
{
    size_t pad = width > n ? width - n : 0;
    for (; !left && pad; pad--)
        put(o, ' ');
    for (size_t i = 0; i < n; i++)
        put(o, s[i]);
    for (; pad; pad--)
        put(o, ' ');
}

static void put_number(struct out *o, uint64_t v, bool negative, unsigned base, size_t width, bool left)
{
    char digits[24];
    size_t n = sizeof digits;
    do
        digits[--n] = "0123456789abcdef"[v % base];
    while ((v /= base) != 0);
    if (negative)
        digits[--n] = '-';
    put_padded(o, digits + n, sizeof digits - n, width, left);
}

static void put_signed(struct out *o, int64_t v, size_t width, bool left)
{
    put_number(o, v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0, 10, width, left);
}

/* One conversion, after its '%'; returns the place behind it. */
static const char *convert(struct out *o, const char *f, va_list *args)
{
    bool left = *f == '-';
    if (left)
        f++;
    size_t width = 0;
    for (; *f >= '0' && *f <= '9'; f++)
        width = width * 10 + (size_t)(*f - '0');
    int longs = 0;
    for (; *f == 'l' || *f == 'z'; f++)
        longs++;
    switch (*f) {
    case 's': {
        const char *s = va_arg(*args, const char *);
        if (!s)
            s = "(null)";
        put_padded(o, s, strlen(s), width, left);
        break;
    }
    case 'c':
        put(o, (char)va_arg(*args, int));
        break;
    case 'd':
        put_signed(o, longs ? va_arg(*args, long) : va_arg(*args, int), width, left);
        break;
    case 'u':
        put_number(o, longs ? va_arg(*args, unsigned long) : va_arg(*args, unsigned), false, 10, width, left);
        break;
    case 'x':
        put_number(o, longs ? va_arg(*args, unsigned long) : va_arg(*args, unsigned), false, 16, width, left);
        break;
    case 'p':
        put(o, '0');
        put(o, 'x');
        put_number(o, (uintptr_t)va_arg(*args, void *), false, 16, width, left);
        break;
    case '\0':
        return f;
    default:
        put(o, *f);
    }
    return f + 1;
}

size_t gort__fmt_v(char *buf, size_t size, const char *fmt, va_list args)
{
    struct out o = {buf, size, 0};
    va_list copy;
    va_copy(copy, args);
    for (const char *f = fmt; *f;) {
        if (*f == '%')
            f = convert(&o, f + 1, &copy);
        else
            put(&o, *f++);
    }
    va_end(copy);
    if (size)
        buf[o.len] = '\0';
    return o.len;
}

size_t gort__fmt(char *buf, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    size_t n = gort__fmt_v(buf, size, fmt, args);
    va_end(args);
    return n;
}

void gort__fmt_write(int fd, const char *text, size_t len)
{
    int saved = errno;
    while (len) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR)
            break;
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    errno = saved;
}

void gort__fmt_print(int fd, const char *fmt, ...)
{
    char buf[512];
    va_list args;
    va_start(args, fmt);
    size_t n = gort__fmt_v(buf, sizeof buf, fmt, args);
    va_end(args);
    gort__fmt_write(fd, buf, n);
}
