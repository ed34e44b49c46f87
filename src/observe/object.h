/* SPDX-License-Identifier: MIT */
/* object.h - what a parked goroutine waits for, and since when: for reports. */
#ifndef GORT_SRC_OBSERVE_OBJECT_H
#define GORT_SRC_OBSERVE_OBJECT_H

#include "observe/observe.h"

/* Since when it waits, roughly; 0: it does not, or nobody knows. */
int64_t gort__object_since(const struct gort__g *g);
/* What it waits for: its address, or for an fd its entry; NULL: nothing of that kind. */
const void *gort__object_of(const struct gort__g *g);
/* "channel 0x7f.. (3 of 8 elements, 2 receivers wait)"; 0: nothing is known. */
size_t gort__object_describe(enum gort__reason reason, const void *object, char *to, size_t size);
/* "3.2 s" */
size_t gort__object_time(int64_t ns, char *to, size_t size);

#endif
