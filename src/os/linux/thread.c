/* SPDX-License-Identifier: MIT */
/*
 * thread.c - the kernel's threads, through pthreads.
 *
 * Why pthreads and not clone: goroutines call any C library, and libc must know the thread (its
 * thread-local storage, its robust lists, its stdio locks). Default attributes: 8 MiB of stack that
 * the kernel commits as it is touched.
 * The start record: function, argument and name must reach the new thread. They lie in a small static
 * pool and not on the starter's stack, or the starter would have to wait until the new thread has been
 * given a CPU; nor in malloc's memory, whose lock a preempted goroutine may hold.
 * Invariants: (1) a record belongs to the starter from the claim until pthread_create, then to the new
 * thread until it clears `taken`; (2) the key for thread ends is created once and has one function.
 * Threads: any, except init; errno is never changed.
 */
#include <string.h>
#include <fcntl.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "os/linux/init.h"
#include "os/os.h"

#define NAME_SIZE   16 /* the kernel's, terminator included */
#define START_COUNT 32 /* more threads than this may start at once, but the next starter waits */

struct start {
    uint32_t taken; /* atomic */
    void (*fn)(void *);
    void *arg;
    char name[NAME_SIZE];
};

static struct start starts[START_COUNT];

static struct start *claim_start(void)
{
    for (;;) {
        for (int i = 0; i < START_COUNT; i++) {
            uint32_t no = 0;
            if (gort__load(&starts[i].taken, RELAXED) == 0 &&
                gort__cas(&starts[i].taken, &no, 1, ACQUIRE)) /* pairs with drop_start */
                return &starts[i];
        }
        gort__os_thread_yield();
    }
}

static void drop_start(struct start *s)
{
    gort__store(&s->taken, 0, RELEASE); /* pairs with claim_start */
}

static void *begin(void *record)
{
    struct start *s = record;
    void (*fn)(void *) = s->fn;
    void *arg = s->arg;
    gort__os_thread_precise();
    if (s->name[0])
        pthread_setname_np(pthread_self(), s->name);
    drop_start(s);
    fn(arg);
    return NULL;
}

int gort__os_thread_start(uintptr_t *thread, void (*fn)(void *), void *arg, const char *name)
{
    int saved = errno;
    struct start *s = claim_start();
    s->fn = fn;
    s->arg = arg;
    size_t n = 0;
    for (; name && name[n] && n < NAME_SIZE - 1; n++)
        s->name[n] = name[n];
    s->name[n] = 0;

    pthread_t id;
    int error = pthread_create(&id, NULL, begin, s);
    if (error)
        drop_start(s);
    else
        *thread = (uintptr_t)id;
    errno = saved;
    return -error;
}

void gort__os_thread_join(uintptr_t thread)
{
    int saved = errno;
    pthread_join((pthread_t)thread, NULL);
    errno = saved;
}

bool gort__os_thread_try_join(uintptr_t thread)
{
    return pthread_tryjoin_np((pthread_t)thread, NULL) != EBUSY; /* which leaves errno alone */
}

void gort__os_thread_detach(uintptr_t thread)
{
    int saved = errno;
    pthread_detach((pthread_t)thread);
    errno = saved;
}

int gort__os_cpu(void)
{
    return sched_getcpu(); /* from a word that the kernel keeps up to date (rseq), or the vDSO */
}

int gort__os_thread_id(void)
{
    int saved = errno, id = (int)syscall(SYS_gettid);
    if (id < 0)
        gort__os_needs("gettid", errno);
    errno = saved;
    return id;
}

/* libc's getpid hands back what a sandbox says as if it were a number; and kill(-1) means every process there is. */
int gort__os_process_id(void)
{
    int saved = errno, id = (int)syscall(SYS_getpid);
    if (id < 0)
        gort__os_needs("getpid", errno);
    errno = saved;
    return id;
}

void gort__os_thread_yield(void)
{
    int saved = errno;
    sched_yield();
    errno = saved;
}

#define PRECISE 1UL /* ns; the usual 50 us let every sleep of a thread end so much later */

