/* SPDX-License-Identifier: MIT */
/*
 * gc.c - libgc collects while the world is stopped, and goroutines are roots.
 *
 * Why it is not enough to register threads with libgc: it stops threads and looks at their own stacks, while
 * goroutines are on others. So the threads of goroutines stay unknown to it: they may allocate, but must not
 * collect. Nor can they be registered for the time of a collection: libgc leaves its thread-local free lists
 * behind in them.
 *
 *     libgc wants to collect (in somebody's GC_malloc)   its stop function says no and notes it: the heap grows a little
 *     the allocation is done                             its caller has a thread of its own collect, and waits
 *     libgc is about to stop its threads                 on_event stops the world and notes where the roots are
 *     libgc marks                                        push_roots gives it these, too
 *     libgc has started its threads                      on_event starts the world
 *
 * Locks. The one of libgc is taken before the world is stopped, so nobody who is stopped holds it; some may
 * wait for it. At the end of a run threads are frozen, but not between gort_preempt_off and on: so allocation
 * is between these, and a goroutine that holds the lock is not preempted. Where the roots are is noted before
 * libgc stops its own threads: one of them, the thread that called gort_run for one, may hold a lock of the
 * runtime then.
 * Threads: any that may allocate; the callbacks with libgc's lock held.
 */
#define GC_THREADS
#define GC_NO_THREAD_REDIRECTS

#include <errno.h>
#include <gc/gc.h>
#include <gc/gc_mark.h>
#include <gort.h>
#include <gort/gc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

struct range {
    void *from, *to;
};

static struct {
    struct range *at; /* a mapping: malloc's lock may be held by somebody who is stopped */
    size_t n, room;
} roots; /* guarded by libgc's lock */

static int wanted;   /* libgc wants to collect; atomic */
static bool stopped; /* by us; guarded by libgc's lock */
static bool abandon; /* this collection comes to nothing; guarded by libgc's lock */
static GC_push_other_roots_proc push_threads;

static void die(char *why)
{
    char *const parts[] = {"gort-gc: ", why, "\n"};
    struct iovec io[3];
    for (int i = 0; i < 3; i++)
        io[i] = (struct iovec){parts[i], strlen(parts[i])};
    ssize_t unused = writev(2, io, 3);
    (void)unused;
    abort();
}

/* --- the collector's callbacks ----------------------------------------------------------------- */

static int GC_CALLBACK not_now(void)
{
    __atomic_store_n(&wanted, 1, __ATOMIC_RELAXED);
    return 1;
}

static int GC_CALLBACK go_ahead(void)
{
    return abandon;
}

static void note_range(const void *from, const void *to, void *unused)
{
    (void)unused;
    if (roots.n == roots.room) {
        size_t room = roots.room ? roots.room * 2 : 4096, bytes = roots.room * sizeof *roots.at;
        void *at = roots.at ? mremap(roots.at, bytes, room * sizeof *roots.at, MREMAP_MAYMOVE)
                            : mmap(NULL, room * sizeof *roots.at, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            die("no memory for the list of roots");
        roots.at = at;
        roots.room = room;
    }
    roots.at[roots.n++] = (struct range){(void *)(uintptr_t)from, (void *)(uintptr_t)to};
}

static void stop_world(void)
{
    int err = gort_world_stop();
    if (err == -ETIMEDOUT)
        die("a goroutine cannot be stopped: its signals are blocked");
    stopped = err == 0;
    abandon = err == -ECANCELED; /* a run that ends: its goroutines compute until they are frozen */
    roots.n = 0;
    if (!err || err == -EBUSY) /* the caller has stopped it itself */
        gort_world_roots(note_range, NULL);
}

static void GC_CALLBACK on_event(GC_EventType event)
{
    if (event == GC_EVENT_PRE_STOP_WORLD) {
        stop_world();
    } else if (event == GC_EVENT_POST_START_WORLD && stopped) {
        stopped = false;
        gort_world_start();
    }
}

static void GC_CALLBACK push_roots(void)
{
    if (push_threads)
        push_threads();
    for (size_t i = 0; i < roots.n; i++)
        GC_push_all_eager(roots.at[i].from, roots.at[i].to);
}

/* --- collecting -------------------------------------------------------------------------------- */

static void *collect_here(void *unused)
{
    struct GC_stack_base base;
    if (GC_get_stack_base(&base) != GC_SUCCESS || GC_register_my_thread(&base) != GC_SUCCESS)
        die("libgc does not take the thread");
    GC_try_to_collect(go_ahead); /* GC_gcollect would ask not_now */
    GC_unregister_my_thread();
    return unused;
}

/* Without a thread there is no collection now, and the heap grows. */
static intptr_t wait_for_collection(void *unused)
{
    pthread_t thread;
    (void)unused;
    int err = pthread_create(&thread, NULL, collect_here, NULL);
    return err ? err : pthread_join(thread, NULL);
}

static void collect(void)
{
    gort_block(wait_for_collection, NULL);
    if (GC_should_invoke_finalizers())
        GC_invoke_finalizers();
}

static void *done(void *p)
{
    gort_preempt_on();
    if (__atomic_load_n(&wanted, __ATOMIC_RELAXED) && __atomic_exchange_n(&wanted, 0, __ATOMIC_RELAXED))
        collect();
    return p;
}

/* --- public ------------------------------------------------------------------------------------- */

void gort_gc_init(void)
{
    if (push_threads)
        return;
    GC_INIT();
    GC_allow_register_threads();
    GC_set_finalize_on_demand(1);
    GC_set_stop_func(not_now);
    GC_set_on_collection_event(on_event);
    push_threads = GC_get_push_other_roots();
    GC_set_push_other_roots(push_roots);
}

void *gort_gc_malloc(size_t size)
{
    gort_preempt_off();
    return done(GC_malloc(size));
}

void *gort_gc_malloc_atomic(size_t size)
{
    gort_preempt_off();
    return done(GC_malloc_atomic(size));
}

void *gort_gc_realloc(void *p, size_t size)
{
    gort_preempt_off();
    return done(GC_realloc(p, size));
}

void gort_gc_free(void *p)
{
    gort_preempt_off();
    GC_free(p);
    gort_preempt_on();
}

void gort_gc_collect(void)
{
    collect();
}

size_t gort_gc_heap_size(void)
{
    return GC_get_heap_size();
}
