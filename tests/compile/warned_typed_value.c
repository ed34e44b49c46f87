/* SPDX-License-Identifier: MIT */
/*
 * warned_typed_value.c - a value where a typed channel wants its address.
 * Covers: include/gort/typed.h
 */
#include <gort.h>

GORT_CHAN_DEFINE(lines, char *);

int put(lines *out, char *line);
int put(lines *out, char *line)
{
#ifdef GOOD
    return lines_send(out, &line);
#else
    return lines_send(out, line);
#endif
}