static int usual_slack; /* of the thread that called gort_run; < 0: the kernel did not say; atomic */

static size_t stack_size; /* written by init only */

size_t gort__os_thread_stack_size(void)
{
    return stack_size;
}

void gort__thread_init(void)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) == 0) {
        pthread_attr_getstacksize(&attr, &stack_size);
        pthread_attr_destroy(&attr);
    }
    gort__store(&usual_slack, prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL), RELAXED);
}

void gort__os_thread_precise(void)
{
    int saved = errno;
    prctl(PR_SET_TIMERSLACK, PRECISE, 0UL, 0UL, 0UL);
    errno = saved;
}

bool gort__os_thread_usual(void)
{
    int saved = errno, usual = gort__load(&usual_slack, RELAXED);
    bool precise = usual > 0 && prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL) == (int)PRECISE;
    if (precise) /* else the program has its own wish */
        prctl(PR_SET_TIMERSLACK, (unsigned long)usual, 0UL, 0UL, 0UL);
    errno = saved;
    return precise;
}

/* The fence keeps compilers from finding out (link-time optimization does) that the address is the
 * same for a whole thread: a goroutine asks on one thread and then on another. */
GORT_NOINLINE int *gort__os_errno(void)
{
    gort__compiler_fence();
    return &errno;
}

__attribute__((weak)) struct gort__os_eh_globals *__cxa_get_globals(void);

struct gort__os_eh_globals *gort__os_eh_globals(void)
{
    return __cxa_get_globals ? __cxa_get_globals() : NULL;
}

enum { NO_KEY, MAKING_KEY, HAS_KEY };

static struct {
    uint32_t state; /* atomic; who takes it from NO_KEY to MAKING_KEY owns the rest until HAS_KEY */
    pthread_key_t key;
    void (*fn)(void *);
} at_end;

static int make_key(void (*fn)(void *))
{
    uint32_t state;
    while ((state = gort__load(&at_end.state, ACQUIRE)) != HAS_KEY) { /* pairs with the store below */
        if (state == MAKING_KEY || !gort__cas(&at_end.state, &state, MAKING_KEY, RELAXED)) {
            gort__os_thread_yield();
            continue;
        }
        int error = pthread_key_create(&at_end.key, fn);
        at_end.fn = fn;
        gort__store(&at_end.state, error ? NO_KEY : HAS_KEY, RELEASE); /* pairs with the load above */
        if (error)
            return -error;
    }
    return 0;
}

/* All callers name the same function (-EINVAL for another): the key's destructor gets just one word. */
int gort__os_at_thread_end(void (*fn)(void *), void *arg)
{
    int saved = errno, result = make_key(fn);
    if (result == 0)
        result = at_end.fn == fn ? -pthread_setspecific(at_end.key, arg) : -EINVAL;
    errno = saved;
    return result;
}

static void (*fork_child_fn)(void); /* written once, before any fork can call fork_child */

/* The threads that were starting do not exist here, so nobody would return their records. After fn: see
 * sched/life/run.c:in_forked_child. */
static void fork_child(void)
{
    fork_child_fn();
    for (int i = 0; i < START_COUNT; i++)
        gort__store(&starts[i].taken, 0, RELAXED);
}

int gort__os_at_fork_child(void (*fn)(void))
{
    int saved = errno;
    fork_child_fn = fn;
    int result = -pthread_atfork(NULL, NULL, fork_child);
    errno = saved;
    return result;
}

int gort__os_thread_total(void)
{
    char text[1024];
    int saved = errno, total = 0, fields = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n > 0) {
        text[n] = '\0';
        /* The name in parentheses may hold anything; the number of threads is the 18th field behind it. */
        const char *at = strrchr(text, ')');
        while (at && fields < 18)
            if ((at = strchr(at, ' ')) != NULL) {
                at++;
                fields++;
            }
        for (; at && *at >= '0' && *at <= '9'; at++)
            total = total * 10 + (*at - '0');
    }
    errno = saved;
    return total;
}
