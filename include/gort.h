/* SPDX-License-Identifier: MIT */
/*
 * gort.h - goroutines for C. Includes every header below gort/ except gort/short.h and gort/gc.h.
 *
 *     #include <gort.h>
 *     #include <stdio.h>
 *
 *     static void hello(void *who) { printf("hello, %s\n", (const char *)who); }
 *
 *     static int start(void *arg)
 *     {
 *         gort_wg wg = {0};
 *         (void)arg;
 *         gort_wg_go(&wg, hello, "world");
 *         return gort_wg_wait(&wg);
 *     }
 *
 *     int main(void) { return gort_run(start, NULL); }
 *
 * The wait matters: when start returns, the run is over, and a goroutine that has not finished never will.
 *
 * Words used in all headers:
 *
 * - run: the time from the call of gort_run to its return.
 * - plain thread: a thread that gort did not create, such as the one that calls gort_run.
 * - park: to wait without holding a thread. gort sets the goroutine aside, and its thread runs another
 *   goroutine. A goroutine that has parked or yielded may continue on another thread; no other call moves it.
 *   Where a goroutine parks, a plain thread sleeps.
 *
 * Rules for all headers; a comment mentions only the exceptions:
 *
 * - Callable from: goroutines and plain threads. A signal handler may call gort_dump, and otherwise only
 *   functions whose comment says "callable from anywhere".
 * - Outside a run a call works as long as it need not wait. A call that would have to wait is fatal then.
 * - Results: >= 0 is success, a negative result is -errno. gort never reports an error through errno itself.
 * - Fatal means that gort writes one line that names the call and the mistake, then the dump, and aborts.
 *   NULL for an argument that must not be NULL is fatal.
 * - The plain form of a call waits for ever. The form with _until takes a deadline (see gort/time.h).
 * - While a goroutine has a context in use, a call that waits may also return -ECANCELED, or -ETIMEDOUT from
 *   the deadline of the context. gort/ctx.h lists the calls that never do.
 * - A plain thread that waits when the run ends gets -ECANCELED.
 */
#ifndef GORT_H
#define GORT_H

#include "gort/base.h"
#include "gort/errno.h"
#include "gort/version.h"
#include "gort/run.h"
#include "gort/key.h"
#include "gort/time.h"
#include "gort/ticker.h"
#include "gort/chan.h"
#include "gort/select.h"
#include "gort/sync.h"
#include "gort/ctx.h"
#include "gort/group.h"
#include "gort/typed.h"
#include "gort/io.h"
#include "gort/net.h"
#include "gort/buf.h"
#include "gort/signal.h"
#include "gort/process.h"
#include "gort/stats.h"

#endif
