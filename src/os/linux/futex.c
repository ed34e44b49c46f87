/* SPDX-License-Identifier: MIT */
/*
 * futex.c - sleeping on a word, and waking who sleeps there.
 *
 * Why: the one way in which our threads wait for each other; the lock, idle threads and preempted
 * goroutines all stand on it. The deadline is absolute, so a wait that is taken up again after a
 * spurious return does not grow longer; FUTEX_WAIT counts from now, hence FUTEX_WAIT_BITSET.
 * Threads: any, signal handlers too. errno is never changed.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/os.h"

#define SECOND INT64_C(1000000000)

int gort__os_futex_wait(uint32_t *word, uint32_t expected, int64_t deadline)
{
    int saved = errno, why = 0;
    struct timespec at, *timeout = NULL;
    if (deadline != INT64_MAX) {
        int64_t ns = deadline > 0 ? deadline : 0; /* the kernel refuses negative times */
        at.tv_sec = (time_t)(ns / SECOND);
        at.tv_nsec = (long)(ns % SECOND);
        timeout = &at;
    }
    if (syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, expected, timeout, NULL,
                FUTEX_BITSET_MATCH_ANY) != 0)
        why = errno;
    errno = saved;
    switch (why) {
    case 0:
    case EAGAIN: /* the word had changed already */
    case EINTR:
        return 0;
    case ETIMEDOUT:
        return -ETIMEDOUT;
    default: /* whoever called would only try again, for ever */
        gort__os_needs("futex", why);
    }
}

/* The word may be gone by now (its owner woke up and freed it), so EFAULT is no error. */
void gort__os_futex_wake(uint32_t *word, int count)
{
    int saved = errno;
    if (syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0) < 0 &&
        gort__os_refused(errno))
        gort__os_needs("futex", errno); /* who sleeps there would do so for ever */
    errno = saved;
}
