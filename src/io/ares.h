/* SPDX-License-Identifier: MIT */
/* ares.h - host names with c-ares, for dns.c. */
#ifndef GORT_SRC_IO_ARES_H
#define GORT_SRC_IO_ARES_H

#include "io/net.h"

#ifndef GORT_CARES
#define GORT_CARES 0 /* set by the build when c-ares is there */
#endif

struct gort__ares_question {
    const char *host, *service; /* service may be NULL */
    int family, type, n;
};

/* How many addresses, or -errno. In a run; may park. */
int gort__ares_ask(const struct gort__ares_question *q, struct gort__addr *out, int64_t deadline);

#endif
