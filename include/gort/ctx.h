/* SPDX-License-Identifier: MIT */
/*
 * gort/ctx.h - contexts: deadlines and cancellation for a tree of goroutines.
 *
 * A goroutine may have one context in use; the goroutines it starts inherit it. When the context is
 * cancelled or its deadline passes, every call that would wait returns -ECANCELED or -ETIMEDOUT, in
 * every goroutine that has it or a descendant of it in use (plain mutex and rwmutex locks aside).
 * What can happen at once still happens.
 */
#ifndef GORT_CTX_H
#define GORT_CTX_H

#include "base.h"
#include "chan.h"
#include "time.h"

GORT_BEGIN_DECLS

typedef struct gort_ctx gort_ctx;

/* A context below parent (NULL: a root), with one reference. deadline: GORT_FOREVER for none; a parent's earlier one
 * counts. NULL: no memory. Never parks. */
GORT_API gort_ctx *gort_ctx_new(gort_ctx *parent, int64_t deadline);
GORT_API gort_ctx *gort_ctx_ref(gort_ctx *ctx);
GORT_API void gort_ctx_unref(gort_ctx *ctx); /* does not cancel it. NULL is fine */

/* Cancels it and all below it; err (0: -ECANCELED) is what gort_ctx_err tells. The first one counts. Never parks. */
GORT_API void gort_ctx_cancel(gort_ctx *ctx, int err);
/* 0 while it is neither cancelled nor past its deadline; else the error (negative). */
GORT_API int gort_ctx_err(const gort_ctx *ctx);
/* A channel that is closed then: for select. Borrowed, lives as long as the context. NULL: no memory, or ctx is NULL. */
GORT_API gort_chan *gort_ctx_done(gort_ctx *ctx);

/* The context in use by the calling goroutine from now on (NULL: none); returns the former. Borrowed: the caller
 * keeps it alive while it is in use. The goroutines that are started meanwhile hold their own references. */
GORT_API gort_ctx *gort_ctx_use(gort_ctx *ctx);
/* The one in use. NULL: none. */
GORT_API gort_ctx *gort_ctx_current(void);

GORT_END_DECLS
#endif
