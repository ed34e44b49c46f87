/* SPDX-License-Identifier: MIT */
/*
 * fmt.h - formatting without stdio.
 *
 * Why: messages are written at the worst moments (in signal handlers, while somebody holds stdio's
 * lock or malloc's), so the runtime formats into a buffer of its own and calls write.
 */
#ifndef GORT_SRC_BASE_FMT_H
#define GORT_SRC_BASE_FMT_H

#include <stdarg.h>

#include "base/compiler.h"

/* Like snprintf with %s %c %d %u %ld %lu %lld %llu %zu %x %lx %p %%, widths (left and right) and no
 * more. Always terminates; returns how much was written. Callable from anywhere. */
size_t gort__fmt(char *buf, size_t size, const char *fmt, ...) GORT_PRINTF(3, 4);
size_t gort__fmt_v(char *buf, size_t size, const char *fmt, va_list args);

/* Writes all of it to fd, whatever interrupts; gives up on errors. Callable from anywhere. */
void gort__fmt_write(int fd, const char *text, size_t len);
/* Formats one piece of up to 512 bytes and writes it to fd. */
void gort__fmt_print(int fd, const char *fmt, ...) GORT_PRINTF(2, 3);

#endif
