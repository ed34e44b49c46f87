/* SPDX-License-Identifier: MIT */
/*
 * ctx.c - contexts: deadlines and cancellation for a tree of goroutines.
 *
 * Why: cancelling must reach goroutines that wait right now, and cost nothing to those that use no
 * context. So a wait under a context leaves a record with it (wait.c), and cancel claims and
 * wakes whoever it finds there. A deadline needs no timer of its own: each wait under the context
 * uses the earlier of its own deadline and the context's; only the channel of gort_ctx_done, which
 * must be closed by somebody, gets a timer.
 *
 * Two locks: one for the tree (who is whose child), shared by all contexts because it is rarely
 * taken; one a context for the list of those who wait, taken at every wait under it.
 * Invariants: (1) err is set once, and before anybody can see the consequences; (2) a child of a
 * cancelled parent is cancelled: new looks at the parent under the tree lock, cancel walks the
 * children under it.
 * Threads: any.
 */
#include "sched/core/scope.h"

#include <errno.h>

#include <gort/ctx.h>

#include "base/fatal.h"
#include "mem/alloc.h"
#include "sched/timers/timer.h"
#include "sync/chan.h"

struct gort_ctx {
    struct gort__scope scope;      /* its deadline is the earliest of its own and its ancestors' */
    gort_chan *done;               /* guarded by tree */
    struct gort__timer timer;      /* closes done at the deadline; guarded by tree */
    uint64_t timed;                /* the run in which timer was set, 0: none; guarded by tree */
    gort_ctx *parent;              /* a reference; fixed */
    gort_ctx *child, *next, *prev; /* the first child, and the siblings; guarded by tree */
};

static struct gort__lock tree; /* rank GORT_RANK_TREE */

static void lock_tree(void)
{
    gort__lock_take(&tree, GORT_RANK_TREE);
}

static void unlock_tree(void)
{
    gort__lock_release(&tree, GORT_RANK_TREE);
}

static int err_of(const gort_ctx *ctx)
{
    int err = gort__load(&ctx->scope.err, ACQUIRE); /* pairs with gort__scope_cancel */
    if (err || ctx->scope.deadline == GORT_FOREVER || gort__os_now() < ctx->scope.deadline)
        return err;
    return -ETIMEDOUT;
}

static gort_ctx *ctx_of(struct gort__scope *scope)
{
    return GORT_CONTAINER(scope, gort_ctx, scope);
}

static void leave_tree(gort_ctx *ctx)
{
    lock_tree();
    if (ctx->prev)
        ctx->prev->next = ctx->next;
    else if (ctx->parent->child == ctx)
        ctx->parent->child = ctx->next;
    if (ctx->next)
        ctx->next->prev = ctx->prev;
    unlock_tree();
}

/* And the ancestors that only it kept: one after the other, there may be more of them than a stack has room
 * for. */
static void destroy(struct gort__ref *ref)
{
    GORT_ENTER_LIGHT();
    gort_ctx *parent;
    for (gort_ctx *ctx = ctx_of(GORT_CONTAINER(ref, struct gort__scope, ref)); ctx; ctx = parent) {
        parent = ctx->parent;
        if (ctx->timed)
            gort__timer_del(&ctx->timer);
        if (parent)
            leave_tree(ctx);
        gort_chan_unref(ctx->done);
        gort__store(&ctx->scope.ref.destroy, NULL, RELAXED); /* who uses it after this is told */
        gort__alloc_free(ctx, sizeof *ctx);
        if (parent && !gort__ref_give(&parent->scope.ref))
            return;
    }
}

/* Fatal for one that was freed, as far as can be told: see destroy. NULL is for the caller to judge. */
static void check(const gort_ctx *ctx, const char *call)
{
    if (GORT_UNLIKELY(ctx && gort__load(&ctx->scope.ref.destroy, RELAXED) != destroy))
        gort__fatal("%s: use of a freed context, or of a pointer that is not a context", call);
}

gort_ctx *gort_ctx_new(gort_ctx *parent, int64_t deadline)
{
    check(parent, "gort_ctx_new");
    GORT_ENTER_LIGHT();
    gort_ctx *ctx = gort__alloc(sizeof *ctx);
    if (!ctx)
        return NULL;
    *ctx = (gort_ctx){.scope = {.ref = {1, destroy}, .deadline = deadline}, .parent = parent};
    if (!parent)
        return ctx;
    if (parent->scope.deadline < deadline)
        ctx->scope.deadline = parent->scope.deadline;
    gort__ref_take(&parent->scope.ref);
    lock_tree();
    ctx->scope.err = parent->scope.err;
    ctx->next = parent->child;
    if (ctx->next)
        ctx->next->prev = ctx;
    parent->child = ctx;
    unlock_tree();
    return ctx;
}

