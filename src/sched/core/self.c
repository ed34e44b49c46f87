/* SPDX-License-Identifier: MIT */
/*
 * self.c - the public calls about goroutines: start one, who am I, tie me to my thread.
 *
 * Why: these only bracket the room's verbs with entry and exit and check what the caller gave.
 * Threads: goroutines and plain threads.
 */
#include <errno.h>
#include <string.h>

#include <gort/errno.h>
#include <gort/typed.h>
#include <gort/version.h>

#include "base/fatal.h"
#include "sched/core/san.h"
#include "sched/core/core.h"

int gort_go(void (*fn)(void *), void *arg)
{
    return gort_go_with(NULL, fn, arg);
}

int gort_go_with(const gort_attr *attr, void (*fn)(void *), void *arg)
{
    GORT_NEED("gort_go", "function", fn);
    struct gort__m *m = gort__enter();
    if (GORT_UNLIKELY(!m))
        return -ESRCH;
    uintptr_t word = (uintptr_t)arg;
    int err = gort__spawn(m, attr, (void (*)(void))fn, &word, 1);
    gort__leave(m);
    return err;
}

int gort_go_copy(void (*fn)(void *), const void *arg, size_t len)
{
    GORT_NEED("gort_go_copy", "function", fn);
    GORT_NEED("gort_go_copy", "argument to copy", arg || !len);
    if (len > GORT_GO_COPY_MAX)
        return -EINVAL;
    struct gort__m *m = gort__enter();
    if (!m)
        return -ESRCH;
    size_t size = len ? len : 1;
    void *copy = gort__argmem_get(size);
    int err = -ENOMEM;
    if (copy) {
        if (len)
            memcpy(copy, arg, len);
        uintptr_t args[2] = {(uintptr_t)copy, size};
        err = gort__spawn_owning(m, (void (*)(void))fn, args);
        if (err)
            gort__argmem_put(copy, size);
    }
    gort__leave(m);
    return err;
}

/* The calling goroutine, or NULL in a plain thread. */
static struct gort__g *self(void)
{
    struct gort__m *m = gort__m_self();
    return m && m->g && !(m->g->flags & GORT_G_THREAD) ? m->g : NULL;
}

uint64_t gort_id(void)
{
    struct gort__g *g = self();
    return g ? g->id : 0;
}

const char *gort_name(void)
{
    struct gort__g *g = self();
    return g ? gort__extra_name(g) : "";
}

void gort_set_name(const char *name)
{
    struct gort__m *m = self() ? gort__enter() : NULL;
    if (!m)
        return;
    gort__extra_set_name(m->g, name); /* without memory for one it keeps the name that it has */
    gort__leave(m);
}

size_t gort_count(void)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return 0;
    size_t n = (size_t)gort__g_count();
    gort__san_after_all();
    gort__leave(m);
    return n;
}

void gort_lock_thread(void)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return;
    struct gort__g *g = m->g;
    if (g->flags & GORT_G_THREAD) {
        gort__leave(m);
        return;
    }
    gort__store(&g->lock_depth, g->lock_depth + 1, RELAXED); /* a dump looks at it */
    if (g->lock_depth == 1) {
        gort__g_flag_on(g, GORT_G_BOUND);
        m->bound_g = g;
    }
    gort__leave(m);
}

void gort_unlock_thread(void)
{
    struct gort__m *m = gort__enter();
    if (!m)
        return;
    struct gort__g *g = m->g;
    if (!(g->flags & GORT_G_THREAD)) {
        if (!g->lock_depth)
            gort__fatal("gort_unlock_thread without gort_lock_thread");
        gort__store(&g->lock_depth, g->lock_depth - 1, RELAXED);
        if (g->lock_depth == 0) {
            gort__g_flag_off(g, GORT_G_BOUND);
            m->bound_g = NULL;
        }
    }
    gort__leave(m);
}

int *gort_priv_errno(void)
{
    return gort__os_errno();
}

const char *gort_version(void)
{
    return GORT_VERSION_STRING;
}

const char *gort_strerror(int err)
{
    if (err < 0 && err != INT32_MIN)
        err = -err;
    switch (err) {
    case 0:
        return "success";
    case EBUSY:
        return "a run is on already";
    case ESRCH:
        return "no run is on: call it from inside gort_run";
    case ECANCELED:
        return "the context was cancelled";
    case ETIMEDOUT:
        return "the deadline has passed";
    case EAGAIN:
        return "not possible right now";
    case EPIPE:
        return "the other side is closed";
    default: {
        const char *text = strerrordesc_np(err);
        return text ? text : "unknown error";
    }
    }
}
