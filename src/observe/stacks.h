/* SPDX-License-Identifier: MIT */
/* stacks.h - the calls of a goroutine, whatever it does: what stacks.c finds out for reports. */
#ifndef GORT_SRC_OBSERVE_STACKS_H
#define GORT_SRC_OBSERVE_STACKS_H

#include "os/walk.h"
#include "observe/observe.h"

/* What *out tells, or why it tells nothing. */
enum gort__stacks_said {
    GORT__STACKS_FRESH,  /* it has not run yet */
    GORT__STACKS_KNOWN,  /* its calls */
    GORT__STACKS_MOVED,  /* it went on while its stack was looked at */
    GORT__STACKS_SILENT, /* its thread computes, and does not take the signal */
};

/* One report's looks at stacks. */
struct gort__stacks {
    /* The goroutine that asks, or that the handler which asks has met; NULL: none. */
    const struct gort__g *self;
    const struct gort__stack_calls *here; /* its calls */
    int64_t budget;                       /* ns that may still be spent on waiting for threads */
};

/* here: where the calls of self are put; not the innermost ones up to the one that returns to `caller`. */
void gort__stacks_begin(struct gort__stacks *s, struct gort__stack_calls *here, const void *caller);
/* The goroutine whose code the signal met on m's thread, and its calls; NULL: none. In its handler. */
const struct gort__g *gort__stacks_signal(struct gort__m *m, const void *context,
                                          struct gort__stack_calls *out);
/* The return address of the call that started it, NULL: gort started it. */
const void *gort__stacks_site(const struct gort__g *g);
enum gort__stacks_said gort__stacks_take(struct gort__stacks *s, const struct gort__g *g,
                                         struct gort__stack_calls *out);

/* report.c: prints them, and where the goroutine was started. */
void gort__report_calls(int fd, const struct gort__stack_calls *calls, const void *site);

#endif