gort_ctx *gort_ctx_ref(gort_ctx *ctx)
{
    check(ctx, "gort_ctx_ref");
    if (ctx)
        gort__ref_take(&ctx->scope.ref);
    return ctx;
}

void gort_ctx_unref(gort_ctx *ctx)
{
    check(ctx, "gort_ctx_unref");
    if (ctx)
        gort__ref_drop(&ctx->scope.ref);
}

int gort_ctx_err(const gort_ctx *ctx)
{
    check(ctx, "gort_ctx_err");
    return ctx ? err_of(ctx) : 0;
}

/* --- cancelling ------------------------------------------------------------------------------- */

/* The context after ctx in the subtree below top, parents first; NULL: that was the last. */
static gort_ctx *next_below(gort_ctx *top, gort_ctx *ctx)
{
    if (ctx->child)
        return ctx->child;
    while (ctx != top && !ctx->next)
        ctx = ctx->parent;
    return ctx == top ? NULL : ctx->next;
}

/* Drops the lock of the tree. */
static void cancel_locked(struct gort__m *m, gort_ctx *top, int err)
{
    struct gort__glist woken = {0};
    int64_t now = gort__os_now();
    if (!top->scope.err)
        for (gort_ctx *ctx = top; ctx; ctx = next_below(top, ctx)) {
            if (!ctx->scope.err) /* a deadline that has passed came first */
                gort__scope_cancel(&ctx->scope, ctx->scope.deadline <= now ? -ETIMEDOUT : err, &woken);
            if (ctx->done)
                gort__chan_close(ctx->done, &woken);
        }
    unlock_tree();
    if (woken.n)
        gort__ready_list(m, woken);
}

void gort_ctx_cancel(gort_ctx *ctx, int err)
{
    GORT_NEED("gort_ctx_cancel", "context", ctx);
    check(ctx, "gort_ctx_cancel");
    struct gort__m *m;
    GORT_ENTER_LOCKED(m, lock_tree(), unlock_tree());
    cancel_locked(m, ctx, err == 0 ? -ECANCELED : err < 0 ? err : -err);
    if (m)
        gort__leave(m);
}

static void expire(void *arg)
{
    lock_tree();
    cancel_locked(gort__m_self(), arg, -ETIMEDOUT);
}

gort_chan *gort_ctx_done(gort_ctx *ctx)
{
    if (!ctx)
        return NULL; /* never cancelled: as a case of a select, never ready */
    check(ctx, "gort_ctx_done");
    struct gort__glist none = {0};
    struct gort__m *m = gort__enter();
    int err = err_of(ctx);
    lock_tree();
    bool fresh = !ctx->done, armed = true;
    if (fresh)
        ctx->done = gort_chan_new(0, 0);
    if (ctx->done && (err || ctx->scope.err)) {
        gort__chan_close(ctx->done, &none);
    } else if (ctx->done && m && ctx->scope.deadline != GORT_FOREVER && ctx->timed != gort__sched_run()) {
        armed = gort__timer_set(&ctx->timer, ctx->scope.deadline, expire, ctx) == 0;
        if (armed)
            ctx->timed = gort__sched_run();
        else if (fresh) { /* else somebody has it already, from an earlier run */
            gort_chan_unref(ctx->done);
            ctx->done = NULL;
        }
    }
    gort_chan *done = armed ? ctx->done : NULL;
    unlock_tree();
    if (none.n)
        gort__ready_list(m, none);
    if (m)
        gort__leave(m);
    return done;
}

/* --- the one in use --------------------------------------------------------------------------- */

gort_ctx *gort_ctx_use(gort_ctx *ctx)
{
    check(ctx, "gort_ctx_use");
    struct gort__m *m = gort__enter();
    if (!m)
        return NULL; /* no run is on: nothing waits, and there is nobody to use it */
    struct gort__g *g = m->g;
    gort_ctx *former = g->flags & GORT_G_CONTEXT ? ctx_of(g->scope) : NULL;
    g->scope = ctx ? &ctx->scope : NULL;
    if (ctx)
        gort__g_flag_on(g, GORT_G_CONTEXT);
    else
        gort__g_flag_off(g, GORT_G_CONTEXT);
    gort__leave(m);
    return former;
}

gort_ctx *gort_ctx_current(void)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return NULL;
    gort_ctx *ctx = m->g->flags & GORT_G_CONTEXT ? ctx_of(m->g->scope) : NULL;
    gort__leave(m);
    return ctx;
}
