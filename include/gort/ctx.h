/* SPDX-License-Identifier: MIT */
/*
 * gort/ctx.h - contexts: deadlines and cancellation for a tree of goroutines.
 *
 * A goroutine may have one context in use. The goroutines that it starts inherit it. Contexts form trees: one
 * that is made with a parent ends when the parent ends. A context ends when it is cancelled or its deadline
 * passes. From then on, in every goroutine that has it in use:
 *
 * - Calls that wait for a channel, a select, time, I/O or a child process return -ECANCELED or -ETIMEDOUT,
 *   those that are waiting at that moment included. So do gort_pool_submit_until and the forms with _until of
 *   gort/sync.h, also with the deadline GORT_FOREVER. What can happen without waiting still happens.
 * - The plain forms of gort/sync.h and gort/group.h, and gort_timer_stop_wait, do not end early: code that
 *   ignores their results stays correct. (gort_group_go obeys the context of the group.)
 *
 * None of the functions below parks. To use a context after its last reference is gone is fatal as long as
 * its memory has not been used again.
 */
#ifndef GORT_CTX_H
#define GORT_CTX_H

#include "base.h"
#include "chan.h"
#include "time.h"

GORT_BEGIN_DECLS

typedef struct gort_ctx gort_ctx;

/*
 * Returns a new context with one reference, below parent (NULL: no parent). deadline is GORT_FOREVER for
 * none; an earlier deadline of an ancestor counts instead. Returns NULL if there is no memory.
 */
GORT_API gort_ctx *gort_ctx_new(gort_ctx *parent, int64_t deadline);
/*
 * Takes a reference and returns ctx; drops a reference, which does not cancel the context. NULL does nothing.
 */
GORT_API gort_ctx *gort_ctx_ref(gort_ctx *ctx);
GORT_API void gort_ctx_unref(gort_ctx *ctx);

/*
 * Cancels the context and its descendants. gort_ctx_err returns -|err| from then on, or -ECANCELED if err is
 * 0. A context that has ended already keeps its error.
 */
GORT_API void gort_ctx_cancel(gort_ctx *ctx, int err);
/*
 * Returns 0 while the context has not ended, and for NULL; else why it ended: -ETIMEDOUT or the error of
 * cancel.
 */
GORT_API int gort_ctx_err(const gort_ctx *ctx);
/*
 * Returns a channel that is closed when the context ends, for use in a select. It lives as long as the
 * context; do not drop a reference to it. Returns NULL if there is no memory, or if ctx is NULL.
 */
GORT_API gort_chan *gort_ctx_done(gort_ctx *ctx);

/*
 * The caller uses ctx from now on (NULL: none). Returns the context that it used before. gort takes no
 * reference for the caller, who must keep one while it uses ctx; goroutines started meanwhile hold references
 * of their own. Outside a run it does nothing and returns NULL.
 */
GORT_API gort_ctx *gort_ctx_use(gort_ctx *ctx);
/* Returns the context that the caller uses; NULL: none. */
GORT_API gort_ctx *gort_ctx_current(void);

GORT_END_DECLS
#endif
